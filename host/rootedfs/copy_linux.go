package rootedfs

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// clone makes the empty file to share the blocks of from; false if that is impossible here.
func clone(to, from *os.File) bool {
	return onFd(to, func(dst int) error {
		return onFd(from, func(src int) error { return unix.IoctlFileClone(dst, src) })
	}) == nil
}

// extent returns the start and the end of the next piece of data in a file, from off on and
// between holes, up to size. If only a hole follows, both are size.
func extent(f *os.File, off, size int64) (from, to int64) {
	from, err := f.Seek(off, unix.SEEK_DATA)
	switch {
	case errors.Is(err, unix.ENXIO):
		return size, size
	case err != nil:
		return off, size // unknown: all of the file
	}
	to, err = f.Seek(from, unix.SEEK_HOLE)
	if err != nil {
		to = size
	}
	return min(from, size), min(to, size)
}
