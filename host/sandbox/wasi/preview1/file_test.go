//go:build unix

package preview1_test

import (
	"math"
	"strings"
	"testing"

	"github.com/stockade-dev/stockade/host/sandbox/wasi"
	"github.com/stockade-dev/stockade/host/sandbox/wasi/preview1"
)

func TestReadAndWrite(t *testing.T) {
	h := newHost(t)
	g := h.mounted(h.rw("ws"))
	ws := g.directory(h, "ws")
	fd := g.opened(ws, "new", openOptions{oflags: oCreat, base: rAll})
	if n, errno := g.write(fd, "hello ", "", "world"); n != 11 || errno != 0 {
		t.Errorf("write: %d, %v", n, errno)
	}
	if n, errno := g.pwrite(fd, 6, "W"); n != 1 || errno != 0 {
		t.Errorf("pwrite: %d, %v", n, errno)
	}
	for _, s := range []struct {
		off    int64
		whence int
		want   uint64
		errno  wasi.Errno
	}{
		{-5, 2, 6, 0}, {2, 0, 2, 0}, {3, 1, 5, 0}, {-1, 1, 4, 0}, {100, 2, 111, 0}, {math.MaxInt64, 0, math.MaxInt64, 0},
		{1, 1, 0, wasi.EINVAL}, {math.MaxInt64, 2, 0, wasi.EINVAL}, {-1, 0, 0, wasi.EINVAL}, {math.MinInt64, 1, 0, wasi.EINVAL},
		{0, 3, 0, wasi.EINVAL}, {0, -1, 0, wasi.EINVAL}, {0, 0, 0, 0},
	} {
		at, errno := g.seek(fd, s.off, s.whence)
		if errno != s.errno || errno == 0 && at != s.want {
			t.Errorf("seek %d from %d: %d, %v", s.off, s.whence, at, errno)
		}
	}
	// Several buffers, one of them empty, and the end of the file.
	a, b, c := g.room(4), g.room(0), g.room(100)
	at, n := g.iovecs([2]int{a, 4}, [2]int{b, 0}, [2]int{c, 100})
	g.must("fd_read", fd, at, n, resultAt)
	if got := g.u32(resultAt); got != 11 || string(g.bytes(a, 4)) != "hell" || string(g.bytes(c, 7)) != "o World" {
		t.Errorf("read %d: %q, %q", got, g.bytes(a, 4), g.bytes(c, 7))
	}
	if s, errno := g.read(fd, 10); s != "" || errno != 0 {
		t.Errorf("read at the end: %q, %v", s, errno)
	}
	g.must("fd_read", fd, at, 0, resultAt)
	if s, errno := g.pread(fd, 100, 6); s != "World" || errno != 0 {
		t.Errorf("pread: %q, %v", s, errno)
	}
	if s, errno := g.pread(fd, 100, 1<<40); s != "" || errno != 0 {
		t.Errorf("pread beyond the end: %q, %v", s, errno)
	}
	g.must("fd_tell", fd, resultAt)
	if at := g.u64(resultAt); at != 11 {
		t.Errorf("position %d", at)
	}
	if got := h.Content("ws/new"); got != "hello World" {
		t.Errorf("the host has %q", got)
	}
	g.must("fd_sync", fd)
	g.must("fd_datasync", fd)
	g.must("fd_advise", fd, 0, 10, 3)
	g.want(wasi.EINVAL, "fd_advise", fd, 0, 10, 6)
	g.want(wasi.EINVAL, "fd_advise", fd, uint64(1)<<63, 10, 0)

	for _, off := range []uint64{1 << 63, math.MaxUint64} {
		_, errno := g.pread(fd, 1, off)
		wantErrno(t, "pread", errno, wasi.EINVAL)
		_, errno = g.pwrite(fd, off, "x")
		wantErrno(t, "pwrite", errno, wasi.EINVAL)
	}
}

