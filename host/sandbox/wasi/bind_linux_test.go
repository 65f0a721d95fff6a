package wasi

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

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
