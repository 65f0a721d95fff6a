package selftest

import (
	"fmt"
	"os"

	"github.com/stockade-dev/stockade/host/tool"
)

// readOnlyAttacks are on changes of a read-only mount. On one with write the
// same calls work, which shows that it is the mount that refuses them.
func readOnlyAttacks() []fileAttack {
	const ro = "mounted read-only"
	return []fileAttack{
		{name: "read-only-create", tries: "Make a file in a read-only mount, also with the right to read only.", by: ro, on: readOnly, build: func(x *onMount) {
			x.may("ws")
			for i, rights := range []int{mayRead, 0, mayRead | mayWrite} {
				for j, flags := range []int{oCreate, oCreate | oExclusive} {
					n := fmt.Sprint("ws/made", i, j)
					x.opens(n, flags, rights, 0, "create", "ok", "EROFS", outside)
					x.holds(n, "", "-", "-")
				}
			}
			x.opens("ws/inside", oCreate, mayRead, 0, "create what is there", "ok", "ok EROFS", outside)
			x.holds("ws/inside", inside)
		}},
		{name: "read-only-truncate", tries: "Empty a file in a read-only mount with the right to read only.", by: ro, on: readOnly, build: func(x *onMount) {
			x.may("ws")
			x.opens("ws/inside", oTruncate, mayRead, 0, "truncate with the right to read", "ok ENOTCAPABLE", "EROFS", outside)
			x.opens("ws/inside", oTruncate, 0, 0, "truncate with no right", "ok ENOTCAPABLE", "EROFS", outside)
			x.opens("ws/inside", oTruncate, mayRead|mayWrite, 0, "truncate with the right to write", "ok", "EROFS", outside)
			x.opens("ws/inside", oCreate|oTruncate, mayRead, 0, "create or truncate", "ok ENOTCAPABLE", "EROFS", outside)
			x.holds("ws/inside", "", inside, inside)
		}},
		{name: "read-only-write", tries: "Write and append to a file in a read-only mount.", by: ro, on: readOnly, build: func(x *onMount) {
			x.may("ws")
			f := x.open(x.in("ws/inside"), 0, mayRead|mayWrite, 0)
			x.want(f.call, "open for writing", "ok", "EROFS", outside)
			x.changingOpen(f, "ok", "EBADF", "EBADF")
			x.opens("ws/inside", 0, mayWrite, fdAppend, "open to append", "ok", "EROFS", outside)
			x.holds("ws/inside", "overw", inside, inside)
		}},
		{name: "read-only-descriptor", tries: "Write to a file of a read-only mount through a descriptor that was opened for reading.", by: "opened for reading", on: readOnly, build: func(x *onMount) {
			const changed = "EBADF ENOTCAPABLE"
			f := x.open(x.in("ws/inside"), 0, mayRead, 0)
			x.want(f.call, "open for reading", "ok", "ok", outside)
			x.changingOpen(f, changed, changed, "EBADF")
			append := x.open(x.in("ws/inside"), 0, mayRead, fdAppend)
			x.want(append.call, "open with append and the right to read", "ok ENOTCAPABLE EACCES", "EROFS ok", outside)
			x.want(x.put(append.fd, "appended"), "append", changed, changed, "EBADF")
			// Flags that are set later give no right.
			late := x.open(x.in("ws/inside"), 0, mayRead, 0)
			x.add("fd_fdstat_set_flags", late.fd, fdAppend)
			x.want(x.put(late.fd, "appended"), "append with a flag set later", changed, changed, "EBADF")
			x.holds("ws/inside", inside)
		}},
		{name: "read-only-remove", tries: "Remove files and directories of a read-only mount.", by: ro, on: readOnly, build: func(x *onMount) {
			x.plant(os.Mkdir(x.host("ws/empty"), 0o700))
			x.may("ws")
			x.want(x.rmdir(x.in("ws/empty")), "remove a directory", "ok", "EROFS", outside)
			x.want(x.unlink(x.in("ws/inside")), "remove a file", "ok", "EROFS", outside)
			x.holds("ws/inside", "-", inside, inside)
		}},
		{name: "read-only-rename", tries: "Move files in a read-only mount.", by: ro, on: readOnly, build: func(x *onMount) {
			x.plant(os.Mkdir(x.host("ws/empty"), 0o700), x.write("ws/other", "other"))
			x.may("ws")
			const crossing = "EXDEV EROFS"
			x.want(x.rename(x.in("ws/inside"), x.in("else/moved")), "move a file to a mount with write", "EXDEV", crossing, outside)
			x.want(x.rename(x.in("else/inside"), x.in("ws/moved")), "move a file here", "EXDEV", crossing, outside)
			x.want(x.rename(x.in("ws/d"), x.in("else/d")), "move a directory to a mount with write", "EXDEV", crossing, outside)
			x.want(x.rename(x.in("else/inside"), x.in("ws/inside")), "replace a file from elsewhere", "EXDEV", crossing, outside)
			x.want(x.rename(x.in("ws"), x.in("else/ws")), "move the mount", "EPERM EXDEV EROFS", "EPERM EXDEV EROFS", outside)
			x.want(x.rename(x.in("ws/other"), x.in("ws/moved")), "move a file", "ok", "EROFS", outside)
			x.want(x.rename(x.in("ws/empty"), x.in("ws/moved2")), "move a directory", "ok", "EROFS", outside)
			x.want(x.rename(x.in("ws/d/deep"), x.in("ws/inside")), "replace a file", "ok", "EROFS", outside)
			x.holds("ws/moved", "other", "-", "-")
			x.holds("else/moved", "-")
			x.holds("else/inside", inside)
		}},
		{name: "read-only-make", tries: "Make directories and links in a read-only mount.", by: ro, on: readOnly, build: func(x *onMount) {
			x.may("ws")
			x.want(x.mkdir(x.in("ws/made")), "make a directory", "ok", "EROFS", outside)
			x.want(x.symlink("inside", x.in("ws/l")), "make a symbolic link", "EPERM", "EROFS EPERM", outside)
			x.want(x.hardLink(x.in("ws/inside"), x.in("ws/l2")), "make a hard link", "EPERM", "EROFS EPERM", outside)
		}},
		{name: "read-only-times", tries: "Change the times of files in a read-only mount.", by: ro, on: readOnly, build: func(x *onMount) {
			x.may("ws")
			x.want(x.utimes(x.in("ws/inside")), "set the times of a file", "ok", "EROFS", outside)
			x.want(x.utimes(x.in("ws/d")), "set the times of a directory", "ok", "EROFS", outside)
			f := x.open(x.in("ws/inside"), 0, mayRead, 0)
			x.want(f.call, "open", "ok", "ok", outside)
			x.want(x.add("fd_filestat_set_times", f.fd, int64(1), int64(1), setTimes), "set the times of an open file", "ok ENOTCAPABLE EBADF", "EROFS ENOTCAPABLE EBADF", "EBADF")
			d := x.openDir(x.in("ws/d"))
			x.want(x.add("fd_filestat_set_times", d.fd, int64(1), int64(1), setTimes), "set the times of an open directory", "ok ENOTCAPABLE EBADF", "EROFS ENOTCAPABLE EBADF", "EBADF")
		}},
		{name: "reader-writes", tries: "Write as a tool that asked to read only, in a workspace that is mounted with write.", by: "the tool asked to read only", build: func(x *onMount) {
			x.grant.Files = tool.FilesRead
			x.writes("ws/inside", 0, "EROFS", "EROFS", outside)
			x.writes("ws/made", oCreate, "EROFS", "EROFS", outside)
			x.want(x.unlink(x.in("ws/inside")), "unlink ws/inside", "EROFS", "EROFS", outside)
			x.want(x.mkdir(x.in("ws/made")), "mkdir ws/made", "EROFS", "EROFS", outside)
		}},
	}
}

// changingOpen tries everything that changes an open file.
func (x *onMount) changingOpen(f opened, want ...string) {
	text := x.text("overwritten")
	list, written := x.words(text.at, text.n), x.words(0)
	x.want(x.add("fd_write", f.fd, list.at, 1, written.at), "write", want...)
	x.want(x.add("fd_pwrite", f.fd, list.at, 1, int64(0), written.at), "write at a place", want...)
	x.want(x.add("fd_filestat_set_size", f.fd, int64(5)), "set the size", want...)
	x.want(x.add("fd_allocate", f.fd, int64(0), int64(100)), "allocate", on(x.kind, want)+" ENOTSUP")
	x.want(x.add("fd_filestat_set_size", f.fd, int64(5)), "set the size again", want...)
}
