//go:build unix

package wasi

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/stage"
)

// write makes or overwrites a file as the guest.
func (g *guestFS) write(p, content string) {
	g.w.T.Helper()
	f, errno := g.file(p, WriteOnly|Create|Truncate)
	wantErrno(g.w.T, "open "+p, errno, 0)
	defer f.Close()
	if n, errno := f.Write([]byte(content)); n != len(content) || errno != 0 {
		g.w.T.Errorf("write %s: %d, %v", p, n, errno)
	}
}

// replace writes a file like editors: a temporary file beside it, and a rename.
func (g *guestFS) replace(p, content string) {
	g.w.T.Helper()
	g.write(p+".tmp", content)
	wantErrno(g.w.T, "rename", g.Rename(g.name(p+".tmp"), g.name(p)), 0)
}

func TestAStageLeavesNothing(t *testing.T) {
	w := newWorld(t)
	w.Dir("stage")
	g, s := w.openStaged(&stage.Options{Dir: w.Path("stage"), MemoryBytes: 1}, nil, w.rw("ws"), w.ro("stage"))
	before := w.State()
	g.write("ws/new", strings.Repeat("x", 100_000))
	fi, err := os.Stat(s.Dir())
	if err != nil || fi.Mode().Perm() != 0o700 {
		t.Errorf("%v %v", fi, err)
	}
	if left, err := os.ReadDir(s.Dir()); err != nil || len(left) > 0 {
		t.Errorf("a crash now would leave %v: %v", left, err)
	}
	if names := g.list("stage"); len(names) > 0 {
		t.Errorf("the guest sees %v", names)
	}
	wantErrno(t, "open the stage", g.try("stage/"+filepath.Base(s.Dir()), ReadOnly), EPERM)
	f, errno := g.file("ws/new", ReadOnly)
	wantErrno(t, "open", errno, 0)
	if err := s.Drop(); err != nil {
		t.Fatal(err)
	}
	if _, errno := f.Read(make([]byte, 1)); errno != EBADF {
		t.Errorf("read after drop: %v", errno)
	}
	wantErrno(t, "open after drop", g.try("ws/new", ReadOnly), EBADF)
	if err := s.Commit(t.Context()); err != stage.ErrDropped {
		t.Errorf("commit after drop: %v", err)
	}
	if left, err := os.ReadDir(w.Path("stage")); err != nil || len(left) > 0 {
		t.Errorf("left %v: %v", left, err)
	}
	delete(before, "stage")
	for p := range before {
		if strings.HasPrefix(p, "stage") {
			delete(before, p)
		}
	}
	after := w.State()
	delete(after, "stage")
	if diff := cmp.Diff(before, after); diff != "" {
		t.Error(diff)
	}
}

// While a directory changes, a reader neither misses an entry nor sees one twice.
func TestAStagedDirectoryIsReadWhileItChanges(t *testing.T) {
	w := newWorld(t)
	for i := range 100 {
		w.File(fmt.Sprintf("ws/many/%03d", i), "x")
	}
	g, _ := w.openStaged(nil, nil, w.rw("ws"))
	g.write("ws/many/new", "x")
	d, errno := g.dir("ws/many")
	wantErrno(t, "open", errno, 0)
	defer d.Close()
	got := map[string]int{}
	for cookie, i := uint64(0), 0; ; i++ {
		e, more, errno := d.Entry(cookie)
		if errno != 0 || !more {
			wantErrno(t, "read", errno, 0)
			break
		}
		got[e.Name]++
		if i < 50 {
			g.write(fmt.Sprintf("ws/many/%03d", 2*i), "y")
			g.replace(fmt.Sprintf("ws/many/%03d", 2*i+1), "y")
		}
		cookie = e.Next
	}
	for name, n := range got {
		if n != 1 {
			t.Errorf("%s came %d times", name, n)
		}
	}
	for i := range 100 {
		if got[fmt.Sprintf("%03d", i)] == 0 {
			t.Errorf("%03d is missing", i)
		}
	}
}

// A guest that has read a file does not overwrite a file that has taken its place.
func TestNothingIsWrittenOverWhatWasNotRead(t *testing.T) {
	for name, change := range map[string]func(*guestFS) Errno{
		"opened to be written":   func(g *guestFS) Errno { return g.try("ws/f.txt", WriteOnly|Truncate) },
		"opened for both":        func(g *guestFS) Errno { return g.try("ws/f.txt", ReadWrite) },
		"removed":                func(g *guestFS) Errno { return g.Unlink(g.name("ws/f.txt")) },
		"replaced":               func(g *guestFS) Errno { return g.Rename(g.name("ws/d/g.txt"), g.name("ws/f.txt")) },
		"moved and then written": func(g *guestFS) Errno { g.Rename(g.name("ws/f.txt"), g.name("ws/x")); return g.try("ws/x", ReadWrite) },
	} {
		w := newWorld(t)
		g, s := w.openStaged(nil, nil, w.rw("ws"))
		wantErrno(t, "read", g.try("ws/f.txt", ReadOnly), 0)
		for _, content := range []string{"the editor", "the editor again"} { // it is not forgotten
			w.File("ws/t", content)
			w.Rename("ws/t", "ws/f.txt")
			if got, errno := g.content("ws/f.txt", ReadOnly); got != content {
				t.Errorf("%s: read %q, %v", name, got, errno)
			}
		}
		wantErrno(t, name, change(g), EAGAIN)
		if err := s.Commit(t.Context()); err != nil && !errors.Is(err, policy.ErrChanged) {
			t.Error(err)
		}
		if !slices.Contains(w.Contents("ws"), "the editor again") {
			t.Errorf("%s: what the editor wrote is lost", name)
		}
	}
	w := newWorld(t)
	g, _ := w.openStaged(nil, nil, w.rw("ws"))
	wantErrno(t, "read", g.try("ws/f.txt", ReadOnly), 0)
	os.Remove(w.Path("ws/f.txt"))
	wantErrno(t, "make what was removed", g.try("ws/f.txt", WriteOnly|Create), EAGAIN)
	wantErrno(t, "move to it", g.Rename(g.name("ws/d/g.txt"), g.name("ws/f.txt")), EAGAIN)
	wantErrno(t, "another", g.try("ws/other", WriteOnly|Create), 0)
}

