package hostmod

import (
	"encoding/binary"

	"github.com/stockade-dev/stockade/host/sandbox/abi"
)

// record builds the bytes of one value, with its fields at the offsets of the canonical ABI.
type record struct{ b []byte }

func (r record) u8(at int, v uint8)   { r.b[at] = v }
func (r record) u16(at int, v uint16) { binary.LittleEndian.PutUint16(r.b[at:], v) }
func (r record) u64(at int, v uint64) { binary.LittleEndian.PutUint64(r.b[at:], v) }
func (r record) u32(at int, v uint32) { binary.LittleEndian.PutUint32(r.b[at:], v) }

func (r record) bool(at int, v bool) {
	if v {
		r.b[at] = 1
	}
}

// optS32 writes an option<s32> at an offset: the discriminant, and 4 bytes later the value.
func (r record) optS32(at int, v *int) {
	if v != nil {
		r.u8(at, 1)
		r.u32(at+4, uint32(int32(*v)))
	}
}

// bytes writes a list<u8> or a string at an offset: pointer and length. The guest allocates
// the memory for data.
func (r record) bytes(g *guest, at int, data []byte) { r.list(g, at, data, 1, 1) }

// list writes a list at an offset: pointer and number of items of size bytes, held by data.
// After an error, which is kept in g.err, it does nothing.
func (r record) list(g *guest, at int, data []byte, size int, align uint32) {
	if g.err != nil {
		return
	}
	var alloc *abi.Allocator
	if alloc, g.err = g.allocator(); g.err != nil {
		return
	}
	var ptr uint32
	ptr, g.err = alloc.Lower(withoutHostCalls(g.ctx), g.mod, data, align)
	r.u32(at, ptr)
	r.u32(at+4, uint32(len(data)/size))
}

// allocator returns the guest's own allocator. It is looked up once in a call, because the
// engine makes a stack for it.
func (g *guest) allocator() (*abi.Allocator, error) {
	if g.world != nil && g.world.alloc != nil {
		return g.world.alloc, nil
	}
	alloc, err := abi.AllocatorOf(g.mod, abi.ImportRealloc)
	if g.world != nil && err == nil {
		g.world.alloc = &alloc
	}
	return &alloc, err
}

// layout describes a result<T, error> in memory. Sizes and offsets are in bytes.
type layout struct {
	size, align uint32 // size and alignment of the whole result
	payload     int    // offset of T, or of the discriminant of error
	errorText   int    // offset of the payload of error
}

func (l layout) record() record { return record{make([]byte, l.size)} }

// failed returns a result that is an error with this case.
func (l layout) failed(errorCase uint8) record {
	r := l.record()
	r.u8(0, 1)
	r.u8(l.payload, errorCase)
	return r
}

// reply is a call of a function with a result pointer.
type reply struct {
	*guest
	layout
	out uint32 // result pointer
}

// put copies a result to the guest's result pointer, unless there was an error.
func (c reply) put(r record) error {
	if c.err != nil {
		return c.err
	}
	return c.mem.Put("result", c.out, r.b, c.align)
}

// refusal is returned by a function whose result is an error with this case and a text.
type refusal struct {
	errorCase uint8
	text      string
}

func (r refusal) Error() string { return r.text }

// replies returns a function that run carries out. The last parameter is the result pointer.
func replies(l layout, run func(reply) error) func(*guest) error {
	return func(g *guest) error {
		c := reply{g, l, g.u32(len(g.stack) - 1)}
		err := run(c)
		no, ok := err.(refusal)
		if !ok {
			return err
		}
		r := l.failed(no.errorCase)
		r.bytes(g, l.errorText, []byte(no.text))
		return c.put(r)
	}
}