func TestSizeAndTimes(t *testing.T) {
	h := newHost(t)
	g := h.mounted(h.rw("ws"))
	fd := g.opened(g.directory(h, "ws"), "f.txt", openOptions{base: rAll})
	size := func(want uint64) {
		t.Helper()
		if st := g.stat(fd); st.size != want {
			t.Errorf("size %d, want %d", st.size, want)
		}
	}
	g.must("fd_filestat_set_size", fd, 3)
	size(3)
	g.must("fd_filestat_set_size", fd, 10)
	size(10)
	g.must("fd_allocate", fd, 2, 5)
	size(10)
	g.must("fd_allocate", fd, 8, 12)
	size(20)
	if got := h.Content("ws/f.txt"); got != "ins"+strings.Repeat("\x00", 17) {
		t.Errorf("the file has %q", got)
	}
	g.want(wasi.EINVAL, "fd_allocate", fd, 30, 0)
	for _, n := range []uint64{1<<30 + 1, 1 << 62, 1 << 63, math.MaxUint64} {
		g.want(wasi.EFBIG, "fd_filestat_set_size", fd, n)
		g.want(wasi.EFBIG, "fd_allocate", fd, 0, n)
		g.want(wasi.EFBIG, "fd_allocate", fd, n, 1)
		g.want(wasi.EFBIG, "fd_allocate", fd, n, n)
	}
	size(20)
	g.must("fd_filestat_set_times", fd, 3_000_000_000, 4_000_000_000, sAtim|sMtim)
	if st := g.stat(fd); st.atim != 3_000_000_000 || st.mtim != 4_000_000_000 {
		t.Errorf("%+v", st)
	}
	g.must("fd_filestat_set_times", fd, 0, 0, sMtimNow)
	if st := g.stat(fd); st.atim != 3_000_000_000 || st.mtim < 1_000_000_000_000_000_000 {
		t.Errorf("%+v", st)
	}
	for _, flags := range []int{sMtim | sMtimNow, sAtim | sAtimNow, 16, -1} {
		g.want(wasi.EINVAL, "fd_filestat_set_times", fd, 1, 1, flags)
	}
	g.want(wasi.EINVAL, "fd_filestat_set_times", fd, 1, uint64(1)<<63, sMtim)
	dir := g.directory(h, "ws/d")
	g.must("fd_filestat_set_times", dir, 0, 5_000_000_000, sMtim)
	if st := g.stat(dir); st.mtim != 5_000_000_000 {
		t.Errorf("%+v", st)
	}
	g.want(wasi.EROFS, "fd_filestat_set_times", preopen, 0, 5_000_000_000, sMtim)
}

func TestFlags(t *testing.T) {
	h := newHost(t)
	g := h.mounted(h.rw("ws"))
	ws := g.directory(h, "ws")
	fd := g.opened(ws, "f.txt", openOptions{base: rAll})
	g.must("fd_fdstat_set_flags", fd, fAppend|fNonblock)
	if st, _ := g.fdstat(fd); st.flags != fAppend|fNonblock {
		t.Errorf("flags %#x", st.flags)
	}
	// The position stays: nothing was opened again.
	if s, errno := g.read(fd, 2); s != "in" || errno != 0 {
		t.Errorf("read: %q, %v", s, errno)
	}
	g.must("fd_fdstat_set_flags", fd, fNonblock)
	g.must("fd_fdstat_set_flags", fd, fAppend)
	if s, errno := g.read(fd, 2); s != "si" || errno != 0 {
		t.Errorf("read: %q, %v", s, errno)
	}
	g.write(fd, "!")
	g.must("fd_fdstat_set_flags", fd, 0)
	g.pwrite(fd, 0, "I")
	if got := h.Content("ws/f.txt"); got != "Inside!" {
		t.Errorf("the file has %q", got)
	}
	for _, flags := range []int{fSync, fDsync, fRsync, fAppend | fSync} {
		g.want(wasi.ENOTSUP, "fd_fdstat_set_flags", fd, flags)
	}
	g.want(wasi.EINVAL, "fd_fdstat_set_flags", fd, 32)
	if st, _ := g.fdstat(fd); st.flags != 0 {
		t.Errorf("flags %#x", st.flags)
	}
	synced := g.opened(ws, "f.txt", openOptions{base: rAll, fdflags: fSync})
	g.must("fd_fdstat_set_flags", synced, fSync|fAppend)
	g.want(wasi.ENOTSUP, "fd_fdstat_set_flags", synced, 0)
	if n, errno := g.write(synced, "?"); n != 1 || errno != 0 {
		t.Errorf("write: %d, %v", n, errno)
	}
	if n, errno := g.pwrite(synced, 0, "?"); n != 1 || errno != 0 {
		t.Errorf("pwrite: %d, %v", n, errno)
	}
	g.want(wasi.EINVAL, "fd_fdstat_set_flags", ws, fAppend)
	g.must("fd_fdstat_set_flags", ws, fNonblock)
}

