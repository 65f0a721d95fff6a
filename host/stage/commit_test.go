//go:build unix

package stage

import (
	"context"
	"errors"
	"maps"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stockade-dev/stockade/host/policy"
)

// A commit does nothing if the host has done anything to the files that a call has changed.
func TestACommitIsRefused(t *testing.T) {
	read := func(g *editor, p string) { g.try(p, os.O_RDONLY) }
	for _, tc := range []struct {
		name string
		call func(*editor)
		host func(*world)
	}{
		{"file changed", func(g *editor) { g.write("ws/f.txt", "x") }, func(w *world) { w.File("ws/f.txt", "the host") }},
		{"file replaced by the same", func(g *editor) { g.write("ws/f.txt", "x") }, func(w *world) {
			w.File("ws/t", "inside")
			w.Rename("ws/t", "ws/f.txt")
		}},
		{"file changed, with its size and time", func(g *editor) { read(g, "ws/f.txt"); g.write("ws/f.txt", "x") }, func(w *world) {
			fi, _ := os.Stat(w.Path("ws/f.txt"))
			w.File("ws/f.txt", "INSIDE")
			os.Chtimes(w.Path("ws/f.txt"), fi.ModTime(), fi.ModTime())
		}},
		{"replaced file changed, with its size and time", func(g *editor) { read(g, "ws/f.txt"); g.replace("ws/f.txt", "x") }, func(w *world) {
			fi, _ := os.Stat(w.Path("ws/f.txt"))
			w.File("ws/f.txt", "INSIDE")
			os.Chtimes(w.Path("ws/f.txt"), fi.ModTime(), fi.ModTime())
		}},
		{"file replaced while it is open", func(g *editor) {
			f, _ := g.file("ws/f.txt", os.O_RDWR)
			g.w.File("ws/t", "the host")
			g.w.Rename("ws/t", "ws/f.txt")
			g.at("ws/f.txt")
			f.Write([]byte("x"))
			f.close()
		}, func(*world) {}},
		{"file changed, with its size and time, that was not read", func(g *editor) { g.write("ws/f.txt", "x") }, func(w *world) {
			fi, _ := os.Stat(w.Path("ws/f.txt"))
			w.File("ws/f.txt", "INSIDE")
			os.Chtimes(w.Path("ws/f.txt"), fi.ModTime(), fi.ModTime())
		}},
		{"file gone", func(g *editor) { g.write("ws/f.txt", "x") }, func(w *world) { os.Remove(w.Path("ws/f.txt")) }},
		{"file is a link now", func(g *editor) { g.write("ws/f.txt", "x") }, func(w *world) {
			os.Remove(w.Path("ws/f.txt"))
			w.Link("ws/f.txt", "../out/secret")
		}},
		{"replaced file is a link now", func(g *editor) { g.replace("ws/f.txt", "x") }, func(w *world) {
			os.Remove(w.Path("ws/f.txt"))
			w.Link("ws/f.txt", "../out/secret")
		}},
		{"file has another name now", func(g *editor) { g.write("ws/f.txt", "x") }, func(w *world) { w.HardLink("out/h", "ws/f.txt") }},
		{"removed file changed", func(g *editor) { g.remove("ws/f.txt") }, func(w *world) { w.File("ws/f.txt", "the host") }},
		{"moved file replaced", func(g *editor) { g.rename("ws/f.txt", "ws/x") }, func(w *world) {
			w.File("ws/t", "the host")
			w.Rename("ws/t", "ws/f.txt")
		}},
		{"new file is there", func(g *editor) { g.write("ws/new", "x") }, func(w *world) { w.File("ws/new", "the host") }},
		{"new file is a link", func(g *editor) { g.write("ws/new", "x") }, func(w *world) { w.Link("ws/new", "../out/new") }},
		{"new directory is there", func(g *editor) { g.mkdir("ws/new") }, func(w *world) { w.Dir("ws/new") }},
		{"new directory is a link", func(g *editor) { g.mkdir("ws/new"); g.write("ws/new/x", "x") }, func(w *world) { w.Link("ws/new", "../out") }},
		{"directory is a link now", func(g *editor) { g.write("ws/d/new", "x") }, func(w *world) {
			w.Rename("ws/d", "ws/was")
			w.Link("ws/d", "../out")
		}},
		{"directory is a link inside now", func(g *editor) { g.write("ws/d/new", "x") }, func(w *world) {
			w.Rename("ws/d", "ws/was")
			w.Link("ws/d", "was")
		}},
		{"directory is outside now", func(g *editor) { g.write("ws/d/new", "x") }, func(w *world) { w.Rename("ws/d", "out/d") }},
		{"removed directory is not empty", func(g *editor) {
			g.remove("ws/d/other")
			g.remove("ws/d/g.txt")
			g.remove("ws/d")
		}, func(w *world) { w.File("ws/d/h", "the host") }},
		{"times of a file that was replaced", func(g *editor) { g.setTimes("ws/f.txt", 1e9, 1e9) }, func(w *world) {
			w.File("ws/t", "the host")
			w.Rename("ws/t", "ws/f.txt")
		}},
		{"new directory is there, and not empty", func(g *editor) { g.mkdir("ws/later"); g.write("ws/later/x", "x") }, func(w *world) { w.File("ws/later/key", "the host") }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t)
			g, s := w.open(nil)
			g.write("ws/other", "also new")
			g.write("ws/d/other", "also new")
			tc.call(g)
			tc.host(w)
			before := w.State()
			err := s.Commit(t.Context())
			if !errors.Is(err, policy.ErrChanged) {
				t.Errorf("commit: %v", err)
			}
			w.CheckUnchanged(before)
			if err := s.Drop(); err != nil {
				t.Error(err)
			}
			w.CheckUnchanged(before)
		})
	}
}

