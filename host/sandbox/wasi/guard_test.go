//go:build unix

package wasi

import (
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// reach tries every operation on a name that must seem not to exist.
func reach(g *guestFS, p string) {
	t := g.w.T
	t.Helper()
	name := g.name(p)
	_, stat := g.Stat(name)
	_, lstat := g.Lstat(name)
	target, readlink := g.Readlink(name)
	if target != "" {
		t.Errorf("readlink %s told %q", p, target)
	}
	for what, errno := range map[string]Errno{
		"stat":      stat,
		"lstat":     lstat,
		"readlink":  readlink,
		"read":      g.try(p, ReadOnly),
		"list":      g.try(p, DirectoryOnly),
		"slash":     g.try(p+"/", ReadOnly),
		"write":     g.try(p, ReadWrite),
		"truncate":  g.try(p, Truncate),
		"create":    g.try(p, Create|ReadWrite),
		"exclusive": g.try(p, Create|Exclusive|ReadWrite),
		"mkdir":     g.Mkdir(name),
		"rmdir":     g.Rmdir(name),
		"unlink":    g.Unlink(name),
		"rename":    g.Rename(name, g.name("ws/stolen")),
		"onto":      g.Rename(g.name("ws/f.txt"), name),
		"onto dir":  g.Rename(g.name("ws/d"), name),
		"utimes":    g.SetTimes(name, true, 1, 1),
		"lutimes":   g.SetTimes(name, false, 1, 1),
		"link":      g.Link(name, g.name("ws/stolen")),
		"symlink":   g.Symlink("x", name),
		"inside":    g.try(p+"/key", ReadOnly),
		"new":       g.try(p+"/new", Create|ReadWrite),
		"mkdir in":  g.Mkdir(name + "/new"),
		"rename in": g.Rename(name+"/key", g.name("ws/stolen")),
		"into":      g.Rename(g.name("ws/f.txt"), name+"/f.txt"),
		"deeper":    g.try(p+"/sub/key", ReadOnly),
		"nowhere":   g.try(p+"/no/such", ReadOnly),
		"unlink in": g.Unlink(name + "/key"),
		"link out":  g.Link(name+"/key", g.name("ws/stolen")),
	} {
		wantErrno(t, what+" "+p, errno, errOutside)
	}
}

func TestMaskedDirectoryIsNotReached(t *testing.T) {
	for _, tc := range []struct {
		name   string
		plant  func(*world)
		masked string
		try    []string
	}{
		{"by name", func(w *world) {}, "ws/secrets", []string{"ws/secrets", "ws/d/../secrets", "ws/./secrets"}},
		{"deep", func(w *world) { w.File("ws/a/b/c/key", canary) }, "ws/a/b/c", []string{"ws/a/b/c"}},
		{"by a link", func(w *world) { w.Link("ws/l", "secrets") }, "ws/secrets", []string{"ws/secrets"}},
		{"by a link to a directory above", func(w *world) {
			w.File("ws/a/b/key", canary)
			w.Link("ws/l", "a")
			w.Link("ws/m", "l/../a")
		}, "ws/a/b", []string{"ws/a/b", "ws/l/b", "ws/m/b"}},
		{"named by way of a link", func(w *world) {
			w.File("ws/a/b/key", canary)
			w.Link("ws/l", "a")
		}, "ws/l/b", []string{"ws/a/b", "ws/l/b"}},
		{"named by way of a link outside", func(w *world) { w.Link("out/l", w.Path("ws")) }, "out/l/secrets", []string{"ws/secrets"}},
		{"a link itself", func(w *world) { w.Link("ws/l", "secrets") }, "ws/l", []string{"ws/secrets"}},
		{"in other case", func(w *world) {}, "ws/new", []string{"ws/new", "ws/New", "ws/NEW"}},
		{"missing", func(w *world) {}, "ws/new", []string{"ws/new"}},
		{"missing, and its parent", func(w *world) {}, "ws/no/new", []string{"ws/no/new"}},
		{"missing, named by way of a link", func(w *world) { w.Link("ws/l", "d") }, "ws/l/new", []string{"ws/l/new", "ws/d/new"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t)
			w.File("ws/secrets/key", canary)
			w.File("ws/secrets/sub/key", canary)
			tc.plant(w)
			g := w.openMasked([]string{tc.masked}, w.rw("ws"))
			before := w.State()
			if tc.name == "missing, and its parent" {
				// The parent may be made.
				wantErrno(t, "mkdir of the parent", g.Mkdir(g.name("ws/no")), 0)
				before = w.State()
			}
			for _, p := range tc.try {
				reach(g, p)
			}
			for _, p := range []string{"ws/l/key", "ws/l/sub/key", "ws/m/b/key"} {
				if errno := g.try(p, ReadWrite); errno == 0 {
					t.Errorf("%s was opened", p)
				}
			}
			w.CheckUnchanged(before)
			if content, errno := g.content("ws/f.txt", 0); content != "inside" || errno != 0 {
				t.Errorf("reading another file gave %q, %v", content, errno)
			}
		})
	}
}