// Every function of a file needs its right, and does nothing without.
func TestFileRights(t *testing.T) {
	h := newHost(t)
	g := h.mounted(h.rw("ws"))
	ws := g.directory(h, "ws")
	before := h.State()
	for _, tc := range []struct {
		name   string
		rights uint64
		do     func(fd int) wasi.Errno
	}{
		{"read", rFDRead, func(fd int) wasi.Errno { _, errno := g.read(fd, 1); return errno }},
		{"pread", rFDRead, func(fd int) wasi.Errno { _, errno := g.pread(fd, 1, 0); return errno }},
		{"pread", rFDSeek, func(fd int) wasi.Errno { _, errno := g.pread(fd, 1, 0); return errno }},
		{"write", rFDWrite, func(fd int) wasi.Errno { _, errno := g.write(fd, "x"); return errno }},
		{"pwrite", rFDWrite, func(fd int) wasi.Errno { _, errno := g.pwrite(fd, 0, "x"); return errno }},
		{"pwrite", rFDSeek, func(fd int) wasi.Errno { _, errno := g.pwrite(fd, 0, "x"); return errno }},
		{"seek", rFDSeek, func(fd int) wasi.Errno { _, errno := g.seek(fd, 1, 1); return errno }},
		{"seek that tells", rFDSeek | rFDTell, func(fd int) wasi.Errno { _, errno := g.seek(fd, 0, 1); return errno }},
		{"tell", rFDSeek | rFDTell, func(fd int) wasi.Errno { return g.call("fd_tell", fd, resultAt) }},
		{"set flags", rFDFdstatSetFlags, func(fd int) wasi.Errno { return g.call("fd_fdstat_set_flags", fd, fAppend) }},
		{"sync", rFDSync, func(fd int) wasi.Errno { return g.call("fd_sync", fd) }},
		{"datasync", rFDDatasync, func(fd int) wasi.Errno { return g.call("fd_datasync", fd) }},
		{"advise", rFDAdvise, func(fd int) wasi.Errno { return g.call("fd_advise", fd, 0, 0, 0) }},
		{"allocate", rFDAllocate, func(fd int) wasi.Errno { return g.call("fd_allocate", fd, 0, 100) }},
		{"stat", rFDFilestatGet, func(fd int) wasi.Errno { return g.call("fd_filestat_get", fd, resultAt) }},
		{"set size", rFDFilestatSetSize, func(fd int) wasi.Errno { return g.call("fd_filestat_set_size", fd, 0) }},
		{"set times", rFDFilestatSetTimes, func(fd int) wasi.Errno { return g.call("fd_filestat_set_times", fd, 0, 0, sMtim) }},
	} {
		fd := g.opened(ws, "f.txt", openOptions{base: rAll &^ tc.rights})
		wantErrno(t, tc.name, tc.do(fd), wasi.ENOTCAPABLE)
		// The same after giving the right up.
		fd = g.opened(ws, "f.txt", openOptions{base: rAll})
		st, _ := g.fdstat(fd)
		g.must("fd_fdstat_set_rights", fd, st.base&^tc.rights, 0)
		wantErrno(t, tc.name, tc.do(fd), wasi.ENOTCAPABLE)
	}
	h.CheckUnchanged(before)
	// Either right tells the position.
	for _, r := range []uint64{rFDSeek, rFDTell} {
		fd := g.opened(ws, "f.txt", openOptions{base: r})
		g.must("fd_tell", fd, resultAt)
		g.must("fd_seek", fd, 0, 1, resultAt)
	}
}

