// Package preview1 implements WASI preview 1, the module wasi_snapshot_preview1, for guests
// that are not trusted; and the snapshot before it, the module wasi_unstable, for guests that
// were built then. That snapshot has the same functions and differs in three things: the
// meaning of the numbers of fd_seek's whence, the size of filestat's number of links, and an
// identifier in a clock's subscription. See [UnstableName]. This page holds for both.
//
// [Instantiate] gives a runtime the functions of one of them. They act on a [World], which is
// made for one call and found in the context of the call, see [WithWorld]; the module instance
// holds no state, so that the next call in the same instance sees nothing of the one before.
//
// # What a guest sees
//
// No arguments and no environment. A standard input that is at its end, and outputs that
// are neither files nor terminals. One preopened directory, descriptor 3, always called
// "/", whatever is mounted in it; package wasi documents its content and errors. Clocks
// that are coarse and do not go back, random numbers, sleep. No sockets, no signals, no
// way to make links.
//
// A guest that is a program gets more from [World.SetProcess]: arguments, an environment,
// a standard input, and preopens for directories below "/"; no path leads up from those
// either. Its descriptor 3 is its working directory, which takes absolute paths, too, and
// "/" is descriptor 4.
//
// # Rights
//
// Each descriptor has the rights it was opened with, less those that do not apply to its
// kind. They are never more than the inheriting rights of the directory through which it
// was opened; a guest can give rights up but not get them back. An operation without its
// right is ENOTCAPABLE. A descriptor of the wrong kind comes first: EBADF, EISDIR,
// ENOTDIR, ESPIPE. Mounts have their own rights besides: EROFS.
//
// # Names
//
// A path is relative to a directory, and leads neither above it nor, by a leading slash,
// elsewhere: EPERM. It is joined to the name under which the directory was opened. So if
// a directory is renamed while a guest has it open, the descriptor still lists its
// entries, but a path through it is looked up under the old name. A symbolic link inside
// a mount is followed within the mount, even to above the directory of the descriptor.
//
// # Hostile guests
//
// Every pointer and length is the guest's choice. All memory is checked before an
// operation starts, so EFAULT changes nothing. No allocation has a size that the guest
// chooses, beyond fixed bounds: MaxPath bytes of a path, 1024 buffers, 4096
// subscriptions; more is ENAMETOOLONG or EINVAL. Every call costs fuel, plus fuel for the
// size of its work. Long operations check in between whether the guest has to end; if so,
// they panic with the reason, the only way out of a host function.
//
// # What differs from the specification
//
// Of the 72 cases that the wasi-testsuite has for preview 1, run with arguments and variables
// where needed, these fail, because they ask for things that are unsafe or missing:
//
//   - path_link makes a hard link; a file with two names can be changed through
//     neither.
//   - readlink, symlink_filestat, nofollow_errors, path_exists, symlink_create
//     and path_symlink_trailing_slashes make a symbolic link, which the programs
//     of the host would follow anywhere. Existing links are read, followed and
//     refused as these cases want, except that the length of a target is
//     reported as 0.
//   - sock_shutdown-invalid_fd assumes that descriptor 3 is not open; it
//     is the preopen.
//
// path_filestat_set_times on a symbolic link itself works on Linux only, and path_readlink
// returns no target that leads out of the mount. fd_advise has no effect. fd_allocate makes a
// file longer without asking the host for room. wasi_unstable has sock_accept and its right,
// too, as preview 1 got them late. path_open truncates a file that it opens for writing also
// if the directory lacks the right to truncate, but passes on rights with the same effect.
// proc_raise is ENOSYS. The clocks of processor time are EINVAL.
//
// File times are those of the host's file system, which can be finer than the clocks
// here; a guest that may write to a mount can tell the time by them. See RATIONALE, "Why
// an own WASI preview 1, and not wazero's?"
package preview1
