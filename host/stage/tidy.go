package stage

import (
	"errors"
	"os"
	"slices"

	"github.com/stockade-dev/stockade/host/rootedfs"
)

type removal struct {
	location
	n *Node
}

// remove removes the file, or the directory with its removed entries. It returns an error if
// somebody has changed the file meanwhile, for example through an earlier open.
func (p removal) remove() error {
	fi, err := p.lstat()
	if err != nil {
		return err
	}
	if how := difference(fi, p.n.origin.info, false); how != "" {
		return errors.New("changed meanwhile: " + how)
	}
	if fi.IsDir() {
		if lacksOwnerRights(fi) {
			if err := identityOf(fi, false).chmod(p.location, ownerRights); err != nil {
				return err
			}
		}
		root, _, err := rootedfs.OpenDir(p.dir.root, p.name)
		if err != nil {
			return err
		}
		h := &handle{root: root, path: p.String()}
		defer h.close()
		for name, was := range p.n.displaced {
			if !goesWithParent(was) {
				continue
			}
			if err := (removal{location{h, name}, was}).remove(); err != nil {
				return err
			}
		}
	}
	return p.dir.root.Remove(p.name)
}

// tidy removes replaced and removed files, and sets the times and modes of directories, when
// everything is in its place. From here on nothing is put back: a [CommitError] reports Done.
func (c *commit) tidy() error {
	out := &CommitError{Op: "tidy up after", Path: "the commit", Done: true}
	note := func(what string, err error) {
		if err != nil {
			out.Err = errors.Join(out.Err, err)
			out.Left = append(out.Left, what)
		}
	}
	// A replaced file is removed only after the disk has the name of its successor.
	for n, h := range c.dirs {
		if !n.gone {
			note("the synchronization of "+h.path, h.sync())
		}
	}
	slices.SortStableFunc(c.removals, func(a, b removal) int { // entries of a removed directory first
		switch {
		case a.dir.node.gone == b.dir.node.gone:
			return 0
		case a.dir.node.gone:
			return -1
		}
		return 1
	})
	for _, p := range c.removals {
		_ = c.begin("tidy up", p.String())
		note(p.String(), p.remove())
	}
	for n, h := range c.dirs {
		if t := n.times; !n.gone && t.given() {
			note("the times of "+h.path, h.withFile(func(dir *os.File) error {
				atim, mtim := t.explicit()
				return rootedfs.SetTimes(dir, atim, mtim)
			}))
		}
	}
	for _, m := range c.finalModes {
		_ = c.begin("tidy up", m.path)
		note("the mode of "+m.path, m.identity().chmod(m.at, m.mode))
	}
	if out.Err != nil {
		return out
	}
	return nil
}
