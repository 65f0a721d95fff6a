package registry_test

import (
	"errors"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"

	"github.com/stockade-dev/stockade/host/registry"
)

const fullEnv = "STOCKADE_REGISTRY_TEST_FULL"

// TestAFullDiskLeavesNothing lets a module be added where files can have so many bytes
// and no more: a disk that is full before the module, in the middle of it, and in the
// middle of the index. A process that is refused a byte and one whose disk is full do
// the same. It is a process of its own that cannot write, as go test keeps a log.
func TestAFullDiskLeavesNothing(t *testing.T) {
	if os.Getenv(fullEnv) == "" {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestAFullDiskLeavesNothing$", "-test.v")
		cmd.Env = append(os.Environ(), fullEnv+"=1")
		out, err := cmd.CombinedOutput()
		if t.Logf("%s", out); err != nil {
			t.Error(err)
		}
		return
	}
	for _, update := range []bool{false, true} {
		w := newWorld(t)
		w.addFile("clock", "1.0.0", oneTool("now", ""))
		want := []string{"clock_now 1.0.0"}
		if update {
			must(t, w.honest("1.0.0").add())
			want = append(want, "weather_now 1.0.0")
		}
		before := tree(t, w.dir)
		x := w.honest("1.1.0")
		digest, manifest := x.publish()
		c, err := x.fetch()
		must(t, err)
		r, err := x.reviewer(digest, manifest).Review(t.Context(), registry.Request{Candidate: c})
		must(t, err)

		refused := 0
		for most := uint64(0); ; most += 97 {
			err := within(t, most, func() error { return registry.Save(w.store, r) })
			if err == nil {
				break
			}
			refused++
			if !errors.Is(err, syscall.EFBIG) {
				t.Errorf("%d bytes (update: %v): %v", most, update, err)
			}
			if got := w.names(); !slices.Equal(got, want) {
				t.Errorf("%d bytes (update: %v): offered are %q", most, update, got)
			}
			for _, f := range w.store.Verify() {
				if !f.Unneeded {
					t.Errorf("%d bytes (update: %v): %+v", most, update, f)
				}
			}
			must(t, w.store.Sweep())
			if !same(before, tree(t, w.dir)) {
				t.Errorf("%d bytes (update: %v): the store has changed", most, update)
			}
		}
		if !slices.Contains(w.names(), "weather_now 1.1.0") || refused < 20 {
			t.Errorf("the counter-proof (update: %v), after %d: offered are %q", update, refused, w.names())
		}
		t.Logf("update: %v: %d sizes of a disk that were too small", update, refused)
	}
}

// within does something while no file of this process can grow beyond a size.
func within(t *testing.T, most uint64, f func() error) error {
	t.Helper()
	var was syscall.Rlimit
	must(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &was))
	must(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: most, Max: was.Max}))
	err := f()
	must(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &was))
	return err
}
