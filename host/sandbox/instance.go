package sandbox

import (
	"bytes"
	"context"
	"fmt"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/sandbox/abi"
	"github.com/stockade-dev/stockade/host/sandbox/hostmod"
	"github.com/stockade-dev/stockade/host/sandbox/meter"
	"github.com/stockade-dev/stockade/host/sandbox/wasi"
	"github.com/stockade-dev/stockade/host/sandbox/wasi/preview1"
	"github.com/stockade-dev/stockade/host/wasm/fuel"
)

// instance is one guest, for one call. It is used from one goroutine.
type instance struct {
	mod     api.Module
	world   *preview1.World // what it reaches through WASI
	memory  *memory
	output  *capped        // stdout and stderr together
	account *meter.Account // of fuel; connected to mod once that exists
}

// instantiate makes a guest that sees the mounts and nothing else: no
// environment, no arguments, no network, an empty standard input. ctx bounds
// its whole life, its sleeps included.
func (s *Sandbox) instantiate(ctx context.Context, c *compiled, grant policy.Grant, limits policy.Limits) (_ *instance, err error) {
	if c.minBytes > limits.MemoryBytes {
		return nil, errMemory
	}
	account := meter.New(ctx, limits.Fuel, 0, grant.Budgets()...)
	inst := &instance{output: &capped{limit: limits.LogBytes}, account: account}
	defer func() {
		if err != nil {
			inst.close()
		}
	}()
	fs, err := wasi.New(grant.Mounts(), grant.Masked(), wasi.Limits{Fuel: inst.account.Charge})
	if err != nil {
		return nil, &hostError{err}
	}
	inst.world = preview1.New(&preview1.Options{
		FS:     fs,
		Stdout: inst.output,
		Stderr: inst.output,
		Charge: inst.account.Charge,
		Check:  inst.account.Check,
	})
	// The start functions act for no call, not even for one that led here.
	ctx = inst.context(hostmod.WithCall(ctx, nil))
	if inst.memory, err = newMemory(limits.MemoryBytes, s.memory); err != nil {
		return nil, &hostError{err}
	}
	config := wazero.NewModuleConfig().
		WithName("").
		WithStartFunctions() // _initialize is called below, under the same eyes as everything else
	if inst.mod, err = instantiateModule(experimental.WithMemoryAllocator(ctx, inst.memory), c, config); err != nil {
		return inst, err
	}
	if err = inst.account.Attach(inst.mod); err != nil {
		return inst, &hostError{err}
	}
	for _, name := range []string{fuel.ExportStart, abi.ExportInitialize} {
		if start := inst.mod.ExportedFunction(name); start != nil {
			if _, err = start.Call(ctx); err == nil {
				err = inst.account.Settle()
			}
			if err != nil {
				return inst, err
			}
		}
	}
	return inst, nil
}

func instantiateModule(ctx context.Context, c *compiled, config wazero.ModuleConfig) (_ api.Module, err error) {
	defer contain(&err)
	return c.runtime.InstantiateModule(ctx, c.module, config)
}

// close frees everything. It is safe on a half-made instance, and twice.
func (i *instance) close() {
	i.account.Close()
	if i.mod != nil {
		_ = i.mod.Close(context.Background()) // reports only what the guest left open
	}
	if i.memory != nil {
		i.memory.Free()
	}
	if i.world != nil {
		_ = i.world.Close()
	}
}

// context returns a context for calls into the instance.
func (i *instance) context(ctx context.Context) context.Context {
	return preview1.With(meter.With(ctx, i.account), i.world)
}

// invoke calls an export whose result is one pointer.
func (i *instance) invoke(ctx context.Context, export string, params ...uint64) (uint32, error) {
	f := i.mod.ExportedFunction(export)
	if f == nil {
		return 0, &abi.Fault{What: fmt.Sprintf("%s is not exported", export)}
	}
	out, err := f.Call(i.context(ctx), params...)
	if err == nil {
		err = i.account.Settle()
	}
	if err != nil {
		return 0, err
	}
	return api.DecodeU32(out[0]), nil
}

// capped keeps the first bytes that are written to it and drops the rest.
type capped struct {
	limit int
	buf   bytes.Buffer
}

func (c *capped) Write(p []byte) (int, error) {
	if room := c.limit - c.buf.Len(); room > 0 {
		c.buf.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}
