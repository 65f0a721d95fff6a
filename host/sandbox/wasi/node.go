package wasi

import (
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/stockade-dev/stockade/host/beneath"
)

// node is a file or directory of a staged mount as the guest has it. Nodes are
// made when a name is looked up. Directories stay, and so does every file that
// was opened or changed; for everything else the host is asked again.
type node struct {
	parent *node // nil for the mount itself, and when gone
	name   string
	mode   fs.FileMode
	origin *origin // nil if it was made by the guest
	gone   bool    // removed, or replaced by another
	keep   bool    // the host's changes make no other node of it

	// Of a directory: what is known to be in it, and what the host has in it
	// and the guest no longer, by the name that the host has for it.
	children, away map[string]*node

	tall, long int   // levels and bytes of names that are below it at most
	cost       int64 // what it takes of maxTreeBytes

	data  *content // of a file; nil is what the host has
	opens int      // handles of a file

	ino   uint64      // if made by the guest
	times *stamps     // nil is what the host has
	chmod bool        // mode was taken over from a file that this one replaced
	like  os.FileInfo // and the owner, unless nil
	stale bool        // the guest has read another that the host had here before
	read  bool        // opened by the guest to be read
	write bool        // opened by the guest to be written
	seen  *digest     // the content when it was first changed; nil if that was not looked at
}

// origin is where the host has something. It does not change when the guest
// moves the node.
type origin struct {
	dir  *node // of the host too; nil for the mount itself
	name string
	info os.FileInfo // as it was when the guest first opened or changed it

	undone bool // a commit has touched it, and put it back
}

// stamps are the times of a node, in nanoseconds.
type stamps struct {
	atim, mtim, ctim int64
	setAtim, setMtim bool // by the guest, and so on the host in the end
}

// nodeInfo makes an [os.FileInfo] of a node; live is what the host says about
// its origin now, or nil.
type nodeInfo struct {
	n    *node
	live os.FileInfo
}

func (i nodeInfo) Name() string       { return i.n.name }
func (i nodeInfo) Mode() fs.FileMode  { return i.n.mode }
func (i nodeInfo) IsDir() bool        { return i.n.mode.IsDir() }
func (i nodeInfo) Sys() any           { return i }
func (i nodeInfo) ModTime() time.Time { return time.Unix(0, i.stat().Mtim) }

// stagedDirBytes is the size of a directory that the host does not have.
const stagedDirBytes = 4096

func (i nodeInfo) Size() int64 {
	switch {
	case i.n.data != nil:
		return i.n.data.size
	case i.live != nil:
		return i.live.Size()
	case i.IsDir():
		return stagedDirBytes
	}
	return 0
}

// stat is beneath.StatOf for a node.
func (i nodeInfo) stat() beneath.Stat {
	st := beneath.Stat{Nlink: 1, Ino: i.n.ino}
	if i.live != nil {
		st = beneath.StatOf(i.live)
	}
	if t := i.n.times; t != nil {
		st.Atim, st.Mtim, st.Ctim = t.atim, t.mtim, t.ctim
	}
	return st
}

// home reports whether the node is where the host has it.
func (n *node) home() bool {
	o := n.origin
	return o != nil && !n.gone && n.parent == o.dir && n.name == o.name
}

// dirty reports whether the node itself differs from what the host has there.
func (n *node) dirty() bool {
	return n.origin == nil || n.data != nil || n.times != nil || n.chmod || !n.home()
}

// hold keeps the node and all above it.
func (n *node) hold() {
	for ; n != nil && !n.keep; n = n.parent {
		n.keep = true
		if n.parent != nil {
			n.parent.attach(n.name, n)
		}
	}
}

// lost reports whether the guest may write what it has read from a node that is
// not there any more.
func (n *node) lost() bool { return n.stale || n.keep && n.read && n.mode.IsRegular() }

// attach puts a node under a name.
func (n *node) attach(name string, child *node) {
	if n.children == nil {
		n.children = map[string]*node{}
	}
	child.parent, child.name = n, name
	n.children[name] = child
	n.reach(child)
}

// within reports whether n is dir or below it.
func (n *node) within(dir *node) bool {
	for ; n != nil; n = n.parent {
		if n == dir {
			return true
		}
	}
	return false
}

// path is the name of the node below the mount.
func (n *node) path() string {
	var names []string
	for ; n.parent != nil; n = n.parent {
		names = append(names, n.name)
	}
	return joinNames(names)
}

// path is the name that the host has for it, below the mount.
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
func (n *node) stamp(live os.FileInfo) *stamps {
	if n.times == nil {
		st := nodeInfo{n, live}.stat()
		n.times = &stamps{atim: st.Atim, mtim: st.Mtim, ctim: st.Ctim}
	}
	return n.times
}

// restoreMode gives a file the mode that it had before it took the place of
// another. The mode belongs to that place: by way of it, a guest could make
// anything a program, or take a secret to where everybody reads.
func (n *node) restoreMode(umask fs.FileMode) {
	n.mode, n.like, n.chmod = newFileMode&^umask, nil, false
	if n.origin != nil {
		n.mode = n.origin.info.Mode()
	}
}

// given reports whether the guest has set a time.
func (t *stamps) given() bool { return t != nil && (t.setAtim || t.setMtim) }

// touch is what a change of the content does to the times.
func (n *node) touch(live os.FileInfo) {
	now := time.Now().UnixNano()
	t := n.stamp(live)
	t.mtim, t.ctim, t.setMtim = now, now, false
}

// setTimes is what the guest sets.
func (n *node) setTimes(live os.FileInfo, atim, mtim int64) {
	t := n.stamp(live)
	t.ctim = time.Now().UnixNano()
	if atim != OmitTime {
		t.atim, t.setAtim = atim, true
	}
	if mtim != OmitTime {
		t.mtim, t.setMtim = mtim, true
	}
}
