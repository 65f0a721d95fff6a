//go:build unix

package preview1_test

import (
	"encoding/binary"
	"testing"

	"github.com/stockade-dev/stockade/host/sandbox/wasi"
)

// The tests below do the same as the cases of the wasi-testsuite that wazero's WASI
// fails, with a directory in which everything is allowed. If a case makes links, the host
// makes them instead, and the test shows that the guest cannot.

func scratch(t *testing.T) (*host, *guest, int) {
	t.Helper()
	h := newHost(t)
	h.Dir("tmp")
	g := h.mounted(h.rw("tmp"))
	return h, g, g.directory(h, "tmp")
}

func TestSuitePwriteWithAppend(t *testing.T) {
	h, g, dir := scratch(t)
	fd := g.opened(dir, "f", openOptions{oflags: oCreat | oTrunc, base: rFDWrite | rFDSeek | rFDTell, fdflags: fAppend})
	step := func(what string, n int, errno wasi.Errno, want int) {
		t.Helper()
		if n != want || errno != 0 {
			t.Errorf("%s: %d, %v", what, n, errno)
		}
	}
	n, errno := g.write(fd, "ab")
	step("write", n, errno, 2)
	at, errno := g.seek(fd, 0, 0)
	step("rewind", int(at), errno, 0)
	n, errno = g.write(fd, "cd")
	step("append", n, errno, 2)
	at, errno = g.seek(fd, 0, 1)
	step("position", int(at), errno, 4)
	n, errno = g.pwrite(fd, 0, "efg")
	step("pwrite", n, errno, 3)
	at, errno = g.seek(fd, 0, 1)
	step("position after pwrite", int(at), errno, 4)
	at, errno = g.seek(fd, 0, 2)
	step("end", int(at), errno, 7) // as on Linux
	if got := h.Content("tmp/f"); got != "abcdefg" {
		t.Errorf("the file has %q", got)
	}
}

func TestSuiteSockShutdownNotSock(t *testing.T) {
	_, g, dir := scratch(t)
	for _, fd := range []int{0, 1, 2, preopen, dir} {
		g.want(wasi.ENOTSOCK, "sock_shutdown", fd, 1)
		g.want(wasi.ENOTSOCK, "sock_accept", fd, 0, resultAt)
		g.want(wasi.ENOTSOCK, "sock_recv", fd, 0, 0, 0, resultAt, resultAt)
		g.want(wasi.ENOTSOCK, "sock_send", fd, 0, 0, 0, resultAt)
	}
	for _, fd := range []int{77, -1} {
		g.want(wasi.EBADF, "sock_shutdown", fd, 1)
		g.want(wasi.EBADF, "sock_accept", fd, 0, resultAt)
		g.want(wasi.EBADF, "sock_recv", fd, 0, 0, 0, resultAt, resultAt)
		g.want(wasi.EBADF, "sock_send", fd, 0, 0, 0, resultAt)
	}
}

func TestSuiteDirFDOpFailures(t *testing.T) {
	_, g, dir := scratch(t)
	if st := g.stat(dir); st.typ != tDirectory {
		t.Errorf("type %d", st.typ)
	}
	g.must("fd_prestat_get", preopen, resultAt)
	if tag, n := g.u32(resultAt), g.u32(resultAt+4); tag != 0 || n != 1 {
		t.Errorf("prestat: tag %d, length %d", tag, n)
	}
	g.want(wasi.ENAMETOOLONG, "fd_prestat_dir_name", preopen, resultAt, 0)
	g.must("fd_prestat_dir_name", preopen, resultAt, 2)
	if got := g.bytes(resultAt, 1); got[0] != '/' {
		t.Errorf("prestat name %q", got)
	}
	for _, fd := range []int{dir, preopen} {
		_, errno := g.read(fd, 10)
		wantErrno(t, "read", errno, wasi.EISDIR)
		_, errno = g.pread(fd, 10, 0)
		wantErrno(t, "pread", errno, wasi.EISDIR)
		_, errno = g.write(fd, "x")
		wantErrno(t, "write", errno, wasi.EISDIR)
		_, errno = g.pwrite(fd, 0, "x")
		wantErrno(t, "pwrite", errno, wasi.EISDIR)
		for whence := range 3 {
			_, errno = g.seek(fd, 0, whence)
			wantErrno(t, "seek", errno, wasi.EISDIR)
		}
		g.want(wasi.EISDIR, "fd_tell", fd, resultAt)
		g.want(wasi.EISDIR, "fd_allocate", fd, 0, 1)
		g.want(wasi.EISDIR, "fd_filestat_set_size", fd, 0)
	}
}

