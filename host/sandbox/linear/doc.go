// Package linear holds the linear memory of guests.
//
// A [Memory] is address space that is reserved at the limit of a guest, so
// that growing neither copies nor leaves garbage. It starts empty, or as an
// [Image]: the content of the memory of a guest that has been initialised.
// [Memory.Reset] puts back what a guest has changed of an image, and nothing
// else: the pages stay where they are, so that the next call pays neither for
// a mapping nor for page faults.
//
// On Linux an image is a sealed file in memory of which each Memory has a
// private, copy-on-write mapping. Which pages differ is asked of the kernel:
// by the ioctl PAGEMAP_SCAN (Linux 6.7), or by reading /proc/self/pagemap; or
// the changed pages are dropped with madvise, which costs page faults later.
// Where all that is missing the whole image is copied. What works is found out
// once, by trying.
//
// A Memory is used from one goroutine at a time. An Image may be used by many.
// See RATIONALE, "Why is memory reserved up front?"
package linear
