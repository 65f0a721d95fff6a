// Package admit says whether a module may be compiled: static checks on its bytes,
// before anything of it runs or is compiled.
//
// A module is admitted if its bytes are those that its digest names, if it is a
// module of the native ABI that imports nothing but what the host offers, and if
// it is within limits on what compiling and instantiating it costs. What is
// compiled then is not the module but what [Check] returns: the same code with the
// limits that the engine lacks (package fuel).
package admit

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/tetratelabs/wazero/api"

	"github.com/stockade-dev/stockade/host/sandbox/abi"
	"github.com/stockade-dev/stockade/host/sandbox/hostmod"
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

// Module is one that has passed the checks.
type Module struct {
	Code  []byte // what is compiled: the instrumented module
	Facts *wasm.Module
}

// Check reads a module and checks it. A module that may not run is a
// [RefusedError]; any other error says why it cannot be read. It takes some ten
// times the module's size in memory.
func Check(mod *tool.Module) (*Module, error) {
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
	if err != nil {
		return refuse("%v", err)
	}
	if err := checkShape(facts); err != nil {
		return refuse("%v", err)
	}
	for _, imp := range facts.Imports {
		if err := checkImport(facts, imp); err != nil {
			return refuse("%v", err)
		}
	}
	if err := checkMemory(facts); err != nil {
		return refuse("%v", err)
	}
	code, err = instrument(facts)
	if err != nil {
		return refuse("%v", err)
	}
	return &Module{Code: code, Facts: facts}, nil
}

func checkShape(m *wasm.Module) error {
	shape := wasm.Classify(m)
	if shape.Kind != wasm.Native {
		return fmt.Errorf("%s; only modules of the native ABI (%s) run so far", shape, abi.ManifestABI)
	}
	for name := range abi.Exports {
		if _, ok := m.Export(name); !ok {
			return fmt.Errorf("it does not export %s", name)
		}
	}
	if !slices.ContainsFunc(abi.ExportRealloc, func(name string) bool { _, ok := m.Export(name); return ok }) {
		return fmt.Errorf("it exports none of %s, which the host needs to pass arguments", strings.Join(abi.ExportRealloc, ", "))
	}
	_, starts := m.Export("_start")
	if _, initializes := m.Export(abi.ExportInitialize); starts && !initializes {
		return errors.New("it is built as a command, which runs once and ends; build it as a reactor (in Go: -buildmode=c-shared)")
	}
	if e, ok := m.Export(abi.ExportMemory); !ok || e.Kind != wasm.KindMemory {
		return fmt.Errorf("it exports no memory as %q", abi.ExportMemory)
	}
	for _, e := range m.Exports {
		want, ok := called(e.Name)
		if !ok {
			continue
		}
		sig, ok := m.ExportedFunc(e.Name)
		if !ok || !is(sig, want) {
			return fmt.Errorf("it exports %s with another signature than the ABI's", e.Name)
		}
		// A host function in that place would run as if no guest had called it.
		if int64(e.Index) < int64(m.ImportedFuncs()) {
			return fmt.Errorf("it exports an imported function as %s", e.Name)
		}
	}
	return nil
}

// called returns the signature of an export that the host calls.
func called(name string) (abi.Signature, bool) {
	if sig, ok := abi.Exports[name]; ok {
		return sig, true
	}
	switch {
	case slices.Contains(abi.ExportRealloc, name), slices.Contains(abi.ImportRealloc, name):
		return abi.Realloc, true
	case name == abi.ExportInitialize, name == abi.ExportWarm:
		return abi.Signature{}, true
	}
	return abi.Signature{}, false
}

var errImport = errors.New("a module may import functions of the WIT world and of WASI preview 1 only")

func checkImport(m *wasm.Module, imp wasm.Import) error {
	name := imp.Module + "." + imp.Name
	if imp.Kind != wasm.KindFunc {
		return fmt.Errorf("it imports %.200q, which is a %s; %w", name, imp.Kind, errImport)
	}
	var want abi.Signature
	ok := false
	if imp.Module == preview1.ModuleName {
		want, ok = wasiFunctions()[imp.Name]
	}
	for _, f := range hostmod.Functions {
		if imp.Module == abi.ImportModule(f.Interface) && imp.Name == f.Name {
			want, ok = f.Signature, true
		}
	}
	if !ok {
		return fmt.Errorf("it imports %.200q, which this host does not have; %w", name, errImport)
	}
	if sig := m.Types[imp.Type]; !is(sig, want) {
		return fmt.Errorf("it imports %q as %s, which is another signature than the host's", name, sig)
	}
	return nil
}

// wasiFunctions are the functions of WASI, by name.
var wasiFunctions = sync.OnceValue(preview1.Functions)

// is compares a type of the module with one of ours.
func is(t wasm.FuncType, want abi.Signature) bool {
	same := func(v wasm.ValType, want api.ValueType) bool { return byte(v) == want }
	return slices.EqualFunc(t.Params, want.Params, same) && slices.EqualFunc(t.Results, want.Results, same)
}
