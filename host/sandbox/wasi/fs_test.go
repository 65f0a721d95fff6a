//go:build unix

package wasi

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stockade-dev/stockade/host/policy"
)

func mountsOf(mounts ...policy.Mount) []policy.Mount { return mounts }

func TestNewRefuses(t *testing.T) {
	w := newWorld(t)
	w.Link("loop", "loop")
	for name, mounts := range map[string][]policy.Mount{
		"a missing directory": {w.rw("nothing")},
		"a file":              {w.rw("ws/f.txt")},
		"a relative name":     {{Host: "ws"}},
		"no name":             {{}},
		"an unclean name":     {{Host: w.Base + "/ws/"}},
		"a dotdot":            {{Host: w.Base + "/out/../ws"}},
		"a NUL":               {{Host: w.Base + "/ws\x00"}},
		"invalid UTF-8":       {{Host: w.Base + "/\xff"}},
		"a loop":              {w.rw("loop")},
		"both rights":         {w.rw("ws"), w.ro("ws")},
	} {
		if f, err := New(mounts, nil, nil); err == nil {
			f.Close()
			t.Errorf("%s was mounted", name)
		} else if !strings.HasPrefix(err.Error(), "mount ") {
			t.Errorf("%s: unclear error %q", name, err)
		}
	}
	if f, err := New(nil, nil, &Options{Limits: Limits{MaxOpenFiles: -1}}); err == nil {
		f.Close()
		t.Error("a negative limit was accepted")
	}
	f, err := New(mountsOf(w.rw("ws"), w.rw("ws")), nil, nil)
	if err != nil {
		t.Fatal("the same grant twice:", err)
	}
	f.Close()
}

func TestTree(t *testing.T) {
	w := newWorld(t)
	g := w.open(w.rw("ws"), w.ro("out/dir"))
	parts := strings.Split(strings.Trim(guestName(w.Base), "/"), "/")
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
	for _, p := range []string{"/", ".", guestName(w.Base), guestName(w.Base)[1:], g.name("out"), g.name("ws") + "/", g.name("ws/.")} {
		st, errno := g.Stat(p)
		if errno != 0 || st.Type != Directory || st.Ino == 0 {
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
	t.Setenv("TMPDIR", "") // the mount contains /dev, and nothing of it may be shown
	w := newWorld(t)
	w.Dir("ws/masked")
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
			ok := func(what string, errno Errno) { t.Helper(); wantErrno(t, what, errno, 0) }
			ok("mkdir", g.Mkdir(g.name("ws/n")))
			wantErrno(t, "mkdir again", g.Mkdir(g.name("ws/n")), EEXIST)
			wantErrno(t, "mkdir below nothing", g.Mkdir(g.name("ws/no/n")), ENOENT)
			f, errno := g.file("ws/n/x", Create|Exclusive|ReadWrite)
			ok("create", errno)
			if n, errno := f.Write([]byte("hello world")); n != 11 || errno != 0 {
				t.Errorf("write: %d, %v", n, errno)
			}
			if n, errno := f.Pwrite([]byte("W"), 6); n != 1 || errno != 0 {
				t.Errorf("pwrite: %d, %v", n, errno)
			}
			if at, errno := f.SeekTo(-5, FromEnd); at != 6 || errno != 0 {
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
			ok("utimes", f.SetTimes(OmitTime, 1234567890123456789))
			if st, errno := f.Stat(); errno != 0 || st.Size != 6 || st.Mtim/1000 != 1234567890123456 || st.Type != RegularFile {
				t.Errorf("stat: %+v, %v", st, errno)
			}
			f.Close()
			f.Close()
			if content, errno := g.content("ws/n/x", 0); content != "Jello!" || errno != 0 {
				t.Errorf("reading gave %q, %v", content, errno)
			}
			wantErrno(t, "exclusive", g.try("ws/n/x", Create|Exclusive|ReadWrite), EEXIST)
			ok("utimes dir", g.SetTimes(g.name("ws/n"), true, 1e9, 2e9))
			ok("append mode", g.try("ws/n/x", Append|ReadWrite))
			if content, _ := g.content("ws/n/x", 0); content != "Jello!overwritten" {
				t.Errorf("appending gave %q", content)
			}
			ok("truncate on open", g.try("ws/n/x", Truncate))
			if st, _ := g.Stat(g.name("ws/n/x")); st.Size != 0 {
				t.Errorf("size %d after O_TRUNC", st.Size)
			}
			ok("rename", g.Rename(g.name("ws/n/x"), g.name("ws/y")))
			wantErrno(t, "rename file onto directory", g.Rename(g.name("ws/y"), g.name("ws/n")), EISDIR)
			wantErrno(t, "rename directory onto file", g.Rename(g.name("ws/n"), g.name("ws/y")), ENOTDIR)
			wantErrno(t, "rename onto full directory", g.Rename(g.name("ws/n"), g.name("ws/d")), ENOTEMPTY)
			wantErrno(t, "rename nothing", g.Rename(g.name("ws/no"), g.name("ws/z")), ENOENT)
			ok("rename to itself", g.Rename(g.name("ws/n"), g.name("ws/n")))
			ok("mkdir", g.Mkdir(g.name("ws/e")))
			ok("rename onto empty directory", g.Rename(g.name("ws/n"), g.name("ws/e")))
			wantErrno(t, "unlink directory", g.Unlink(g.name("ws/e")), EISDIR)
			wantErrno(t, "rmdir file", g.Rmdir(g.name("ws/y")), ENOTDIR)
			wantErrno(t, "rmdir full", g.Rmdir(g.name("ws/d")), ENOTEMPTY)
			wantErrno(t, "unlink with a slash", g.Unlink(g.name("ws/y/")), ENOTDIR)
			ok("rmdir", g.Rmdir(g.name("ws/e")+"/"))
			ok("unlink", g.Unlink(g.name("ws/y")))
			wantErrno(t, "write a directory", g.try("ws/d", ReadWrite), EISDIR)
			wantErrno(t, "file as directory", g.try("ws/f.txt", DirectoryOnly), ENOTDIR)
			wantErrno(t, "nothing", g.try("ws/no", 0), ENOENT)
			wantErrno(t, "readlink of a file", func() Errno { _, e := g.Readlink(g.name("ws/f.txt")); return e }(), EINVAL)
			r, errno := g.file("ws/f.txt", ReadOnly)
			ok("open", errno)
			_, errno = r.Write([]byte("x"))
			wantErrno(t, "write to a reader", errno, EBADF)
			wantErrno(t, "truncate by a reader", r.Truncate(0), EBADF)
			_, errno = r.Pread(buf, -1)
			wantErrno(t, "pread before the start", errno, EINVAL)
			_, errno = r.SeekTo(math.MaxInt64, FromEnd)
			wantErrno(t, "seek too far", errno, EINVAL)
			_, errno = r.SeekTo(0, 77)
			wantErrno(t, "seek from nowhere", errno, EINVAL)
			r.Close()
			_, errno = r.Read(buf)
			wantErrno(t, "read after close", errno, EBADF)
		})
	}
}

