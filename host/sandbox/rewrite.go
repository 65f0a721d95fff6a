package sandbox

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/stockade-dev/stockade/host/wasm"
)

// Limits on a module's size beyond those of package wasm. They keep what
// compiling and instantiating take within seconds and a few hundred MiB, and
// are some ten times what the largest tools need.
const (
	maxFuncs           = 100_000
	maxBodyBytes       = 1 << 20
	maxLocals          = 10_000 // of one function
	maxLocalsSum       = 1_000_000
	maxTables          = 16
	maxTableElements   = 1_000_000 // of all tables together, 8 bytes each
	maxFuncTypeEntries = 128       // parameters and results
)

// checkSize refuses what would cost the host too much before the first
// instruction runs, where no deadline and no memory limit holds.
func checkSize(m *wasm.Module) error {
	if len(m.Funcs) > maxFuncs {
		return fmt.Errorf("it has %d functions, more than the limit of %d", len(m.Funcs), maxFuncs)
	}
	if m.Code.LargestBytes > maxBodyBytes {
		return fmt.Errorf("one of its functions has %d bytes, more than the limit of %d", m.Code.LargestBytes, maxBodyBytes)
	}
	for _, t := range m.Types {
		if n := len(t.Params) + len(t.Results); n > maxFuncTypeEntries {
			return fmt.Errorf("one of its function types has %d parameters and results, more than the limit of %d", n, maxFuncTypeEntries)
		}
	}
	if len(m.Memories) != 1 {
		return fmt.Errorf("it has %d memories; it needs one of its own", len(m.Memories))
	}
	if l := m.Memories[0]; l.Is64 || l.Shared {
		return fmt.Errorf("its memory is 64-bit or shared; it needs a plain 32-bit one")
	}
	if len(m.Tables) > maxTables {
		return fmt.Errorf("it has %d tables, more than the limit of %d", len(m.Tables), maxTables)
	}
	var elements uint64
	for _, t := range m.Tables {
		if t.Limits.Is64 {
			return fmt.Errorf("one of its tables is 64-bit; this host runs 32-bit ones only")
		}
		elements += t.Limits.Min // at most 2^32 each, so 16 of them cannot overflow
	}
	if elements > maxTableElements {
		return fmt.Errorf("its tables start with %d elements, more than the limit of %d", elements, maxTableElements)
	}
	return nil
}

// rewrite returns the module as it is compiled. It closes two gaps of the
// engine, which has no limit for table.grow, and looks at the deadline only at
// the head of a loop: every table gets a maximum, and every function that
// calls another starts with an empty loop. The engine is not shown the custom
// sections either, whose debugging formats only add to what it parses.
func rewrite(code []byte, m *wasm.Module) ([]byte, error) {
	out := slices.Clone(code[:m.Sections[0].Offset])
	for _, s := range m.Sections {
		switch s.ID {
		case wasm.SectionCustom:
		case wasm.SectionTable:
			out = appendSection(out, s.ID, cappedTables(m.Tables))
		case wasm.SectionCode:
			bodies, err := checkedBodies(s.Payload)
			if err != nil {
				return nil, err
			}
			out = appendSection(out, s.ID, bodies)
		default:
			out = append(out, code[s.Offset:s.End()]...)
		}
	}
	return out, nil
}

func appendSection(out []byte, id byte, payload []byte) []byte {
	out = binary.AppendUvarint(append(out, id), uint64(len(payload)))
	return append(out, payload...)
}

// cappedTables is the table section with a share of what may still grow as
// each table's maximum.
func cappedTables(tables []wasm.Table) []byte {
	spare := uint64(maxTableElements)
	for _, t := range tables {
		spare -= t.Limits.Min
	}
	out := binary.AppendUvarint(nil, uint64(len(tables)))
	for _, t := range tables {
		most := t.Limits.Min + spare/uint64(len(tables))
		if t.Limits.HasMax {
			most = min(most, t.Limits.Max)
		}
		out = append(out, byte(t.Elem), 1) // 1: a maximum follows
		out = binary.AppendUvarint(out, t.Limits.Min)
		out = binary.AppendUvarint(out, most)
	}
	return out
}

// checkedBodies is the code section with a check of the deadline in every
// function that calls. It refuses functions with too many locals: a few bytes
// can declare 2^32 of them, for each of which the compiler allocates.
func checkedBodies(section []byte) ([]byte, error) {
	const (
		opLoop         = 0x03
		opCall         = 0x10
		opCallIndirect = 0x11
	)
	emptyLoop := []byte{opLoop, 0x40, 0x0b}
	r := leb{section, true}
	n := r.next()
	out := make([]byte, 0, len(section)+len(section)/16)
	out = binary.AppendUvarint(out, n)
	var sum uint64
	for range n {
		body := leb{r.take(r.next()), r.ok}
		all := body.left
		var locals uint64
		for range body.next() {
			locals = min(locals+body.next(), maxLocalsSum+1)
			body.take(1) // the type
			if !body.ok {
				break
			}
		}
		if !body.ok {
			return nil, fmt.Errorf("malformed module: the locals of a function are cut off")
		}
		if sum += locals; locals > maxLocals || sum > maxLocalsSum {
			return nil, fmt.Errorf("a function has %d locals, all together %d; the limits are %d and %d", locals, sum, maxLocals, maxLocalsSum)
		}
		// A byte that looks like a call and is none costs a little time.
		if bytes.IndexByte(body.left, opCall) < 0 && bytes.IndexByte(body.left, opCallIndirect) < 0 || body.left[0] == opLoop {
			out = binary.AppendUvarint(out, uint64(len(all)))
			out = append(out, all...)
			continue
		}
		out = binary.AppendUvarint(out, uint64(len(all)+len(emptyLoop)))
		out = append(out, all[:len(all)-len(body.left)]...)
		out = append(out, emptyLoop...)
		out = append(out, body.left...)
	}
	return out, nil
}

// leb reads numbers until something does not fit, and zeros from then on.
type leb struct {
	left []byte
	ok   bool
}

func (r *leb) next() uint64 {
	v, n := binary.Uvarint(r.left)
	if n <= 0 {
		r.ok, r.left = false, nil
		return 0
	}
	r.left = r.left[n:]
	return v
}

func (r *leb) take(n uint64) []byte {
	if n > uint64(len(r.left)) {
		r.ok, r.left = false, nil
		return nil
	}
	out := r.left[:n]
	r.left = r.left[n:]
	return out
}
