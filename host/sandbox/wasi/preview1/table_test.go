//go:build unix

package preview1_test

import (
	"bytes"
	"testing"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/sandbox/wasi"
	"github.com/stockade-dev/stockade/host/sandbox/wasi/preview1"
)

func TestWhatAGuestStartsWith(t *testing.T) {
	h := newHost(t)
	for name, g := range map[string]*guest{
		"no files": newGuest(t, nil),
		"a mount":  h.mounted(h.rw("ws")),
		"the root": newGuest(t, &preview1.Options{FS: h.fs(nil, wasi.Limits{}, policy.Mount{Host: "/"})}),
	} {
		t.Run(name, func(t *testing.T) {
			g.t = t
			for fd, base := range []uint64{
				rFDRead | rFDFdstatSetFlags | rFDFilestatGet | rPollFDReadwrite,
				rFDWrite | rFDFdstatSetFlags | rFDFilestatGet | rPollFDReadwrite,
				rFDWrite | rFDFdstatSetFlags | rFDFilestatGet | rPollFDReadwrite,
			} {
				// No terminal, whatever the host program has.
				if st, errno := g.fdstat(fd); errno != 0 || st != (fdstat{tUnknown, 0, base, 0}) {
					t.Errorf("descriptor %d: %+v, %v", fd, st, errno)
				}
				g.want(wasi.EBADF, "fd_prestat_get", fd, resultAt)
				g.want(wasi.EBADF, "fd_prestat_dir_name", fd, resultAt, 10)
				if st := g.stat(fd); st != (filestat{nlink: 1}) {
					t.Errorf("descriptor %d: %+v", fd, st)
				}
			}
			st, errno := g.fdstat(preopen)
			if errno != 0 || st.typ != tDirectory || st.flags != 0 || st.inheriting != rAll ||
				st.base&(rFDRead|rFDWrite|rFDSeek|rFDFilestatSetSize) != 0 {
				t.Errorf("preopen: %+v, %v", st, errno)
			}
			for fd := 4; fd < 300; fd++ {
				g.want(wasi.EBADF, "fd_prestat_get", fd, resultAt)
				g.want(wasi.EBADF, "fd_fdstat_get", fd, resultAt)
			}
			g.must("fd_prestat_get", preopen, resultAt)
			if n := g.u32(resultAt + 4); n != 1 {
				t.Errorf("the name has %d bytes", n)
			}
			if st := g.stat(preopen); st.typ != tDirectory || st.ino == 0 {
				t.Errorf("preopen: %+v", st)
			}
			g.list(preopen, 4096)
		})
	}
}

func TestClose(t *testing.T) {
	h := newHost(t)
	g := h.mounted(h.rw("ws"))
	ws := g.directory(h, "ws")
	fd := g.opened(ws, "f.txt", openOptions{base: rFDRead})
	g.must("fd_close", fd)
	for _, bad := range []int{fd, 99, -1, 1 << 31} {
		g.want(wasi.EBADF, "fd_close", bad)
		_, errno := g.read(bad, 10)
		wantErrno(t, "read", errno, wasi.EBADF)
		_, errno = g.write(bad, "x")
		wantErrno(t, "write", errno, wasi.EBADF)
		_, errno = g.open(bad, "f.txt", openOptions{})
		wantErrno(t, "open", errno, wasi.EBADF)
		for _, name := range []string{"fd_sync", "fd_datasync"} {
			g.want(wasi.EBADF, name, bad)
		}
		g.want(wasi.EBADF, "fd_advise", bad, 0, 0, 0)
		g.want(wasi.EBADF, "fd_allocate", bad, 0, 1)
		g.want(wasi.EBADF, "fd_fdstat_set_flags", bad, 0)
		g.want(wasi.EBADF, "fd_fdstat_set_rights", bad, 0, 0)
		g.want(wasi.EBADF, "fd_filestat_get", bad, resultAt)
		g.want(wasi.EBADF, "fd_filestat_set_size", bad, 0)
		g.want(wasi.EBADF, "fd_filestat_set_times", bad, 0, 0, sMtim)
		g.want(wasi.EBADF, "fd_prestat_dir_name", bad, resultAt, 10)
		g.want(wasi.EBADF, "fd_readdir", bad, resultAt, 10, 0, 8192)
		g.want(wasi.EBADF, "fd_seek", bad, 0, 0, resultAt)
		g.want(wasi.EBADF, "fd_tell", bad, resultAt)
	}
	// The lowest free number is the next.
	if again := g.opened(ws, "f.txt", openOptions{base: rFDRead}); again != fd {
		t.Errorf("descriptor %d, want %d", again, fd)
	}
}

