package stage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/stockade-dev/stockade/host/rootedfs"
	"github.com/stockade-dev/stockade/host/tool"
)

// hostVersion returns the version of a node that the host has.
func (tree *Tree) hostVersion(n *Node) *tool.Version {
	fi := n.origin.info
	v := tree.version(n, nil, fi.Mode(), fi.Size())
	if fi.Mode().Type() == fs.ModeSymlink {
		v.Target, _ = tree.Readlink(n)
	}
	if st := rootedfs.StatOf(fi); fi.Mode().IsRegular() && st.Nlink > 1 {
		v.LinkCount = st.Nlink
	}
	return v
}

// stagedVersion returns the version of a node that the tree has.
func (tree *Tree) stagedVersion(n *Node) *tool.Version {
	if n.upper == nil {
		return tree.version(n, n.data, n.mode, Info{n, n.Origin()}.Size())
	}
	u := n.upper
	v := &tool.Version{Size: u.size, Mode: n.mode, Target: u.target, Open: func() (io.ReadCloser, error) {
		switch {
		case tree.set.Ended():
			return nil, os.ErrClosed
		case !n.mode.IsRegular():
			return nil, fmt.Errorf("open: not a regular file: %v", n.mode)
		}
		return u.open()
	}}
	if u.hardLink != nil {
		v.HardLink = tree.hostPath(u.hardLink.Path())
	}
	return v
}

// version returns a version of a node: data over its origin, or the origin if data is nil.
func (tree *Tree) version(n *Node, data *content, mode fs.FileMode, size int64) *tool.Version {
	if !mode.IsRegular() {
		size = 0
	}
	return &tool.Version{Size: size, Mode: mode, Open: func() (io.ReadCloser, error) {
		if tree.set.Ended() {
			return nil, os.ErrClosed
		}
		if !mode.IsRegular() {
			return nil, fmt.Errorf("open: not a regular file: %v", mode)
		}
		var base *os.File
		if n.origin != nil {
			var err error
			if base, _, err = tree.open(n); errors.Is(err, fs.ErrPermission) {
				return nil, fmt.Errorf("open %s: %w", tree.hostPath(n.origin.path()), fs.ErrPermission)
			} else if err != nil {
				return nil, fmt.Errorf("open %s: %s", tree.hostPath(n.origin.path()), reason(err))
			}
		}
		return &versionReader{io.NewSectionReader(contentReader{data, base}, 0, size), base}, nil
	}}
}

type versionReader struct {
	*io.SectionReader
	base *os.File // the file of the host; nil if there is none
}

func (r *versionReader) Close() error {
	if r.base == nil {
		return nil
	}
	return r.base.Close()
}

// sameContent reports whether two versions have the same content; false if we may not read a.
func sameContent(ctx context.Context, a, b *tool.Version) (bool, error) {
	if a.Size != b.Size {
		return false, nil
	}
	x, err := a.Open()
	if errors.Is(err, fs.ErrPermission) {
		return false, nil // a file of the host whose mode keeps even its owner out
	}
	if err != nil {
		return false, err
	}
	defer x.Close()
	y, err := b.Open()
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

// sameBlocks reports whether a written node has the content of its origin. If only blocks that
// were written can differ, it reads no others.
func (tree *Tree) sameBlocks(ctx context.Context, n *Node) (bool, error) {
	c := n.data
	if c.size != n.origin.info.Size() {
		return false, nil
	}
	if c.baseBytes < c.size {
		return sameContent(ctx, tree.hostVersion(n), tree.stagedVersion(n))
	}
	r, err := tree.hostVersion(n).Open()
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
