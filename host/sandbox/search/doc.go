// Package search does for a guest what takes long in a guest: it lists many
// directories and searches many files in one go, on all processors.
//
// It reaches files through the guest's own [wasi.FS], or a [wasi.View] of it,
// and opens nothing in any other way, so mounts, masks, links, staged changes and
// the limit of open files are what they are for the guest itself. What is asked
// for comes from the guest and may be hostile, and so may the files be.
//
// # Who does what
//
// One goroutine conducts a search: it opens and closes the files, in order, and
// takes what is found. The others only read what is open. So many files are
// opened ahead and no more, which bounds the memory and makes what a search costs
// the same in every run: it depends on the files, and not on who was faster. For
// the same reason what was begun ahead is finished and paid for even if it is
// not wanted any more, and nothing expensive is begun ahead.
//
// A guest begins a search and comes for the result. Until it comes a goroutine
// of the search conducts it, and then that of the guest, which searches too,
// while it has its turn. The others have places, which all searches share.
//
// # What it costs
//
// Looking up and opening costs what it costs a guest. Beside that a guest pays
// for the bytes that are read, and for those that are matched with the
// expression by its size; see the constants. It pays after every few files when
// it has come, and not before: an account serves one goroutine. Until then no
// more is done than it could pay when it was seen last, nor more than a bound.
// Every few milliseconds everybody who searches looks at whether that is going
// to be more than there is, or nobody waits for the result: that ends it. See
// RATIONALE, "Why does the host search for a guest?"
package search
