// Package sqlite keeps sessions in one SQLite file: the [session.Store] that survives crashes.
//
// The file holds three tables. The events table has the headers, which the chain covers and which
// never change. The bodies table has the bodies and their salts; [Store.DeleteBodies] deletes rows
// of it. The images table has preimages: compressed contents of files, by their SHA-256, to which
// events refer. The preimages of a session are deleted with its bodies, and the oldest of all when
// they exceed 256 MiB. The schema is in the folder migrations.
//
// # Writing
//
// One goroutine per [Store], the writer, owns the only connection that writes. It takes the
// waiting requests, up to 64 MiB, seals their events in one immediate transaction and commits
// once (group commit). A deletion has a transaction of its own. A commit costs a flush of the
// disk, so eight concurrent callers are served about as fast as one. The ends of the chains are
// read in the transaction, because other processes append to the same file. If one request cannot
// be written, the others of its transaction still can be; but if the commit fails, all of them
// fail.
//
// The journal is a write-ahead log and synchronous is FULL: when Append returns, the log has been
// flushed. If an Append returns an error, its events are absent from the store for every process.
// There is one exception that no local store can exclude: if the disk reports an error during a
// flush and the machine goes down before the next append, recovery may find these events complete.
// Their chain verifies.
//
// # Reading
//
// Readers have their own connections and never wait for the writer. An iterator reads one page
// of events at a time and holds nothing open between pages. So a slow consumer does not keep the
// log from being written back, and an early stop leaks nothing. An iteration ends with the event
// that was the latest when it began. Readers do not see events that an index leaves out;
// [Verify] reads only the tables.
//
// # The file
//
// [Open] makes the file with mode 0600, and missing folders with mode 0700. It refuses a file that
// somebody else may have prepared: a symbolic link, or a file with another owner or that others
// can write, or any file in a folder in which everybody can replace it. On Linux it also
// refuses network file systems: the write-ahead log needs memory that all processes share, and
// on a network file system each machine has its own. FUSE is allowed, because its kind cannot be
// determined. Never copy the file without the files beside it whose names end in -wal and -shm.
// A fourth file, -settled, can be lost: it spares [Store.OpenCalls] the calls of the past. So
// can a fifth, -reserve: it reserves disk space, see [Store.KeepReserve].
//
// SQLite is written in C: without cgo the package compiles, and Open and Verify return an error.
package sqlite
