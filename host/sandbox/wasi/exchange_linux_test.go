package wasi

import (
	"flag"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/stockade-dev/stockade/host/internal/hosttest"
)

var races = flag.Int("races", 5_500, "how many things a guest tries for each kind of root, while names are exchanged")

// Two names, one of them forbidden to the guest, change places all the time, while the
// guest uses names that go through one of them.
func TestExchangeOfDirectoryAndLink(t *testing.T) {
	outside := func(w *world, dir string) {
		w.File(dir+"/secret", canary)
		w.File(dir+"/victim", "to be removed")
		w.File(dir+"/"+onlyOutside, "to be listed")
		w.Dir(dir + "/dir")
	}
	inside := func(w *world) { w.File("ws/x/secret", "not secret") }
	for _, tc := range []raceCase{
		{"directory and link outside", func(w *world) {
			inside(w)
			w.Link("ws/y", "../out")
		}, "x", nil},
		{"directory and absolute link outside", func(w *world) {
			inside(w)
			w.Link("ws/y", "out")
		}, "x", nil},
		{"directory and link outside with a detour", func(w *world) {
			inside(w)
			w.Link("ws/y", "d/.././d/../../out")
		}, "x", nil},
		{"file and link outside", func(w *world) {
			w.File("ws/x", "not secret")
			w.Link("ws/y", "../out/secret")
		}, "", nil},
		// The meaning of ".." depends on the place of the directory at that time.
		{"directory with a link upwards and one that is outside", func(w *world) { plantUpLinks(w, outside) }, "x/n/up", nil},
		{"directory and link to a masked directory", func(w *world) {
			inside(w)
			w.Link("ws/y", "hidden")
		}, "x", []string{"ws/hidden"}},
		{"directory and link below a masked directory", func(w *world) {
			inside(w)
			outside(w, "ws/hidden/sub")
			w.Link("ws/y", "hidden/sub")
		}, "x", []string{"ws/hidden"}},
		{"file and link to a masked file", func(w *world) {
			w.File("ws/x", "not secret")
			w.Link("ws/y", "hidden/secret")
		}, "", []string{"ws/hidden"}},
		{"directory and link outside, guarded", func(w *world) {
			inside(w)
			w.Link("ws/y", "../out")
		}, "x", []string{"ws/hidden"}},
		{"directory with a link upwards, guarded", func(w *world) { plantUpLinks(w, outside) }, "x/n/up", []string{"ws/hidden"}},
		{"directory and FIFO, guarded", func(w *world) {
			inside(w)
			if err := unix.Mkfifo(w.Path("ws/y"), 0o666); err != nil {
				w.T.Fatal(err)
			}
		}, "x", []string{"ws/hidden"}},
	} {
		for kind, open := range roots(t) {
			t.Run(kind+"/"+tc.name, func(t *testing.T) {
				w := newWorld(t)
				outside(w, "out")
				outside(w, "ws/hidden")
				tc.plant(w)
				g := w.openMasked(slices.Clone(tc.masked), w.rw("ws"))
				m := g.mounts[0]
				_ = m.root.Close()
				var err error
				if m.root, _, err = open(w.Path("ws")); err != nil {
					t.Fatal(err)
				}
				tc.race(t, g, *races/raceCases)
			})
		}
	}
}

const raceCases = 11

// plantUpLinks makes a link that leads to the workspace while its directory is in place,
// and above the workspace once the directory was moved away.
func plantUpLinks(w *world, outside func(*world, string)) {
	outside(w, ".")
	w.File("ws/secret", "not secret")
	for _, dir := range []string{"ws/x/n", "away/n"} {
		w.Dir(dir)
		w.Link(dir+"/up", "../..")
	}
}

// raceCase holds two names that change places: ws/x and ws/y, or ws/x/n and away/n if the
// guest's directory is below.
type raceCase struct {
	name   string
	plant  func(*world)
	dir    string // directory of the guest's file, which is called secret; empty: ws/x is the file
	masked []string
}

const onlyOutside = "only-outside"