func TestMaskedDirectoryIsNotListed(t *testing.T) {
	w := newWorld(t)
	w.File("ws/secrets/key", canary)
	w.Link("ws/d/up", "..")
	g := w.openMasked([]string{"ws/secrets", "ws/later", "ws/d/e/later"}, w.rw("ws"))
	w.Dir("ws/later")
	w.Dir("ws/d/e/later")
	for p, want := range map[string][]string{
		"ws":      {"d", "f.txt"},
		"ws/d":    {"e", "g.txt", "up"},
		"ws/d/up": {"d", "f.txt"},
		"ws/d/e":  {},
	} {
		if diff := cmp.Diff(want, g.list(p)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", p, diff)
		}
	}
	reach(g, "ws/later")
	reach(g, "ws/d/e/later")
}

// A masked directory is known by its identity and not by its name.
func TestMaskedDirectoryStaysMaskedWhenRenamed(t *testing.T) {
	w := newWorld(t)
	w.File("ws/secrets/key", canary)
	w.File("ws/secrets/sub/key", canary)
	g := w.openMasked([]string{"ws/secrets"}, w.rw("ws"))
	w.Rename("ws/secrets", "ws/d/innocent")
	reach(g, "ws/d/innocent")
	reach(g, "ws/secrets")
	if diff := cmp.Diff([]string{"g.txt"}, g.list("ws/d")); diff != "" {
		t.Errorf("listed (-want +got):\n%s", diff)
	}
	// A directory that takes its place is masked as well.
	w.File("ws/secrets/key", canary)
	reach(g, "ws/secrets")
}

// The next call finds a masked path by its name. So no directory on the way can be moved.
func TestWhatLeadsToAMaskedDirectoryStays(t *testing.T) {
	w := newWorld(t)
	w.File("ws/a/b/secrets/key", canary)
	w.Link("ws/l1", "a")
	w.Link("ws/a/l2", "b")
	w.Dir("ws/e")
	g := w.openMasked([]string{"ws/l1/l2/secrets", "ws/e/x/later"}, w.rw("ws"))
	before := w.State()
	for _, p := range []string{"ws/a", "ws/a/b", "ws/l1", "ws/a/l2", "ws/l1/b", "ws/e"} {
		wantErrno(t, "rename "+p, g.Rename(g.name(p), g.name("ws/moved")), errOutside)
		wantErrno(t, "unlink "+p, g.Unlink(g.name(p)), errOutside)
		wantErrno(t, "rmdir "+p, g.Rmdir(g.name(p)), errOutside)
		wantErrno(t, "replace "+p, g.Rename(g.name("ws/d"), g.name(p)), errOutside)
	}
	wantErrno(t, "onto a missing parent", g.Rename(g.name("ws/d"), g.name("ws/e/x")), errOutside)
	w.CheckUnchanged(before)
	wantErrno(t, "write beside it", g.try("ws/l1/l2/new", Create|ReadWrite), 0)
	wantErrno(t, "rename beside it", g.Rename(g.name("ws/a/b/new"), g.name("ws/d/new")), 0)
	if _, err := os.Stat(w.Path("ws/d/new")); err != nil {
		t.Error(err)
	}
}

func TestMaskOfAMountIsRefused(t *testing.T) {
	w := newWorld(t)
	w.Link("l", "ws")
	for _, masked := range []string{"ws", "", "l"} {
		f, err := New(mountsOf(w.rw("ws")), []string{w.Path(masked)}, nil)
		if err == nil {
			f.Close()
			t.Errorf("%q masked and ws mounted", masked)
		}
	}
	for _, mount := range []string{"ws/d", "l/d"} {
		f, err := New(mountsOf(w.rw(mount)), []string{w.Path("ws")}, nil)
		if err == nil {
			f.Close()
			t.Errorf("ws masked and %q mounted", mount)
		}
	}
	for _, masked := range []string{"relative", w.Base + "/ws/../out", ""} {
		f, err := New(mountsOf(w.rw("ws")), []string{masked}, nil)
		if err == nil {
			f.Close()
			t.Errorf("%q was accepted", masked)
		}
	}
	w.Link("loop", "loop")
	if f, err := New(mountsOf(w.rw("ws")), []string{w.Path("loop/x")}, nil); err == nil {
		f.Close()
		t.Error("a loop was accepted")
	}
}

