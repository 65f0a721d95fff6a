package sandbox

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tetratelabs/wazero/api"

	"github.com/stockade-dev/stockade/host/sandbox/abi"
	"github.com/stockade-dev/stockade/host/sandbox/hostmod"
	"github.com/stockade-dev/stockade/host/tool"
	"github.com/stockade-dev/stockade/host/wasm"
)

// MaxModuleBytes is the size of the largest module that is read.
const MaxModuleBytes = 64 << 20

// RefusedError says why a module may not run.
type RefusedError struct {
	Module string
	Why    string
}

func (e *RefusedError) Error() string { return fmt.Sprintf("module %s: %s", e.Module, e.Why) }

const wasiModule = "wasi_snapshot_preview1"

// admitted is a module whose bytes have passed the static checks.
type admitted struct {
	code     []byte
	facts    *wasm.Module
	minBytes uint64 // of linear memory
}

// admit reads a module and checks, without compiling anything, that its bytes
// are the ones that its digest names, that they are a module of the native ABI
// and that it imports nothing but what the host offers.
func admit(mod *tool.Module) (*admitted, error) {
	refuse := func(format string, args ...any) (*admitted, error) {
		return nil, &RefusedError{mod.Name, fmt.Sprintf(format, args...)}
	}
	if mod.Bytes > MaxModuleBytes {
		return refuse("%d bytes, more than the limit of %d", mod.Bytes, MaxModuleBytes)
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
	if len(facts.Memories) != 1 {
		return refuse("it has %d memories; it needs one of its own", len(facts.Memories))
	}
	return &admitted{code: code, facts: facts, minBytes: facts.Memories[0].Min * wasmPage}, nil
}

const wasmPage = 64 << 10

func checkShape(m *wasm.Module) error {
	shape := wasm.Classify(m)
	if shape.Kind != wasm.Native {
		return fmt.Errorf("%s; only modules of the native ABI (%s) run so far", shape, abi.ManifestABI)
	}
	for name, want := range abi.Exports {
		sig, ok := m.ExportedFunc(name)
		if !ok {
			return fmt.Errorf("it does not export %s", name)
		}
		if !slices.Equal(sig.Params, wasmTypes(want.Params)) || !slices.Equal(sig.Results, wasmTypes(want.Results)) {
			return fmt.Errorf("it exports %s with another signature than the ABI's", name)
		}
	}
	for _, names := range [][]string{abi.ExportRealloc, {abi.ExportMemory}} {
		if !slices.ContainsFunc(names, func(name string) bool { _, ok := m.Export(name); return ok }) {
			return fmt.Errorf("it exports none of %s", strings.Join(names, ", "))
		}
	}
	return nil
}

var errImport = errors.New("a module may import functions of the WIT world and of WASI preview 1 only")

func checkImport(m *wasm.Module, imp wasm.Import) error {
	if imp.Kind != wasm.KindFunc {
		return fmt.Errorf("it imports %s.%s, which is not a function; %w", imp.Module, imp.Name, errImport)
	}
	if imp.Module == wasiModule {
		return nil // the engine refuses unknown names and signatures
	}
	sig := m.Types[imp.Type]
	for _, f := range hostmod.Functions {
		if imp.Module == abi.ImportModule(f.Interface) && imp.Name == f.Name {
			if !slices.Equal(sig.Params, wasmTypes(f.Params)) || !slices.Equal(sig.Results, wasmTypes(f.Results)) {
				return fmt.Errorf("it imports %s.%s with another signature than the ABI's", imp.Module, imp.Name)
			}
			return nil
		}
	}
	return fmt.Errorf("it imports %.100s.%.100s, which this host does not have; %w", imp.Module, imp.Name, errImport)
}

func wasmTypes(types []api.ValueType) []wasm.ValType {
	out := make([]wasm.ValType, len(types))
	for i, t := range types {
		out[i] = wasm.ValType(t)
	}
	return out
}
