package wasi

import (
	"os"
	"sync/atomic"

	"github.com/stockade-dev/stockade/host/beneath"
)

// stagedBody is an open file of a staged mount.
type stagedBody struct {
	l    *layer
	n    *node
	base *os.File // nil if the guest made the file

	closed atomic.Bool
}

func (b *stagedBody) ended() bool { return b.closed.Load() || b.l.stage.ended() }

func (b *stagedBody) live() (os.FileInfo, error) {
	if b.ended() {
		return nil, os.ErrClosed
	}
	if b.base == nil {
		return nil, nil
	}
	return b.base.Stat()
}

func (b *stagedBody) Stat() (os.FileInfo, error) {
	live, err := b.live()
	return nodeInfo{b.n, live}, err
}

func (b *stagedBody) ReadAt(p []byte, off int64) (int, error) {
	if b.ended() {
		return 0, os.ErrClosed
	}
	return over{b.n.data, b.base}.ReadAt(p, off)
}

// change is called before the content changes.
func (b *stagedBody) change() error {
	live, err := b.live()
	if err != nil {
		return err
	}
	if b.n.data == nil {
		if b.n.seen, err = b.n.digest(b.base, live); err != nil {
			return err
		}
		b.n.data = newContent(b.l.stage.arena, live.Size())
	}
	b.n.touch(live)
	return nil
}

func (b *stagedBody) put(p []byte, off int64, _ bool) (int, error) {
	if err := b.change(); err != nil {
		return 0, err
	}
	return b.n.data.writeAt(b.base, p, off)
}

func (b *stagedBody) Truncate(size int64) error {
	if err := b.change(); err != nil {
		return err
	}
	return b.n.data.truncate(size)
}

// Sync has nothing to wait for: the commit does.
func (b *stagedBody) Sync() error { return nil }

func (b *stagedBody) setAppend(bool) error { return nil }

func (b *stagedBody) setTimes(fi os.FileInfo, atim, mtim int64) Errno {
	i := fi.(nodeInfo)
	if b.base != nil {
		if err := beneath.OneName(b.base, i.live); err != nil {
			return errnoOf(err)
		}
	}
	i.n.setTimes(i.live, atim, mtim)
	return 0
}

func (b *stagedBody) release() {
	if b.n.opens--; b.n.opens == 0 && b.n.gone && b.n.data != nil {
		b.n.data.free()
	}
}

func (b *stagedBody) Close() error {
	b.closed.Store(true)
	if b.base == nil {
		return nil
	}
	return b.base.Close()
}
