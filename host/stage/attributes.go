package stage

import (
	"errors"
	"io/fs"
	"os"

	"github.com/stockade-dev/stockade/host/rootedfs"
)

// editAttributes opens what has a name and lets do change its attributes, if it is still the
// same.
func (m identity) editAttributes(p location, flag int, do func(f *os.File, now os.FileInfo) error) error {
	file, err := p.dir.root.OpenFile(p.name, flag|rootedfs.Nonblock, 0)
	if errors.Is(err, fs.ErrPermission) { // not even by who may change its mode
		file, err = rootedfs.OpenForAttrs(p.dir.root, p.name)
	}
	if err != nil {
		return err
	}
	now, err := file.Stat()
	switch {
	case err != nil:
	default:
		m.All = false
		if err = m.check(now); err == nil {
			err = do(file, now)
		}
	}
	return errors.Join(err, file.Close())
}

// changeModeInPlace gives a file that stays where it is another mode.
func (c *commit) changeModeInPlace(tree *Tree, n *Node) error {
	at, err := c.beginAt("change the mode of", tree, n)
	if err != nil {
		return err
	}
	return c.setMode(at, n)
}

// setMode gives what has a name the mode of a node and, if it took the place of
// another file, the owner of that.
func (c *commit) setMode(at location, n *Node) error {
	return c.changeMode(at, identityOf(n.origin.info, false), n.mode, n.ownerFrom)
}

func (c *commit) changeMode(at location, is identity, mode fs.FileMode, like os.FileInfo) error {
	return is.editAttributes(at, os.O_RDONLY, func(file *os.File, fi os.FileInfo) error {
		return c.do(&step{op: opMode, to: at, toIdentity: identityOf(fi, false), mode: fi.Mode()}, func() error {
			if like != nil {
				rootedfs.CopyOwner(file, like)
			}
			return rootedfs.Chmod(file, mode)
		})
	})
}

// chmod gives the same file or directory another mode.
func (m identity) chmod(at location, mode fs.FileMode) error {
	return m.editAttributes(at, os.O_RDONLY, func(file *os.File, _ os.FileInfo) error { return rootedfs.Chmod(file, mode) })
}

// setFileTimes sets the times of what is not new and no directory.
func (c *commit) setFileTimes(tree *Tree) error {
	for _, ch := range c.all {
		n := ch.n
		if ch.tree != tree || n == nil || n.mode.IsDir() || !n.times.given() {
			continue
		}
		moved := n.origin != nil && !n.fresh()
		if !moved && !ch.onlyAttributes() {
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

func (c *commit) setTimes(at location, n *Node) error {
	fi, err := at.lstat()
	if err != nil {
		return err
	}
	is, old := identityOf(fi, false), rootedfs.StatOf(fi)
	return c.do(&step{op: opTimes, to: at, toIdentity: is, atim: old.Atim, mtim: old.Mtim}, func() error {
		atim, mtim := n.times.explicit()
		return is.setTimes(at, atim, mtim)
	})
}

func (m identity) setTimes(at location, atim, mtim int64) error {
	if m.Mode.Type() == fs.ModeSymlink {
		return rootedfs.SetLinkTimes(at.dir.root, at.name, atim, mtim)
	}
	return m.editAttributes(at, rootedfs.AttrAccess, func(file *os.File, _ os.FileInfo) error {
		return rootedfs.SetTimes(file, atim, mtim)
	})
}
