// Package wasi is the file system of a guest.
//
// [New] opens the granted directories and returns an [FS], which shows them in
// one tree from "/" on. Package preview1, below this one, makes the functions
// of WASI of it; the words, the flags and the numbers here are those of WASI
// preview 1.
//
// # Words
//
// A mount is a granted directory. It appears under its absolute host name
// (on Windows C:\ws appears as /C:/ws). The directories above a mount are
// synthetic: they exist only here, list only what leads to a mount, and
// cannot be changed. A masked path is one that the guest must never reach,
// although it lies inside a mount. A guarded mount is one that has a masked
// path or another mount inside; only guarded mounts pay for the checks this
// needs, see guard.go. A special path is one on the list of package paths, by
// the name that the host has for it, see special.go: a closed one is not
// changed, one that is to be asked about is changed on a stage only, and a
// secret file is read only if [Options] names it.
//
// # Names
//
// A name is cleaned as text before anything is looked up: a/../b is b, also
// where a is a symbolic link or does not exist. A ".." may therefore lead from
// one mount to another, exactly like the absolute name of the other, and only
// to what is granted; above "/" it is refused. [JoinBelow] puts a name and that of
// an open directory together, also as text.
// Where mounts are nested, the one with the longest name wins, whatever the
// directory of the outer mount holds under that name. A directory that is
// granted under two names, neither of which is inside the other, is two
// mounts, each with its own right to write.
//
// # Errors
//
// Errors of the host are passed on by name. Besides, a guest is told
//
//	EPERM         a special path, of which [FS.Refusals] says why;
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
//	ENOSPC        Limits.MaxWriteBytes, Limits.MaxCreated; on a stage also what a
//	              set limits
//	EAGAIN        the file was replaced during the call, or what leads to it; on a
//	              stage also to change, replace or remove what has taken the
//	              place of a file that the guest has read
//	ELOOP         too many symbolic links, or one that was not to be followed
//	ENAMETOOLONG  a name of more than MaxPath bytes; on a stage also what a set
//	              takes for too long or too deep
//	EILSEQ        a name that is not UTF-8
//	EINVAL        a name that is empty or has a NUL
//	EBADF         the FS is closed, or the file was not opened for this
//
// # What is and is not protected
//
// That nothing leads outside of a mount is the work of package beneath. Regular
// files and directories can be opened, nothing else, and none that shows the
// kernel and its processes, such as those of /proc, see kernel.go; both are
// decided on the opened handle. The open itself does not block, but whoever
// waits at the other end of a FIFO may notice it.
//
// Many files or directories can be opened in a row, see [View.Contents] and
// [FS.Dirs]. What leads to them is then looked up once, as a guest would find
// it that opens the directory first: one that is moved meanwhile stays what it
// is until the row ends. The files of a [View] in a guarded mount are opened
// before it is looked at what they are. In a listing the inode number tells
// which files are masked, where the file system is one that lists true ones
// and no other is mounted inside; elsewhere each is looked at.
//
// A file with several hard links can be read: the other names cannot be found,
// not even if one of them is that of a secret. It cannot be changed, and a guest
// creates no links. A handle stays valid when the host moves the file elsewhere.
//
// New files and directories get mode 0666 and 0777 less the umask of the
// host process, like those of any other program of the user: WASI has no modes.
//
// # Stages
//
// With a set of package stage, see [Options], nothing that a guest does to a
// writable mount reaches the host: each is a tree of the set. The guest sees its
// changes as if they were made, and no other guest does. It can tell that a mount
// is staged by link counts, the sizes and times of directories, the inode numbers
// of what it made, and by some errors of the host that come only when something
// is done: a directory that the host's user may not write to, a full disk. It
// sees what others do to files that it has not changed itself; but once it has
// used a directory that the host then moves away, names in it are EAGAIN.
//
// # Concurrency
//
// A guest is one goroutine, and an FS serves one guest. While that waits, what
// [FS.OpenContent] returns may be read by others. [FS.Close] may be
// called by another goroutine at any time: what is under way ends or fails
// with EBADF, and everything after it fails.
package wasi
