//go:build unix

package stage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
)

// What others do to a file after a commit has put it there, and before the
// commit fails, is not undone, and the original is not removed.
func TestUndoLeavesWhatOthersHaveDone(t *testing.T) {
	errTest := errors.New("disk full")
	for name, tc := range map[string]struct {
		host func(*world)
		keep []string // contents that must be there, whatever their names
	}{
		"saved by rename": {func(w *world) {
			w.File("ws/t", "the editor")
			w.Rename("ws/t", "ws/f.txt")
		}, []string{"inside", "the editor"}},
		"saved in place":       {func(w *world) { w.File("ws/f.txt", "the editor") }, []string{"inside", "the editor"}},
		"moved away":           {func(w *world) { w.Rename("ws/f.txt", "ws/away") }, []string{"inside"}},
		"removed":              {func(w *world) { os.Remove(w.Path("ws/f.txt")) }, []string{"inside"}},
		"a new one is saved":   {func(w *world) { w.File("ws/t", "the editor"); w.Rename("ws/t", "ws/a") }, []string{"the editor"}},
		"a new one in place":   {func(w *world) { w.File("ws/a", "the editor") }, []string{"the editor"}},
		"a moved one is saved": {func(w *world) { w.File("ws/t", "the editor"); w.Rename("ws/t", "ws/d1/m") }, []string{"the editor"}},
		"nobody does anything": {func(*world) {}, nil},
	} {
		for _, inSteps := range []bool{false, true} {
			w := newWorld(t)
			w.File("ws/m", "moved")
			w.Dir("ws/d1")
			g, s := w.open(nil)
			s.inSteps = inSteps
			g.write("ws/a", "new")
			g.write("ws/f.txt", "written")
			g.rename("ws/m", "ws/d1/m")
			g.write("ws/d1/z", "last")
			before := w.Content("ws/f.txt")
			s.before = func(op, path string) error {
				if op == "put in place" && strings.HasSuffix(path, "d1/z") {
					tc.host(w)
					return errTest
				}
				return nil
			}
			err := s.Commit(t.Context())
			var failed *CommitError
			if !errors.Is(err, errTest) || !errors.As(err, &failed) {
				t.Fatalf("%s: %v", name, err)
			}
			have := append(w.Contents("ws"), w.Contents("ws/d1")...)
			for _, want := range append(tc.keep, "moved") {
				if !slices.Contains(have, want) && !(want == "moved" && strings.HasPrefix(name, "a moved")) {
					t.Errorf("%s: %q is lost, of %q; %v", name, want, have, err)
				}
			}
			for _, temp := range append(w.temps("ws"), w.temps("ws/d1")...) {
				if !strings.Contains(strings.Join(failed.Left, "\n"), temp) {
					t.Errorf("%s: %s is not told of: %q", name, temp, failed.Left)
				}
			}
			if len(tc.keep) > 0 && len(failed.Left) == 0 {
				t.Errorf("%s: nothing is told", name)
			}
			if len(tc.keep) == 0 && (len(failed.Left) > 0 || w.Content("ws/f.txt") != before) {
				t.Errorf("%s: %q", name, failed.Left)
			}
		}
	}
}

