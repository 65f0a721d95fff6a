package wasi

import (
	"os"

	"github.com/stockade-dev/stockade/host/beneath"
)

// cursor is a directory of the host that is open, so that the next one need
// not be looked for from the top.
type cursor struct {
	l    *layer
	at   *node
	root beneath.Root
	// strict follows no symbolic link even to where the node was found.
	strict bool
}

func (l *layer) cursor() *cursor { return &cursor{l: l, at: l.top, root: l.root} }

func (c *cursor) close() { c.set(c.l.top, c.l.root) }

func (c *cursor) set(n *node, r beneath.Root) {
	if c.root != c.l.root && c.root != r {
		_ = c.root.Close()
	}
	c.at, c.root = n, r
}

// to opens the directory of the host that a node was made from. Each one on the
// way must be what it was.
func (c *cursor) to(dir *node) Errno {
	switch {
	case c.at == dir:
		return 0
	case dir == c.l.top:
		c.close()
		return 0
	}
	if errno := c.to(dir.origin.dir); errno != 0 {
		return errno
	}
	root, fi, err := beneath.OpenDir(c.root, dir.origin.name)
	if err != nil {
		return errnoOf(err)
	}
	same := beneath.SameFile(fi, dir.origin.info)
	if same && c.strict {
		link, err := c.root.Lstat(dir.origin.name)
		same = err == nil && link.IsDir()
	}
	if !same {
		_ = root.Close()
		return errReplaced
	}
	c.set(dir, root)
	return 0
}

// child finds a name in a directory, and what the host says about it now.
func (c *cursor) child(dir *node, name string) (*node, os.FileInfo, Errno) {
	n, known := dir.children[name]
	if !known && (dir.origin == nil || dir.away[name] != nil) {
		return nil, nil, ENOENT
	}
	if known && n.origin == nil {
		return n, nil, 0
	}
	if known && !n.home() {
		fi, errno := c.look(n)
		return n, fi, errno
	}
	switch errno := c.to(dir); errno {
	case 0:
	case ENOENT:
		return nil, nil, errReplaced // the directory is gone, and not the name in it
	default:
		return nil, nil, errno
	}
	fi, err := c.root.Lstat(name)
	switch {
	case err == nil && known && beneath.SameFile(fi, n.origin.info):
		if !n.keep {
			n.origin.info, n.mode = fi, fi.Mode()
		}
		return n, fi, 0
	case known && (n.dirty() || n.keep && n.mode.IsDir() || n.opens > 0 && n.write):
		return n, n.origin.info, 0 // the host has something else there, and the commit will tell
	case err != nil:
		return nil, nil, errnoOf(err)
	}
	n = &node{parent: dir, name: name, mode: fi.Mode(), origin: &origin{dir: dir, name: name, info: fi}, stale: known && n.lost()}
	if fi.IsDir() || known {
		dir.attach(name, n)
	}
	return n, fi, 0
}

// look asks the host about the origin of a node.
func (c *cursor) look(n *node) (os.FileInfo, Errno) {
	switch {
	case n.origin == nil:
		return nil, 0
	case n == c.l.top:
		fi, err := c.l.root.Stat(".")
		return fi, errnoOf(err)
	}
	if errno := c.to(n.origin.dir); errno != 0 {
		return nil, errno
	}
	fi, err := c.root.Lstat(n.origin.name)
	if err != nil || !beneath.SameFile(fi, n.origin.info) {
		return n.origin.info, 0
	}
	return fi, 0
}

// open opens what the host has for a node, without following a link, and says
// what it is.
func (c *cursor) open(n *node, access int) (*os.File, os.FileInfo, Errno) {
	dir, name := n.origin.dir, n.origin.name
	if dir == nil {
		dir = c.l.top
	}
	if errno := c.to(dir); errno != 0 {
		return nil, nil, errno
	}
	file, err := c.root.OpenFile(name, access|beneath.Nonblock, 0)
	if err != nil {
		return nil, nil, errnoOf(err)
	}
	fi, err := file.Stat()
	switch {
	case err != nil:
		_ = file.Close()
		return nil, nil, errnoOf(err)
	case !beneath.SameFile(fi, n.origin.info):
		_ = file.Close()
		return nil, nil, errReplaced
	}
	if err := c.root.AdmitFile(file, fi); err != nil {
		_ = file.Close()
		return nil, nil, errnoOf(err)
	}
	return file, fi, 0
}

// readlink reads a symbolic link, which is always the host's.
func (c *cursor) readlink(n *node) (string, Errno) {
	if errno := c.to(n.origin.dir); errno != 0 {
		return "", errno
	}
	fi, err := c.root.Lstat(n.origin.name)
	if err == nil && !beneath.SameFile(fi, n.origin.info) {
		return "", errReplaced
	}
	if err != nil {
		return "", errnoOf(err)
	}
	target, err := c.root.Readlink(n.origin.name)
	return target, errnoOf(err)
}

// list opens a directory of the host to be listed.
func (c *cursor) list(n *node) (*os.File, os.FileInfo, Errno) {
	if errno := c.to(n); errno != 0 {
		return nil, nil, errno
	}
	dir, err := c.root.Open(".")
	if err != nil {
		return nil, nil, errnoOf(err)
	}
	fi, err := dir.Stat()
	if err != nil {
		_ = dir.Close()
		return nil, nil, errnoOf(err)
	}
	return dir, fi, 0
}
