package stage

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/stockade-dev/stockade/host/beneath"
)

// step is something that can be put back.
type step struct {
	what string
	back func() error
}

// errAnother is of a name that somebody else has given to something else. It is
// left as it is then, and so is what belongs there: whoever did that may have
// put it there instead of what the commit put there, which is nothing to be
// moved or removed.
var errAnother = errors.New("something else is there by now")

// failed puts everything back.
func (c *commit) failed(err error) error {
	out := &CommitError{Op: c.op, Path: c.path, Err: err}
	for _, s := range slices.Backward(append(slices.Clone(c.made), c.undo...)) {
		if err := s.back(); err != nil {
			out.Left = append(out.Left, fmt.Sprintf("%s: %v", s.what, err))
		}
	}
	for _, ch := range c.all {
		if ch.was != nil && len(c.undo) > 0 {
			ch.was.origin.undone = true
		}
	}
	c.made, c.undo = nil, nil
	return out
}

// mark is by what something is known again that the commit has moved.
type mark struct {
	info os.FileInfo // nil if that could not be found out
	// all says that nothing of it may differ, as it is something that the
	// commit has made; otherwise it is only the same file.
	all bool
}

func (m mark) at(p spot) error {
	fi, err := p.lstat()
	if err != nil {
		return err
	}
	return m.is(fi)
}

func (m mark) is(fi os.FileInfo) error {
	if m.info == nil || differs(fi, m.info, !m.all) != "" {
		return errAnother
	}
	return nil
}

func renameNew(from, to spot) error {
	return beneath.RenameNew(from.dir.root, from.name, to.dir.root, to.name)
}

func exchange(a, b spot) error { return beneath.Exchange(a.dir.root, a.name, b.dir.root, b.name) }

// rename gives something another name that nothing has, and can put it back.
// The name that it has is one that others know, or that it has only here.
func (c *commit) rename(from, to spot, all bool) error {
	fi, err := from.lstat()
	if err != nil {
		return err
	}
	if err := renameNew(from, to); err != nil {
		return err
	}
	c.renamed(from, to, mark{fi, all})
	return nil
}

func (c *commit) renamed(from, to spot, m mark) {
	c.undo = append(c.undo, step{fmt.Sprintf("rename %s to %s", to, from), func() error {
		if err := m.at(to); err != nil {
			return err
		}
		if err := renameNew(to, from); err != nil {
			return err
		}
		if err := m.at(from); err != nil { // it was given the name just now
			return errors.Join(err, renameNew(from, to))
		}
		return nil
	}})
}

// exchange exchanges something that has a name only here with what it replaces.
func (c *commit) exchange(from, to spot, all bool) error {
	fi, err := from.lstat()
	if err != nil {
		return err
	}
	if err := exchange(from, to); err != nil {
		return err
	}
	comes, goes := mark{fi, all}, mark{}
	goes.info, err = from.lstat()
	c.undo = append(c.undo, step{fmt.Sprintf("exchange %s and %s", to, from), func() error {
		if err := errors.Join(comes.at(to), goes.at(from)); err != nil {
			return err
		}
		if err := exchange(to, from); err != nil {
			return err
		}
		if err := comes.at(from); err != nil {
			return errors.Join(err, exchange(to, from))
		}
		return nil
	}})
	return err
}

// makes notes that something is made, to be removed if it is still that. What
// is returned is set when it is finished.
func (c *commit) makes(at spot, fi os.FileInfo) *mark {
	m := &mark{info: fi}
	c.made = append(c.made, step{"remove " + at.String(), func() error {
		dir, done, err := at.dir.reopen()
		if err == nil {
			defer done()
			if fi, err = dir.Lstat(at.name); err == nil {
				if err = m.is(fi); err == nil {
					err = dir.Remove(at.name)
				}
			}
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil // what took it away has been told, or nothing is left
		}
		return err
	}})
	return m
}
