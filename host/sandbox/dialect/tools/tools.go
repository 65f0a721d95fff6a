// Package tools is the dialect of the modules that were built for this program:
// those that export the interface stockade:tool/tools.
package tools

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/stockade-dev/stockade/host/sandbox/abi"
	"github.com/stockade-dev/stockade/host/sandbox/dialect"
	"github.com/stockade-dev/stockade/host/sandbox/hostmod"
	"github.com/stockade-dev/stockade/host/tool"
	"github.com/stockade-dev/stockade/host/wasm"
)

// Dialect is the [dialect.Dialect] of native modules.
type Dialect struct{}

// Check implements [dialect.Dialect].
func (Dialect) Check(m *wasm.Module) error {
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
	for _, e := range m.Exports {
		if want, ok := called(e.Name); ok {
			if err := dialect.CheckCalled(m, e, want); err != nil {
				return err
			}
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

// Import implements [dialect.Dialect].
func (Dialect) Import(module, name string) (abi.Signature, bool) {
	for _, f := range hostmod.Functions {
		if module == abi.ImportModule(f.Interface) && name == f.Name {
			return f.Signature, true
		}
	}
	return abi.Signature{}, false
}

// Provide implements [dialect.Dialect].
func (Dialect) Provide(ctx context.Context, rt wazero.Runtime) error {
	return hostmod.Instantiate(ctx, rt)
}

// Starts implements [dialect.Dialect].
func (Dialect) Starts() []string { return []string{abi.ExportInitialize} }

// Describe implements [dialect.Dialect]: it calls tools#describe.
func (Dialect) Describe(ctx context.Context, g *dialect.Guest, _ *tool.Module) ([]byte, error) {
	out, err := g.Invoke(ctx, abi.ExportDescribe)
	if err != nil {
		return nil, err
	}
	mem, err := abi.MemoryOf(g)
	if err != nil {
		return nil, err
	}
	text, err := abi.LiftDescribe(mem, api.DecodeU32(out[0]), tool.MaxManifestBytes)
	return []byte(text), err
}

// Call implements [dialect.Dialect]: it lowers the arguments of tools#call, runs it
// and lifts its result.
func (Dialect) Call(ctx context.Context, g *dialect.Guest, call tool.Call) (*abi.Output, *abi.ToolError, error) {
	defer g.Account.Rest() // wherever it ends: lowering runs the guest too
	alloc, err := abi.AllocatorOf(g, abi.ExportRealloc)
	if err != nil {
		return nil, nil, err
	}
	var params []uint64
	lower := func(s string) {
		if err != nil {
			return
		}
		var ptr uint32
		ptr, err = alloc.Lower(ctx, g, []byte(s), 1)
		params = append(params, api.EncodeU32(ptr), api.EncodeU32(uint32(len(s))))
	}
	lower(call.ID)
	lower(call.Cwd)
	var remaining uint64
	if deadline, ok := ctx.Deadline(); ok {
		remaining = uint64(max(time.Until(deadline).Milliseconds(), 0))
	}
	params = append(params, 1, remaining) // deadline-ms: some
	params = append(params, 0, 0, 0)      // locale: none
	lower(call.Tool)
	lower(string(call.Args))
	if err != nil {
		return nil, nil, err
	}
	out, err := g.Invoke(ctx, abi.ExportCall, params...)
	if err != nil {
		return nil, nil, err
	}
	mem, err := abi.MemoryOf(g)
	if err != nil {
		return nil, nil, err
	}
	// The post-return function is not called: the instance ends here.
	return abi.LiftCall(mem, api.DecodeU32(out[0]), g.Redact)
}
