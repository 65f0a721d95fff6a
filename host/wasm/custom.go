package wasm

import (
	"encoding/binary"
	"fmt"
	"unicode/utf8"
)

// CustomSection returns the contents of the first custom section of that name,
// which alias the decoded bytes. Of the names that begin with "stockade-"
// there is at most one; of others there can be several, all in Module.Customs.
func CustomSection(m *Module, name string) ([]byte, bool) {
	for _, c := range m.Customs {
		if c.Name == name {
			return c.Data, true
		}
	}
	return nil, false
}

// AppendCustom returns a copy of the module data with a custom section of that
// name at its end, in place of all that it had of the name. Everything else
// keeps its bytes and its order. It fails when data does not decode, when the
// name is longer than [MaxNameBytes] or not UTF-8, and when the result would be
// over the limits of Decode.
func AppendCustom(data []byte, name string, payload []byte) ([]byte, error) {
	if len(name) > MaxNameBytes || !utf8.ValidString(name) {
		return nil, fmt.Errorf("append custom section %.80q: the name is not UTF-8 of at most %d bytes", name, MaxNameBytes)
	}
	m, err := Decode(data)
	if err != nil {
		return nil, fmt.Errorf("append custom section %q: %w", name, err)
	}
	replaced := make(map[int]bool)
	for _, c := range m.Customs {
		if c.Name == name {
			replaced[c.Offset] = true
		}
	}
	if n := len(m.Sections) - len(replaced) + 1; n > MaxSections {
		return nil, fmt.Errorf("append custom section %q: %d sections, more than %d", name, n, MaxSections)
	}
	const overhead = 1 + 2*binary.MaxVarintLen32 // id, size, length of the name
	if len(payload) > MaxModuleBytes || len(data)+overhead+len(name)+len(payload) > MaxModuleBytes {
		return nil, fmt.Errorf("append custom section %q: %w: more than %d bytes", name, ErrTooLarge, MaxModuleBytes)
	}
	out := make([]byte, 0, len(data)+overhead+len(name)+len(payload))
	out = append(out, data[:headerBytes]...)
	for _, s := range m.Sections {
		if !replaced[s.Offset] {
			out = append(out, data[s.Offset:s.End()]...)
		}
	}
	prefix := binary.AppendUvarint(nil, uint64(len(name)))
	out = append(out, SectionCustom)
	out = binary.AppendUvarint(out, uint64(len(prefix)+len(name)+len(payload)))
	out = append(out, prefix...)
	out = append(out, name...)
	return append(out, payload...), nil
}
