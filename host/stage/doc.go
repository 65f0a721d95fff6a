// Package stage keeps what a call changes in directories of the host, until it
// is known whether it may.
//
// A [Set] takes the changes of one call. Each directory that it may change is a
// [Tree] of the set, see [Set.Add]; what is changed there is seen by who uses the
// tree, as if it were made, and by nobody else. When the call has ended,
// [Set.Changes] lists what it has changed. [Set.Commit] makes that, all or none,
// and [Set.Drop] forgets it. An [Area] is the directory in which the sets of a
// process keep what does not fit in memory.
//
// # Words
//
// A [Node] is a file, directory or symbolic link of a tree. Its origin is what
// the host has of it, where it was found; a node that was made in the tree has
// none. What is kept of a file is its content: the blocks of 4 KiB that were
// written, over the origin, which is read where it is. A [Cursor] finds nodes,
// by their names in the tree: of what is not staged, the host is asked each time.
//
// # Changes
//
// Changes are those between what the host has and what the tree has, in any
// order of operations the same: what was written and then removed is none, nor
// is a file that was written with the bytes it had, and a temporary file that
// was renamed over another is one that was modified.
//
// To change a little of a large file costs a little, on every file system. A
// commit writes the file anew, because nothing less can be undone; it lets the
// kernel copy what did not change. Content is in memory and, when it becomes
// more, in a file without a name in a private directory, so a crash leaves
// nothing but that directory, empty.
//
// A process changes a tree by way of an overlay of the kernel, on a [Layer] of an
// area: [Set.Collect] takes over what it has written. That is moved to its place
// where both are on one file system, a new directory with all that is in it.
//
// # Commit
//
// A commit compares what was changed, replaced or removed with what is there now,
// by identity, size, mode and the times of modification and of change, and by
// the content if that was read and has no more than 4 MiB. Then it writes what is
// new to temporary files beside the targets, then it exchanges names in
// directories that it holds open, and only then it removes what was replaced. Up
// to the last step all of it can be put back, except where others have changed
// meanwhile what the commit has put there: that is left to them, and what belongs
// there under a temporary name, of which the error tells. A process that is killed
// in the middle leaves a journal in the area, by which the next [NewArea] puts back
// what was done or, if that was all, tidies up. A crash of the system can leave
// files named .stockade-*.tmp.
//
// A directory that an overlay has gets its mode last, so that one which takes our
// rights away keeps nothing from being made. One of ours that does not let us change
// what is in it lets us meanwhile: a command must have done the same. What is in one
// that we cannot look into cannot be compared, and what changes it is refused; a file
// that we cannot read is modified if it is written, whatever it has.
//
// What only moves to where nothing is does so in one step. A symbolic link that
// is moved, by itself or in a directory, keeps its text, and may lead outside of
// the tree from where it is then. Owner and mode are kept, and the mode belongs
// to a name: a file that takes the place of another has its mode until it leaves
// that place. Other attributes, such as ACLs, are not, and a file that is
// modified becomes another inode.
//
// # Errors
//
// The errors of nodes, trees and files have the numbers that a file system
// gives. Besides, they are
//
//	EAGAIN        something else is there than was looked up, opened or read
//	EACCES        a change of a file that has several hard links
//	ENOSPC        what [Options] limit, or too many or too long names of what was
//	              made or moved
//	ENAMETOOLONG  a part of a name that has more than 255 bytes, and what would be
//	              made or moved more than 256 directories deep, or where the host
//	              would need more than 4096 bytes to name it or what is in it
//	EXDEV         a rename from one device to another
//	os.ErrClosed  the set has ended
package stage
