package wasm

import (
	"cmp"
	"encoding/binary"
	"slices"
)

// mergeGap limits the number of zero bytes written to join two data segments, several times the
// size of the second segment's header. Segments farther apart stay separate, but see maxMergeGap.
// Go's linker leaves out runs of eight and more zeros, which makes tens of thousands of segments.
const mergeGap = 64

// maxMergeGap is the largest limit: while too many segments would remain, mergeGap is doubled up
// to it. Tools that write a program's memory back into the module, such as wizer, also make many
// segments.
const maxMergeGap = 4096

// MergeDataSegments returns the payload of a data section with the same effect and mostly fewer
// segments, and their number. It joins segments that are close to each other in the memory. If
// more than most segments remain, it joins segments that are farther apart; even then more may
// remain. ok is false, and nothing is merged, if the module has fewer than two segments; if it
// imports a memory, which may not be zero before, or does not define exactly one; if any two
// segments overlap, or one is passive or has an offset that is not constant; or if the result
// would be more than three times as large. The caller must not use it for a module whose code
// names segments. See RATIONALE, "Why are data segments merged?"
func MergeDataSegments(m *Module, most int) (payload []byte, n int, ok bool) {
	if m.NumDataSegments < 2 || len(m.Memories) != 1 {
		return nil, 0, false
	}
	for _, i := range m.Imports {
		if i.Kind == KindMemory {
			return nil, 0, false
		}
	}
	i := slices.IndexFunc(m.Sections, func(s Section) bool { return s.ID == SectionData })
	section := m.Sections[i].Payload
	segments, ok := constantSegments(section, m.NumDataSegments)
	if !ok {
		return nil, 0, false
	}
	slices.SortStableFunc(segments, func(a, b segment) int { return cmp.Compare(a.offset, b.offset) })
	for i, s := range segments[1:] {
		if int64(s.offset) < segments[i].end() {
			return nil, 0, false // the order of the segments matters
		}
	}
	gap, n, zeros := mergeGap, 0, 0
	for next := mergeGap; next <= maxMergeGap && (n == 0 || n > most); next *= 2 {
		left, fill := countMerged(segments, next)
		if fill > 2*len(section) {
			break
		}
		gap, n, zeros = next, left, fill
	}
	if n == 0 {
		return nil, 0, false
	}
	payload = binary.AppendUvarint(make([]byte, 0, len(section)+zeros), uint64(n))
	for len(segments) > 0 {
		payload, segments = appendMerged(payload, segments, gap)
	}
	return payload, n, true
}

// countMerged returns the number of segments that remain if gaps of up to most bytes are filled,
// and the number of zeros that fill them.
func countMerged(segments []segment, most int) (n, zeros int) {
	n = 1
	for i, s := range segments[1:] {
		if gap := int(int64(s.offset) - segments[i].end()); gap <= most {
			zeros += gap
		} else {
			n++
		}
	}
	return n, zeros
}

type segment struct {
	offset uint32
	data   []byte
}

func (s segment) end() int64 { return int64(s.offset) + int64(len(s.data)) }

// constantSegments returns the n segments of a data section; false unless all are active and have
// constant offsets.
func constantSegments(payload []byte, n int) ([]segment, bool) {
	r := reader{data: payload, end: len(payload)}
	r.u32("data segments")
	out := make([]segment, 0, n)
	for range n {
		if r.byte("data segment") != 0 || r.byte("offset") != byte(OpI32Const) {
			return nil, false
		}
		from := r.pos
		r.skipSigned(32, "offset")
		var offset uint32
		for i, b := range payload[from:r.pos] {
			offset |= uint32(b&0x7f) << (7 * i)
			if i < 4 && b < 0x80 && b&0x40 != 0 {
				offset |= ^uint32(0) << (7 * (i + 1))
			}
		}
		if r.byte("offset") != byte(OpEnd) {
			return nil, false
		}
		size := int(r.u32("length of a data segment"))
		from = r.pos
		r.skip(uint64(size), "data segment")
		if !r.ok() {
			return nil, false
		}
		out = append(out, segment{offset, payload[from:r.pos]})
	}
	return out, true
}

// appendMerged writes the first segments, as far as the gaps between them have at most gap bytes,
// as a single segment, and returns the remaining segments.
func appendMerged(out []byte, segments []segment, gap int) ([]byte, []segment) {
	k := 1
	for k < len(segments) && int64(segments[k].offset)-segments[k-1].end() <= int64(gap) {
		k++
	}
	first, last := segments[0], segments[k-1]
	out = append(out, 0, byte(OpI32Const))
	out = AppendSigned(out, int64(int32(first.offset)))
	out = append(out, byte(OpEnd))
	out = binary.AppendUvarint(out, uint64(last.end()-int64(first.offset)))
	at := int64(first.offset)
	for _, s := range segments[:k] {
		var zeros [maxMergeGap]byte
		out = append(out, zeros[:int64(s.offset)-at]...)
		out = append(out, s.data...)
		at = s.end()
	}
	return out, segments[k:]
}
