package stage

import (
	"crypto/rand"
	"errors"
	"os"

	"github.com/stockade-dev/stockade/host/beneath"
)

// tempName is what something is called before it has its place and after it
// has lost it. Names like it that nobody uses are what a crash leaves.
func tempName() string { return ".stockade-" + rand.Text() + ".tmp" }

// fresh reports whether a node comes on the host as something new, and not by
// moving what is there.
func (n *Node) fresh() bool { return n.origin == nil || n.data != nil }

// prepare writes everything that is new beside the place where it belongs.
func (c *commit) prepare() error {
	for _, ch := range c.all {
		if ch.n == nil || !ch.remade() || ch.n.parent.origin == nil {
			continue // what is in a new directory comes with that
		}
		h, err := c.dir(ch.tree, ch.n.parent)
		if err != nil {
			return err
		}
		if err := c.build(ch.tree, ch.n, spot{h, tempName()}); err != nil {
			return err
		}
	}
	return nil
}

// build makes a file, or a directory with all that is new in it.
func (c *commit) build(tree *Tree, n *Node, at spot) error {
	path := tree.hostPath(n.Path())
	if err := c.begin("prepare", path); err != nil {
		return err
	}
	if err := c.ctx.Err(); err != nil {
		return err
	}
	if !n.mode.IsDir() {
		if err := c.buildFile(tree, n, at); err != nil {
			return err
		}
		c.held[n] = at
		return nil
	}
	if err := at.dir.root.Mkdir(at.name, n.mode.Perm()); err != nil {
		return err
	}
	root, fi, err := beneath.OpenDir(at.dir.root, at.name)
	if err != nil {
		return errors.Join(err, at.dir.root.Remove(at.name))
	}
	c.makes(at, fi)
	c.held[n] = at
	h := &handle{tree: tree, root: root, path: at.String(), up: at, info: fi}
	later := n.times.given()
	for _, child := range n.children {
		later = later || !child.fresh()
	}
	if later {
		c.dirs[n] = h
	} else {
		defer h.close() // nothing more is done in it
	}
	for name, child := range n.children {
		if !child.fresh() {
			continue
		}
		if err := c.build(tree, child, spot{h, name}); err != nil {
			return err
		}
	}
	return h.sync()
}

// buildFile makes a file. Nobody else can read it before it has the mode of the
// one that it replaces, so it begins with none.
func (c *commit) buildFile(tree *Tree, n *Node, at spot) (err error) {
	file, err := at.dir.root.OpenFile(at.name, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	fi, err := file.Stat()
	if err != nil {
		return errors.Join(err, at.dir.root.Remove(at.name))
	}
	made := c.makes(at, fi)
	if err := c.copy(tree, n, file); err != nil {
		return err
	}
	like := n.like
	if like == nil && n.origin != nil {
		like = n.origin.info
	}
	if like != nil {
		beneath.KeepOwner(file, like)
	}
	if err := file.Chmod(n.mode.Perm()); err != nil {
		return err
	}
	if t := n.times; t.given() {
		atim, mtim := t.explicit()
		if err := beneath.SetTimes(file, atim, mtim); err != nil {
			return err
		}
	}
	if err := file.Sync(); err != nil {
		return err
	}
	if fi, err = file.Stat(); err == nil {
		*made = mark{fi, true}
	}
	return err
}
