// Package wasi is the file system of a guest.
//
// [New] opens the granted directories and returns an [FS], which shows them in one tree
// from "/" on. Package preview1, below this one, implements the functions of WASI with an
// FS; the words, the flags and the numbers here are those of WASI preview 1.
//
// # Words
//
// A mount is a granted directory. It appears under its absolute host name (on Windows C:\ws
// appears as /C:/ws). The directories above a mount are synthetic: they exist only here, list
// only what leads to a mount, and cannot be changed. A masked path lies inside a mount, but
// the guest must never reach it. A guarded mount may have a masked path, a system directory or
// another mount inside; only guarded mounts pay for the checks this needs, see guard.go. A
// special path is on the list of package paths, under the name that the host has for it, see
// special.go: a closed one cannot be changed, one that needs a question can be changed on a
// stage only, and a secret file of the host can be read only if [Options] names it.
//
// # Names
//
// A name is cleaned as text before anything is looked up: a/../b is b, also where a is a
// symbolic link or does not exist. A ".." may therefore lead from one mount to another,
// exactly like the absolute name of the other, and only to what is granted; above "/" it is
// refused. [JoinBelow] joins a name to the name of an open directory, also as text.
//
// Where mounts are nested, the one with the longest name wins, whatever the directory of
// the outer mount holds under that name. A directory that is granted under two names,
// neither of which is inside the other, is two mounts, each with its own right to write; on a
// stage that is an error if one of them is writable.
//
// # Errors
//
// Errors of the host are passed on by name. Besides, a guest gets
//
//	EPERM         a special path, see [FS.Refusals] for the reason;
//	              outside the granted directories, masked, on a file system that
//	              shows the kernel and its processes, or a symbolic link that leads
//	              there, whether or not the host has something of that name;
//	              creating links; renaming or removing a mount or what leads to a
//	              masked path
//	EROFS         a change of a read-only mount or of a synthetic directory
//	EACCES        neither a regular file nor a directory; a change through a file
//	              that has several hard links
//	EXDEV         a rename from one mount to another
//	EMFILE        Limits.MaxOpenFiles
//	EFBIG         Limits.MaxFileBytes
//	ENOSPC        Limits.MaxWriteBytes, Limits.MaxCreated; on a stage also the
//	              limits of the stage
//	EAGAIN        the file, or a directory on the way to it, was replaced during
//	              the call; on a stage also a change, replacement or removal of a
//	              file that has taken the place of one the guest has read
//	ELOOP         too many symbolic links, or one that was not to be followed
//	ENAMETOOLONG  a name of more than MaxPath bytes; on a stage also a name that
//	              is too long or too deep for the stage
//	EILSEQ        a name that is not UTF-8
//	EINVAL        a name that is empty or has a NUL, or another wrong argument
//	EBADF         the FS is closed, or the file was not opened for this
//
// # What is and is not protected
//
// Package rootedfs makes sure that no name leads outside of a mount. Only regular files
// and directories can be opened, and none that shows the kernel and its processes, such
// as those of /proc, see kernel.go; both are decided on the opened handle. The open
// itself does not block, but a process at the other end of a FIFO may notice it.
//
// Many files or directories can be opened in a row, see [View.Contents] and [FS.Dirs].
// The directories on the way are then looked up once, with the result that a guest would
// get which opens the directory first: if a directory is moved meanwhile, the row still
// uses it until the row ends. Some files, such as those of a [View], are opened before their
// kind is checked. In a listing, masked files are found by their inode numbers if the file
// system lists true numbers and no other file system is mounted inside. Directories, and
// elsewhere all entries, are looked up.
//
// A file with several hard links can be read: its other names cannot be found, not even
// if one of them is a secret. Such a file cannot be changed, and a guest creates no
// links. A handle stays valid when the host moves the file elsewhere.
//
// New files and directories get mode 0666 and 0777 less the umask of the
// host process, like those of any other program of the user: WASI has no modes.
//
// # Stages
//
// With a [stage.Set], see [Options], no change of a guest in a writable mount reaches the
// host: each writable mount is a tree of the set. The guest sees its changes as if they
// were made, and no other guest does. It can notice that a mount is staged by link
// counts, the sizes and times of directories, the inode numbers of new files, and by
// errors that the host would give only when the change is made: a directory that the
// host's user may not write to, a full disk. The guest sees changes by others to files
// that it has not changed itself; but once it has used a directory that the host then
// moves away, names in that directory are EAGAIN.
//
// # Concurrency
//
// A guest is one goroutine, and an FS serves one guest. While the guest waits, other
// goroutines may read the result of [FS.OpenContent]. [FS.Close] may be called by another
// goroutine at any time: a call in progress ends or fails with EBADF, and later calls open,
// read and change no file.
package wasi
