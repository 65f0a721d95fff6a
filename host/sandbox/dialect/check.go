package dialect

import (
	"fmt"
	"slices"

	"github.com/tetratelabs/wazero/api"

	"github.com/stockade-dev/stockade/host/sandbox/abi"
	"github.com/stockade-dev/stockade/host/wasm"
)

// CheckCalledExport returns an error unless an export that the host calls is a function of the
// module itself with the wanted type.
func CheckCalledExport(m *wasm.Module, e wasm.Export, want abi.Signature) error {
	sig, ok := m.ExportedFunc(e.Name)
	if !ok || !SameSignature(sig, want) {
		return fmt.Errorf("it exports %s with another signature than the ABI's", e.Name)
	}
	// The host would call an imported function as if no guest had called it.
	if int64(e.Index) < int64(m.ImportedFuncs()) {
		return fmt.Errorf("it exports an imported function as %s", e.Name)
	}
	return nil
}

// SameSignature reports whether a type of a module equals one of ours.
func SameSignature(t wasm.FuncType, want abi.Signature) bool {
	same := func(v wasm.ValType, want api.ValueType) bool { return byte(v) == want }
	return slices.EqualFunc(t.Params, want.Params, same) && slices.EqualFunc(t.Results, want.Results, same)
}
