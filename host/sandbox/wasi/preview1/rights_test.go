//go:build unix

package preview1_test

import (
	"fmt"
	"testing"

	"github.com/stockade-dev/stockade/host/sandbox/wasi"
)

// Every function that takes a directory needs its right.
func TestPathRights(t *testing.T) {
	h := newHost(t)
	plant(h)
	g := h.mounted(h.rw("ws"))
	before := h.State()
	for _, tc := range []struct {
		right uint64
		do    func(dir int) wasi.Errno
	}{
		{rPathOpen, func(dir int) wasi.Errno { _, errno := g.open(dir, "f.txt", openOptions{}); return errno }},
		{rPathCreateFile, func(dir int) wasi.Errno { _, errno := g.open(dir, "new", openOptions{oflags: oCreat}); return errno }},
		{rPathFilestatSetSize, func(dir int) wasi.Errno { _, errno := g.open(dir, "f.txt", openOptions{oflags: oTrunc}); return errno }},
		{rPathCreateDirectory, func(dir int) wasi.Errno { return g.call("path_create_directory", dir, "new") }},
		{rPathLinkSource, func(dir int) wasi.Errno { return g.call("path_link", dir, 0, "f.txt", preopen, "x") }},
		{rPathLinkTarget, func(dir int) wasi.Errno { return g.call("path_link", preopen, 0, "x", dir, "f.txt") }},
		{rPathReadlink, func(dir int) wasi.Errno { return g.call("path_readlink", dir, "l", 8192, 10, resultAt) }},
		{rPathRenameSource, func(dir int) wasi.Errno { return g.call("path_rename", dir, "f.txt", preopen, "x") }},
		{rPathRenameTarget, func(dir int) wasi.Errno { return g.call("path_rename", preopen, h.name("ws/f.txt"), dir, "x") }},
		{rPathFilestatGet, func(dir int) wasi.Errno { _, errno := g.pathStat(dir, 0, "f.txt"); return errno }},
		{rPathFilestatSetTimes, func(dir int) wasi.Errno {
			return g.call("path_filestat_set_times", dir, 0, "f.txt", 0, 0, sMtim)
		}},
		{rPathSymlink, func(dir int) wasi.Errno { return g.call("path_symlink", "x", dir, "y") }},
		{rPathRemoveDirectory, func(dir int) wasi.Errno { return g.call("path_remove_directory", dir, "empty") }},
		{rPathUnlinkFile, func(dir int) wasi.Errno { return g.call("path_unlink_file", dir, "f.txt") }},
		{rFDReaddir, func(dir int) wasi.Errno { _, _, errno := g.readdir(dir, 100, 0); return errno }},
		{rFDFilestatGet, func(dir int) wasi.Errno { return g.call("fd_filestat_get", dir, resultAt) }},
		{rFDFilestatSetTimes, func(dir int) wasi.Errno { return g.call("fd_filestat_set_times", dir, 0, 0, sMtim) }},
		{rFDFdstatSetFlags, func(dir int) wasi.Errno { return g.call("fd_fdstat_set_flags", dir, 0) }},
		{rFDSync, func(dir int) wasi.Errno { return g.call("fd_sync", dir) }},
		{rFDDatasync, func(dir int) wasi.Errno { return g.call("fd_datasync", dir) }},
		{rFDAdvise, func(dir int) wasi.Errno { return g.call("fd_advise", dir, 0, 0, 0) }},
	} {
		dir := g.opened(preopen, h.name("ws"), openOptions{oflags: oDirectory, base: rReading &^ tc.right, inheriting: rAll})
		wantErrno(t, fmt.Sprintf("without right %#x", tc.right), tc.do(dir), wasi.ENOTCAPABLE)
	}
	h.CheckUnchanged(before)
}

// Opening for writing and truncating needs no more than opening for writing, if the
// opened file may be truncated.
func TestTruncateOfWhatMayBeWritten(t *testing.T) {
	h := newHost(t)
	g := h.mounted(h.rw("ws"))
	const base = rReading &^ rPathFilestatSetSize
	for _, tc := range []struct {
		inheriting, base uint64
		want             wasi.Errno
	}{
		{rAll, rFDWrite, 0},
		{rAll, rAll, 0},
		{rAll, rFDRead, wasi.ENOTCAPABLE},
		{rAll, 0, wasi.ENOTCAPABLE},
		{rAll &^ rFDFilestatSetSize, rFDWrite, wasi.ENOTCAPABLE},
		{rAll &^ rFDWrite, rFDWrite, wasi.ENOTCAPABLE},
		{rAll &^ rFDWrite, rFDFilestatSetSize, wasi.ENOTCAPABLE},
	} {
		h.File("ws/f.txt", "inside")
		dir := g.opened(preopen, h.name("ws"), openOptions{oflags: oDirectory, base: base, inheriting: tc.inheriting})
		_, errno := g.open(dir, "f.txt", openOptions{oflags: oTrunc, base: tc.base})
		wantErrno(t, fmt.Sprintf("truncate with %#x of %#x", tc.base, tc.inheriting), errno, tc.want)
		want := "inside"
		if errno == 0 {
			want = ""
		}
		if got := h.Content("ws/f.txt"); got != want {
			t.Errorf("the file has %q", got)
		}
	}
}

// A descriptor has no rights beyond the inheriting rights of its directory.
func TestRightsAreInherited(t *testing.T) {
	h := newHost(t)
	g := h.mounted(h.rw("ws"))
	some := rFDRead | rFDSeek
	dir := g.opened(preopen, h.name("ws"), openOptions{oflags: oDirectory, base: rAll &^ rFDWrite, inheriting: some})
	if st, _ := g.fdstat(dir); st.inheriting != some || st.base&(rFDRead|rFDSeek|rSockAccept) != 0 || st.base&rPathOpen == 0 {
		t.Errorf("%+v", st)
	}
	before := h.State()
	for _, o := range []openOptions{
		{base: rFDWrite}, {base: rFDRead | rFDTell}, {base: rAll}, {inheriting: rAll}, {inheriting: rFDTell},
		{base: rFDWrite, oflags: oCreat}, {base: rFDWrite, oflags: oTrunc}, {base: rSockAccept},
	} {
		_, errno := g.open(dir, "f.txt", o)
		wantErrno(t, fmt.Sprintf("open with %+v", o), errno, wasi.ENOTCAPABLE)
		_, errno = g.open(dir, "new", o)
		wantErrno(t, fmt.Sprintf("open with %+v", o), errno, wasi.ENOTCAPABLE)
	}
	h.CheckUnchanged(before)
	fd := g.opened(dir, "f.txt", openOptions{base: some | 1<<40, inheriting: rFDRead})
	if st, _ := g.fdstat(fd); st.base != some || st.inheriting != rFDRead {
		t.Errorf("%+v", st)
	}
	// Nor through a directory below.
	sub := g.opened(dir, "d", openOptions{oflags: oDirectory, base: 0, inheriting: some})
	_, errno := g.open(sub, "g.txt", openOptions{base: rFDRead})
	wantErrno(t, "open without path_open", errno, wasi.ENOTCAPABLE)
	// A right that was given up stays away after opening the same file again.
	g.must("fd_fdstat_set_rights", preopen, rPathOpen, rFDRead)
	_, errno = g.open(preopen, h.name("ws/f.txt"), openOptions{base: rFDWrite})
	wantErrno(t, "open to write", errno, wasi.ENOTCAPABLE)
	_, errno = g.open(preopen, ".", all())
	wantErrno(t, "open the preopen again", errno, wasi.ENOTCAPABLE)
	h.CheckUnchanged(before)
}
