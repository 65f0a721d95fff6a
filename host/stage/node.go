package stage

import (
	"io/fs"
	"iter"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/stockade-dev/stockade/host/rootedfs"
)

// Node is a file, directory or symbolic link of a tree, with what is staged of
// it. Nodes are made when a name is looked up. Directories stay, and so does
// every file that was opened or changed; for everything else the host is asked
// again.
type Node struct {
	parent *Node // nil for the top of the tree, and when gone
	name   string
	mode   fs.FileMode
	origin *origin // nil if it was made here
	gone   bool    // removed, or replaced by another
	pinned bool    // the host's changes make no other node of it

	// Of a directory: what is known to be in it, and what the host has in it
	// and is not here any longer, by the name that the host has for it.
	children, displaced map[string]*Node

	levelsBelow, bytesBelow int   // levels and bytes of names that are below it at most
	cost                    int64 // what it takes of maxTreeBytes

	data  *content // of a file; nil is what the host has
	upper *upper   // what an overlay has of it; nil if it was not changed there
	opens int      // handles of a file

	createMode    fs.FileMode // what it was made with, if it was made here
	serial        uint64      // of what was made here
	times         *stamps     // nil is what the host has
	modeSet       bool        // mode was taken over from a file that this one replaced
	ownerFrom     os.FileInfo // and the owner, unless nil
	stale         bool        // another was read that the host had here before
	openedToRead  bool        // it was opened to be read
	openedToWrite bool        // it was opened to be written
	oldDigest     *digest     // the content when it was first changed; nil if that was not looked at
}

// origin is where the host has something. It does not change when the node is
// moved.
type origin struct {
	dir  *Node // of the host too; nil for the top of the tree
	name string
	info os.FileInfo // as it was when it was first opened or changed

	rolledBack bool // a commit has touched it, and put it back
}

// stamps are the times of a node, in nanoseconds.
type stamps struct {
	atim, mtim, ctim int64
	setAtim, setMtim bool // as such, and so on the host in the end
}

// Info makes an [os.FileInfo] of a node. Live is what the host says about its
// origin now; nil if it has none.
type Info struct {
	Node *Node
	Live os.FileInfo
}

func (i Info) Name() string       { return i.Node.name }
func (i Info) Mode() fs.FileMode  { return i.Node.mode }
func (i Info) IsDir() bool        { return i.Node.mode.IsDir() }
func (i Info) Sys() any           { return i }
func (i Info) ModTime() time.Time { return time.Unix(0, i.Stat().Mtim) }

// stagedDirBytes is the size of a directory that the host does not have.
const stagedDirBytes = 4096

func (i Info) Size() int64 {
	switch {
	case i.Node.data != nil:
		return i.Node.data.size
	case i.Node.upper != nil:
		return i.Node.upper.size
	case i.Live != nil:
		return i.Live.Size()
	case i.IsDir():
		return stagedDirBytes
	}
	return 0
}

// Stat is [rootedfs.StatOf] for a node. What the host does not have has no
// numbers.
func (i Info) Stat() rootedfs.Stat {
	st := rootedfs.Stat{Nlink: 1}
	if i.Live != nil {
		st = rootedfs.StatOf(i.Live)
	}
	if t := i.Node.times; t != nil {
		st.Atim, st.Mtim, st.Ctim = t.atim, t.mtim, t.ctim
	}
	return st
}

// Mode is the type and the mode.
func (n *Node) Mode() fs.FileMode { return n.mode }

// Parent is the directory above; nil for the top of the tree, and for what is
// gone.
func (n *Node) Parent() *Node { return n.parent }

// Gone reports whether it was removed, or replaced by another.
func (n *Node) Gone() bool { return n.gone }

// Origin is what the host has, as it was when it was first opened or changed;
// nil if it was made here.
func (n *Node) Origin() os.FileInfo {
	if n.origin == nil {
		return nil
	}
	return n.origin.info
}

// OriginPath is the name that the host has for it, in the tree; empty if it was
// made here.
func (n *Node) OriginPath() string {
	if n.origin == nil {
		return ""
	}
	return n.origin.path()
}

// Serial numbers what was made in the tree, from 1 on; zero if it was not.
func (n *Node) Serial() uint64 { return n.serial }

// Same reports whether two nodes are one file or directory, maybe of the host
// and under two names.
func (n *Node) Same(other *Node) bool {
	return n == other || n.origin != nil && other.origin != nil && rootedfs.SameFile(n.origin.info, other.origin.info)
}

