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

// Tree is a directory of the host with what is staged in it. It is used from
// one goroutine at a time.
type Tree struct {
	set        *Set
	host       string
	root       rootedfs.Root // of its own: it outlives that of the caller
	top        *Node
	layer      *Layer // of an overlay on it; nil if it is changed by way of the tree
	lastSerial uint64
	displaced  map[*Node]struct{} // what the host has and was moved or removed
}

// Add makes a directory of the host one whose changes are staged. root is open
// on it and stays the caller's, host is its absolute name, and info is what it
// is. Each is added once.
func (s *Set) Add(root rootedfs.Root, host string, info os.FileInfo) (*Tree, error) {
	if s.Ended() {
		return nil, errors.New("stage: it has ended")
	}
	for _, tree := range s.trees {
		// Each would show the changes of the other too late.
		if rootedfs.SameFile(tree.top.origin.info, info) {
			return nil, fmt.Errorf("stage: %s and %s are one directory", host, tree.host)
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

// Top is the directory itself.
func (tree *Tree) Top() *Node { return tree.top }

// hostPath is a name in the tree as the host has it.
func (tree *Tree) hostPath(rel string) string {
	return filepath.Join(tree.host, filepath.FromSlash(rel))
}

// Create makes a file or, if the mode says so, a directory where there is
// nothing. As from [os.OpenFile], the umask is taken from the mode.
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

// Rename gives n another name, and replaces what has that, which is over; nil
// if nothing has. A directory replaces an empty directory only, and a file no
// directory. A regular file that replaces another has the mode and the owner of
// that until it leaves the place.
func (tree *Tree) Rename(n, dir *Node, name string, over *Node) error {
	if over != nil && over.mode.IsDir() {
		if err := tree.checkEmpty(over); err != nil {
			return err
		}
	}
	replaces := over != nil && over.mode.IsRegular() && n.mode.IsRegular()
	if replaces {
		if err := tree.refuseHardLinks(n); err != nil {
			return err
		}
	}
	switch {
	case dir.within(n):
		return syscall.EINVAL
	case over != nil && over.stale || over == nil && dir.vanished(name):
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
		if n.mode.Perm() != over.mode.Perm() {
			n.modeSet = true
		}
		n.mode = over.mode.Perm()
		n.ownerFrom = over.ownerFrom
		if n.ownerFrom == nil && over.origin != nil {
			n.ownerFrom = over.origin.info
		}
		n.modeSet = n.modeSet || n.ownerFrom != nil
	}
	if over != nil {
		if err := tree.rememberContent(over); err != nil {
			return err
		}
		tree.remove(over)
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

// SetTimes sets the times of anything but a file that has several hard links;
// [rootedfs.OmitTime] leaves one as it is. live is what the host says about the
// origin now.
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

// OpenDir opens what the host has of a directory, to be listed, and says what it
// is. Both are nil if the host does not have it. What is in the directory is
// what is listed there as far as [Node.Shows] it, and [Node.Added].
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

// OpenRoot opens what the host has of a directory, to look up names in it.
func (tree *Tree) OpenRoot(n *Node) (rootedfs.Root, error) {
	cur := tree.Cursor()
	defer cur.Close()
	if err := cur.moveTo(n); err != nil {
		return nil, err
	}
	return cur.root.OpenRoot(".")
}

// open is [Cursor.open] for one node.
func (tree *Tree) open(n *Node) (*os.File, os.FileInfo, error) {
	cur := tree.Cursor()
	defer cur.Close()
	return cur.open(n)
}

// refuseHardLinks refuses a file that has several hard links.
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

// rememberContent remembers the content of a file that was read and is about to be lost.
func (tree *Tree) rememberContent(n *Node) error {
	if !n.openedToRead || n.origin == nil || n.data != nil || n.oldDigest != nil {
		return nil
	}
	file, fi, err := tree.open(n)
	if err != nil {
		return nil // the commit will find that it is not what it was
	}
	n.oldDigest, err = n.digest(file, fi)
	return errors.Join(err, file.Close())
}

// checkEmpty is ENOTEMPTY if a directory has something in it.
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
	for {
		names, err := dir.Readdirnames(64)
		for _, name := range names {
			if n.displaced[name] == nil {
				return syscall.ENOTEMPTY
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

// device is the device that a directory is on, or would be.
func (n *Node) device() uint64 {
	for n.origin == nil {
		n = n.parent
	}
	return rootedfs.StatOf(n.origin.info).Dev
}

// move puts a node under another name, where there is nothing.
func (tree *Tree) move(n, dir *Node, name string) {
	n.pin()
	dir.pin()
	tree.touch(n.parent)
	tree.touch(dir)
	delete(n.parent.children, n.name)
	dir.attach(name, n)
	tree.updateDisplaced(n)
}

// remove takes a node away for good.
func (tree *Tree) remove(n *Node) {
	n.pin()
	tree.touch(n.parent)
	tree.unlink(n)
}

// unlink takes a node that is held out of its directory for good.
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

// updateDisplaced notes whether a node is where the host has it.
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

// touch is what a change of its entries does to a directory.
func (tree *Tree) touch(dir *Node) {
	var live os.FileInfo
	if dir.times == nil {
		cur := tree.Cursor()
		defer cur.Close()
		live, _ = cur.StatOrigin(dir)
	}
	dir.touch(live)
}
