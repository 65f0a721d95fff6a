// Package sqlite keeps sessions in one SQLite file: the [session.Store] that
// survives crashes.
//
// The file holds three tables. The events table has the headers, which the chain
// covers and which are never changed; the bodies table has the bodies and
// their salts, of which [Store.DeleteBodies] removes rows. The images table has
// contents of files that events speak of, compressed, by their SHA-256: those of a
// session go with its bodies, and the oldest of all when they are more than 256 MiB.
// The schema is in the folder migrations.
//
// # Writing
//
// One goroutine per [Store], the writer, owns the only connection that
// writes. It takes all requests that are waiting, seals their events in one
// immediate transaction and commits once (group commit): a commit costs a
// flush of the disk, so eight callers together are served about as fast as
// one. The ends of the chains are read inside the transaction, because other
// processes append to the same file. A request that cannot be written does not
// take its neighbours with it, but a commit that fails fails for all in it.
//
// The journal is a write-ahead log and synchronous is FULL: when Append
// returns, the log has been flushed. An Append that returns an error has not
// been acknowledged; its events are absent from the store as every process
// sees it. The one exception that no local store can rule out: when the disk
// reports an error while flushing and the machine goes down before the next
// append, recovery may find these events whole. Their chain verifies.
//
// # Reading
//
// Readers have connections of their own and never wait for the writer. An
// iterator fetches a page of events at a time and holds nothing open between
// pages, so a slow consumer neither keeps the log from being written back nor
// leaks when it stops early. An iteration ends with the event that was the
// last when it began. What an index leaves out they do not see; [Verify] reads
// the tables alone.
//
// # The file
//
// The file has mode 0600 in a folder of mode 0700. [Open] refuses a file that
// somebody else could have prepared (a symbolic link, another owner, writable
// by others) and network file systems: the write-ahead log needs memory that
// all processes share, and a network file system gives each machine its own.
// FUSE is let through, because it cannot be told which kind it is. Never copy
// the file without the files beside it that end in -wal and -shm. A fourth one, that
// ends in -settled, can be lost: it spares [Store.OpenCalls] the calls of the past. So
// can a fifth, that ends in -reserve: it holds room on the disk, see [Store.KeepReserve].
//
// SQLite is written in C: without cgo the package compiles and Open returns
// an error.
package sqlite
