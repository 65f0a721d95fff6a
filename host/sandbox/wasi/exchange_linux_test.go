package wasi

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A directory and a symbolic link change places all the time, while a guest
// opens a file by a name that goes through them.
func TestExchangeOfDirectoryAndLink(t *testing.T) {
	for _, tc := range []struct {
		name   string
		plant  func(*world) // makes ws/x and ws/y
		open   string
		masked []string
		opens  int
	}{
		{"directory and link outside", func(w *world) {
			w.file("ws/x/secret", "not secret")
			w.link("ws/y", "../out")
		}, "ws/x/secret", nil, 200_000},
		{"file and link outside", func(w *world) {
			w.file("ws/x", "not secret")
			w.link("ws/y", "../out/secret")
		}, "ws/x", nil, 40_000},
		{"directory and link to a masked directory", func(w *world) {
			w.file("ws/x/secret", "not secret")
			w.link("ws/y", "hidden")
		}, "ws/x/secret", []string{"ws/hidden"}, 40_000},
		{"directory and link below a masked directory", func(w *world) {
			w.file("ws/x/secret", "not secret")
			w.file("ws/hidden/sub/secret", canary)
			w.link("ws/y", "hidden/sub")
		}, "ws/x/secret", []string{"ws/hidden"}, 40_000},
		{"file and link to a masked file", func(w *world) {
			w.file("ws/x", "not secret")
			w.link("ws/y", "hidden/secret")
		}, "ws/x", []string{"ws/hidden"}, 40_000},
		{"directory and link outside, guarded", func(w *world) {
			w.file("ws/x/secret", "not secret")
			w.link("ws/y", "../out")
		}, "ws/x/secret", []string{"ws/hidden"}, 40_000},
		{"directory and FIFO, guarded", func(w *world) {
			w.file("ws/x/secret", "not secret")
			if err := unix.Mkfifo(w.path("ws/y"), 0o666); err != nil {
				w.t.Fatal(err)
			}
		}, "ws/x/secret", []string{"ws/hidden"}, 20_000},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t)
			w.file("ws/hidden/secret", canary)
			tc.plant(w)
			g := w.openMasked(tc.masked, w.rw("ws"))
			secrets := func() string {
				a, errA := os.ReadFile(w.path("out/secret"))
				b, errB := os.ReadFile(w.path("ws/hidden/secret"))
				if err := errors.Join(errA, errB); err != nil {
					t.Error(err)
				}
				return string(a) + string(b)
			}
			before := secrets()

			var stop atomic.Bool
			var wg sync.WaitGroup
			defer wg.Wait()
			defer stop.Store(true)
			x, y := w.path("ws/x"), w.path("ws/y")
			var exchanged atomic.Int64
			wg.Go(func() {
				for !stop.Load() {
					if err := unix.Renameat2(unix.AT_FDCWD, x, unix.AT_FDCWD, y, unix.RENAME_EXCHANGE); err != nil {
						t.Error("exchange:", err)
						return
					}
					exchanged.Add(1)
				}
			})
			name, buf := g.name(tc.open), make([]byte, 100)
			opened, escaped := 0, 0
			within(t, time.Minute, func() {
				for i := 0; i < tc.opens || exchanged.Load() < 1000; i++ {
					if t.Failed() {
						return
					}
					// Now and then a change, most of the time a look.
					flag := ReadOnly
					switch i % 8 {
					case 0:
						flag = ReadWrite
					case 1:
						g.SetTimes(name, true, 1e9, 1e9)
					}
					f, errno := g.file(tc.open, flag)
					if errno != 0 {
						continue
					}
					opened++
					n, _ := f.Read(buf)
					if strings.Contains(string(buf[:n]), canary) {
						escaped++
					}
					f.Close()
				}
			})
			stop.Store(true)
			wg.Wait()
			t.Logf("%d opens, %d with a result, %d exchanges, %d escapes", tc.opens, opened, exchanged.Load(), escaped)
			if escaped != 0 {
				t.Errorf("%d of %d opens gave the canary", escaped, tc.opens)
			}
			if opened == 0 {
				t.Error("nothing was opened")
			}
			if secrets() != before {
				t.Error("a secret was changed")
			}
			for _, p := range []string{"out/secret", "ws/hidden/secret"} {
				if fi, err := os.Stat(w.path(p)); err != nil || fi.ModTime().Unix() == 1 {
					t.Errorf("the times of %s were changed: %v", p, err)
				}
			}
		})
	}
}

