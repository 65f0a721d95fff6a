//go:build unix

package wasi

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stockade-dev/stockade/host/tool"
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

// replace writes a file as tools do: a temporary one beside it, and a rename.
func (g *guestFS) replace(p, content string) {
	g.w.T.Helper()
	g.write(p+".tmp", content)
	wantErrno(g.w.T, "rename", g.Rename(g.name(p+".tmp"), g.name(p)), 0)
}

// shown is the changes as text.
func shown(t *testing.T, w *world, s *Stage) []string {
	t.Helper()
	changes, err := s.Changes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	out := []string{}
	for _, c := range changes {
		rel, _ := filepath.Rel(w.Path("ws"), c.Path)
		line := fmt.Sprint(c.Kind, " ", rel)
		if c.From != "" {
			from, _ := filepath.Rel(w.Path("ws"), c.From)
			line += " from " + from
		}
		for _, v := range []*tool.Version{c.Before, c.After} {
			if v == nil || !v.Mode.IsRegular() {
				line += " -"
				continue
			}
			r, err := v.Open()
			if err != nil {
				t.Fatal(err)
			}
			b, err := io.ReadAll(r)
			if err != nil || int64(len(b)) != v.Size {
				t.Errorf("%s: %d bytes of %d: %v", c.Path, len(b), v.Size, err)
			}
			r.Close()
			line += fmt.Sprintf(" %q", b)
		}
		out = append(out, line)
	}
	return out
}

func TestChanges(t *testing.T) {
	for _, tc := range []struct {
		name string
		do   func(*guestFS)
		want []string
	}{
		{"nothing", func(*guestFS) {}, []string{}},
		{"a new file", func(g *guestFS) { g.write("ws/new", "x") }, []string{`created new - "x"`}},
		{"a file is overwritten", func(g *guestFS) { g.write("ws/f.txt", "x") }, []string{`modified f.txt "inside" "x"`}},
		{"a file is overwritten with what it had", func(g *guestFS) { g.write("ws/f.txt", "inside") }, []string{}},
		{"a file is replaced", func(g *guestFS) { g.replace("ws/f.txt", "x") }, []string{`modified f.txt "inside" "x"`}},
		{"a file is replaced by the same", func(g *guestFS) { g.replace("ws/f.txt", "inside") }, []string{}},
		{"a file comes and goes", func(g *guestFS) { g.write("ws/t", "x"); g.Unlink(g.name("ws/t")) }, []string{}},
		{"a file is removed", func(g *guestFS) { g.Unlink(g.name("ws/f.txt")) }, []string{`removed f.txt "inside" -`}},
		{"a file is moved", func(g *guestFS) { g.Rename(g.name("ws/f.txt"), g.name("ws/d/f")) }, []string{`renamed d/f from f.txt "inside" "inside"`}},
		{"a file is moved and comes back", func(g *guestFS) {
			g.Rename(g.name("ws/f.txt"), g.name("ws/d/f"))
			g.Rename(g.name("ws/d/f"), g.name("ws/f.txt"))
		}, []string{}},
		{"a file is moved over another", func(g *guestFS) { g.Rename(g.name("ws/f.txt"), g.name("ws/d/g.txt")) },
			[]string{`modified d/g.txt "deeper" "inside"`, `removed f.txt "inside" -`}},
		{"a directory is moved, and a file in it is changed", func(g *guestFS) {
			g.Rename(g.name("ws/d"), g.name("ws/e"))
			g.write("ws/e/g.txt", "x")
		}, []string{`renamed e from d - -`, `modified e/g.txt "deeper" "x"`}},
		{"a directory is removed", func(g *guestFS) { g.Unlink(g.name("ws/d/g.txt")); g.Rmdir(g.name("ws/d")) },
			[]string{`directory removed d - -`, `removed d/g.txt "deeper" -`}},
		{"a directory takes the place of a file", func(g *guestFS) {
			g.Unlink(g.name("ws/f.txt"))
			g.Mkdir(g.name("ws/f.txt"))
			g.write("ws/f.txt/x", "x")
		}, []string{`removed f.txt "inside" -`, `directory created f.txt - -`, `created f.txt/x - "x"`}},
		{"times are set", func(g *guestFS) { g.SetTimes(g.name("ws/f.txt"), true, 1e9, 1e9) }, []string{`times f.txt "inside" "inside"`}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t)
			g, s := w.openStaged(nil, nil, w.rw("ws"))
			before := w.State()
			tc.do(g)
			if diff := cmp.Diff(tc.want, shown(t, w, s)); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
			w.Unchanged(before)
			g.Close()
			if err := s.Commit(t.Context()); err != nil {
				t.Fatal(err)
			}
			if len(tc.want) == 0 {
				w.Unchanged(before)
			}
			after := w.State()
			if err := s.Commit(t.Context()); err != nil {
				t.Errorf("commit again: %v", err)
			}
			if err := s.Drop(); err != nil {
				t.Errorf("drop after commit: %v", err)
			}
			w.Unchanged(after)
		})
	}
}