// Nothing changes a file of a read-only mount, whatever rights a guest asks for.
func TestReadOnlyFile(t *testing.T) {
	h := newHost(t)
	g := h.mounted(h.ro("ws"))
	ws := g.directory(h, "ws")
	before := h.State()
	for bit := range 30 {
		base := uint64(1) << bit
		_, errno := g.open(ws, "f.txt", openOptions{base: base | rFDRead})
		want := wasi.Errno(0)
		if base == rFDWrite {
			want = wasi.EROFS
		}
		wantErrno(t, "open", errno, want)
	}
	fd := g.opened(ws, "f.txt", openOptions{base: rAll &^ rFDWrite})
	_, errno := g.write(fd, "x")
	wantErrno(t, "write", errno, wasi.ENOTCAPABLE)
	_, errno = g.pwrite(fd, 0, "x")
	wantErrno(t, "pwrite", errno, wasi.ENOTCAPABLE)
	g.want(wasi.EROFS, "fd_allocate", fd, 0, 100)
	g.want(wasi.EROFS, "fd_filestat_set_size", fd, 0)
	g.want(wasi.EROFS, "fd_filestat_set_times", fd, 0, 0, sMtimNow)
	g.want(wasi.EROFS, "fd_fdstat_set_flags", fd, fAppend)
	g.must("fd_fdstat_set_flags", fd, 0)
	g.must("fd_fdstat_set_flags", fd, fNonblock)
	g.must("fd_sync", fd)
	g.must("fd_advise", fd, 0, 0, 0)
	g.want(wasi.EROFS, "fd_filestat_set_times", ws, 0, 0, sMtimNow)
	h.CheckUnchanged(before)
	if s, errno := g.read(fd, 100); s != "inside" || errno != 0 {
		t.Errorf("read: %q, %v", s, errno)
	}
}

func TestFileOfTwoNames(t *testing.T) {
	h := newHost(t)
	h.File("out/shared", "shared")
	h.HardLink("ws/h", "out/shared")
	g := h.mounted(h.rw("ws"))
	ws := g.directory(h, "ws")
	before := h.State()
	fd := g.opened(ws, "h", openOptions{base: rAll &^ rFDWrite})
	g.want(wasi.EACCES, "fd_filestat_set_times", fd, 0, 0, sMtim)
	g.want(wasi.EBADF, "fd_filestat_set_size", fd, 0)
	g.want(wasi.EBADF, "fd_allocate", fd, 0, 100)
	h.CheckUnchanged(before)
}

func TestQuotas(t *testing.T) {
	h := newHost(t)
	g := newGuest(t, &preview1.Options{FS: h.fs(nil, wasi.Limits{MaxWriteBytes: 100, MaxFileBytes: 1000, MaxCreated: 2}, h.rw("ws"))})
	ws := g.directory(h, "ws")
	fd := g.opened(ws, "new", openOptions{oflags: oCreat, base: rAll})
	if n, errno := g.write(fd, strings.Repeat("x", 60)); n != 60 || errno != 0 {
		t.Errorf("write: %d, %v", n, errno)
	}
	before := h.State()
	_, errno := g.write(fd, strings.Repeat("x", 60))
	wantErrno(t, "write", errno, wasi.ENOSPC)
	_, errno = g.pwrite(fd, 500, "x")
	wantErrno(t, "write after a hole", errno, wasi.ENOSPC)
	_, errno = g.pwrite(fd, 1<<62, "x")
	wantErrno(t, "write far away", errno, wasi.EFBIG)
	g.want(wasi.ENOSPC, "fd_filestat_set_size", fd, 900)
	g.want(wasi.EFBIG, "fd_filestat_set_size", fd, 1<<60)
	g.want(wasi.ENOSPC, "fd_allocate", fd, 0, 900)
	h.CheckUnchanged(before)
	// As much as there is room for, in two buffers.
	if n, errno := g.write(fd, strings.Repeat("y", 40), "z"); n != 40 || errno != 0 {
		t.Errorf("write: %d, %v", n, errno)
	}
	g.must("path_create_directory", ws, "dir")
	g.want(wasi.ENOSPC, "path_create_directory", ws, "dir2")
	_, errno = g.open(ws, "new2", openOptions{oflags: oCreat})
	wantErrno(t, "create", errno, wasi.ENOSPC)
}
