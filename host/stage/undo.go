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

// operation is the kind of a step. The constants are stored in journals.
type operation string

const (
	opRename    operation = "rename"   // from is renamed to to
	opExchange  operation = "exchange" // from and to are exchanged
	opMake      operation = "make"     // to is made
	opMode      operation = "mode"     // the mode of to is changed
	opTimes     operation = "times"    // the times of to are changed
	opFinalMode operation = "close"    // to gets its mode when the commit tidies up; undo does nothing
)

// step is a change of the host that can be undone.
type step struct {
	op           operation
	from, to     location
	toIdentity   identity    // the file that is at to after the step
	fromIdentity identity    // the file that is at from after an exchange
	mode         fs.FileMode // the mode before the step; for opFinalMode the mode at the end
	atim         int64       // the times before the step, in nanoseconds since 1970
	mtim         int64
	// removeAtEnd is set if the step leaves a replaced or removed file to remove at the end.
	removeAtEnd bool
}

// errNameReused is returned when somebody else has given a name to another file. The commit
// leaves the other file alone, and also the file that belongs there: somebody may have
// exchanged the two on purpose, so neither is moved or removed.
var errNameReused = errors.New("something else is there by now")

// rollBack undoes all steps, and returns a [CommitError] for err.
func (c *commit) rollBack(err error) error {
	steps := append(slices.Clone(c.preparedSteps), c.doneSteps...)
	out := &CommitError{Op: c.op, Path: c.path, Err: withoutTempName(err), Left: putBack(steps)}
	out.Left = append(out.Left, saveOriginals(steps)...)
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

// withoutTempName removes a temporary name from an error, because the commit names the file
// that the temporary one was for.
func withoutTempName(err error) error {
	if at, ok := errors.AsType[*fs.PathError](err); ok && strings.HasPrefix(filepath.Base(at.Path), tempPrefix) {
		return at.Err
	}
	return err
}

// putBack undoes steps from the last to the first. left describes those it could not undo.
func putBack(steps []*step) (left []string) {
	for _, s := range slices.Backward(steps) {
		if err := s.undo(); err != nil {
			left = append(left, fmt.Sprintf("%s: %v", s, err))
		}
	}
	return left
}

// saveOriginals moves originals that could not be put back out of layers, because layers are
// dropped. Each gets a temporary name in its directory. left names them.
func saveOriginals(steps []*step) (left []string) {
	for _, s := range steps {
		at, home, original := s.to, s.from, s.toIdentity
		if s.op == opExchange {
			at, home, original = s.from, s.to, s.fromIdentity
		}
		if !s.removeAtEnd || at.dir.node != nil || original.checkAt(at) != nil {
			continue
		}
		saved := location{home.dir, tempName()}
		if err := renameNoReplace(at, saved); err != nil {
			left = append(left, fmt.Sprintf("the original of %s: %v", home, err))
		} else {
			left = append(left, fmt.Sprintf("the original of %s is now %s", home, saved))
		}
	}
	return left
}

// String describes the undoing of the step.
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

// undo undoes a step; errNameReused if a file is not the one that the step has left.
func (s *step) undo() error {
	switch s.op {
	case opRename:
		if err := s.toIdentity.checkAt(s.to); err != nil {
			return err
		}
		if err := renameNoReplace(s.to, s.from); err != nil {
			return err
		}
		if err := s.toIdentity.checkAt(s.from); err != nil { // it got the name just now
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
		if s.toIdentity.info == nil { // from a journal: nobody else uses such a name
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
			return nil // another step has reported its loss, or it is gone
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

// identity holds the facts by which a file is recognized. It is stored in journals.
type identity struct {
	info os.FileInfo // nil if the identity comes from a journal
	// For a journal: facts of info; zero where the host has none.
	Dev, Ino    uint64
	Size, Mtime int64
	Mode        fs.FileMode
	All         bool // the commit made the file: no fact may differ; false: only the identity counts
}

// identityOf returns the identity of a file; if fi is nil, one that no file matches. all is as
// in identity.
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

// check returns errNameReused unless fi is the same file, with the same facts if All is set.
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

// do writes a step to the journal, calls do to make it, and notes it for rollBack.
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

// rename renames a file to a free name, as a step that can be undone. all is that of identity,
// and removeAtEnd that of step.
func (c *commit) rename(from, to location, all, removeAtEnd bool) error {
	fi, err := from.lstat()
	if err != nil {
		return err
	}
	s := &step{op: opRename, from: from, to: to, toIdentity: identityOf(fi, all), removeAtEnd: removeAtEnd}
	return c.do(s, func() error { return renameNoReplace(from, to) })
}

// exchange exchanges the file at from with the file at to, which gives way, as a step that can
// be undone. all is for the identity of from.
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
	now, err := from.lstat() // others may have put another file there meanwhile
	s.fromIdentity = identityOf(now, false)
	return err
}

// removeTree removes a file, or a directory with all its entries, unless the name is free.
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

// recordMade notes that a file was made, so that rollBack removes it if it is still the same.
// The caller updates the result when it has written a regular file.
func (c *commit) recordMade(at location, fi os.FileInfo) *identity {
	s := &step{op: opMake, to: at, toIdentity: identityOf(fi, false)}
	c.preparedSteps = append(c.preparedSteps, s)
	return &s.toIdentity
}
