// Package linear implements the linear memories of guests.
//
// A [Memory] is address space that is reserved up to the limit of a guest, so that growing
// neither copies nor leaves garbage. It begins empty, or as an [Image]: the memory of a guest
// after its initialisation. [Memory.Reset] restores the pages of an image that a guest has
// changed, and nothing else. The pages stay in place, so that the next call pays neither for
// a mapping nor for page faults.
//
// On Linux an image is a sealed file in memory, and each Memory has a private, copy-on-write
// mapping of it. The kernel tells which pages differ: by the ioctl PAGEMAP_SCAN (Linux 6.7),
// or by /proc/self/pagemap. Without them, changed pages are dropped with madvise, which costs
// page faults later. If nothing of this works, the whole image is copied. The method is
// chosen once, by trying.
//
// A Memory is used from one goroutine at a time, an Image from any number. See RATIONALE,
// "Why is memory reserved up front?"
package linear
