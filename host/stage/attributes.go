package stage

import (
	"errors"
	"io/fs"
	"os"

	"github.com/stockade-dev/stockade/host/beneath"
)

// edit opens what has a name and lets do change its attributes, if it is still the
// same.
func (m mark) edit(p spot, flag int, do func(f *os.File, now os.FileInfo) error) error {
	file, err := p.dir.root.OpenFile(p.name, flag|beneath.Nonblock, 0)
	if errors.Is(err, fs.ErrPermission) { // not even by who may change its mode
		file, err = beneath.Handle(p.dir.root, p.name)
	}
	if err != nil {
		return err
	}
	now, err := file.Stat()
	switch {
	case err != nil:
	default:
		m.All = false
		if err = m.is(now); err == nil {
			err = do(file, now)
		}
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
	return c.changeMode(at, markOf(n.origin.info, false), n.mode, n.like)
}

func (c *commit) changeMode(at spot, is mark, mode fs.FileMode, like os.FileInfo) error {
	return is.edit(at, os.O_RDONLY, func(file *os.File, fi os.FileInfo) error {
		return c.do(&step{op: remoded, to: at, comes: markOf(fi, false), mode: fi.Mode()}, func() error {
			if like != nil {
				beneath.KeepOwner(file, like)
			}
			return beneath.Chmod(file, mode)
		})
	})
}

// chmod gives the same file or directory another mode.
func (m mark) chmod(at spot, mode fs.FileMode) error {
	return m.edit(at, os.O_RDONLY, func(file *os.File, _ os.FileInfo) error { return beneath.Chmod(file, mode) })
}

// setFileTimes sets the times of what is not new and no directory.
func (c *commit) setFileTimes(tree *Tree) error {
	for _, ch := range c.all {
		n := ch.n
		if ch.tree != tree || n == nil || n.mode.IsDir() || !n.times.given() {
			continue
		}
		moved := n.origin != nil && !n.fresh()
		if !moved && !ch.attributes() {
			continue // new or replaced, and has its times
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
	is, old := markOf(fi, false), beneath.StatOf(fi)
	return c.do(&step{op: retimed, to: at, comes: is, atim: old.Atim, mtim: old.Mtim}, func() error {
		atim, mtim := n.times.explicit()
		return is.setTimes(at, atim, mtim)
	})
}

func (m mark) setTimes(at spot, atim, mtim int64) error {
	if m.Mode.Type() == fs.ModeSymlink {
		return beneath.SetLinkTimes(at.dir.root, at.name, atim, mtim)
	}
	return m.edit(at, beneath.AttrAccess, func(file *os.File, _ os.FileInfo) error {
		return beneath.SetTimes(file, atim, mtim)
	})
}
