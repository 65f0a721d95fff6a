package selftest

import (
	"fmt"
	"os"

	"github.com/stockade-dev/stockade/host/tool"
)

// readOnlyAttacks change a read-only mount. The same calls work on a mount with write,
// which shows that the mount refuses them.
func readOnlyAttacks() []fileAttack {
	const ro = "mounted read-only"
	return []fileAttack{
		{name: "read-only-create", description: "Make a file in a read-only mount, also with the right to read only.", refusedBy: ro, mount: readOnly, build: func(x *fileTrial) {
			x.allowChanges("ws")
			for i, rights := range []int{rightsRead, 0, rightsRead | rightsWrite} {
				for j, flags := range []int{oCreate, oCreate | oExclusive} {
					n := fmt.Sprint("ws/made", i, j)
					x.tryOpen(n, flags, rights, 0, "create", "ok", "EROFS", outside)
					x.holds(n, "", "-", "-")
				}
			}
			x.tryOpen("ws/inside", oCreate, rightsRead, 0, "create what is there", "ok", "ok EROFS", outside)
			x.holds("ws/inside", insideText)
		}},
		{name: "read-only-truncate", description: "Empty a file in a read-only mount with the right to read only.", refusedBy: ro, mount: readOnly, build: func(x *fileTrial) {
			x.allowChanges("ws")
			x.tryOpen("ws/inside", oTruncate, rightsRead, 0, "truncate with the right to read", "ok ENOTCAPABLE", "EROFS", outside)
			x.tryOpen("ws/inside", oTruncate, 0, 0, "truncate with no right", "ok ENOTCAPABLE", "EROFS", outside)
			x.tryOpen("ws/inside", oTruncate, rightsRead|rightsWrite, 0, "truncate with the right to write", "ok", "EROFS", outside)
			x.tryOpen("ws/inside", oCreate|oTruncate, rightsRead, 0, "create or truncate", "ok ENOTCAPABLE", "EROFS", outside)
			x.holds("ws/inside", "", insideText, insideText)
		}},
		{name: "read-only-write", description: "Write and append to a file in a read-only mount.", refusedBy: ro, mount: readOnly, build: func(x *fileTrial) {
			x.allowChanges("ws")
			f := x.open(x.scratchPlace("ws/inside"), 0, rightsRead|rightsWrite, 0)
			x.expect(f.call, "open for writing", "ok", "EROFS", outside)
			x.tryChangesOpen(f, "ok", "EBADF", "EBADF")
			x.tryOpen("ws/inside", 0, rightsWrite, fdAppend, "open to append", "ok", "EROFS", outside)
			x.holds("ws/inside", "overw", insideText, insideText)
		}},
		{name: "read-only-descriptor", description: "Write to a file of a read-only mount through a descriptor that was opened for reading.", refusedBy: "opened for reading", mount: readOnly, build: func(x *fileTrial) {
			const changed = "EBADF ENOTCAPABLE"
			f := x.open(x.scratchPlace("ws/inside"), 0, rightsRead, 0)
			x.expect(f.call, "open for reading", "ok", "ok", outside)
			x.tryChangesOpen(f, changed, changed, "EBADF")
			append := x.open(x.scratchPlace("ws/inside"), 0, rightsRead, fdAppend)
			x.expect(append.call, "open with append and the right to read", "ok ENOTCAPABLE EACCES", "EROFS ok", outside)
			x.expect(x.writeText(append.fd, "appended"), "append", changed, changed, "EBADF")
			// Flags that are set later give no right.
			late := x.open(x.scratchPlace("ws/inside"), 0, rightsRead, 0)
			x.add("fd_fdstat_set_flags", late.fd, fdAppend)
			x.expect(x.writeText(late.fd, "appended"), "append with a flag set later", changed, changed, "EBADF")
			x.holds("ws/inside", insideText)
		}},
		{name: "read-only-remove", description: "Remove files and directories of a read-only mount.", refusedBy: ro, mount: readOnly, build: func(x *fileTrial) {
			x.plant(os.Mkdir(x.hostPath("ws/empty"), 0o700))
			x.allowChanges("ws")
			x.expect(x.rmdir(x.scratchPlace("ws/empty")), "remove a directory", "ok", "EROFS", outside)
			x.expect(x.unlink(x.scratchPlace("ws/inside")), "remove a file", "ok", "EROFS", outside)
			x.holds("ws/inside", "-", insideText, insideText)
		}},
		{name: "read-only-rename", description: "Move files in a read-only mount.", refusedBy: ro, mount: readOnly, build: func(x *fileTrial) {
			x.plant(os.Mkdir(x.hostPath("ws/empty"), 0o700), x.write("ws/other", "other"))
			x.allowChanges("ws")
			const crossing = "EXDEV EROFS"
			x.expect(x.rename(x.scratchPlace("ws/inside"), x.scratchPlace("else/moved")), "move a file to a mount with write", "EXDEV", crossing, outside)
			x.expect(x.rename(x.scratchPlace("else/inside"), x.scratchPlace("ws/moved")), "move a file here", "EXDEV", crossing, outside)
			x.expect(x.rename(x.scratchPlace("ws/d"), x.scratchPlace("else/d")), "move a directory to a mount with write", "EXDEV", crossing, outside)
			x.expect(x.rename(x.scratchPlace("else/inside"), x.scratchPlace("ws/inside")), "replace a file from elsewhere", "EXDEV", crossing, outside)
			x.expect(x.rename(x.scratchPlace("ws"), x.scratchPlace("else/ws")), "move the mount", "EPERM EXDEV EROFS", "EPERM EXDEV EROFS", outside)
			x.expect(x.rename(x.scratchPlace("ws/other"), x.scratchPlace("ws/moved")), "move a file", "ok", "EROFS", outside)
			x.expect(x.rename(x.scratchPlace("ws/empty"), x.scratchPlace("ws/moved2")), "move a directory", "ok", "EROFS", outside)
			x.expect(x.rename(x.scratchPlace("ws/d/deep"), x.scratchPlace("ws/inside")), "replace a file", "ok", "EROFS", outside)
			x.holds("ws/moved", "other", "-", "-")
			x.holds("else/moved", "-")
			x.holds("else/inside", insideText)
		}},
		{name: "read-only-make", description: "Make directories and links in a read-only mount.", refusedBy: ro, mount: readOnly, build: func(x *fileTrial) {
			x.allowChanges("ws")
			x.expect(x.mkdir(x.scratchPlace("ws/made")), "make a directory", "ok", "EROFS", outside)
			x.expect(x.symlink("inside", x.scratchPlace("ws/l")), "make a symbolic link", "EPERM", "EROFS EPERM", outside)
			x.expect(x.hardLink(x.scratchPlace("ws/inside"), x.scratchPlace("ws/l2")), "make a hard link", "EPERM", "EROFS EPERM", outside)
		}},
		{name: "read-only-times", description: "Change the times of files in a read-only mount.", refusedBy: ro, mount: readOnly, build: func(x *fileTrial) {
			x.allowChanges("ws")
			x.expect(x.utimes(x.scratchPlace("ws/inside")), "set the times of a file", "ok", "EROFS", outside)
			x.expect(x.utimes(x.scratchPlace("ws/d")), "set the times of a directory", "ok", "EROFS", outside)
			f := x.open(x.scratchPlace("ws/inside"), 0, rightsRead, 0)
			x.expect(f.call, "open", "ok", "ok", outside)
			x.expect(x.add("fd_filestat_set_times", f.fd, int64(1), int64(1), setTimes), "set the times of an open file", "ok ENOTCAPABLE EBADF", "EROFS ENOTCAPABLE EBADF", "EBADF")
			d := x.openDir(x.scratchPlace("ws/d"))
			x.expect(x.add("fd_filestat_set_times", d.fd, int64(1), int64(1), setTimes), "set the times of an open directory", "ok ENOTCAPABLE EBADF", "EROFS ENOTCAPABLE EBADF", "EBADF")
		}},
		{name: "reader-writes", description: "Write as a tool that asked to read only, in a workspace that is mounted with write.", refusedBy: "the tool asked to read only", build: func(x *fileTrial) {
			x.grant.Files = tool.FilesRead
			x.tryWrite("ws/inside", 0, "EROFS", "EROFS", outside)
			x.tryWrite("ws/made", oCreate, "EROFS", "EROFS", outside)
			x.expect(x.unlink(x.scratchPlace("ws/inside")), "unlink ws/inside", "EROFS", "EROFS", outside)
			x.expect(x.mkdir(x.scratchPlace("ws/made")), "mkdir ws/made", "EROFS", "EROFS", outside)
		}},
	}
}

// tryChangesOpen tries every change of an open file.
func (x *fileTrial) tryChangesOpen(f openFile, want ...string) {
	text := x.text("overwritten")
	list, written := x.words(text.at, text.n), x.words(0)
	x.expect(x.add("fd_write", f.fd, list.at, 1, written.at), "write", want...)
	x.expect(x.add("fd_pwrite", f.fd, list.at, 1, int64(0), written.at), "write at a place", want...)
	x.expect(x.add("fd_filestat_set_size", f.fd, int64(5)), "set the size", want...)
	x.expect(x.add("fd_allocate", f.fd, int64(0), int64(100)), "allocate", forMount(x.kind, want)+" ENOTSUP")
	x.expect(x.add("fd_filestat_set_size", f.fd, int64(5)), "set the size again", want...)
}