func mustNew(t *testing.T, mounts ...policy.Mount) *FS {
	t.Helper()
	f, err := New(mounts, nil, nil)
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
		w.File(fmt.Sprintf("ws/many/%04d", i), "")
	}
	if err := os.WriteFile(w.Path("ws/many/\xff"), nil, 0o666); err != nil && filepath.Separator == '/' {
		t.Log("no names that are not UTF-8 here:", err)
	}
	g := w.open(w.rw("ws"))
	d, errno := g.dir("ws/many")
	wantErrno(t, "open", errno, 0)
	defer d.Close()
	var order []Dirent
	for range 2 {
		seen := map[string]bool{}
		order = nil
		for cookie := uint64(0); ; {
			e, more, errno := d.Entry(cookie)
			wantErrno(t, "entry", errno, 0)
			if !more {
				break
			}
			if again, _, _ := d.Entry(cookie); again != e {
				t.Fatalf("asked again: %v, not %v", again, e)
			}
			if seen[e.Name] {
				t.Fatalf("%s came twice", e.Name)
			}
			seen[e.Name] = true
			order = append(order, e)
			cookie = e.Next
		}
		if len(seen) != count+2 || order[0].Name != "." || order[1].Name != ".." {
			t.Fatalf("%d entries, first %v", len(seen), order[:2])
		}
	}
	// Cookies work in any order.
	for i := len(order) - 2; i >= 0; i -= 97 {
		if e, more, errno := d.Entry(order[i].Next); !more || errno != 0 || e != order[i+1] {
			t.Fatalf("entry %d is %v, %v, %v, not %v", i+1, e, more, errno, order[i+1])
		}
	}
	e := order[100]
	if st, _ := g.Stat(g.name("ws/many/" + e.Name)); st.Ino != e.Ino || st.Ino == 0 {
		t.Errorf("inode %d listed, %d by stat", e.Ino, st.Ino)
	}
	self, _ := d.Stat()
	if order[0].Ino != self.Ino {
		t.Errorf("inode %d of the dot, %d by stat", order[0].Ino, self.Ino)
	}
	real := map[string]bool{}
	for _, e := range order {
		real[e.Name] = true
	}
	// Cookies that were never returned show nothing of other places.
	for _, cookie := range []uint64{1, 2, 77, 1 << 31, 1 << 32, 1<<62 + 12345, 1<<63 - 1, firstCookie, firstCookie + 1, firstCookie + 2, 1<<64 - 2} {
		if e, more, _ := d.Entry(cookie); more && !real[e.Name] {
			t.Errorf("cookie %#x gave %v", cookie, e)
		}
	}
}

