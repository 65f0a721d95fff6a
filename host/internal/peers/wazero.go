package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
	"github.com/tetratelabs/wazero/sys"
	"golang.org/x/sys/unix"

	"github.com/stockade-dev/stockade/host/sandbox/meter"
	"github.com/stockade-dev/stockade/host/wasm/fuel"
)

// maxMemory limits the linear memory of a guest, in bytes.
const maxMemory = 512 << 20

// wazeroProgram is a module compiled by wazero.
type wazeroProgram struct {
	runtime wazero.Runtime
	module  wazero.CompiledModule
	metered bool
}

// compileWazero compiles in a runtime of its own. Metered code must be instrumented.
func compileWazero(code []byte, config wazero.RuntimeConfig, metered bool) (*wazeroProgram, error) {
	p, err := newWazero(config, metered)
	if err != nil {
		return nil, err
	}
	return p, p.compile(code)
}

// newWazero returns a runtime with the host's modules.
func newWazero(config wazero.RuntimeConfig, metered bool) (*wazeroProgram, error) {
	ctx := context.Background()
	p := &wazeroProgram{runtime: wazero.NewRuntimeWithConfig(ctx, config.WithMemoryLimitPages(maxMemory>>16)), metered: metered}
	if _, err := wasi_snapshot_preview1.Instantiate(ctx, p.runtime); err != nil {
		return nil, err
	}
	if metered {
		if err := meter.Instantiate(ctx, p.runtime); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func (p *wazeroProgram) compile(code []byte) (err error) {
	p.module, err = p.runtime.CompileModule(experimental.WithCompilationWorkers(context.Background(), 1), code)
	return err
}

func (p *wazeroProgram) close() error { return p.runtime.Close(context.Background()) }

// instance is an instance of a module that has not run yet.
type instance struct {
	api.Module
	ctx     context.Context // for calls
	account *meter.Account  // nil if not metered
}

func (p *wazeroProgram) instantiate(ctx context.Context, config wazero.ModuleConfig) (*instance, error) {
	allocator := experimental.MemoryAllocatorFunc(func(_, _ uint64) experimental.LinearMemory { return reserve() })
	mod, err := p.runtime.InstantiateModule(experimental.WithMemoryAllocator(ctx, allocator), p.module,
		config.WithName("").WithStartFunctions())
	if err != nil {
		return nil, err
	}
	inst := &instance{Module: mod, ctx: ctx}
	if p.metered {
		if err := inst.attach(); err != nil {
			return nil, errors.Join(err, mod.Close(ctx))
		}
	}
	return inst, nil
}

func (i *instance) attach() error {
	i.account = meter.New(i.ctx, math.MaxUint64, 0)
	i.ctx = meter.With(i.ctx, i.account)
	if err := i.account.Attach(i.Module); err != nil {
		return err
	}
	if i.ExportedFunction(fuel.ExportStart) == nil {
		return nil
	}
	return i.call(fuel.ExportStart)
}

func (i *instance) call(name string) error {
	f := i.ExportedFunction(name)
	if f == nil {
		return fmt.Errorf("there is no function %s", name)
	}
	_, err := f.Call(i.ctx)
	if exit, ok := errors.AsType[*sys.ExitError](err); ok && exit.ExitCode() == 0 {
		return nil
	}
	return err
}

// run runs the program once, with wazero's clock and random numbers, which are the same
// in each run.
func (p *wazeroProgram) run(arg string) (outcome, error) {
	// The context can end; otherwise wazero would not check it.
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var stdout, stderr bytes.Buffer
	inst, err := p.instantiate(ctx, wazero.NewModuleConfig().WithArgs("guest", arg).WithStdout(&stdout).WithStderr(&stderr))
	if err != nil {
		return outcome{}, err
	}
	defer inst.Close(ctx)
	var o outcome
	if o.CPU, err = cpuTime(func() error { return inst.call("_start") }); err != nil {
		return outcome{}, fmt.Errorf("%w\n%s", err, &stderr)
	}
	o.output = stdout.String()
	if inst.account != nil {
		o.Fuel = inst.account.Used()
	}
	return o, nil
}

// linearMemory is reserved in advance, like in the sandbox, so that growing neither
// copies nor leaves garbage.
type linearMemory []byte

func reserve() *linearMemory {
	region, err := unix.Mmap(-1, 0, maxMemory, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE|unix.MAP_NORESERVE)
	if err != nil {
		panic(fmt.Errorf("reserve memory: %w", err))
	}
	return (*linearMemory)(&region)
}

func (m *linearMemory) Reallocate(size uint64) []byte {
	if size > uint64(len(*m)) {
		return nil
	}
	return (*m)[:size]
}

func (m *linearMemory) Free() {
	if *m != nil {
		_ = unix.Munmap(*m)
		*m = nil
	}
}

// outcome is the result of one run of a workload.
type outcome struct {
	CPU    time.Duration // of _start
	Fuel   uint64        `json:",omitempty"`
	output string
}
