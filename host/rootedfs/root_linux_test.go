package rootedfs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/stockade-dev/stockade/host/internal/hosttest"
)

func TestMain(m *testing.M) {
	hosttest.UseMemoryTemp()
	hosttest.Main(m)
}

func TestWithoutOpenat2(t *testing.T) {
	if !hasOpenat2() {
		t.Log("there is no openat2 here, so all tests are without")
		return
	}
	hosttest.WithoutOpenat2(t, "^$", "TestOpenTellsTheTwoApart")
}

func TestOpenTellsTheTwoApart(t *testing.T) {
	r, _, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	_, fallback := r.(*osRoot)
	if want := hosttest.NoOpenat2() || !hasOpenat2(); fallback != want {
		t.Errorf("the root is a %T", r)
	}
}

// numberOf returns the name of an error number. The two kinds of root have different messages,
// and a name that leads out has no number.
func numberOf(err error) string {
	if errno, ok := errors.AsType[unix.Errno](err); ok {
		return unix.ErrnoName(errno)
	}
	return "leads out"
}

// Each operation is done with each name through each kind of root, in a new world after every
// change. The results, and the files afterwards, must be the same.
func TestRootsAgree(t *testing.T) {
	if !hasOpenat2() {
		t.Log("there is only one root here")
		return
	}
	plant := func(w *hosttest.World) {
		w.Dir("ws/d/e")
		w.Dir("ws/empty")
		for name, target := range map[string]string{
			"ws/l": "f.txt", "ws/dl": "d", "ws/none": "new", "ws/up": "..", "ws/out": "../out", "ws/outfile": "../out/secret",
			"ws/abs": "out", "ws/inside": w.Path("ws/f.txt"), "ws/back": "../ws/f.txt", "ws/d/e/up": "../..", "ws/d/e/up3": "../../..",
			"ws/slash": "f.txt/", "ws/dslash": "d/", "ws/self": "self", "ws/dot": ".", "ws/long": "d/../d/./e/../../f.txt",
			"ws/through": "f.txt/..", "ws/gone": "no/../f.txt",
		} {
			w.Link(name, target)
		}
		w.Link("ws/c0", "f.txt")
		for i := range 7 {
			w.Link(fmt.Sprint("ws/c", i+1), fmt.Sprint("c", i))
		}
		if err := unix.Mkfifo(w.Path("ws/fifo"), 0o666); err != nil {
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
			return numberOf(err)
		}
		return fmt.Sprint(what)
	}
	info := func(fi os.FileInfo, err error) string {
		if err != nil {
			return show(nil, err)
		}
		st := StatOf(fi)
		return fmt.Sprint(fi.Name(), fi.Mode(), fi.Size() > 0, st.Nlink, st.Ino > 0, fi.ModTime().UnixNano() == st.Mtim)
	}
	open := func(flag int) func(Root, string) string {
		return func(r Root, name string) string {
			f, err := r.OpenFile(name, flag|Nonblock, 0o640)
			if err != nil {
				return show(nil, err)
			}
			defer f.Close()
			return info(f.Stat())
		}
	}
	ops := map[string]func(r Root, name string) string{
		"stat":     func(r Root, name string) string { return info(r.Stat(name)) },
		"lstat":    func(r Root, name string) string { return info(r.Lstat(name)) },
		"readlink": func(r Root, name string) string { return show(r.Readlink(name)) },
		"mkdir":    func(r Root, name string) string { return show("created", r.Mkdir(name, 0o750)) },
		"remove":   func(r Root, name string) string { return show("removed", r.Remove(name)) },
		"move":     func(r Root, name string) string { return show("moved", r.Rename(name, "d/e/moved")) },
		"replace": func(r Root, name string) string {
			err := r.Rename("d/g.txt", name)
			if fi, _ := r.Lstat(name); err != nil && fi != nil && fi.IsDir() {
				return "refused" // each has its own words for that
			}
			return show("replaced", err)
		},
		"open":   open(os.O_RDONLY),
		"write":  open(os.O_RDWR),
		"create": open(os.O_RDWR | os.O_CREATE | os.O_EXCL),
		"below": func(r Root, name string) string {
			below, _, err := OpenDir(r, name)
			if err != nil {
				return show(nil, err)
			}
			defer below.Close()
			return info(below.Stat("g.txt")) + info(below.Stat("..")) + info(below.Lstat("../f.txt"))
		},
	}
	for op, do := range ops {
		transcripts := map[string][]string{}
		for kind, open := range map[string]func(string) (Root, os.FileInfo, error){"os.Root": OpenOSRoot, "openat2": Open} {
			var w *hosttest.World
			var r Root
			var out []string
			renew := func() {
				w = hosttest.New(t)
				plant(w)
				var err error
				if r, _, err = open(w.Path("ws")); err != nil {
					t.Fatal(err)
				}
			}
			end := func() {
				if err := r.Close(); err != nil {
					t.Error(err)
				}
				if _, err := r.Lstat("."); !errors.Is(err, fs.ErrClosed) {
					t.Errorf("%s: after Close: %v", kind, err)
				}
				for p, desc := range w.State() {
					fields := strings.Fields(strings.ReplaceAll(desc, w.Base, "base"))
					out = append(out, fmt.Sprint(p, " ", fields[0], fields[2:])) // without the modification time
				}
				slices.Sort(out)
				transcripts[kind] = append(transcripts[kind], out...)
				out = nil
			}
			renew()
			for _, name := range names {
				var got string
				hosttest.Promptly(t, func() { got = strings.ReplaceAll(do(r, name), w.Base, "base") })
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