// Added ranges over what is in a directory and the host does not have there, by
// name.
func (n *Node) Added() iter.Seq2[string, *Node] {
	return func(yield func(string, *Node) bool) {
		for name, c := range n.children {
			if !c.atOrigin() && !yield(name, c) {
				return
			}
		}
	}
}

// Shows reports whether a name that the host has in a directory is still there.
// If it is that of something else, it returns what.
func (n *Node) Shows(name string) (other *Node, _ bool) {
	c := n.children[name]
	switch {
	case c == nil:
		return nil, n.displaced[name] == nil
	case c.atOrigin():
		return nil, true
	}
	return c, true
}

// vanished reports whether the host has removed what was read under a name
// where there is nothing now.
func (n *Node) vanished(name string) bool {
	c := n.children[name]
	return c != nil && c.wasRead()
}

// atOrigin reports whether the node is where the host has it.
func (n *Node) atOrigin() bool {
	o := n.origin
	return o != nil && !n.gone && n.parent == o.dir && n.name == o.name
}

// dirty reports whether the node itself differs from what the host has there.
func (n *Node) dirty() bool {
	return n.origin == nil || n.data != nil || n.times != nil || n.modeSet || !n.atOrigin()
}

// pin keeps the node and all above it.
func (n *Node) pin() {
	for ; n != nil && !n.pinned; n = n.parent {
		n.pinned = true
		if n.parent != nil {
			n.parent.attach(n.name, n)
		}
	}
}

// wasRead reports whether what was read from a node that is not there any more may
// be written.
func (n *Node) wasRead() bool { return n.stale || n.pinned && n.openedToRead && n.mode.IsRegular() }

// attach puts a node under a name.
func (n *Node) attach(name string, child *Node) {
	if n.children == nil {
		n.children = map[string]*Node{}
	}
	child.parent, child.name = n, name
	n.children[name] = child
	n.updateBelow(child)
}

// within reports whether n is dir or below it.
func (n *Node) within(dir *Node) bool {
	for ; n != nil; n = n.parent {
		if n == dir {
			return true
		}
	}
	return false
}

// Path is the name in the tree, with slashes; "." for the top.
func (n *Node) Path() string {
	var names []string
	for ; n.parent != nil; n = n.parent {
		names = append(names, n.name)
	}
	return joinNames(names)
}

// path is the name that the host has for it, in the tree.
func (o *origin) path() string {
	var names []string
	for ; o.dir != nil; o = o.dir.origin {
		names = append(names, o.name)
	}
	return joinNames(names)
}

// joinNames makes a name of its parts, of which the last comes first.
func joinNames(names []string) string {
	if len(names) == 0 {
		return "."
	}
	slices.Reverse(names)
	return strings.Join(names, "/")
}

// stamp gives the node times of its own, beginning with those it has.
func (n *Node) stamp(live os.FileInfo) *stamps {
	if n.times == nil {
		st := Info{n, live}.Stat()
		n.times = &stamps{atim: st.Atim, mtim: st.Mtim, ctim: st.Ctim}
	}
	return n.times
}

// restoreMode gives a file the mode that it had before it took the place of
// another. The mode belongs to that place: by way of it, a guest could make
// anything a program, or take a secret to where everybody reads.
func (n *Node) restoreMode() {
	n.mode, n.ownerFrom, n.modeSet = n.createMode, nil, false
	if n.origin != nil {
		n.mode = n.origin.info.Mode()
	}
}

// given reports whether a time was set.
func (t *stamps) given() bool { return t != nil && (t.setAtim || t.setMtim) }

// explicit is the times that were set; of the others, [rootedfs.OmitTime].
func (t *stamps) explicit() (atim, mtim int64) {
	atim, mtim = rootedfs.OmitTime, rootedfs.OmitTime
	if t.setAtim {
		atim = t.atim
	}
	if t.setMtim {
		mtim = t.mtim
	}
	return atim, mtim
}

// touch is what a change of the content does to the times.
func (n *Node) touch(live os.FileInfo) {
	now := time.Now().UnixNano()
	t := n.stamp(live)
	t.mtim, t.ctim, t.setMtim = now, now, false
}

// setTimes sets the times.
func (n *Node) setTimes(live os.FileInfo, atim, mtim int64) {
	t := n.stamp(live)
	t.ctim = time.Now().UnixNano()
	if atim != rootedfs.OmitTime {
		t.atim, t.setAtim = atim, true
	}
	if mtim != rootedfs.OmitTime {
		t.mtim, t.setMtim = mtim, true
	}
}
