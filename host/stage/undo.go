package stage

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stockade-dev/stockade/host/beneath"
)

// operation is what a step has done.
type operation string

const (
	renamed   operation = "rename"   // from to to
	exchanged operation = "exchange" // from and to
	made      operation = "make"     // to
	remoded   operation = "mode"     // of to
	retimed   operation = "times"    // of to
	closed    operation = "close"    // to, in the end: nothing to be put back
)

// step is something that can be put back.
type step struct {
	op       operation
	from, to spot
	comes    mark // what is at to afterwards
	goes     mark // what an exchange has put to from
	mode     fs.FileMode
	atim     int64
	mtim     int64
	// lost says that what is at the temporary name afterwards is to be removed when
	// the commit has succeeded.
	lost bool
}

// errAnother is of a name that somebody else has given to something else. It is
// left as it is then, and so is what belongs there: whoever did that may have
// put it there instead of what the commit put there, which is nothing to be
// moved or removed.
var errAnother = errors.New("something else is there by now")

// failed puts everything back.
func (c *commit) failed(err error) error {
	out := &CommitError{Op: c.op, Path: c.path, Err: nameless(err), Left: putBack(append(slices.Clone(c.made), c.undo...))}
	for _, ch := range c.all {
		if ch.was != nil && len(c.undo) > 0 {
			ch.was.origin.undone = true
		}
	}
	c.made, c.undo = nil, nil
	for n := range c.held {
		_ = shut(n, false)
	}
	return out
}

// nameless takes the temporary name out of an error: the commit names what it was for.
func nameless(err error) error {
	if at, ok := errors.AsType[*fs.PathError](err); ok && strings.HasPrefix(filepath.Base(at.Path), tempPrefix) {
		return at.Err
	}
	return err
}

// putBack undoes steps, the last one first, and says what it could not.
func putBack(steps []*step) (left []string) {
	for _, s := range slices.Backward(steps) {
		if err := s.back(); err != nil {
			left = append(left, fmt.Sprintf("%s: %v", s, err))
		}
	}
	return left
}

// String says how a step is put back.
func (s *step) String() string {
	switch s.op {
	case renamed:
		return fmt.Sprintf("rename %s to %s", s.to, s.from)
	case exchanged:
		return fmt.Sprintf("exchange %s and %s", s.to, s.from)
	case made:
		return "remove " + s.to.String()
	case remoded:
		return "give its mode back to " + s.to.String()
	}
	return "set back the times of " + s.to.String()
}

// back puts a step back, if what it has left is as it has left it.
func (s *step) back() error {
	switch s.op {
	case renamed:
		if err := s.comes.at(s.to); err != nil {
			return err
		}
		if err := renameNew(s.to, s.from); err != nil {
			return err
		}
		if err := s.comes.at(s.from); err != nil { // it was given the name just now
			return errors.Join(err, renameNew(s.from, s.to))
		}
		return nil
	case exchanged:
		if err := errors.Join(s.comes.at(s.to), s.goes.at(s.from)); err != nil {
			return err
		}
		if err := exchange(s.to, s.from); err != nil {
			return err
		}
		if err := s.comes.at(s.from); err != nil {
			return errors.Join(err, exchange(s.to, s.from))
		}
		return nil
	case made:
		if s.comes.info == nil { // of a journal: nobody else has such a name
			return removeBelow(s.to)
		}
		dir, done, err := s.to.dir.reopen()
		if err == nil {
			defer done()
			var fi os.FileInfo
			if fi, err = dir.Lstat(s.to.name); err == nil {
				if err = s.comes.is(fi); err == nil {
					err = dir.Remove(s.to.name)
				}
			}
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil // what took it away has been told, or nothing is left
		}
		return err
	case remoded:
		return s.comes.edit(s.to, os.O_RDONLY, func(file *os.File, _ os.FileInfo) error {
			if s.comes.info != nil {
				beneath.KeepOwner(file, s.comes.info)
			}
			return beneath.Chmod(file, s.mode)
		})
	case closed:
		return nil
	}
	return s.comes.setTimes(s.to, s.atim, s.mtim)
}

