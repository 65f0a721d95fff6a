package hostmod

import (
	"encoding/binary"

	"github.com/stockade-dev/stockade/host/sandbox/abi"
)

// record writes the fields of one value in memory, at the offsets that the
// canonical ABI gives them.
type record struct{ b []byte }

func newRecord(size int) record { return record{make([]byte, size)} }

func (r record) u8(at int, v uint8)   { r.b[at] = v }
func (r record) u32(at int, v uint32) { binary.LittleEndian.PutUint32(r.b[at:], v) }

func (r record) bool(at int, v bool) {
	if v {
		r.b[at] = 1
	}
}

// optS32 writes an option<s32>: discriminant, value at 4.
func (r record) optS32(at int, v *int) {
	if v != nil {
		r.u8(at, 1)
		r.u32(at+4, uint32(int32(*v)))
	}
}

// bytes writes a list<u8> or a string: pointer and length, with the data in
// memory that the guest allocates.
func (r record) bytes(g *guest, at int, data []byte) error {
	alloc, err := abi.AllocatorOf(g.mod, abi.ImportRealloc)
	if err != nil {
		return err
	}
	ptr, err := alloc.Lower(g.ctx, g.mod, data, 1)
	if err != nil {
		return err
	}
	r.u32(at, ptr)
	r.u32(at+4, uint32(len(data)))
	return nil
}

// put copies the record to where the guest wants its result.
func (r record) put(g *guest, ptr uint32) error { return g.mem.Put("result", ptr, r.b) }

// fail writes the error case of a result whose payload starts at the given
// offset, with the case number and the text of the error variant. textAt is
// the payload of the variant within the record.
func (r record) fail(g *guest, ptr uint32, payload, textAt int, errorCase uint8, text string) error {
	r.u8(0, 1)
	r.u8(payload, errorCase)
	if err := r.bytes(g, textAt, []byte(text)); err != nil {
		return err
	}
	return r.put(g, ptr)
}
