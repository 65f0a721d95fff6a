package wasm

import "encoding/binary"

// Skeleton returns the module without its code and its data: each function only traps, no segment
// fills a memory, and there are no custom sections. The interface of the module, and the indices
// in its code, stay valid.
//
// An engine that loads cached native code still reads the module, and spends most of the time on
// its code. With the native code of a module attached to its skeleton, loading is ten times
// faster. See RATIONALE, "Why is only the skeleton of a module kept?"
func Skeleton(m *Module) []byte {
	out := append(make([]byte, 0, 4096), m.Raw[:8]...)
	for _, s := range m.Sections {
		switch s.ID {
		case SectionCustom, SectionData, SectionDataCount:
		case SectionCode:
			body := []byte{3, 0, byte(OpUnreachable), byte(OpEnd)} // its size, no locals
			payload := binary.AppendUvarint(nil, uint64(len(m.Funcs)))
			for range m.Funcs {
				payload = append(payload, body...)
			}
			out = binary.AppendUvarint(append(out, s.ID), uint64(len(payload)))
			out = append(out, payload...)
		default:
			out = append(out, m.Raw[s.Offset:s.End()]...)
		}
	}
	return out
}
