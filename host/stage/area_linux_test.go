package stage

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stockade-dev/stockade/host/rootedfs"
)

// TestNoStartWaitsForARemoval checks that the area of a dead process is moved away at once,
// and removed later. The test delays the removal.
func TestNoStartWaitsForARemoval(t *testing.T) {
	parent := t.TempDir()
	dead := filepath.Join(parent, "stage-1")
	if err := errors.Join(os.MkdirAll(filepath.Join(dead, "layer-1/upper/d/d/d"), 0o700), os.WriteFile(dead+".lock", nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	held, err := os.Open(dead)
	if err := errors.Join(err, unix.Flock(int(held.Fd()), unix.LOCK_EX)); err != nil {
		t.Fatal(err)
	}
	start := func() []string {
		a := NewArea(parent, t.Errorf)
		rootedfs.AwaitRemovals(time.Minute)
		if err := a.Close(); err != nil {
			t.Error(err)
		}
		left, _ := filepath.Glob(filepath.Join(parent, "*"))
		return left
	}
	if left := start(); len(left) != 1 {
		t.Errorf("there are %q", left)
	} else if _, err := os.Stat(filepath.Join(left[0], "layer-1/upper/d/d/d")); err != nil || left[0] == dead {
		t.Errorf("what waits for its removal is %q: %v", left, err)
	}
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
	if left := start(); len(left) != 0 {
		t.Errorf("there are still %q", left)
	}
}
