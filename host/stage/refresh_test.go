//go:build unix

package stage

import (
	"crypto/sha1"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stockade-dev/stockade/host/policy"
)

// saveAsIs replaces a file by one with the same content, as an editor does.
func (w *world) saveAsIs(p string) {
	w.File(p+"~", w.Content(p))
	w.Rename(p+"~", p)
}

// A file that others have saved as it was, or whose times they have set, is no reason to refuse a
// commit once its changes were listed.
func TestLookingDoesNotSpoilACommit(t *testing.T) {
	for name, look := range map[string]func(w *world, p string){
		"nothing":      func(*world, string) {},
		"saved anew":   (*world).saveAsIs,
		"other times":  func(w *world, p string) { _ = os.Chtimes(w.Path(p), time.Unix(1e9, 0), time.Unix(1e9, 0)) },
		"written over": func(w *world, p string) { w.File(p, w.Content(p)) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newFull(t)
			g, s := w.open(nil)
			everything(g)
			listed := w.FormatChanges(s.Changes(t.Context()))
			for _, p := range []string{"f.txt", "r", "m", "gone", "emptied/out", "emptied/written", "a", "b", "p/deep", "over"} {
				look(w, "ws/"+p)
			}
			if accepted := s.Refresh(t.Context()); accepted != (name != "nothing") {
				t.Errorf("accepted %t", accepted)
			}
			if diff := cmp.Diff(listed, w.FormatChanges(s.Changes(t.Context()))); diff != "" {
				t.Error(diff)
			}
			look(w, "ws/f.txt")
			if err := s.Commit(t.Context()); err != nil {
				t.Fatal(err)
			}
			other := newFull(t)
			g, s = other.open(nil)
			everything(g)
			if err := s.Commit(t.Context()); err != nil {
				t.Fatal(err)
			}
			is, want := w.Tree(), other.Tree()
			maps.DeleteFunc(is, func(p, _ string) bool { return p == "ws/times" })
			maps.DeleteFunc(want, func(p, _ string) bool { return p == "ws/times" })
			if diff := cmp.Diff(want, is); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWhatIsNotTheSameIsStillRefused(t *testing.T) {
	for name, change := range map[string]func(w *world){
		"another content":           func(w *world) { w.File("ws/f.txt", "INSIDE"); w.saveAsIs("ws/f.txt") },
		"another size":              func(w *world) { w.File("ws/f.txt", "insider"); w.saveAsIs("ws/f.txt") },
		"another mode":              func(w *world) { w.saveAsIs("ws/f.txt"); _ = os.Chmod(w.Path("ws/f.txt"), 0o755) },
		"another name":              func(w *world) { w.HardLink("out/h", "ws/f.txt") },
		"another name, saved anew":  func(w *world) { w.saveAsIs("ws/f.txt"); w.HardLink("out/h", "ws/f.txt") },
		"a link to the same":        func(w *world) { w.Rename("ws/f.txt", "ws/g.txt"); w.Link("ws/f.txt", "g.txt") },
		"gone":                      func(w *world) { _ = os.Remove(w.Path("ws/f.txt")) },
		"changed, and saved anew":   func(w *world) { w.File("ws/gone", "more"); w.saveAsIs("ws/f.txt") },
		"a directory of that name":  func(w *world) { _ = os.Remove(w.Path("ws/f.txt")); w.Dir("ws/f.txt") },
		"its directory is another":  func(w *world) { w.Rename("ws/d", "ws/e"); w.File("ws/d/g.txt", w.Content("ws/e/g.txt")) },
		"a file that was not there": func(w *world) { w.File("ws/new", "new") },
	} {
		t.Run(name, func(t *testing.T) {
			w := newFull(t)
			g, s := w.open(nil)
			everything(g)
			g.write("ws/d/g.txt", "x")
			if _, err := s.Changes(t.Context()); err != nil {
				t.Fatal(err)
			}
			change(w)
			before := w.State()
			s.Refresh(t.Context())
			if err := s.Commit(t.Context()); !errors.Is(err, policy.ErrChanged) {
				t.Errorf("commit: %v", err)
			}
			w.CheckUnchanged(before)
		})
	}
	t.Run("what is too large to remember", func(t *testing.T) {
		w := newWorld(t)
		w.File("ws/large", "x")
		if err := os.Truncate(w.Path("ws/large"), maxRememberedBytes+1); err != nil {
			t.Fatal(err)
		}
		g, s := w.open(nil)
		g.write("ws/large", "y")
		g.write("ws/f.txt", "y")
		if _, err := s.Changes(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.saveAsIs("ws/f.txt")
		if !s.Refresh(t.Context()) { // a small file beside it is remembered
			t.Error("the small file is not accepted")
		}
		w.saveAsIs("ws/large")
		if err := s.Commit(t.Context()); !errors.Is(err, policy.ErrChanged) {
			t.Errorf("commit: %v", err)
		}
	})
	t.Run("a file of the form of git's index", func(t *testing.T) {
		index := func(seen string) string {
			data := "DIRC\x00\x00\x00\x02\x00\x00\x00\x00UNTR\x00\x00\x00\x01" + seen
			return fmt.Sprintf("%s%s", data, sha1.Sum([]byte(data)))
		}
		for _, p := range []string{"ws/f.txt", "ws/testdata/index"} {
			w := newWorld(t)
			w.File(p, index("a"))
			g, s := w.open(nil)
			g.write(p, "x")
			if _, err := s.Changes(t.Context()); err != nil {
				t.Fatal(err)
			}
			w.File(p, index("b"))
			if err := s.Commit(t.Context()); s.Refresh(t.Context()) || !errors.Is(err, policy.ErrChanged) {
				t.Errorf("commit %s: %v", p, err)
			}
		}
	})
	t.Run("what was not listed", func(t *testing.T) {
		w := newWorld(t)
		g, s := w.open(nil)
		g.write("ws/f.txt", "x")
		w.saveAsIs("ws/f.txt")
		if err := s.Commit(t.Context()); s.Refresh(t.Context()) || !errors.Is(err, policy.ErrChanged) {
			t.Errorf("commit: %v", err)
		}
	})
	t.Run("changed before it was listed", func(t *testing.T) {
		w := newWorld(t)
		g, s := w.open(nil)
		g.write("ws/f.txt", "x")
		w.File("ws/f.txt", "INSIDE")
		changes, err := s.Changes(t.Context())
		if err != nil || !slices.ContainsFunc(w.FormatChanges(changes, nil), func(string) bool { return true }) {
			t.Fatal(changes, err)
		}
		w.saveAsIs("ws/f.txt")
		if err := s.Commit(t.Context()); s.Refresh(t.Context()) || !errors.Is(err, policy.ErrChanged) {
			t.Errorf("commit: %v", err)
		}
	})
}