// A directory that is read again from the start shows its current state.
func TestListingAgainSeesWhatChanged(t *testing.T) {
	w := newWorld(t)
	w.File("ws/one/a", "")
	g := w.open(w.rw("ws"))
	d, errno := g.dir("ws/one")
	wantErrno(t, "open", errno, 0)
	defer d.Close()
	for _, name := range []string{"a", "b", ""} {
		var got []string
		for cookie := uint64(0); ; {
			e, more, errno := d.Entry(cookie)
			wantErrno(t, "entry", errno, 0)
			if !more {
				break
			}
			got = append(got, e.Name)
			cookie = e.Next
		}
		want := []string{".", ".."}
		if name != "" {
			want = append(want, name)
		}
		if !slices.Equal(got, want) {
			t.Errorf("listed %v, want %v", got, want)
		}
		switch name {
		case "a":
			w.Rename("ws/one/a", "ws/one/b")
		case "b":
			w.Rename("ws/one/b", "ws/b")
		}
	}
}

func TestStatTellsNoDeviceOfTheHost(t *testing.T) {
	w := newWorld(t)
	w.Link("ws/l", "../out/secret")
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
		f, err := New(mountsOf(w.rw("ws")), nil, &Options{Limits: l})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return &guestFS{f, w}
	}
	t.Run("open files", func(t *testing.T) {
		g := newLimited(t, Limits{MaxOpenFiles: 10})
		var open []Handle
		for range 1000 {
			f, errno := g.Open(g.name("ws/f.txt"), ReadOnly)
			if errno != 0 {
				wantErrno(t, "open", errno, EMFILE)
				break
			}
			open = append(open, f)
		}
		if len(open) != 10 {
			t.Fatalf("%d files were opened", len(open))
		}
		wantErrno(t, "directory", g.try("ws", 0), EMFILE)
		wantErrno(t, "synthetic directory", g.try("/", 0), EMFILE)
		open[0].Close()
		open[0].Close()
		wantErrno(t, "after a close", g.try("ws/f.txt", 0), 0)
		wantErrno(t, "failing", g.try("ws/no", 0), ENOENT)
		wantErrno(t, "failing does not leak", g.try("ws", 0), 0)
	})
	t.Run("bytes written", func(t *testing.T) {
		g := newLimited(t, Limits{MaxWriteBytes: 100})
		f, errno := g.file("ws/x", Create|ReadWrite)
		wantErrno(t, "create", errno, 0)
		defer f.Close()
		_, errno = f.Write(make([]byte, 60))
		wantErrno(t, "write", errno, 0)
		_, errno = f.Pwrite(make([]byte, 60), 0)
		wantErrno(t, "overwrite", errno, ENOSPC)
		wantErrno(t, "truncate", f.Truncate(200), ENOSPC)
		_, errno = f.Pwrite([]byte("x"), 100)
		wantErrno(t, "hole", errno, ENOSPC)
		_, errno = f.Write(make([]byte, 40))
		wantErrno(t, "the rest", errno, 0)
		_, errno = f.Write([]byte("x"))
		wantErrno(t, "more", errno, ENOSPC)
		if fi, err := os.Stat(g.w.Path("ws/x")); err != nil || fi.Size() != 100 {
			t.Errorf("the host has %v, %v", fi, err)
		}
	})
	t.Run("file size", func(t *testing.T) {
		g := newLimited(t, Limits{MaxFileBytes: 1000})
		f, errno := g.file("ws/x", Create|ReadWrite)
		wantErrno(t, "create", errno, 0)
		defer f.Close()
		for _, off := range []int64{1000, 1 << 40, 1 << 62, math.MaxInt64} {
			at, errno := f.SeekTo(off, FromStart)
			if at != off {
				t.Errorf("seek to %d gave %d, %v", off, at, errno)
			}
			_, errno = f.Write([]byte("x"))
			wantErrno(t, fmt.Sprint("write at ", off), errno, EFBIG)
			_, errno = f.Pwrite([]byte("x"), off)
			wantErrno(t, fmt.Sprint("pwrite at ", off), errno, EFBIG)
			wantErrno(t, fmt.Sprint("truncate to ", off+off&1), f.Truncate(max(off, 1001)), EFBIG)
			n, errno := f.Pread(make([]byte, 1), off)
			if n != 0 {
				t.Errorf("read %d bytes at %d, %v", n, off, errno)
			}
		}
		_, errno = f.Pwrite([]byte("x"), -1)
		wantErrno(t, "pwrite before the start", errno, EINVAL)
		wantErrno(t, "truncate before the start", f.Truncate(-1), EINVAL)
		wantErrno(t, "set append", f.SetAppend(true), 0)
		_, errno = f.Pwrite(make([]byte, 990), 0)
		wantErrno(t, "append", errno, 0)
		_, errno = f.Pwrite(make([]byte, 20), 0)
		wantErrno(t, "append beyond", errno, EFBIG)
		if fi, err := os.Stat(g.w.Path("ws/x")); err != nil || fi.Size() != 990 {
			t.Errorf("the host has %v, %v", fi, err)
		}
	})
	t.Run("created", func(t *testing.T) {
		g := newLimited(t, Limits{MaxCreated: 3})
		wantErrno(t, "file", g.try("ws/1", Create), 0)
		wantErrno(t, "directory", g.Mkdir(g.name("ws/2")), 0)
		wantErrno(t, "directory again", g.Mkdir(g.name("ws/2")), EEXIST)
		wantErrno(t, "file again", g.try("ws/1", Create), 0)
		wantErrno(t, "exclusive", g.try("ws/3", Create|Exclusive), 0)
		wantErrno(t, "unlink", g.Unlink(g.name("ws/3")), 0)
		wantErrno(t, "another file", g.try("ws/4", Create), ENOSPC)
		wantErrno(t, "another directory", g.Mkdir(g.name("ws/4")), ENOSPC)
		if diff := cmp.Diff([]string{"1", "2", "d", "f.txt"}, g.list("ws")); diff != "" {
			t.Error(diff)
		}
	})
}

