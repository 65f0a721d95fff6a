// Package admit decides whether a module may be compiled, with static checks of its bytes.
// Nothing of the module runs or is compiled before.
//
// A module is admitted if its bytes match its digest, if the host runs its kind, if it
// imports only functions that the host offers to this kind, and if the costs of compiling and
// instantiating it are within limits. The sandbox does not compile the module itself but the
// code that [Check] returns: the same code with limits that the engine lacks (package fuel).
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
	MaxBytes = 64 << 20 // size of the largest module that is read; a larger one is refused
	// LargeBytes is the size of the largest module that is compiled without asking a person. A
	// larger one needs consent, and then has higher limits.
	LargeBytes = 16 << 20
)

// RefusedError is the reason why a module may not run.
type RefusedError struct {
	Module string // name of the module
	Why    string // one sentence, for people and models
}

// Refuse returns a RefusedError whose reason is the formatted sentence.
func Refuse(mod *tool.Module, format string, args ...any) *RefusedError {
	return &RefusedError{mod.Name, fmt.Sprintf(format, args...)}
}

func (e *RefusedError) Error() string { return fmt.Sprintf("module %s: %s", e.Module, e.Why) }

// LargeError refuses a module that is compiled only with a person's consent.
type LargeError struct{ *RefusedError }

func (e *LargeError) Unwrap() error { return e.RefusedError }

// UndescribedError refuses a module that could run, but does not describe its tools.
type UndescribedError struct{ *RefusedError }

func (e *UndescribedError) Unwrap() error { return e.RefusedError }

// KindError refuses a module of a kind that does not run here.
type KindError struct {
	*RefusedError
	Path     string // path or address of the module
	Shape    wasm.Shape
	MainRuns bool // the largest core module of this component is of a kind that runs
}

func (e *KindError) Unwrap() error { return e.RefusedError }

func refuseKind(mod *tool.Module, shape wasm.Shape, mainRuns bool) error {
	return &KindError{Refuse(mod, "it is %s, which does not run here", shape), mod.Path, shape, mainRuns}
}

// Module is a module that has passed the checks.
type Module struct {
	Code     []byte       // the instrumented module, which is compiled
	Decoded  *wasm.Module // the module before its instrumentation
	Kind     wasm.ShapeKind
	Unstable bool // the module imports wasi_unstable instead of preview 1
	// Missing lists the imported functions of WASI preview 1 that the host does not have,
	// each once.
	Missing []preview1.MissingFunction
}

// Dialects holds the dialect of each kind of module that runs.
type Dialects map[wasm.ShapeKind]dialect.Dialect

// Check reads and checks a module. The error is a [RefusedError] if the module may not run;
// any other error means that it could not be read. Check takes about ten times the module's
// size in memory.
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
	decoded, err := wasm.Decode(code)
	if errors.Is(err, wasm.ErrComponent) {
		var c *wasm.Component
		if c, err = wasm.DecodeComponent(code); err == nil {
			_, main := c.LargestModule()
			return nil, refuseKind(mod, wasm.ClassifyComponent(c), dialects[main.Kind] != nil)
		}
	}
	scale := scaleOf(mod)
	if err == nil {
		err = decoded.CheckExtensions(maxBodyBytes * scale)
	}
	if err != nil {
		return refuse("%v", err)
	}
	shape := wasm.Classify(decoded)
	d := dialects[shape.Kind]
	if d == nil {
		return nil, refuseKind(mod, shape, false)
	}
	if err := checkExports(decoded, d); err != nil {
		return refuse("%v", err)
	}
	out := &Module{Decoded: decoded, Kind: shape.Kind}
	for _, imp := range decoded.Imports {
		if err := checkImport(decoded, imp, d); err != nil {
			return refuse("%v", err)
		}
	}
	name, missing, err := WASIImports(decoded)
	if err != nil {
		return refuse("%v", err)
	}
	out.Unstable, out.Missing = name == preview1.UnstableName, missing
	if n := len(decoded.Memories); n != 1 {
		return refuse("it has %d memories; it needs one of its own", n)
	}
	if out.Code, err = instrument(decoded, scale); err == nil {
		return out, nil
	}
	if scale == 1 {
		if _, large := instrument(decoded, largeScale); large == nil {
			return nil, &LargeError{Refuse(mod, "%v; such a module is compiled only if a person asks for it", err)}
		}
	}
	return refuse("%v", err)
}

// checkExports returns an error if an export is wrong for the dialect.
func checkExports(m *wasm.Module, d dialect.Dialect) error {
	if err := d.CheckExports(m); err != nil {
		return err
	}
	if e, ok := m.Export(abi.ExportMemory); !ok || e.Kind != wasm.KindMemory {
		return fmt.Errorf("it exports no memory as %q", abi.ExportMemory)
	}
	return nil
}

var errImport = errors.New("a module may import only functions that the host has for its kind")

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

// isWASI reports whether imp is a function of preview 1 with the right type. Other runtimes
// have functions of the same names with other types.
func isWASI(m *wasm.Module, imp wasm.Import) bool {
	sig, ok := wasiFunctions()[imp.Name]
	return ok && dialect.SameSignature(m.Types[imp.Type], sig)
}

// WASIImports returns the module name under which a module imports WASI ("": it does not), and
// the imported functions that the host does not have, each once. After an error it returns the
// findings so far.
func WASIImports(m *wasm.Module) (name string, out []preview1.MissingFunction, _ error) {
	types := map[string]wasm.FuncType{}
	for _, imp := range m.Imports {
		if !preview1.Offers(imp.Module) || imp.Kind != wasm.KindFunc {
			continue
		}
		if name != "" && name != imp.Module {
			return name, out, fmt.Errorf("it imports from both %s and %s, but a module can use only one of them", name, imp.Module)
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

var wasiFunctions = sync.OnceValue(preview1.Functions)