// mark is by what something is known again.
type mark struct {
	info os.FileInfo // nil if it was read from a journal
	// The same for a journal; numbers are zero where the host has none.
	Dev, Ino    uint64
	Size, Mtime int64
	Mode        fs.FileMode
	// All says that nothing of it may differ, as it is something that the
	// commit has made; otherwise it is only the same file.
	All bool
}

// markOf is that of what an lstat has told; of nil, nothing is like it.
func markOf(fi os.FileInfo, all bool) mark {
	if fi == nil {
		return mark{}
	}
	st := beneath.StatOf(fi)
	return mark{info: fi, Dev: st.Dev, Ino: st.Ino, Size: fi.Size(), Mtime: fi.ModTime().UnixNano(), Mode: fi.Mode(), All: all}
}

func (m mark) at(p spot) error {
	fi, err := p.lstat()
	if err != nil {
		return err
	}
	return m.is(fi)
}

func (m mark) is(fi os.FileInfo) error {
	same := false
	if m.info != nil {
		same = differs(fi, m.info, !m.All) == ""
	} else if now := markOf(fi, m.All); m.Ino != 0 && now.Dev == m.Dev && now.Ino == m.Ino && now.Mode.Type() == m.Mode.Type() {
		same = !m.All || !fi.Mode().IsRegular() || now.Size == m.Size && now.Mtime == m.Mtime && now.Mode == m.Mode
	}
	if !same {
		return errAnother
	}
	return nil
}

func renameNew(from, to spot) error {
	return beneath.RenameNew(from.dir.root, from.name, to.dir.root, to.name)
}

func exchange(a, b spot) error {
	return beneath.Exchange(a.dir.root, a.name, b.dir.root, b.name)
}

// do notes a step, does it, and can put it back.
func (c *commit) do(s *step, do func() error) error {
	err := c.journal.note(s)
	if err == nil && c.s.before != nil {
		err = c.s.before("noted", s.to.String())
	}
	if err == nil {
		err = do()
	}
	if err != nil {
		return err
	}
	c.undo = append(c.undo, s)
	if c.s.before != nil {
		return c.s.before("done", s.to.String())
	}
	return nil
}

// rename gives something another name that nothing has, and can put it back.
// The name that it has is one that others know, or that it has only here.
func (c *commit) rename(from, to spot, all, lost bool) error {
	fi, err := from.lstat()
	if err != nil {
		return err
	}
	s := &step{op: renamed, from: from, to: to, comes: markOf(fi, all), lost: lost}
	return c.do(s, func() error { return renameNew(from, to) })
}

// exchange exchanges something that has a name only here with what it replaces.
func (c *commit) exchange(from, to spot, all bool) error {
	fi, err := from.lstat()
	if err != nil {
		return err
	}
	old, err := to.lstat()
	if err != nil {
		return err
	}
	s := &step{op: exchanged, from: from, to: to, comes: markOf(fi, all), goes: markOf(old, false), lost: true}
	if err := c.do(s, func() error { return exchange(from, to) }); err != nil {
		return err
	}
	now, err := from.lstat() // others may have put it there meanwhile
	s.goes = markOf(now, false)
	return err
}

// removeBelow removes what has a name, with what is in it.
func removeBelow(at spot) error {
	fi, err := at.lstat()
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && fi.IsDir() {
		err = beneath.RemoveAll(at.String())
	} else if err == nil {
		err = at.dir.root.Remove(at.name)
	}
	return err
}

// makes notes that something is made, to be removed if it is still that. What
// is returned is set when it is finished.
func (c *commit) makes(at spot, fi os.FileInfo) *mark {
	s := &step{op: made, to: at, comes: markOf(fi, false)}
	c.made = append(c.made, s)
	return &s.comes
}
