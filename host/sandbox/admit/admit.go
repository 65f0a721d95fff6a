// Package admit says whether a module may be compiled: static checks on its bytes,
// before anything of it runs or is compiled.
//
// A module is admitted if its bytes are those that its digest names, if it is of a
// kind that the host runs and imports nothing but what the host offers to it, and if
// it is within limits on what compiling and instantiating it costs. What is
// compiled then is not the module but what [Check] returns: the same code with the
// limits that the engine lacks (package fuel).
package admit

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"

	"github.com/tetratelabs/wazero/api"

	"github.com/stockade-dev/stockade/host/sandbox/abi"
	"github.com/stockade-dev/stockade/host/sandbox/dialect"
	"github.com/stockade-dev/stockade/host/sandbox/wasi/preview1"
	"github.com/stockade-dev/stockade/host/tool"
	"github.com/stockade-dev/stockade/host/wasm"
)

const (
	// MaxBytes is the size of the largest module that is read.
	MaxBytes = 64 << 20
	// LargeBytes is the size from which on a module is compiled only if a person
	// has asked for it. Some limits are higher for it.
	LargeBytes = 16 << 20
)

// RefusedError says why a module may not run.
type RefusedError struct {
	Module string
	Why    string
}

// Refuse says in one sentence why a module may not run.
func Refuse(mod *tool.Module, format string, args ...any) *RefusedError {
	return &RefusedError{mod.Name, fmt.Sprintf(format, args...)}
}

func (e *RefusedError) Error() string { return fmt.Sprintf("module %s: %s", e.Module, e.Why) }

// LargeError refuses a module that is compiled only if a person asks for it.
type LargeError struct{ *RefusedError }

func (e *LargeError) Unwrap() error { return e.RefusedError }

// UndescribedError refuses a module that runs, and of which nobody knows what its tools
// are.
type UndescribedError struct{ *RefusedError }

func (e *UndescribedError) Unwrap() error { return e.RefusedError }

// KindError refuses a module of a kind that does not run here.
type KindError struct {
	*RefusedError
	Path     string // of the module; may be an address
	Shape    wasm.Shape
	MainRuns bool // of a component: its largest core module is of a kind that runs
}

func (e *KindError) Unwrap() error { return e.RefusedError }

func refuseKind(mod *tool.Module, shape wasm.Shape, mainRuns bool) error {
	return &KindError{Refuse(mod, "it is %s, which does not run here", shape), mod.Path, shape, mainRuns}
}

// Module is one that has passed the checks.
type Module struct {
	Code    []byte // what is compiled: the instrumented module
	Decoded *wasm.Module
	Kind    wasm.ShapeKind
	// Unstable says that it imports wasi_unstable, and not preview 1.
	Unstable bool
	// Missing are functions of WASI preview 1 that it imports and that there are not,
	// each once.
	Missing []preview1.MissingFunction
}

// Dialects are those of the kinds of module that run.
type Dialects map[wasm.ShapeKind]dialect.Dialect

// Check reads a module and checks it. A module that may not run is a
// [RefusedError]; any other error says why it cannot be read. It takes some ten
// times the module's size in memory.
func Check(mod *tool.Module, dialects Dialects) (*Module, error) {
	refuse := func(format string, args ...any) (*Module, error) { return nil, Refuse(mod, format, args...) }
	if mod.Bytes > MaxBytes {
		return refuse("%d bytes, more than the limit of %d", mod.Bytes, MaxBytes)
	}
	code, err := mod.Read()
	if err != nil {
		return nil, fmt.Errorf("read module %s: %w", mod.Name, err)
	}
	if sum := sha256.Sum256(code); hex.EncodeToString(sum[:]) != mod.Digest {
		return refuse("its bytes have changed: digest %.12x, want %.12s", sum, mod.Digest)
	}
	facts, err := wasm.Decode(code)
	if errors.Is(err, wasm.ErrComponent) {
		var c *wasm.Component
		if c, err = wasm.DecodeComponent(code); err == nil {
			_, main := c.LargestModule()
			return nil, refuseKind(mod, wasm.ClassifyComponent(c), dialects[main.Kind] != nil)
		}
	}
	scale := scaleOf(mod)
	if err == nil {
		err = facts.CheckExtensions(maxBodyBytes * scale)
	}
	if err != nil {
		return refuse("%v", err)
	}
	shape := wasm.Classify(facts)
	d := dialects[shape.Kind]
	if d == nil {
		return nil, refuseKind(mod, shape, false)
	}
	if err := checkExports(facts, d); err != nil {
		return refuse("%v", err)
	}
	out := &Module{Decoded: facts, Kind: shape.Kind}
	for _, imp := range facts.Imports {
		if err := checkImport(facts, imp, d); err != nil {
			return refuse("%v", err)
		}
	}
	name, missed, err := WASIImports(facts)
	if err != nil {
		return refuse("%v", err)
	}
	out.Unstable, out.Missing = name == preview1.UnstableName, missed
	if n := len(facts.Memories); n != 1 {
		return refuse("it has %d memories; it needs one of its own", n)
	}
	if out.Code, err = instrument(facts, scale); err == nil {
		return out, nil
	}
	if scale == 1 {
		if _, large := instrument(facts, largeScale); large == nil {
			return nil, &LargeError{Refuse(mod, "%v; such a module is compiled only if a person asks for it", err)}
		}
	}
	return refuse("%v", err)
}

