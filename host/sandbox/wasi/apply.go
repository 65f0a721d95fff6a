package wasi

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/stockade-dev/stockade/host/tool"
)

// apply exchanges names. First everything that leaves its place is moved aside
// in its own directory; then, from the top down, everything gets its new
// place. A directory then never moves below itself, whatever the guest has
// exchanged, because all directories above the new place are there already.
func (c *commit) apply() error {
	if err := c.ctx.Err(); err != nil {
		return err
	}
	swaps := map[*node]bool{} // what leaves in exchange for what comes
	for _, l := range c.s.layers {
		for _, ch := range c.placed(l) {
			if was := c.occupant(ch.n); was != nil && c.leaves(was) && !was.mode.IsDir() && !ch.n.mode.IsDir() {
				swaps[was] = true
			}
		}
		for _, ch := range c.all {
			// What was replaced by the same is not in the list, and stays.
			if ch.l != l || ch.was == nil || ch.was.home() || swaps[ch.was] {
				continue
			}
			if err := c.park(l, ch.was); err != nil {
				return err
			}
		}
	}
	for _, l := range c.s.layers {
		for _, ch := range c.placed(l) {
			was := c.occupant(ch.n)
			if !swaps[was] {
				was = nil
			}
			if err := c.place(l, ch.n, was); err != nil {
				return err
			}
		}
		for _, ch := range c.all {
			if ch.l == l && ch.n != nil && ch.n.chmod && ch.n.home() && !ch.n.fresh() {
				if err := c.remode(l, ch.n); err != nil {
					return err
				}
			}
		}
		if err := c.setFileTimes(l); err != nil {
			return err
		}
	}
	return nil
}

// placed is what gets a place, from the top down: not what is in a new
// directory, unless it is moved there.
func (c *commit) placed(l *layer) []change {
	var out []change
	for _, ch := range c.all {
		if ch.l != l || ch.n == nil || ch.n == l.top {
			continue
		}
		inNew := ch.n.parent.origin == nil && ch.n.fresh()
		stays := ch.n.home() && !ch.n.fresh()
		if !inNew && !stays && !(ch.kind == tool.Times && ch.n == ch.was) {
			out = append(out, ch)
		}
	}
	slices.SortFunc(out, func(a, b change) int {
		return cmp.Or(a.depth-b.depth, strings.Compare(a.path, b.path))
	})
	return out
}

// occupant is what the host has in the place of a node, or nil.
func (c *commit) occupant(n *node) *node {
	if n.home() {
		return n
	}
	return n.parent.away[n.name]
}

// leaves reports whether what the host has of a node is to be removed.
func (c *commit) leaves(n *node) bool { return n.gone || n.fresh() }

// park moves what the host has of a node aside.
func (c *commit) park(l *layer, n *node) error {
	path := l.hostPath(n.origin.path())
	if err := c.begin("move aside", path); err != nil {
		return err
	}
	h, err := c.dir(l, n.origin.dir)
	if err != nil {
		return err
	}
	from, to := spot{h, n.origin.name}, spot{h, tempName()}
	if err := c.rename(from, to); err != nil {
		return err
	}
	if err := c.still(to, n, path); err != nil {
		return err
	}
	if c.leaves(n) {
		c.gone = append(c.gone, to)
	} else {
		c.held[n] = to
	}
	return nil
}

// still checks what was moved, after the fact: the name may have been given to
// something else since it was looked at.
func (c *commit) still(at spot, n *node, path string) error {
	fi, err := at.dir.root.Lstat(at.name)
	if err != nil {
		return err
	}
	if how := differs(fi, n.origin.info, !c.leaves(n)); how != "" {
		return c.changed(path, how)
	}
	return nil
}

// rename gives something another name that nothing has, and can put it back.
func (c *commit) rename(from, to spot) error {
	if err := renameNew(from, to); err != nil {
		return err
	}
	c.undo = append(c.undo, step{fmt.Sprintf("rename %s to %s", to, from), func() error { return renameNew(to, from) }})
	return nil
}

// place puts a node where the guest has it. was is what it replaces.
func (c *commit) place(l *layer, n, was *node) error {
	path := l.hostPath(n.path())
	if err := c.begin("put in place", path); err != nil {
		return err
	}
	h, err := c.dir(l, n.parent)
	if err != nil {
		return err
	}
	from, ok := c.held[n]
	if !ok {
		return fmt.Errorf("%s was not prepared", path)
	}
	to := spot{h, n.name}
	if n.chmod && !n.fresh() {
		if err := c.resemble(from, n); err != nil {
			return err
		}
	}
	if was == nil {
		return c.rename(from, to)
	}
	err = errors.ErrUnsupported
	if !c.s.inSteps {
		err = exchange(from, to)
	}
	switch {
	case err == nil:
		c.undo = append(c.undo, step{fmt.Sprintf("exchange %s and %s", to, from), func() error { return exchange(to, from) }})
		c.gone = append(c.gone, from)
		return c.still(from, was, path)
	case !errors.Is(err, errors.ErrUnsupported):
		return err
	}
	if err := c.park(l, was); err != nil {
		return err
	}
	return c.rename(from, to)
}

