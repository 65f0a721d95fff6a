package fuel

import (
	"encoding/binary"

	"github.com/stockade-dev/stockade/host/wasm"
)

// references are the functions that code names with ref.func, each once, as the
// elements of a table that no code of the module can name. The engine makes a new
// reference whenever it executes a ref.func, and keeps all of them as long as the
// instance lives; those of a table it makes once.
type references struct {
	table uint32 // its index
	funcs []uint32
	at    map[uint32]uint32 // the place of a function in funcs
}

// place returns where in the table a function is.
func (r *references) place(function uint32) uint32 {
	at, ok := r.at[function]
	if !ok {
		at = uint32(len(r.funcs))
		r.at[function] = at
		r.funcs = append(r.funcs, function)
	}
	return at
}

// tables returns the table as an entry of its section, and how many there are: none
// without references.
func (r *references) tables() (entry []byte, n int) {
	if len(r.funcs) == 0 {
		return nil, 0
	}
	size := binary.AppendUvarint(nil, uint64(len(r.funcs)))
	entry = append([]byte{byte(wasm.FuncRef), 1}, size...) // 1: a maximum follows
	return append(entry, size...), 1
}

// segments returns the segment that fills the table; moved returns the new index of a function.
func (r *references) segments(moved func(uint32) uint32) (entry []byte, n int) {
	if len(r.funcs) == 0 {
		return nil, 0
	}
	entry = binary.AppendUvarint([]byte{2}, uint64(r.table))             // 2: the table is named
	entry = append(entry, byte(wasm.OpI32Const), 0, byte(wasm.OpEnd), 0) // 0: of indices
	entry = binary.AppendUvarint(entry, uint64(len(r.funcs)))
	for _, f := range r.funcs {
		entry = binary.AppendUvarint(entry, uint64(moved(f)))
	}
	return entry, 1
}
