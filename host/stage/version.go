package stage

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/stockade-dev/stockade/host/tool"
)

// version is a [tool.Version] of a stage.
type version struct {
	Size int64       // of a file
	Mode fs.FileMode // with the type

	tree *Tree
	n    *Node
	// staged says that what counts is n as it is, and not what the host has.
	staged bool
}

// open returns the content of a regular file. It is an error if the host's
// file is another one by now.
func (v *version) open() (io.ReadCloser, error) {
	if v.tree.set.Ended() {
		return nil, os.ErrClosed
	}
	if !v.Mode.IsRegular() {
		return nil, fmt.Errorf("open: not a regular file: %v", v.Mode)
	}
	data := v.n.data
	if !v.staged {
		data = nil
	}
	var base *os.File
	if v.n.origin != nil {
		cur := v.tree.Cursor()
		defer cur.Close()
		var err error
		if base, _, err = cur.open(v.n); err != nil {
			return nil, fmt.Errorf("open %s: %s", v.tree.hostPath(v.n.origin.path()), reason(err))
		}
	}
	return &versionReader{io.NewSectionReader(over{data, base}, 0, v.Size), base}, nil
}

type versionReader struct {
	*io.SectionReader
	base *os.File
}

func (r *versionReader) Close() error {
	if r.base == nil {
		return nil
	}
	return r.base.Close()
}

func (v *version) shown() *tool.Version {
	return &tool.Version{Size: v.Size, Mode: v.Mode, Open: v.open}
}

func (tree *Tree) before(n *Node) *version {
	fi := n.origin.info
	v := &version{Mode: fi.Mode(), tree: tree, n: n}
	if fi.Mode().IsRegular() {
		v.Size = fi.Size()
	}
	return v
}

func (tree *Tree) after(n *Node) *version {
	v := &version{Mode: n.mode, tree: tree, n: n, staged: true}
	if n.mode.IsRegular() {
		var live os.FileInfo
		if n.origin != nil {
			live = n.origin.info
		}
		v.Size = Info{n, live}.Size()
	}
	return v
}

// same reports whether two versions have the same content.
func same(ctx context.Context, a, b *version) (bool, error) {
	if a.Size != b.Size {
		return false, nil
	}
	x, err := a.open()
	if err != nil {
		return false, err
	}
	defer x.Close()
	y, err := b.open()
	if err != nil {
		return false, err
	}
	defer y.Close()
	p, q := make([]byte, 64<<10), make([]byte, 64<<10)
	for at := int64(0); at < a.Size; {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		n, m := int(min(a.Size-at, int64(len(p)))), 0
		if _, err := io.ReadFull(x, p[:n]); err != nil {
			return false, err
		}
		if m, err = io.ReadFull(y, q[:n]); err != nil {
			return false, err
		}
		if !bytes.Equal(p[:n], q[:m]) {
			return false, nil
		}
		at += int64(n)
	}
	return true, nil
}

// sameBlocks is same for a file and its original, of which only the blocks
// that were written can differ.
func (tree *Tree) sameBlocks(ctx context.Context, n *Node) (bool, error) {
	c := n.data
	if c.size != n.origin.info.Size() {
		return false, nil
	}
	if c.below < c.size {
		return same(ctx, tree.before(n), tree.after(n))
	}
	r, err := tree.before(n).open()
	if err != nil {
		return false, err
	}
	defer r.Close()
	base := r.(*versionReader).base
	var p, q [blockBytes]byte
	for b := range c.blocks {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		at := b * blockBytes
		size := min(c.size-at, blockBytes)
		if _, err := c.readAt(base, p[:size], at); err != nil && err != io.EOF {
			return false, err
		}
		if _, err := readFull(base, q[:size], at); err != nil && err != io.EOF {
			return false, err
		}
		if p != q {
			return false, nil
		}
	}
	return true, nil
}