// Without its preopen a guest has only the files it has opened, and no way back.
func TestCloseOfThePreopen(t *testing.T) {
	h := newHost(t)
	g := h.mounted(h.rw("ws"))
	ws := g.directory(h, "ws")
	g.must("fd_close", preopen)
	g.want(wasi.EBADF, "fd_prestat_get", preopen, resultAt)
	_, errno := g.open(preopen, h.name("ws/f.txt"), openOptions{base: rFDRead})
	wantErrno(t, "open", errno, wasi.EBADF)
	fd := g.opened(ws, "f.txt", openOptions{base: rFDRead})
	if fd != preopen {
		t.Errorf("descriptor %d", fd)
	}
	// Its number is no preopen now.
	g.want(wasi.EBADF, "fd_prestat_get", fd, resultAt)
	_, errno = g.open(fd, "x", openOptions{})
	wantErrno(t, "open below a file", errno, wasi.ENOTDIR)
	_, errno = g.open(ws, "..", openOptions{})
	wantErrno(t, "open the parent", errno, wasi.EPERM)
}

func TestRenumberWidensNothing(t *testing.T) {
	h := newHost(t)
	g := h.mounted(h.ro("ws"))
	before := h.State()
	d := g.opened(preopen, h.name("ws/d"), openOptions{oflags: oDirectory, base: rPathOpen, inheriting: rFDRead})
	g.must("fd_renumber", d, preopen)
	for _, p := range []string{h.name("ws/f.txt"), h.name("out/secret"), "../f.txt", "/etc/passwd"} {
		if _, errno := g.open(preopen, p, openOptions{base: rFDRead}); errno == 0 {
			t.Errorf("%s was opened", p)
		}
	}
	_, errno := g.open(preopen, "g.txt", openOptions{base: rFDWrite})
	wantErrno(t, "open to write", errno, wasi.ENOTCAPABLE)
	fd := g.opened(preopen, "g.txt", openOptions{base: rFDRead})
	// Nothing else writes to a file that has become standard output.
	g.must("fd_renumber", fd, 1)
	_, errno = g.write(1, "x")
	wantErrno(t, "write", errno, wasi.ENOTCAPABLE)
	h.CheckUnchanged(before)
}

// The preopen works as before under another number.
func TestRenumberOfThePreopen(t *testing.T) {
	h := newHost(t)
	g := h.mounted(h.rw("ws"))
	fd := g.opened(preopen, h.name("ws/f.txt"), openOptions{base: rFDRead})
	g.must("fd_renumber", preopen, fd)
	g.must("fd_prestat_get", fd, resultAt)
	g.opened(fd, h.name("ws/f.txt"), openOptions{base: rFDRead})
}

