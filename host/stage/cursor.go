package stage

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"github.com/stockade-dev/stockade/host/rootedfs"
)

// Cursor looks up what is in a tree. It has a directory of the host open, so
// that the next one need not be looked for from the top.
type Cursor struct {
	tree *Tree
	at   *Node
	root rootedfs.Root
	// strict follows no symbolic link even to where the node was found.
	strict bool
}

// Cursor returns a cursor. The caller must Close it.
func (tree *Tree) Cursor() *Cursor { return &Cursor{tree: tree, at: tree.top, root: tree.root} }

// Close closes what is open.
func (c *Cursor) Close() { c.set(c.tree.top, c.tree.root) }

func (c *Cursor) set(n *Node, r rootedfs.Root) {
	if c.root != c.tree.root && c.root != r {
		_ = c.root.Close()
	}
	c.at, c.root = n, r
}

// moveTo opens the directory of the host that a node was made from. Each one on the
// way must be what it was.
func (c *Cursor) moveTo(dir *Node) error {
	switch {
	case c.at == dir:
		return nil
	case dir == c.tree.top:
		c.Close()
		return nil
	}
	if err := c.moveTo(dir.origin.dir); err != nil {
		return err
	}
	root, fi, err := rootedfs.OpenDir(c.root, dir.origin.name)
	if err != nil {
		return err
	}
	same := rootedfs.SameFile(fi, dir.origin.info)
	if same && c.strict {
		link, err := c.root.Lstat(dir.origin.name)
		same = err == nil && link.IsDir()
	}
	if !same {
		_ = root.Close()
		return errReplaced
	}
	c.set(dir, root)
	return nil
}

// Child returns what has a name in a directory, and what the host says about its
// origin now. Nothing is [fs.ErrNotExist].
func (c *Cursor) Child(dir *Node, name string) (*Node, os.FileInfo, error) {
	n, known := dir.children[name]
	if !known && (dir.origin == nil || dir.displaced[name] != nil) {
		return nil, nil, syscall.ENOENT
	}
	if known && n.origin == nil {
		return n, nil, nil
	}
	if known && !n.atOrigin() {
		fi, err := c.StatOrigin(n)
		return n, fi, err
	}
	switch err := c.moveTo(dir); {
	case err == nil:
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil, errReplaced // the directory is gone, and not the name in it
	default:
		return nil, nil, err
	}
	fi, err := c.root.Lstat(name)
	switch {
	case err == nil && known && rootedfs.SameFile(fi, n.origin.info):
		if !n.pinned {
			n.origin.info, n.mode = fi, fi.Mode()
		}
		return n, fi, nil
	case known && (n.dirty() || n.pinned && n.mode.IsDir() || n.opens > 0 && n.openedToWrite):
		return n, n.origin.info, nil // the host has something else there, and the commit will tell
	case err != nil:
		return nil, nil, err
	}
	n = &Node{parent: dir, name: name, mode: fi.Mode(), origin: &origin{dir: dir, name: name, info: fi}, stale: known && n.wasRead()}
	if fi.IsDir() || known {
		dir.attach(name, n)
	}
	return n, fi, nil
}

// StatOrigin asks the host about the origin of a node.
func (c *Cursor) StatOrigin(n *Node) (os.FileInfo, error) {
	switch {
	case n.origin == nil:
		return nil, nil
	case n == c.tree.top:
		return c.tree.root.Stat(".")
	}
	if err := c.moveTo(n.origin.dir); err != nil {
		return nil, err
	}
	fi, err := c.root.Lstat(n.origin.name)
	if err != nil || !rootedfs.SameFile(fi, n.origin.info) {
		return n.origin.info, nil
	}
	return fi, nil
}

// open opens what the host has for a node, without following a link, and says
// what it is.
func (c *Cursor) open(n *Node) (*os.File, os.FileInfo, error) {
	dir, name := n.origin.dir, n.origin.name
	if dir == nil {
		dir = c.tree.top
	}
	if err := c.moveTo(dir); err != nil {
		return nil, nil, err
	}
	file, err := c.root.OpenFile(name, os.O_RDONLY|rootedfs.Nonblock, 0)
	if err != nil {
		return nil, nil, err
	}
	fi, err := file.Stat()
	if err == nil && !rootedfs.SameFile(fi, n.origin.info) {
		err = errReplaced
	}
	if err == nil {
		err = c.root.RefuseKernelFile(file, fi)
	}
	if err != nil {
		_ = file.Close()
		return nil, nil, err
	}
	return file, fi, nil
}

// Readlink reads a symbolic link, which is always the host's.
func (c *Cursor) Readlink(n *Node) (string, error) {
	if err := c.moveTo(n.origin.dir); err != nil {
		return "", err
	}
	fi, err := c.root.Lstat(n.origin.name)
	if err == nil && !rootedfs.SameFile(fi, n.origin.info) {
		return "", errReplaced
	}
	if err != nil {
		return "", err
	}
	return c.root.Readlink(n.origin.name)
}

// list opens a directory of the host to be listed.
func (c *Cursor) list(n *Node) (*os.File, os.FileInfo, error) {
	if err := c.moveTo(n); err != nil {
		return nil, nil, err
	}
	dir, err := c.root.Open(".")
	if err != nil {
		return nil, nil, err
	}
	fi, err := dir.Stat()
	if err != nil {
		_ = dir.Close()
		return nil, nil, err
	}
	return dir, fi, nil
}
