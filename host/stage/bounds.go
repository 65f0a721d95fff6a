package stage

import (
	"math"
	"sync/atomic"
	"syscall"
)

// Limits of the trees of a set. By moving directories into each other, a call can build
// paths that it could not name itself, and everybody who lists or makes changes has to
// name them.
const (
	maxName      = 255      // bytes of one name, the limit of most hosts
	maxDepth     = 256      // levels of a node that is made or moved: the directories above, and itself
	maxHostPath  = 4096     // bytes of a path on the host, with the path of the tree
	maxTreeBytes = 48 << 20 // bytes of all nodes that are made or moved, with their names
	nodeBytes    = 512      // estimated size of a node without its name
	maxPathBytes = 16 << 20 // bytes of the paths of all changes

	// Limits of a commit. It writes each file, waits for the disk and renames the file.
	// The log also lists this many changes.
	maxChanges        = 10_000
	maxNewBytes int64 = 4 << 30 // bytes of all files that a commit writes anew, with their unchanged parts
)

// maxCollected limits the number of names that an overlay may have changed. It is larger
// than maxChanges, because one step makes most of them. Tests lower it.
var maxCollected = 60_000

// reserveName checks the limits for giving n the name in dir, and reserves the memory for
// the name. n is nil for a node that is not made yet. The error is ENAMETOOLONG or
// ENOSPC.
func (tree *Tree) reserveName(dir *Node, name string, n *Node) error {
	if len(name) > maxName {
		return syscall.ENAMETOOLONG
	}
	levels, pathBytes := 1, len(tree.host)+1+len(name)
	if n != nil {
		levels += n.levelsBelow
		pathBytes += n.bytesBelow
	}
	for ; dir.parent != nil; dir = dir.parent {
		levels++
		pathBytes += len(dir.name) + 1
	}
	if levels > maxDepth || pathBytes > maxHostPath {
		return syscall.ENAMETOOLONG
	}
	cost := int64(nodeBytes + len(name))
	if n != nil {
		cost -= n.cost
	}
	if cost <= 0 {
		return nil
	}
	s := tree.set
	if s.treeBytes+cost > maxTreeBytes || !s.budget.memory.reserve(cost) {
		return errNoRoom
	}
	s.treeBytes += cost
	if n != nil {
		n.cost += cost
	}
	return nil
}

// updateBelow updates levelsBelow and bytesBelow of n and all directories above, after child
// was attached to n. Both only grow: a call that makes deep trees and removes them again
// loses a few levels.
func (n *Node) updateBelow(child *Node) {
	for up := n; up != nil; child, up = up, up.parent {
		levels, pathBytes := child.levelsBelow+1, child.bytesBelow+1+len(child.name)
		if up.levelsBelow >= levels && up.bytesBelow >= pathBytes {
			return
		}
		up.levelsBelow, up.bytesBelow = max(up.levelsBelow, levels), max(up.bytesBelow, pathBytes)
	}
}

// Budget limits the memory and disk space of all its sets together. Any goroutine may use
// a Budget.
type Budget struct{ memory, disk pool }

// NewBudget returns a budget with limits in bytes. memoryBytes limits content in memory,
// and the nodes and names of changed files. diskBytes limits content on the disk. Zero is
// no limit.
func NewBudget(memoryBytes, diskBytes int64) *Budget {
	b := &Budget{}
	b.memory.limit, b.disk.limit = memoryBytes, diskBytes
	for _, p := range []*pool{&b.memory, &b.disk} {
		if p.limit <= 0 {
			p.limit = math.MaxInt64
		}
	}
	return b
}

// pool is a limit in bytes and its use.
type pool struct {
	limit int64
	used  atomic.Int64
}

// reserve takes n bytes and returns true, or takes nothing if fewer are left. A negative n
// gives bytes back.
func (p *pool) reserve(n int64) bool {
	for {
		have := p.used.Load()
		if n > p.limit-have {
			return false
		}
		if p.used.CompareAndSwap(have, have+n) {
			return true
		}
	}
}