func TestSuiteFdstatSetRights(t *testing.T) {
	_, g, dir := scratch(t)
	fd := g.opened(dir, "f", openOptions{oflags: oCreat, base: rFDRead | rFDWrite | rFDSeek | rFDTell})
	if n, errno := g.write(fd, "0123"); n != 4 || errno != 0 {
		t.Errorf("write: %d, %v", n, errno)
	}
	g.seek(fd, 0, 0)
	if s, errno := g.read(fd, 4); s != "0123" || errno != 0 {
		t.Errorf("read: %q, %v", s, errno)
	}
	st, _ := g.fdstat(fd)
	if want := rFDRead | rFDWrite | rFDSeek | rFDTell; st.base != want || st.inheriting != 0 {
		t.Errorf("rights %#x, %#x", st.base, st.inheriting)
	}
	g.must("fd_fdstat_set_rights", fd, rFDSeek|rFDTell, 0)
	if st, _ := g.fdstat(fd); st.base != rFDSeek|rFDTell {
		t.Errorf("rights %#x", st.base)
	}
	_, errno := g.read(fd, 4)
	wantErrno(t, "read", errno, wasi.ENOTCAPABLE)
	_, errno = g.write(fd, "x")
	wantErrno(t, "write", errno, wasi.ENOTCAPABLE)
	g.want(wasi.ENOTCAPABLE, "fd_fdstat_set_rights", fd, rFDRead|rFDSeek|rFDTell, 0)
	g.want(wasi.ENOTCAPABLE, "fd_fdstat_set_rights", fd, rFDSeek, rFDRead)
	g.want(wasi.ENOTCAPABLE, "fd_fdstat_set_rights", fd, uint64(1)<<40, 0)
	if st, _ := g.fdstat(fd); st.base != rFDSeek|rFDTell || st.inheriting != 0 {
		t.Errorf("rights %#x, %#x after trying to regain some", st.base, st.inheriting)
	}
}

func TestSuiteOverwritePreopen(t *testing.T) {
	_, g, dir := scratch(t)
	was := g.stat(dir)
	g.must("fd_renumber", dir, preopen)
	if now := g.stat(preopen); now.dev != was.dev || now.ino != was.ino {
		t.Errorf("%+v, want %+v", now, was)
	}
	g.want(wasi.EBADF, "fd_fdstat_get", dir, resultAt)
	// Its number does not make it a preopen.
	g.want(wasi.EBADF, "fd_prestat_get", preopen, resultAt)
	g.must("fd_close", preopen)
}

func TestSuitePathFilestat(t *testing.T) {
	_, g, dir := scratch(t)
	if st, _ := g.fdstat(dir); st.base&rPathFilestatGet == 0 {
		t.Error("the directory has not the right")
	}
	fd := g.opened(dir, "file", openOptions{oflags: oCreat, base: rFDRead | rFDWrite | rPathFilestatGet, fdflags: fAppend | fSync})
	if st, _ := g.fdstat(fd); st.flags != fAppend|fSync {
		t.Errorf("flags %#x", st.flags)
	}
	st, errno := g.pathStat(dir, 0, "file")
	if st.size != 0 || errno != 0 {
		t.Errorf("%+v, %v", st, errno)
	}
	mtim := st.mtim - 100
	g.must("path_filestat_set_times", dir, 0, "file", 0, mtim, sMtim)
	if st, _ := g.pathStat(dir, 0, "file"); st.mtim != mtim {
		t.Errorf("mtim %d, want %d", st.mtim, mtim)
	}
	g.want(wasi.EINVAL, "path_filestat_set_times", dir, 0, "file", 0, mtim-5, sMtim|sMtimNow)
	g.want(wasi.EINVAL, "path_filestat_set_times", dir, 0, "file", 0, 0, sAtim|sAtimNow)
	if st, _ := g.pathStat(dir, 0, "file"); st.mtim != mtim {
		t.Errorf("mtim %d, want %d", st.mtim, mtim)
	}
}

func TestSuitePathLink(t *testing.T) {
	h, g, dir := scratch(t)
	h.File("tmp/file", "x")
	h.Dir("tmp/sub")
	h.Link("tmp/symlink", "target")
	before := h.State()
	for _, p := range []string{"link", "sub/link", "file", "sub", "symlink"} {
		for _, from := range []string{"file", "symlink", "sub"} {
			g.want(wasi.EPERM, "path_link", dir, 0, from, dir, p)
		}
	}
	h.CheckUnchanged(before)
	// Two descriptors of one file, which is what the case compares.
	a, b := g.opened(dir, "file", all()), g.opened(dir, "file", all())
	if g.stat(a) != g.stat(b) {
		t.Error("they differ")
	}
	sa, _ := g.fdstat(a)
	if sb, _ := g.fdstat(b); sa != sb {
		t.Errorf("%+v and %+v", sa, sb)
	}
}

