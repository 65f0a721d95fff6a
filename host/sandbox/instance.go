package sandbox

import (
	"bytes"
	"context"
	"io"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/sandbox/dialect"
	"github.com/stockade-dev/stockade/host/sandbox/hostmod"
	"github.com/stockade-dev/stockade/host/sandbox/meter"
	"github.com/stockade-dev/stockade/host/sandbox/wasi"
	"github.com/stockade-dev/stockade/host/sandbox/wasi/preview1"
	"github.com/stockade-dev/stockade/host/stage"
	"github.com/stockade-dev/stockade/host/wasm/fuel"
)

// instance is the guest of one call. One goroutine uses it at a time.
type instance struct {
	mod     api.Module
	memory  *memory
	slot    *slot           // nil: the instance serves this call only
	files   *wasi.FS        // granted files; closed with world
	world   *preview1.World // access of the guest through WASI
	output  *cappedBuffer   // stdout and stderr together
	account *meter.Account  // fuel of the guest; attached to mod when that exists

	returned bool // the guest returned from the call normally
}

func (s *Sandbox) newInstance(ctx context.Context, grant policy.Grant, limits policy.Limits) *instance {
	account := meter.New(ctx, limits.Fuel, 0, grant.Budgets()...)
	account.UseTurns(s.turns)
	return &instance{output: &cappedBuffer{limit: limits.LogBytes, clean: s.opts.Redact.Stream()}, account: account}
}

// open makes a guest that sees the granted mounts and nothing else: no environment, no
// arguments, no network, an empty standard input. ctx limits its whole life, including its
// sleeps. set receives its changes; nil: it may not write. The guest begins with the module's
// snapshot or, if there is none, is initialised now. If open fails, it returns an incomplete
// instance, which end accepts.
func (s *Sandbox) open(ctx context.Context, c *compiledModule, grant policy.Grant, limits policy.Limits, set *stage.Set) (inst *instance, err error) {
	inst = s.newInstance(ctx, grant, limits)
	snap, size := c.snap, c.minBytes
	if snap != nil {
		size = uint64(len(snap.image.Bytes()))
	}
	if size > limits.MemoryBytes {
		return inst, &memoryError{size, limits.MemoryBytes, policy.MemoryKey}
	}
	defer func() {
		if err != nil {
			inst.close()
		}
	}()
	if snap == nil {
		// The world is opened after the initialisation, so that start functions reach nothing.
		if err := s.instantiate(ctx, c, inst, limits.MemoryBytes); err != nil {
			return inst, err
		}
		inst.world = inst.initWorld(nil, func() {})
		err := inst.initialize(ctx, c.dialect.Starts(inst.mod))
		_ = inst.world.Close()
		if err != nil {
			return inst, err
		}
	}
	if err := inst.openWorld(grant, set); err != nil || snap == nil {
		return inst, err
	}
	sl := c.pool.get(limits.MemoryBytes)
	if sl == nil {
		if sl, err = s.newSlot(ctx, c, snap, limits.MemoryBytes); err != nil {
			return inst, err
		}
	}
	if err := inst.begin(sl); err != nil {
		return inst, err
	}
	if err := inst.account.Attach(inst.mod); err != nil {
		return inst, &hostError{err}
	}
	return inst, nil
}

// openWorld opens the granted files. Writes go to set; nil: no file is writable.
func (i *instance) openWorld(grant policy.Grant, set *stage.Set) error {
	opts := &wasi.Options{Stage: set, ReadableSpecial: grant.OpenedSecrets()}
	opts.Limits.Charge = i.account.Charge
	fs, err := wasi.New(grant.Mounts(), grant.Masked(), opts)
	if err != nil {
		return &hostError{err}
	}
	i.files = fs
	i.world = preview1.New(&preview1.Options{
		FS:          fs,
		Stdout:      i.output,
		Stderr:      i.output,
		Charge:      i.account.Charge,
		MustEnd:     i.account.Check,
		WithoutTurn: i.account.WithoutTurn,
	})
	return nil
}

