//go:build unix

package wasi

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/stage"
)

func TestAStageOfNestedMounts(t *testing.T) {
	w := newWorld(t)
	w.File("ws/ro/x", "read only")
	w.File("ws/in/x", "inner")
	g, s := w.openStaged(nil, nil, w.rw("ws"), w.ro("ws/ro"), w.rw("ws/in"))
	before := w.State()
	g.write("ws/new", "x")
	g.write("ws/in/x", "changed")
	wantErrno(t, "write to a read-only mount", g.try("ws/ro/x", ReadWrite), EROFS)
	wantErrno(t, "create in a read-only mount", g.try("ws/ro/new", WriteOnly|Create), EROFS)
	wantErrno(t, "rename to another mount", g.Rename(g.name("ws/new"), g.name("ws/in/new")), EXDEV)
	wantErrno(t, "rename of a mount point", g.Rename(g.name("ws/in"), g.name("ws/other")), EXDEV)
	wantErrno(t, "removal of a mount point", g.Rmdir(g.name("ws/in")), EPERM)
	if diff := cmp.Diff([]string{"d", "f.txt", "in", "new", "ro"}, g.list("ws")); diff != "" {
		t.Error(diff)
	}
	w.CheckUnchanged(before)
	if diff := cmp.Diff([]string{`modified in/x "inner" "changed"`, `created new - "x"`}, w.FormatChanges(s.Changes(t.Context()))); diff != "" {
		t.Error(diff)
	}
	if err := s.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if w.Content("ws/in/x") != "changed" || w.Content("ws/new") != "x" || w.Content("ws/ro/x") != "read only" {
		t.Errorf("%v", w.Tree())
	}
}

func TestAStageHasTheLimitsOfTheFS(t *testing.T) {
	w := newWorld(t)
	w.File("out/h", "linked")
	w.HardLink("ws/h", "out/h")
	limits := Limits{MaxWriteBytes: 1000, MaxFileBytes: 500, MaxCreated: 3, MaxOpenFiles: 1}
	var fuel [2]uint64
	var got [2][]Errno
	for i := range 2 {
		var s *stage.Set
		if i == 1 {
			var err error
			if s, err = stage.New(nil); err != nil {
				t.Fatal(err)
			}
			defer s.Drop()
		}
		limits.Charge = func(n uint64) { fuel[i] += n }
		f, err := New([]policy.Mount{w.rw("ws")}, nil, &Options{Limits: limits, Stage: s})
		if err != nil {
			t.Fatal(err)
		}
		g := &guestFS{f, w}
		note := func(errno Errno) { got[i] = append(got[i], errno) }
		h, errno := g.file("ws/new", ReadWrite|Create)
		note(errno)
		note(g.try("ws/f.txt", ReadOnly)) // one file is open
		for range 3 {
			_, errno := h.Pwrite([]byte(strings.Repeat("x", 400)), 0)
			note(errno)
		}
		_, errno = h.Pwrite([]byte("x"), 500)
		note(errno)
		note(h.Truncate(501))
		h.Close()
		note(g.try("ws/h", ReadWrite))
		note(g.try("ws/h", ReadOnly))
		note(g.Unlink(g.name("ws/new")))
		for _, p := range []string{"ws/1", "ws/2", "ws/3"} {
			note(g.Mkdir(g.name(p)))
		}
		for _, p := range []string{"ws/1", "ws/2"} {
			note(g.Rmdir(g.name(p)))
		}
		f.Close()
	}
	if diff := cmp.Diff(got[0], got[1]); diff != "" {
		t.Errorf("errors (-through +staged):\n%s", diff)
	}
	if fuel[0] != fuel[1] {
		t.Errorf("fuel %d and %d", fuel[0], fuel[1])
	}
}

func TestOneDirectoryIsNotStagedTwice(t *testing.T) {
	w := newWorld(t)
	w.Link("again", "ws")
	s, err := stage.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Drop()
	if f, err := New([]policy.Mount{w.rw("ws"), w.ro("again")}, nil, &Options{Stage: s}); err == nil {
		f.Close()
		t.Error("it is")
	}
}
