// Package rootedfs opens what is below a directory of the host, and nothing
// else.
//
// [Open] opens a directory as a [Root]. All access to what is below is relative
// to its handle, so neither a symbolic link nor a directory that is renamed or
// replaced meanwhile leads outside. On Linux the kernel sees to that (openat2
// with RESOLVE_BENEATH and RESOLVE_NO_MAGICLINKS): the name is looked up by it at
// once, or that of the parent directory where the last part of it is to be made,
// removed, renamed or read. Elsewhere, and where the kernel or a filter of system
// calls does not let us, [os.Root] does it directory by directory. What differs:
// with os.Root a name can have 8 symbolic links instead of 40, and every
// directory that it goes through must be readable and not just searchable. With
// openat2 a link with ".." can be EAGAIN where things are renamed without pause.
//
// No root is on a file system that shows the kernel and its processes, such as
// that of /proc, see [Root.RefuseKernelFile].
//
// Beside that the package has what package os lacks for such directories: to
// list them as the kernel does, to exchange two names, to set times and owner
// through a handle, to copy by reference. Errors are those of the host.
package rootedfs
