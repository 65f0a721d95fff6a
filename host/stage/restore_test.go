//go:build unix

package stage

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Nodes that are put into a tree get exactly the modes that they are given, and a commit
// that fails at any step leaves everything as it was.
func TestWhatIsPutInATree(t *testing.T) {
	errTest := errors.New("disk full")
	for step := 0; ; step++ {
		w := newWorld(t)
		w.File("ws/same", "the same")
		_, s := w.open(nil)
		tree := s.trees[0]
		find := func(rel string) (*Node, *Node) {
			t.Helper()
			dir, n, err := tree.Find(rel)
			if err != nil {
				t.Fatal(err)
			}
			return dir, n
		}
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		top, f := find("f.txt")
		must(tree.Put(top, "f.txt", f, 0o666, []byte("put there")))
		closed, err := tree.Create(top, "closed", fs.ModeDir|0o777)
		must(err)
		must(tree.SetMode(closed, 0o577))
		must(tree.Put(closed, "x", nil, 0o421, nil))
		must(tree.Symlink(closed, "link", "../f.txt"))
		d, g := find("d/g.txt")
		must(tree.Remove(g))
		must(tree.Symlink(d, "g.txt", "nowhere"))
		must(tree.SetMode(d, 0o707))
		_, same := find("same")
		must(tree.SetMode(same, 0o606))

		before, steps := w.StateButDirTimes(), 0
		s.stepHook = func(op, _ string) error {
			if steps++; steps > step && op != "tidy up" {
				return errTest
			}
			return nil
		}
		err = s.Commit(t.Context())
		if errors.Is(err, errTest) {
			if diff := cmp.Diff(before, w.StateButDirTimes()); diff != "" {
				t.Errorf("at step %d:\n%s", step, diff)
			}
			continue
		}
		must(err)
		got := []string{}
		for _, name := range []string{"f.txt", "closed", "closed/x", "closed/link", "d", "d/g.txt", "same"} {
			fi, err := os.Lstat(w.Path("ws/" + name))
			must(err)
			target, _ := os.Readlink(w.Path("ws/" + name))
			got = append(got, fmt.Sprintf("%s %v %s", name, fi.Mode(), target))
		}
		want := []string{"f.txt -rw-rw-rw- ", "closed dr-xrwxrwx ", "closed/x -r---w---x ", "closed/link Lrwxrwxrwx ../f.txt", "d drwx---rwx ", "d/g.txt Lrwxrwxrwx nowhere", "same -rw----rw- "}
		if !slices.Equal(got, want) || w.Content("ws/f.txt") != "put there" {
			t.Errorf("got %q, want %q", got, want)
		}
		if step < 10 {
			t.Errorf("it failed at %d steps only", step)
		}
		return
	}
}

// Find follows no symbolic link, wherever it leads.
func TestFindGoesThroughNoLink(t *testing.T) {
	w := newWorld(t)
	w.Link("ws/out", "../out")
	w.Link("ws/in", "d")
	_, s := w.open(nil)
	for rel, want := range map[string]error{"out/secret": syscall.ENOTDIR, "in/g.txt": syscall.ENOTDIR, "f.txt/x": syscall.ENOTDIR, "none/x": fs.ErrNotExist, "none": nil, "in": nil, "d/g.txt": nil} {
		if _, _, err := s.trees[0].Find(rel); !errors.Is(err, want) {
			t.Errorf("%s: %v", rel, err)
		}
	}
}
