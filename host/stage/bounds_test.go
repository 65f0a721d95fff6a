//go:build unix

package stage

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/stockade-dev/stockade/host/policy"
)

// A path that is too long to be named cannot be built of parts, either.
func TestATreeIsNotBuiltDeeperThanItsNames(t *testing.T) {
	for name, tc := range map[string]struct{ levels, long int }{
		"levels": {200, 1},
		"bytes":  {12, 200},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			g, s := w.open(nil)
			bottom := g.chain("ws/a", tc.levels, tc.long)
			g.chain("ws/b", tc.levels, tc.long)
			wantErr(t, "move a tree below another", g.rename("ws/b", bottom+"/b"), syscall.ENAMETOOLONG)
			wantErr(t, "move half of it", g.rename("ws/b", "ws/c"), nil)
			if changes, err := s.Changes(t.Context()); err != nil || len(changes) != 2*tc.levels {
				t.Errorf("%d changes, %v", len(changes), err)
			}
		})
	}
	w := newWorld(t)
	g, _ := w.open(nil)
	bottom := g.chain("ws/a", maxDepth, 1)
	wantErr(t, "a directory below", g.mkdir(bottom+"/x"), syscall.ENAMETOOLONG)
	wantErr(t, "a file below", g.try(bottom+"/x", os.O_WRONLY|os.O_CREATE), syscall.ENAMETOOLONG)
}

func TestAStagedNameIsAsLongAsTheHostsCanBe(t *testing.T) {
	w := newWorld(t)
	g, _ := w.open(nil)
	wantErr(t, "make a directory that the host does not have", g.mkdir("ws/new"), nil)
	long := "ws/new/" + strings.Repeat("x", maxName)
	wantErr(t, "as long as can be", g.mkdir(long), nil)
	wantErr(t, "make a directory", g.mkdir(long+"x"), syscall.ENAMETOOLONG)
	_, err := g.file(long+"x", os.O_WRONLY|os.O_CREATE)
	wantErr(t, "make a file", err, syscall.ENAMETOOLONG)
	wantErr(t, "move", g.rename("ws/f.txt", long+"x"), syscall.ENAMETOOLONG)
}

func TestTheNamesOfChangesAreBounded(t *testing.T) {
	w := newWorld(t)
	g, s := w.open(nil)
	bottom := g.chain("ws/a", 15, 250)
	n := maxPathBytes/len(bottom) + 100
	for i := range n {
		wantErr(t, "make", g.mkdir(fmt.Sprintf("%s/%0250d", bottom, i)), nil)
	}
	if changes, err := s.Changes(t.Context()); !errors.Is(err, errTooMuch) {
		t.Errorf("%d changes, %v", len(changes), err)
	}
	before := w.State()
	if err := s.Commit(t.Context()); !errors.Is(err, errTooMuch) {
		t.Error(err)
	}
	w.CheckUnchanged(before)
}

func TestAChangeSetIsBounded(t *testing.T) {
	for name, change := range map[string]func(*editor){
		"its files": func(g *editor) {
			for i := range maxChanges + 1 {
				g.write(fmt.Sprintf("ws/%d", i), "x")
			}
		},
		"its bytes": func(g *editor) {
			for i := range 4 { // the host writes them all, and the call a few
				wantErr(t, "write", g.try(fmt.Sprintf("ws/large%d", i), os.O_WRONLY), nil)
			}
		},
	} {
		w := newWorld(t)
		for i := range 4 {
			w.File(fmt.Sprintf("ws/large%d", i), "")
			if err := os.Truncate(w.Path(fmt.Sprintf("ws/large%d", i)), maxNewBytes/4+1); err != nil {
				t.Fatal(err)
			}
		}
		g, s := w.open(nil)
		change(g)
		s.stepHook = func(op, path string) error { return fmt.Errorf("it was begun: %s %s", op, path) }
		if changes, err := s.Changes(t.Context()); !errors.Is(err, errTooMuch) {
			t.Errorf("%s: %d changes, %v", name, len(changes), err)
		}
		if err := s.Commit(t.Context()); !errors.Is(err, errTooMuch) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestChangesEndsWithItsContext(t *testing.T) {
	w := newWorld(t)
	g, s := w.open(nil)
	g.write("ws/new", "x")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Changes(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := s.Commit(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestANameThatIsMadeAndRemovedTakesNothing(t *testing.T) {
	w := newWorld(t)
	g, s := w.open(nil)
	long := strings.Repeat("x", 200)
	for range 3 {
		g.write("ws/t", "x")
		wantErr(t, "move", g.rename("ws/t", "ws/"+long), nil)
		if want := int64(nodeBytes + len(long)); s.treeBytes != want || s.budget.memory.used.Load() != want+blockBytes {
			t.Errorf("it takes %d, and %d of the budget", s.treeBytes, s.budget.memory.used.Load())
		}
		wantErr(t, "remove", g.remove("ws/"+long), nil)
	}
	if s.treeBytes != 0 {
		t.Errorf("%d are taken", s.treeBytes)
	}
	s.treeBytes = maxTreeBytes - nodeBytes
	wantErr(t, "make what has no room", g.mkdir("ws/new"), syscall.ENOSPC)
	s.treeBytes = 0
}

func TestStagesShareABudget(t *testing.T) {
	for name, tc := range map[string]struct {
		memory, disk int64
		bytes        int // that one set can have
	}{
		"memory only": {memory: 16 * blockBytes, bytes: 15 * blockBytes}, // and a node
		"disk":        {disk: 16 * blockBytes, bytes: 16 * blockBytes},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.Dir("ws2")
			opts := &Options{Budget: NewBudget(tc.memory, tc.disk), MemoryBytes: 1 << 20}
			if tc.disk > 0 {
				opts.Dir, opts.MemoryBytes = w.Path("out"), 1
			}
			a, s := w.openDir(opts, "ws")
			b, other := w.openDir(opts, "ws2")
			fill := func(g *editor, p string) (n int) {
				f, err := g.file(p, os.O_WRONLY|os.O_CREATE)
				wantErr(t, "open", err, nil)
				defer f.close()
				for {
					m, err := f.Write(make([]byte, blockBytes))
					if n += m; err != nil {
						wantErr(t, "write", err, syscall.ENOSPC)
						return n
					}
				}
			}
			if n := fill(a, "ws/x"); n != tc.bytes {
				t.Errorf("the first has %d", n)
			}
			if n := fill(b, "ws2/x"); n != 0 && tc.disk > 0 {
				t.Errorf("the second has %d", n)
			}
			if err := s.Drop(); err != nil {
				t.Error(err)
			}
			if n := fill(b, "ws2/y"); n < tc.bytes-blockBytes {
				t.Errorf("the second has %d now", n)
			}
			if err := errors.Join(other.Drop(), other.Drop(), s.Drop()); err != nil {
				t.Error(err)
			}
			if m, d := opts.Budget.memory.used.Load(), opts.Budget.disk.used.Load(); m != 0 || d != 0 {
				t.Errorf("%d and %d are never given back", m, d)
			}
		})
	}
}

func TestWhatCannotBeComparedHasChanged(t *testing.T) {
	w := newWorld(t)
	g, s := w.open(nil)
	g.write("ws/f.txt", "INSIDE")
	w.File("ws/t", "the host")
	w.Rename("ws/t", "ws/f.txt")
	if changes, err := s.Changes(t.Context()); !errors.Is(err, policy.ErrChanged) {
		t.Errorf("%v, %v", changes, err)
	}
}
