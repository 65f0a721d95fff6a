//go:build unix

package wasi

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stockade-dev/stockade/host/policy"
)

// chain makes directories in each other, with names of so many bytes.
func (g *guestFS) chain(top string, levels, long int) string {
	g.w.T.Helper()
	for i := range levels {
		if i > 0 {
			top += "/" + strings.Repeat("x", long)
		}
		wantErrno(g.w.T, "make a directory", g.Mkdir(g.name(top)), 0)
	}
	return top
}

// What a guest could not name it cannot build of parts either.
func TestATreeIsNotBuiltDeeperThanItsNames(t *testing.T) {
	for name, tc := range map[string]struct{ levels, long int }{
		"levels": {200, 1},
		"bytes":  {12, 200},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			g, s := w.openStaged(nil, nil, w.rw("ws"))
			bottom := g.chain("ws/a", tc.levels, tc.long)
			g.chain("ws/b", tc.levels, tc.long)
			wantErrno(t, "move a tree below another", g.Rename(g.name("ws/b"), g.name(bottom+"/b")), ENAMETOOLONG)
			wantErrno(t, "move half of it", g.Rename(g.name("ws/b"), g.name("ws/c")), 0)
			if changes, err := s.Changes(t.Context()); err != nil || len(changes) != 2*tc.levels {
				t.Errorf("%d changes, %v", len(changes), err)
			}
		})
	}
	w := newWorld(t)
	g, _ := w.openStaged(nil, nil, w.rw("ws"))
	bottom := g.chain("ws/a", maxDepth, 1)
	wantErrno(t, "a directory below", g.Mkdir(g.name(bottom+"/x")), ENAMETOOLONG)
	wantErrno(t, "a file below", g.try(bottom+"/x", WriteOnly|Create), ENAMETOOLONG)
}

func TestAStagedNameIsAsLongAsTheHostsCanBe(t *testing.T) {
	w := newWorld(t)
	g, _ := w.openStaged(nil, nil, w.rw("ws"))
	wantErrno(t, "make a directory that the host does not have", g.Mkdir(g.name("ws/new")), 0)
	long := g.name("ws/new/" + strings.Repeat("x", maxName))
	wantErrno(t, "as long as can be", g.Mkdir(long), 0)
	wantErrno(t, "make a directory", g.Mkdir(long+"x"), ENAMETOOLONG)
	_, errno := g.Open(long+"x", WriteOnly|Create)
	wantErrno(t, "make a file", errno, ENAMETOOLONG)
	wantErrno(t, "move", g.Rename(g.name("ws/f.txt"), long+"x"), ENAMETOOLONG)
}

func TestTheNamesOfChangesAreBounded(t *testing.T) {
	w := newWorld(t)
	g, s := w.openStaged(nil, nil, w.rw("ws"))
	bottom := g.chain("ws/a", 15, 250)
	n := maxPathBytes/len(bottom) + 100
	for i := range n {
		wantErrno(t, "make", g.Mkdir(g.name(fmt.Sprintf("%s/%0250d", bottom, i))), 0)
	}
	if changes, err := s.Changes(t.Context()); !errors.Is(err, errTooMuch) {
		t.Errorf("%d changes, %v", len(changes), err)
	}
	before := w.State()
	if err := s.Commit(t.Context()); !errors.Is(err, errTooMuch) {
		t.Error(err)
	}
	w.Unchanged(before)
}

func TestAChangeSetIsBounded(t *testing.T) {
	for name, change := range map[string]func(*guestFS){
		"its files": func(g *guestFS) {
			for i := range maxChanges + 1 {
				g.write(fmt.Sprintf("ws/%d", i), "x")
			}
		},
		"its bytes": func(g *guestFS) {
			for i := range 4 { // of which the host writes all, and the guest a few
				wantErrno(t, "write", g.try(fmt.Sprintf("ws/large%d", i), WriteOnly), 0)
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
		g, s := w.openStaged(nil, nil, w.rw("ws"))
		change(g)
		s.before = func(op, path string) error { return fmt.Errorf("it was begun: %s %s", op, path) }
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
	g, s := w.openStaged(nil, nil, w.rw("ws"))
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
	g, s := w.openStaged(nil, nil, w.rw("ws"))
	long := strings.Repeat("x", 200)
	for range 3 {
		g.write("ws/t", "x")
		wantErrno(t, "move", g.Rename(g.name("ws/t"), g.name("ws/"+long)), 0)
		if want := int64(nodeBytes + len(long)); s.tree != want || s.budget.memory.used.Load() != want+blockBytes {
			t.Errorf("it takes %d, and %d of the budget", s.tree, s.budget.memory.used.Load())
		}
		wantErrno(t, "remove", g.Unlink(g.name("ws/"+long)), 0)
	}
	if s.tree != 0 {
		t.Errorf("%d are taken", s.tree)
	}
	s.tree = maxTreeBytes - nodeBytes
	wantErrno(t, "make what has no room", g.Mkdir(g.name("ws/new")), ENOSPC)
	s.tree = 0
}

func TestStagesShareABudget(t *testing.T) {
	for name, tc := range map[string]struct {
		memory, disk int64
		bytes        int // that one stage can have
	}{
		"memory only": {memory: 16 * blockBytes, bytes: 15 * blockBytes}, // and a node
		"disk":        {disk: 16 * blockBytes, bytes: 16 * blockBytes},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.Dir("ws2")
			opts := &StageOptions{Budget: NewBudget(tc.memory, tc.disk), MemoryBytes: 1 << 20}
			if tc.disk > 0 {
				opts.Dir, opts.MemoryBytes = w.Path("out"), 1
			}
			a, s := w.openStaged(opts, nil, w.rw("ws"))
			b, other := w.openStaged(opts, nil, w.rw("ws2"))
			fill := func(g *guestFS, p string) (n int) {
				f, errno := g.file(p, WriteOnly|Create)
				wantErrno(t, "open", errno, 0)
				defer f.Close()
				for {
					m, errno := f.Write(make([]byte, blockBytes))
					if n += m; errno != 0 {
						wantErrno(t, "write", errno, ENOSPC)
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
	g, s := w.openStaged(nil, nil, w.rw("ws"))
	g.write("ws/f.txt", "INSIDE")
	w.File("ws/t", "the host")
	w.Rename("ws/t", "ws/f.txt")
	if changes, err := s.Changes(t.Context()); !errors.Is(err, policy.ErrChanged) {
		t.Errorf("%v, %v", changes, err)
	}
}
