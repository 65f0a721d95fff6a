package fueltest

import (
	"context"
	"math"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/stockade-dev/stockade/host/sandbox/meter"
	"github.com/stockade-dev/stockade/host/wasm"
	"github.com/stockade-dev/stockade/host/wasm/fuel"
	w "github.com/stockade-dev/stockade/host/wasm/wasmtest"
)

// An exception ends calls whose own code does not get to say so. Whoever goes
// on after catching some must be charged for all of them, and be no deeper
// than before.
func TestCaughtExceptions(t *testing.T) {
	b := w.New()
	tag := b.Tag(nil)
	throws := b.Func("", nil, nil, nil, []byte{0x08, byte(tag)})
	calls := b.Func("", nil, nil, nil, w.Call(throws), w.I32Const(1), w.Drop())
	const times = 1000
	b.Func("run", nil, nil, []w.ValType{w.I32}, w.Loop(
		// try_table without a result and with one catch_all to the block around it
		w.Block([]byte{0x1f, 0x40, 1, 2, 0}, w.Call(calls), w.End()),
		w.LocalGet(0), w.I32Const(1), w.I32Add(), w.LocalTee(0), w.I32Const(times), w.I32LtU(), w.BrIf(0)))
	m, err := wasm.Decode(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	// Deep enough for these three calls, but not for what they would add up to.
	code, err := fuel.Rewrite(m, fuel.Options{Depth: 1000})
	if err != nil {
		t.Fatal(err)
	}
	for name, config := range map[string]wazero.RuntimeConfig{
		"compiler": wazero.NewRuntimeConfigCompiler(), "interpreter": wazero.NewRuntimeConfigInterpreter(),
	} {
		ctx := context.Background()
		rt := wazero.NewRuntimeWithConfig(ctx, config.WithCoreFeatures(features|experimental.CoreFeaturesExceptionHandling))
		defer rt.Close(ctx)
		if err := meter.Instantiate(ctx, rt); err != nil {
			t.Fatal(err)
		}
		mod, err := rt.Instantiate(ctx, code)
		if err != nil {
			t.Fatal(err)
		}
		account := meter.New(ctx, math.MaxInt64, 1)
		if err := account.Attach(mod); err != nil {
			t.Fatal(err)
		}
		if _, err := mod.ExportedFunction("run").Call(meter.With(ctx, account)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		// Two calls, the exception, and six instructions around them.
		turn := uint64(2*fuel.Cost(wasm.OpCall) + fuel.Cost(wasm.OpThrow) + fuel.Cost(wasm.OpTryTable) + 6)
		if used, want := account.Used(), times*turn; used < want || used > want+times*4 {
			t.Errorf("%s: %d units for %d exceptions, want about %d", name, used, times, want)
		}
	}
}
