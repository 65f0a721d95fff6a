//go:build unix

package wasi

import (
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/tetratelabs/wazero/experimental/sys"
)

func mountsOf(mounts ...policy.Mount) []policy.Mount { return mounts }

func TestNewRefuses(t *testing.T) {
	w := newWorld(t)
	w.link("loop", "loop")
	for name, mounts := range map[string][]policy.Mount{
		"a missing directory": {w.rw("nothing")},
		"a file":              {w.rw("ws/f.txt")},
		"a relative name":     {{Host: "ws"}},
		"no name":             {{}},
		"an unclean name":     {{Host: w.base + "/ws/"}},
		"a dotdot":            {{Host: w.base + "/out/../ws"}},
		"a NUL":               {{Host: w.base + "/ws\x00"}},
		"invalid UTF-8":       {{Host: w.base + "/\xff"}},
		"a loop":              {w.rw("loop")},
		"both rights":         {w.rw("ws"), w.ro("ws")},
	} {
		if f, err := New(mounts, nil, Limits{}); err == nil {
			f.Close()
			t.Errorf("%s was mounted", name)
		} else if !strings.HasPrefix(err.Error(), "mount ") {
			t.Errorf("%s: unclear error %q", name, err)
		}
	}
	if f, err := New(nil, nil, Limits{MaxOpenFiles: -1}); err == nil {
		f.Close()
		t.Error("a negative limit was accepted")
	}
	f, err := New(mountsOf(w.rw("ws"), w.rw("ws")), nil, Limits{})
	if err != nil {
		t.Fatal("the same grant twice:", err)
	}
	f.Close()
}

func TestTree(t *testing.T) {
	w := newWorld(t)
	g := w.open(w.rw("ws"), w.ro("out/dir"))
	parts := strings.Split(strings.Trim(guestName(w.base), "/"), "/")
	for i := range parts {
		dir := "/" + strings.Join(parts[:i], "/")
		if got := g.list(dir); len(got) != 1 || got[0] != parts[i] {
			t.Errorf("%s lists %v", dir, got)
		}
	}
	if got := g.list(""); !slices.Equal(got, []string{"out", "ws"}) {
		t.Errorf("the directory of both mounts lists %v", got)
	}
	if got := g.list("out"); !slices.Equal(got, []string{"dir"}) {
		t.Errorf("out lists %v", got)
	}
	for _, p := range []string{"/", ".", guestName(w.base), guestName(w.base)[1:], g.name("out"), g.name("ws") + "/", g.name("ws/.")} {
		st, errno := g.Stat(p)
		if errno != 0 || !st.Mode.IsDir() || st.Ino == 0 {
			t.Errorf("stat %s: %+v, %v", p, st, errno)
		}
	}
	wantErrno(t, "a file of a synthetic directory", g.try("out/secret", 0), errOutside)
}

func TestNoMountsIsAnEmptyDirectory(t *testing.T) {
	w := newWorld(t)
	g := w.open()
	if got := g.list("/"); len(got) != 0 {
		t.Errorf("lists %v", got)
	}
	for _, p := range []string{"/etc", "/etc/passwd", "/nothing", "tmp"} {
		wantErrno(t, p, g.try("/"+p, 0), errOutside)
	}
}

