package sandbox

import (
	"fmt"

	"github.com/stockade-dev/stockade/host/wasm"
)

// Limits on what is compiled, beyond those of package wasm. They keep what
// compiling and instantiating take within seconds and a few hundred MiB.
const (
	maxFuncs           = 100_000
	maxTables          = 16
	maxTableElements   = 1_000_000 // of all tables together, 8 bytes each
	maxFuncTypeEntries = 128       // parameters and results

	maxSegments  = 10_000 // of data and of elements, after merging
	maxBodyBytes = 1 << 20
	maxLocals    = 10_000 // of one function
	maxLocalsSum = 1_000_000
)

// maxDepth bounds how deep calls are nested, in units of about 16 bytes of the
// engine's stack: 16 MiB.
const maxDepth = 1 << 20

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

// inspector refuses functions that would take the compiler too long.
type inspector struct {
	locals uint64 // of all functions so far
}

func newInspector() *inspector { return &inspector{} }

func (i *inspector) function(b *wasm.Body) error {
	if i.locals += uint64(b.Locals); b.Locals > maxLocals || i.locals > maxLocalsSum {
		return fmt.Errorf("a function has %d locals, all together %d; the limits are %d and %d", b.Locals, i.locals, maxLocals, maxLocalsSum)
	}
	return nil
}
