package stage

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"

	"github.com/stockade-dev/stockade/host/rootedfs"
)

// tempName returns a new temporary name. A file has such a name before it gets its place and
// after it has lost its place. A crash can leave files with such names.
func tempName() string { return tempPrefix + rand.Text() + ".tmp" }

const tempPrefix = ".stockade-"

// fresh reports whether a node was made in the tree, or a guest or an overlay has written it.
func (n *Node) fresh() bool { return n.origin == nil || n.data != nil || n.upper != nil }

// prepare makes everything new under a temporary name, in the directory where it belongs. A
// new directory gets its new entries at once. Files of a layer from which files can be renamed
// to the host stay in the layer until apply renames them.
func (c *commit) prepare() error {
	for _, ch := range c.all {
		if ch.n == nil || !ch.isNewOnHost() || ch.n.parent.origin == nil {
			continue // a new directory is built with its entries
		}
		h, err := c.dir(ch.tree, ch.n.parent)
		if err != nil {
			return err
		}
		if l := ch.tree.layer; l != nil && l.canRename {
			err = c.prepareInLayer(ch.tree, ch.n)
		} else {
			at := location{h, tempName()}
			if err = c.journal.note(&step{op: opMake, to: at}); err == nil {
				err = c.build(ch.tree, ch.n, at)
			}
		}
		if err != nil {
			return err
		}
	}
	for _, tree := range c.s.trees {
		if l := tree.layer; l != nil && l.canRename && len(c.sources) > 0 && len(c.all) > maxFsync {
			if err := l.sync(); err != nil {
				return err
			}
		}
	}
	return nil
}

// maxFsync limits the number of changes up to which each file of a layer is synchronized by
// itself. With more, one synchronization of the layer's file system replaces that. Files that
// build makes are always synchronized one by one.
const maxFsync = 64

// prepareInLayer makes a node of a layer ready to be renamed to the host, with its entries.
func (c *commit) prepareInLayer(tree *Tree, n *Node) error {
	if err := c.begin("prepare", tree.hostPath(n.Path())); err != nil {
		return err
	}
	l := tree.layer
	if err := l.open(); err != nil {
		return err
	}
	c.sources[n] = location{l.upper, n.upper.rel}
	if len(c.all) <= maxFsync {
		if err := fsyncBelow(n); err != nil { // while it has rights to open them
			return err
		}
	}
	if err := setRealModes(n, true); err != nil {
		return err
	}
	return n.upper.prepareForRename(len(c.all) <= maxFsync)
}

// fsyncBelow waits until the disk has all files of a layer below a new directory.
func fsyncBelow(dir *Node) error {
	for _, n := range dir.children {
		if n.upper != nil {
			if err := n.upper.prepareForRename(true); err != nil {
				return err
			}
		}
		if err := fsyncBelow(n); err != nil {
			return err
		}
	}
	return nil
}

// setRealModes gives the nodes below a new directory of a layer their real modes, if
// [collector.grantAccess] has added rights. If real is false, it adds these rights again.
func setRealModes(dir *Node, real bool) error {
	for _, n := range dir.children {
		u, mode, need := n.upper, n.mode.Perm(), fs.FileMode(0o400)
		if n.mode.IsDir() {
			need = ownerRights
		}
		if u != nil && u.tempMode && !real {
			if err := os.Chmod(u.path(), mode|need); err != nil {
				return err
			}
		}
		if err := setRealModes(n, real); err != nil {
			return err
		}
		if u != nil && u.tempMode && real {
			if err := os.Chmod(u.path(), mode); err != nil {
				return err
			}
		}
	}
	return nil
}

// build makes the file, link or directory of a node at a location, with all new entries.
func (c *commit) build(tree *Tree, n *Node, at location) error {
	path := tree.hostPath(n.Path())
	if err := c.begin("prepare", path); err != nil {
		return err
	}
	if err := c.ctx.Err(); err != nil {
		return err
	}
	if n.mode.Type() == fs.ModeSymlink {
		if err := c.buildLink(n, at); err != nil {
			return err
		}
		c.sources[n] = at
		return nil
	}
	if !n.mode.IsDir() {
		if err := c.buildFile(tree, n, at); err != nil {
			return err
		}
		c.sources[n] = at
		return nil
	}
	mode := n.mode.Perm()
	if n.upper != nil || n.modeSet {
		mode = ownerRights // its own mode follows when it is full, whatever the umask is
	}
	if err := at.dir.root.Mkdir(at.name, mode); err != nil {
		return err
	}
	root, fi, err := rootedfs.OpenDir(at.dir.root, at.name)
	if err != nil {
		return errors.Join(err, at.dir.root.Remove(at.name))
	}
	c.recordMade(at, fi)
	c.sources[n], c.movedTo[n] = at, at
	h := &handle{c: c, node: n, tree: tree, root: root, path: at.String(), up: at, info: fi}
	keepOpen := n.times.given()
	for _, child := range n.children {
		keepOpen = keepOpen || !child.fresh()
	}
	if keepOpen {
		c.dirs[n] = h
	} else {
		defer h.close() // nothing more happens in it
	}
	for name, child := range n.children {
		if !child.fresh() {
			continue
		}
		if err := c.build(tree, child, location{h, name}); err != nil {
			return err
		}
	}
	if err := h.sync(); err != nil || n.upper == nil && !n.modeSet {
		return err
	}
	mode = n.mode.Perm()
	if n.upper != nil && n.upper.tempMode && n.parent.origin != nil {
		mode |= ownerRights // until it is in its place, see finishMode
	}
	return h.withFile(func(dir *os.File) error { return rootedfs.Chmod(dir, mode) })
}

func (c *commit) buildLink(n *Node, at location) error {
	if err := at.dir.root.Symlink(n.upper.target, at.name); err != nil {
		return err
	}
	if err := rootedfs.SetLinkTimes(at.dir.root, at.name, n.upper.times.atim, n.upper.times.mtim); err != nil {
		return errors.Join(err, at.dir.root.Remove(at.name))
	}
	fi, err := at.lstat()
	if err == nil {
		c.recordMade(at, fi)
	}
	return err
}

// buildFile makes the file of a node at a location. It begins with mode 0600: nobody else may
// read the content before the file has its real mode.
func (c *commit) buildFile(tree *Tree, n *Node, at location) (err error) {
	file, err := at.dir.root.OpenFile(at.name, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	fi, err := file.Stat()
	if err != nil {
		return errors.Join(err, at.dir.root.Remove(at.name))
	}
	made := c.recordMade(at, fi)
	if err := c.copy(tree, n, file); err != nil {
		return err
	}
	like := n.ownerFrom
	if like == nil && n.origin != nil && n.upper == nil {
		like = n.origin.info
	}
	if like != nil {
		rootedfs.CopyOwner(file, like)
	}
	switch {
	case n.upper != nil:
		copyAttributes(file, n.upper.path())
	case n.origin != nil:
		copyAttributes(file, tree.hostPath(n.origin.path()))
	}
	if err := file.Chmod(n.mode.Perm()); err != nil {
		return err
	}
	t := n.times
	if n.upper != nil {
		t = &n.upper.times
	}
	if t.given() {
		atim, mtim := t.explicit()
		if err := rootedfs.SetTimes(file, atim, mtim); err != nil {
			return err
		}
	}
	if err := file.Sync(); err != nil {
		return err
	}
	if fi, err = file.Stat(); err == nil {
		*made = identityOf(fi, true)
	}
	return err
}
