package preview1

import (
	"math"

	"github.com/stockade-dev/stockade/host/sandbox/wasi"
)

// costShift sets the price of reading from or writing to a stream: 1<<costShift bytes
// cost one unit of fuel. For files, the FS charges.
const costShift = 3

// transferIovecs calls do with each buffer of the list in the parameters 1 and 2, and stores
// the number of transferred bytes at the pointer in parameter i.
func (g guest) transferIovecs(i int, do func([]byte) (int, wasi.Errno)) wasi.Errno {
	out, errno := g.result(i, 4)
	if errno != 0 {
		return errno
	}
	buffers, errno := g.buffers(1)
	if errno != 0 {
		return errno
	}
	n, errno := g.transfer(buffers, do)
	if errno != 0 {
		return errno
	}
	le.PutUint32(out, n)
	return 0
}

func fdRead(g guest, d *descriptor) wasi.Errno {
	if d.kind == stream {
		return g.transferIovecs(3, func(b []byte) (int, wasi.Errno) {
			if d.in == nil {
				return 0, 0
			}
			n, _ := d.in.Read(b)
			g.w.opts.Charge(uint64(n) >> costShift)
			return n, 0
		})
	}
	return g.transferIovecs(3, d.file.Read)
}

func fdWrite(g guest, d *descriptor) wasi.Errno {
	if d.kind == stream {
		return g.transferIovecs(3, func(b []byte) (int, wasi.Errno) {
			g.w.opts.Charge(uint64(len(b)) >> costShift)
			n, err := d.out.Write(b)
			if err != nil {
				return max(n, 0), wasi.EIO
			}
			return len(b), 0
		})
	}
	return g.syncIfFlagged(d, g.transferIovecs(3, d.file.Write))
}

// syncIfFlagged waits until written content is on the disk, if errno is 0 and the flags of the
// descriptor demand it. It returns errno, or the error of waiting.
func (g guest) syncIfFlagged(d *descriptor, errno wasi.Errno) wasi.Errno {
	if errno == 0 && d.flags&(flagSync|flagDsync) != 0 {
		return d.file.Sync()
	}
	return errno
}

func fdPread(g guest, d *descriptor) wasi.Errno {
	at, errno := g.offset()
	if errno != 0 {
		return errno
	}
	return g.transferIovecs(4, func(b []byte) (int, wasi.Errno) {
		n, errno := d.file.Pread(b, at)
		at += int64(n)
		return n, errno
	})
}

func fdPwrite(g guest, d *descriptor) wasi.Errno {
	at, errno := g.offset()
	if errno != 0 {
		return errno
	}
	return g.syncIfFlagged(d, g.transferIovecs(4, func(b []byte) (int, wasi.Errno) {
		n, errno := d.file.Pwrite(b, at)
		at += int64(n)
		return n, errno
	}))
}

// offset returns the offset in parameter 3.
func (g guest) offset() (int64, wasi.Errno) {
	at := g.u64(3)
	if at > math.MaxInt64-maxTransfer {
		return 0, wasi.EINVAL
	}
	return int64(at), 0
}

func fdSeek(g guest) wasi.Errno {
	off, n := int64(g.u64(1)), g.u32(2)
	known := uint64(n) < uint64(len(g.e.whence))
	if known && off == 0 && g.e.whence[n] == wasi.FromCurrent {
		return g.tell(3)
	}
	d, errno := g.w.checkedFD(g.u32(0), regularOnly, rightFDSeek)
	if errno != 0 {
		return errno
	}
	if !known {
		return wasi.EINVAL
	}
	return g.seek(d, off, g.e.whence[n], 3)
}

func fdTell(g guest) wasi.Errno { return g.tell(1) }

// tell stores the position at the pointer in parameter result. The right to seek is enough.
func (g guest) tell(result int) wasi.Errno {
	d, errno := g.w.checkedFD(g.u32(0), regularOnly, 0)
	if errno != 0 {
		return errno
	}
	if d.checkRights(rightFDSeek) != 0 && d.checkRights(rightFDTell) != 0 {
		return wasi.ENOTCAPABLE
	}
	return g.seek(d, 0, wasi.FromCurrent, result)
}

func (g guest) seek(d *descriptor, off int64, whence wasi.Whence, result int) wasi.Errno {
	out, errno := g.result(result, 8)
	if errno != 0 {
		return errno
	}
	at, errno := d.file.SeekTo(off, whence)
	if errno != 0 {
		return errno
	}
	le.PutUint64(out, uint64(at))
	return 0
}

// fdAdvise checks its parameters and does nothing else.
func fdAdvise(g guest, d *descriptor) wasi.Errno {
	const advices = 6
	switch {
	case d.kind == stream:
		return wasi.ESPIPE
	case g.u32(3) >= advices || g.u64(1) > math.MaxInt64 || g.u64(2) > math.MaxInt64:
		return wasi.EINVAL
	}
	return d.checkRights(rightFDAdvise)
}

// fdAllocate makes the file longer. The bytes count as written, so a later write to them
// cannot fail by the guest's own limits; the host may still run out of room.
func fdAllocate(g guest, d *descriptor) wasi.Errno {
	off, n := g.u64(1), g.u64(2)
	switch {
	case n == 0:
		return wasi.EINVAL
	case off > math.MaxInt64 || n > math.MaxInt64-off:
		return wasi.EFBIG
	}
	return d.file.Grow(int64(off + n))
}

func fdSync(_ guest, d *descriptor) wasi.Errno {
	if d.kind == directory {
		return 0
	}
	return d.file.Sync()
}
