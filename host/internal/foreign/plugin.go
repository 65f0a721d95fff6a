package foreign

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"

	extism "github.com/extism/go-sdk"

	"github.com/stockade-dev/stockade/host/wasm"
)

// Answer is the result of a plugin on Extism's own host.
type Answer struct {
	Code   uint32
	Output []byte
	Err    string // empty: none
}

// Failure returns the plugin's error, or nil.
func (a Answer) Failure() error {
	if a.Code == 0 && a.Err == "" {
		return nil
	}
	return fmt.Errorf("code %d: %s", a.Code, a.Err)
}

// Oracle is a plugin on Extism's SDK for Go, compiled.
type Oracle struct{ compiled *extism.CompiledPlugin }

// NewOracle compiles a plugin. The plugin sees dir under the same name, with the access
// in r.Files.
func NewOracle(ctx context.Context, code []byte, r Run, dir string) (*Oracle, error) {
	config := map[string]string{}
	for k, v := range r.Config {
		config[k] = withWorkspace(v, dir)
	}
	manifest := extism.Manifest{Wasm: []extism.Wasm{extism.WasmData{Data: code}}, Config: config, AllowedHosts: r.Hosts}
	switch r.Files {
	case "read":
		manifest.AllowedPaths = map[string]string{"ro:" + dir: dir}
	case "write":
		manifest.AllowedPaths = map[string]string{dir: dir}
	}
	c, err := extism.NewCompiledPlugin(ctx, manifest, extism.PluginConfig{EnableWasi: true, EnableHttpResponseHeaders: true}, stubFunctions(code))
	return &Oracle{c}, err
}

// stubFunctions returns functions of hyper-mcp that a plugin imports, which do nothing:
// with Extism's SDK the embedding program has to provide them.
func stubFunctions(code []byte) (functions []extism.HostFunction) {
	m, err := wasm.Decode(code)
	if err != nil || wasm.Classify(m).Kind != wasm.HyperMCPv1 && wasm.Classify(m).Kind != wasm.HyperMCPv2 {
		return nil
	}
	types := func(of []wasm.ValType) (out []extism.ValueType) {
		for _, t := range of {
			out = append(out, extism.ValueType(t))
		}
		return out
	}
	for _, i := range m.Imports {
		if t := m.Types[i.Type]; i.Module == "extism:host/user" && i.Kind == wasm.KindFunc {
			functions = append(functions, extism.NewHostFunctionWithStack(i.Name, func(_ context.Context, _ *extism.CurrentPlugin, stack []uint64) { clear(stack) },
				types(t.Params), types(t.Results)))
		}
	}
	return functions
}

// Close frees the compiled code.
func (o *Oracle) Close(ctx context.Context) error { return o.compiled.Close(ctx) }

// Call calls a plugin in a fresh instance.
func (o *Oracle) Call(ctx context.Context, function string, input []byte) (a Answer, err error) {
	p, err := o.Instance(ctx)
	if err != nil {
		return a, err
	}
	code, out, err := p.CallWithContext(ctx, function, input)
	a = Answer{Code: code, Output: append([]byte{}, out...)}
	if err != nil {
		a.Err = err.Error()
	}
	return a, errors.Join(p.Close(ctx))
}

// Instance returns an instance, which keeps its state from call to call.
func (o *Oracle) Instance(ctx context.Context) (*extism.Plugin, error) {
	return o.compiled.Instance(ctx, extism.PluginInstanceConfig{})
}

var redirectOnce sync.Once

// RedirectRequests sends the requests of the SDK, which uses the default client, to a
// server.
func RedirectRequests(server string) {
	redirectOnce.Do(func() { http.DefaultClient = &http.Client{Transport: redirector(server)} })
}
