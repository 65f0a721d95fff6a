package stage

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

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
