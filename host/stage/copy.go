package stage

import (
	"context"
	"io"
	"maps"
	"os"
	"slices"

	"github.com/stockade-dev/stockade/host/rootedfs"
)

// copy writes the content of a node to a new file. The kernel copies the unchanged part of a
// large file, on some file systems by reference, and holes stay holes.
func (c *commit) copy(tree *Tree, n *Node, to *os.File) error {
	if n.upper != nil {
		from, err := n.upper.open()
		if err != nil {
			return err
		}
		defer from.Close()
		return rootedfs.CopyPrefix(c.ctx, to, from, n.upper.size)
	}
	r, err := tree.stagedVersion(n).Open()
	if err != nil {
		return err
	}
	defer r.Close()
	base := r.(*versionReader).base
	if keep := min(n.data.baseBytes, n.data.size); base != nil && keep > 0 {
		if err := rootedfs.CopyPrefix(c.ctx, to, base, keep); err != nil {
			return err
		}
	}
	if err := to.Truncate(n.data.size); err != nil {
		return err
	}
	return n.data.copyBlocks(c.ctx, to)
}

// copyBlocks copies the blocks that were written, in the order of the file.
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
