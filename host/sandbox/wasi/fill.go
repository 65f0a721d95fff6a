package wasi

import (
	"context"
	"errors"
	"io"
	"maps"
	"os"
	"slices"
)

// fill copies the content of a node. Where little of a large file was written,
// most comes from the original without passing through here, on some file
// systems by reference, and holes stay holes.
func (c *commit) fill(l *layer, n *node, to *os.File) error {
	r, err := l.after(n).open()
	if err != nil {
		return err
	}
	defer r.Close()
	base := r.(*versionReader).base
	if keep := min(n.data.below, n.data.size); base != nil && keep > 0 {
		if err := copyStart(c.ctx, to, base, keep); err != nil {
			return err
		}
	}
	if err := to.Truncate(n.data.size); err != nil {
		return err
	}
	return n.data.copyBlocks(c.ctx, to)
}

// copyBlocks writes what was written, in the order of the file.
func (c *content) copyBlocks(ctx context.Context, to io.WriterAt) error {
	buf := make([]byte, min(c.size, 256<<10))
	done := int64(0)
	for _, b := range slices.Sorted(maps.Keys(c.blocks)) {
		at := b * blockBytes
		if at < done || at >= c.size {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		slot, _, n := c.run(at, min(c.size-at, int64(len(buf))))
		if err := c.a.read(buf[:n], slot, 0); err != nil {
			return err
		}
		if _, err := to.WriteAt(buf[:n], at); err != nil {
			return err
		}
		done = at + n
	}
	return nil
}

// copyBytes is how much is copied before the context is asked again.
const copyBytes = 64 << 20

// copyStart copies the first bytes of a file to an empty one.
func copyStart(ctx context.Context, to, from *os.File, size int64) error {
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
				return nil // the host has truncated it, and the commit will refuse
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}
