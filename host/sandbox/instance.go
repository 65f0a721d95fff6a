package sandbox

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/experimental/sysfs"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/sandbox/abi"
	"github.com/stockade-dev/stockade/host/sandbox/hostmod"
	"github.com/stockade-dev/stockade/host/sandbox/wasi"
)

// instance is one guest, for one call. It is used from one goroutine.
type instance struct {
	mod    api.Module
	fs     *wasi.FS
	memory *memory
	output *capped // stdout and stderr together
}

// instantiate makes a guest that sees the mounts and nothing else: no
// environment, no arguments, no network, an empty standard input. ctx bounds
// its whole life, its sleeps included.
func (s *Sandbox) instantiate(ctx context.Context, c *compiled, mounts []policy.Mount, masked []string, limits policy.Limits) (_ *instance, err error) {
	if c.minBytes > limits.MemoryBytes {
		return nil, errMemory
	}
	ctx = hostmod.WithCall(ctx, nil) // the start functions act for no call, not even for one that led here
	inst := &instance{output: &capped{limit: limits.LogBytes}}
	defer func() {
		if err != nil {
			inst.close()
		}
	}()
	if inst.fs, err = wasi.New(mounts, masked, wasi.Limits{}); err != nil {
		return nil, &hostError{err}
	}
	if inst.memory, err = newMemory(limits.MemoryBytes); err != nil {
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
		WithRandSource(rand.Reader).
		WithFSConfig(wazero.NewFSConfig().(sysfs.FSConfig).WithSysFSMount(inst.fs, "/"))
	if inst.mod, err = instantiateModule(experimental.WithMemoryAllocator(ctx, inst.memory), c, config); err != nil {
		return inst, err
	}
	if init := inst.mod.ExportedFunction(abi.ExportInitialize); init != nil {
		if _, err = init.Call(ctx); err != nil {
			return inst, err
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
	out, err := f.Call(ctx, params...)
	if err != nil {
		return 0, err
	}
	return api.DecodeU32(out[0]), nil
}

func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
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
