package rootedfs

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// clone makes a file share the blocks of another, where the file system can.
func clone(to, from *os.File) bool {
	return onFd(to, func(dst int) error {
		return onFd(from, func(src int) error { return unix.IoctlFileClone(dst, src) })
	}) == nil
}

// extent is the next piece of a file that is no hole.
func extent(f *os.File, off, size int64) (from, to int64) {
	from, err := f.Seek(off, unix.SEEK_DATA)
	switch {
	case errors.Is(err, unix.ENXIO):
		return size, size
	case err != nil:
		return off, size // it is not known here
	}
	to, err = f.Seek(from, unix.SEEK_HOLE)
	if err != nil {
		to = size
	}
	return min(from, size), min(to, size)
}
