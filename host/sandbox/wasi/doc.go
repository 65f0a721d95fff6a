// Package wasi is the file system of a guest.
//
// [New] opens the granted directories and returns an [FS], which is mounted
// at "/" as the only preopen of a module. It replaces wazero's own directory
// mounts, which follow symbolic links out of the mount and whose read-only
// form can be truncated.
//
// # Words
//
// A mount is a granted directory. It appears under its absolute host name
// (on Windows C:\ws appears as /C:/ws). The directories above a mount are
// synthetic: they exist only here, list only what leads to a mount, and
// cannot be changed. A masked path is one that the guest must never reach,
// although it lies inside a mount. A guarded mount is one that has a masked
// path or another mount inside; only guarded mounts pay for the checks this
// needs, see guard.go.
//
// # Names
//
// A name is cleaned as text before anything is looked up, as wazero itself
// does: a/../b is b, also where a is a symbolic link or does not exist. A ".."
// may therefore lead from one mount to another, exactly like the absolute
// name of the other, and only to what is granted; above "/" it is refused.
// Where mounts are nested, the one with the longest name wins, whatever the
// directory of the outer mount holds under that name. A directory that is
// granted under two names, neither of which is inside the other, is two
// mounts, each with its own right to write.
//
// # Errors
//
// The few numbers that wazero can pass on are used like this:
//
//   - EPERM: outside the granted directories, masked, or a symbolic link that
//     leads there. The answer does not depend on whether the host has
//     something of that name. Also: creating links, and renaming or removing
//     a mount or what leads to a masked path.
//   - EROFS: every change of a read-only mount or of a synthetic directory.
//   - EACCES: not a regular file or directory; or a change through a file
//     that has several hard links; or the host's own permissions.
//   - ENOTSUP: a rename from one mount to another (EXDEV elsewhere).
//   - ERANGE: no room: [Limits], or a full disk (EFBIG, ENOSPC elsewhere).
//   - EAGAIN: too many open files (EMFILE elsewhere), or the file was
//     replaced during the call.
//
// # What is and is not protected
//
// All access is relative to a handle of the mount ([os.Root]), so neither a
// symbolic link nor a directory that is renamed or replaced meanwhile leads
// outside. Regular files and directories can be opened, nothing else; that is
// decided on the opened handle. The open itself does not block, but whoever
// waits at the other end of a FIFO may notice it.
//
// A file with several hard links can be read: the other names cannot be
// found. It cannot be changed. A guest creates no links. A handle that was
// opened inside a mount stays valid when the file is moved elsewhere by the
// host, as everywhere on POSIX.
//
// New files and directories get mode 0666 and 0777 less the umask of the
// host process, like those of any other program of the user. WASI has no
// modes, and the 0600 that wazero passes is not the wish of the guest.
//
// # Concurrency
//
// A guest is one goroutine, and an FS serves one guest. [FS.Close] may be
// called by another goroutine at any time: what is under way ends or fails
// with EBADF, and everything after it fails.
package wasi
