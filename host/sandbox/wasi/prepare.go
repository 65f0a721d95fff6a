package wasi

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"os"

	"github.com/stockade-dev/stockade/host/tool"
)

// tempName is what something is called before it has its place and after it
// has lost it. Names like it that nobody uses are what a crash leaves.
func tempName() string { return ".stockade-" + rand.Text() + ".tmp" }

// fresh reports whether a node comes on the host as something new, and not by
// moving what is there.
func (n *node) fresh() bool { return n.origin == nil || n.data != nil }

// prepare writes everything that is new beside the place where it belongs.
func (c *commit) prepare() error {
	for _, ch := range c.all {
		if ch.n == nil || ch.kind == tool.Times && ch.n == ch.was || !ch.n.fresh() || ch.n.parent.origin == nil {
			continue // what is in a new directory comes with that
		}
		h, err := c.dir(ch.l, ch.n.parent)
		if err != nil {
			return err
		}
		if err := c.build(ch.l, ch.n, spot{h, tempName()}); err != nil {
			return err
		}
	}
	return nil
}

// build makes a file, or a directory with all that is new in it.
func (c *commit) build(l *layer, n *node, at spot) error {
	path := l.hostPath(n.path())
	if err := c.begin("prepare", path); err != nil {
		return err
	}
	if err := c.ctx.Err(); err != nil {
		return err
	}
	if !n.mode.IsDir() {
		if err := c.buildFile(l, n, at); err != nil {
			return err
		}
		c.held[n] = at
		return nil
	}
	if err := at.dir.root.Mkdir(at.name, newDirMode); err != nil {
		return err
	}
	c.made = append(c.made, step{"remove " + at.String(), func() error { return at.dir.root.Remove(at.name) }})
	c.held[n] = at
	h, err := newHandle(at.dir.root, at.name, at.String())
	if err != nil {
		return err
	}
	c.dirs[n] = h
	for name, child := range n.children {
		if !child.fresh() {
			continue
		}
		if err := c.build(l, child, spot{h, name}); err != nil {
			return err
		}
	}
	return h.sync()
}

func (c *commit) buildFile(l *layer, n *node, at spot) (err error) {
	file, err := at.dir.root.OpenFile(at.name, os.O_CREATE|os.O_EXCL|os.O_RDWR, newFileMode)
	if err != nil {
		return err
	}
	c.made = append(c.made, step{"remove " + at.String(), func() error { return at.dir.root.Remove(at.name) }})
	defer func() { err = errors.Join(err, file.Close()) }()
	if err := c.fill(l, n, file); err != nil {
		return err
	}
	like := n.like
	if like == nil && n.origin != nil {
		like = n.origin.info
	}
	if like != nil {
		keepOwner(file, like)
	}
	if like != nil || n.chmod {
		if err := file.Chmod(n.mode.Perm()); err != nil {
			return err
		}
	}
	if t := n.times; t.setAtim || t.setMtim {
		if err := setTimes(file, t.explicit(t.setAtim, t.atim), t.explicit(t.setMtim, t.mtim)); err != nil {
			return err
		}
	}
	return file.Sync()
}

// explicit is a time that the guest has set, or none.
func (t *stamps) explicit(set bool, nanos int64) int64 {
	if !set {
		return OmitTime
	}
	return nanos
}

// fill copies the content of a node. Where little of a large file was written,
// most comes from the original without passing through here, on some file
// systems by reference.
func (c *commit) fill(l *layer, n *node, to *os.File) error {
	r, err := l.after(n).open()
	if err != nil {
		return err
	}
	defer r.Close()
	base := r.(*versionReader).base
	from := int64(0)
	if keep := min(n.data.below, n.data.size); base != nil && keep > 0 {
		if _, err := io.Copy(to, &inContext{c.ctx, io.LimitReader(base, keep)}); err != nil {
			return err
		}
		from = keep
		// What was written over it.
		for b := range n.data.blocks {
			if at := b * blockBytes; at < keep {
				if err := n.data.copyBlock(base, to, at); err != nil {
					return err
				}
			}
		}
	}
	if n.data.size > from {
		if _, err := to.Seek(from, io.SeekStart); err != nil {
			return err
		}
		src := io.NewSectionReader(over{n.data, base}, from, n.data.size-from)
		if _, err := io.CopyBuffer(struct{ io.Writer }{to}, &inContext{c.ctx, src}, make([]byte, 256<<10)); err != nil {
			return err
		}
	}
	return to.Truncate(n.data.size)
}

func (c *content) copyBlock(base io.ReaderAt, to io.WriterAt, at int64) error {
	var block [blockBytes]byte
	p := block[:min(c.size-at, blockBytes)]
	if _, err := c.readAt(base, p, at); err != nil && err != io.EOF {
		return err
	}
	_, err := to.WriteAt(p, at)
	return err
}

// inContext is a reader that ends with its context.
type inContext struct {
	ctx context.Context
	r   io.Reader
}

func (r *inContext) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.r.Read(p)
}
