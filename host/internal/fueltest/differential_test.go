package fueltest

import (
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/stockade-dev/stockade/host/internal/fueltest/oracle"
	"github.com/stockade-dev/stockade/host/sandbox/meter"
	"github.com/stockade-dev/stockade/host/wasm"
	"github.com/stockade-dev/stockade/host/wasm/fuel"
)

const features = api.CoreFeaturesV2 | experimental.CoreFeaturesTailCall

// observe runs a module of the oracle on the engine, instrumented.
func observe(tb testing.TB, config wazero.RuntimeConfig, module []byte, opts fuel.Options, budget, slice uint64) (oracle.Observed, *meter.Account) {
	tb.Helper()
	ctx := context.Background()
	m, err := wasm.Decode(module)
	if err != nil {
		tb.Fatalf("decode: %v", err)
	}
	code, err := fuel.Rewrite(m, opts)
	if err != nil {
		tb.Fatalf("rewrite: %v", err)
	}
	rt := wazero.NewRuntimeWithConfig(ctx, config.WithCoreFeatures(features))
	defer rt.Close(ctx)
	if err := meter.Instantiate(ctx, rt); err != nil {
		tb.Fatal(err)
	}
	_, err = rt.NewHostModuleBuilder(oracle.HostModule).NewFunctionBuilder().
		WithGoFunction(api.GoFunc(func(_ context.Context, stack []uint64) { stack[0] = uint64(oracle.Host(uint32(stack[0]))) }),
			[]api.ValueType{api.ValueTypeI32}, []api.ValueType{api.ValueTypeI32}).
		Export(oracle.HostName).Instantiate(ctx)
	if err != nil {
		tb.Fatal(err)
	}
	account := meter.New(ctx, budget, slice)
	ctx = meter.With(ctx, account)
	compiled, err := rt.CompileModule(ctx, code)
	if err != nil {
		tb.Fatalf("compile: %v", err)
	}
	got := oracle.Observed{}
	mod, err := rt.InstantiateModule(ctx, compiled, wazero.NewModuleConfig().WithStartFunctions())
	if err != nil {
		got.Err = err
		return got, account
	}
	if err := account.Attach(mod); err != nil {
		tb.Fatal(err)
	}
	if start := mod.ExportedFunction(fuel.ExportStart); start != nil {
		if _, got.Err = start.Call(ctx); got.Err == nil {
			got.Err = account.Settle()
		}
	}
	if got.Err == nil {
		if got.Results, got.Err = mod.ExportedFunction(oracle.RunName).Call(ctx); got.Err == nil {
			got.Err = account.Settle()
		}
	}
	if len(m.Memories) > 0 {
		size := mod.Memory().Size()
		view, ok := mod.Memory().Read(0, size)
		if !ok {
			tb.Fatal("memory cannot be read")
		}
		got.Memory = slices.Clone(view)
	}
	for i := range m.NumGlobals {
		got.Globals = append(got.Globals, mod.(experimental.InternalModule).Global(i).Get())
	}
	return got, account
}

// cost returns the fuel that a run consumes, computed from the counts of the oracle.
func cost(out *oracle.Outcome) (units uint64) {
	for op, n := range out.Ops {
		units += n * uint64(fuel.Cost(wasmOp(op)))
	}
	for variables, n := range out.EntriesByLocals {
		units += n * uint64(variables/fuel.CostFrameLocals)
	}
	units += out.HostCalls * fuel.CostHostCall
	for _, b := range out.Bulk {
		if b.Refused || b.Trapped {
			continue
		}
		switch wasmOp(b.Op) {
		case wasm.OpMemoryGrow:
			units += uint64(b.N) * fuel.CostPage
		case wasm.OpMemoryInit, wasm.OpMemoryCopy, wasm.OpMemoryFill:
			units += uint64(b.N) >> fuel.CostBulkShift
		case wasm.OpTableGrow:
			units += uint64(b.N) * fuel.CostTableElement
		default:
			units += uint64(b.N)
		}
	}
	return units
}

// wasmOp returns the number of an instruction in package wasm.
func wasmOp(key uint32) wasm.Op {
	bases := map[uint32]wasm.Op{0: 0, 0xfc: wasm.OpMisc, 0xfd: wasm.OpVector, 0xfe: wasm.OpAtomic}
	return bases[key>>16] + wasm.Op(key&0xffff)
}

// indirectHost reports whether a module can call the host through a table, which makes
// all indirect calls more expensive.
func indirectHost(m *wasm.Module) bool {
	imports := 0
	for _, i := range m.Imports {
		if i.Kind == wasm.KindFunc {
			imports++
		}
	}
	for _, at := range m.FuncRefs {
		if index, _ := binary.Uvarint(m.Raw[at:]); index < uint64(imports) {
			return true
		}
	}
	return false
}

