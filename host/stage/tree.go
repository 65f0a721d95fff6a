package stage

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/stockade-dev/stockade/host/rootedfs"
)

// Tree is a directory of the host with its staged changes, for one goroutine at a time.
type Tree struct {
	set        *Set
	host       string        // absolute path on the host
	root       rootedfs.Root // a copy that outlives the root of the caller
	top        *Node
	layer      *Layer             // layer of the overlay through which the directory is changed; nil: none
	lastSerial uint64             // see Node.Serial
	displaced  map[*Node]struct{} // all nodes with an origin that are not atOrigin
}

// Add makes a directory of the host a tree of the set, or returns its tree of an earlier call. root
// is open on it and stays the caller's; host is its absolute path, and info its state. It is an
// error to add a directory under two paths, two under one path, or any after the end of the set.
func (s *Set) Add(root rootedfs.Root, host string, info os.FileInfo) (*Tree, error) {
	if s.Ended() {
		return nil, errors.New("stage: it has ended")
	}
	for _, tree := range s.trees {
		switch same := rootedfs.SameFile(tree.top.origin.info, info); {
		case same && tree.host == host:
			return tree, nil
		case same: // each tree would show the changes of the other one too late
			return nil, fmt.Errorf("stage: %s and %s are one directory", host, tree.host)
		case tree.host == host: // each would get a part of the changes
			return nil, fmt.Errorf("stage: another directory is %s now", host)
		}
	}
	root, err := root.OpenRoot(".")
	if err != nil {
		return nil, fmt.Errorf("stage %s: %w", host, err)
	}
	tree := &Tree{
		set:       s,
		host:      host,
		root:      root,
		top:       &Node{name: ".", mode: info.Mode(), origin: &origin{name: ".", info: info}, pinned: true},
		displaced: map[*Node]struct{}{},
	}
	s.trees = append(s.trees, tree)
	return tree, nil
}

// Top returns the node of the directory itself.
func (tree *Tree) Top() *Node { return tree.top }

func (tree *Tree) hostPath(rel string) string {
	return filepath.Join(tree.host, filepath.FromSlash(rel))
}

// Create makes a file under a free name or, if the mode has fs.ModeDir, a directory. As
// [os.OpenFile] does, it clears the bits of the umask in mode. The error is EAGAIN if the call
// has read a file under this name that the host has removed since.
func (tree *Tree) Create(dir *Node, name string, mode fs.FileMode) (*Node, error) {
	if dir.vanished(name) {
		return nil, errReplaced
	}
	if err := tree.reserveName(dir, name, nil); err != nil {
		return nil, err
	}
	now := time.Now().UnixNano()
	tree.lastSerial++
	mode &^= tree.set.umask
	n := &Node{mode: mode, createMode: mode, serial: tree.lastSerial, cost: int64(nodeBytes + len(name)), times: &stamps{atim: now, mtim: now, ctim: now}}
	if mode.IsRegular() {
		n.data = newContent(tree.set.arena, 0)
	}
	dir.pin()
	tree.touch(dir)
	dir.attach(name, n)
	n.pinned = true
	return n, nil
}

// Rename moves n to a name in dir. replaced is the node that has the name so far; nil if the
// name is free. A replaced directory must be empty. The caller checks that only a directory
// replaces a directory, and only a file a file. A regular file that replaces another one has
// the mode and the owner of the other file until it leaves the place.
func (tree *Tree) Rename(n, dir *Node, name string, replaced *Node) error {
	if replaced != nil && replaced.mode.IsDir() {
		if err := tree.checkEmpty(replaced); err != nil {
			return err
		}
	}
	replaces := replaced != nil && replaced.mode.IsRegular() && n.mode.IsRegular()
	if replaces {
		if err := tree.refuseHardLinks(n); err != nil {
			return err
		}
	}
	switch {
	case dir.within(n):
		return syscall.EINVAL
	case replaced != nil && replaced.stale || replaced == nil && dir.vanished(name):
		return errReplaced
	case n.parent.device() != dir.device():
		return syscall.EXDEV
	}
	if err := tree.reserveName(dir, name, n); err != nil {
		return err
	}
	if n.mode.IsRegular() {
		n.restoreMode()
	}
	if replaces {
		if n.mode.Perm() != replaced.mode.Perm() {
			n.modeSet = true
		}
		n.mode = replaced.mode.Perm()
		n.ownerFrom = replaced.ownerFrom
		if n.ownerFrom == nil && replaced.origin != nil {
			n.ownerFrom = replaced.origin.info
		}
		n.modeSet = n.modeSet || n.ownerFrom != nil
	}
	if replaced != nil {
		if err := tree.rememberContent(replaced); err != nil {
			return err
		}
		tree.remove(replaced)
	}
	tree.move(n, dir, name)
	return nil
}

// Remove removes a file or an empty directory.
func (tree *Tree) Remove(n *Node) error {
	if n.stale {
		return errReplaced
	}
	if n.mode.IsDir() {
		if err := tree.checkEmpty(n); err != nil {
			return err
		}
	}
	if err := tree.rememberContent(n); err != nil {
		return err
	}
	tree.remove(n)
	return nil
}

