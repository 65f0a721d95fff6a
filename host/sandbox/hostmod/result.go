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
func (r record) bytes(g *guest, at int, data []byte) error { return r.list(g, at, data, 1, 1) }

// list writes a list at an offset: pointer and number of items of size bytes, held by data.
func (r record) list(g *guest, at int, data []byte, size int, align uint32) error {
	alloc, err := g.allocator()
	if err != nil {
		return err
	}
	ptr, err := alloc.Lower(withoutHostCalls(g.ctx), g.mod, data, align)
	if err != nil {
		return err
	}
	r.u32(at, ptr)
	r.u32(at+4, uint32(len(data)/size))
	return nil
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

// put copies a result to the guest's result pointer.
func (l layout) put(g *guest, ptr uint32, r record) error {
	return g.mem.Put("result", ptr, r.b, l.align)
}

// failed returns a result that is an error with this case.
func (l layout) failed(errorCase uint8) record {
	r := l.record()
	r.u8(0, 1)
	r.u8(l.payload, errorCase)
	return r
}

// fail writes a result that is an error with this case and a text.
func (l layout) fail(g *guest, ptr uint32, errorCase uint8, text string) error {
	r := l.failed(errorCase)
	if err := r.bytes(g, l.errorText, []byte(text)); err != nil {
		return err
	}
	return l.put(g, ptr, r)
}
