package stage

import (
	"io"
	"os"
)

// content is the content of a staged file: written blocks, over the bytes of an original.
type content struct {
	a         *arena
	size      int64
	baseBytes int64           // first bytes of the original that remain: its size, or less after a truncation
	blocks    map[int64]int64 // slots in the arena, by the number of the block in the file, from 0 on
}

// newContent returns content that equals an original of size bytes.
func newContent(a *arena, size int64) *content {
	return &content{a: a, size: size, baseBytes: size, blocks: map[int64]int64{}}
}

// run returns the length of the bytes from off on that lie in one piece, at most n. slot is
// their first slot; if staged is false, they are of the original, or zeros beyond baseBytes.
func (c *content) run(off, n int64) (slot int64, staged bool, length int64) {
	first := off / blockBytes
	slot, staged = c.blocks[first]
	length = blockBytes - off%blockBytes
	for b := first + 1; length < n; b++ {
		next, more := c.blocks[b]
		if more != staged || staged && next != slot+b-first {
			break
		}
		length += blockBytes
	}
	return slot, staged, min(length, n)
}

// readAt is [io.ReaderAt] for the content over base, which may be nil if baseBytes is zero.
func (c *content) readAt(base io.ReaderAt, p []byte, off int64) (int, error) {
	if off >= c.size {
		return 0, io.EOF
	}
	var err error
	if int64(len(p)) > c.size-off {
		p, err = p[:c.size-off], io.EOF
	}
	done := 0
	for done < len(p) {
		slot, staged, n := c.run(off, int64(len(p)-done))
		piece := p[done : done+int(n)]
		if staged {
			if err := c.a.read(piece, slot, off%blockBytes); err != nil {
				return done, err
			}
		} else if err := c.readBase(base, piece, off); err != nil {
			return done, err
		}
		done += int(n)
		off += n
	}
	return done, err
}

// readBase fills p from offset off of the original, with zeros beyond baseBytes or its end.
func (c *content) readBase(base io.ReaderAt, p []byte, off int64) error {
	have := int(min(max(c.baseBytes-off, 0), int64(len(p))))
	clear(p[have:])
	if have == 0 {
		return nil
	}
	n, err := readFull(base, p[:have], off)
	if err == io.EOF {
		// The host has truncated the original. The commit will refuse the change.
		clear(p[n:have])
		return nil
	}
	return err
}

// readFull fills p from the offset off on. Unlike ReadAt it returns no error if it could fill
// p. If there are fewer bytes, the error is io.EOF.
func readFull(r io.ReaderAt, p []byte, off int64) (int, error) {
	n, err := r.ReadAt(p, off)
	if n == len(p) {
		return n, nil
	}
	return n, err
}

// writeAt writes p at off. base is the original, for blocks of which p covers only a part.
func (c *content) writeAt(base io.ReaderAt, p []byte, off int64) (int, error) {
	done := 0
	var full error
	for done < len(p) {
		// All new blocks of p get their slots first, so that p usually lies in one piece.
		end := off + int64(len(p)-done)
		for b := off / blockBytes; b*blockBytes < end; b++ {
			if err := c.stage(base, b, off, end); err != nil {
				end = b * blockBytes
				if end <= off {
					return done, err
				}
				p, full = p[:done+int(end-off)], err
				break
			}
		}
		slot, _, n := c.run(off, int64(len(p)-done))
		if err := c.a.write(p[done:done+int(n)], slot, off%blockBytes); err != nil {
			return done, err
		}
		done += int(n)
		off += n
		c.size = max(c.size, off)
	}
	return done, full
}

// stage gives block b a slot, unless it has one. It copies the block of the original to the
// slot if the offsets [from, to), which are written next, do not cover the block.
func (c *content) stage(base io.ReaderAt, b, from, to int64) error {
	if _, ok := c.blocks[b]; ok {
		return nil
	}
	slot, err := c.a.allocSlot()
	if err != nil {
		return err
	}
	if start := b * blockBytes; from > start || to < start+blockBytes {
		var block [blockBytes]byte
		err := c.readBase(base, block[:], start)
		if err == nil {
			err = c.a.write(block[:], slot, 0)
		}
		if err != nil {
			c.a.freeSlot(slot)
			return err
		}
	}
	c.blocks[b] = slot
	return nil
}

// truncate changes the size in bytes. If the file grows again, the new part is zeros.
func (c *content) truncate(size int64) error {
	if size < c.size {
		whole := (size + blockBytes - 1) / blockBytes
		if slot, ok := c.blocks[size/blockBytes]; ok && size%blockBytes != 0 {
			var zero [blockBytes]byte
			if err := c.a.write(zero[size%blockBytes:], slot, size%blockBytes); err != nil {
				return err
			}
		}
		if whole == 0 {
			c.free()
		} else {
			for b, slot := range c.blocks {
				if b >= whole {
					c.a.freeSlot(slot)
					delete(c.blocks, b)
				}
			}
		}
		c.baseBytes = min(c.baseBytes, size)
	}
	c.size = size
	return nil
}

func (c *content) free() {
	for _, slot := range c.blocks {
		c.a.freeSlot(slot)
	}
	clear(c.blocks)
}

// contentReader reads content over its original. If c is nil, it reads the original alone.
type contentReader struct {
	c    *content
	base *os.File // the original; nil: there is none
}

func (o contentReader) ReadAt(p []byte, off int64) (int, error) {
	if o.c == nil {
		return o.base.ReadAt(p, off)
	}
	return o.c.readAt(o.base, p, off)
}
