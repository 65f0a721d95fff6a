package wasm

import "encoding/binary"

// Skeleton returns the module without its code and its data: each function
// does nothing but trap, no segment puts anything into a memory, and there are
// no custom sections. What others see of the module, and what the indices in
// its code mean, stays.
//
// An engine that keeps native code looks at the module all the same when it
// loads that, and most of the time at the code. Whoever puts the native code of
// a module in the place of that of its skeleton has it loaded ten times faster.
// See RATIONALE, "Why is only the skeleton of a module kept?"
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