func TestNothingWorksAfterClose(t *testing.T) {
	w := newWorld(t)
	w.Dir("ws/masked")
	g := w.openMasked([]string{"ws/masked"}, w.rw("ws"))
	f, errno := g.file("ws/f.txt", ReadWrite)
	wantErrno(t, "open", errno, 0)
	d, errno := g.dir("ws")
	wantErrno(t, "open directory", errno, 0)
	if err := g.Close(); err != nil {
		t.Error(err)
	}
	if err := g.Close(); err != nil {
		t.Error("again:", err)
	}
	before := w.State()
	_, write := f.Write([]byte("x"))
	_, read := f.Read(make([]byte, 1))
	_, _, list := d.Entry(startCookie)
	_, stat := g.Stat(g.name("ws/f.txt"))
	for what, errno := range map[string]Errno{
		"write": write, "read": read, "list": list, "stat": stat,
		"truncate": f.Truncate(0),
		"open":     g.try("ws/f.txt", 0),
		"create":   g.try("ws/new", Create),
		"root":     g.try("/", 0),
		"mkdir":    g.Mkdir(g.name("ws/new")),
		"unlink":   g.Unlink(g.name("ws/f.txt")),
	} {
		wantErrno(t, what, errno, EBADF)
	}
	f.Close()
	d.Close()
	w.CheckUnchanged(before)
}

func TestCloseWhileTheGuestWorks(t *testing.T) {
	w := newWorld(t)
	w.Dir("ws/masked")
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
				f, errno := g.file("ws/d/g.txt", ReadWrite)
				if n == 0 {
					close(started)
				}
				if errno == EBADF {
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
		if len(g.FS.open) != 0 || g.openCount != 0 {
			t.Fatalf("%d files are open, %d counted", len(g.FS.open), g.openCount)
		}
	}
}

// A file that is being opened during Close is not left open.
func TestCloseBetweenOpenAndKeep(t *testing.T) {
	w := newWorld(t)
	g := w.open(w.rw("ws"))
	wantErrno(t, "reserve", g.reserve(), 0)
	host, err := os.Open(w.Path("ws/f.txt"))
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	wantErrno(t, "keep", g.track(host), EBADF)
	if _, err := host.Stat(); err == nil {
		t.Error("the file is open")
	}
}
