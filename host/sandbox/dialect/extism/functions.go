package extism

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/stockade-dev/stockade/host/sandbox/abi"
	"github.com/stockade-dev/stockade/host/sandbox/hostmod"
)

// The modules that plugins import.
const (
	env  = "extism:host/env"
	user = "extism:host/user" // of the functions that an embedder adds
)

const (
	i32 = api.ValueTypeI32
	i64 = api.ValueTypeI64
)

// nowhere is the offset of all memory that is given out while a plugin initialises.
// There is no call then, and nothing of it may stay: what is written there is gone, and
// what is read there is 0. It lies beyond the memory of every call.
const nowhere = 3 << 30

// function is one host function.
type function struct {
	module, name string
	abi.Signature
	run func(p *plugin, stack []uint64) error
	// idle is its result when there is no call.
	idle uint64
}

// fn names a type in short: a letter for each parameter, ':', one for the result; of
// i32 it is w, of i64 l.
func fn(types string) (s abi.Signature) {
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

// functions are those that a plugin can import. All offsets are i64.
var functions = slices.Concat(ofExtism, ofHyperMCP)

var ofExtism = []function{
	{env, "alloc", fn("l:l"), (*plugin).allocate, nowhere},
	{env, "free", fn("l"), (*plugin).free, 0},
	{env, "length", fn("l:l"), (*plugin).lengthOf, 0},
	{env, "length_unsafe", fn("l:l"), (*plugin).lengthOf, 0},
	{env, "load_u8", fn("l:w"), (*plugin).load8, 0},
	{env, "load_u64", fn("l:l"), (*plugin).load64, 0},
	{env, "store_u8", fn("lw"), (*plugin).store8, 0},
	{env, "store_u64", fn("ll"), (*plugin).store64, 0},
	{env, "input_load_u8", fn("l:w"), (*plugin).inputLoad8, 0},
	{env, "input_load_u64", fn("l:l"), (*plugin).inputLoad64, 0},
	{env, "input_length", fn(":l"), (*plugin).inputLength, 0},
	{env, "input_offset", fn(":l"), (*plugin).inputOffset, 0},
	{env, "output_set", fn("ll"), (*plugin).setOutput, 0},
	{env, "output_length", fn(":l"), (*plugin).outputLength, 0},
	{env, "output_offset", fn(":l"), (*plugin).outputOffset, 0},
	{env, "error_set", fn("l"), (*plugin).setError, 0},
	{env, "error_get", fn(":l"), (*plugin).getError, 0},
	{env, "reset", fn(""), (*plugin).startOver, 0},
	{env, "memory_bytes", fn(":l"), (*plugin).memoryBytes, 0},
	{env, "get_log_level", fn(":w"), (*plugin).logLevel, off},

	{env, "config_get", fn("l:l"), slow((*plugin).config), 0},
	{env, "var_get", fn("l:l"), slow((*plugin).variable), 0},
	{env, "var_set", fn("ll"), slow((*plugin).setVariable), 0},
	{env, "http_request", fn("ll:l"), slow((*plugin).request), 0},
	{env, "http_status_code", fn(":w"), slow((*plugin).statusCode), 0},
	{env, "http_headers", fn(":l"), slow((*plugin).responseHeaders), 0},
	{env, "log_trace", fn("l"), logs(0), 0},
	{env, "log_debug", fn("l"), logs(1), 0},
	{env, "log_info", fn("l"), logs(2), 0},
	{env, "log_warn", fn("l"), logs(3), 0},
	{env, "log_error", fn("l"), logs(4), 0},
}

// slow makes a function of one that does more than looking at the memory: it counts
// as a call of the host, and a panic in it is told from a trap of the plugin.
func slow(run func(p *plugin, stack []uint64) error) func(*plugin, []uint64) error {
	return func(p *plugin, stack []uint64) (err error) {
		defer func() {
			if r := recover(); r != nil {
				err = fmt.Errorf("%w: %v\n%s", hostmod.ErrPanic, r, debug.Stack())
			}
		}()
		p.owed += costCall
		if err := p.settle(); err != nil {
			return err
		}
		if p.Host != nil {
			if err := p.Host.Count(); err != nil {
				return err
			}
		}
		return run(p, stack)
	}
}

// lookup is the function that a module imports by a name.
func lookup(module, name string) (function, bool) {
	for _, f := range functions {
		if f.module == module && f.name == name {
			return f, true
		}
	}
	return function{}, false
}

// instantiate gives the runtime the functions. The plugins of one runtime share them;
// what a function acts on comes with each call's context.
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
		p := current(ctx)
		if p == nil { // there is no call: it initialises
			if answers {
				stack[0] = f.idle
			}
			return
		}
		if err := f.run(p, stack); err != nil {
			if broken, ok := err.(*abi.Fault); ok {
				err = &abi.Fault{What: f.name + ": " + broken.What}
			}
			// The engine turns a panic of a host function into a trap of the guest that
			// wraps the error; there is no other way to end it.
			panic(err)
		}
	}
}
