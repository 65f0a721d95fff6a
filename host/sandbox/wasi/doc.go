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
// to what is granted; above "/" it is refused. [Below] puts a name and that of
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
//	EPERM         a special path, of which [FS.Refused] says why;
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
//	ENOSPC        Limits.MaxWriteBytes, Limits.MaxCreated; on a stage also what
//	              StageOptions limit, or too many or too long names of what was
//	              made or moved
//	EAGAIN        the file was replaced during the call, or what leads to it; on a
//	              stage also to change, replace or remove what has taken the
//	              place of a file that the guest has read
//	ELOOP         too many symbolic links, or one that was not to be followed
//	ENAMETOOLONG  a name of more than MaxPath bytes; on a stage also a part of one
//	              that has more than 255, and what would be made or moved more
//	              than 256 directories deep, or where the host would need more
//	              than 4096 bytes to name it or what is in it
//	EILSEQ        a name that is not UTF-8
//	EINVAL        a name that is empty or has a NUL
//	EBADF         the FS is closed, or the file was not opened for this
//
// # What is and is not protected
//
// All access is relative to a handle of the mount, so neither a symbolic link
// nor a directory that is renamed or replaced meanwhile leads outside. On Linux
// the kernel sees to that (openat2 with RESOLVE_BENEATH and
// RESOLVE_NO_MAGICLINKS): the name is looked up by it at once, or that of the
// parent directory where the last part of it is to be made, removed, renamed
// or read. Elsewhere, and where the kernel or a filter of system calls does not
// let us, [os.Root] does it directory by directory, see root.go. What
// differs: with os.Root a name can have 8 symbolic links instead of 40, and
// every directory that it goes through must be readable and not just
// searchable. With openat2 a link with ".." can be EAGAIN where things are
// renamed without pause.
//
// Regular files and directories can be opened, nothing else, and none that shows
// the kernel and its processes, such as those of /proc, see kernel.go; both are
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
// A file with several hard links can be read: the other names cannot be
// found, not even if one of them is that of a secret. It cannot be changed. A guest creates no links. A handle that was
// opened inside a mount stays valid when the file is moved elsewhere by the
// host, as everywhere on POSIX.
//
// New files and directories get mode 0666 and 0777 less the umask of the
// host process, like those of any other program of the user: WASI has no modes.
//
// # Stages
//
// With a [Stage], see [NewWith], nothing that a guest does to a writable mount
// reaches the host. The guest sees its changes as if they were made, and no
// other guest does. When it has ended, [Stage.Changes] lists them, in any
// order of operations the same: what was written and then removed is none, nor
// is a file that was written with the bytes it had, and a temporary file that
// was renamed over another is one that was modified. [Stage.Commit] makes
// them, all or none, and [Stage.Drop] forgets them.
//
// The guest can tell that a mount is staged by link counts, the sizes and times
// of directories, the inode numbers of what it made, and by some errors of the
// host that come only when something is done: a directory that the host's user
// may not write to, a full disk. It sees what others do to files that it has
// not changed itself, as it does without a stage; but once it has used a
// directory that the host then moves away, names in it are EAGAIN.
//
// What is kept of a file is the blocks of 4 KiB that were written, over the
// original, which is read where it is: to change a little of a large file
// costs a little, on every file system. A commit writes the file anew, because
// nothing less can be undone; it lets the kernel copy what did not change,
// which shares blocks where the file system can. Content is in memory and, when
// it becomes more, in a file without a name in a private directory that no
// mount shows, so a crash leaves nothing but that directory, empty.
//
// A commit is refused if it would do anything else than [Stage.Changes] has
// listed last. It compares first what the guest changed, replaced or removed
// with what is there now, by identity, size, mode and the times of modification
// and of change, and by the content if the guest has read it and it has no more
// than 4 MiB. Then it
// writes what is new to temporary files beside the targets, then it exchanges
// names in directories that it holds open, and only then it removes what was
// replaced. Up to the last step all of it can be put back, except where others
// have changed meanwhile what the commit has put there: that is left to them,
// and what belongs there under a temporary name, of which the error tells. A crash of the host
// in the middle of a commit can leave files named .stockade-*.tmp, of which
// some may be originals; [Unfinished] finds what says which. What only moves to
// where nothing is does so in one step. A symbolic link that is moved, by itself
// or in a directory, keeps its text, and may lead outside of the mount from
// where it is then: no guest can follow it there, but others can. Owner and mode are kept, and the mode belongs to a
// name: a file that takes the place of another has its mode until it leaves
// that place. Other attributes, such as
// ACLs, are not, and a file that is modified becomes another inode.
//
// # Concurrency
//
// A guest is one goroutine, and an FS serves one guest. While that waits, what
// [File.Content] returns may be read by others. [FS.Close] may be
// called by another goroutine at any time: what is under way ends or fails
// with EBADF, and everything after it fails.
package wasi
