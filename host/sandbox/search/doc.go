// Package search does for a guest what takes long in a guest: it lists many
// directories and searches many files in one go, on all processors.
//
// It reaches files through the guest's own [wasi.FS] and opens nothing in any
// other way, so mounts, masks, links, staged changes, the limit of open files
// and the journal are what they are for the guest itself. What is asked for
// comes from the guest and may be hostile, and so may the files be.
//
// # Who does what
//
// The goroutine of the guest opens and closes the files, in order: an FS serves
// one goroutine. The others only read what is open. So many files are opened
// ahead and no more, which bounds the memory and makes what a search costs the
// same in every run: it depends on the files, and not on who was faster. For
// the same reason what was begun ahead is finished and paid for even if it is
// not wanted any more, and nothing expensive is begun ahead.
//
// The goroutine of the guest searches too, while it has its turn. The others
// have places, which all searches share.
//
// # What it costs
//
// Looking up and opening costs what it costs a guest. Beside that a guest pays
// for the bytes that are read, and for those that are matched with the
// expression by its size; see the constants. It pays after every few files.
// Every few milliseconds everybody who searches looks at whether that is going
// to be more than there is, or nobody waits for the result: that ends it.
package search
