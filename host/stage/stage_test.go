//go:build unix

package stage

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stockade-dev/stockade/host/tool"
)

func TestChanges(t *testing.T) {
	for _, tc := range []struct {
		name string
		do   func(*editor)
		want []string
	}{
		{"nothing", func(*editor) {}, []string{}},
		{"a new file", func(g *editor) { g.write("ws/new", "x") }, []string{`created new - "x"`}},
		{"a file is overwritten", func(g *editor) { g.write("ws/f.txt", "x") }, []string{`modified f.txt "inside" "x"`}},
		{"a file is overwritten with what it had", func(g *editor) { g.write("ws/f.txt", "inside") }, []string{}},
		{"a file is replaced", func(g *editor) { g.replace("ws/f.txt", "x") }, []string{`modified f.txt "inside" "x"`}},
		{"a file is replaced by the same", func(g *editor) { g.replace("ws/f.txt", "inside") }, []string{}},
		{"a file comes and goes", func(g *editor) { g.write("ws/t", "x"); g.remove("ws/t") }, []string{}},
		{"a file is removed", func(g *editor) { g.remove("ws/f.txt") }, []string{`removed f.txt "inside" -`}},
		{"a file is moved", func(g *editor) { g.rename("ws/f.txt", "ws/d/f") }, []string{`renamed d/f from f.txt "inside" "inside"`}},
		{"a file is moved and comes back", func(g *editor) {
			g.rename("ws/f.txt", "ws/d/f")
			g.rename("ws/d/f", "ws/f.txt")
		}, []string{}},
		{"a file is moved over another", func(g *editor) { g.rename("ws/f.txt", "ws/d/g.txt") },
			[]string{`modified d/g.txt "deeper" "inside"`, `removed f.txt "inside" -`}},
		{"a directory is moved, and a file in it is changed", func(g *editor) {
			g.rename("ws/d", "ws/e")
			g.write("ws/e/g.txt", "x")
		}, []string{`renamed e from d - -`, `modified e/g.txt "deeper" "x"`}},
		{"a directory is removed", func(g *editor) { g.remove("ws/d/g.txt"); g.remove("ws/d") },
			[]string{`directory removed d - -`, `removed d/g.txt "deeper" -`}},
		{"a directory takes the place of a file", func(g *editor) {
			g.remove("ws/f.txt")
			g.mkdir("ws/f.txt")
			g.write("ws/f.txt/x", "x")
		}, []string{`removed f.txt "inside" -`, `directory created f.txt - -`, `created f.txt/x - "x"`}},
		{"times are set", func(g *editor) { g.setTimes("ws/f.txt", 1e9, 1e9) }, []string{`times f.txt "inside" "inside"`}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t)
			g, s := w.open(nil)
			before := w.State()
			tc.do(g)
			if diff := cmp.Diff(tc.want, w.FormatChanges(s.Changes(t.Context()))); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
			w.CheckUnchanged(before)
			if err := s.Commit(t.Context()); err != nil {
				t.Fatal(err)
			}
			if len(tc.want) == 0 {
				w.CheckUnchanged(before)
			}
			after := w.State()
			if err := s.Commit(t.Context()); err != nil {
				t.Errorf("commit again: %v", err)
			}
			if err := s.Drop(); err != nil {
				t.Errorf("drop after commit: %v", err)
			}
			w.CheckUnchanged(after)
		})
	}
}

func TestACommitKeepsTheMode(t *testing.T) {
	for name, do := range map[string]func(*editor){
		"overwritten": func(g *editor) { g.write("ws/f.txt", "x") },
		"replaced":    func(g *editor) { g.replace("ws/f.txt", "x") },
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
			g, s := w.open(nil)
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

// To change a little of a large file costs little.
func TestALargeFileIsNotCopied(t *testing.T) {
	const size = 1 << 30
	w := newWorld(t)
	w.File("ws/large", "")
	if err := os.Truncate(w.Path("ws/large"), size); err != nil {
		t.Fatal(err)
	}
	g, s := w.open(nil)
	began := time.Now()
	f, err := g.file("ws/large", os.O_RDWR)
	wantErr(t, "open", err, nil)
	if _, err := f.WriteAt([]byte("ten bytes."), size/2); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 12)
	if _, err := f.ReadAt(buf, size/2-1); err != nil || string(buf) != "\x00ten bytes.\x00" {
		t.Errorf("%q %v", buf, err)
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

// A file does not become a program by taking the name of one.
func TestAModeStaysWithItsName(t *testing.T) {
	for name, tc := range map[string]struct {
		do   func(*editor)
		want map[string]os.FileMode
	}{
		"a new file": {func(g *editor) {
			g.write("ws/evil", "x")
			g.rename("ws/evil", "ws/run")
			g.rename("ws/run", "ws/evil")
		}, map[string]os.FileMode{"ws/evil": 0o644}},
		"by way of two": {func(g *editor) {
			g.replace("ws/run", "x")
			g.replace("ws/run", "y")
			g.rename("ws/run", "ws/evil")
		}, map[string]os.FileMode{"ws/evil": 0o644}},
		"the host's file": {func(g *editor) {
			g.rename("ws/f.txt", "ws/run")
			g.rename("ws/run", "ws/evil")
		}, map[string]os.FileMode{"ws/evil": 0o640}},
		"it stays": {func(g *editor) { g.replace("ws/run", "x") }, map[string]os.FileMode{"ws/run": 0o755}},
		"the program itself": {func(g *editor) { g.rename("ws/run", "ws/moved") },
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
			g, s := w.open(nil)
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
	for name, do := range map[string]func(*editor){
		"a file is removed and made again": func(g *editor) { g.remove("ws/run"); g.write("ws/run", "same") },
		"a file comes in its place, by way of one with another mode": func(g *editor) {
			g.remove("ws/run")
			g.rename("ws/f.txt", "ws/run")
			g.replace("ws/run", "same")
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.File("ws/run", "same")
			if err := os.Chmod(w.Path("ws/run"), 0o700); err != nil {
				t.Fatal(err)
			}
			g, s := w.open(nil)
			do(g)
			if got := w.FormatChanges(s.Changes(t.Context())); !strings.Contains(strings.Join(got, "\n"), `modified run "same" "same"`) {
				t.Errorf("the changes are %q", got)
			}
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

func TestAStageOfMemoryOnlyIsBounded(t *testing.T) {
	w := newWorld(t)
	g, s := w.openDir(&Options{MemoryBytes: 4 * blockBytes}, "ws")
	f, err := g.file("ws/new", os.O_RDWR|os.O_CREATE)
	wantErr(t, "open", err, nil)
	n, err := f.Write(make([]byte, 10*blockBytes))
	if n != 4*blockBytes || err != syscall.ENOSPC {
		t.Errorf("%d, %v", n, err)
	}
	f.close()
	wantErr(t, "unlink", g.remove("ws/new"), nil)
	if free := len(s.arena.free); free != 4 {
		t.Errorf("%d blocks are free", free)
	}
}
