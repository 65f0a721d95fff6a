package wasi

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stockade-dev/stockade/host/internal/hosttest"
)

const bindWorld = "STOCKADE_TEST_BIND_WORLD"

// If nothing can be mounted, TestMaskedDirectoryStaysMaskedWhenRenamed shows that a
// second name does not help.
func TestMaskedDirectoryBehindABindMount(t *testing.T) {
	if base := os.Getenv(bindWorld); base != "" {
		behindBindMount(t, &world{&hosttest.World{T: t, Base: base}})
		return
	}
	w := newWorld(t)
	w.File("out/secrets/key", canary)
	w.File("out/secrets/sub/key", canary)
	w.Dir("ws/bound")
	w.Dir("ws/above")
	w.Dir("again")
	whereMountsArePossible(t, w)
}

// whereMountsArePossible runs the test again in a process that may mount: in a user
// namespace, or directly as root if there are no user namespaces. The canary is in its
// environment.
func whereMountsArePossible(t *testing.T, w *world) {
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
		cmd.Env = append(os.Environ(), bindWorld+"="+w.Base, "STOCKADE_TEST_CANARY="+canary)
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

// bind mounts a file or directory of the host on another name in the world.
func (w *world) bind(from, to string) {
	w.T.Helper()
	if err := unix.Mount(from, w.Path(to), "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		w.T.Fatal(bindRefused, err)
	}
}

// unshareMounts hides the mounts of this process from others.
func (w *world) unshareMounts() {
	w.T.Helper()
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		w.T.Fatal(bindRefused, err)
	}
}

func behindBindMount(t *testing.T, w *world) {
	bind := func(from, to string) { w.bind(w.Path(from), to) }
	w.unshareMounts()
	bind("out/secrets", "ws/bound")
	bind("out", "ws/above")
	bind("ws", "again")
	w.File("ws/inner/key", canary)
	w.File("ws/inner/sub/key", canary)

	g := w.openMasked([]string{"out/secrets"}, w.rw("ws"))
	before := w.State()
	reach(g, "ws/bound")
	reach(g, "ws/above/secrets")
	for _, p := range []string{"ws", "ws/above"} {
		for _, name := range g.list(p) {
			if name == "bound" || name == "secrets" {
				t.Errorf("%s lists %s", p, name)
			}
		}
	}
	w.CheckUnchanged(before)
	// The workspace is mounted under a name the mask does not have.
	again := w.openMasked([]string{"ws/inner", "ws/later/still"}, w.rw("again"))
	wantErrno(t, "mkdir of the parent", again.Mkdir(again.name("again/later")), 0)
	before = w.State()
	for _, p := range []string{"again/inner", "again/inner/key", "again/inner/new", "again/later/still"} {
		wantErrno(t, p, again.try(p, ReadOnly), errOutside)
		wantErrno(t, p, again.try(p, Create|ReadWrite), errOutside)
	}
	// A grant below a masked directory, under another name.
	if f, err := New(mountsOf(w.rw("again/d")), []string{w.Path("ws")}, nil); err == nil {
		f.Close()
		t.Error("a mount below a masked directory was accepted")
	}
	w.CheckUnchanged(before)
	t.Log(bindDone)
}