func TestOrdinaryWork(t *testing.T) {
	w := newWorld(t)
	w.dir("ws/masked")
	for _, tc := range []struct {
		name string
		fs   *guestFS
	}{
		{"plain", w.open(w.rw("ws"))},
		{"guarded", w.openMasked([]string{"ws/masked"}, w.rw("ws"))},
		{"root", &guestFS{mustNew(t, policy.Mount{Host: "/", Write: true}), w}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := tc.fs
			ok := func(what string, errno sys.Errno) { t.Helper(); wantErrno(t, what, errno, 0) }
			ok("mkdir", g.Mkdir(g.name("ws/n"), 0o700))
			wantErrno(t, "mkdir again", g.Mkdir(g.name("ws/n"), 0o700), sys.EEXIST)
			wantErrno(t, "mkdir below nothing", g.Mkdir(g.name("ws/no/n"), 0o700), sys.ENOENT)
			f, errno := g.OpenFile(g.name("ws/n/x"), sys.O_CREAT|sys.O_EXCL|sys.O_RDWR, 0o600)
			ok("create", errno)
			if n, errno := f.Write([]byte("hello world")); n != 11 || errno != 0 {
				t.Errorf("write: %d, %v", n, errno)
			}
			if n, errno := f.Pwrite([]byte("W"), 6); n != 1 || errno != 0 {
				t.Errorf("pwrite: %d, %v", n, errno)
			}
			if at, errno := f.Seek(-5, io.SeekEnd); at != 6 || errno != 0 {
				t.Errorf("seek: %d, %v", at, errno)
			}
			buf := make([]byte, 20)
			if n, errno := f.Read(buf); string(buf[:n]) != "World" || errno != 0 {
				t.Errorf("read: %q, %v", buf[:n], errno)
			}
			if n, errno := f.Read(buf); n != 0 || errno != 0 {
				t.Errorf("read at the end: %d, %v", n, errno)
			}
			ok("truncate", f.Truncate(5))
			ok("sync", f.Sync())
			ok("set append", f.SetAppend(true))
			_, errno = f.Write([]byte("!"))
			ok("append", errno)
			ok("clear append", f.SetAppend(false))
			_, errno = f.Pwrite([]byte("J"), 0)
			ok("pwrite", errno)
			ok("utimes", f.Utimens(sys.UTIME_OMIT, 1234567890123456789))
			if st, errno := f.Stat(); errno != 0 || st.Size != 6 || st.Mtim/1000 != 1234567890123456 || !st.Mode.IsRegular() {
				t.Errorf("stat: %+v, %v", st, errno)
			}
			ok("close", f.Close())
			ok("close again", f.Close())
			if content, errno := g.content("ws/n/x", 0); content != "Jello!" || errno != 0 {
				t.Errorf("reading gave %q, %v", content, errno)
			}
			wantErrno(t, "exclusive", g.try("ws/n/x", sys.O_CREAT|sys.O_EXCL|sys.O_RDWR), sys.EEXIST)
			ok("chmod", g.Chmod(g.name("ws/n/x"), 0o640|fs.ModeSetuid))
			if st, errno := g.Stat(g.name("ws/n/x")); errno != 0 || st.Mode != 0o640 {
				t.Errorf("mode: %v, %v", st.Mode, errno)
			}
			ok("utimes dir", g.Utimens(g.name("ws/n"), 1e9, 2e9))
			ok("append mode", g.try("ws/n/x", sys.O_APPEND|sys.O_RDWR))
			if content, _ := g.content("ws/n/x", 0); content != "Jello!overwritten" {
				t.Errorf("appending gave %q", content)
			}
			ok("truncate on open", g.try("ws/n/x", sys.O_TRUNC))
			if st, _ := g.Stat(g.name("ws/n/x")); st.Size != 0 {
				t.Errorf("size %d after O_TRUNC", st.Size)
			}
			ok("rename", g.Rename(g.name("ws/n/x"), g.name("ws/y")))
			wantErrno(t, "rename file onto directory", g.Rename(g.name("ws/y"), g.name("ws/n")), sys.EISDIR)
			wantErrno(t, "rename directory onto file", g.Rename(g.name("ws/n"), g.name("ws/y")), sys.ENOTDIR)
			wantErrno(t, "rename onto full directory", g.Rename(g.name("ws/n"), g.name("ws/d")), sys.ENOTEMPTY)
			wantErrno(t, "rename nothing", g.Rename(g.name("ws/no"), g.name("ws/z")), sys.ENOENT)
			ok("rename to itself", g.Rename(g.name("ws/n"), g.name("ws/n")))
			ok("mkdir", g.Mkdir(g.name("ws/e"), 0o700))
			ok("rename onto empty directory", g.Rename(g.name("ws/n"), g.name("ws/e")))
			wantErrno(t, "unlink directory", g.Unlink(g.name("ws/e")), sys.EISDIR)
			wantErrno(t, "rmdir file", g.Rmdir(g.name("ws/y")), sys.ENOTDIR)
			wantErrno(t, "rmdir full", g.Rmdir(g.name("ws/d")), sys.ENOTEMPTY)
			wantErrno(t, "unlink with a slash", g.Unlink(g.name("ws/y/")), sys.ENOTDIR)
			ok("rmdir", g.Rmdir(g.name("ws/e")+"/"))
			ok("unlink", g.Unlink(g.name("ws/y")))
			wantErrno(t, "write a directory", g.try("ws/d", sys.O_RDWR), sys.EISDIR)
			wantErrno(t, "file as directory", g.try("ws/f.txt", sys.O_DIRECTORY), sys.ENOTDIR)
			wantErrno(t, "nothing", g.try("ws/no", 0), sys.ENOENT)
			wantErrno(t, "readlink of a file", func() sys.Errno { _, e := g.Readlink(g.name("ws/f.txt")); return e }(), sys.EINVAL)
			r, errno := g.OpenFile(g.name("ws/f.txt"), sys.O_RDONLY, 0)
			ok("open", errno)
			_, errno = r.Write([]byte("x"))
			wantErrno(t, "write to a reader", errno, sys.EBADF)
			wantErrno(t, "truncate by a reader", r.Truncate(0), sys.EBADF)
			_, errno = r.Pread(buf, -1)
			wantErrno(t, "pread before the start", errno, sys.EINVAL)
			_, errno = r.Seek(math.MaxInt64, io.SeekEnd)
			wantErrno(t, "seek too far", errno, sys.EINVAL)
			_, errno = r.Seek(0, 77)
			wantErrno(t, "seek from nowhere", errno, sys.EINVAL)
			r.Close()
			_, errno = r.Read(buf)
			wantErrno(t, "read after close", errno, sys.EBADF)
		})
	}
}

