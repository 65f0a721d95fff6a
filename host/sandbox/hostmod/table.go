package hostmod

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/stockade-dev/stockade/host/redact"
	"github.com/stockade-dev/stockade/host/sandbox/abi"
	"github.com/stockade-dev/stockade/host/sandbox/meter"
	"github.com/stockade-dev/stockade/host/wasm/fuel"
)

const (
	i32 = api.ValueTypeI32
	i64 = api.ValueTypeI64
)

// Function is one host function.
type Function struct {
	Interface, Name string
	abi.Signature

	run func(*guest) error
}

// Functions lists all host functions, interface by interface.
var Functions = []Function{
	{"config", "get", params(i32, i32, i32), replies(configResult, configGet)},
	{"digest", "sha256", params(i32, i32, i32), replies(digestResult, digestSHA256)},
	{"digest", "sha1", params(i32, i32, i32), replies(digestResult, digestSHA1)},
	{"exec", "run", params(i32, i32, i32, i32, i32, i32, i32, i32, i32), replies(execResult, execRun)},
	{"http", "fetch", params(i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32), replies(httpResult, httpFetch)},
	{"kv", "get", params(i32, i32, i32), withStore("the key", kvGet)},
	{"kv", "set", params(i32, i32, i32, i32, i32, i64, i32), withStore("the key", kvSet)},
	{"kv", "delete", params(i32, i32, i32), withStore("the key", kvDelete)},
	{"kv", "keys", params(i32, i32, i32, i32), withStore("the prefix", kvKeys)},
	{"log", "log", params(i32, i32, i32), logLog},
	{"progress", "report", params(i64, i32, i64, i32, i32), progressReport},
	{"progress", "cancelled", abi.Signature{Results: []api.ValueType{i32}}, progressCancelled},
	{"search", "list", params(i32, i32, i32), withFiles(searchListResult, searchList)},
	{"search", "stat", params(i32, i32, i32), withFiles(searchStatResult, searchStat)},
	{"search", "begin", params(i32, i32, i32, i32, i32, i32, i32, i32, i32), withFiles(searchBeginResult, searchBegin)},
	{"search", "collect", params(i32), withFiles(searchCollectResult, searchCollect)},
	{"secrets", "placeholder", params(i32, i32, i32), replies(secretsResult, secretsPlaceholder)},
}

func params(types ...api.ValueType) abi.Signature { return abi.Signature{Params: types} }

// ErrHostCalls is wrapped by the error that ends a guest with too many calls into the host.
var ErrHostCalls = errors.New("host call limit reached")

// ErrPanic is wrapped by the error of a guest after a panic in a host function.
var ErrPanic = errors.New("host function panicked")

// Instantiate registers the host modules in a runtime, for all its guests. The functions act
// in the World of each call's context.
func Instantiate(ctx context.Context, rt wazero.Runtime) error {
	builders := map[string]wazero.HostModuleBuilder{}
	for _, f := range Functions {
		name := abi.ImportModule(f.Interface)
		if builders[name] == nil {
			builders[name] = rt.NewHostModuleBuilder(name)
		}
		builders[name].NewFunctionBuilder().
			WithGoModuleFunction(f.goFunc(), f.Params, f.Results).
			Export(f.Name)
	}
	for name, b := range builders {
		if _, err := b.Instantiate(ctx); err != nil {
			return fmt.Errorf("host module %s: %w", name, err)
		}
	}
	return nil
}

// guest is one call from a guest into a host function.
type guest struct {
	ctx     context.Context
	world   *World // nil while the module initialises
	account *meter.Account
	mod     api.Module
	mem     abi.Memory
	stack   []uint64
	err     error // first error of option or of writing a result
}

// option decodes the discriminant of an optional parameter, at stack[i]; true: there is a
// value. what names the parameter in the error, which is kept in g.err.
func (g *guest) option(what string, i int) bool {
	d := g.u32(i)
	if d > 1 && g.err == nil {
		g.err = &abi.Fault{What: fmt.Sprintf("%s: discriminant %d", what, d)}
	}
	return d == 1
}

// redactor returns the redactor of the call. Nil, while the module initialises, is fine:
// nothing is reported then.
func (g *guest) redactor() *redact.Redactor {
	if g.world == nil {
		return nil
	}
	return g.world.Redact
}

// u32 decodes parameter i. The upper half of a 32-bit value on the stack is undefined.
func (g *guest) u32(i int) uint32 { return api.DecodeU32(g.stack[i]) }

func (f Function) goFunc() api.GoModuleFunc {
	return func(ctx context.Context, mod api.Module, stack []uint64) {
		stack = stack[:max(len(f.Params), len(f.Results))]
		if err := f.call(&guest{ctx: ctx, world: worldFrom(ctx), account: meter.From(ctx), mod: mod, stack: stack}); err != nil {
			// The engine turns a panic of a host function into a trap of the guest that wraps
			// the error; there is no other way to end the guest.
			panic(fmt.Errorf("%s.%s: %w", f.Interface, f.Name, err))
		}
	}
}

// call runs the function and charges the guest. A panic becomes an error that wraps ErrPanic:
// it is a fault of the host, and must not look like a trap of the guest.
func (f Function) call(g *guest) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %v\n%s", ErrPanic, r, debug.Stack())
		}
	}()
	if err := g.enter(); err != nil {
		return err
	}
	err = f.run(g)
	g.account.Charge(costCall + g.mem.BytesCopied()>>fuel.CostBulkShift)
	return err
}

// costCall is the cost of a host call in units of fuel, in addition to the bytes that it
// moves. It matches the time of the cheapest function.
const costCall = 500

type noHostCallsKey struct{}

// withoutHostCalls returns a context in which no host function works, for calls of the
// guest's allocator. Host functions allocate their results, so an allocator that calls a host
// function would recurse on the host's stack. Its overflow would end the process. The
// canonical ABI forbids it as well.
func withoutHostCalls(ctx context.Context) context.Context {
	return context.WithValue(ctx, noHostCallsKey{}, true)
}

func (g *guest) enter() (err error) {
	if g.ctx.Value(noHostCallsKey{}) != nil {
		return &abi.Fault{What: "the allocator calls a host function"}
	}
	// Not every guest checks its counter between two host calls.
	if err := g.account.Check(); err != nil {
		return err
	}
	if g.world != nil {
		if err := g.world.CountHostCall(); err != nil {
			return err
		}
	}
	g.mem, err = abi.MemoryOf(g.mod)
	return err
}