// A masked path may be made on the host in the place of something staged.
func TestACommitDoesNotWriteBesideWhatIsMasked(t *testing.T) {
	w := newWorld(t)
	g, s := w.openStaged(nil, []string{"ws/later/key"}, w.rw("ws"))
	wantErrno(t, "make a directory", g.Mkdir(g.name("ws/later")), 0)
	g.write("ws/later/x", "x")
	w.File("ws/later/key", canary)
	before := w.State()
	if err := s.Commit(t.Context()); !errors.Is(err, policy.ErrChanged) {
		t.Errorf("commit: %v", err)
	}
	w.CheckUnchanged(before)
}

// The host sets modes where a guest may write, and nowhere else.
func TestSetExecutable(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"ws/f", "ws/secret/f", "ws/linked", "ws/.git/hooks/pre-commit", "read/f"} {
		w.File(name, "x")
	}
	w.Dir("ws/dir")
	w.Link("ws/link", "f")
	w.HardLink("ws/linked2", "ws/linked")
	g, s := w.openStaged(nil, []string{"ws/secret"}, w.rw("ws"), w.ro("read"))
	before := w.State()
	g.write("ws/new", "y")
	for name, want := range map[string]Errno{
		"ws/f": 0, "ws/new": 0, "ws/dir": errNotFileOrDir, "ws/link": errNotFileOrDir, "ws/gone": errNotFileOrDir, "ws/linked": EMLINK, "ws/secret/f": errOutside, "read/f": errReadOnly, "outside": errReadOnly, "/etc/passwd": errOutside, "ws/../../x": errOutside,
	} {
		if got := g.SetExecutable(g.name(name), true); got != want && (want == 0 || got == 0) {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
	wantErrno(t, "a file of the host's", w.open(w.rw("ws")).SetExecutable(g.name("ws/f"), true), errNotFileOrDir)
	changes, err := s.Changes(t.Context())
	if err != nil || len(changes) != 2 || changes[0].After.Mode.Perm()&0o100 == 0 || changes[1].After.Mode.Perm()&0o100 == 0 {
		t.Errorf("the changes are %+v, %v", changes, err)
	}
	w.CheckUnchanged(before)
}

// Names that are not UTF-8 can be read in the encoding of package filename only.
func TestNamesThatAreNoUTF8(t *testing.T) {
	w := newWorld(t)
	for name, content := range map[string]string{"caf\xe9": "bytes", `"caf\xe9"`: "text", "dir\xff/f": "inside"} {
		w.File("ws/"+name, content)
	}
	w.Dir("ws/closed")
	g := w.openMasked([]string{"ws/closed"}, w.rw("ws"))
	for name, want := range map[string]string{`ws/"caf\xe9"`: "bytes", `ws/"\"caf\\xe9\""`: "text", `ws/"dir\xff"/f`: "inside"} {
		if got, errno := g.content(name, ReadOnly); got != want || errno != 0 {
			t.Errorf("%s holds %q, %v", name, got, errno)
		}
	}
	wantErrno(t, "another spelling", g.try(`ws/"caf\xE9"`, ReadOnly), ENOENT)
	wantErrno(t, "a masked directory", g.try(`ws/closed/"x\xff"`, WriteOnly|Create), errOutside)
	wantErrno(t, "a NUL", g.try(`ws/"a\x00"`, ReadOnly), EINVAL)
	wantErrno(t, "bytes", g.try("ws/caf\xe9", ReadOnly), EILSEQ)
	d, errno := g.dir("ws")
	wantErrno(t, "open ws", errno, 0)
	defer d.Close()
	if got := names(t, d); !slices.Equal(got, []string{`"\"caf\\xe9\""`, "d", "f.txt"}) {
		t.Errorf("WASI lists %q", got)
	}
	d.AllNames = true
	if got := names(t, d); !slices.Equal(got, []string{`"\"caf\\xe9\""`, `"caf\xe9"`, `"dir\xff"`, "d", "f.txt"}) {
		t.Errorf("the host lists %q", got)
	}
}
