package sandbox

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"runtime"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/experimental/sysfs"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/sandbox/abi"
	"github.com/stockade-dev/stockade/host/sandbox/hostmod"
	"github.com/stockade-dev/stockade/host/sandbox/meter"
	"github.com/stockade-dev/stockade/host/sandbox/wasi"
	"github.com/stockade-dev/stockade/host/wasm/fuel"
)

// instance is one guest, for one call. It is used from one goroutine.
type instance struct {
	mod     api.Module
	fs      *wasi.FS
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
	inst := &instance{output: &capped{limit: limits.LogBytes, account: account}, account: account}
	// The start functions act for no call, not even for one that led here.
	ctx = meter.With(hostmod.WithCall(ctx, nil), inst.account)
	defer func() {
		if err != nil {
			inst.close()
		}
	}()
	if inst.fs, err = wasi.New(grant.Mounts(), grant.Masked(), wasi.Limits{Fuel: inst.account.Charge}); err != nil {
		return nil, &hostError{err}
	}
	if inst.memory, err = newMemory(limits.MemoryBytes, s.memory); err != nil {
		return nil, &hostError{err}
	}
	config := wazero.NewModuleConfig().
		WithName("").
		WithStartFunctions(). // _initialize is called below, under the same eyes as everything else
		WithStdout(inst.output).
		WithStderr(inst.output).
		WithSysWalltime().
		WithSysNanotime().
		WithNanosleep(func(ns int64) { sleep(ctx, time.Duration(ns)) }).
		WithOsyield(func() { runtime.Gosched() }).
		WithRandSource(&metered{inst.account, rand.Reader}).
		WithFSConfig(wazero.NewFSConfig().(sysfs.FSConfig).WithSysFSMount(inst.fs, "/"))
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
	if i.fs != nil {
		_ = i.fs.Close()
	}
}

// invoke calls an export whose result is one pointer.
func (i *instance) invoke(ctx context.Context, export string, params ...uint64) (uint32, error) {
	f := i.mod.ExportedFunction(export)
	if f == nil {
		return 0, &abi.Fault{What: fmt.Sprintf("%s is not exported", export)}
	}
	out, err := f.Call(meter.With(ctx, i.account), params...)
	if err == nil {
		err = i.account.Settle()
	}
	if err != nil {
		return 0, err
	}
	return api.DecodeU32(out[0]), nil
}

// sleep ends the guest when ctx ends: there is nobody left to sleep for.
func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
		panic(ctx.Err())
	}
}

// metered makes the guest pay for random bytes, which it can ask for by the
// gigabyte, and looks at the deadline in between.
type metered struct {
	account *meter.Account
	from    io.Reader
}

func (m *metered) Read(p []byte) (int, error) {
	const piece = 64 << 10
	if err := m.account.Check(); err != nil {
		panic(err) // ends the guest
	}
	n, err := m.from.Read(p[:min(len(p), piece)])
	m.account.Charge(uint64(n)) // about a nanosecond for each byte
	return n, err
}

// capped keeps the first bytes that are written to it and drops the rest. A
// guest can have it called a million times in one go.
type capped struct {
	limit   int
	account *meter.Account
	buf     bytes.Buffer
}

const costWrite = 50 // units of fuel

func (c *capped) Write(p []byte) (int, error) {
	if err := c.account.Check(); err != nil {
		panic(err) // ends the guest
	}
	c.account.Charge(costWrite + uint64(len(p))>>fuel.CostBulkShift)
	if room := c.limit - c.buf.Len(); room > 0 {
		c.buf.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}