// A commit makes exactly the changes that were listed.
func TestACommitOfWhatWasNotListedIsRefused(t *testing.T) {
	w := newWorld(t)
	g, s := w.open(nil)
	g.write("ws/f.txt", "INSIDE")
	if got := w.FormatChanges(s.Changes(t.Context())); len(got) != 1 {
		t.Errorf("the changes are %q", got)
	}
	w.File("ws/f.txt", "INSIDE")
	if err := s.Commit(t.Context()); !errors.Is(err, policy.ErrChanged) {
		t.Errorf("commit: %v", err)
	}
	if got := w.FormatChanges(s.Changes(t.Context())); len(got) != 0 {
		t.Errorf("the changes are %q now", got)
	}
	if err := s.Commit(t.Context()); err != nil {
		t.Errorf("commit of nothing: %v", err)
	}
}

// everything makes every kind of change.
func everything(g *editor) {
	g.write("ws/f.txt", "overwritten")
	g.replace("ws/r", "replaced")
	g.write("ws/new", "new")
	g.mkdir("ws/nd")
	g.write("ws/nd/x", "new")
	g.rename("ws/m", "ws/nd/m")
	g.remove("ws/gone")
	g.remove("ws/gd/x")
	g.remove("ws/gd")
	g.rename("ws/emptied/out", "ws/out")
	g.rename("ws/emptied/e/in", "ws/nd/in")
	g.rename("ws/emptied/written", "ws/written")
	g.write("ws/written", "changed")
	g.remove("ws/emptied/e")
	g.remove("ws/emptied")
	g.rename("ws/a", "ws/t")
	g.rename("ws/b", "ws/a")
	g.rename("ws/t", "ws/b")
	g.rename("ws/p/q", "ws/q")
	g.rename("ws/p", "ws/q/p")
	g.write("ws/q/p/deep", "changed")
	g.rename("ws/over", "ws/under")
	g.setTimes("ws/times", 1e9, 1e9)
}

// newFull returns a world with the files that everything changes.
func newFull(t *testing.T) *world {
	w := newWorld(t)
	for _, p := range []string{"r", "m", "gone", "gd/x", "emptied/out", "emptied/e/in", "emptied/written", "a", "b", "p/deep", "p/q/z", "over", "under", "times"} {
		w.File("ws/"+p, "content of "+p)
	}
	return w
}

// Wherever a commit fails, nothing is changed, and the next one succeeds.
func TestACommitThatFailsIsUndone(t *testing.T) {
	t.Run("exchanging", func(t *testing.T) { failEverywhere(t, false) })
	t.Run("in steps", func(t *testing.T) { failEverywhere(t, true) })
}