// checkExports holds the exports of a module against its dialect.
func checkExports(m *wasm.Module, d dialect.Dialect) error {
	if err := d.CheckExports(m); err != nil {
		return err
	}
	if e, ok := m.Export(abi.ExportMemory); !ok || e.Kind != wasm.KindMemory {
		return fmt.Errorf("it exports no memory as %q", abi.ExportMemory)
	}
	return nil
}

var errImport = errors.New("a module may import functions only, and those that the host has for its kind")

func checkImport(m *wasm.Module, imp wasm.Import, d dialect.Dialect) error {
	name := imp.Module + "." + imp.Name
	if imp.Kind != wasm.KindFunc {
		return fmt.Errorf("it imports %.200q, which is a %s; %w", name, imp.Kind, errImport)
	}
	want, ok := d.ImportSignature(imp.Module, imp.Name)
	if imp.Module == preview1.ModuleName || d.AllowsMissingWASI() && preview1.Offers(imp.Module) {
		want, ok = wasiFunctions()[imp.Name]
		if d.AllowsMissingWASI() && !isWASI(m, imp) {
			return missingImport(m, imp).Check()
		}
	}
	if !ok {
		return fmt.Errorf("it imports %.200q, which this host does not have; %w", name, errImport)
	}
	if sig := m.Types[imp.Type]; !dialect.SameSignature(sig, want) {
		return fmt.Errorf("it imports %q as %s, which is another signature than the host's", name, sig)
	}
	return nil
}

// isWASI reports whether preview 1 has a function that is imported. Other runtimes have
// some of the same name and another type.
func isWASI(m *wasm.Module, imp wasm.Import) bool {
	sig, ok := wasiFunctions()[imp.Name]
	return ok && dialect.SameSignature(m.Types[imp.Type], sig)
}

// WASIImports is the name under which a module imports WASI, and what it imports of it that
// there is not, each once; with an error, what was found before that.
func WASIImports(m *wasm.Module) (name string, out []preview1.MissingFunction, _ error) {
	types := map[string]wasm.FuncType{}
	for _, imp := range m.Imports {
		if !preview1.Offers(imp.Module) || imp.Kind != wasm.KindFunc {
			continue
		}
		if name != "" && name != imp.Module {
			return name, out, fmt.Errorf("it imports from %s and from %s, of which a module can have one", name, imp.Module)
		}
		name = imp.Module
		t, seen := types[imp.Name]
		if types[imp.Name] = m.Types[imp.Type]; seen && t.String() != m.Types[imp.Type].String() {
			return name, out, fmt.Errorf("it imports %.200q as two functions of different types", imp.Module+"."+imp.Name)
		}
		if !seen && !isWASI(m, imp) {
			out = append(out, missingImport(m, imp))
		}
	}
	return name, out, nil
}

// missingImport is an import as one that WASI does not have.
func missingImport(m *wasm.Module, imp wasm.Import) preview1.MissingFunction {
	types := func(from []wasm.ValType) (out []api.ValueType) {
		for _, t := range from {
			out = append(out, api.ValueType(t))
		}
		return out
	}
	t := m.Types[imp.Type]
	return preview1.MissingFunction{Name: imp.Name, Params: types(t.Params), Results: types(t.Results)}
}

// wasiFunctions are the functions of WASI, by name.
var wasiFunctions = sync.OnceValue(preview1.Functions)
