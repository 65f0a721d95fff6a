package wasm

import (
	"encoding/binary"
	"fmt"
	"unicode/utf8"
)

// CustomSection returns the contents of the first custom section with a name, which alias the
// decoded bytes; false: there is none. A name that begins with "stockade-" occurs at most once;
// other names may occur several times, all in Module.Customs.
func CustomSection(m *Module, name string) ([]byte, bool) {
	for _, c := range m.Customs {
		if c.Name == name {
			return c.Data, true
		}
	}
	return nil, false
}

// AppendCustom returns a copy of the module data with a custom section at its end; it leaves out
// all earlier sections of that name. Everything else keeps its bytes and its order. It returns
// an error if data does not decode, if the name is longer than [MaxNameBytes] or not UTF-8, or
// if the result would exceed the limits of Decode.
func AppendCustom(data []byte, name string, payload []byte) ([]byte, error) {
	if len(name) > MaxNameBytes || !utf8.ValidString(name) {
		return nil, fmt.Errorf("append custom section %.80q: the name is not UTF-8 of at most %d bytes", name, MaxNameBytes)
	}
	m, err := Decode(data)
	if err != nil {
		return nil, fmt.Errorf("append custom section %q: %w", name, err)
	}
	const overhead = 1 + 2*binary.MaxVarintLen32 // id, size, length of the name
	if len(payload) > MaxModuleBytes || len(data)+overhead+len(name)+len(payload) > MaxModuleBytes {
		return nil, fmt.Errorf("append custom section %q: %w: more than %d bytes", name, ErrTooLarge, MaxModuleBytes)
	}
	out, sections := copyWithoutCustom(m, name, overhead+len(name)+len(payload))
	if sections++; sections > MaxSections {
		return nil, fmt.Errorf("append custom section %q: %d sections, more than %d", name, sections, MaxSections)
	}
	prefix := binary.AppendUvarint(nil, uint64(len(name)))
	out = append(out, SectionCustom)
	out = binary.AppendUvarint(out, uint64(len(prefix)+len(name)+len(payload)))
	out = append(out, prefix...)
	out = append(out, name...)
	return append(out, payload...), nil
}

// WithoutCustom returns a copy of a module without its custom sections of that name.
func WithoutCustom(m *Module, name string) []byte {
	out, _ := copyWithoutCustom(m, name, 0)
	return out
}

// copyWithoutCustom returns a copy of a module without its custom sections of a name, and the
// number of the remaining sections. The copy has capacity for room more bytes.
func copyWithoutCustom(m *Module, name string, room int) (out []byte, sections int) {
	left := make(map[int]bool)
	for _, c := range m.Customs {
		if c.Name == name {
			left[c.Offset] = true
		}
	}
	out = append(make([]byte, 0, len(m.Raw)+room), m.Raw[:headerBytes]...)
	for _, s := range m.Sections {
		if !left[s.Offset] {
			out = append(out, m.Raw[s.Offset:s.End()]...)
			sections++
		}
	}
	return out, sections
}
