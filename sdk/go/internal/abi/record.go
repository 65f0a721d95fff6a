package abi

import "encoding/binary"

// Record is a value in memory; its methods read and write the field at an offset. Offsets come
// from the canonical ABI: a field is aligned to its own size, the payload of a variant to the
// largest alignment of any case.
type Record []byte

// Flag lowers a bool, or the case of an option (1: it holds a value).
func Flag(b bool) uint32 {
	if b {
		return 1
	}
	return 0
}

// Bool reads a bool, or the case of an option (true: it holds a value).
func (r Record) Bool(off uint32) bool { return r[off] != 0 }

// Case reads the number of a variant's case.
func (r Record) Case(off uint32) uint8 { return r[off] }

// U16 reads a u16.
func (r Record) U16(off uint32) uint16 { return binary.LittleEndian.Uint16(r[off:]) }

// U32 reads a u32, an s32 or an address.
func (r Record) U32(off uint32) uint32 { return binary.LittleEndian.Uint32(r[off:]) }

// U64 reads a u64.
func (r Record) U64(off uint32) uint64 { return binary.LittleEndian.Uint64(r[off:]) }

// Bytes takes the list<u8> whose address and length lie at off.
func (r Record) Bytes(off uint32) []byte { return Take(r.U32(off), r.U32(off+4)) }

// Text takes the string whose address and length lie at off.
func (r Record) Text(off uint32) string { return string(r.Bytes(off)) }

// Texts takes the list whose address and length lie at off, and whose items are perItem
// strings each. It is the counterpart of [Frame.Texts].
func (r Record) Texts(off, perItem uint32) []string {
	n := uint64(r.U32(off+4)) * uint64(perItem)
	if n == 0 {
		return nil
	}
	if n > 1<<28 {
		panic("abi: the host passed a list that cannot fit into memory")
	}
	list := Record(Take(r.U32(off), uint32(n)*8))
	texts := make([]string, n)
	for i := range texts {
		texts[i] = list.Text(uint32(i) * 8)
	}
	return texts
}

// SetCase writes a bool, or the case of an option or a variant.
func (r Record) SetCase(off uint32, v uint8) { r[off] = v }

// SetU16 writes a u16.
func (r Record) SetU16(off uint32, v uint16) { binary.LittleEndian.PutUint16(r[off:], v) }

// SetU32 writes a u32, an s32 or an address.
func (r Record) SetU32(off uint32, v uint32) { binary.LittleEndian.PutUint32(r[off:], v) }

// SetU64 writes a u64.
func (r Record) SetU64(off uint32, v uint64) { binary.LittleEndian.PutUint64(r[off:], v) }

// SetPair returns a function that writes an address and a length at off. It takes the results
// of [Frame.Text] and [Frame.Bytes].
func (r Record) SetPair(off uint32) func(ptr, size uint32) {
	return func(ptr, size uint32) {
		r.SetU32(off, ptr)
		r.SetU32(off+4, size)
	}
}
