package stage

import (
	"errors"
	"io/fs"
	"os"

	"github.com/stockade-dev/stockade/host/rootedfs"
)

// editAttributes opens the file at p, without following a link, and calls do, which may change
// its attributes. now is the state of the open file. The error is errNameReused if p is
// another file than m by now.
func (m identity) editAttributes(p location, flag int, do func(f *os.File, now os.FileInfo) error) error {
	file, err := p.dir.root.OpenFile(p.name, flag|rootedfs.Nonblock, 0)
	if errors.Is(err, fs.ErrPermission) { // its owner cannot read it, but may change its mode
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

func (c *commit) changeModeInPlace(tree *Tree, n *Node) error {
	at, err := c.beginAt("change the mode of", tree, n)
	if err != nil {
		return err
	}
	return c.setMode(at, n)
}

// setMode gives the file at a location the mode of its node n. If n took the place of another
// file, the file also gets the owner of the other file.
func (c *commit) setMode(at location, n *Node) error {
	return c.changeMode(at, identityOf(n.origin.info, false), n.mode, n.ownerFrom)
}

// changeMode sets the mode of the file id as a step that can be undone. Unless like is nil,
// the file also gets the owner of like.
func (c *commit) changeMode(at location, id identity, mode fs.FileMode, like os.FileInfo) error {
	return id.editAttributes(at, os.O_RDONLY, func(file *os.File, fi os.FileInfo) error {
		return c.do(&step{op: opMode, to: at, toIdentity: identityOf(fi, false), mode: fi.Mode()}, func() error {
			if like != nil {
				rootedfs.CopyOwner(file, like)
			}
			return rootedfs.Chmod(file, mode)
		})
	})
}

// chmod sets the mode of the file m at a location; errNameReused if it is another file by now.
func (m identity) chmod(at location, mode fs.FileMode) error {
	return m.editAttributes(at, os.O_RDONLY, func(file *os.File, _ os.FileInfo) error { return rootedfs.Chmod(file, mode) })
}

// setFileTimes sets the times that were set on files and links that keep their content. New
// files have their times already, and directories get them at the end.
func (c *commit) setFileTimes(tree *Tree) error {
	for _, ch := range c.all {
		n := ch.n
		if ch.tree != tree || n == nil || n.mode.IsDir() || !n.times.given() {
			continue
		}
		moved := n.origin != nil && !n.fresh()
		if !moved && !ch.onlyAttributes() {
			continue // it is new or replaced, and has its times
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

// setTimes gives the file at a location the times that were set on its node n, as a step that
// can be undone.
func (c *commit) setTimes(at location, n *Node) error {
	fi, err := at.lstat()
	if err != nil {
		return err
	}
	id, old := identityOf(fi, false), rootedfs.StatOf(fi)
	return c.do(&step{op: opTimes, to: at, toIdentity: id, atim: old.Atim, mtim: old.Mtim}, func() error {
		atim, mtim := n.times.explicit()
		return id.setTimes(at, atim, mtim)
	})
}

// setTimes sets the times of a file or link, in nanoseconds since 1970; [rootedfs.OmitTime]
// leaves a time unchanged. The error is errNameReused if a file that is no link is not m.
func (m identity) setTimes(at location, atim, mtim int64) error {
	if m.Mode.Type() == fs.ModeSymlink {
		return rootedfs.SetLinkTimes(at.dir.root, at.name, atim, mtim)
	}
	return m.editAttributes(at, rootedfs.AttrAccess, func(file *os.File, _ os.FileInfo) error {
		return rootedfs.SetTimes(file, atim, mtim)
	})
}