func TestSuitePathOpenReadWrite(t *testing.T) {
	_, g, dir := scratch(t)
	g.must("fd_close", g.opened(dir, "f", openOptions{oflags: oCreat}))
	rights := func(fd int) uint64 {
		st, _ := g.fdstat(fd)
		return st.base & (rFDRead | rFDWrite)
	}
	r := g.opened(dir, "f", openOptions{base: rFDRead})
	if rights(r) != rFDRead {
		t.Errorf("rights %#x", rights(r))
	}
	if s, errno := g.read(r, 100); s != "" || errno != 0 {
		t.Errorf("read: %q, %v", s, errno)
	}
	_, errno := g.write(r, "x")
	wantErrno(t, "write to a reader", errno, wasi.ENOTCAPABLE)
	wr := g.opened(dir, "f", openOptions{base: rFDWrite})
	if rights(wr) != rFDWrite {
		t.Errorf("rights %#x", rights(wr))
	}
	_, errno = g.read(wr, 10)
	wantErrno(t, "read from a writer", errno, wasi.ENOTCAPABLE)
	if n, errno := g.write(wr, "fifty"); n != 5 || errno != 0 {
		t.Errorf("write: %d, %v", n, errno)
	}
	rw := g.opened(dir, "f", openOptions{base: rFDRead | rFDWrite | rFDFilestatGet})
	if s, errno := g.read(rw, 100); s != "fifty" || errno != 0 {
		t.Errorf("read: %q, %v", s, errno)
	}
	if n, errno := g.write(rw, "more"); n != 4 || errno != 0 {
		t.Errorf("write: %d, %v", n, errno)
	}
	if st := g.stat(rw); st.size != 9 {
		t.Errorf("size %d", st.size)
	}
}

func TestSuitePollOneoffStdio(t *testing.T) {
	g := newGuest(t, nil)
	clock := clockSub(77, 1, 200_000_000, 0)
	events := g.poll(clock, fdSub(88, evRead, 0))
	if len(events) != 1 || events[0].userdata != 88 || events[0].typ != evRead || events[0].errno != 0 || events[0].flags != 1 {
		t.Errorf("stdin: %+v", events)
	}
	events = g.poll(fdSub(1, evWrite, 1), fdSub(2, evWrite, 2), clock)
	if len(events) != 2 {
		t.Fatalf("stdout: %+v", events)
	}
	for i, e := range events {
		if e.userdata != uint64(i+1) || e.typ != evWrite || e.errno != 0 {
			t.Errorf("stdout: %+v", e)
		}
	}
}

func TestSuiteReadlink(t *testing.T) {
	h, g, dir := scratch(t)
	before := h.State()
	g.want(wasi.EPERM, "path_symlink", "target", dir, "symlink")
	h.CheckUnchanged(before)
	h.Link("tmp/symlink", "target")
	readlink := func(size int) string {
		t.Helper()
		buf := g.room(size + 4)
		g.must("path_readlink", dir, "symlink", buf, size, resultAt)
		n := int(g.u32(resultAt))
		if rest := g.bytes(buf+n, size+4-n); string(rest) != string(make([]byte, len(rest))) {
			t.Errorf("bytes %q after the target", rest)
		}
		return string(g.bytes(buf, n))
	}
	for size, want := range map[int]string{10: "target", 6: "target", 4: "targ", 0: ""} {
		if got := readlink(size); got != want {
			t.Errorf("a buffer of %d bytes has %q", size, got)
		}
	}
}

func TestSuiteRenumber(t *testing.T) {
	h, g, dir := scratch(t)
	from := g.opened(dir, "file1", openOptions{oflags: oCreat, base: rFDRead | rFDWrite})
	to := g.opened(dir, "file2", openOptions{oflags: oCreat, base: rFDRead})
	was, _ := g.fdstat(from)
	g.must("fd_renumber", from, to)
	g.want(wasi.EBADF, "fd_close", from)
	if now, _ := g.fdstat(to); now != was {
		t.Errorf("%+v, want %+v", now, was)
	}
	g.want(wasi.EBADF, "fd_renumber", to, from)
	g.want(wasi.EBADF, "fd_renumber", from, to)
	g.want(wasi.EBADF, "fd_renumber", to, 1_000_000)
	g.want(wasi.EBADF, "fd_renumber", to, -1)
	g.must("fd_renumber", to, to)
	if _, errno := g.write(to, "x"); errno != 0 || h.Content("tmp/file1") != "x" || h.Content("tmp/file2") != "" {
		t.Errorf("write: %v", errno)
	}
	g.must("fd_close", to)
}

func TestSuiteStdio(t *testing.T) {
	_, g, dir := scratch(t)
	for from := range 3 {
		to := g.opened(dir, "f", openOptions{oflags: oCreat})
		g.must("fd_renumber", from, to)
		g.must("fd_fdstat_get", to, resultAt)
		g.want(wasi.EBADF, "fd_fdstat_get", from, resultAt)
		g.must("path_unlink_file", dir, "f")
	}
}