func TestStreams(t *testing.T) {
	var out, errs bytes.Buffer
	g := newGuest(t, &preview1.Options{Stdout: &out, Stderr: &errs})
	if s, errno := g.read(0, 100); s != "" || errno != 0 {
		t.Errorf("stdin: %q, %v", s, errno)
	}
	if n, errno := g.write(1, "to ", "", "stdout"); n != 9 || errno != 0 || out.String() != "to stdout" {
		t.Errorf("stdout: %d, %v, %q", n, errno, &out)
	}
	if n, errno := g.write(2, "to stderr"); n != 9 || errno != 0 || errs.String() != "to stderr" {
		t.Errorf("stderr: %d, %v, %q", n, errno, &errs)
	}
	_, errno := g.write(0, "x")
	wantErrno(t, "write to stdin", errno, wasi.ENOTCAPABLE)
	_, errno = g.read(1, 10)
	wantErrno(t, "read from stdout", errno, wasi.ENOTCAPABLE)
	for fd := range 3 {
		_, errno := g.pread(fd, 10, 0)
		wantErrno(t, "pread", errno, wasi.ESPIPE)
		_, errno = g.pwrite(fd, 0, "x")
		wantErrno(t, "pwrite", errno, wasi.ESPIPE)
		_, errno = g.seek(fd, 0, 1)
		wantErrno(t, "seek", errno, wasi.ESPIPE)
		g.want(wasi.ESPIPE, "fd_tell", fd, resultAt)
		g.want(wasi.ESPIPE, "fd_advise", fd, 0, 0, 0)
		g.want(wasi.ESPIPE, "fd_allocate", fd, 0, 1)
		g.want(wasi.ESPIPE, "fd_filestat_set_size", fd, 0)
		g.want(wasi.EINVAL, "fd_sync", fd)
		g.want(wasi.EINVAL, "fd_datasync", fd)
		g.want(wasi.ENOTCAPABLE, "fd_filestat_set_times", fd, 0, 0, sMtim)
		g.want(wasi.ENOTDIR, "fd_readdir", fd, 8192, 100, 0, resultAt)
		_, errno = g.open(fd, "x", openOptions{})
		wantErrno(t, "open", errno, wasi.ENOTDIR)
		g.must("fd_fdstat_set_flags", fd, fNonblock|fAppend)
		if st, _ := g.fdstat(fd); st.flags != fNonblock|fAppend {
			t.Errorf("flags %#x", st.flags)
		}
		g.want(wasi.ENOTSUP, "fd_fdstat_set_flags", fd, fSync)
		g.want(wasi.EINVAL, "fd_fdstat_set_flags", fd, 32)
		g.want(wasi.EINVAL, "fd_fdstat_set_flags", fd, 1<<20)
	}
	if out.String() != "to stdout" || errs.String() != "to stderr" {
		t.Errorf("the outputs have %q and %q", &out, &errs)
	}
	g.must("fd_close", 1)
	_, errno = g.write(1, "x")
	wantErrno(t, "write after close", errno, wasi.EBADF)
}

// A partial write returns the number of bytes written.
func TestStreamThatFails(t *testing.T) {
	out := &limitedWriter{room: 5}
	g := newGuest(t, &preview1.Options{Stdout: out})
	if n, errno := g.write(1, "abc", "def"); n != 5 || errno != 0 {
		t.Errorf("%d, %v", n, errno)
	}
	_, errno := g.write(1, "x")
	wantErrno(t, "write", errno, wasi.EIO)
}

type limitedWriter struct{ room int }

func (l *limitedWriter) Write(p []byte) (int, error) {
	n := min(len(p), l.room)
	l.room -= n
	if n < len(p) {
		return n, bytes.ErrTooLarge
	}
	return n, nil
}

func TestOpenFilesAreLimited(t *testing.T) {
	h := newHost(t)
	g := newGuest(t, &preview1.Options{FS: h.fs(nil, wasi.Limits{MaxOpenFiles: 10}, h.rw("ws"))})
	other := h.mounted(h.rw("ws"))
	ws := g.directory(h, "ws")
	var fds []int
	for range 100_000 {
		fd, errno := g.open(ws, "f.txt", openOptions{base: rFDRead})
		if errno != 0 {
			wantErrno(t, "open", errno, wasi.EMFILE)
			break
		}
		fds = append(fds, fd)
	}
	if len(fds) != 9 { // and the directory
		t.Errorf("%d files are open", len(fds))
	}
	before := h.State()
	_, errno := g.open(ws, "new", openOptions{oflags: oCreat, base: rFDWrite})
	wantErrno(t, "create", errno, wasi.EMFILE)
	_, errno = g.open(ws, "f.txt", openOptions{oflags: oTrunc})
	wantErrno(t, "truncate", errno, wasi.EMFILE)
	h.CheckUnchanged(before)
	// Another guest has its own.
	other.opened(other.directory(h, "ws"), "f.txt", openOptions{base: rFDRead})
	g.must("fd_close", fds[3])
	if fd := g.opened(ws, "f.txt", openOptions{base: rFDRead}); fd != fds[3] {
		t.Errorf("descriptor %d, want %d", fd, fds[3])
	}
}
