package rootedfs

import (
	"context"
	"errors"
	"io"
	"os"
)

// copyBytes is the number of bytes that are copied between two looks at the context.
const copyBytes = 64 << 20

// CopyPrefix copies the first size bytes of a file to an empty file. On Linux holes stay holes,
// and on some file systems the two files then share their blocks. If the file is shorter by
// now, the rest of the copy is a hole or missing.
func CopyPrefix(ctx context.Context, to, from *os.File, size int64) error {
	if clone(to, from) {
		return to.Truncate(size)
	}
	for off := int64(0); off < size; {
		at, end := extent(from, off, size)
		for off = at; off < end; {
			if err := ctx.Err(); err != nil {
				return err
			}
			_, err := from.Seek(off, io.SeekStart)
			if err == nil {
				_, err = to.Seek(off, io.SeekStart)
			}
			if err != nil {
				return err
			}
			// Package os lets the kernel copy between two files.
			n, err := io.CopyN(to, from, min(end-off, copyBytes))
			off += n
			if errors.Is(err, io.EOF) {
				return nil // somebody has truncated the file
			}
			if err != nil {
				return err
			}
		}
	}
	return to.Truncate(size) // the file may end with a hole
}
