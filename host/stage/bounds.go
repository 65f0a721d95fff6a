package stage

import (
	"math"
	"sync/atomic"
	"syscall"
)

// What the trees may grow to. By moving directories into each other a
// call can build what it could not name, and everything that lists or makes
// changes has to name it.
const (
	maxName      = 255      // bytes of one name, as hosts have it
	maxDepth     = 256      // directories above something that is made or moved, and itself
	maxHostPath  = 4096     // bytes of a name that the host is given, with that of the tree
	maxTreeBytes = 48 << 20 // of nodes that are made or moved, with their names
	nodeBytes    = 512      // about what a node takes
	maxPathBytes = 16 << 20 // of the names of all changes

	// What a commit may do. Each file is written, waits for the disk, and gets its
	// name; also the log lists so many.
	maxChanges        = 10_000
	maxNewBytes int64 = 4 << 30 // of the files that are written anew, with what stays the same in them
)

// maxCollected is how many names an overlay may have changed; most of them are made
// by one step for many. Tests have fewer.
var maxCollected = 60_000

// reserveName reports whether a name can be given to n, or to something new if n is
// nil, and takes what that needs.
func (tree *Tree) reserveName(dir *Node, name string, n *Node) error {
	if len(name) > maxName {
		return syscall.ENAMETOOLONG
	}
	levels, long := 1, len(tree.host)+1+len(name)
	if n != nil {
		levels += n.levelsBelow
		long += n.bytesBelow
	}
	for ; dir.parent != nil; dir = dir.parent {
		levels++
		long += len(dir.name) + 1
	}
	if levels > maxDepth || long > maxHostPath {
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

// updateBelow notes what is below a directory at most: how many levels, and how long
// a name. It may be less by now, which costs a call that makes deep trees and
// removes them again a few levels.
func (n *Node) updateBelow(child *Node) {
	for up := n; up != nil; child, up = up, up.parent {
		tall, long := child.levelsBelow+1, child.bytesBelow+1+len(child.name)
		if up.levelsBelow >= tall && up.bytesBelow >= long {
			return
		}
		up.levelsBelow, up.bytesBelow = max(up.levelsBelow, tall), max(up.bytesBelow, long)
	}
}

// Budget bounds what all sets together hold that have it. It may be used by
// several at the same time.
type Budget struct{ memory, disk pool }

// NewBudget makes a budget of so many bytes in memory, of content and of the
// names and nodes of what was changed, and so many of content on the disk. Zero
// is no limit.
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
	limit int64
	used  atomic.Int64
}

// reserve takes n, or nothing. A negative n gives back.
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
