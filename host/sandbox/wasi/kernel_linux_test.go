package wasi

import (
	"os"
	"path"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stockade-dev/stockade/host/internal/hosttest"
	"github.com/stockade-dev/stockade/host/policy"
)

// readWriteStaged opens mounts in the three ways that guests have: for reading, for
// writing and staged.
func readWriteStaged(w *world, hosts ...string) map[string]*guestFS {
	var read, write []policy.Mount
	for _, host := range hosts {
		read = append(read, policy.Mount{Host: host})
		write = append(write, policy.Mount{Host: host, Write: true})
	}
	staged, stage := w.openStaged(nil, nil, write...)
	w.T.Cleanup(func() { stage.Drop() })
	return map[string]*guestFS{"read": w.open(read...), "write": w.open(write...), "staged": staged}
}

// wantNothing fails the test if a guest can read a file or directory, or change its
// content.
func (g *guestFS) wantNothing(how, p string) {
	g.w.T.Helper()
	for _, flag := range []Flag{ReadOnly, WriteOnly, ReadWrite, WriteOnly | Truncate, ReadOnly | Truncate, DirectoryOnly, NoFollow} {
		content, errno := g.content(p, flag)
		if errno == 0 || content != "" {
			g.w.T.Errorf("%s: open %s with flags %#x: %v and %d bytes", how, p, flag, errno, len(content))
		}
	}
	if c, errno := g.OpenContent(g.name(p)); errno == 0 {
		c.Close()
		g.w.T.Errorf("%s: the content of %s was opened", how, p)
	}
	if v, ok := g.View(8, func(uint64) {}); ok {
		if c, errno := v.OpenContent(g.name(p)); errno == 0 {
			c.Close()
			g.w.T.Errorf("%s: the content of %s was opened by a view", how, p)
		}
		v.Close()
	}
	in := g.name(p) + "/self"
	for what, errno := range map[string]Errno{
		"mkdir":     g.Mkdir(in + "/made"),
		"rmdir":     g.Rmdir(in),
		"set times": g.SetTimes(in, true, 1e9, 1e9),
		"unlink":    g.Unlink(in + "/comm"),
		"rename":    g.Rename(in, in+"-moved"),
	} {
		if errno == 0 {
			g.w.T.Errorf("%s: %s below %s", how, what, p)
		}
	}
}

// A mount that holds everything shows neither processes nor the kernel.
func TestAMountOfTheRootHasNoProc(t *testing.T) {
	t.Setenv("TMPDIR", "") // where all is mounted, there is nothing of /dev
	comm, err := os.ReadFile("/proc/self/comm")
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t)
	up := strings.Repeat("../", strings.Count(w.Path("ws"), "/"))
	w.Link("ws/environ", up+"proc/self/environ")
	w.Link("ws/proc", up+"proc")
	for how, g := range readWriteStaged(w, "/") {
		for _, p := range []string{
			"/proc/self/environ", "/proc/thread-self/environ", "/proc/self/mem", "/proc/self/comm", "/proc/self/root/proc/self/environ",
			"/proc", "/proc/self/fd", "/PROC/self/environ", "/sys/kernel/uevent_seqnum", "/sys", "/dev", "/dev/zero", "/dev/null", "ws/environ", "ws/proc/self/mem", "ws/proc",
		} {
			g.wantNothing(how, p)
		}
		for _, p := range []string{"/proc", "/proc/self", "/proc/self/exe", "/sys/kernel", "/dev/null"} {
			if _, errno := g.Lstat(p); errno == 0 {
				t.Errorf("%s: %s is seen", how, p)
			}
		}
		for _, name := range g.list("/") {
			if name == "proc" || name == "sys" || name == "dev" {
				t.Errorf("%s: / lists %s", how, name)
			}
		}
		if content, errno := g.content("ws/f.txt", ReadOnly); errno != 0 || content != "inside" {
			t.Errorf("%s: an ordinary file: %v, %q", how, errno, content)
		}
	}
	if now, _ := os.ReadFile("/proc/self/comm"); string(now) != string(comm) {
		t.Errorf("the host is called %q now", now)
	}
}

func TestAMountOfTheKernelIsRefused(t *testing.T) {
	for _, host := range []string{"/proc", "/proc/self", "/proc/self/fd", "/sys", "/sys/kernel", "/dev", "/dev/pts"} {
		if f, err := New([]policy.Mount{{Host: host}}, nil, nil); err == nil {
			f.Close()
			t.Errorf("%s was mounted", host)
		} else if !strings.Contains(err.Error(), "no tool is shown") && !os.IsNotExist(err) {
			t.Errorf("%s: %v", host, err)
		}
	}
	if dir, err := os.MkdirTemp("/dev/shm", "wasi"); err == nil { // ordinary, although it is in /dev
		defer os.RemoveAll(dir)
		f, err := New([]policy.Mount{{Host: dir, Write: true}}, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
}

// The kernel's file systems stay hidden where they are mounted a second time, whole or as
// a single file, and ordinary files beside them do not.
func TestProcBehindABindMount(t *testing.T) {
	t.Setenv("TMPDIR", "") // where all is mounted, there is nothing of /dev
	if base := os.Getenv(bindWorld); base != "" {
		procBehindABindMount(t, &world{&hosttest.World{T: t, Base: base}})
		return
	}
	w := newWorld(t)
	w.Dir("ws/p")
	w.Dir("ws/s")
	w.Dir("ws/self")
	w.Dir("ws/disk")
	w.File("ws/environ", "")
	w.File("ws/mem", "")
	w.Link("ws/l", "p/self/environ")
	whereMountsArePossible(t, w)
}

func procBehindABindMount(t *testing.T, w *world) {
	if environ, _ := os.ReadFile("/proc/self/environ"); !strings.Contains(string(environ), canary) {
		t.Fatal("the canary is not in the environment")
	}
	w.unshareMounts()
	w.bind("/proc", "ws/p")
	w.bind("/sys", "ws/s")
	w.bind("/proc/self", "ws/self")
	w.bind("/proc/self/environ", "ws/environ")
	w.bind("/proc/self/mem", "ws/mem")
	if err := unix.Mount("tmpfs", w.Path("ws/disk"), "tmpfs", 0, ""); err != nil {
		t.Fatal(bindRefused, err)
	}
	w.File("ws/disk/d/f.txt", "ordinary")
	for _, hosts := range [][]string{{w.Path("ws")}, {"/"}} {
		for how, g := range readWriteStaged(w, hosts...) {
			for _, p := range []string{"p", "p/self/environ", "p/self/mem", "p/1/environ", "self", "self/environ", "environ", "mem", "l", "s", "s/kernel/uevent_seqnum"} {
				g.wantNothing(how+" "+hosts[0], path.Join("ws", p))
			}
			if content, errno := g.content("ws/disk/d/f.txt", ReadOnly); errno != 0 || content != "ordinary" {
				t.Errorf("%s %s: an ordinary file: %v, %q", how, hosts[0], errno, content)
			}
			if how != "read" {
				wantErrno(t, how, g.try("ws/disk/d/new-"+how, Create|WriteOnly), 0, EEXIST)
			}
		}
	}
	for _, p := range []string{"ws/p", "ws/self", "ws/s"} {
		if f, err := New(mountsOf(w.ro(p)), nil, nil); err == nil {
			f.Close()
			t.Errorf("%s was mounted", p)
		}
	}
	t.Log(bindDone)
}
