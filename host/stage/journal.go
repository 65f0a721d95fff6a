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

// journalName is the name of the journal in a set's private directory, during a commit.
const journalName = "journal"

// journal is the file by which a later process can finish a commit that was killed. It has a
// line of JSON for each step, written before the step is done, and at the end a line with done
// when all steps are done. To make a directory with its entries is one step. The journal is not
// synchronized: data that a process has written outlives the process. After a crash of the
// system the last lines may be missing.
type journal struct {
	set  *Set
	file *os.File // nil before the first line and after the end
}

// journalLine is a line of the journal: a step, the end of all steps (Done), or a step that
// was undone (Back). The fields of a step are those of the type step.
type journalLine struct {
	Done         bool        `json:"done,omitempty"`
	Back         int         `json:"back,omitempty"` // number of the step that was undone, from 1 on; 0: none
	Op           operation   `json:"op,omitempty"`
	FromDir      rawName     `json:"from_dir,omitempty"`
	From         rawName     `json:"from,omitempty"`
	ToDir        rawName     `json:"to_dir,omitempty"`
	To           rawName     `json:"to,omitempty"`
	ToIdentity   identity    `json:"comes"`
	FromIdentity identity    `json:"goes"`
	Mode         fs.FileMode `json:"mode,omitempty"`
	Accessed     int64       `json:"accessed,omitempty"` // step.atim
	Modified     int64       `json:"modified,omitempty"` // step.mtim
	RemoveAtEnd  bool        `json:"lost,omitempty"`
}

// rawName is a name that need not be UTF-8, written like a string of Go without its quotes.
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

// note writes a step that is about to be done.
func (j *journal) note(s *step) error {
	l := journalLine{Op: s.op, ToIdentity: s.toIdentity, FromIdentity: s.fromIdentity, Mode: s.mode, Accessed: s.atim, Modified: s.mtim, RemoveAtEnd: s.removeAtEnd, ToDir: rawName(s.to.dir.currentPath()), To: rawName(s.to.name)}
	if s.from.dir != nil {
		l.FromDir, l.From = rawName(s.from.dir.currentPath()), rawName(s.from.name)
	}
	return j.write(l)
}

// write appends a line; the first makes the file. A set only in memory has no journal.
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

// unfinished returns the journals of the sets in dir, an area whose process has ended: each
// belongs to an interrupted commit.
func unfinished(dir string) ([]string, error) {
	return rootedfs.Glob(dir, ".stockade-stage-*/"+journalName)
}

// finish finishes the commit of a journal whose process has ended. If all steps were done, it
// tidies up; otherwise it undoes the steps. left describes the steps that it could not finish.
// It writes each undone step to the journal, in case this process is killed, too. Tests set
// before, which is called before each change; nil: nothing is called.
func finish(name string, before func() error) (left []string, err error) {
	file, err := os.OpenFile(name, os.O_RDWR|os.O_APPEND, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var all []journalLine
	undone := map[int]bool{} // indexes of steps
	size := int64(0)
	for lines := bufio.NewReader(file); ; {
		text, err := lines.ReadBytes('\n')
		if err == io.EOF {
			// The end of the last line may be missing: its step was not begun.
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
			undone[l.Back-1] = true
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
		if undone[i] {
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
			continue // to remove a file twice does no harm
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

// finish undoes a step, unless it was not done or was undone already. If done is set, it
// instead removes the file that the step has replaced or removed, or sets the final mode.
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
		// The file is gone with its directory.
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

// openLocation opens the directory of a name on the host. The error is errNameReused if there
// are symbolic links in the path of the directory.
func openLocation(dir, name string) (location, error) {
	at := location{&handle{path: dir}, name}
	real, err := filepath.EvalSymlinks(dir)
	if err == nil && real != dir {
		err = errNameReused
	}
	if err == nil {
		at.dir.root, _, err = rootedfs.Open(dir)
	}
	if errors.Is(err, fs.ErrPermission) { // a directory that may not be listed can still be opened otherwise
		top, _, topErr := rootedfs.Open("/")
		if topErr != nil {
			return at, err
		}
		defer top.Close()
		at.dir.root, _, err = rootedfs.OpenDir(top, strings.TrimPrefix(dir, "/"))
	}
	return at, err
}
