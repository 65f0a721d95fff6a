package selftest

import (
	"fmt"
	"os"
)

// readOnlyCases are on changes of a read-only mount. On one with write the same
// calls work, which shows that it is the mount that refuses them.
func readOnlyCases() []numbered {
	const outside = "EPERM"
	return []numbered{
		{id: "F22", title: "read-only mount: truncate with the right to read", files: func(x *onMount) {
			x.may("ws")
			x.want(x.open(x.in("ws/inside"), oTruncate, mayRead, 0).call, "truncate with the right to read", "ok ENOTCAPABLE", "EROFS", outside)
			x.want(x.open(x.in("ws/inside"), oTruncate, 0, 0).call, "truncate with no right", "ok ENOTCAPABLE", "EROFS", outside)
			x.want(x.open(x.in("ws/inside"), oTruncate, mayRead|mayWrite, 0).call, "truncate with the right to write", "ok", "EROFS", outside)
			x.want(x.open(x.in("ws/inside"), oCreate|oTruncate, mayRead, 0).call, "create or truncate", "ok ENOTCAPABLE", "EROFS", outside)
			x.holds("ws/inside", "", inside, inside)
		}},
		{id: "F23", title: "read-only mount: create with the right to read", files: func(x *onMount) {
			x.may("ws")
			for i, rights := range []int{mayRead, 0, mayRead | mayWrite} {
				for j, flags := range []int{oCreate, oCreate | oExclusive} {
					n := fmt.Sprint("ws/made", i, j)
					x.want(x.open(x.in(n), flags, rights, 0).call, "create "+n, "ok", "EROFS", outside)
					x.holds(n, "", "-", "-")
				}
			}
			x.want(x.open(x.in("ws/inside"), oCreate, mayRead, 0).call, "create what is there", "ok", "ok EROFS", outside)
			x.holds("ws/inside", inside)
		}},
		{id: "F24", title: "read-only mount: append, write, allocate and set the size", files: func(x *onMount) {
			x.may("ws")
			const changed = "EBADF ENOTCAPABLE"
			text := x.text("overwritten")
			list, written := x.words(text.at, text.n), x.words(0)
			for _, rights := range []int{mayRead, mayRead | mayWrite} {
				open := []string{"ok", "ok", outside}
				then := []string{changed, changed, "EBADF"}
				if rights != mayRead {
					open, then = []string{"ok", "EROFS", outside}, []string{"ok", "EBADF", "EBADF"}
				}
				f := x.open(x.in("ws/inside"), 0, rights, 0)
				x.want(f.call, "open", open...)
				x.want(x.add("fd_write", f.fd, list.at, 1, written.at), "write", then...)
				x.want(x.add("fd_pwrite", f.fd, list.at, 1, int64(0), written.at), "write at a place", then...)
				x.want(x.add("fd_filestat_set_size", f.fd, int64(5)), "set the size", then...)
				x.want(x.add("fd_allocate", f.fd, int64(0), int64(100)), "allocate", then[0]+" ENOTSUP", then[1]+" ENOTSUP", then[2])
				x.want(x.add("fd_filestat_set_size", f.fd, int64(5)), "set the size again", then...)
			}
			append := x.open(x.in("ws/inside"), 0, mayRead, fdAppend)
			x.want(append.call, "open with append and the right to read", "ok ENOTCAPABLE EACCES", "EROFS ok", outside)
			x.want(x.put(append.fd, "appended"), "append", changed, changed, "EBADF")
			x.want(x.open(x.in("ws/inside"), 0, mayWrite, fdAppend).call, "open to append", "ok", "EROFS", outside)
			// Flags that are set later give no right.
			late := x.open(x.in("ws/inside"), 0, mayRead, 0)
			x.add("fd_fdstat_set_flags", late.fd, fdAppend)
			x.want(x.put(late.fd, "appended"), "append with a flag set later", changed, changed, "EBADF")
			x.holds("ws/inside", "overw", inside, inside)
		}},
		{id: "F25", title: "read-only mount: remove, make and move", files: func(x *onMount) {
			x.must(os.Mkdir(x.host("ws/empty"), 0o700), os.Mkdir(x.host("ws/empty2"), 0o700), x.write("ws/other", "other"))
			if x.kind == writable {
				x.changes = []string{"ws"}
			}
			const crossing = "EXDEV"
			x.want(x.rename(x.in("ws/inside"), x.in("else/moved")), "move a file to a mount with write", crossing, "EXDEV EROFS", outside)
			x.want(x.rename(x.in("else/inside"), x.in("ws/moved")), "move a file here", crossing, "EXDEV EROFS", outside)
			x.want(x.rename(x.in("ws/d"), x.in("else/d")), "move a directory to a mount with write", crossing, "EXDEV EROFS", outside)
			x.want(x.rename(x.in("else/inside"), x.in("ws/inside")), "replace a file from elsewhere", crossing, "EXDEV EROFS", outside)
			x.want(x.rename(x.in("ws"), x.in("else/ws")), "move the mount", "EPERM EXDEV EROFS", "EPERM EXDEV EROFS", outside)
			x.want(x.symlink("inside", x.in("ws/l")), "make a symbolic link", "EPERM", "EROFS EPERM", outside)
			x.want(x.hardLink(x.in("ws/inside"), x.in("ws/l2")), "make a hard link", "EPERM", "EROFS EPERM", outside)
			x.want(x.mkdir(x.in("ws/made")), "make a directory", "ok", "EROFS", outside)
			x.want(x.rmdir(x.in("ws/empty")), "remove a directory", "ok", "EROFS", outside)
			x.want(x.rename(x.in("ws/other"), x.in("ws/moved")), "move a file", "ok", "EROFS", outside)
			x.want(x.rename(x.in("ws/empty2"), x.in("ws/moved2")), "move a directory", "ok", "EROFS", outside)
			x.want(x.unlink(x.in("ws/inside")), "remove a file", "ok", "EROFS", outside)
			x.holds("ws/inside", "-", inside, inside)
			x.holds("ws/moved", "other", "-", "-")
			x.holds("else/moved", "-")
			x.holds("else/inside", inside)
		}},
		{id: "F26", title: "read-only mount: times", files: func(x *onMount) {
			x.may("ws")
			x.want(x.utimes(x.in("ws/inside")), "set the times of a file", "ok", "EROFS", outside)
			x.want(x.utimes(x.in("ws/d")), "set the times of a directory", "ok", "EROFS", outside)
			f := x.open(x.in("ws/inside"), 0, mayRead, 0)
			x.want(f.call, "open", "ok", "ok", outside)
			x.want(x.add("fd_filestat_set_times", f.fd, int64(1), int64(1), setTimes), "set the times of an open file", "ok ENOTCAPABLE EBADF", "EROFS ENOTCAPABLE EBADF", "EBADF")
			d := x.openDir(x.in("ws/d"))
			x.want(x.add("fd_filestat_set_times", d.fd, int64(1), int64(1), setTimes), "set the times of an open directory", "ok ENOTCAPABLE EBADF", "EROFS ENOTCAPABLE EBADF", "EBADF")
		}, open: "WASI has no function for modes, owners and extended attributes; bash is not confined yet"},
	}
}
