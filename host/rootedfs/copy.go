package rootedfs

import (
	"context"
	"errors"
	"io"
	"os"
)

// copyBytes is how much is copied before the context is asked again.
const copyBytes = 64 << 20

// CopyPrefix copies the first bytes of a file to an empty one, on some file systems
// by reference, and holes stay holes. It copies less from a file that is shorter
// by now.
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
			// Package os sees that both are files, and lets the kernel do it.
			n, err := io.CopyN(to, from, min(end-off, copyBytes))
			off += n
			if errors.Is(err, io.EOF) {
				return nil // somebody has truncated it
			}
			if err != nil {
				return err
			}
		}
	}
	return to.Truncate(size) // it may end with a hole
}
