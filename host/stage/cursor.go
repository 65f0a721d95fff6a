package stage

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"github.com/stockade-dev/stockade/host/rootedfs"
)

// Cursor looks up nodes of a tree. It keeps a directory of the host open, so that the next
// lookup there need not start at the top. One goroutine uses a cursor at a time.
type Cursor struct {
	tree   *Tree
	at     *Node // the current directory
	root   rootedfs.Root
	strict bool // refuses symbolic links on the way; false: follows one to the directory that the tree knows
}

// Cursor returns a cursor at the top of the tree. The caller must Close it.
func (tree *Tree) Cursor() *Cursor { return &Cursor{tree: tree, at: tree.top, root: tree.root} }

// Close closes the open directory. The cursor is at the top then, and may be used again.
func (c *Cursor) Close() { c.set(c.tree.top, c.tree.root) }

// set makes r, which is open on n, the current directory. It closes the directory that was
// current before, unless that is the top of the tree or r itself.
func (c *Cursor) set(n *Node, r rootedfs.Root) {
	if c.root != c.tree.root && c.root != r {
		_ = c.root.Close()
	}
	c.at, c.root = n, r
}

// moveTo makes the origin of dir, which must have one, the current directory. The error is
// EAGAIN if the host has another directory in its place or that of one on the way. It wraps
// [fs.ErrNotExist] if there is none.
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

// Child returns the node of a name in a directory, and the state of its origin, as
// [Cursor.StatOrigin] does. The error wraps [fs.ErrNotExist] if the name is free, and is EAGAIN
// if the host has another directory by now, or none.
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
		return nil, nil, errReplaced // the directory is gone, which is not the same as a free name
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
		return n, n.origin.info, nil // the host has another file there, which the commit will find
	case err != nil:
		return nil, nil, err
	}
	n = &Node{parent: dir, name: name, mode: fi.Mode(), origin: &origin{dir: dir, name: name, info: fi}, stale: known && n.wasRead()}
	if fi.IsDir() || known {
		dir.attach(name, n)
	}
	return n, fi, nil
}

// StatOrigin returns the present state of the origin of a node; nil if it has none. If the
// host has another file there, or none, the result is that of [Node.Origin].
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

// open opens the origin of a node for reading, without following a symbolic link, and returns
// its state. The error is EAGAIN if the host has another file there.
func (c *Cursor) open(n *Node) (*os.File, os.FileInfo, error) {
	file, fi, err := c.openAny(n)
	if err == nil && !rootedfs.SameFile(fi, n.origin.info) {
		_ = file.Close()
		return nil, nil, errReplaced
	}
	return file, fi, err
}

// openAny is open for whatever file the host has there.
func (c *Cursor) openAny(n *Node) (*os.File, os.FileInfo, error) {
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
	if err == nil {
		err = c.root.RefuseKernelFile(file, fi)
	}
	if err != nil {
		_ = file.Close()
		return nil, nil, err
	}
	return file, fi, nil
}

// Readlink returns the target of a symbolic link of the host. n must have an origin.
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

// list opens a directory of the host for the caller to list and close, and returns its state.
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
