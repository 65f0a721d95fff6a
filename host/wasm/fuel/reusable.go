package fuel

import (
	"fmt"

	"github.com/stockade-dev/stockade/host/wasm"
)

// WhyNotReusable returns the reason, for people, why a module does not get [ExportReusable];
// empty: it does. Dead code counts here, but not in [Rewrite]. The error is that of a
// malformed function.
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
				return fmt.Sprintf("function %d has a %s, which changes state other than memory and globals", b.Func, name), nil
			}
		}
	}
	return "", bodies.Err()
}

// unrestorableState describes, for people, the first state of a module that a host could not
// restore: an import other than a function, or a mutable global that is not a number. It is
// empty if there is none.
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
			return fmt.Sprintf("its mutable global %d is not a number", g.Index)
		}
	}
	return ""
}
