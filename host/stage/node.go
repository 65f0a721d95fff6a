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

// Node is a file, directory or symbolic link of a tree, with its staged changes. A lookup of a
// name makes its node. The tree keeps the nodes of directories, and of files that were opened
// or changed; about all other files it asks the host again.
type Node struct {
	parent *Node // nil for the top of the tree, and for a node that is gone
	name   string
	mode   fs.FileMode
	origin *origin // nil if the node was made in the tree
	gone   bool    // the node was removed, or replaced by another node
	pinned bool    // see pin

	// Of a directory: children holds the known entries in the tree. displaced holds nodes that
	// the host has in the directory and the tree does not: they were moved or removed. Its
	// keys are their names on the host.
	children, displaced map[string]*Node

	levelsBelow, bytesBelow int   // of a directory: upper bounds of levels, and of bytes of a path, below it
	cost                    int64 // bytes that the node has reserved of Set.treeBytes

	data  *content // the written content of a file; nil: that of upper or of the host
	upper *upper   // its file in an overlay, or a link that Symlink made; nil: neither
	opens int      // number of Files of OpenFile that were not released

	createMode    fs.FileMode // first mode of a node that was made in the tree
	serial        uint64      // see Serial
	times         *stamps     // own times, from the first change or an overlay; nil: the host's or upper's
	modeSet       bool        // a commit sets exactly mode, without the umask; false: an old file keeps its mode
	ownerFrom     os.FileInfo // file that lends its owner to this one in a commit; nil: the owner stays
	stale         bool        // the call has read another file that the host had under this name before
	openedToRead  bool        // the file was once open for reading
	openedToWrite bool        // the file was once open for writing
	oldDigest     *digest     // digest of the origin before the first change; nil: unknown
	content       *digest     // see rememberContents; nil: unknown
}

// origin is the place where the host has a node. It stays the same when the node is moved.
type origin struct {
	dir  *Node // the node of the directory that the host has it in; nil for the top of the tree
	name string
	info os.FileInfo // state when it was first opened or changed; until then of the last lookup

	rolledBack bool // a commit may have changed the file, and has undone the change
}

// stamps are the times of a node, in nanoseconds since 1970.
type stamps struct {
	atim, mtim, ctim int64
	setAtim, setMtim bool // a commit sets the time: it was set on purpose, or belongs to an overlay's file
}

// Info implements [os.FileInfo] for a node. Live is the state of its origin on the host; nil if
// it has none.
type Info struct {
	Node *Node
	Live os.FileInfo
}

func (i Info) Name() string       { return i.Node.name }
func (i Info) Mode() fs.FileMode  { return i.Node.mode }
func (i Info) IsDir() bool        { return i.Node.mode.IsDir() }
func (i Info) Sys() any           { return i }
func (i Info) ModTime() time.Time { return time.Unix(0, i.Stat().Mtim) }

const stagedDirBytes = 4096 // reported size of a directory that the host does not have

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

// Stat returns the facts about a node. Dev and Ino are zero if Live is nil.
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

// Mode returns the type and the permissions.
func (n *Node) Mode() fs.FileMode { return n.mode }

// Parent returns the directory above; nil for the top of the tree and for a node that is gone.
func (n *Node) Parent() *Node { return n.parent }

// Gone reports whether the node was removed, or replaced by another one.
func (n *Node) Gone() bool { return n.gone }

// Origin returns the state of the host's file when it was first opened or changed, until then
// when it was last looked up; nil if there is none.
func (n *Node) Origin() os.FileInfo {
	if n.origin == nil {
		return nil
	}
	return n.origin.info
}

// OriginPath returns the path of the origin, with slashes and relative to the top; empty: none.
func (n *Node) OriginPath() string {
	if n.origin == nil {
		return ""
	}
	return n.origin.path()
}

// Serial returns the number, from 1 on in each tree, of a node that was made; zero for others.
func (n *Node) Serial() uint64 { return n.serial }

// Same reports whether two nodes are the same file or directory, maybe under two names.
func (n *Node) Same(other *Node) bool {
	return n == other || n.origin != nil && other.origin != nil && rootedfs.SameFile(n.origin.info, other.origin.info)
}

