//go:build unix

package wasi

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stockade-dev/stockade/host/internal/hosttest"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/rootedfs"
)

// anyErrno stands for any error.
const anyErrno = Errno(0xffff)

// Every row is tried on a workspace that is mounted with write, with write and a masked
// directory inside, without write, and not at all. It changes nothing in any of them.
func TestAttacks(t *testing.T) {
	const (
		write  = ReadWrite
		create = Create | ReadWrite
		trunc  = Truncate // with the right to read only
	)
	open := func(p string, flag Flag) func(*guestFS) Errno {
		return func(g *guestFS) Errno { return g.try(p, flag) }
	}
	stat := func(p string) func(*guestFS) Errno {
		return func(g *guestFS) Errno { _, errno := g.Stat(g.name(p)); return errno }
	}
	mkdir := func(p string) func(*guestFS) Errno {
		return func(g *guestFS) Errno { return g.Mkdir(g.name(p)) }
	}
	unlink := func(p string) func(*guestFS) Errno {
		return func(g *guestFS) Errno { return g.Unlink(g.name(p)) }
	}
	rmdir := func(p string) func(*guestFS) Errno {
		return func(g *guestFS) Errno { return g.Rmdir(g.name(p)) }
	}
	rename := func(a, b string) func(*guestFS) Errno {
		return func(g *guestFS) Errno { return g.Rename(g.name(a), g.name(b)) }
	}
	utimes := func(p string) func(*guestFS) Errno {
		return func(g *guestFS) Errno { return g.SetTimes(g.name(p), true, 1e9, 1e9) }
	}
	readlink := func(p string) func(*guestFS) Errno {
		return func(g *guestFS) Errno {
			target, errno := g.Readlink(g.name(p))
			if target != "" {
				g.w.T.Errorf("readlink %s told %q", p, target)
			}
			return errno
		}
	}
	symlink := func(target, p string) func(*guestFS) Errno {
		return func(g *guestFS) Errno {
			if strings.HasPrefix(target, "out") {
				target = g.w.Path(target)
			}
			errno := g.Symlink(target, g.name(p))
			g.try(p, ReadOnly)
			return errno
		}
	}
	hardLink := func(a, b string) func(*guestFS) Errno {
		return func(g *guestFS) Errno { return g.Link(g.name(a), g.name(b)) }
	}

	const out, kind, linked = errOutside, errNotFileOrDir, EACCES
	const rofs = errReadOnly
	for _, tc := range []struct {
		name   string
		plant  func(*world)
		do     func(*guestFS) Errno
		rw, ro Errno // if not mounted, the error is always EPERM unless none is set
		none   Errno
	}{
		{name: "dotdot to the sibling", do: open("ws/../out/secret", 0), rw: out, ro: out},
		{name: "dotdot behind a directory", do: open("ws/d/../../out/secret", 0), rw: out, ro: out},
		{name: "dotdot behind nothing", do: open("ws/no/../../out/secret", 0), rw: out, ro: out},
		{name: "dotdot with slashes", do: open("ws//d//..//..//out///secret", 0), rw: out, ro: out},
		{name: "dotdot beyond the root", do: open("../../../../../../../../../../etc/passwd", 0), rw: out, ro: out},
		{name: "dotdot alone", do: func(g *guestFS) Errno { _, errno := g.Stat(".."); return errno }, rw: out, ro: out},
		{name: "dotdot create", do: open("ws/../out/new", create), rw: out, ro: out},
		{name: "dotdot mkdir", do: mkdir("ws/../out/new"), rw: out, ro: out},
		{name: "dotdot rename out", do: rename("ws/f.txt", "ws/../out/f.txt"), rw: out, ro: anyErrno},
		{name: "dotdot rename in", do: rename("ws/../out/secret", "ws/s"), rw: out, ro: out},
		{name: "dotdot link in", do: hardLink("ws/../out/secret", "ws/s"), rw: out, ro: out},
		{name: "dotdot unlink", do: unlink("ws/../out/secret"), rw: out, ro: out},
		{name: "dotdot rmdir", do: rmdir("ws/../out/dir"), rw: out, ro: out},
		{name: "absolute path", do: open("/etc/passwd", 0), rw: out, ro: out},
		{name: "absolute path that is nowhere", do: open("/no/such/file", 0), rw: out, ro: out},
		{name: "proc", do: open("/proc/self/environ", 0), rw: out, ro: out},
		{name: "beside the workspace, exists", do: stat("out/secret"), rw: out, ro: out},
		{name: "beside the workspace, does not", do: stat("out/nothing"), rw: out, ro: out},
		{name: "name with the workspace as prefix", do: stat("ws2"), rw: out, ro: out},
		{name: "NUL", do: open("ws/f.txt\x00.png", create), rw: EINVAL, ro: EINVAL, none: EINVAL},
		{name: "NUL in rename", do: rename("ws/f.txt", "ws/\x00"), rw: EINVAL, ro: anyErrno},
		{name: "invalid UTF-8", do: open("ws/\xff\xfe", create), rw: EILSEQ, ro: EILSEQ, none: EILSEQ},
		{name: "empty name", do: func(g *guestFS) Errno { _, errno := g.Open("", create); return errno }, rw: EINVAL, ro: EINVAL, none: EINVAL},
		{name: "backslashes", do: open(`ws/..\..\out\secret`, 0), rw: ENOENT, ro: ENOENT},
		{name: "drive and stream", do: open(`ws/C:\x:y`, 0), rw: ENOENT, ro: ENOENT},
		{name: "long name", do: open("ws/"+strings.Repeat("x", 300), create), rw: ENAMETOOLONG, ro: rofs},
		{name: "long path", do: open("ws/"+strings.Repeat("x/", 5000), 0), rw: ENAMETOOLONG, ro: ENAMETOOLONG, none: ENAMETOOLONG},
		{name: "deep path", do: open("ws"+strings.Repeat("/d", 1900), 0), rw: ENOENT, ro: ENOENT},
		{name: "file with a slash", do: open("ws/f.txt/", 0), rw: ENOTDIR, ro: ENOTDIR},
		{name: "file as a directory", do: open("ws/f.txt/x", create), rw: ENOTDIR, ro: rofs},
		{name: "create with a slash", do: open("ws/new/", create), rw: EISDIR, ro: rofs},
		{name: "nonsense flags", do: open("ws/f.txt", ReadWrite|WriteOnly), rw: EINVAL, ro: EINVAL, none: EINVAL},

		{name: "absolute link to a file", plant: func(w *world) { w.Link("ws/l", "out/secret") }, do: open("ws/l", 0), rw: out, ro: out},
		{name: "absolute link back inside", plant: func(w *world) { w.Link("ws/l", w.Path("ws/f.txt")) }, do: open("ws/l", 0), rw: out, ro: out},
		{name: "relative link to a file", plant: func(w *world) { w.Link("ws/l", "../out/secret") }, do: open("ws/l", 0), rw: out, ro: out},
		{name: "link to a directory", plant: func(w *world) { w.Link("ws/l", "../out") }, do: open("ws/l/secret", 0), rw: out, ro: out},
		{name: "link to a directory, listed", plant: func(w *world) { w.Link("ws/l", "../out") }, do: open("ws/l", DirectoryOnly), rw: out, ro: out},
		{name: "link out and in again", plant: func(w *world) { w.Link("ws/l", "../ws/f.txt") }, do: open("ws/l", 0), rw: out, ro: out},
		{name: "link to proc", plant: func(w *world) { w.Link("ws/l", "/proc/self") }, do: open("ws/l/environ", 0), rw: out, ro: out},
		{name: "link, stat behind", plant: func(w *world) { w.Link("ws/l", "../out/secret") }, do: stat("ws/l"), rw: out, ro: out},
		{name: "link, write", plant: func(w *world) { w.Link("ws/l", "../out/secret") }, do: open("ws/l", write), rw: out, ro: rofs},
		{name: "link, truncate", plant: func(w *world) { w.Link("ws/l", "../out/secret") }, do: open("ws/l", trunc), rw: out, ro: rofs},
		{name: "link, create behind", plant: func(w *world) { w.Link("ws/l", "../out") }, do: open("ws/l/new", create), rw: out, ro: rofs},
		{name: "dangling link, create behind", plant: func(w *world) { w.Link("ws/l", "../out/new") }, do: open("ws/l", create), rw: out, ro: rofs},
		{name: "dangling link inside, create behind", plant: func(w *world) { w.Link("ws/l", "new") }, do: open("ws/l", create), rw: ENOENT, ro: rofs},
		{name: "link, mkdir behind", plant: func(w *world) { w.Link("ws/l", "../out") }, do: mkdir("ws/l/new"), rw: out, ro: rofs},
		{name: "link, rmdir behind", plant: func(w *world) { w.Link("ws/l", "../out") }, do: rmdir("ws/l/dir"), rw: out, ro: rofs},
		{name: "link, unlink behind", plant: func(w *world) { w.Link("ws/l", "../out") }, do: unlink("ws/l/secret"), rw: out, ro: rofs},
		{name: "link, rename in", plant: func(w *world) { w.Link("ws/l", "../out") }, do: rename("ws/l/secret", "ws/s"), rw: out, ro: rofs},
		{name: "link, rename out", plant: func(w *world) { w.Link("ws/l", "../out") }, do: rename("ws/f.txt", "ws/l/s"), rw: out, ro: rofs},
		{name: "link, utimes behind", plant: func(w *world) { w.Link("ws/l", "../out/secret") }, do: utimes("ws/l"), rw: out, ro: rofs},
		{name: "link, no follow", plant: func(w *world) { w.Link("ws/l", "f.txt") }, do: open("ws/l", NoFollow), rw: ELOOP, ro: ELOOP},
		{name: "link, exclusive create", plant: func(w *world) { w.Link("ws/l", "../out/new") }, do: open("ws/l", create|Exclusive), rw: EEXIST, ro: rofs},
		{name: "readlink of an absolute link", plant: func(w *world) { w.Link("ws/l", "out/secret") }, do: readlink("ws/l"), rw: out, ro: out},
		{name: "readlink of a link out", plant: func(w *world) { w.Link("ws/d/l", "../../out") }, do: readlink("ws/d/l"), rw: out, ro: out},
		{name: "chain of 50 links", plant: func(w *world) {
			w.Link("ws/l0", "f.txt")
			for i := range 50 {
				w.Link(fmt.Sprint("ws/l", i+1), fmt.Sprint("l", i))
			}
		}, do: open("ws/l50", 0), rw: ELOOP, ro: ELOOP},
		{name: "loop of links", plant: func(w *world) { w.Link("ws/a", "b"); w.Link("ws/b", "a") }, do: open("ws/a", 0), rw: ELOOP, ro: ELOOP},
		{name: "link to itself, below", plant: func(w *world) { w.Link("ws/a", "a/a") }, do: stat("ws/a/x"), rw: ELOOP, ro: ELOOP},

		{name: "make a relative link out", do: symlink("../out/secret", "ws/l"), rw: EPERM, ro: rofs},
		{name: "make an absolute link", do: symlink("out/secret", "ws/l"), rw: EPERM, ro: rofs},
		{name: "make a link inside", do: symlink("f.txt", "ws/l"), rw: EPERM, ro: rofs},
		{name: "make a hard link", do: hardLink("ws/f.txt", "ws/l"), rw: EPERM, ro: rofs},

		{name: "hard link, write", plant: func(w *world) { w.HardLink("ws/h", "out/secret2") }, do: open("ws/h", write), rw: linked, ro: rofs},
		{name: "hard link, write only", plant: func(w *world) { w.HardLink("ws/h", "out/secret2") }, do: open("ws/h", WriteOnly), rw: linked, ro: rofs},
		{name: "hard link, append", plant: func(w *world) { w.HardLink("ws/h", "out/secret2") }, do: open("ws/h", WriteOnly|Append), rw: linked, ro: rofs},
		{name: "hard link, truncate", plant: func(w *world) { w.HardLink("ws/h", "out/secret2") }, do: open("ws/h", trunc), rw: linked, ro: rofs},
		{name: "hard link, create and truncate", plant: func(w *world) { w.HardLink("ws/h", "out/secret2") }, do: open("ws/h", create|Truncate), rw: linked, ro: rofs},
		{name: "hard link, utimes", plant: func(w *world) { w.HardLink("ws/h", "out/secret2") }, do: utimes("ws/h"), rw: linked, ro: rofs},
		{name: "hard link, utimes of a reader", plant: func(w *world) { w.HardLink("ws/h", "out/secret2") }, do: func(g *guestFS) Errno {
			f, errno := g.Open(g.name("ws/h"), ReadOnly)
			if errno != 0 {
				return errno
			}
			defer f.Close()
			return f.SetTimes(1e9, 1e9)
		}, rw: linked, ro: rofs},

		{name: "remove the mount", do: rmdir("ws"), rw: out, ro: rofs},
		{name: "rename the mount", do: rename("ws", "ws/x"), rw: out, ro: rofs},
		{name: "rename onto the mount", do: rename("ws/d", "ws"), rw: out, ro: rofs},
		{name: "rename a directory into itself", do: rename("ws/d", "ws/d/x"), rw: EINVAL, ro: rofs},
	} {
		for _, mode := range []string{"rw", "guarded", "staged", "staged and guarded", "ro", "none"} {
			t.Run(tc.name+"/"+mode, func(t *testing.T) {
				w := newWorld(t)
				w.File("out/secret2", "may be read, not written")
				if tc.plant != nil {
					tc.plant(w)
				}
				want := tc.none
				var mounts []policy.Mount
				var masked []string
				switch mode {
				case "guarded", "staged and guarded":
					w.Dir("ws/masked")
					masked = append(masked, "ws/masked")
					fallthrough
				case "rw", "staged":
					want, mounts = tc.rw, append(mounts, w.rw("ws"))
				case "ro":
					want, mounts = tc.ro, append(mounts, w.ro("ws"))
				default:
					if want == 0 {
						want = errOutside
					}
				}
				var g *guestFS
				if strings.HasPrefix(mode, "staged") {
					g, _ = w.openStaged(nil, masked, mounts...)
				} else {
					g = w.openMasked(masked, mounts...)
				}
				before := w.State()
				var got Errno
				hosttest.Promptly(t, func() { got = tc.do(g) })
				if want == anyErrno && got == 0 || want != anyErrno && got != want {
					t.Errorf("got %v, want %v", got, want)
				}
				w.CheckUnchanged(before)
			})
		}
	}
}

