// Package preview1 is WASI preview 1, the module wasi_snapshot_preview1, for
// guests that are not trusted; and the snapshot before it, the module
// wasi_unstable, for those that were built then. That has the same functions
// and differs in three things: what the numbers of fd_seek's whence mean, the
// size of filestat's number of links, and an identifier in a clock's
// subscription. See [UnstableName]. What is said here holds for both.
//
// [Instantiate] gives a runtime the functions of one of them. What they reach is
// a [World], which is made for one call and found in the context of the call, see
// [WithWorld]; the module instance holds nothing of it, so that the next call in the
// same instance sees nothing of the one before.
//
// # What a guest sees
//
// No arguments and no environment. A standard input that is at its end, and
// outputs that are neither files nor terminals. One preopened directory,
// descriptor 3, called "/", always, whatever is mounted in it; package wasi
// says what is in it and which errors that gives. Clocks that are coarse and do
// not go back, random numbers, sleep. No sockets, no signals, no links of its
// own making.
//
// A guest that is a program of its own has in addition what [World.SetProcess] gives
// it: arguments, an environment, a standard input, and preopens for directories below
// "/", from which no path leads up either. Its descriptor 3 is its working directory,
// which takes absolute paths, too, and "/" is descriptor 4.
//
// # Rights
//
// Each descriptor has the rights it was opened with, less those that mean
// nothing for what it is. They are never more than what the directory, through
// which it was opened, lets others inherit; a guest can give them up but not
// get them back. What they do not allow is ENOTCAPABLE. A descriptor of the
// wrong kind is told first: EBADF, EISDIR, ENOTDIR, ESPIPE. The mounts' own
// rights hold besides: EROFS.
//
// # Names
//
// A path is relative to a directory, and leads neither above it nor, by a
// leading slash, elsewhere: EPERM. It is put together with the name under which
// the directory was opened. So a directory that is renamed while a guest has it
// open lists what it has, but a path through it looks at the old name. A
// symbolic link inside a mount is followed within the mount, also if that is
// above the directory of the descriptor.
//
// # Hostile guests
//
// Every pointer and length is the guest's choice. Memory is looked at before
// anything is done, so EFAULT changes nothing. Nothing is allocated by a number
// that the guest gives, beyond fixed bounds: MaxPath bytes of a path, 1024
// buffers, 4096 subscriptions; more is ENAMETOOLONG or EINVAL. Every call costs
// fuel, and what it does costs by its size. What takes long asks in between
// whether the guest has to end, which is a panic with the reason, the only way
// out of a host function.
//
// # What differs from the specification
//
// Of the 72 cases that the wasi-testsuite has for preview 1, with arguments and
// variables where they want some, these fail, because they ask for what is not
// safe or not there:
//
//   - path_link makes a hard link; a file with two names can be changed through
//     neither.
//   - readlink, symlink_filestat, nofollow_errors, path_exists, symlink_create
//     and path_symlink_trailing_slashes make a symbolic link, which the programs
//     of the host would follow anywhere. Links that are there are read, followed
//     and refused as these cases want, except that the length of a target is
//     told as 0.
//   - sock_shutdown-invalid_fd takes descriptor 3 for one that is not open; it
//     is the preopen.
//
// path_filestat_set_times on a symbolic link itself works on Linux only, and
// path_readlink tells no target that leads out of the mount. fd_advise takes
// no advice. fd_allocate makes a file longer without asking the host for room.
// wasi_unstable has sock_accept and its right, too, as preview 1 got them late.
// path_open truncates what it opens to write also if the directory has not the
// right to that, but lets others inherit what comes to the same.
// proc_raise is ENOSYS. The clocks of processor time are EINVAL.
//
// File times are those of the host's file system, which can be finer than the
// clocks here; a guest that may write to a mount can tell the time by them. See
// RATIONALE, "Why an own WASI preview 1, and not wazero's?"
package preview1
