package fueltest

import (
	"context"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/stockade-dev/stockade/host/wasm"
	"github.com/stockade-dev/stockade/host/wasm/fuel"
	w "github.com/stockade-dev/stockade/host/wasm/wasmtest"
)

// A guest must not get far between two checks of its counter, whatever it calls and
// however it returns.
func TestHowFarAGuestGetsWithoutALook(t *testing.T) {
	i32 := []w.ValType{w.I32}
	nops := func(n int) []byte { return bytesOf(n, cat(w.I32Const(1), w.Drop())) }
	fill := func(n []byte) []byte { return cat(w.I32Const(0), w.I32Const(0), n, w.MemoryFill()) }
	const tag = 0
	// A frame for each n, and then the code after the call.
	recurse := func(b *w.Builder, after ...[]byte) uint32 {
		f := b.NextFunc()
		b.Func("", i32, nil, nil, w.Block(
			w.LocalGet(0), []byte{0x45}, w.BrIf(0), w.LocalGet(0), w.I32Const(1), w.I32Sub(), w.Call(f), cat(after...)))
		return f
	}
	loop := func(body ...[]byte) []byte {
		return w.Loop(cat(body...), w.LocalGet(0), w.I32Const(1), w.I32Add(), w.LocalTee(0), w.I32Const(200_000), w.I32LtU(), w.BrIf(0))
	}
	try := func(body ...[]byte) []byte { return w.Block([]byte{0x1f, 0x40, 1, 2, 0}, cat(body...), w.End()) }
	for _, c := range []struct {
		name  string
		build func(b *w.Builder) []byte // returns the body of run
		most  int64
	}{
		{"a loop that calls a long function of cheap instructions", func(b *w.Builder) []byte {
			g := b.Func("", nil, nil, nil, bytesOf(300, []byte{1}))
			return loop(w.Call(g))
		}, 200},
		{"a loop that calls a function of 100 locals", func(b *w.Builder) []byte {
			g := b.Func("", nil, nil, make100(w.I32), bytesOf(300, []byte{1}))
			return loop(w.Call(g))
		}, 200},
		{"a leaf that ends with a fill after each return", func(b *w.Builder) []byte {
			n := b.Global(w.I32, true, w.I32Const(1023))
			leaf := b.Func("", nil, nil, nil, fill(w.GlobalGet(n)))
			f := recurse(b, w.Call(leaf))
			return cat(w.I32Const(1000), w.Call(f))
		}, 1000 * 130},
		{"a fill after each return", func(b *w.Builder) []byte {
			n := b.Global(w.I32, true, w.I32Const(1023))
			f := recurse(b, fill(w.GlobalGet(n)))
			return cat(w.I32Const(1000), w.Call(f))
		}, 1000 * 130},
		{"a call of the host after each return", func(b *w.Builder) []byte {
			f := recurse(b, w.Call(0))
			return cat(w.I32Const(1000), w.Call(f), w.Call(0), w.Call(0))
		}, 200},
		{"exceptions in a row", func(b *w.Builder) []byte {
			return bytesOf(90, try(nops(4000), []byte{0x08, tag}))
		}, 1000},
		{"exceptions that go on", func(b *w.Builder) []byte {
			f := b.NextFunc()
			b.Func("", i32, nil, nil, try(
				w.LocalGet(0), w.If(w.LocalGet(0), w.I32Const(1), w.I32Sub(), w.Call(f)), []byte{0x08, tag}),
				nops(4000), []byte{0x08, tag})
			return try(w.I32Const(300), w.Call(f))
		}, 300 * 200},
	} {
		b := w.New()
		b.Memory(1, 1)
		b.ImportFunc("env", "host", nil, nil)
		b.Tag(nil)
		body := c.build(b)
		b.Func("run", nil, nil, i32, body)
		m, err := wasm.Decode(b.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		for _, depth := range []int64{0, 1 << 20} {
			code, err := fuel.Rewrite(m, fuel.Options{MaxDepth: depth})
			if err != nil {
				t.Fatal(err)
			}
			longest, calls, err := longestGap(t, code)
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			if calls > 1 {
				t.Errorf("%s, depth %d: %d calls of the host without a look", c.name, depth, calls)
			}
			if longest > c.most {
				t.Errorf("%s, depth %d: %d units without a look, want at most %d", c.name, depth, longest, c.most)
			}
		}
	}
}

func bytesOf(n int, piece []byte) []byte {
	var out []byte
	for range n {
		out = append(out, piece...)
	}
	return out
}

func make100(t w.ValType) []w.ValType {
	out := make([]w.ValType, 100)
	for i := range out {
		out[i] = t
	}
	return out
}

// longestGap runs a module without any fuel. It returns the largest debt, in units, at a
// check or at the end, and the largest number of host calls between checks.
func longestGap(t *testing.T, code []byte) (longest int64, mostCalls int, err error) {
	t.Helper()
	ctx := context.Background()
	rt := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigCompiler().
		WithCoreFeatures(features|experimental.CoreFeaturesExceptionHandling))
	defer rt.Close(ctx)
	calls := 0
	asked := func(_ context.Context, stack []uint64) {
		longest, mostCalls, calls = max(longest, -int64(stack[0])), max(mostCalls, calls), 0
		stack[0] = 0
	}
	i64 := []api.ValueType{api.ValueTypeI64}
	if _, err := rt.NewHostModuleBuilder(fuel.ImportModule).NewFunctionBuilder().
		WithGoFunction(api.GoFunc(asked), i64, i64).Export(fuel.ImportRefill).Instantiate(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := rt.NewHostModuleBuilder("env").NewFunctionBuilder().
		WithFunc(func() { calls++ }).Export("host").Instantiate(ctx); err != nil {
		t.Fatal(err)
	}
	mod, err := rt.Instantiate(ctx, code)
	if err != nil {
		t.Fatal(err)
	}
	_, err = mod.ExportedFunction("run").Call(ctx)
	return max(longest, -int64(mod.ExportedGlobal(fuel.ExportFuel).Get())), max(mostCalls, calls), err
}