func TestReadOnlyMountCannotBeChanged(t *testing.T) {
	w := newWorld(t)
	w.Link("ws/l", "f.txt")
	g := w.open(w.ro("ws"), w.rw("out"))
	before := w.State()
	for flags := range Flag(1 << 13) {
		access := flags & 3
		if access == 3 || flags&4 != 0 {
			continue // not a flag
		}
		change := access != 0 || flags&(Create|Truncate|Append) != 0
		for _, p := range []string{"ws/f.txt", "ws/new", "ws/d", "ws/l", "ws/d/new", "ws"} {
			if errno := g.try(p, flags); change && errno != errReadOnly {
				t.Errorf("open %s with flags %#x: %v", p, flags, errno)
			}
		}
	}
	f, errno := g.file("ws/f.txt", ReadOnly)
	wantErrno(t, "open to read", errno, 0)
	dir, errno := g.Open(g.name("ws"), DirectoryOnly)
	wantErrno(t, "open directory", errno, 0)
	_, writeErrno := f.Write([]byte("x"))
	_, pwriteErrno := f.Pwrite([]byte("x"), 0)
	for what, errno := range map[string]Errno{
		"write":             writeErrno,
		"pwrite":            pwriteErrno,
		"truncate":          f.Truncate(0),
		"allocate":          f.Truncate(100),
		"append":            f.SetAppend(true),
		"utimes":            f.SetTimes(1, 1),
		"utimes dir":        dir.SetTimes(1, 1),
		"utimes path":       g.SetTimes(g.name("ws/f.txt"), true, 1, 1),
		"utimes path dir":   g.SetTimes(g.name("ws/d"), true, 1, 1),
		"utimes root":       g.SetTimes(g.name("ws"), true, 1, 1),
		"utimes, omitted":   g.SetTimes(g.name("ws/f.txt"), true, OmitTime, OmitTime),
		"mkdir":             g.Mkdir(g.name("ws/new")),
		"mkdir again":       g.Mkdir(g.name("ws/d")),
		"unlink":            g.Unlink(g.name("ws/f.txt")),
		"unlink link":       g.Unlink(g.name("ws/l")),
		"rmdir":             g.Rmdir(g.name("ws/d")),
		"rename":            g.Rename(g.name("ws/f.txt"), g.name("ws/x")),
		"rename ro to rw":   g.Rename(g.name("ws/f.txt"), g.name("out/x")),
		"rename rw to ro":   g.Rename(g.name("out/dir"), g.name("ws/x")),
		"rename onto ro":    g.Rename(g.name("out/secret"), g.name("ws/f.txt")),
		"symlink":           g.Symlink("f.txt", g.name("ws/x")),
		"link":              g.Link(g.name("ws/f.txt"), g.name("ws/x")),
		"link rw to ro":     g.Link(g.name("out/secret"), g.name("ws/x")),
		"synthetic rmdir":   g.Rmdir(g.name("")),
		"synthetic utimes":  g.SetTimes("/", true, 1, 1),
		"synthetic unlink":  g.Unlink(g.name("")),
		"synthetic rename":  g.Rename(g.name(""), g.name("out/x")),
		"onto synthetic":    g.Rename(g.name("out/dir"), g.name("")),
		"synthetic open":    g.try("/", ReadWrite),
		"synthetic trunc":   g.try("/", Truncate),
		"synthetic symlink": g.Symlink("x", "/"),
	} {
		wantErrno(t, what, errno, errReadOnly)
	}
	wantErrno(t, "set no flag", f.SetAppend(false), 0)
	wantErrno(t, "synthetic mkdir", g.Mkdir("/"), EEXIST)
	wantErrno(t, "mkdir beside the mount", g.Mkdir(g.name("x")), errOutside)
	if content, errno := g.content("ws/f.txt", 0); content != "inside" || errno != 0 {
		t.Errorf("reading gave %q, %v", content, errno)
	}
	f.Close()
	dir.Close()
	w.CheckUnchanged(before)
}

