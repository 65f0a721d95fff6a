package wasmtest

import "github.com/stockade-dev/stockade/host/wasm"

// ComponentOptions holds the content of a component.
type ComponentOptions struct {
	Imports, Exports []wasm.Extern // imports and exports; their types are type 0
	Modules          [][]byte      // core modules
	Components       [][]byte      // nested components
}

// Component assembles a component. It has the names and modules; nothing connects them.
func Component(o ComponentOptions) []byte {
	out := ComponentHeader()
	section := func(id byte, n int, items []byte) {
		if n > 0 {
			out = append(out, Section(id, U32(uint32(n)), items)...)
		}
	}
	var imports, exports []byte
	for _, e := range o.Imports {
		desc := append(sortOf(e.Kind), 0)
		if e.Kind == wasm.ExternValue || e.Kind == wasm.ExternType {
			desc = append(desc, 0) // equal to type 0
		}
		imports = join(imports, []byte{0}, Name(e.Name), desc)
	}
	for i, e := range o.Exports {
		exports = join(exports, []byte{0}, Name(e.Name), sortOf(e.Kind), U32(uint32(i)), []byte{0})
	}
	section(10, len(o.Imports), imports)
	for _, m := range o.Modules {
		out = append(out, Section(1, m)...)
	}
	for _, c := range o.Components {
		out = append(out, Section(4, c)...)
	}
	section(11, len(o.Exports), exports)
	return out
}

// ComponentHeader returns the first eight bytes of a component.
func ComponentHeader() []byte { return []byte("\x00asm\x0d\x00\x01\x00") }

// sortOf returns a kind in the binary format.
func sortOf(kind wasm.ExternKind) []byte {
	if kind == wasm.ExternModule {
		return []byte{byte(kind), 0x11}
	}
	return []byte{byte(kind)}
}
