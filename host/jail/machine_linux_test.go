package jail

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stockade-dev/stockade/host/jail/wire"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/rootedfs"
	"github.com/stockade-dev/stockade/host/services"
)

// TestNothingTellsOfUsOrOfOthers: mount tables name none of our directories, and the keys of
// the user cannot be listed.
func TestNothingTellsOfUsOrOfOthers(t *testing.T) {
	if *tier < 1 {
		return // nothing is hidden
	}
	home, dir := newHome(t)
	if err := os.RemoveAll(filepath.Join(home, ".cache/pip")); err != nil { // one that is there alone
		t.Fatal(err)
	}
	layers := newLayers(t)
	const command = "cd /proc/self; cat mountinfo mounts mountstats; cat /proc/keys /proc/key-users /proc/timer_list && echo told; echo end"
	opts := Options{Home: home, LayersDir: layers, Caches: CacheNames}
	var out services.CommandResult
	ours := []string{layers}
	if j := newJail(t, opts); j.layered() {
		s := newStager(t, opts)
		ours = append(ours, s.dir)
		out, _ = s.run(t, dir, command, policy.Options{})
	} else {
		out = in(t, j, dir, command)
	}
	text := string(out.Stdout)
	if !strings.HasSuffix(text, "end\n") || strings.Contains(text, "told\n") || bytes.Contains(out.Stderr, []byte("No such file or directory")) {
		t.Error(describe(out))
	}
	for line := range strings.Lines(text) {
		for _, name := range append(ours, "/upper", "/stage-") {
			if strings.Contains(line, name) {
				t.Errorf("it is told that %q", line)
			}
		}
	}
}

// TestOpenFilesAreCountedOverAllProcesses: a command with too many open files is ended, and
// its staged changes are not kept.
func TestOpenFilesAreCountedOverAllProcesses(t *testing.T) {
	if *tier < 1 {
		return // nobody counts them
	}
	const command = `touch made; for p in 1 2 3 4; do (for i in {20..70}; do eval "exec $i</dev/null" || exit 1; done; touch "$TMPDIR/$p"; exec sleep 60) & done
		while [ ! -e "$TMPDIR/4" ]; do sleep 0.01; done; [ -z "$END" ] && wait; kill $(jobs -p); true`
	few := func(w *wire.World) { w.Limits.AllFiles = 150 }
	told := func(out services.CommandResult) bool {
		return strings.Contains(strings.Join(out.Notes, "\n"), errTooManyFiles.Error())
	}
	dir := t.TempDir()
	out := in(t, newJail(t, Options{}), dir, "END=1; "+command)
	if ended(t, out, 0); told(out) {
		t.Errorf("without that limit it says %q", out.Notes)
	}
	out = in(t, newJail(t, Options{change: few}), dir, command)
	if out.Signal == nil || !told(out) {
		t.Errorf("%s, %q", describe(out), out.Notes)
	}
	if !newJail(t, Options{}).layered() {
		return
	}
	dir = t.TempDir()
	out, set := newStager(t, Options{change: few}).run(t, dir, command, policy.Options{})
	if changes, err := set.Changes(t.Context()); err != nil || len(changes) > 0 || out.Signal == nil || !told(out) {
		t.Errorf("%s, %q, %v: %v", describe(out), out.Notes, changes, err)
	}
}

// TestNoStartWaitsForARemoval: layers of another boot are moved away at once, and removed
// later, which this test delays.
func TestNoStartWaitsForARemoval(t *testing.T) {
	if *tier < 1 {
		return // there are no layers
	}
	home, dir := newHome(t)
	opts := Options{Home: home, LayersDir: newLayers(t), Caches: CacheNames}
	run := func(command string) string {
		j := newJail(t, opts)
		out := in(t, j, dir, command)
		if err := j.Close(); err != nil {
			t.Error(err)
		}
		return string(out.Stdout)
	}
	run(`cd ~/.cache/go-build && mkdir -p $(printf 'd/%.0s' {1..100})`)
	boots, err := filepath.Glob(filepath.Join(opts.LayersDir, "*", "boot"))
	if err != nil || len(boots) != 1 {
		t.Fatalf("there are the layers %q: %v", boots, err)
	}
	held, err := os.Open(filepath.Dir(boots[0]))
	if err := errors.Join(err, os.WriteFile(boots[0], []byte("another"), 0o600), unix.Flock(int(held.Fd()), unix.LOCK_EX)); err != nil {
		t.Fatal(err)
	}
	if said := run("ls -d ~/.cache/go-build/d"); said != "" {
		t.Errorf("it sees %q", said)
	}
	gone := func() []string {
		names, _ := filepath.Glob(filepath.Join(opts.LayersDir, "stockade-gone-*/*/go-build*/d"))
		return names
	}
	if names := gone(); len(names) != 1 {
		t.Errorf("what waits for its removal is %q", names)
	}
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
	rootedfs.Sweep(opts.LayersDir)
	rootedfs.AwaitRemovals(time.Minute)
	if names := gone(); len(names) != 0 {
		t.Errorf("there is still %q", names)
	}
}