func TestSpecialFilesAreRefusedAtOnce(t *testing.T) {
	w := newWorld(t)
	if err := unix.Mkfifo(w.Path("ws/fifo"), 0o666); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("unix", w.Path("ws/sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	w.Link("ws/l", "fifo")
	w.Dir("ws/masked")
	special := []string{"ws/fifo", "ws/sock", "ws/l"}
	if err := unix.Mknod(w.Path("ws/zero"), unix.S_IFCHR|0o666, int(unix.Mkdev(1, 5))); err == nil { // as root
		special = append(special, "ws/zero")
	}
	for _, tc := range []struct {
		name string
		fs   *guestFS
	}{
		{"plain", w.open(w.rw("ws"))},
		{"guarded", w.openMasked([]string{"ws/masked"}, w.rw("ws"))},
	} {
		t.Run(tc.name, func(t *testing.T) {
			before := w.State()
			for _, p := range special {
				for _, flag := range []Flag{
					ReadOnly, WriteOnly, ReadWrite, Truncate, Append,
					Create | ReadWrite, DirectoryOnly, WriteOnly | DirectoryOnly,
				} {
					hosttest.Promptly(t, func() {
						// Without try: reading zeros would not end.
						f, errno := tc.fs.Open(tc.fs.name(p), flag)
						if f != nil {
							f.Close()
						}
						wantErrno(t, fmt.Sprintf("open %s with flags %#x", p, flag), errno, errNotFileOrDir)
					})
				}
				hosttest.Promptly(t, func() {
					wantErrno(t, "utimes "+p, tc.fs.SetTimes(tc.fs.name(p), true, 1, 1), errNotFileOrDir)
				})
			}
			w.CheckUnchanged(before)
		})
	}
}

// A FIFO whose other end is held open by the host opens without waiting, so only the
// check of the opened file keeps the guest out.
func TestFIFOWithTheOtherEndOpenIsRefused(t *testing.T) {
	w := newWorld(t)
	if err := unix.Mkfifo(w.Path("ws/fifo"), 0o666); err != nil {
		t.Fatal(err)
	}
	host, err := os.OpenFile(w.Path("ws/fifo"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer host.Close()
	g := w.open(w.rw("ws"))
	for _, flag := range []Flag{ReadOnly, WriteOnly, ReadWrite} {
		hosttest.Promptly(t, func() { wantErrno(t, "open", g.try("ws/fifo", flag), errNotFileOrDir) })
	}
}

func TestHardLinkCanBeReadButNotChanged(t *testing.T) {
	w := newWorld(t)
	w.File("out/shared", "shared")
	w.HardLink("ws/h", "out/shared")
	g := w.open(w.rw("ws"))
	if content, errno := g.content("ws/h", 0); content != "shared" || errno != 0 {
		t.Errorf("reading gave %q, %v", content, errno)
	}
	// A change of the directory and not of the file is allowed.
	wantErrno(t, "rename", g.Rename(g.name("ws/h"), g.name("ws/i")), 0)
	wantErrno(t, "unlink", g.Unlink(g.name("ws/i")), 0)
	if content, err := os.ReadFile(w.Path("out/shared")); err != nil || string(content) != "shared" {
		t.Errorf("the other name has %q, %v", content, err)
	}
}

func TestLinkInsideTheMountWorks(t *testing.T) {
	w := newWorld(t)
	w.Link("ws/l", "f.txt")
	w.Link("ws/d/up", "../f.txt")
	w.Link("ws/dl", "d")
	w.Link("ws/five", "four")
	w.Link("ws/four", "three")
	w.Link("ws/three", "d/up")
	w.Dir("ws/masked")
	for _, tc := range []struct {
		name string
		fs   *guestFS
	}{
		{"plain", w.open(w.rw("ws"))},
		{"guarded", w.openMasked([]string{"ws/masked"}, w.rw("ws"))},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := tc.fs
			for p, want := range map[string]string{
				"ws/l": "inside", "ws/d/up": "inside", "ws/dl/up": "inside", "ws/dl/g.txt": "deeper", "ws/five": "inside",
			} {
				if content, errno := g.content(p, 0); content != want || errno != 0 {
					t.Errorf("reading %s gave %q, %v", p, content, errno)
				}
			}
			for p, want := range map[string]string{"ws/l": "f.txt", "ws/d/up": "../f.txt"} {
				if target, errno := g.Readlink(g.name(p)); target != want || errno != 0 {
					t.Errorf("readlink %s gave %q, %v", p, target, errno)
				}
			}
			st, errno := g.Lstat(g.name("ws/l"))
			if errno != 0 || st.Type != SymbolicLink {
				t.Errorf("lstat gave %v, %v", st.Type, errno)
			}
			st, errno = g.Lstat(g.name("ws/dl") + "/")
			if errno != 0 || st.Type != Directory {
				t.Errorf("lstat with a slash gave %v, %v", st.Type, errno)
			}
			wantErrno(t, "write", g.try("ws/dl/new", Create|ReadWrite), 0)
			wantErrno(t, "unlink", g.Unlink(g.name("ws/dl/new")), 0)
		})
	}
}

func TestMovedDirectoryIsNotFollowedOutside(t *testing.T) {
	w := newWorld(t)
	w.File("out/x/g.txt", canary)
	g := w.open(w.rw("ws"))
	d, errno := g.Open(g.name("ws/d"), DirectoryOnly)
	wantErrno(t, "open directory", errno, 0)
	defer d.Close()
	w.Rename("ws/d", "out/d")
	w.File("out/d/g.txt", canary)
	before := w.State()
	// wazero looks up names relative to a directory by the directory's name.
	wantErrno(t, "read", g.try("ws/d/g.txt", 0), ENOENT)
	wantErrno(t, "write", g.try("ws/d/g.txt", ReadWrite), ENOENT)
	wantErrno(t, "dotdot", g.try("ws/d/../../out/secret", 0), errOutside)
	wantErrno(t, "mkdir", g.Mkdir(g.name("ws/d/new")), ENOENT)
	w.CheckUnchanged(before)
	w.Link("ws/d", "../out/x")
	before = w.State()
	wantErrno(t, "read behind a link", g.try("ws/d/g.txt", 0), errOutside)
	w.CheckUnchanged(before)
}

func TestReplacedMountStaysWhatItWas(t *testing.T) {
	for _, replacement := range []string{"directory", "link", "nothing"} {
		t.Run(replacement, func(t *testing.T) {
			w := newWorld(t)
			w.File("out/f.txt", canary)
			g := w.open(w.rw("ws"))
			w.Rename("ws", "was")
			switch replacement {
			case "directory":
				w.Rename("out", "ws")
			case "link":
				w.Link("ws", "out")
			}
			if content, errno := g.content("ws/f.txt", 0); content != "inside" || errno != 0 {
				t.Errorf("reading gave %q, %v", content, errno)
			}
			wantErrno(t, "the new one's file", g.try("ws/secret", 0), ENOENT)
			wantErrno(t, "write", g.try("ws/new", Create|ReadWrite), 0)
			if _, err := os.Stat(w.Path("was/new")); err != nil {
				t.Error("the file was not written to the old directory:", err)
			}
			if _, err := os.Stat(w.Path("ws/new")); err == nil {
				t.Error("the file was written to the new directory")
			}
			wantErrno(t, "mkdir", g.Mkdir(g.name("ws/dir/x")), ENOENT)
			wantErrno(t, "rename", g.Rename(g.name("ws/new"), g.name("ws/f.txt")), 0)
			wantErrno(t, "unlink", g.Unlink(g.name("ws/f.txt")), 0)
			if _, err := os.Stat(w.Path("was/f.txt")); err == nil {
				t.Error("the file was not removed from the old directory")
			}
			if replacement != "nothing" {
				if got, err := os.ReadFile(w.Path("ws/f.txt")); err != nil || string(got) != canary {
					t.Errorf("the new directory's file is %q, %v", got, err)
				}
			}
		})
	}
}

func TestTwoCallsDoNotSeeEachOther(t *testing.T) {
	w := newWorld(t)
	w.Dir("other")
	if err := os.Rename(w.Path("ws"), w.Path("mine")); err != nil {
		t.Fatal(err)
	}
	// The same name is another directory for each.
	w.Link("ws", "mine")
	a := w.open(w.rw("ws"))
	if err := os.Remove(w.Path("ws")); err != nil {
		t.Fatal(err)
	}
	w.Link("ws", "other")
	b := w.open(w.rw("ws"))
	wantErrno(t, "a writes", a.try("ws/a", Create|ReadWrite), 0)
	wantErrno(t, "b writes", b.try("ws/b", Create|ReadWrite), 0)
	wantErrno(t, "b reads a's", b.try("ws/a", 0), ENOENT)
	wantErrno(t, "a reads b's", a.try("ws/b", 0), ENOENT)
	wantErrno(t, "b reads a's by name", b.try("mine/a", 0), errOutside)
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	wantErrno(t, "b after a was closed", b.try("ws/b", 0), 0)
}

func TestDotdotReachesOnlyWhatIsGranted(t *testing.T) {
	w := newWorld(t)
	w.File("ws2/x", "sibling")
	w.File("ws3/x", canary)
	g := w.open(w.rw("ws"), w.ro("ws2"))
	if content, errno := g.content("ws/../ws2/x", 0); content != "sibling" || errno != 0 {
		t.Errorf("the granted sibling gave %q, %v", content, errno)
	}
	wantErrno(t, "its right", g.try("ws/../ws2/x", ReadWrite), errReadOnly)
	wantErrno(t, "another sibling", g.try("ws/../ws3/x", 0), errOutside)
	// From inside, a link to the granted sibling is still a link out.
	w.Link("ws/l", "../ws2/x")
	wantErrno(t, "link to the sibling", g.try("ws/l", 0), errOutside)
}

func TestRenameAcrossMounts(t *testing.T) {
	w := newWorld(t)
	w.File("ws2/x", "x")
	g := w.open(w.rw("ws"), w.rw("ws2"))
	before := w.State()
	wantErrno(t, "file", g.Rename(g.name("ws/f.txt"), g.name("ws2/f.txt")), errOtherMount)
	wantErrno(t, "directory", g.Rename(g.name("ws/d"), g.name("ws2/d")), errOtherMount)
	wantErrno(t, "onto", g.Rename(g.name("ws/f.txt"), g.name("ws2/x")), errOtherMount)
	wantErrno(t, "link", g.Link(g.name("ws/f.txt"), g.name("ws2/f.txt")), EPERM)
	w.CheckUnchanged(before)
}

// A directory that cannot be replaced, because the moved directory is above it by way of
// a link, stays as before.
func TestRenameThatFailsReplacesNothing(t *testing.T) {
	w := newWorld(t)
	if err := os.MkdirAll(w.Path("ws/p/q/empty"), 0o755); err != nil {
		t.Fatal(err)
	}
	w.Link("ws/l", "p/q")
	g := w.open(w.rw("ws"))
	dir, errno := g.Open(g.name("ws/l/empty"), DirectoryOnly)
	if errno != 0 {
		t.Fatal(errno)
	}
	defer dir.Close()
	if errno := g.Rename(g.name("ws/p"), g.name("ws/l/empty")); errno != EINVAL {
		t.Errorf("a directory is below itself: %v", errno)
	}
	top, _, err := rootedfs.Open(w.Path("ws"))
	if err != nil {
		t.Fatal(err)
	}
	defer top.Close()
	// With os.Root the directory is removed first, and made again.
	want := map[bool]string{true: "[]", false: "[] ENOENT"}[top.RenameReplacesEmptyDir()]
	if names := listing(dir.(*Dir)); names != want {
		t.Errorf("the directory that was opened lists %s, want %s", names, want)
	}
}

func TestSymlinkedMountIsFollowedOnce(t *testing.T) {
	w := newWorld(t)
	w.Link("name", "ws")
	g := w.open(w.ro("name"))
	if content, errno := g.content("name/f.txt", 0); content != "inside" || errno != 0 {
		t.Errorf("reading gave %q, %v", content, errno)
	}
	wantErrno(t, "the real name", g.try("ws/f.txt", 0), errOutside)
	if err := os.Remove(w.Path("name")); err != nil {
		t.Fatal(err)
	}
	w.Link("name", "out")
	wantErrno(t, "after the link was changed", g.try("name/secret", 0), ENOENT)
	if got := filepath.Base(g.name("name")); got != g.list("")[0] {
		t.Errorf("listed as %v", g.list(""))
	}
}
