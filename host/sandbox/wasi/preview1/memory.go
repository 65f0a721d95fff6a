package preview1

import (
	"context"
	"encoding/binary"
	"math"

	"github.com/tetratelabs/wazero/api"

	"github.com/stockade-dev/stockade/host/sandbox/wasi"
)

var le = binary.LittleEndian

// guest is one call of a function by a guest. Every number in it is the guest's choice.
//
// A function checks all the memory that it will use before it changes anything, so that a
// call which fails with EFAULT has changed nothing.
type guest struct {
	ctx   context.Context
	w     *World
	e     *edition   // edition of the module that the guest imports
	mem   api.Memory // nil if the guest exports none
	stack []uint64
}

// u32 decodes parameter i. The upper half of a 32-bit value on the stack is undefined.
func (g guest) u32(i int) uint32 { return api.DecodeU32(g.stack[i]) }

func (g guest) u64(i int) uint64 { return g.stack[i] }

// view returns n bytes of the guest's memory at ptr without a copy, or EFAULT.
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

// result returns the memory for a result of n bytes, whose pointer is parameter i, or EFAULT.
func (g guest) result(i int, n uint64) ([]byte, wasi.Errno) { return g.view(g.u32(i), n) }

// path copies the name whose pointer and length are the parameters i and i+1.
func (g guest) path(i int) (string, wasi.Errno) {
	n := g.u32(i + 1)
	if n > wasi.MaxPath {
		return "", wasi.ENAMETOOLONG
	}
	b, errno := g.view(g.u32(i), uint64(n))
	return string(b), errno
}

const (
	iovecBytes = 8    // pointer and length
	maxIovecs  = 1024 // buffers of one call, as on Linux; more are EINVAL
	// maxTransfer limits the bytes that one call reads or writes; only the first maxTransfer
	// bytes of a larger request are transferred.
	maxTransfer = 1 << 30
	// transferPiece is the number of bytes that are transferred at a time; between two pieces
	// the guest may be ended.
	transferPiece = 1 << 20

	costIovec = 4
	// costPiece is the price of each non-empty buffer, in addition to its bytes: each is
	// passed on and redacted separately, and the deadline is checked in between.
	costPiece = 200
)

// buffers returns the buffers of the list whose pointer and length are the parameters i and
// i+1. They are valid until the next call.
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

// transfer calls do with the buffers, one after the other, until one is processed only in
// part, and returns the number of processed bytes. An error counts only if no byte was
// processed before.
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
