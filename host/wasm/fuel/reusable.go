package fuel

import (
	"fmt"

	"github.com/stockade-dev/stockade/host/wasm"
)

// WhyNotReusable says what keeps [ExportReusable] from a module, for people. It is
// empty if it finds nothing.
func WhyNotReusable(m *wasm.Module) (string, error) {
	if why := unrestorableState(m); why != "" {
		return why, nil
	}
	bodies := m.Bodies()
	for range m.Funcs {
		b, ok := bodies.Next()
		if !ok {
			break
		}
		for _, in := range b.Instrs {
			if name := hiddenStateOps[in.Op]; name != "" {
				return fmt.Sprintf("function %d has a %s, which changes what is neither memory nor a global", b.Func, name), nil
			}
		}
	}
	return "", bodies.Err()
}

// unrestorableState says what of all that the module can change is another's, or of
// a type that a host cannot get at; empty for nothing.
func unrestorableState(m *wasm.Module) string {
	for _, i := range m.Imports {
		if i.Kind != wasm.KindFunc {
			return fmt.Sprintf("it imports %q, which is not a function", i.Name)
		}
	}
	for _, g := range m.MutableGlobals {
		switch g.Type {
		case wasm.I32, wasm.I64, wasm.F32, wasm.F64:
		default:
			return fmt.Sprintf("its global %d changes and is not a number", g.Index)
		}
	}
	return ""
}