// Added ranges in any order over the nodes, by name, that the host does not have there. The
// host may have another file of the same name.
func (n *Node) Added() iter.Seq2[string, *Node] {
	return func(yield func(string, *Node) bool) {
		for name, c := range n.children {
			if !c.atOrigin() && !yield(name, c) {
				return
			}
		}
	}
}

// Shows reports whether the tree has an entry for a name that the host has in the directory.
// other is nil, or the node that has the name instead of the host's file.
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

// vanished reports whether the call has read a file under this name that the host has removed
// since. The name must be free.
func (n *Node) vanished(name string) bool {
	c := n.children[name]
	return c != nil && c.wasRead()
}

// atOrigin reports whether the node has the place that its file has on the host.
func (n *Node) atOrigin() bool {
	o := n.origin
	return o != nil && !n.gone && n.parent == o.dir && n.name == o.name
}

// dirty reports whether a node was made, written by a guest, moved or removed, or its times or
// mode were changed. A change of its entries changes the times of a directory.
func (n *Node) dirty() bool {
	return n.origin == nil || n.data != nil || n.times != nil || n.modeSet || !n.atOrigin()
}

// pin makes the tree keep the node and all directories above, with the state that the host had
// last. If the host replaces a file that was only read, [Cursor.Child] returns a new node.
func (n *Node) pin() {
	for ; n != nil && !n.pinned; n = n.parent {
		n.pinned = true
		if n.parent != nil {
			n.parent.attach(n.name, n)
		}
	}
}

// wasRead reports whether the call has read this file, or an earlier one of its name, so that
// a write may depend on content that the host does not have any more.
func (n *Node) wasRead() bool { return n.stale || n.pinned && n.openedToRead && n.mode.IsRegular() }

// attach makes child the entry of n under a name.
func (n *Node) attach(name string, child *Node) {
	if n.children == nil {
		n.children = map[string]*Node{}
	}
	child.parent, child.name = n, name
	n.children[name] = child
	n.updateBelow(child)
}

func (n *Node) within(dir *Node) bool {
	for ; n != nil; n = n.parent {
		if n == dir {
			return true
		}
	}
	return false
}

// Path returns the path in the tree, with slashes; "." for the top and a node that is gone.
func (n *Node) Path() string {
	var names []string
	for ; n.parent != nil; n = n.parent {
		names = append(names, n.name)
	}
	return joinNames(names)
}

// path returns the path on the host, relative to the top of the tree.
func (o *origin) path() string {
	var names []string
	for ; o.dir != nil; o = o.dir.origin {
		names = append(names, o.name)
	}
	return joinNames(names)
}

// joinNames joins names to a path; "." without names. The last one of the slice comes first.
func joinNames(names []string) string {
	if len(names) == 0 {
		return "."
	}
	slices.Reverse(names)
	return strings.Join(names, "/")
}

// stamp returns the times of the node, for a change. The first call copies them from live.
func (n *Node) stamp(live os.FileInfo) *stamps {
	if n.times == nil {
		st := Info{n, live}.Stat()
		n.times = &stamps{atim: st.Atim, mtim: st.Mtim, ctim: st.Ctim}
	}
	return n.times
}

// restoreMode gives a file the mode that it has on the host, or was made with, and drops the
// owner of a file that it replaced. Both belong to that place: if the file could take the mode
// along, a guest could make any file a program, or move a secret to where everybody reads.
func (n *Node) restoreMode() {
	n.mode, n.ownerFrom, n.modeSet = n.createMode, nil, false
	if n.origin != nil {
		n.mode = n.origin.info.Mode()
	}
}

// given reports whether a commit sets a time. t may be nil.
func (t *stamps) given() bool { return t != nil && (t.setAtim || t.setMtim) }

// explicit returns the times that a commit sets; for any other [rootedfs.OmitTime].
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

// touch sets the times of modification and change to now. live is the state of the origin.
func (n *Node) touch(live os.FileInfo) {
	now := time.Now().UnixNano()
	t := n.stamp(live)
	t.mtim, t.ctim, t.setMtim = now, now, false
}

// setTimes sets the times on purpose, in nanoseconds since 1970; [rootedfs.OmitTime] leaves a
// time unchanged. live is as in touch.
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