func TestSuiteSymlinkFilestat(t *testing.T) {
	h, g, dir := scratch(t)
	h.File("tmp/file", "")
	h.Link("tmp/symlink", "file")
	file, _ := g.pathStat(dir, 0, "file")
	link, errno := g.pathStat(dir, 0, "symlink")
	if errno != 0 || link.typ != tSymlink {
		t.Fatalf("%+v, %v", link, errno)
	}
	mtim := link.mtim - 200
	if errno := g.call("path_filestat_set_times", dir, 0, "symlink", 0, mtim, sMtim); errno == wasi.ENOTSUP {
		mtim = link.mtim // another system than Linux
	} else {
		wantErrno(t, "set times of the link", errno, 0)
	}
	if st, _ := g.pathStat(dir, 0, "symlink"); st.mtim != mtim {
		t.Errorf("mtim of the link %d, want %d", st.mtim, mtim)
	}
	for follow, p := range []string{"file", "symlink"} {
		if st, _ := g.pathStat(dir, follow, p); st.mtim != file.mtim {
			t.Errorf("mtim of the file %d, want %d", st.mtim, file.mtim)
		}
	}
	g.must("path_filestat_set_times", dir, 1, "symlink", 0, 12345, sMtim)
	if st, _ := g.pathStat(dir, 0, "file"); st.mtim != 12345 && st.mtim != 12000 {
		t.Errorf("mtim of the file %d", st.mtim)
	}
	if st, _ := g.pathStat(dir, 0, "symlink"); st.mtim != mtim {
		t.Errorf("mtim of the link %d, want %d", st.mtim, mtim)
	}
}

func TestSuiteTruncationRights(t *testing.T) {
	h, g, dir := scratch(t)
	h.File("tmp/file", "content")
	st, _ := g.fdstat(dir)
	if st.typ != tDirectory || st.flags != 0 || st.base&rFDFilestatSetSize != 0 || st.base&rPathFilestatSetSize == 0 {
		t.Errorf("%+v", st)
	}
	g.must("fd_close", g.opened(dir, "file", openOptions{oflags: oTrunc}))
	if got := h.Content("tmp/file"); got != "" {
		t.Errorf("the file has %q", got)
	}
	h.File("tmp/file", "content")
	inheriting := st.inheriting &^ rFDFilestatSetSize
	g.must("fd_fdstat_set_rights", dir, st.base, inheriting)
	g.must("fd_close", g.opened(dir, "file", openOptions{oflags: oTrunc}))
	g.must("fd_fdstat_set_rights", dir, st.base&^rPathFilestatSetSize, inheriting)
	if st, _ := g.fdstat(dir); st.base&rPathFilestatSetSize != 0 {
		t.Errorf("%+v", st)
	}
	h.File("tmp/file", "content")
	before := h.State()
	_, errno := g.open(dir, "file", openOptions{oflags: oTrunc})
	wantErrno(t, "truncate", errno, wasi.ENOTCAPABLE)
	h.CheckUnchanged(before)
}

// The subscriptions and events of poll_oneoff.

const evClock, evRead, evWrite = 0, 1, 2

func clockSub(userdata uint64, id uint32, timeout uint64, flags uint16) []byte {
	b := make([]byte, 48)
	binary.LittleEndian.PutUint64(b, userdata)
	binary.LittleEndian.PutUint32(b[16:], id)
	binary.LittleEndian.PutUint64(b[24:], timeout)
	binary.LittleEndian.PutUint16(b[40:], flags)
	return b
}

func fdSub(userdata uint64, typ byte, fd uint32) []byte {
	b := make([]byte, 48)
	binary.LittleEndian.PutUint64(b, userdata)
	b[8] = typ
	binary.LittleEndian.PutUint32(b[16:], fd)
	return b
}

type event struct {
	userdata uint64
	errno    wasi.Errno
	typ      byte
	bytes    uint64
	flags    uint16
}

// poll calls poll_oneoff and returns its events.
func (g *guest) poll(subs ...[]byte) []event {
	g.t.Helper()
	var in []byte
	for _, s := range subs {
		in = append(in, s...)
	}
	n := len(in) / 48
	at, out := g.put(in), g.room(n*32)
	g.must("poll_oneoff", at, out, n, resultAt)
	var events []event
	for i := range int(g.u32(resultAt)) {
		b := g.bytes(out+i*32, 32)
		le := binary.LittleEndian
		events = append(events, event{le.Uint64(b), wasi.Errno(le.Uint16(b[8:])), b[10], le.Uint64(b[16:]), le.Uint16(b[24:])})
	}
	return events
}
