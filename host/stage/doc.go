// Package stage holds the changes that a call makes in directories of the host,
// apart from the host, until somebody decides whether the host gets them.
//
// A [Set] holds the changes of one call. [Set.Add] makes a directory of the host a
// [Tree] of the set. Users of the tree see their changes as if they were made
// already; nobody else sees them. When the call has ended, [Set.Changes] lists its
// changes. [Set.Commit] makes them on the host, all or none, and [Set.Drop] forgets
// them. An [Area] is the directory in which the sets of a process put the content
// that does not fit in memory.
//
// # Words
//
// A [Node] is a file, directory or symbolic link of a tree. Its origin is the file, directory
// or link that the host has, at the place where it was found; a node that was made in the tree
// has no origin. The content of a node is the blocks of 4 KiB that were written to it. They
// lie over the bytes of the origin, which stay where they are. A [Cursor] finds nodes by their
// names in the tree, and asks the host each time about everything that is not staged.
//
// # Changes
//
// A change is a difference between the host and the tree, whatever the order of
// operations was. A file that was made and then removed is no change, nor is a file
// that a guest has overwritten with the bytes it had. A temporary file that was renamed
// over another file is a modification of the other file.
//
// To change a little of a large file costs a little, on every file system. A commit writes the
// file anew, because nothing less can be undone; it lets the kernel copy the bytes that did
// not change. Content is in memory first. When it grows, it moves to a file without a name in
// a private directory, so a crash leaves nothing but that directory, empty.
//
// A process changes a tree through an overlay mount of the kernel, which writes to a
// [Layer] of an area. [Set.Collect] makes changes of the set from the files in the
// layer. A commit moves these files to their places if the layer and the host are on
// one file system, and a new directory at once with all its content.
//
// # Commit
//
// A commit has four phases. First it compares everything that was changed, replaced or removed
// with the present state of the host: by identity, size, mode and the times of modification
// and of change, and by content if a file was read and has at most 4 MiB. Only the identity of
// a directory counts, and of a file that only moves or gets other times. Second it writes new
// files under temporary names beside their targets. Third it exchanges names, in directories
// that it holds open. Last it removes what was replaced. Until the last phase it can put
// everything back, with one exception: a file that others have changed after the commit put it
// in place stays as it is, and the original stays under another name, which the error gives. A
// process that is killed in the middle leaves a journal in the area. The next [NewArea] reads
// the journal and puts the steps back or, if all were done, tidies up. A crash of the system
// can leave files named .stockade-*.tmp.
//
// Directories of an overlay get their modes last, because a mode may take away our right to
// make something in the directory. If a directory of our own does not let us change its
// entries, the commit takes the right meanwhile: the command must have done the same. Entries
// of a directory that we cannot look into cannot be compared, so a change of them is refused.
// A file that we cannot read counts as modified once it was written, whatever its content is.
//
// A file or directory that moves to a free name usually does so in one step. A symbolic link
// that is moved, by itself or with its directory, keeps its text, and may lead outside of the
// tree from its new place. Owner and mode are kept, and the mode belongs to the name: a file
// that takes the place of another has the mode of the other until it leaves that place. On
// Linux a modified file also keeps its ACLs and extended attributes, as far as the host
// permits. A modified file becomes another inode.
//
// # Errors
//
// The errors of nodes, trees and files have the numbers that a file system
// gives. Besides, they are
//
//	EAGAIN        the host has something else than was looked up, opened or read
//	EACCES        a change of a file that has several hard links
//	ENOSPC        a limit of [Options] is reached, or the nodes that were made or
//	              moved are too many or have too long names
//	ENAMETOOLONG  a part of a name has more than 255 bytes, or a node would be made
//	              or moved so that it or a node below it is more than 256 levels
//	              deep, or has a path of more than 4096 bytes on the host
//	EXDEV         a rename from one device to another
//	os.ErrClosed  the set has ended
package stage