// SetTimes sets the times of a node, in nanoseconds since 1970; [rootedfs.OmitTime] leaves a
// time unchanged. live is the present state of the origin. A file with several hard links is
// EACCES.
func (tree *Tree) SetTimes(n *Node, live os.FileInfo, atim, mtim int64) error {
	if err := tree.refuseHardLinks(n); err != nil {
		return err
	}
	n.pin()
	n.setTimes(live, atim, mtim)
	return nil
}

// Readlink is [Cursor.Readlink].
func (tree *Tree) Readlink(n *Node) (string, error) {
	cur := tree.Cursor()
	defer cur.Close()
	return cur.Readlink(n)
}

// OpenDir opens a directory of the host to list its entries, and returns its state. Both are
// nil if the host does not have the directory. In the tree the directory has the listed
// entries that [Node.Shows] confirms, and those of [Node.Added].
func (tree *Tree) OpenDir(n *Node) (*os.File, os.FileInfo, error) {
	if n.origin == nil {
		n.pin()
		return nil, nil, nil
	}
	cur := tree.Cursor()
	defer cur.Close()
	dir, fi, err := cur.list(n)
	if err == nil {
		n.pin()
	}
	return dir, fi, err
}

// OpenRoot opens a directory of the host for lookups. n must have an origin.
func (tree *Tree) OpenRoot(n *Node) (rootedfs.Root, error) {
	cur := tree.Cursor()
	defer cur.Close()
	if err := cur.moveTo(n); err != nil {
		return nil, err
	}
	return cur.root.OpenRoot(".")
}

func (tree *Tree) open(n *Node) (*os.File, os.FileInfo, error) {
	cur := tree.Cursor()
	defer cur.Close()
	return cur.open(n)
}

// refuseHardLinks returns EACCES for a regular file of the host that has several hard links.
func (tree *Tree) refuseHardLinks(n *Node) error {
	if n.origin == nil || !n.mode.IsRegular() {
		return nil
	}
	file, fi, err := tree.open(n)
	if err != nil {
		return err
	}
	defer file.Close()
	return rootedfs.RefuseHardLinks(file, fi)
}

// rememberContent sets the oldDigest of a file that the call has read and will remove.
func (tree *Tree) rememberContent(n *Node) error {
	if !n.openedToRead || n.origin == nil || n.data != nil || n.oldDigest != nil {
		return nil
	}
	file, fi, err := tree.open(n)
	if err != nil {
		return nil // the commit will find that the file has changed
	}
	n.oldDigest, err = n.digest(file, fi)
	return errors.Join(err, file.Close())
}

// checkEmpty returns ENOTEMPTY for a directory that has entries.
func (tree *Tree) checkEmpty(n *Node) error {
	for _, c := range n.children {
		if !c.atOrigin() {
			return syscall.ENOTEMPTY
		}
	}
	if n.origin == nil {
		return nil
	}
	cur := tree.Cursor()
	defer cur.Close()
	dir, _, err := cur.list(n)
	if err != nil {
		return err
	}
	defer dir.Close()
	return eachName(dir, 64, func(name string) error {
		if n.displaced[name] == nil {
			return syscall.ENOTEMPTY
		}
		return nil
	})
}

// eachName calls do for each name in a directory until it returns an error. It reads some names
// at a time.
func eachName(dir *os.File, some int, do func(name string) error) error {
	for {
		names, err := dir.Readdirnames(some)
		for _, name := range names {
			if err := do(name); err != nil {
				return err
			}
		}
		if err == io.EOF || err == nil && len(names) == 0 {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// device returns the number of the device of a directory; of a new directory, that of the
// nearest directory above on the host.
func (n *Node) device() uint64 {
	for n.origin == nil {
		n = n.parent
	}
	return rootedfs.StatOf(n.origin.info).Dev
}

// move gives a node another name, which is free.
func (tree *Tree) move(n, dir *Node, name string) {
	n.pin()
	dir.pin()
	tree.touch(n.parent)
	tree.touch(dir)
	delete(n.parent.children, n.name)
	dir.attach(name, n)
	tree.updateDisplaced(n)
}

// remove removes a node from the tree for good, and updates the times of its directory.
func (tree *Tree) remove(n *Node) {
	n.pin()
	tree.touch(n.parent)
	tree.unlink(n)
}

// unlink removes a pinned node from the tree for good. The times of its directory stay.
func (tree *Tree) unlink(n *Node) {
	delete(n.parent.children, n.name)
	n.gone, n.parent = true, nil
	tree.updateDisplaced(n)
	if n.opens == 0 && n.data != nil {
		n.data.free()
	}
	if n.origin == nil {
		tree.set.treeBytes -= n.cost
		tree.set.budget.memory.reserve(-n.cost)
	}
}

// updateDisplaced updates Tree.displaced, and Node.displaced of the directory on the host,
// after n was moved or removed.
func (tree *Tree) updateDisplaced(n *Node) {
	o := n.origin
	switch {
	case o == nil:
	case n.atOrigin():
		delete(tree.displaced, n)
		delete(o.dir.displaced, o.name)
	default:
		tree.displaced[n] = struct{}{}
		if o.dir.displaced == nil {
			o.dir.displaced = map[string]*Node{}
		}
		o.dir.displaced[o.name] = n
	}
}

// touch updates the times of a directory for a change of its entries.
func (tree *Tree) touch(dir *Node) {
	var live os.FileInfo
	if dir.times == nil {
		cur := tree.Cursor()
		defer cur.Close()
		live, _ = cur.StatOrigin(dir)
	}
	dir.touch(live)
}
