package stage

import (
	"errors"
	"io/fs"
	"os"

	"github.com/stockade-dev/stockade/host/beneath"
	"github.com/stockade-dev/stockade/host/tool"
)

// edit opens what has a name and lets do change it, if it is what it was.
func (p spot) edit(was os.FileInfo, flag int, do func(f *os.File, now os.FileInfo) error) error {
	file, err := p.dir.root.OpenFile(p.name, flag|beneath.Nonblock, 0)
	if err != nil {
		return err
	}
	now, err := file.Stat()
	switch {
	case err != nil:
	case !beneath.SameFile(now, was):
		err = errAnother
	default:
		err = do(file, now)
	}
	return errors.Join(err, file.Close())
}

// remode gives a file that stays where it is another mode.
func (c *commit) remode(tree *Tree, n *Node) error {
	at, err := c.beginAt("change the mode of", tree, n)
	if err != nil {
		return err
	}
	return c.setMode(at, n)
}

// setMode gives what has a name the mode of a node and, if it took the place of
// another file, the owner of that.
func (c *commit) setMode(at spot, n *Node) error {
	return at.edit(n.origin.info, os.O_RDONLY, func(file *os.File, fi os.FileInfo) error {
		c.undo = append(c.undo, step{"give its mode back to " + at.String(), func() error {
			return at.edit(fi, os.O_RDONLY, func(file *os.File, _ os.FileInfo) error {
				beneath.KeepOwner(file, fi)
				return file.Chmod(fi.Mode().Perm())
			})
		}})
		if n.like != nil {
			beneath.KeepOwner(file, n.like)
		}
		return file.Chmod(n.mode.Perm())
	})
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
		at, err := c.beginAt("set the times of", tree, n)
		if err == nil {
			err = c.setTimes(at, n)
		}
		if err != nil {
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
		return at.edit(fi, beneath.AttrAccess, func(file *os.File, _ os.FileInfo) error {
			return beneath.SetTimes(file, atim, mtim)
		})
	}
	old := beneath.StatOf(fi)
	if err := set(n.times.explicit()); err != nil {
		return err
	}
	c.undo = append(c.undo, step{"set back the times of " + at.String(), func() error { return set(old.Atim, old.Mtim) }})
	return nil
}