func failEverywhere(t *testing.T, inSteps bool) {
	errTest := errors.New("disk full")
	var want map[string]string
	for fail := 0; ; fail++ {
		w := newFull(t)
		g, s := w.open(nil)
		everything(g)
		before := w.StateButDirTimes()
		n := 0
		s.noExchange = inSteps
		s.stepHook = func(op, path string) error {
			if op == "tidy up" { // from here on nothing is put back
				return nil
			}
			if n++; n == fail+1 {
				return errTest
			}
			return nil
		}
		err := s.Commit(t.Context())
		if n <= fail {
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%d steps", n)
			if want = w.Tree(); want["a"] != "file  content of b" || want["q/p/deep"] != "file  changed" || want["under"] != "file  content of over" || want["nd/m"] == "" || want["out"] == "" || want["nd/in"] == "" || want["written"] != "file  changed" || want["emptied"] != "" {
				t.Errorf("the tree after: %v", want)
			}
			break
		}
		var failed *CommitError
		if !errors.Is(err, errTest) || !errors.As(err, &failed) || len(failed.Left) > 0 {
			t.Fatalf("step %d: %v", fail, err)
		}
		if diff := cmp.Diff(before, w.StateButDirTimes()); diff != "" {
			t.Fatalf("step %d, %s: the host was changed (-before +after):\n%s", fail, failed.Op, diff)
		}
		s.stepHook = nil
		if fail%7 == 0 {
			if err := s.Commit(t.Context()); err != nil {
				t.Fatalf("commit after %d: %v", fail, err)
			}
			for p := range w.Tree() {
				if strings.Contains(p, ".stockade-") {
					t.Errorf("%s is left", p)
				}
			}
		}
	}
}

// Whatever the host does during a commit, files outside of the tree stay as they are, and
// so do the files that the host has put there.
func TestTheHostInterferesWithACommit(t *testing.T) {
	for _, tc := range []struct {
		name string
		host func(*world)
	}{
		{"directory becomes a link", func(w *world) { os.Rename(w.Path("ws/q"), w.Path("ws/moved")); os.Symlink("../out", w.Path("ws/q")) }},
		{"parent becomes a link", func(w *world) { os.Rename(w.Path("ws/p"), w.Path("ws/moved")); os.Symlink("../out", w.Path("ws/p")) }},
		{"directory goes outside", func(w *world) { os.Rename(w.Path("ws/p"), w.Path("out/p")) }},
		{"target becomes a link", func(w *world) { os.Remove(w.Path("ws/f.txt")); os.Symlink("../out/secret", w.Path("ws/f.txt")) }},
		{"place is taken by a link", func(w *world) { os.Symlink("../out/secret", w.Path("ws/new")) }},
		{"target is changed", func(w *world) { os.WriteFile(w.Path("ws/r"), []byte("the host"), 0o666) }},
	} {
		for at := 0; ; at++ {
			w := newFull(t)
			g, s := w.open(nil)
			everything(g)
			outside := w.Outside()
			n := 0
			s.stepHook = func(string, string) error {
				if n++; n == at+1 {
					tc.host(w)
				}
				return nil
			}
			_ = s.Commit(t.Context())
			if n <= at {
				break
			}
			after := w.Outside()
			maps.DeleteFunc(after, func(p, _ string) bool { return strings.HasPrefix(p, "out/p") })
			if diff := cmp.Diff(outside, after); diff != "" {
				t.Errorf("%s at %d: outside was changed:\n%s", tc.name, at, diff)
			}
			if got := w.Content("ws/r"); tc.name == "target is changed" && got != "the host" {
				t.Errorf("what the host wrote at %d is lost: %q", at, got)
			}
			if b, _ := os.ReadFile(w.Path("out/secret")); string(b) != canary {
				t.Errorf("%s at %d: the canary is %q", tc.name, at, b)
			}
		}
	}
}

// A canceled commit stops at once and puts everything back, until names are exchanged. From
// then on it runs to its end.
func TestACommitEndsWithItsContext(t *testing.T) {
	for op, ends := range map[string]bool{"prepare": true, "move aside": false, "put in place": false} {
		w := newFull(t)
		g, s := w.open(nil)
		everything(g)
		before := w.StateButDirTimes()
		ctx, cancel := context.WithCancel(t.Context())
		steps := 0
		s.stepHook = func(now, _ string) error {
			if now == op {
				cancel()
			}
			if ctx.Err() != nil {
				steps++
			}
			return nil
		}
		err := s.Commit(ctx)
		same := cmp.Equal(before, w.StateButDirTimes())
		switch {
		case steps == 0:
			t.Errorf("%s: there is no such step", op)
		case ends && (!errors.Is(err, context.Canceled) || steps != 1 || !same):
			t.Errorf("%s: %v, %d steps after the end, nothing changed: %v", op, err, steps-1, same)
		case !ends && (err != nil || same):
			t.Errorf("%s: %v, nothing changed: %v", op, err, same)
		}
	}
}
