package wasi

import (
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// A watcher of a file learns of a change when it is made.
func TestNobodySeesAStagedFileOpenedToBeWritten(t *testing.T) {
	w := newWorld(t)
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if _, err := unix.InotifyAddWatch(fd, w.Path("ws"), unix.IN_CLOSE_WRITE|unix.IN_MODIFY); err != nil {
		t.Fatal(err)
	}
	g, s := w.openStaged(nil, nil, w.rw("ws"))
	g.write("ws/f.txt", "written")
	wantErrno(t, "open", g.try("ws/f.txt", ReadWrite), 0)
	events := make([]byte, 4096)
	if n, err := unix.Read(fd, events); err != unix.EAGAIN {
		t.Errorf("before the commit: %d bytes of events, %v", n, err)
	}
	if err := s.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n, err := unix.Read(fd, events); n <= 0 {
		t.Errorf("after the commit: %v", err)
	}
}

// A file that the host's user may not write to cannot be changed on a stage.
func TestAStagedFileIsAsWritableAsTheHosts(t *testing.T) {
	w := newWorld(t)
	if err := os.Chmod(w.Path("ws/f.txt"), 0o444); err != nil {
		t.Fatal(err)
	}
	g, _ := w.openStaged(nil, nil, w.rw("ws"))
	if os.Getuid() == 0 { // root may write to anything
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if err := unix.Setfsuid(65534); err != nil {
			t.Fatal(err)
		}
		defer unix.Setfsuid(0)
	}
	wantErrno(t, "read", g.try("ws/f.txt", ReadOnly), 0)
	wantErrno(t, "write", g.try("ws/f.txt", WriteOnly), EACCES)
	wantErrno(t, "truncate", g.try("ws/f.txt", ReadOnly|Truncate), EACCES)
}
