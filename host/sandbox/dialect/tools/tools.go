// Package tools is the dialect of native modules, which export the interface
// stockade:tool/tools.
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

// ABI implements [dialect.Dialect].
func (Dialect) ABI() string { return abi.ManifestABI }

// AllowsMissingWASI implements [dialect.Dialect].
func (Dialect) AllowsMissingWASI() bool { return false }

// CheckExports implements [dialect.Dialect].
func (Dialect) CheckExports(m *wasm.Module) error {
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
		if want, ok := calledSignature(e.Name); ok {
			if err := dialect.CheckCalledExport(m, e, want); err != nil {
				return err
			}
		}
	}
	return nil
}

// calledSignature returns the wanted type of an export that the host calls; false: the host
// does not call it.
func calledSignature(name string) (abi.Signature, bool) {
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

// ImportSignature implements [dialect.Dialect].
func (Dialect) ImportSignature(module, name string) (abi.Signature, bool) {
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
func (Dialect) Starts(api.Module) []dialect.Start {
	return []dialect.Start{{Export: abi.ExportInitialize}}
}

// Describe implements [dialect.Dialect]: it calls tools#describe.
func (Dialect) Describe(ctx context.Context, g *dialect.Guest, _ string, _ *wasm.Module) ([]byte, []string, error) {
	out, err := g.Invoke(ctx, abi.ExportDescribe)
	if err != nil {
		return nil, nil, err
	}
	mem, err := abi.MemoryOf(g)
	if err != nil {
		return nil, nil, err
	}
	text, err := abi.LiftDescribe(mem, api.DecodeU32(out[0]), tool.MaxManifestBytes)
	return []byte(text), nil, err
}

// Call implements [dialect.Dialect]: it lowers the arguments of tools#call, runs it
// and lifts its result.
func (Dialect) Call(ctx context.Context, g *dialect.Guest, call tool.Call) (*abi.Output, *abi.ToolError, error) {
	defer g.Account.ReleaseTurn() // on every way out: lowering runs the guest, too
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

// grantedModules lists the host modules with which a module can do more than compute, and the
// capability for each. The other host modules give nothing: log, progress, and config, which
// returns values from the module's own manifest.
//
// File access is not listed, because imports do not reveal it: the standard library of Go
// imports path_open of WASI into every module. A call without granted files finds none there.
var grantedModules = []struct {
	host string
	asks func(tool.Capabilities) bool
}{
	{"exec", func(c tool.Capabilities) bool { return c.Exec != "" }},
	{"http", func(c tool.Capabilities) bool { return c.Network != tool.NetworkNone }},
	{"kv", func(c tool.Capabilities) bool { return c.Store }},
	{"search", func(c tool.Capabilities) bool { return c.Files != tool.FilesNone }},
	{"secrets", func(c tool.Capabilities) bool { return len(c.Secrets) > 0 }},
}

// CheckManifest implements [dialect.Dialect]. A module may import a host module of
// grantedModules only if one of its tools asks for the capability. So the capabilities that a
// person is shown are all that the module can use.
func (Dialect) CheckManifest(manifest tool.Manifest, m *wasm.Module) error {
	for name := range manifest.Config {
		if !tool.ValidName(name) {
			return fmt.Errorf("its manifest declares the name %.80q in config, which is not 1 to 64 letters, digits, '_' or '-'", name)
		}
	}
	if manifest.Inferred || slices.ContainsFunc(manifest.Tools, func(s tool.Spec) bool { return s.Run != nil }) {
		return errors.New("its manifest has run or inferred, which are only for commands and plugins")
	}
	for _, means := range grantedModules {
		imports := slices.ContainsFunc(m.Imports, func(i wasm.Import) bool { return i.Module == abi.ImportModule(means.host) })
		if imports && !slices.ContainsFunc(manifest.Tools, func(s tool.Spec) bool { return means.asks(s.Capabilities) }) {
			return fmt.Errorf("it imports %s, which none of its tools asks for in the manifest", means.host)
		}
	}
	return nil
}
