package stage

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stockade-dev/stockade/host/rootedfs"
)

// operation is what a step has done.
type operation string

const (
	opRename    operation = "rename"   // from to to
	opExchange  operation = "exchange" // from and to
	opMake      operation = "make"     // to
	opMode      operation = "mode"     // of to
	opTimes     operation = "times"    // of to
	opFinalMode operation = "close"    // to, in the end: nothing to be put back
)

// step is something that can be put back.
type step struct {
	op           operation
	from, to     location
	toIdentity   identity // what is at to afterwards
	fromIdentity identity // what an exchange has put to from
	mode         fs.FileMode
	atim         int64
	mtim         int64
	// removeAtEnd says that what is at the temporary name afterwards is to be removed when
	// the commit has succeeded.
	removeAtEnd bool
}

// errNameReused is of a name that somebody else has given to something else. It is
// left as it is then, and so is what belongs there: whoever did that may have
// put it there instead of what the commit put there, which is nothing to be
// moved or removed.
var errNameReused = errors.New("something else is there by now")

// rollBack puts everything back.
func (c *commit) rollBack(err error) error {
	out := &CommitError{Op: c.op, Path: c.path, Err: withoutTempName(err), Left: putBack(append(slices.Clone(c.preparedSteps), c.doneSteps...))}
	for _, ch := range c.all {
		if ch.original != nil && len(c.doneSteps) > 0 {
			ch.original.origin.rolledBack = true
		}
	}
	c.preparedSteps, c.doneSteps = nil, nil
	for n := range c.sources {
		_ = setRealModes(n, false)
	}
	return out
}

// withoutTempName takes the temporary name out of an error: the commit names what it was for.
func withoutTempName(err error) error {
	if at, ok := errors.AsType[*fs.PathError](err); ok && strings.HasPrefix(filepath.Base(at.Path), tempPrefix) {
		return at.Err
	}
	return err
}

// putBack undoes steps, the last one first, and says what it could not.
func putBack(steps []*step) (left []string) {
	for _, s := range slices.Backward(steps) {
		if err := s.undo(); err != nil {
			left = append(left, fmt.Sprintf("%s: %v", s, err))
		}
	}
	return left
}

// String says how a step is put back.
func (s *step) String() string {
	switch s.op {
	case opRename:
		return fmt.Sprintf("rename %s to %s", s.to, s.from)
	case opExchange:
		return fmt.Sprintf("exchange %s and %s", s.to, s.from)
	case opMake:
		return "remove " + s.to.String()
	case opMode:
		return "give its mode back to " + s.to.String()
	}
	return "set back the times of " + s.to.String()
}

// undo puts a step back, if what it has left is as it has left it.
func (s *step) undo() error {
	switch s.op {
	case opRename:
		if err := s.toIdentity.checkAt(s.to); err != nil {
			return err
		}
		if err := renameNoReplace(s.to, s.from); err != nil {
			return err
		}
		if err := s.toIdentity.checkAt(s.from); err != nil { // it was given the name just now
			return errors.Join(err, renameNoReplace(s.from, s.to))
		}
		return nil
	case opExchange:
		if err := errors.Join(s.toIdentity.checkAt(s.to), s.fromIdentity.checkAt(s.from)); err != nil {
			return err
		}
		if err := exchange(s.to, s.from); err != nil {
			return err
		}
		if err := s.toIdentity.checkAt(s.from); err != nil {
			return errors.Join(err, exchange(s.to, s.from))
		}
		return nil
	case opMake:
		if s.toIdentity.info == nil { // of a journal: nobody else has such a name
			return removeTree(s.to)
		}
		dir, done, err := s.to.dir.reopen()
		if err == nil {
			defer done()
			var fi os.FileInfo
			if fi, err = dir.Lstat(s.to.name); err == nil {
				if err = s.toIdentity.check(fi); err == nil {
					err = dir.Remove(s.to.name)
				}
			}
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil // what took it away has been told, or nothing is left
		}
		return err
	case opMode:
		return s.toIdentity.editAttributes(s.to, os.O_RDONLY, func(file *os.File, _ os.FileInfo) error {
			if s.toIdentity.info != nil {
				rootedfs.CopyOwner(file, s.toIdentity.info)
			}
			return rootedfs.Chmod(file, s.mode)
		})
	case opFinalMode:
		return nil
	}
	return s.toIdentity.setTimes(s.to, s.atim, s.mtim)
}

