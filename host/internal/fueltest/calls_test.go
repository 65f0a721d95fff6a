package fueltest

import (
	"bytes"
	"context"
	"errors"
	"math"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/stockade-dev/stockade/host/sandbox/meter"
	"github.com/stockade-dev/stockade/host/wasm"
	"github.com/stockade-dev/stockade/host/wasm/fuel"
	w "github.com/stockade-dev/stockade/host/wasm/wasmtest"
)

// An exception ends calls without running the code at their end. A guest that catches
// some exceptions and continues must be charged for all calls, and be at the same depth
// as before.
func TestCaughtExceptions(t *testing.T) {
	b := w.New()
	tag := b.Tag(nil)
	throws := b.Func("", nil, nil, nil, []byte{0x08, byte(tag)})
	calls := b.Func("", nil, nil, nil, w.Call(throws), w.I32Const(1), w.Drop())
	const times = 1000
	b.Func("run", nil, nil, []w.ValType{w.I32}, w.Loop(
		// try_table without a result and with one catch_all to the block around it
		w.Block([]byte{0x1f, 0x40, 1, 2, 0}, w.Call(calls), w.End()),
		w.I32Const(1), w.If(bytes.Repeat(append(w.I32Const(1), w.Drop()...), 20)),
		w.LocalGet(0), w.I32Const(1), w.I32Add(), w.LocalTee(0), w.I32Const(times), w.I32LtU(), w.BrIf(0)))
	m, err := wasm.Decode(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	// Deep enough for these three calls, but not for their sum.
	code, err := fuel.Rewrite(m, fuel.Options{MaxDepth: 1000})
	if err != nil {
		t.Fatal(err)
	}
	for name, config := range engineConfigs {
		run, account := startMetered(t, config, code, math.MaxInt64)
		if err := run(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		// Two calls, the exception, and the instructions around them.
		turn := uint64(2*fuel.Cost(wasm.OpCall) + fuel.Cost(wasm.OpThrow) + fuel.Cost(wasm.OpTryTable) + 7 + 2 + 40)
		if used, want := account.Used(), times*turn; used < want || used > want+times {
			t.Errorf("%s: %d units for %d exceptions, want about %d", name, used, times, want)
		}
	}
}

// Most calls of a recursive function end at once, and do not check the counter. They are
// charged nevertheless, and the others are stopped.
func TestRecursion(t *testing.T) {
	const deepest = 50
	module := func(n int32) *wasm.Module {
		b := w.New()
		i32 := []w.ValType{w.I32}
		f := b.NextFunc()
		b.Func("", i32, nil, nil, w.Block(
			w.LocalGet(0), []byte{0x45}, w.BrIf(0), // i32.eqz
			w.LocalGet(0), w.I32Const(1), w.I32Sub(), w.Call(f)))
		b.Func("run", nil, nil, i32, w.Loop(
			w.I32Const(n), w.Call(f),
			w.LocalGet(0), w.I32Const(1), w.I32Add(), w.LocalTee(0), w.I32Const(1000), w.I32LtU(), w.BrIf(0)))
		m, err := wasm.Decode(b.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	const level = 3 + 3 + 4 // a call that recurses
	for name, config := range engineConfigs {
		for _, c := range []struct {
			n      int32
			depth  int64
			budget uint64
			used   uint64 // used by a guest that was ended: more than the whole levels
			err    error
		}{
			{n: deepest, depth: 5000, budget: math.MaxInt64, used: 1000 * (deepest*level + 3 + 4 + 8)},
			{n: 0, budget: math.MaxInt64, used: 1000 * (3 + 4 + 8)},
			{n: math.MaxInt32, depth: 5000, budget: math.MaxInt64, used: (12 + 3) % level, err: meter.ErrDepth},
			{n: math.MaxInt32, budget: 5000, used: 12 % level, err: meter.ErrExhausted},
		} {
			code, err := fuel.Rewrite(module(c.n), fuel.Options{MaxDepth: c.depth})
			if err != nil {
				t.Fatal(err)
			}
			run, account := startMetered(t, config, code, c.budget)
			if err := run(); !errors.Is(err, c.err) {
				t.Errorf("%s, %+v: %v", name, c, err)
			}
			if used := account.Used(); c.err == nil && used != c.used || c.err != nil && (used > 10_000 || used%level != c.used) {
				t.Errorf("%s, %+v: %d units", name, c, used)
			}
		}
	}
}

// A loop needs a check of its own if the function that it calls first has none.
func TestLoopsThatCall(t *testing.T) {
	const times = 1_000_000
	i32 := []w.ValType{w.I32}
	for name, callee := range map[string][]byte{
		"a leaf":                               cat(w.LocalGet(0), w.Drop()),
		"a recursion that can end at once":     cat(w.Block(w.I32Const(1), w.BrIf(0), w.LocalGet(0), w.Call(0))),
		"a recursion that ends in another way": cat(w.LocalGet(0), w.If(w.Return()), w.LocalGet(0), w.Call(0)),
	} {
		b := w.New()
		b.Func("", i32, nil, nil, callee)
		b.Func("run", nil, nil, i32, w.Loop(
			w.I32Const(1), w.Call(0),
			w.LocalGet(0), w.I32Const(1), w.I32Add(), w.LocalTee(0), w.I32Const(times), w.I32LtU(), w.BrIf(0)))
		m, err := wasm.Decode(b.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		for _, depth := range []int64{0, 1000} {
			code, err := fuel.Rewrite(m, fuel.Options{MaxDepth: depth})
			if err != nil {
				t.Fatal(err)
			}
			run, account := startMetered(t, wazero.NewRuntimeConfigCompiler(), code, 5000)
			if err := run(); !errors.Is(err, meter.ErrExhausted) || account.Used() > 5200 {
				t.Errorf("%s, depth %d: %d units, %v", name, depth, account.Used(), err)
			}
		}
	}
}

var engineConfigs = map[string]wazero.RuntimeConfig{
	"compiler": wazero.NewRuntimeConfigCompiler(), "interpreter": wazero.NewRuntimeConfigInterpreter(),
}

// startMetered returns the function run of an instrumented module, which gets its fuel in
// slices of one unit.
func startMetered(t *testing.T, config wazero.RuntimeConfig, code []byte, budget uint64) (run func() error, _ *meter.Account) {
	t.Helper()
	ctx := context.Background()
	rt := wazero.NewRuntimeWithConfig(ctx, config.WithCoreFeatures(features|experimental.CoreFeaturesExceptionHandling))
	t.Cleanup(func() { _ = rt.Close(ctx) })
	if err := meter.Instantiate(ctx, rt); err != nil {
		t.Fatal(err)
	}
	mod, err := rt.Instantiate(ctx, code)
	if err != nil {
		t.Fatal(err)
	}
	account := meter.New(ctx, budget, 1)
	if err := account.Attach(mod); err != nil {
		t.Fatal(err)
	}
	return func() error {
		_, err := mod.ExportedFunction("run").Call(meter.With(ctx, account))
		return err
	}, account
}