var engines = []struct {
	name   string
	config wazero.RuntimeConfig
}{
	{"compiler", wazero.NewRuntimeConfigCompiler()},
	{"interpreter", wazero.NewRuntimeConfigInterpreter()},
}

// compare runs a generated module in several ways and returns how it ended.
func compare(tb testing.TB, seed []byte) (ended oracle.Trap, limit oracle.Limit, exact bool) {
	tb.Helper()
	module := oracle.Config{TailCalls: true}.Generate(seed)
	want, err := oracle.Run(module, oracle.Options{MaxSteps: 100_000, MaxDepth: 150, MaxPages: 64, MaxBulk: 10 << 20})
	if err != nil {
		tb.Fatalf("oracle: %v", err)
	}
	m, err := wasm.Decode(module)
	if err != nil {
		tb.Fatalf("decode: %v", err)
	}
	slice := uint64(1)
	if len(seed) > 0 {
		slice += uint64(seed[0]) * 8
	}
	if want.Limit != oracle.LimitNone {
		// The run does not end soon: a small budget or a small depth ends it.
		got, _ := observe(tb, engines[0].config.WithMemoryLimitPages(64), module, fuel.Options{MaxDepth: 100_000}, want.Steps/2, slice)
		if want.Limit == oracle.LimitSteps && !errors.Is(got.Err, meter.ErrExhausted) {
			tb.Errorf("half of %d steps were not too few: %v", want.Steps, got.Err)
		}
		return "", want.Limit, false
	}
	units := cost(want)
	used := uint64(math.MaxUint64)
	for _, opts := range []fuel.Options{{}, {MaxDepth: 1 << 30}} {
		if want.Trap != oracle.TrapNone {
			used = math.MaxUint64 // the amount charged ahead of a trap depends on the places of the checks
		}
		for _, e := range engines {
			got, account := observe(tb, e.config.WithMemoryLimitPages(64), module, opts, math.MaxInt64/8, slice)
			if diff := want.Diff(got); diff != "" {
				tb.Fatalf("%s, depth %d: %s", e.name, opts.MaxDepth, diff)
			}
			if want.Phase == oracle.Instantiating {
				continue
			}
			if account.Used() < want.Steps {
				tb.Errorf("%s: %d units for %d steps", e.name, account.Used(), want.Steps)
			}
			if used == math.MaxUint64 {
				used = account.Used()
			}
			if account.Used() != used {
				tb.Errorf("%s, depth %d: %d units, before %d", e.name, opts.MaxDepth, account.Used(), used)
			}
		}
	}
	if want.Phase == oracle.Instantiating {
		return want.Trap, "", false
	}
	switch {
	case indirectHost(m):
	case want.Trap == oracle.TrapNone:
		exact = true
		if used != units {
			tb.Errorf("%d units, want %d", used, units)
		}
	case used < units || used > units+uint64(want.Depth)*10_000:
		tb.Errorf("%d units after a trap, want %d or a little more", used, units)
	}
	// With enough fuel it ends; with a part of it it does not.
	if want.Trap == oracle.TrapNone && used > 1 {
		got, account := observe(tb, engines[0].config.WithMemoryLimitPages(64), module, fuel.Options{}, used/2, slice)
		if !errors.Is(got.Err, meter.ErrExhausted) || account.Used() < used/2 {
			tb.Errorf("half of %d units were enough: %v", used, got.Err)
		}
	}
	return want.Trap, "", exact
}

// More modules than the fuzzing engine manages, whose coverage makes the engine slow:
//
//	go test -run Instrumented -timeout 0 . -from 10000 -modules 100000
var (
	from    = flag.Uint64("from", 0, "the first generated module")
	modules = flag.Uint64("modules", 1500, "how many generated modules to compare")
)

// An instrumented module gives the results of the plain one in a reference interpreter,
// and consumes exactly the cost of the executed instructions.
func TestInstrumentedModulesDoTheSameAndCountIt(t *testing.T) {
	ends := map[string]int{}
	for n := *from; n < *from+*modules; n++ {
		trap, limit, exact := compare(t, oracle.Seed(n))
		if t.Failed() {
			t.Fatalf("seed %d", n)
		}
		ends[fmt.Sprint(trap, limit)]++
		if exact {
			ends["exact"]++
		}
	}
	t.Log(ends)
	if ends["exact"] < 500 || ends[string(oracle.LimitSteps)] < 5 || ends[string(oracle.TrapMemory)] < 20 {
		t.Errorf("too little was compared: %v", ends)
	}
}

func FuzzInstrumentedModulesDoTheSame(f *testing.F) {
	for n := range uint64(50) {
		f.Add(oracle.Seed(n))
	}
	f.Fuzz(func(t *testing.T, seed []byte) {
		if len(seed) > 16<<10 {
			return
		}
		compare(t, seed)
	})
}