func TestMaskElsewhereCostsNothing(t *testing.T) {
	w := newWorld(t)
	g := w.openMasked([]string{"out", "wsx", "nothing/here"}, w.rw("ws"))
	if g.mounts[0].guard != nil {
		t.Error("the mount is guarded")
	}
}

func TestNestedMounts(t *testing.T) {
	for _, tc := range []struct {
		name         string
		outer, inner bool // with write access
	}{
		{"read-only in writable", true, false},
		{"writable in read-only", false, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t)
			w.File("ws/a/sub/x", "nested")
			w.Link("ws/l", "a/sub")
			w.Link("ws/d/l", "../a")
			outer, inner := w.ro("ws"), w.ro("ws/a/sub")
			outer.Write, inner.Write = tc.outer, tc.inner
			g := w.open(outer, inner)
			want := func(write bool) Errno {
				if write {
					return 0
				}
				return errReadOnly
			}
			before := w.State()
			// No other name reaches the nested directory.
			for _, p := range []string{"ws/l", "ws/l/x", "ws/d/l/sub", "ws/d/l/sub/x"} {
				wantErrno(t, "read "+p, g.try(p, ReadOnly), errOutside)
				wantErrno(t, "write "+p, g.try(p, ReadWrite), errOutside)
				wantErrno(t, "create "+p+"/new", g.try(p+"/new", ReadWrite|Create), errOutside)
			}
			// Nor can it be moved to a place that a name reaches.
			for _, p := range []string{"ws/a", "ws/a/sub"} {
				if errno := g.Rename(g.name(p), g.name("ws/moved")); errno == 0 {
					t.Errorf("%s was renamed", p)
				}
				if errno := g.Rmdir(g.name(p)); errno == 0 {
					t.Errorf("%s was removed", p)
				}
			}
			if errno := g.Rename(g.name("ws/a/sub/x"), g.name("ws/x")); errno == 0 {
				t.Error("renamed from one to the other")
			}
			w.CheckUnchanged(before)
			wantErrno(t, "create outside", g.try("ws/a/new", ReadWrite|Create), want(tc.outer))
			wantErrno(t, "create inside", g.try("ws/a/sub/new", ReadWrite|Create), want(tc.inner))
			wantErrno(t, "dotdot out", g.try("ws/a/sub/../new2", ReadWrite|Create), want(tc.outer))
			wantErrno(t, "dotdot in", g.try("ws/a/../a/sub/new2", ReadWrite|Create), want(tc.inner))
			if content, errno := g.content("ws/a/sub/x", 0); content != "nested" || errno != 0 {
				t.Errorf("reading gave %q, %v", content, errno)
			}
			if names := g.list("ws/a"); !slices.Contains(names, "sub") {
				t.Errorf("the parent lists %v", names)
			}
		})
	}
}

func TestNestedMountHidesWhatIsThere(t *testing.T) {
	w := newWorld(t)
	w.File("ws/sub/x", "nested")
	g := w.open(w.rw("ws"), w.ro("ws/sub"))
	w.Rename("ws/sub", "moved")
	w.File("ws/sub", canary)
	if content, errno := g.content("ws/sub/x", 0); content != "nested" || errno != 0 {
		t.Errorf("reading gave %q, %v", content, errno)
	}
	if diff := cmp.Diff([]string{"d", "f.txt", "sub"}, g.list("ws")); diff != "" {
		t.Errorf("listed (-want +got):\n%s", diff)
	}
	st, errno := g.Lstat(g.name("ws/sub"))
	if errno != 0 || st.Type != Directory {
		t.Errorf("lstat gave %v, %v", st.Type, errno)
	}
	wantErrno(t, "unlink", g.Unlink(g.name("ws/sub")), errReadOnly)
	if got, err := os.ReadFile(w.Path("ws/sub")); err != nil || string(got) != canary {
		t.Errorf("the file of the host is %q, %v", got, err)
	}
}