func mustNew(t *testing.T, mounts ...policy.Mount) *FS {
	t.Helper()
	f, err := New(mounts, nil, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func TestListingStreams(t *testing.T) {
	w := newWorld(t)
	const count = 3000
	for i := range count {
		w.file(fmt.Sprintf("ws/many/%04d", i), "")
	}
	if err := os.WriteFile(w.path("ws/many/\xff"), nil, 0o666); err != nil && filepath.Separator == '/' {
		t.Log("no names that are not UTF-8 here:", err)
	}
	g := w.open(w.rw("ws"))
	d, errno := g.OpenFile(g.name("ws/many"), sys.O_DIRECTORY, 0)
	wantErrno(t, "open", errno, 0)
	defer d.Close()
	for range 2 {
		seen := map[string]bool{}
		for {
			entries, errno := d.Readdir(7)
			wantErrno(t, "readdir", errno, 0)
			for _, e := range entries {
				if seen[e.Name] {
					t.Fatalf("%s came twice", e.Name)
				}
				seen[e.Name] = true
			}
			if len(entries) < 7 {
				break
			}
		}
		if len(seen) != count {
			t.Fatalf("%d entries", len(seen))
		}
		_, errno := d.Seek(0, io.SeekStart)
		wantErrno(t, "rewind", errno, 0)
	}
	entries, errno := d.Readdir(1)
	wantErrno(t, "readdir", errno, 0)
	if st, _ := g.Stat(g.name("ws/many/" + entries[0].Name)); st.Ino != entries[0].Ino || st.Ino == 0 {
		t.Errorf("inode %d listed, %d by stat", entries[0].Ino, st.Ino)
	}
	_, errno = d.Seek(1, io.SeekStart)
	wantErrno(t, "seek elsewhere", errno, sys.EINVAL)
}

func TestStatTellsNoDeviceOfTheHost(t *testing.T) {
	w := newWorld(t)
	w.link("ws/l", "../out/secret")
	g := w.open(w.rw("ws"), w.ro("out/dir"))
	a, _ := g.Stat(g.name("ws/f.txt"))
	b, _ := g.Stat(g.name("out/dir"))
	if a.Dev != 2 || b.Dev != 3 {
		t.Errorf("devices %d and %d", a.Dev, b.Dev)
	}
	l, errno := g.Lstat(g.name("ws/l"))
	if errno != 0 || l.Size != 0 {
		t.Errorf("the link has size %d, %v", l.Size, errno)
	}
}

func TestLimits(t *testing.T) {
	newLimited := func(t *testing.T, l Limits) *guestFS {
		w := newWorld(t)
		f, err := New(mountsOf(w.rw("ws")), nil, l)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return &guestFS{f, w}
	}
	t.Run("open files", func(t *testing.T) {
		g := newLimited(t, Limits{MaxOpenFiles: 10})
		var open []sys.File
		for range 1000 {
			f, errno := g.OpenFile(g.name("ws/f.txt"), sys.O_RDONLY, 0)
			if errno != 0 {
				wantErrno(t, "open", errno, sys.EAGAIN)
				break
			}
			open = append(open, f)
		}
		if len(open) != 10 {
			t.Fatalf("%d files were opened", len(open))
		}
		wantErrno(t, "directory", g.try("ws", 0), sys.EAGAIN)
		wantErrno(t, "synthetic directory", g.try("/", 0), sys.EAGAIN)
		// wazero panics on anything else, here.
		_, errno := g.OpenFile(".", sys.O_RDONLY, 0)
		wantErrno(t, "preopen", errno, sys.ENOENT)
		open[0].Close()
		open[0].Close()
		wantErrno(t, "after a close", g.try("ws/f.txt", 0), 0)
		wantErrno(t, "failing", g.try("ws/no", 0), sys.ENOENT)
		wantErrno(t, "failing does not leak", g.try("ws", 0), 0)
	})
	t.Run("bytes written", func(t *testing.T) {
		g := newLimited(t, Limits{MaxWriteBytes: 100})
		f, errno := g.OpenFile(g.name("ws/x"), sys.O_CREAT|sys.O_RDWR, 0)
		wantErrno(t, "create", errno, 0)
		defer f.Close()
		_, errno = f.Write(make([]byte, 60))
		wantErrno(t, "write", errno, 0)
		_, errno = f.Pwrite(make([]byte, 60), 0)
		wantErrno(t, "overwrite", errno, sys.ERANGE)
		wantErrno(t, "truncate", f.Truncate(200), sys.ERANGE)
		_, errno = f.Pwrite([]byte("x"), 100)
		wantErrno(t, "hole", errno, sys.ERANGE)
		_, errno = f.Write(make([]byte, 40))
		wantErrno(t, "the rest", errno, 0)
		_, errno = f.Write([]byte("x"))
		wantErrno(t, "more", errno, sys.ERANGE)
		if fi, err := os.Stat(g.w.path("ws/x")); err != nil || fi.Size() != 100 {
			t.Errorf("the host has %v, %v", fi, err)
		}
	})
	t.Run("file size", func(t *testing.T) {
		g := newLimited(t, Limits{MaxFileBytes: 1000})
		f, errno := g.OpenFile(g.name("ws/x"), sys.O_CREAT|sys.O_RDWR, 0)
		wantErrno(t, "create", errno, 0)
		defer f.Close()
		for _, off := range []int64{1000, 1 << 40, 1 << 62, math.MaxInt64} {
			at, errno := f.Seek(off, io.SeekStart)
			if at != off {
				t.Errorf("seek to %d gave %d, %v", off, at, errno)
			}
			_, errno = f.Write([]byte("x"))
			wantErrno(t, fmt.Sprint("write at ", off), errno, sys.ERANGE)
			_, errno = f.Pwrite([]byte("x"), off)
			wantErrno(t, fmt.Sprint("pwrite at ", off), errno, sys.ERANGE)
			wantErrno(t, fmt.Sprint("truncate to ", off+off&1), f.Truncate(max(off, 1001)), sys.ERANGE)
			n, errno := f.Pread(make([]byte, 1), off)
			if n != 0 {
				t.Errorf("read %d bytes at %d, %v", n, off, errno)
			}
		}
		_, errno = f.Pwrite([]byte("x"), -1)
		wantErrno(t, "pwrite before the start", errno, sys.EINVAL)
		wantErrno(t, "truncate before the start", f.Truncate(-1), sys.EINVAL)
		wantErrno(t, "set append", f.SetAppend(true), 0)
		_, errno = f.Pwrite(make([]byte, 990), 0)
		wantErrno(t, "append", errno, 0)
		_, errno = f.Pwrite(make([]byte, 20), 0)
		wantErrno(t, "append beyond", errno, sys.ERANGE)
		if fi, err := os.Stat(g.w.path("ws/x")); err != nil || fi.Size() != 990 {
			t.Errorf("the host has %v, %v", fi, err)
		}
	})
	t.Run("created", func(t *testing.T) {
		g := newLimited(t, Limits{MaxCreated: 3})
		wantErrno(t, "file", g.try("ws/1", sys.O_CREAT), 0)
		wantErrno(t, "directory", g.Mkdir(g.name("ws/2"), 0), 0)
		wantErrno(t, "directory again", g.Mkdir(g.name("ws/2"), 0), sys.EEXIST)
		wantErrno(t, "file again", g.try("ws/1", sys.O_CREAT), 0)
		wantErrno(t, "exclusive", g.try("ws/3", sys.O_CREAT|sys.O_EXCL), 0)
		wantErrno(t, "unlink", g.Unlink(g.name("ws/3")), 0)
		wantErrno(t, "another file", g.try("ws/4", sys.O_CREAT), sys.ERANGE)
		wantErrno(t, "another directory", g.Mkdir(g.name("ws/4"), 0), sys.ERANGE)
		if diff := cmp.Diff([]string{"1", "2", "d", "f.txt"}, g.list("ws")); diff != "" {
			t.Error(diff)
		}
	})
}

func TestNothingWorksAfterClose(t *testing.T) {
	w := newWorld(t)
	w.dir("ws/masked")
	g := w.openMasked([]string{"ws/masked"}, w.rw("ws"))
	f, errno := g.OpenFile(g.name("ws/f.txt"), sys.O_RDWR, 0)
	wantErrno(t, "open", errno, 0)
	d, errno := g.OpenFile(g.name("ws"), sys.O_RDONLY, 0)
	wantErrno(t, "open directory", errno, 0)
	if err := g.Close(); err != nil {
		t.Error(err)
	}
	if err := g.Close(); err != nil {
		t.Error("again:", err)
	}
	before := w.state()
	_, write := f.Write([]byte("x"))
	_, read := f.Read(make([]byte, 1))
	_, list := d.Readdir(1)
	_, stat := g.Stat(g.name("ws/f.txt"))
	for what, errno := range map[string]sys.Errno{
		"write": write, "read": read, "list": list, "stat": stat,
		"truncate": f.Truncate(0),
		"open":     g.try("ws/f.txt", 0),
		"create":   g.try("ws/new", sys.O_CREAT),
		"root":     g.try("/", 0),
		"mkdir":    g.Mkdir(g.name("ws/new"), 0),
		"unlink":   g.Unlink(g.name("ws/f.txt")),
	} {
		wantErrno(t, what, errno, sys.EBADF)
	}
	_, errno = g.OpenFile(".", sys.O_RDONLY, 0)
	wantErrno(t, "preopen", errno, sys.ENOENT)
	wantErrno(t, "close", f.Close(), 0)
	wantErrno(t, "close directory", d.Close(), 0)
	w.unchanged(before)
}

func TestCloseWhileTheGuestWorks(t *testing.T) {
	w := newWorld(t)
	w.dir("ws/masked")
	for i := range 40 {
		masked := []string{"ws/masked"}
		if i%2 == 0 {
			masked = nil
		}
		g := w.openMasked(masked, w.rw("ws"))
		started := make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() {
			for n := 0; ; n++ {
				f, errno := g.OpenFile(g.name("ws/d/g.txt"), sys.O_RDWR, 0)
				if n == 0 {
					close(started)
				}
				if errno == sys.EBADF {
					return
				}
				wantErrno(t, "open", errno, 0)
				if f == nil {
					return
				}
				f.Pwrite([]byte("x"), 0)
				f.Close()
			}
		})
		<-started
		if err := g.Close(); err != nil {
			t.Error(err)
		}
		wg.Wait()
		if len(g.FS.open) != 0 || g.opened != 0 {
			t.Fatalf("%d files are open, %d counted", len(g.FS.open), g.opened)
		}
	}
}

// What was being opened during Close is not left open.
func TestCloseBetweenOpenAndKeep(t *testing.T) {
	w := newWorld(t)
	g := w.open(w.rw("ws"))
	wantErrno(t, "reserve", g.reserve(), 0)
	host, err := os.Open(w.path("ws/f.txt"))
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	wantErrno(t, "keep", g.keep(host), sys.EBADF)
	if _, err := host.Stat(); err == nil {
		t.Error("the file is open")
	}
}
