package stage

import (
	"math"
	"sync/atomic"
	"syscall"
)

// Limits of the trees of a set. By moving directories into each other, a call can build paths
// that it could not name itself, but that a listing or a commit has to name. Beyond a limit a
// node cannot be made or moved: ENAMETOOLONG, or ENOSPC for maxTreeBytes.
const (
	maxName      = 255      // bytes of one name, the limit of most hosts
	maxDepth     = 256      // levels from the top to a node that is made or moved, or to a known one below it
	maxHostPath  = 4096     // bytes of a path on the host, with the path of the tree
	maxTreeBytes = 48 << 20 // bytes of all nodes of a set that are made or moved, with their names
	nodeBytes    = 512      // no limit: estimated size in memory of a node without its name
	maxPathBytes = 16 << 20 // bytes of the paths of all changes in their trees; more are errTooMuch

	// Limits of a commit, which writes each file, waits for the disk, and renames the file.
	// Beyond a limit the changes cannot be listed or committed: errTooMuch. With overlays,
	// maxCollected takes the place of maxChanges.
	maxChanges        = 10_000  // changes of files and directories, for a set without overlays
	maxNewBytes int64 = 4 << 30 // bytes of all files that a commit writes anew, without those of overlays
)

// maxCollected takes the place of maxChanges for a set with overlays, and limits the names that
// [Set.Collect] looks at in one overlay: more are errTooMuch. It is larger than maxChanges,
// because one step of a commit can make many of the changes. Tests lower it.
var maxCollected = 60_000

// reserveName checks the limits for giving n the name in dir, and reserves the memory for n
// with the name. n is nil for a node that is not made yet. The error is ENAMETOOLONG or ENOSPC.
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

// updateBelow updates levelsBelow and bytesBelow of n and of all directories above, after
// child was attached to n. Both only grow: a call that makes deep trees and removes them again
// can make its next ones a few levels less deep.
func (n *Node) updateBelow(child *Node) {
	for up := n; up != nil; child, up = up, up.parent {
		levels, pathBytes := child.levelsBelow+1, child.bytesBelow+1+len(child.name)
		if up.levelsBelow >= levels && up.bytesBelow >= pathBytes {
			return
		}
		up.levelsBelow, up.bytesBelow = max(up.levelsBelow, levels), max(up.bytesBelow, pathBytes)
	}
}

// Budget limits the memory and disk space of several sets. Any goroutine may use a Budget.
type Budget struct{ memory, disk pool }

// NewBudget returns a budget with limits in bytes; zero or less: no limit. memoryBytes limits
// content in memory, and nodes that were made or moved, with their names. diskBytes limits
// content that has moved from memory to the disk. The files of a [Layer] do not count.
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

type pool struct {
	limit int64        // bytes
	used  atomic.Int64 // bytes
}

// reserve takes n bytes from the pool. It takes nothing and returns false if fewer are unused.
// A negative n gives bytes back.
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
