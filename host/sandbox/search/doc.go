// Package search does work for a guest that takes long in a guest: it lists many directories
// and searches many files at once, on all processors.
//
// It opens files only through the guest's own [wasi.FS], or a [wasi.View] of it, so mounts,
// masks, links, staged changes and the limit of open files apply as for the guest itself. The
// queries come from the guest and may be hostile, and so may the files.
//
// # Goroutines
//
// One goroutine conducts a search: it opens and closes the files, in order and in groups
// (tasks), and adds up the results. Workers only read open files. A fixed number of files is
// opened ahead, which limits the memory and makes the cost of a search the same in every run:
// it depends on the files, not on the speed of the goroutines. For the same reason tasks that
// were begun ahead are finished and paid for even if the search has ended, and no expensive
// task is begun ahead.
//
// A guest begins a search and collects the result later. Until then a goroutine of the search
// conducts it; afterwards the goroutine of the guest does, which also searches while it has
// its turn. All other goroutines need a place; all searches share the places.
//
// # Costs
//
// Looking up and opening files costs the same as for a guest. In addition a guest pays for
// the bytes that are read, and for the bytes that are matched, by the size of the expression;
// see the constants. It pays after every few files once it collects the result, and not
// before, because an account serves one goroutine. Until then the search owes no more than
// the guest could last pay, and no more than backgroundUnits. All goroutines check every few
// milliseconds whether the debt is too high, or the result is no longer wanted, and end the
// search then. See RATIONALE, "Why does the host search for a guest?"
package search
