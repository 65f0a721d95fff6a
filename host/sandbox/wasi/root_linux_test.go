package wasi

import (
	"fmt"
	"os"
	"testing"

	"github.com/stockade-dev/stockade/host/rootedfs"
)

// openRoot opens a directory with one of the ways to look up names.
type openRoot func(string) (rootedfs.Root, os.FileInfo, error)

// roots returns the ways of this host.
func roots(t testing.TB) map[string]openRoot {
	out := map[string]openRoot{"os.Root": rootedfs.OpenOSRoot}
	r, _, err := rootedfs.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, ok := r.(rootedfs.ContentRoot); ok {
		out["openat2"] = rootedfs.Open
	}
	return out
}

// The limit on links in a name is the same with a guard or a stage as without.
func TestSoManyLinks(t *testing.T) {
	w := newWorld(t)
	top := w.open(w.rw("ws")).mounts[0].root
	most := top.MaxSymlinks()
	w.Link("ws/l1", "f.txt")
	for i := 1; i <= most; i++ {
		w.Link(fmt.Sprint("ws/l", i+1), fmt.Sprint("l", i))
	}
	staged, _ := w.openStaged(nil, nil, w.rw("ws"))
	for what, g := range map[string]*guestFS{
		"plain": w.open(w.rw("ws")), "guarded": w.openMasked([]string{"ws/d"}, w.rw("ws")), "staged": staged,
	} {
		wantErrno(t, what+", as many as can be", g.try(fmt.Sprint("ws/l", most), ReadOnly), 0)
		wantErrno(t, what+", one more", g.try(fmt.Sprint("ws/l", most+1), ReadOnly), ELOOP)
	}
}

// lookups counts the look-ups of a root, and of the roots opened from it.
type lookups struct {
	rootedfs.Root
	rootedfs.ContentRoot
	n *int
}

func (l lookups) Lstat(name string) (os.FileInfo, error) { *l.n++; return l.Root.Lstat(name) }
func (l lookups) Stat(name string) (os.FileInfo, error)  { *l.n++; return l.Root.Stat(name) }

func (l lookups) OpenRoot(name string) (rootedfs.Root, error) {
	*l.n++
	r, err := l.Root.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	return lookups{r, r.(rootedfs.ContentRoot), l.n}, nil
}

// The files of a directory are opened without looking up its parents again, and listed
// without looking up each.
func TestARowOfNamesIsLookedUpOnce(t *testing.T) {
	w := newWorld(t)
	const files = 50
	var all []string
	for i := range files {
		w.File(fmt.Sprintf("ws/a/b/c/f%02d", i), "")
	}
	w.File("ws/masked", canary)
	w.HardLink("ws/a/b/c/again", "ws/masked")
	g := w.openMasked([]string{"ws/masked"}, w.ro("ws"))
	if g.mounts[0].inodeDev == 0 {
		t.Log("the file system of the test may list other inode numbers than files have")
	}
	for i := range files {
		all = append(all, g.name(fmt.Sprintf("ws/a/b/c/f%02d", i)))
	}
	root := g.mounts[0].root
	content, ok := root.(rootedfs.ContentRoot)
	if !ok {
		return // nothing is saved then
	}
	n := 0
	g.mounts[0].root = lookups{root, content, &n}
	v, ok := g.View(2, func(uint64) {})
	if !ok {
		t.Fatal("there is no view")
	}
	defer v.Close()
	const directory = 3 // number of calls that look up one directory
	for row, most := range []int{3 * directory, 3} {
		n = 0
		for c, errno := range v.Contents(all) {
			if errno != 0 {
				t.Fatal(errno)
			}
			c.Close()
		}
		if n > most {
			t.Errorf("row %d: %d were looked up, want %d at most", row, n, most)
		}
	}
	n = 0
	for d, errno := range g.Dirs([]string{g.name("ws/a/b/c")}) {
		if errno != 0 {
			t.Fatal(errno)
		}
		if listed := names(t, d); len(listed) != files {
			t.Errorf("lists %v", listed)
		}
	}
	if most := 5 * directory; g.mounts[0].inodeDev != 0 && n > most {
		t.Errorf("%d were looked up to list a directory, want %d at most", n, most)
	}
}
