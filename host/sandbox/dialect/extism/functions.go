package extism

import (
	"context"
	"encoding/binary"
	"fmt"
	"runtime/debug"
	"slices"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/stockade-dev/stockade/host/sandbox/abi"
	"github.com/stockade-dev/stockade/host/sandbox/hostmod"
)

// Names of the modules that plugins import.
const (
	envModule  = "extism:host/env"
	userModule = "extism:host/user" // functions that an embedder of Extism adds
)

const (
	i32 = api.ValueTypeI32
	i64 = api.ValueTypeI64
)

// initOffset is the offset of every block that a plugin allocates while it initialises. There
// is no call then, and no memory may outlive it: writes there have no effect, and reads return
// 0. The offset lies beyond the memory of every call.
const initOffset = 3 << 30

type function struct {
	module, name string
	abi.Signature
	run        func(p *plugin, stack []uint64) error // stack holds the parameters, then the result
	initResult uint64                                // result while the plugin initialises, when run is not called
}

// parseSig returns the signature for a short text: a letter for each parameter and, if there
// is a result, ':' and a letter for it. w stands for i32, l for i64.
func parseSig(types string) (s abi.Signature) {
	to := &s.Params
	for _, c := range types {
		switch c {
		case 'w':
			*to = append(*to, i32)
		case 'l':
			*to = append(*to, i64)
		default:
			to = &s.Results
		}
	}
	return s
}

// functions lists all functions that a plugin can import. All offsets are i64.
var functions = slices.Concat(ofExtism, ofHyperMCP)

var ofExtism = []function{
	{envModule, "alloc", parseSig("l:l"), (*plugin).allocate, initOffset},
	{envModule, "free", parseSig("l"), (*plugin).free, 0},
	{envModule, "length", parseSig("l:l"), (*plugin).lengthOf, 0},
	{envModule, "length_unsafe", parseSig("l:l"), (*plugin).lengthOf, 0},
	{envModule, "load_u8", parseSig("l:w"), touches(1, func(b []byte, stack []uint64) { stack[0] = uint64(b[0]) }), 0},
	{envModule, "load_u64", parseSig("l:l"), touches(8, func(b []byte, stack []uint64) { stack[0] = binary.LittleEndian.Uint64(b) }), 0},
	{envModule, "store_u8", parseSig("lw"), touches(1, func(b []byte, stack []uint64) { b[0] = byte(stack[1]) }), 0},
	{envModule, "store_u64", parseSig("ll"), touches(8, func(b []byte, stack []uint64) { binary.LittleEndian.PutUint64(b, stack[1]) }), 0},
	{envModule, "input_load_u8", parseSig("l:w"), (*plugin).inputLoad8, 0},
	{envModule, "input_load_u64", parseSig("l:l"), (*plugin).inputLoad64, 0},
	{envModule, "input_length", parseSig(":l"), gets(func(p *plugin) uint64 { return p.input.length }), 0},
	{envModule, "input_offset", parseSig(":l"), gets(func(p *plugin) uint64 { return p.input.offset }), 0},
	{envModule, "output_set", parseSig("ll"), (*plugin).setOutput, 0},
	{envModule, "output_length", parseSig(":l"), gets(func(p *plugin) uint64 { return p.output.length }), 0},
	{envModule, "output_offset", parseSig(":l"), gets(func(p *plugin) uint64 { return p.output.offset }), 0},
	{envModule, "error_set", parseSig("l"), (*plugin).setError, 0},
	{envModule, "error_get", parseSig(":l"), gets(func(p *plugin) uint64 { return p.errorOffset }), 0},
	{envModule, "reset", parseSig(""), (*plugin).startOver, 0},
	{envModule, "memory_bytes", parseSig(":l"), gets(func(p *plugin) uint64 { return uint64(cap(p.mem)) }), 0},
	{envModule, "get_log_level", parseSig(":w"), gets((*plugin).logLevel), logLevelOff},

	{envModule, "config_get", parseSig("l:l"), asHostCall((*plugin).config), 0},
	{envModule, "var_get", parseSig("l:l"), asHostCall((*plugin).variable), 0},
	{envModule, "var_set", parseSig("ll"), asHostCall((*plugin).setVariable), 0},
	{envModule, "http_request", parseSig("ll:l"), asHostCall((*plugin).request), 0},
	{envModule, "http_status_code", parseSig(":w"), asHostCall((*plugin).statusCode), 0},
	{envModule, "http_headers", parseSig(":l"), asHostCall((*plugin).responseHeaders), 0},
	{envModule, "log_trace", parseSig("l"), logs(0), 0},
	{envModule, "log_debug", parseSig("l"), logs(1), 0},
	{envModule, "log_info", parseSig("l"), logs(2), 0},
	{envModule, "log_warn", parseSig("l"), logs(3), 0},
	{envModule, "log_error", parseSig("l"), logs(4), 0},
}

// asHostCall wraps a function that does more than access the memory. Its calls count as host
// calls, and a panic in it is reported as a fault of the host.
func asHostCall(run func(p *plugin, stack []uint64) error) func(*plugin, []uint64) error {
	return func(p *plugin, stack []uint64) (err error) {
		defer func() {
			if r := recover(); r != nil {
				err = fmt.Errorf("%w: %v\n%s", hostmod.ErrPanic, r, debug.Stack())
			}
		}()
		p.owed += costCall
		if err := p.chargeOwed(); err != nil {
			return err
		}
		if p.Host != nil {
			if err := p.Host.CountHostCall(); err != nil {
				return err
			}
		}
		return run(p, stack)
	}
}

// lookup returns the function of a module with a name; false: there is none.
func lookup(module, name string) (function, bool) {
	for _, f := range functions {
		if f.module == module && f.name == name {
			return f, true
		}
	}
	return function{}, false
}

// instantiate registers the functions in a runtime, for all its plugins. They act on the
// plugin in the context of each call. The error is that of the engine.
func instantiate(ctx context.Context, rt wazero.Runtime) error {
	builders := map[string]wazero.HostModuleBuilder{}
	for _, f := range functions {
		if builders[f.module] == nil {
			builders[f.module] = rt.NewHostModuleBuilder(f.module)
		}
		builders[f.module].NewFunctionBuilder().WithGoModuleFunction(f.goFunc(), f.Params, f.Results).Export(f.name)
	}
	for name, b := range builders {
		if _, err := b.Instantiate(ctx); err != nil {
			return fmt.Errorf("host module %s: %w", name, err)
		}
	}
	return nil
}

func (f function) goFunc() api.GoModuleFunc {
	answers := len(f.Results) > 0
	return func(ctx context.Context, _ api.Module, stack []uint64) {
		p := pluginFrom(ctx)
		if p == nil { // the plugin initialises
			if answers {
				stack[0] = f.initResult
			}
			return
		}
		if err := f.run(p, stack); err != nil {
			if broken, ok := err.(*abi.Fault); ok {
				err = &abi.Fault{What: f.name + ": " + broken.What}
			}
			// The engine turns a panic of a host function into a trap of the guest that wraps
			// the error; there is no other way to end the guest.
			panic(err)
		}
	}
}