func TestACommitKeepsTheMode(t *testing.T) {
	for name, do := range map[string]func(*guestFS){
		"overwritten": func(g *guestFS) { g.write("ws/f.txt", "x") },
		"replaced":    func(g *guestFS) { g.replace("ws/f.txt", "x") },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if err := os.Chmod(w.Path("ws/f.txt"), 0o750); err != nil {
				t.Fatal(err)
			}
			if os.Getuid() == 0 {
				if err := os.Chown(w.Path("ws/f.txt"), 1234, 1235); err != nil {
					t.Fatal(err)
				}
			}
			owner := fmt.Sprint(ownerOf(t, w.Path("ws/f.txt")))
			g, s := w.openStaged(nil, nil, w.rw("ws"))
			do(g)
			if err := s.Commit(t.Context()); err != nil {
				t.Fatal(err)
			}
			fi, err := os.Stat(w.Path("ws/f.txt"))
			if err != nil || fi.Mode() != 0o750 || w.Content("ws/f.txt") != "x" {
				t.Errorf("%v %v", fi.Mode(), err)
			}
			if now := fmt.Sprint(ownerOf(t, w.Path("ws/f.txt"))); now != owner {
				t.Errorf("owner %s, was %s", now, owner)
			}
		})
	}
}

func TestAStageLeavesNothing(t *testing.T) {
	w := newWorld(t)
	w.Dir("stage")
	g, s := w.openStaged(&StageOptions{Dir: w.Path("stage"), MemoryBytes: 1}, nil, w.rw("ws"), w.ro("stage"))
	before := w.State()
	g.write("ws/new", strings.Repeat("x", 100_000))
	fi, err := os.Stat(s.dir)
	if err != nil || fi.Mode().Perm() != 0o700 {
		t.Errorf("%v %v", fi, err)
	}
	if left, err := os.ReadDir(s.dir); err != nil || len(left) > 0 {
		t.Errorf("a crash now would leave %v: %v", left, err)
	}
	if names := g.list("stage"); len(names) > 0 {
		t.Errorf("the guest sees %v", names)
	}
	wantErrno(t, "open the stage", g.try("stage/"+filepath.Base(s.dir), ReadOnly), EPERM)
	f, errno := g.file("ws/new", ReadOnly)
	wantErrno(t, "open", errno, 0)
	if err := s.Drop(); err != nil {
		t.Fatal(err)
	}
	if _, errno := f.Read(make([]byte, 1)); errno != EBADF {
		t.Errorf("read after drop: %v", errno)
	}
	wantErrno(t, "open after drop", g.try("ws/new", ReadOnly), EBADF)
	if err := s.Commit(t.Context()); err != ErrDropped {
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

// To change a little of a large file costs little.
func TestALargeFileIsNotCopied(t *testing.T) {
	const size = 1 << 30
	w := newWorld(t)
	w.File("ws/large", "")
	if err := os.Truncate(w.Path("ws/large"), size); err != nil {
		t.Fatal(err)
	}
	g, s := w.openStaged(nil, nil, w.rw("ws"))
	began := time.Now()
	f, errno := g.file("ws/large", ReadWrite)
	wantErrno(t, "open", errno, 0)
	if _, errno := f.Pwrite([]byte("ten bytes."), size/2); errno != 0 {
		t.Fatal(errno)
	}
	buf := make([]byte, 12)
	if _, errno := f.Pread(buf, size/2-1); errno != 0 || string(buf) != "\x00ten bytes.\x00" {
		t.Errorf("%q %v", buf, errno)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
	if n := s.arena.next; n != 1 {
		t.Errorf("%d blocks are staged", n)
	}
	changes, err := s.Changes(t.Context())
	if err != nil || len(changes) != 1 || changes[0].Kind != tool.Modified || changes[0].After.Size != size {
		t.Errorf("%v %v", changes, err)
	}
}

// What is read while the directory changes is neither lost nor told twice.
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

// A guest makes no program of its own by way of the name of one.
func TestAModeStaysWithItsName(t *testing.T) {
	for name, tc := range map[string]struct {
		do   func(*guestFS)
		want map[string]os.FileMode
	}{
		"a new file": {func(g *guestFS) {
			g.write("ws/evil", "x")
			g.Rename(g.name("ws/evil"), g.name("ws/run"))
			g.Rename(g.name("ws/run"), g.name("ws/evil"))
		}, map[string]os.FileMode{"ws/evil": 0o644}},
		"by way of two": {func(g *guestFS) {
			g.replace("ws/run", "x")
			g.replace("ws/run", "y")
			g.Rename(g.name("ws/run"), g.name("ws/evil"))
		}, map[string]os.FileMode{"ws/evil": 0o644}},
		"the host's file": {func(g *guestFS) {
			g.Rename(g.name("ws/f.txt"), g.name("ws/run"))
			g.Rename(g.name("ws/run"), g.name("ws/evil"))
		}, map[string]os.FileMode{"ws/evil": 0o640}},
		"it stays": {func(g *guestFS) { g.replace("ws/run", "x") }, map[string]os.FileMode{"ws/run": 0o755}},
		"the program itself": {func(g *guestFS) { g.Rename(g.name("ws/run"), g.name("ws/moved")) },
			map[string]os.FileMode{"ws/moved": 0o755}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.File("ws/run", "program")
			for p, mode := range map[string]os.FileMode{"ws/run": 0o755, "ws/f.txt": 0o640} {
				if err := os.Chmod(w.Path(p), mode); err != nil {
					t.Fatal(err)
				}
			}
			g, s := w.openStaged(nil, nil, w.rw("ws"))
			s.umask = 0o022
			tc.do(g)
			if err := s.Commit(t.Context()); err != nil {
				t.Fatal(err)
			}
			for p, want := range tc.want {
				if fi, err := os.Stat(w.Path(p)); err != nil || fi.Mode() != want {
					t.Errorf("%s: %v, %v", p, fi.Mode(), err)
				}
			}
		})
	}
}

func TestTheSameContentWithAnotherModeIsAChange(t *testing.T) {
	for name, do := range map[string]func(*guestFS){
		"a file is removed and made again": func(g *guestFS) { g.Unlink(g.name("ws/run")); g.write("ws/run", "same") },
		"a file comes in its place, by way of one with another mode": func(g *guestFS) {
			g.Unlink(g.name("ws/run"))
			g.Rename(g.name("ws/f.txt"), g.name("ws/run"))
			g.replace("ws/run", "same")
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.File("ws/run", "same")
			if err := os.Chmod(w.Path("ws/run"), 0o700); err != nil {
				t.Fatal(err)
			}
			g, s := w.openStaged(nil, nil, w.rw("ws"))
			do(g)
			if got := shown(t, w, s); !strings.Contains(strings.Join(got, "\n"), `modified run "same" "same"`) {
				t.Errorf("the changes are %q", got)
			}
			g.Close()
			if err := s.Commit(t.Context()); err != nil {
				t.Fatal(err)
			}
			fi, err := os.Stat(w.Path("ws/run"))
			if err != nil || fi.Mode().Perm() == 0o700 || w.Content("ws/run") != "same" {
				t.Errorf("mode %v, %v", fi.Mode(), err)
			}
		})
	}
}
