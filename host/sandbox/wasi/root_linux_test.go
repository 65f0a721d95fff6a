package wasi

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// roots are the ways to look up names on this host.
func roots() map[string]func(string) (root, error) {
	out := map[string]func(string) (root, error){"os.Root": openOSRoot}
	if hasOpenat2() {
		out["openat2"] = openBeneath
	}
	return out
}

// Each operation is done with each name through each root, in a new world after
// every change, and must have the same result and leave the same behind.
func TestRootsAgree(t *testing.T) {
	if !hasOpenat2() {
		t.Log("there is only one root here")
		return
	}
	plant := func(w *world) {
		w.dir("ws/d/e")
		w.dir("ws/empty")
		for name, target := range map[string]string{
			"ws/l": "f.txt", "ws/dl": "d", "ws/none": "new", "ws/up": "..", "ws/out": "../out", "ws/outfile": "../out/secret",
			"ws/abs": "out", "ws/inside": w.path("ws/f.txt"), "ws/back": "../ws/f.txt", "ws/d/e/up": "../..", "ws/d/e/up3": "../../..",
			"ws/slash": "f.txt/", "ws/dslash": "d/", "ws/self": "self", "ws/dot": ".", "ws/long": "d/../d/./e/../../f.txt",
			"ws/through": "f.txt/..", "ws/gone": "no/../f.txt",
		} {
			w.link(name, target)
		}
		w.link("ws/c0", "f.txt")
		for i := range 7 {
			w.link(fmt.Sprint("ws/c", i+1), fmt.Sprint("c", i))
		}
		if err := unix.Mkfifo(w.path("ws/fifo"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	names := []string{
		".", "f.txt", "d", "d/g.txt", "d/e", "empty", "new", "new/new", "f.txt/x", "fifo", "l", "dl", "dl/g.txt", "dl/new", "none",
		"up", "up/ws/f.txt", "out", "out/secret", "out/new", "outfile", "abs", "abs/secret", "abs/new", "inside", "back",
		"d/e/up", "d/e/up/f.txt", "d/e/up3", "d/e/up3/out/secret", "slash", "dslash", "dslash/g.txt", "self", "self/x",
		"dot", "dot/f.txt", "dot/dot/new", "long", "through", "gone", "c7", "c7/x", strings.Repeat("x", 300), "new\x00",
	}
	show := func(what any, err error) string {
		if err != nil {
			return errnoOf(err).String()
		}
		return fmt.Sprint(what)
	}
	info := func(fi os.FileInfo, err error) string {
		if err != nil {
			return show(nil, err)
		}
		st := hostStat(fi)
		return fmt.Sprint(fi.Name(), fi.Mode(), fi.Size() > 0, st.Nlink, st.Ino > 0, fi.ModTime().UnixNano() == st.Mtim)
	}
	open := func(flag int) func(root, string) string {
		return func(r root, name string) string {
			f, err := r.OpenFile(name, flag|openNonblock, 0o640)
			if err != nil {
				return show(nil, err)
			}
			defer f.Close()
			return info(f.Stat())
		}
	}
	ops := map[string]func(r root, name string) string{
		"stat":     func(r root, name string) string { return info(r.Stat(name)) },
		"lstat":    func(r root, name string) string { return info(r.Lstat(name)) },
		"readlink": func(r root, name string) string { return show(r.Readlink(name)) },
		"mkdir":    func(r root, name string) string { return show("created", r.Mkdir(name, 0o750)) },
		"remove":   func(r root, name string) string { return show("removed", r.Remove(name)) },
		"move":     func(r root, name string) string { return show("moved", r.Rename(name, "d/e/moved")) },
		"replace": func(r root, name string) string {
			err := r.Rename("d/g.txt", name)
			if fi, _ := r.Lstat(name); err != nil && fi != nil && fi.IsDir() {
				return "refused" // each has its own words for that
			}
			return show("replaced", err)
		},
		"open":   open(os.O_RDONLY),
		"write":  open(os.O_RDWR),
		"create": open(os.O_RDWR | os.O_CREATE | os.O_EXCL),
		"below": func(r root, name string) string {
			below, _, err := openDir(r, name)
			if err != nil {
				return show(nil, err)
			}
			defer below.Close()
			return info(below.Stat("g.txt")) + info(below.Stat("..")) + info(below.Lstat("../f.txt"))
		},
	}
	for op, do := range ops {
		transcripts := map[string][]string{}
		for kind, openRoot := range roots() {
			var w *world
			var r root
			var out []string
			renew := func() {
				w = newWorld(t)
				plant(w)
				var err error
				if r, err = openRoot(w.path("ws")); err != nil {
					t.Fatal(err)
				}
			}
			end := func() {
				if err := r.Close(); err != nil {
					t.Error(err)
				}
				if _, err := r.Lstat("."); errnoOf(err) != EBADF {
					t.Errorf("%s: after Close: %v", kind, err)
				}
				for p, desc := range w.state() {
					fields := strings.Fields(strings.ReplaceAll(desc, w.base, "base"))
					out = append(out, fmt.Sprint(p, " ", fields[0], fields[2:])) // without the modification time
				}
				slices.Sort(out)
				transcripts[kind] = append(transcripts[kind], out...)
				out = nil
			}
			renew()
			for _, name := range names {
				var got string
				promptly(t, func() { got = strings.ReplaceAll(do(r, name), w.base, "base") })
				out = append(out, fmt.Sprintf("%s %q: %s", op, name, got))
				if strings.HasSuffix(got, "ed") || op == "create" && strings.Contains(got, " ") {
					end() // the next name finds what this one did
					renew()
				}
			}
			end()
		}
		if diff := cmp.Diff(transcripts["os.Root"], transcripts["openat2"]); diff != "" {
			t.Errorf("not the same (-os.Root +openat2):\n%s", diff)
		}
	}
}

// A name has as many links with a guard or a stage as without.
func TestSoManyLinks(t *testing.T) {
	w := newWorld(t)
	top := w.open(w.rw("ws")).mounts[0].root
	most := top.maxLinks()
	w.link("ws/l1", "f.txt")
	for i := 1; i <= most; i++ {
		w.link(fmt.Sprint("ws/l", i+1), fmt.Sprint("l", i))
	}
	staged, _ := w.openStaged(nil, nil, w.rw("ws"))
	for what, g := range map[string]*guestFS{
		"plain": w.open(w.rw("ws")), "guarded": w.openMasked([]string{"ws/d"}, w.rw("ws")), "staged": staged,
	} {
		wantErrno(t, what+", as many as can be", g.try(fmt.Sprint("ws/l", most), ReadOnly), 0)
		wantErrno(t, what+", one more", g.try(fmt.Sprint("ws/l", most+1), ReadOnly), ELOOP)
	}
}

// lookups counts what a root is asked to look up, and the roots below it too.
type lookups struct {
	*beneath
	n *int
}

func (l lookups) Lstat(name string) (os.FileInfo, error) { *l.n++; return l.beneath.Lstat(name) }
func (l lookups) Stat(name string) (os.FileInfo, error)  { *l.n++; return l.beneath.Stat(name) }

func (l lookups) OpenRoot(name string) (root, error) {
	*l.n++
	r, err := l.beneath.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	return lookups{r.(*beneath), l.n}, nil
}

// The files of a directory are opened without looking up again what leads to
// it, and listed without looking at each.
func TestARowOfNamesIsLookedUpOnce(t *testing.T) {
	if !hasOpenat2() {
		return // nothing is spared then
	}
	w := newWorld(t)
	const files = 50
	var all []string
	for i := range files {
		w.file(fmt.Sprintf("ws/a/b/c/f%02d", i), "")
	}
	w.file("ws/masked", canary)
	w.hardLink("ws/a/b/c/again", "ws/masked")
	g := w.openMasked([]string{"ws/masked"}, w.ro("ws"))
	if g.mounts[0].inodesOf == 0 {
		t.Log("the file system of the test may list other inode numbers than files have")
	}
	for i := range files {
		all = append(all, g.name(fmt.Sprintf("ws/a/b/c/f%02d", i)))
	}
	n := 0
	g.mounts[0].root = lookups{g.mounts[0].root.(*beneath), &n}
	v, ok := g.View(2, func(uint64) {})
	if !ok {
		t.Fatal("there is no view")
	}
	defer v.Close()
	const directory = 3 // calls to look it up
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
	if most := 5 * directory; g.mounts[0].inodesOf != 0 && n > most {
		t.Errorf("%d were looked up to list a directory, want %d at most", n, most)
	}
}