const bindWorld = "STOCKADE_TEST_BIND_WORLD"

// TestMaskedDirectoryBehindABindMount runs itself again where it may mount: in
// a user namespace, or as it is where there are none but it is root. Where
// neither is possible, TestMaskedDirectoryStaysMaskedWhenRenamed is what shows
// that a second name does not help.
func TestMaskedDirectoryBehindABindMount(t *testing.T) {
	if base := os.Getenv(bindWorld); base != "" {
		behindBindMount(t, &world{t, base})
		return
	}
	w := newWorld(t)
	w.file("out/secrets/key", canary)
	w.file("out/secrets/sub/key", canary)
	w.dir("ws/bound")
	w.dir("ws/above")
	w.dir("again")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, attr := range []*syscall.SysProcAttr{
		{
			Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
		},
		{Cloneflags: syscall.CLONE_NEWNS},
	} {
		cmd := exec.CommandContext(t.Context(), self, "-test.run=^"+t.Name()+"$", "-test.v")
		cmd.Env = append(os.Environ(), bindWorld+"="+w.base)
		cmd.SysProcAttr = attr
		out, err := cmd.CombinedOutput()
		if bytes.Contains(out, []byte(bindDone)) && err == nil {
			return
		}
		if _, started := errors.AsType[*exec.ExitError](err); started && !bytes.Contains(out, []byte(bindRefused)) {
			t.Fatalf("%v\n%s", err, out)
		}
		t.Logf("cannot mount with %#x: %v", attr.Cloneflags, err)
	}
	t.Log("bind mounts are not possible here")
}

const (
	bindDone    = "bind mounts: looked at"
	bindRefused = "bind mounts: refused"
)

func behindBindMount(t *testing.T, w *world) {
	bind := func(from, to string) {
		t.Helper()
		if err := unix.Mount(w.path(from), w.path(to), "", unix.MS_BIND, ""); err != nil {
			t.Fatal(bindRefused, err)
		}
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		t.Fatal(bindRefused, err)
	}
	bind("out/secrets", "ws/bound")
	bind("out", "ws/above")
	bind("ws", "again")
	w.file("ws/inner/key", canary)
	w.file("ws/inner/sub/key", canary)

	g := w.openMasked([]string{"out/secrets"}, w.rw("ws"))
	before := w.state()
	reach(g, "ws/bound")
	reach(g, "ws/above/secrets")
	for _, p := range []string{"ws", "ws/above"} {
		for _, name := range g.list(p) {
			if name == "bound" || name == "secrets" {
				t.Errorf("%s lists %s", p, name)
			}
		}
	}
	w.unchanged(before)
	// The workspace is mounted under a name the mask does not have.
	again := w.openMasked([]string{"ws/inner", "ws/later/still"}, w.rw("again"))
	wantErrno(t, "mkdir of the parent", again.Mkdir(again.name("again/later")), 0)
	before = w.state()
	for _, p := range []string{"again/inner", "again/inner/key", "again/inner/new", "again/later/still"} {
		wantErrno(t, p, again.try(p, ReadOnly), errOutside)
		wantErrno(t, p, again.try(p, Create|ReadWrite), errOutside)
	}
	// A grant below a masked directory, under another name.
	if f, err := New(mountsOf(w.rw("again/d")), []string{w.path("ws")}, Limits{}); err == nil {
		f.Close()
		t.Error("a mount below a masked directory was accepted")
	}
	w.unchanged(before)
	t.Log(bindDone)
}

func TestMountTableEscapes(t *testing.T) {
	if got := unescape(`/a\040b\134\011`); got != "/a b\\\t" {
		t.Errorf("got %q", got)
	}
	if got := unescape(`/a\04`); got != `/a\04` {
		t.Errorf("got %q", got)
	}
}