// identity is by what something is known again.
type identity struct {
	info os.FileInfo // nil if it was read from a journal
	// The same for a journal; numbers are zero where the host has none.
	Dev, Ino    uint64
	Size, Mtime int64
	Mode        fs.FileMode
	// All says that nothing of it may differ, as it is something that the
	// commit has made; otherwise it is only the same file.
	All bool
}

// identityOf is that of what an lstat has told; of nil, nothing is like it.
func identityOf(fi os.FileInfo, all bool) identity {
	if fi == nil {
		return identity{}
	}
	st := rootedfs.StatOf(fi)
	return identity{info: fi, Dev: st.Dev, Ino: st.Ino, Size: fi.Size(), Mtime: fi.ModTime().UnixNano(), Mode: fi.Mode(), All: all}
}

func (m identity) checkAt(p location) error {
	fi, err := p.lstat()
	if err != nil {
		return err
	}
	return m.check(fi)
}

func (m identity) check(fi os.FileInfo) error {
	same := false
	if m.info != nil {
		same = difference(fi, m.info, !m.All) == ""
	} else if now := identityOf(fi, m.All); m.Ino != 0 && now.Dev == m.Dev && now.Ino == m.Ino && now.Mode.Type() == m.Mode.Type() {
		same = !m.All || !fi.Mode().IsRegular() || now.Size == m.Size && now.Mtime == m.Mtime && now.Mode == m.Mode
	}
	if !same {
		return errNameReused
	}
	return nil
}

func renameNoReplace(from, to location) error {
	return rootedfs.RenameNoReplace(from.dir.root, from.name, to.dir.root, to.name)
}

func exchange(a, b location) error {
	return rootedfs.Exchange(a.dir.root, a.name, b.dir.root, b.name)
}

// do notes a step, does it, and can put it back.
func (c *commit) do(s *step, do func() error) error {
	err := c.journal.note(s)
	if err == nil && c.s.stepHook != nil {
		err = c.s.stepHook("noted", s.to.String())
	}
	if err == nil {
		err = do()
	}
	if err != nil {
		return err
	}
	c.doneSteps = append(c.doneSteps, s)
	if c.s.stepHook != nil {
		return c.s.stepHook("done", s.to.String())
	}
	return nil
}

// rename gives something another name that nothing has, and can put it back.
// The name that it has is one that others know, or that it has only here.
func (c *commit) rename(from, to location, all, lost bool) error {
	fi, err := from.lstat()
	if err != nil {
		return err
	}
	s := &step{op: opRename, from: from, to: to, toIdentity: identityOf(fi, all), removeAtEnd: lost}
	return c.do(s, func() error { return renameNoReplace(from, to) })
}

// exchange exchanges something that has a name only here with what it replaces.
func (c *commit) exchange(from, to location, all bool) error {
	fi, err := from.lstat()
	if err != nil {
		return err
	}
	old, err := to.lstat()
	if err != nil {
		return err
	}
	s := &step{op: opExchange, from: from, to: to, toIdentity: identityOf(fi, all), fromIdentity: identityOf(old, false), removeAtEnd: true}
	if err := c.do(s, func() error { return exchange(from, to) }); err != nil {
		return err
	}
	now, err := from.lstat() // others may have put it there meanwhile
	s.fromIdentity = identityOf(now, false)
	return err
}

// removeTree removes what has a name, with what is in it.
func removeTree(at location) error {
	fi, err := at.lstat()
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && fi.IsDir() {
		err = rootedfs.RemoveAll(at.String())
	} else if err == nil {
		err = at.dir.root.Remove(at.name)
	}
	return err
}

// recordMade notes that something is made, to be removed if it is still that. What
// is returned is set when it is finished.
func (c *commit) recordMade(at location, fi os.FileInfo) *identity {
	s := &step{op: opMake, to: at, toIdentity: identityOf(fi, false)}
	c.preparedSteps = append(c.preparedSteps, s)
	return &s.toIdentity
}
