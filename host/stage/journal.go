package stage

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/stockade-dev/stockade/host/rootedfs"
)

// journalName is the file in the private directory of a set that says what a
// commit is about to do, step by step. It is there only during the commit.
const journalName = "journal"

// journal is what a commit leaves to whoever finds it if the process is killed: a
// line of JSON for each step, before it is done, and a last one, done, when all of
// them are. It is not synchronized: a process that ends takes nothing along that it
// has written. After a crash of the system it may lack the last steps.
type journal struct {
	set  *Set
	file *os.File
}

// journalLine is a step as it is written.
type journalLine struct {
	Done         bool        `json:"done,omitempty"`
	Back         int         `json:"back,omitempty"` // which step was put back, counted from 1
	Op           operation   `json:"op,omitempty"`
	FromDir      rawName     `json:"from_dir,omitempty"`
	From         rawName     `json:"from,omitempty"`
	ToDir        rawName     `json:"to_dir,omitempty"`
	To           rawName     `json:"to,omitempty"`
	ToIdentity   identity    `json:"comes"`
	FromIdentity identity    `json:"goes"`
	Mode         fs.FileMode `json:"mode,omitempty"`
	Accessed     int64       `json:"accessed,omitempty"`
	Modified     int64       `json:"modified,omitempty"`
	RemoveAtEnd  bool        `json:"lost,omitempty"`
}

// rawName is a name that need not be text. In a line it is written as in Go's
// strings.
type rawName string

// MarshalText implements encoding.TextMarshaler.
func (n rawName) MarshalText() ([]byte, error) {
	quoted := strconv.Quote(string(n))
	return []byte(quoted[1 : len(quoted)-1]), nil
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (n *rawName) UnmarshalText(text []byte) error {
	name, err := strconv.Unquote(`"` + string(text) + `"`)
	*n = rawName(name)
	return err
}

// note says what is about to be done.
func (j *journal) note(s *step) error {
	l := journalLine{Op: s.op, ToIdentity: s.toIdentity, FromIdentity: s.fromIdentity, Mode: s.mode, Accessed: s.atim, Modified: s.mtim, RemoveAtEnd: s.removeAtEnd, ToDir: rawName(s.to.dir.currentPath()), To: rawName(s.to.name)}
	if s.from.dir != nil {
		l.FromDir, l.From = rawName(s.from.dir.currentPath()), rawName(s.from.name)
	}
	return j.write(l)
}

func (j *journal) write(l journalLine) error {
	if j.set.root == nil {
		return nil // in memory only
	}
	if j.file == nil {
		file, err := j.set.root.OpenFile(journalName, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		j.file = file
	}
	data, err := json.Marshal(l)
	if err == nil {
		_, err = j.file.Write(append(data, '\n'))
	}
	return err
}

func (j *journal) end() error {
	if j.file == nil {
		return nil
	}
	err := errors.Join(j.file.Close(), j.set.root.Remove(journalName))
	j.file = nil
	return err
}

// unfinished returns the names of journals of commits that ended with their
// process. Sets had dir as Options.Dir.
func unfinished(dir string) ([]string, error) {
	return filepath.Glob(filepath.Join(dir, ".stockade-stage-*", journalName))
}

// finish ends a commit whose process has ended: what it has done is put back or, if
// that was all, tidied up. It says what it could not. What is put back is noted, for
// the case that this process is killed, too. before is of a test, or nil.
func finish(name string, before func() error) (left []string, err error) {
	file, err := os.OpenFile(name, os.O_RDWR|os.O_APPEND, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var all []journalLine
	over := map[int]bool{} // what was put back before
	size := int64(0)
	for lines := bufio.NewReader(file); ; {
		text, err := lines.ReadBytes('\n')
		if err == io.EOF {
			// The end of the last one may be missing: its step was not begun.
			if err := file.Truncate(size); err != nil {
				return nil, err
			}
			break
		}
		size += int64(len(text))
		var l journalLine
		if err == nil {
			err = json.Unmarshal(text, &l)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if l.Back > 0 {
			over[l.Back-1] = true
		} else {
			all = append(all, l)
		}
	}
	if before == nil {
		before = func() error { return nil }
	}
	done := len(all) > 0 && all[len(all)-1].Done
	for n := range all {
		i := n
		if !done {
			i = len(all) - 1 - n
		}
		if over[i] {
			continue
		}
		if err := before(); err != nil {
			return left, err
		}
		if err := all[i].finish(done); err != nil {
			left = append(left, err.Error())
			continue
		}
		if done {
			continue // to remove something twice does no harm
		}
		if err := before(); err != nil {
			return left, err
		}
		if _, err := fmt.Fprintf(file, "{\"back\":%d}\n", i+1); err != nil {
			return left, err
		}
	}
	return left, nil
}

// finish puts back a step, unless it was not done or was put back already. If the
// commit is done it removes what was replaced.
func (l journalLine) finish(done bool) error {
	s := &step{op: l.Op, toIdentity: l.ToIdentity, fromIdentity: l.FromIdentity, mode: l.Mode, atim: l.Accessed, mtim: l.Modified, removeAtEnd: l.RemoveAtEnd}
	var err error
	if s.to, err = openLocation(string(l.ToDir), string(l.To)); err == nil {
		defer s.to.dir.close()
	}
	if err == nil && l.FromDir != "" {
		if s.from, err = openLocation(string(l.FromDir), string(l.From)); err == nil {
			defer s.from.dir.close()
		}
	}
	moves := s.op == opRename || s.op == opExchange
	switch {
	case err != nil && (done || s.op == opMake):
		// With its directory it is gone.
	case err != nil:
		return fmt.Errorf("%s of %s to %s: %w", s.op, filepath.Join(string(l.FromDir), string(l.From)), filepath.Join(string(l.ToDir), string(l.To)), err)
	case done && s.removeAtEnd:
		at, m := s.to, s.toIdentity
		if s.op == opExchange {
			at, m = s.from, s.fromIdentity
		}
		err := m.checkAt(at)
		if err == nil {
			err = removeTree(at)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove %s: %w", at, err)
		}
	case done && s.op == opFinalMode:
		if err := s.toIdentity.chmod(s.to, s.mode); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("give its mode to %s: %w", s.to, err)
		}
	case done, moves && s.toIdentity.checkAt(s.from) == nil:
	default:
		if err := s.undo(); err != nil {
			return fmt.Errorf("%s: %w", s, err)
		}
	}
	return nil
}

// openLocation opens a directory by a name in which there are no links.
func openLocation(dir, name string) (location, error) {
	at := location{&handle{path: dir}, name}
	real, err := filepath.EvalSymlinks(dir)
	if err == nil && real != dir {
		err = errNameReused
	}
	if err == nil {
		at.dir.root, _, err = rootedfs.Open(dir)
	}
	if errors.Is(err, fs.ErrPermission) { // it may be one that cannot be listed
		top, _, topErr := rootedfs.Open("/")
		if topErr != nil {
			return at, err
		}
		defer top.Close()
		at.dir.root, _, err = rootedfs.OpenDir(top, strings.TrimPrefix(dir, "/"))
	}
	return at, err
}
