package stage

import (
	"errors"
	"io/fs"
	"os"

	"github.com/stockade-dev/stockade/host/beneath"
	"github.com/stockade-dev/stockade/host/tool"
)

// remode gives a file that stays where it is another mode.
func (c *commit) remode(tree *Tree, n *Node) error {
	if err := c.begin("change the mode of", tree.hostPath(n.Path())); err != nil {
		return err
	}
	h, err := c.dir(tree, n.parent)
	if err != nil {
		return err
	}
	return c.setMode(spot{h, n.name}, n)
}

// setMode gives what has a name the mode of a node and, if it took the place of
// another file, the owner of that.
func (c *commit) setMode(at spot, n *Node) error {
	file, err := at.dir.root.OpenFile(at.name, os.O_RDONLY|beneath.Nonblock, 0)
	if err != nil {
		return err
	}
	fi, err := file.Stat()
	if err == nil && !beneath.SameFile(fi, n.origin.info) {
		err = errAnother
	}
	if err != nil {
		return errors.Join(err, file.Close())
	}
	c.undo = append(c.undo, step{"give its mode back to " + at.String(), func() error {
		f, err := at.dir.root.OpenFile(at.name, os.O_RDONLY|beneath.Nonblock, 0)
		if err != nil {
			return err
		}
		now, err := f.Stat()
		switch {
		case err != nil:
		case !beneath.SameFile(fi, now):
			err = errAnother
		default:
			beneath.KeepOwner(f, fi)
			err = f.Chmod(fi.Mode().Perm())
		}
		return errors.Join(err, f.Close())
	}})
	if n.like != nil {
		beneath.KeepOwner(file, n.like)
	}
	return errors.Join(file.Chmod(n.mode.Perm()), file.Close())
}

// setFileTimes sets the times of what is not new and no directory.
func (c *commit) setFileTimes(tree *Tree) error {
	for _, ch := range c.all {
		n := ch.n
		if ch.tree != tree || n == nil || n.mode.IsDir() || !n.times.given() {
			continue
		}
		moved := n.origin != nil && !n.fresh()
		if !moved && !(ch.kind == tool.Times && ch.was != nil) {
			continue // new, and has its times
		}
		if n.fresh() && ch.kind == tool.Times && ch.n != ch.was {
			continue // replaced, and has its times
		}
		if err := c.begin("set the times of", tree.hostPath(n.Path())); err != nil {
			return err
		}
		h, err := c.dir(tree, n.parent)
		if err != nil {
			return err
		}
		if err := c.setTimes(spot{h, n.name}, n); err != nil {
			return err
		}
	}
	return nil
}

func (c *commit) setTimes(at spot, n *Node) error {
	fi, err := at.lstat()
	if err != nil {
		return err
	}
	set := func(atim, mtim int64) error {
		if fi.Mode().Type() == fs.ModeSymlink {
			return beneath.SetLinkTimes(at.dir.root, at.name, atim, mtim)
		}
		file, err := at.dir.root.OpenFile(at.name, beneath.AttrAccess|beneath.Nonblock, 0)
		if err != nil {
			return err
		}
		now, err := file.Stat()
		if err == nil && !beneath.SameFile(fi, now) {
			err = errAnother
		}
		if err == nil {
			err = beneath.SetTimes(file, atim, mtim)
		}
		return errors.Join(err, file.Close())
	}
	t, old := n.times, beneath.StatOf(fi)
	if err := set(t.explicit(t.setAtim, t.atim), t.explicit(t.setMtim, t.mtim)); err != nil {
		return err
	}
	c.undo = append(c.undo, step{"set back the times of " + at.String(), func() error { return set(old.Atim, old.Mtim) }})
	return nil
}
