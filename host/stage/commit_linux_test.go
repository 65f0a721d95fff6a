package stage

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// An original that cannot be put back, because others have its place by now, is not dropped
// together with the layer.
func TestAnOriginalIsSavedFromALayer(t *testing.T) {
	errTest := errors.New("disk full")
	for _, inSteps := range []bool{false, true} {
		w := newWorld(t)
		o := newOverlay(w)
		o.write("f.txt", "written")
		o.write("z", "last")
		s, err := o.collect()
		o.must(err)
		s.noExchange = inSteps
		s.stepHook = func(op, path string) error {
			if op == "put in place" && strings.HasSuffix(path, "/z") {
				w.File("ws/f.txt", "the editor")
				return errTest
			}
			return nil
		}
		var failed *CommitError
		if err := s.Commit(t.Context()); !errors.As(err, &failed) {
			t.Fatal(err)
		}
		o.must(s.Drop())
		if have := w.Contents("ws"); !slices.Contains(have, "inside") || !slices.Contains(have, "the editor") {
			t.Errorf("in steps %v: the files have %q; %v", inSteps, have, failed)
		}
		if temps := w.temps("ws"); len(temps) != 1 || !strings.Contains(strings.Join(failed.Left, "\n"), temps[0]) {
			t.Errorf("in steps %v: %q is not told of: %q", inSteps, temps, failed.Left)
		}
	}
}

// A commit that fails on a full disk leaves everything as it was before.
func TestTheDiskIsFull(t *testing.T) {
	w := newWorld(t)
	full := error(unix.ENOSPC)
	var before func(op, path string) error
	if err := unix.Mount("stockade", w.Path("ws"), "tmpfs", 0, "size=256k"); err == nil {
		t.Cleanup(func() {
			if err := unix.Unmount(w.Path("ws"), unix.MNT_DETACH); err != nil {
				t.Error(err)
			}
		})
	} else {
		t.Logf("no small disk here (%v), so a step of the commit fails", err)
		before = func(op, path string) error {
			if op == "prepare" && strings.HasSuffix(path, "late") {
				return full
			}
			return nil
		}
	}
	w.File("ws/f.txt", strings.Repeat("old", 20_000))
	w.File("ws/gone", "gone")
	g, s := w.open(nil)
	s.stepHook = before
	g.write("ws/f.txt", strings.Repeat("new", 20_000))
	g.write("ws/early", "x")
	g.write("ws/late", strings.Repeat("x", 200_000))
	g.remove("ws/gone")
	state := w.StateButDirTimes()
	err := s.Commit(t.Context())
	if want := "commit: prepare " + w.Path("ws/late") + ": no space left on device"; !errors.Is(err, full) || err.Error() != want {
		t.Errorf("it says %v, want %s", err, want)
	}
	if diff := cmp.Diff(state, w.StateButDirTimes()); diff != "" {
		t.Errorf("the host was changed (-before +after):\n%s", diff)
	}
	// Without the large file there is room.
	s.stepHook = nil
	g.remove("ws/late")
	if err := s.Commit(t.Context()); err != nil {
		t.Error(err)
	}
}
