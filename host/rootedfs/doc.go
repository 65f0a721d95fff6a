// Package rootedfs opens the files below a directory of the host, and no others.
//
// [Open] opens a directory as a [Root]. All access to files below is relative to its
// handle, so neither a symbolic link nor a directory that is renamed or replaced
// meanwhile leads outside. On Linux the kernel guarantees that (openat2 with
// RESOLVE_BENEATH and RESOLVE_NO_MAGICLINKS). It looks up the whole name at once, or
// only the parent directory if the last part of the name is made, removed, renamed
// or read. On other systems, and if the kernel or a filter of system calls forbids
// openat2, [os.Root] looks up one directory after the other. The two differ: with
// os.Root a name can have 8 symbolic links instead of 40, and every directory on the
// way must be readable and not only searchable. With openat2 a link with ".." can
// fail with EAGAIN if files are renamed without pause.
//
// On Linux [Open] and [OpenDir] refuse a file system that shows the kernel and its
// processes, such as /proc, see [Root.RefuseKernelFile].
//
// The package also has operations that package os lacks for such directories: it
// lists them with the kernel's cookies, exchanges two names, sets times and owner
// through a handle, and copies by reference. Errors are those of the host.
package rootedfs