// instantiate gives inst a new module, not run yet, with at most limit bytes of memory.
func (s *Sandbox) instantiate(ctx context.Context, c *compiledModule, inst *instance, limit uint64) (err error) {
	if inst.memory, err = newMemory(limit, nil, s.memoryBudget); err != nil {
		return &hostError{err}
	}
	if err := inst.memory.begin(c.minBytes); err != nil {
		return err // the engine does not expect an allocation to fail
	}
	if inst.mod, err = instantiateModule(ctx, c, inst.memory); err != nil {
		return err
	}
	if err := inst.account.Attach(inst.mod); err != nil {
		return &hostError{err}
	}
	return nil
}

// initWorld returns the world of a guest that initialises: no files, and a clock that stands
// still. onClock is called when the guest reads the monotonic clock. A nil random is the
// system's source of randomness.
func (i *instance) initWorld(random io.Reader, onClock func()) *preview1.World {
	return preview1.New(&preview1.Options{
		Random: random,
		Wall:   func() time.Time { return initTime },
		Monotonic: func() time.Duration {
			onClock()
			return time.Second
		},
		Charge:      i.account.Charge,
		MustEnd:     i.account.Check,
		WithoutTurn: i.account.WithoutTurn,
	})
}

// initialize runs the start function and the given exports, if the module has them. They run
// outside any call, so that host functions refuse them.
func (i *instance) initialize(ctx context.Context, starts []dialect.Start) error {
	ctx = i.context(hostmod.WithWorld(ctx, nil))
	defer i.account.ReleaseTurn()
	for _, start := range append([]dialect.Start{{Export: fuel.ExportStart}}, starts...) {
		if f := i.mod.ExportedFunction(start.Export); f != nil {
			if _, err := f.Call(ctx, start.Params...); err != nil {
				return err
			}
			if err := i.account.Settle(); err != nil {
				return err
			}
		}
	}
	return nil
}

func instantiateModule(ctx context.Context, c *compiledModule, m *memory) (_ api.Module, err error) {
	defer recoverPanic(&err)
	config := wazero.NewModuleConfig().
		WithName("").
		WithStartFunctions() // none: initialize runs the start functions, metered like all code
	return c.runtime.InstantiateModule(experimental.WithMemoryAllocator(ctx, m), c.module, config)
}

// close frees all resources. It accepts an incomplete instance, and may be called twice.
func (i *instance) close() {
	i.account.Close()
	if i.world != nil {
		_ = i.world.Close()
	}
	if i.mod != nil {
		_ = i.mod.Close(context.Background()) // its error is only about files that the guest left open
	}
	if i.memory != nil {
		i.memory.Free()
	}
}

func (i *instance) context(ctx context.Context) context.Context {
	return preview1.WithWorld(meter.With(ctx, i.account), i.world)
}

// guest returns an instance in the form for its dialect. A nil host means that there is no
// call: host functions refuse.
func (s *Sandbox) guest(i *instance, c *compiledModule, host *hostmod.World) *dialect.Guest {
	g := &dialect.Guest{
		Module: i.mod, Manifest: c.About, WASI: i.world, Host: host, Account: i.account,
		Limits: policy.DefaultLimits(), ReserveHostBytes: i.memory.reserveHostBytes, Log: i.output,
	}
	if host != nil {
		g.Redact, g.Limits = host.Redact, host.Grant.Limits()
	}
	return g
}

// cappedBuffer stores the first limit bytes of all output, without secrets. It drops the rest.
type cappedBuffer struct {
	limit int
	clean func(piece string, last bool) string // removes secrets
	buf   bytes.Buffer
}

func (c *cappedBuffer) Write(p []byte) (int, error) {
	if c.buf.Len() < c.limit { // the rest would be dropped
		c.add(c.clean(string(p), false))
	}
	return len(p), nil
}

func (c *cappedBuffer) add(text string) {
	c.buf.WriteString(text[:min(c.limit-c.buf.Len(), len(text))])
}

// text returns the stored output. Nothing may be written afterwards.
func (c *cappedBuffer) text() string {
	c.add(c.clean("", true))
	return toValidUTF8(c.buf.Bytes())
}
