package native

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/stockade-dev/stockade/host/sandbox/mapped"
)

// mapInto replaces the mapping p by a mapping of the file's content from an offset on, and
// reports success. If it fails, p is unchanged. The new mapping is executable at once: if the
// file system or a security module forbids that, mapInto fails.
func mapInto(p []byte, f *os.File, offset int64) bool {
	page := uintptr(os.Getpagesize())
	to := unsafe.Pointer(unsafe.SliceData(p))
	if len(p) == 0 || uintptr(to)%page != 0 || !mapped.IsLocal(f) {
		return false
	}
	size := (uintptr(len(p)) + page - 1) / page * page
	from, err := unix.MmapPtr(int(f.Fd()), offset, nil, size, unix.PROT_READ|unix.PROT_EXEC, unix.MAP_PRIVATE)
	if err != nil {
		return false
	}
	if _, err := unix.MremapPtr(from, size, to, size, unix.MREMAP_MAYMOVE|unix.MREMAP_FIXED); err != nil {
		_ = unix.MunmapPtr(from, size)
		return false
	}
	return true
}
