//go:build unix

package wasi

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/stage"
)

var (
	sequences     = flag.Uint64("sequences", 60, "sequences of operations that the differential test tries")
	firstSequence = flag.Uint64("first-sequence", 0, "the number of the first of them, by which it is made again")
)

// newDifferential makes the starting files of all sequences, on the host and in a model.
func newDifferential(t *testing.T) (*world, *model) {
	w := newWorld(t)
	if err := os.RemoveAll(w.Path("ws")); err != nil {
		t.Fatal(err)
	}
	w.Dir("ws/d/e")
	m := &model{root: newModelDir(nil)}
	m.put("d", newModelDir(nil))
	m.put("d/e", newModelDir(nil))
	for name, content := range map[string]string{
		"a": "content of a", "d/b": "content of b", "d/e/a": "", "big": strings.Repeat("0123456789", 2000), "run": "#!/bin/sh\n",
	} {
		w.File("ws/"+name, content)
		mode := fs.FileMode(0o644)
		if name == "run" {
			mode = 0o755
		}
		if err := os.Chmod(w.Path("ws/"+name), mode); err != nil {
			t.Fatal(err)
		}
		m.put(name, &modelNode{kind: RegularFile, content: []byte(content), mode: w.ModeText(mode)})
	}
	for name, target := range map[string]string{"l": "d/e", "dl": "nothing", "d/up": "../d/b", "up": "d", "out": "../out/secret", "x": "d/../d"} {
		w.Link("ws/"+name, target)
		m.put(name, &modelNode{kind: SymbolicLink, target: target})
	}
	return w, m
}

// openStaged returns an FS on a stage of its own.
func (w *world) openStaged(opts *stage.Options, masked []string, mounts ...policy.Mount) (*guestFS, *stage.Set) {
	w.T.Helper()
	s, err := stage.New(opts)
	if err != nil {
		w.T.Fatal(err)
	}
	w.T.Cleanup(func() { s.Drop() })
	for i := range masked {
		masked[i] = w.Path(masked[i])
	}
	f, err := New(mounts, masked, &Options{Stage: s})
	if err != nil {
		w.T.Fatal(err)
	}
	w.T.Cleanup(func() { f.Close() })
	return &guestFS{f, w}, s
}

// runDifferential runs the same operations on the model, on an FS that writes through and
// on a staged one.
func runDifferential(t *testing.T, program []byte, commit bool) {
	w, m := newDifferential(t)
	through := newWriteThrough(t)
	staged, s := w.openStaged(&stage.Options{Dir: w.Path("out"), MemoryBytes: 16 << 10}, nil, w.rw("ws"))
	a, b, c := &modelSubject{m: m}, &fsSubject{g: through}, &fsSubject{g: staged}
	before := w.State()
	var log []string
	for i, op := range decode(program) {
		want, got, mine := a.do(op), b.do(op), c.do(op)
		log = append(log, fmt.Sprintf("%d: %v = %.60q", i, op, mine))
		if want != got || got != mine {
			t.Fatalf("model   %.300q\nthrough %.300q\nstaged  %.300q\n%s", want, got, mine, strings.Join(log, "\n"))
		}
	}
	w.unchangedWorkspace(before)
	if diff := cmp.Diff(m.tree(false), through.w.Tree()); diff != "" {
		t.Fatalf("written through (-model +host):\n%s\n%s", diff, strings.Join(log, "\n"))
	}
	changes, err := s.Changes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	staged.Close()
	if !commit {
		if err := s.Drop(); err != nil {
			t.Fatal(err)
		}
		w.unchangedWorkspace(before)
		return
	}
	if err := s.Commit(t.Context()); err != nil {
		t.Fatalf("%v\n%v\n%s", err, changes, strings.Join(log, "\n"))
	}
	if diff := cmp.Diff(m.tree(true), w.Tree()); diff != "" {
		t.Fatalf("staged (-model +host):\n%s\n%v\n%s", diff, changes, strings.Join(log, "\n"))
	}
}

// runMasked is runDifferential for a mount with masked paths, without the model, which
// cannot mask.
func runMasked(t *testing.T, program []byte) {
	w, _ := newDifferential(t)
	other, _ := newDifferential(t)
	masked := func() []string { return []string{"ws/d/e", "ws/c/later"} }
	staged, s := w.openStaged(nil, masked(), w.rw("ws"))
	b, c := &fsSubject{g: other.openMasked(masked(), other.rw("ws"))}, &fsSubject{g: staged}
	before := w.State()
	var log []string
	for i, op := range decode(program) {
		want, got := b.do(op), c.do(op)
		log = append(log, fmt.Sprintf("%d: %v = %.60q", i, op, got))
		if want != got {
			t.Fatalf("through %.300q\nstaged  %.300q\n%s", want, got, strings.Join(log, "\n"))
		}
	}
	w.unchangedWorkspace(before)
	if err := s.Commit(t.Context()); err != nil {
		t.Fatalf("%v\n%s", err, strings.Join(log, "\n"))
	}
	if diff := cmp.Diff(withoutModes(other.Tree()), withoutModes(w.Tree())); diff != "" {
		t.Fatalf("(-through +staged):\n%s\n%s", diff, strings.Join(log, "\n"))
	}
}

// withoutModes leaves out the modes that files have taken from others they replaced.
func withoutModes(tree map[string]string) map[string]string {
	for p, desc := range tree {
		if kind, rest, _ := strings.Cut(desc, " "); kind == "file" {
			_, tree[p], _ = strings.Cut(rest, " ")
		}
	}
	return tree
}

func newWriteThrough(t *testing.T) *guestFS {
	w, _ := newDifferential(t)
	return w.open(w.rw("ws"))
}

func (w *world) unchangedWorkspace(before map[string]string) {
	w.T.Helper()
	after := w.State()
	for _, state := range []map[string]string{before, after} {
		for p := range state {
			if p == "out" || strings.Contains(p, ".stockade-stage") {
				delete(state, p) // the directory of the stage
			}
		}
	}
	if diff := cmp.Diff(before, after); diff != "" {
		w.T.Fatalf("the host was changed (-before +after):\n%s", diff)
	}
}

func TestAStagedGuestSeesWhatAnyOtherSees(t *testing.T) {
	for i := range *sequences {
		seed := *firstSequence + i
		t.Run(fmt.Sprint(seed), func(t *testing.T) { runDifferential(t, randomOperations(seed), seed%5 != 0) })
		if seed%3 == 0 {
			t.Run(fmt.Sprint(seed, " masked"), func(t *testing.T) { runMasked(t, randomOperations(seed)) })
		}
		if t.Failed() {
			return
		}
	}
}

func FuzzStage(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(randomOperations(seed), seed%2 == 0)
	}
	f.Fuzz(func(t *testing.T, program []byte, masked bool) {
		if masked {
			runMasked(t, program)
		} else {
			runDifferential(t, program, true)
		}
	})
}