// remode gives a file that stays where it is another mode.
func (c *commit) remode(l *layer, n *node) error {
	if err := c.begin("change the mode of", l.hostPath(n.path())); err != nil {
		return err
	}
	h, err := c.dir(l, n.parent)
	if err != nil {
		return err
	}
	return c.resemble(spot{h, n.name}, n)
}

// resemble is [place.resemble] for something that is moved.
func (c *commit) resemble(at spot, n *node) error {
	file, err := at.dir.root.OpenFile(at.name, os.O_RDONLY|openNonblock, 0)
	if err != nil {
		return err
	}
	fi, err := file.Stat()
	if err == nil && !sameHostFile(fi, n.origin.info) {
		err = errors.New("it was replaced")
	}
	if err != nil {
		return errors.Join(err, file.Close())
	}
	c.undo = append(c.undo, step{"give its mode back to " + at.String(), func() error {
		f, err := at.dir.root.OpenFile(at.name, os.O_RDONLY|openNonblock, 0)
		if err != nil {
			return err
		}
		keepOwner(f, fi)
		return errors.Join(f.Chmod(fi.Mode().Perm()), f.Close())
	}})
	if n.like != nil {
		keepOwner(file, n.like)
	}
	return errors.Join(file.Chmod(n.mode.Perm()), file.Close())
}

// setFileTimes sets the times of what is not new and no directory.
func (c *commit) setFileTimes(l *layer) error {
	for _, ch := range c.all {
		n := ch.n
		if ch.l != l || n == nil || n.times == nil || n.mode.IsDir() || !n.times.setAtim && !n.times.setMtim {
			continue
		}
		moved := n.origin != nil && !n.fresh()
		if !moved && !(ch.kind == tool.Times && ch.was != nil) {
			continue // new, and has its times
		}
		if n.fresh() && ch.kind == tool.Times && ch.n != ch.was {
			continue // replaced, and has its times
		}
		if err := c.begin("set the times of", l.hostPath(n.path())); err != nil {
			return err
		}
		h, err := c.dir(l, n.parent)
		if err != nil {
			return err
		}
		if err := c.setTimes(spot{h, n.name}, n); err != nil {
			return err
		}
	}
	return nil
}

func (c *commit) setTimes(at spot, n *node) error {
	fi, err := at.dir.root.Lstat(at.name)
	if err != nil {
		return err
	}
	set := func(atim, mtim int64) error {
		if fi.Mode().Type() == fs.ModeSymlink {
			if errno := setLinkTimes(at.dir.root, at.name, atim, mtim); errno != 0 {
				return errors.New(errno.String())
			}
			return nil
		}
		file, err := at.dir.root.OpenFile(at.name, attrAccess|openNonblock, 0)
		if err != nil {
			return err
		}
		now, err := file.Stat()
		if err == nil && !sameHostFile(fi, now) {
			err = errors.New("it was replaced")
		}
		if err == nil {
			err = setTimes(file, atim, mtim)
		}
		return errors.Join(err, file.Close())
	}
	t, old := n.times, hostStat(fi)
	if err := set(t.explicit(t.setAtim, t.atim), t.explicit(t.setMtim, t.mtim)); err != nil {
		return err
	}
	c.undo = append(c.undo, step{"set back the times of " + at.String(), func() error { return set(old.Atim, old.Mtim) }})
	return nil
}

// tidy removes what has been replaced, when everything is in its place. There
// is no way back from here.
func (c *commit) tidy() error {
	out := &CommitError{Op: "tidy up after", Path: "the commit", Done: true}
	note := func(what string, err error) {
		if err != nil {
			out.Err = errors.Join(out.Err, err)
			out.Left = append(out.Left, what)
		}
	}
	// What was replaced goes when what replaced it is there to stay, and what
	// is below a directory that goes too, first.
	for n, h := range c.dirs {
		if !n.gone {
			note("the synchronization of "+h.path, h.sync())
		}
	}
	slices.SortStableFunc(c.gone, func(a, b spot) int { return strings.Count(b.dir.path, "/") - strings.Count(a.dir.path, "/") })
	for _, p := range c.gone {
		err := p.dir.root.Remove(p.name)
		note(p.String(), err)
	}
	for n, h := range c.dirs {
		if t := n.times; t != nil && !n.gone && (t.setAtim || t.setMtim) {
			note("the times of "+h.path, setTimes(h.file, t.explicit(t.setAtim, t.atim), t.explicit(t.setMtim, t.mtim)))
		}
	}
	if out.Err != nil {
		return out
	}
	return nil
}
