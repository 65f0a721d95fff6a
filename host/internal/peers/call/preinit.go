//go:build bench

package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/stockade-dev/stockade/host/wasm"
)

// preinitialise returns a module whose instances begin in the state of a snapshot: the
// memory as data segments, and the globals as initial values. This is what Wizer does to
// a module, with the snapshot that our own calls begin with.
func preinitialise(code, memory []byte, globals []uint64) ([]byte, error) {
	m, err := wasm.Decode(code)
	if err != nil {
		return nil, err
	}
	switch {
	case m.HasStart:
		return nil, errors.New("instantiating it runs a function")
	case len(m.Memories) != 1:
		return nil, errors.New("it has not one memory of its own")
	case len(m.MutableGlobals) != m.NumGlobals, len(globals) != m.NumGlobals:
		return nil, fmt.Errorf("of %d globals %d can be set, and the snapshot has %d", m.NumGlobals, len(m.MutableGlobals), len(globals))
	}
	segments, n := dataSegments(memory)
	out := bytes.Clone(code[:m.Sections[0].Offset])
	for _, s := range m.Sections {
		payload := s.Payload
		switch s.ID {
		case wasm.SectionCustom:
			continue
		case wasm.SectionMemory:
			payload = memoryType(m.Memories[0], len(memory))
		case wasm.SectionGlobal:
			if payload, err = globalValues(m.MutableGlobals, globals); err != nil {
				return nil, err
			}
		case wasm.SectionDataCount:
			payload = binary.AppendUvarint(nil, uint64(n))
		case wasm.SectionData:
			payload = segments
		}
		out = append(out, s.ID)
		out = binary.AppendUvarint(out, uint64(len(payload)))
		out = append(out, payload...)
	}
	return out, nil
}

func memoryType(l wasm.Limits, size int) []byte {
	out := []byte{1, 0}
	if l.HasMax {
		out[1] = 1
	}
	out = binary.AppendUvarint(out, uint64(size/wasm.PageBytes))
	if l.HasMax {
		out = binary.AppendUvarint(out, l.Max)
	}
	return out
}

func globalValues(globals []wasm.Global, values []uint64) ([]byte, error) {
	out := binary.AppendUvarint(nil, uint64(len(globals)))
	for i, g := range globals {
		const mutable = 1
		out = append(out, byte(g.Type), mutable)
		switch v := values[i]; g.Type {
		case wasm.I32:
			out = append(out, byte(wasm.OpI32Const))
			out = wasm.AppendSigned(out, int64(int32(v)))
		case wasm.I64:
			out = append(out, byte(wasm.OpI64Const))
			out = wasm.AppendSigned(out, int64(v))
		case wasm.F32:
			out = append(out, byte(wasm.OpF32Const))
			out = binary.LittleEndian.AppendUint32(out, uint32(v))
		case wasm.F64:
			out = append(out, byte(wasm.OpF64Const))
			out = binary.LittleEndian.AppendUint64(out, v)
		default:
			return nil, fmt.Errorf("a global is a %v", g.Type)
		}
		out = append(out, byte(wasm.OpEnd))
	}
	return out, nil
}

// dataSegments returns the pages of a memory that are not zero, adjacent ones in one
// segment: an engine can map aligned segments.
func dataSegments(memory []byte) (payload []byte, n int) {
	const page = 4096
	var zeros [page]byte
	zero := func(at int) bool { return bytes.Equal(memory[at:at+page], zeros[:]) }
	for at := 0; at < len(memory); {
		if zero(at) {
			at += page
			continue
		}
		from := at
		for at < len(memory) && !zero(at) {
			at += page
		}
		payload = append(payload, 0, byte(wasm.OpI32Const)) // an active segment of memory 0
		payload = wasm.AppendSigned(payload, int64(int32(from)))
		payload = append(payload, byte(wasm.OpEnd))
		payload = binary.AppendUvarint(payload, uint64(at-from))
		payload = append(payload, memory[from:at]...)
		n++
	}
	return append(binary.AppendUvarint(nil, uint64(n)), payload...), n
}
