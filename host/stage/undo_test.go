//go:build unix

package stage

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// If others change a file after a commit has put it in place, and the commit fails, their
// change is not undone, and the original is not removed.
func TestUndoLeavesWhatOthersHaveDone(t *testing.T) {
	errTest := errors.New("disk full")
	for name, tc := range map[string]struct {
		host func(*world)
		keep []string // contents that must still exist, under any name
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
			s.noExchange = inSteps
			g.write("ws/a", "new")
			g.write("ws/f.txt", "written")
			g.rename("ws/m", "ws/d1/m")
			g.write("ws/d1/z", "last")
			before := w.Content("ws/f.txt")
			s.stepHook = func(op, path string) error {
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

// A replaced file is not removed if somebody has written to it meanwhile.
func TestAnOriginalThatIsWrittenToIsKept(t *testing.T) {
	w := newWorld(t)
	g, s := w.open(nil)
	g.write("ws/f.txt", "written")
	open, err := os.OpenFile(w.Path("ws/f.txt"), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	s.stepHook = func(op, _ string) error {
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

// A mode is given back to the file that had it, and to no other file that has taken its name.
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
	s.noExchange = true
	g.rename("ws/f.txt", "ws/run")
	g.write("ws/d/z", "last")
	var parked []string
	s.stepHook = func(op, path string) error {
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

// spy is a context that calls a function whenever its Err is called.
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

// A directory that is being moved has one of its two names at every moment.
func TestAMoveIsOneStep(t *testing.T) {
	w := newWorld(t)
	g, s := w.open(nil)
	wantErr(t, "move", g.rename("ws/d", "ws/e"), nil)
	g.write("ws/e/new", "x")
	g.write("ws/a", "x")
	g.write("ws/z", "x")
	s.stepHook = func(op, _ string) error {
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

// If a process is killed at any step of a commit, the next process makes all or nothing of
// the commit.
func TestAKilledCommitIsFinished(t *testing.T) {
	for _, inSteps := range []bool{false, true} {
		whole := newFull(t)
		g, s := whole.open(nil)
		everything(g)
		if err := s.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		killEverywhere(t, whole.Tree(), func() (*world, *Set) {
			w := newFull(t)
			w.Dir("stages")
			g, s := w.openDir(&Options{Dir: w.Path("stages")}, "ws")
			everything(g)
			s.noExchange = inSteps
			return w, s
		})
	}
}

// killEverywhere ends a commit before each of its steps as if the process had been killed.
// whole is the state of the tree after a commit that was not killed.
func killEverywhere(t *testing.T, whole map[string]string, staged func() (*world, *Set)) {
	t.Helper()
	type killed struct{}
	for kill := 0; ; kill++ {
		w, s := staged()
		steps, at, dir := 0, "", s.Dir()
		s.stepHook = func(op, path string) error {
			if steps++; steps > kill {
				at = op + " " + path
				panic(killed{})
			}
			return nil
		}
		settled := func() map[string]string {
			state := w.StateButDirTimes()
			// The private files of the process may differ.
			maps.DeleteFunc(state, func(p, _ string) bool { return strings.HasPrefix(p, "stages/") })
			return state
		}
		before := settled()
		func() {
			defer func() {
				if r := recover(); r != nil && r != (killed{}) {
					panic(r)
				}
			}()
			if err := s.Commit(t.Context()); err != nil {
				t.Fatal(err)
			}
		}()
		if at == "" {
			t.Logf("%d steps", steps)
			break
		}
		// The process that finishes it is killed, too, again and again.
		if journals, _ := unfinished(filepath.Dir(dir)); len(journals) > 0 {
			errKilled := errors.New("killed")
			for most, err := 0, errKilled; err != nil; most = 2*most + 1 {
				n := 0
				if file, err := os.OpenFile(journals[0], os.O_WRONLY|os.O_APPEND, 0); err == nil {
					_, _ = file.WriteString(`{"ba`)
					file.Close()
				}
				if _, err = finish(journals[0], func() error {
					if n++; n > most {
						return errKilled
					}
					return nil
				}); err != nil && !errors.Is(err, errKilled) {
					t.Fatal(err)
				}
			}
		}
		left, err := finishAll(filepath.Dir(dir), t.Logf)
		if err != nil || len(left) > 0 {
			t.Fatalf("killed before %s: %v, %q", at, err, left)
		}
		if strings.HasPrefix(at, "tidy") {
			if diff := cmp.Diff(whole, w.Tree()); diff != "" {
				t.Fatalf("killed before %s (-whole +this):\n%s", at, diff)
			}
			continue
		}
		if diff := cmp.Diff(before, settled()); diff != "" {
			t.Fatalf("killed before %s (-before +after):\n%s", at, diff)
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
