package stage

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"github.com/stockade-dev/stockade/host/rootedfs"
)

// handle is an open directory of the host or of a layer. It follows the directory when it is
// moved. It has only one descriptor, because a commit keeps most directories open.
type handle struct {
	c    *commit
	node *Node // nil for a directory of a layer, and where root and path are enough
	tree *Tree
	root rootedfs.Root // nil after close
	path string        // path on the host when it was opened
	// For a directory that the commit has made: its location and state then.
	up   location
	info os.FileInfo
}

// location is a name in an open directory.
type location struct {
	dir  *handle
	name string
}

func (p location) String() string { return p.dir.path + string(os.PathSeparator) + p.name }

func (p location) lstat() (os.FileInfo, error) {
	return p.dir.root.Lstat(p.name)
}

// currentPath returns the present path of the directory on the host.
func (h *handle) currentPath() string {
	if h.node == nil {
		return h.path
	}
	return h.c.currentPath(h.tree, h.node)
}

// currentPath returns the present path of a directory of the host, or of one that was made.
func (c *commit) currentPath(tree *Tree, n *Node) string {
	if at, ok := c.movedTo[n]; ok {
		return filepath.Join(at.dir.currentPath(), at.name)
	}
	if n.origin.dir == nil {
		return tree.host
	}
	return filepath.Join(c.currentPath(tree, n.origin.dir), n.origin.name)
}

func (h *handle) close() {
	if h.root != nil {
		_ = h.root.Close()
		h.root = nil
	}
}

// reopen opens a directory again if the commit has made and closed it. done closes it then.
func (h *handle) reopen() (_ rootedfs.Root, done func(), _ error) {
	if h.root != nil {
		return h.root, func() {}, nil
	}
	up, done, err := h.up.dir.reopen()
	if err != nil {
		return nil, nil, err
	}
	defer done()
	if h.node.upper != nil || h.node.modeSet {
		// Its mode may forbid to remove entries.
		if err := identityOf(h.info, false).chmod(location{&handle{root: up}, h.up.name}, ownerRights); err != nil {
			return nil, nil, err
		}
	}
	r, fi, err := rootedfs.OpenDir(up, h.up.name)
	if err != nil {
		return nil, nil, err
	}
	if !rootedfs.SameFile(fi, h.info) {
		return nil, nil, errors.Join(errNameReused, r.Close())
	}
	return r, func() { _ = r.Close() }, nil
}

// sync waits until the disk has the names in the directory, if the host can do that.
func (h *handle) sync() error {
	if runtime.GOOS == "windows" {
		return nil // Windows cannot synchronize a directory
	}
	err := h.withFile((*os.File).Sync)
	if errors.Is(err, fs.ErrPermission) {
		return nil // a directory that may not be listed cannot be opened for it
	}
	return err
}

// withFile calls do with the directory as an open file.
func (h *handle) withFile(do func(*os.File) error) error {
	file, err := h.root.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(do(file), file.Close())
}

// dir returns a handle of a directory, open until the commit ends. A new directory must be
// prepared. For one of the host, the error wraps [policy.ErrChanged] if it is not at the place
// where the call has found it.
func (c *commit) dir(tree *Tree, n *Node) (*handle, error) {
	if h := c.dirs[n]; h != nil {
		return h, nil
	}
	if n.origin == nil {
		return nil, &CommitError{Op: "open", Path: tree.hostPath(n.Path()), Err: errors.New("directory was not prepared")}
	}
	path := tree.hostPath(n.origin.path())
	cur := tree.Cursor()
	cur.strict = true
	defer cur.Close()
	if err := cur.moveTo(n); err != nil {
		return nil, c.changedError(path, reason(err))
	}
	root, err := cur.root.OpenRoot(".")
	if err != nil {
		return nil, err
	}
	h := &handle{c: c, node: n, tree: tree, root: root, path: path}
	c.dirs[n] = h
	return h, nil
}
