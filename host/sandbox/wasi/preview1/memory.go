package preview1

import (
	"context"
	"encoding/binary"
	"math"

	"github.com/tetratelabs/wazero/api"

	"github.com/stockade-dev/stockade/host/sandbox/wasi"
)

var le = binary.LittleEndian

// guest is one call of a guest. Every number in it is the guest's choice.
//
// A function looks at all the memory that it is going to use before it does
// anything, so that what fails with EFAULT has changed nothing.
type guest struct {
	ctx   context.Context
	w     *World
	e     *edition
	mem   api.Memory // nil: it exports none
	stack []uint64
}

// u32 decodes a parameter. The upper half of a 32-bit value on the stack may
// hold anything.
func (g guest) u32(i int) uint32 { return api.DecodeU32(g.stack[i]) }

func (g guest) u64(i int) uint64 { return g.stack[i] }

// view returns n bytes at ptr, which stay the guest's, or EFAULT.
func (g guest) view(ptr uint32, n uint64) ([]byte, wasi.Errno) {
	if g.mem == nil || n > math.MaxUint32 {
		return nil, wasi.EFAULT
	}
	b, ok := g.mem.Read(ptr, uint32(n))
	if !ok {
		return nil, wasi.EFAULT
	}
	return b, 0
}

// result returns the place of a result of n bytes, whose pointer is parameter i.
func (g guest) result(i int, n uint64) ([]byte, wasi.Errno) { return g.view(g.u32(i), n) }

// path copies a name whose pointer and length are the parameters from i on.
func (g guest) path(i int) (string, wasi.Errno) {
	n := g.u32(i + 1)
	if n > wasi.MaxPath {
		return "", wasi.ENAMETOOLONG
	}
	b, errno := g.view(g.u32(i), uint64(n))
	return string(b), errno
}

const (
	iovecBytes = 8 // pointer and length
	// maxIovecs is how many buffers one call can have, as on Linux.
	maxIovecs = 1024
	// maxTransfer is how much one call reads or writes at most. A guest that
	// wants more gets that much.
	maxTransfer = 1 << 30
	// transferPiece is how much is read or written at a time; whether the guest has to
	// end is asked in between.
	transferPiece = 1 << 20

	costIovec = 4
	// costPiece is what a buffer costs beside its bytes, unless it is empty: each is
	// passed on and redacted by itself, and the deadline is looked at in between.
	costPiece = 200
)

// buffers returns the buffers of the list whose pointer and length are the
// parameters from i on. They are valid until the next call.
func (g guest) buffers(i int) ([][]byte, wasi.Errno) {
	n := g.u32(i + 1)
	if n > maxIovecs {
		return nil, wasi.EINVAL
	}
	g.w.opts.Charge(uint64(n) * costIovec)
	list, errno := g.view(g.u32(i), uint64(n)*iovecBytes)
	if errno != 0 {
		return nil, errno
	}
	out, room := g.w.buffers[:0], maxTransfer
	for ; len(list) > 0; list = list[iovecBytes:] {
		b, errno := g.view(le.Uint32(list), uint64(le.Uint32(list[4:])))
		if errno != 0 {
			return nil, errno
		}
		b = b[:min(len(b), room)]
		room -= len(b)
		if len(b) > 0 {
			out = append(out, b)
		}
	}
	g.w.buffers = out
	return out, 0
}

// transfer does something with the buffers, one after the other, until one is
// not dealt with as a whole. An error counts only if nothing was done before.
func (g guest) transfer(buffers [][]byte, do func([]byte) (int, wasi.Errno)) (uint32, wasi.Errno) {
	total := uint32(0)
	for i, b := range buffers {
		for start := 0; start < len(b); start += transferPiece {
			if i > 0 || start > 0 {
				g.w.checkpoint()
			}
			g.w.opts.Charge(costPiece)
			part := b[start:min(len(b), start+transferPiece)]
			n, errno := do(part)
			total += uint32(n)
			if errno != 0 && total == 0 {
				return 0, errno
			}
			if errno != 0 || n < len(part) {
				return total, 0
			}
		}
	}
	return total, 0
}
