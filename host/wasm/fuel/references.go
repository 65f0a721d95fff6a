package fuel

import (
	"encoding/binary"
	"slices"

	"github.com/stockade-dev/stockade/host/wasm"
)

// references collects the functions that code names with ref.func, each once, as the elements of
// a table that no code of the module can name. The engine makes a new reference at each ref.func,
// and keeps it as long as the instance lives, but it makes the references of a table only once.
type references struct {
	table        uint32              // index of the table
	newFuncIndex func(uint32) uint32 // returns the index in the result of a function of the module
	// typed is set if the module may need references of a function type, which the elements of the
	// table are not. Then its ref.func instructions stay, and there is no table.
	typed bool
	funcs []uint32          // the functions in the order of the table, by their indices in the module
	at    map[uint32]uint32 // position of each function in funcs
}

func newReferences(m *wasm.Module, moved func(uint32) uint32) *references {
	r := &references{table: uint32(m.Count[wasm.KindTable]), newFuncIndex: moved, at: map[uint32]uint32{}}
	for _, t := range m.Types {
		for _, v := range slices.Concat(t.Params, t.Results) {
			r.typed = r.typed || v == wasm.Ref || v == wasm.RefNull
		}
	}
	return r
}

// appendTo appends code that pushes a reference to a function of the module.
func (r *references) appendTo(out []byte, function uint32) []byte {
	if r.typed {
		return binary.AppendUvarint(append(out, byte(wasm.OpRefFunc)), uint64(r.newFuncIndex(function)))
	}
	at, ok := r.at[function]
	if !ok {
		at = uint32(len(r.funcs))
		r.at[function] = at
		r.funcs = append(r.funcs, function)
	}
	out = wasm.AppendSigned(append(out, byte(wasm.OpI32Const)), int64(at))
	return binary.AppendUvarint(append(out, byte(wasm.OpTableGet)), uint64(r.table))
}

// tables returns the table as an entry of the table section. n is the number of entries: 1, or 0
// without references.
func (r *references) tables() (entry []byte, n int) {
	if len(r.funcs) == 0 {
		return nil, 0
	}
	size := binary.AppendUvarint(nil, uint64(len(r.funcs)))
	entry = append([]byte{byte(wasm.FuncRef), 1}, size...) // 1: a maximum follows
	return append(entry, size...), 1
}

// segments returns the element segment that fills the table, as an entry of the element section,
// and the number of entries: 0 without references.
func (r *references) segments() (entry []byte, n int) {
	if len(r.funcs) == 0 {
		return nil, 0
	}
	entry = binary.AppendUvarint([]byte{2}, uint64(r.table))             // 2: the table is named
	entry = append(entry, byte(wasm.OpI32Const), 0, byte(wasm.OpEnd), 0) // 0: of indices
	entry = binary.AppendUvarint(entry, uint64(len(r.funcs)))
	for _, f := range r.funcs {
		entry = binary.AppendUvarint(entry, uint64(r.newFuncIndex(f)))
	}
	return entry, 1
}