// What was replaced is kept if somebody writes to it before it is removed.
func TestAnOriginalThatIsWrittenToIsKept(t *testing.T) {
	w := newWorld(t)
	g, s := w.open(nil)
	g.write("ws/f.txt", "written")
	open, err := os.OpenFile(w.Path("ws/f.txt"), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	s.before = func(op, _ string) error {
		if op == "check" {
			_, err := open.WriteString("the editor")
			return err
		}
		return nil
	}
	var left *CommitError
	if err := s.Commit(t.Context()); !errors.As(err, &left) || !left.Done || len(left.Left) != 1 {
		t.Errorf("commit: %v", err)
	}
	if have := w.Contents("ws"); !slices.Contains(have, "written") || !slices.Contains(have, "the editor") {
		t.Errorf("the files have %q", have)
	}
}

// A mode is given back to the file that had it, and to nothing that has taken
// its name.
func TestUndoOfAModeFollowsNoLink(t *testing.T) {
	errTest := errors.New("disk full")
	w := newWorld(t)
	w.File("ws/run", "run")
	w.File("ws/victim", "victim")
	for name, mode := range map[string]fs.FileMode{"ws/run": 0o755, "ws/f.txt": 0o644, "ws/victim": 0o600} {
		if err := os.Chmod(w.Path(name), mode); err != nil {
			t.Fatal(err)
		}
	}
	g, s := w.open(nil)
	s.inSteps = true
	g.rename("ws/f.txt", "ws/run")
	g.write("ws/d/z", "last")
	var parked []string
	s.before = func(op, path string) error {
		switch {
		case op == "put in place" && strings.HasSuffix(path, "run"):
			parked = w.temps("ws")
		case op == "put in place":
			for _, temp := range parked {
				if _, err := os.Lstat(temp); err != nil {
					_ = os.Symlink("victim", temp)
				}
			}
			return errTest
		}
		return nil
	}
	if err := s.Commit(t.Context()); !errors.Is(err, errTest) {
		t.Error(err)
	}
	if fi, err := os.Stat(w.Path("ws/victim")); err != nil || fi.Mode() != 0o600 {
		t.Errorf("the mode of another is %v, %v", fi.Mode(), err)
	}
}

// spy is a context that looks when somebody asks whether it is over.
type spy struct {
	context.Context
	look func()
}

func (s spy) Err() error { s.look(); return s.Context.Err() }

func TestWhatIsPreparedIsPrivate(t *testing.T) {
	w := newWorld(t)
	if err := os.Chmod(w.Path("ws/f.txt"), 0o600); err != nil {
		t.Fatal(err)
	}
	g, s := w.open(nil)
	g.write("ws/f.txt", "written")
	seen := 0
	if err := s.Commit(spy{t.Context(), func() {
		for _, temp := range w.temps("ws") {
			seen++
			if fi, err := os.Stat(temp); err != nil || fi.Mode().Perm() != 0o600 {
				t.Errorf("%v, %v", fi.Mode(), err)
			}
		}
	}}); err != nil {
		t.Error(err)
	}
	if fi, err := os.Stat(w.Path("ws/f.txt")); err != nil || fi.Mode() != 0o600 || seen == 0 {
		t.Errorf("seen %d, %v, %v", seen, fi.Mode(), err)
	}
}

// Who looks for a directory that is moved finds it under one of its names.
func TestAMoveIsOneStep(t *testing.T) {
	w := newWorld(t)
	g, s := w.open(nil)
	wantErr(t, "move", g.rename("ws/d", "ws/e"), nil)
	g.write("ws/e/new", "x")
	g.write("ws/a", "x")
	g.write("ws/z", "x")
	s.before = func(op, _ string) error {
		_, d := os.Stat(w.Path("ws/d"))
		_, e := os.Stat(w.Path("ws/e"))
		if d != nil && e != nil {
			t.Errorf("%s: it is away", op)
		}
		return nil
	}
	if err := s.Commit(t.Context()); err != nil {
		t.Error(err)
	}
	if got := w.Content("ws/e/new") + w.Content("ws/e/g.txt"); got != "xdeeper" {
		t.Errorf("%q", got)
	}
}

// A process that is killed leaves word of what has a temporary name.
func TestACommitSaysWhatItMoves(t *testing.T) {
	for _, inSteps := range []bool{false, true} {
		w := newFull(t)
		w.Dir("stages")
		g, s := w.openDir(&Options{Dir: w.Path("stages")}, "ws")
		everything(g)
		s.inSteps = inSteps
		original := func(p string) string { return "content of " + strings.TrimPrefix(p, w.Path("ws")+"/") }
		errTest := errors.New("disk full")
		found := 0
		s.before = func(op, _ string) error {
			files, err := unfinished(w.Path("stages"))
			if err != nil || op != "check" {
				return err
			}
			for _, file := range files {
				b, err := os.ReadFile(file)
				if err != nil {
					return err
				}
				last := map[string]string{}
				for line := range strings.Lines(string(b)) {
					var temp, place string
					if _, err := fmt.Sscanf(line, "%q was %q", &temp, &place); err != nil {
						return err
					}
					last[temp] = place
				}
				for temp, place := range last {
					if fi, err := os.Lstat(temp); err == nil && fi.Mode().IsRegular() && !strings.HasSuffix(place, "f.txt") {
						found++
						if b, err := os.ReadFile(temp); err != nil || string(b) != original(place) {
							t.Errorf("%s was %s: %q, %v", temp, place, b, err)
						}
					}
				}
			}
			return errTest
		}
		if err := s.Commit(t.Context()); !errors.Is(err, errTest) {
			t.Error(err)
		}
		if found < 2 {
			t.Errorf("%d files are told of", found)
		}
		if files, err := unfinished(w.Path("stages")); err != nil || len(files) > 0 {
			t.Errorf("%q are left, %v", files, err)
		}
		s.before = nil
		if err := s.Commit(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

func TestTheTimesOfADirectoryAreMade(t *testing.T) {
	w := newWorld(t)
	g, s := w.open(nil)
	g.mkdir("ws/nd")
	g.write("ws/nd/x", "x")
	for _, p := range []string{"ws/d", "ws/nd", "ws/f.txt"} {
		wantErr(t, "set the times", g.setTimes(p, 1e9, 2e9), nil)
	}
	changes, err := s.Changes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range changes {
		told := c.After.ModTime != nil && c.After.ModTime.UnixNano() == 2e9
		if told == strings.HasSuffix(c.Path, "x") {
			t.Errorf("%v %s: %v", c.Kind, c.Path, c.After.ModTime)
		}
	}
	if err := s.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{"ws/d", "ws/nd", "ws/f.txt"} {
		if fi, err := os.Stat(w.Path(p)); err != nil || fi.ModTime().UnixNano() != 2e9 {
			t.Errorf("%s: %v, %v", p, fi.ModTime(), err)
		}
	}
}

func TestTheModeThatIsShownIsTheModeThatIsMade(t *testing.T) {
	w := newWorld(t)
	w.File("ws/m", "moved")
	for _, p := range []string{"ws/f.txt", "ws/m"} {
		if err := os.Chmod(w.Path(p), 0o755|fs.ModeSetuid); err != nil {
			t.Fatal(err)
		}
	}
	g, s := w.open(nil)
	g.write("ws/f.txt", "written")
	g.write("ws/new", "new")
	g.rename("ws/m", "ws/d/m")
	changes, err := s.Changes(t.Context())
	if err != nil || len(changes) != 3 {
		t.Fatal(changes, err)
	}
	if err := s.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, c := range changes {
		if fi, err := os.Stat(c.Path); err != nil || fi.Mode() != c.After.Mode {
			t.Errorf("%s: shown %v, made %v, %v", c.Path, c.After.Mode, fi.Mode(), err)
		}
	}
}