func (tc *raceCase) race(t *testing.T, g *guestFS, tries int) {
	x, y := g.w.Path("ws/x"), g.w.Path("ws/y")
	if strings.HasPrefix(tc.dir, "x/n") {
		x, y = g.w.Path("ws/x/n"), g.w.Path("away/n")
	}
	// Files that the guest may not change, with the times of the directories: they also
	// show files that were made and removed again.
	kept := func() map[string]string {
		state := g.w.State()
		maps.DeleteFunc(state, func(p, _ string) bool {
			top, rest, _ := strings.Cut(p, "/")
			return top == "away" || top == "ws" && !strings.HasPrefix(rest, "hidden")
		})
		return state
	}
	before := kept()
	var stop atomic.Bool
	var exchanged atomic.Int64
	var exchanging sync.WaitGroup
	exchanging.Go(func() {
		for !stop.Load() {
			if err := unix.Renameat2(unix.AT_FDCWD, x, unix.AT_FDCWD, y, unix.RENAME_EXCHANGE); err != nil {
				t.Error("exchange:", err)
				return
			}
			exchanged.Add(1)
		}
	})
	defer exchanging.Wait()
	defer stop.Store(true)
	view, ok := g.View(2, func(uint64) {})
	if !ok {
		t.Fatal("there is no view")
	}
	defer view.Close()
	r := racer{view: view, g: g, dir: "ws/" + tc.dir, file: "ws/" + path.Join(tc.dir, "secret"), buf: make([]byte, 100)}
	if tc.dir == "" {
		r.dir, r.file = "", "ws/x"
	}
	done := 0
	hosttest.Within(t, time.Minute+time.Duration(tries)*time.Millisecond, func() {
		for ; (done < tries || exchanged.Load() < 1000 || r.results[0] == 0) && !t.Failed(); done++ {
			r.try(done)
		}
	})
	stop.Store(true)
	exchanging.Wait()
	t.Logf("races: %d tries, %d succeeded, %d refused, %d to be tried again, %d exchanges, %d escapes",
		done, r.results[0], r.results[errOutside], r.results[EAGAIN], exchanged.Load(), r.escapes)
	if r.escapes != 0 {
		t.Errorf("%d of %d tries reached what is outside", r.escapes, done)
	}
	if diff := cmp.Diff(before, kept()); diff != "" {
		t.Errorf("what is outside was changed (-before +after):\n%s", diff)
	}
}

// racer is a guest that tries one operation after the other.
type racer struct {
	g         *guestFS
	view      *View
	dir, file string
	buf       []byte
	results   [256]int // by error number
	escapes   int
}

func (r *racer) try(i int) {
	errno := r.tryUse(i)
	r.results[errno]++
	if r.dir == "" {
		return
	}
	// The same names exist outside, or not, so that each of these would change something
	// there if it got there.
	g, in := r.g, func(name string) string { return r.g.name(r.dir + "/" + name) }
	switch i % 12 {
	case 0:
		r.create("made")
	case 1:
		g.Unlink(in("made"))
	case 2:
		r.create("victim")
	case 3:
		g.Unlink(in("victim"))
	case 4:
		g.Mkdir(in("dir"))
	case 5:
		g.Rmdir(in("dir"))
	case 6:
		g.Mkdir(in("newdir"))
		g.Rmdir(in("newdir"))
	case 7:
		r.create("victim")
		g.Rename(in("victim"), in("moved"))
	case 8:
		g.Unlink(in("moved"))
	case 9:
		g.Rename(in("victim"), g.name("ws/stolen"))
	case 10:
		g.Rename(g.name("ws/stolen"), in("planted"))
	case 11:
		g.Unlink(in("planted"))
	}
}

func (r *racer) create(name string) {
	if f, errno := r.g.Open(r.g.name(r.dir+"/"+name), WriteOnly|Create); errno == 0 {
		f.Close()
	}
}

// tryUse opens the file, most of the time for reading.
func (r *racer) tryUse(i int) Errno {
	name, flag := r.g.name(r.file), ReadOnly
	switch i % 10 {
	case 0:
		return r.g.SetTimes(name, true, 1e9, 1e9)
	case 1:
		return r.g.SetTimes(name, false, 1e9, 1e9)
	case 2, 3:
		stat := r.g.Stat
		if i%10 == 3 {
			stat = r.g.Lstat
		}
		st, errno := stat(name)
		if st.Size == uint64(len(canary)) {
			r.escapes++
		}
		return errno
	case 4:
		flag = ReadWrite
	case 5:
		flag = ReadWrite | Truncate
	case 6:
		if r.dir != "" {
			return r.list()
		}
	case 7:
		return r.row()
	}
	f, errno := r.g.file(r.file, flag)
	if errno != 0 {
		return errno
	}
	defer f.Close()
	if n, _ := f.Read(r.buf); strings.Contains(string(r.buf[:n]), canary) {
		r.escapes++
	}
	if flag != ReadOnly {
		f.Write([]byte("not secret"))
	}
	return 0
}

// row reads the file twice in a row. The view keeps the directories that the rows before
// have opened.
func (r *racer) row() (errno Errno) {
	var c Content
	for c, errno = range r.view.Contents([]string{r.g.name(r.file), r.g.name(r.file)}) {
		if errno != 0 {
			continue
		}
		if n, _ := c.ReadAt(r.buf, 0); strings.Contains(string(r.buf[:n]), canary) {
			r.escapes++
		}
		c.Close()
	}
	return errno
}

func (r *racer) list() Errno {
	d, errno := r.g.dir(r.dir)
	if errno != 0 {
		return errno
	}
	defer d.Close()
	if slices.Contains(names(r.g.w.T, d), onlyOutside) {
		r.escapes++
	}
	return 0
}
