package fueltest

import (
	"bytes"
	"context"
	"math"
	"testing"

	"github.com/tetratelabs/wazero"

	"github.com/stockade-dev/stockade/host/sandbox/meter"
	"github.com/stockade-dev/stockade/host/wasm"
	"github.com/stockade-dev/stockade/host/wasm/fuel"
	w "github.com/stockade-dev/stockade/host/wasm/wasmtest"
)

// A bulk operation in pieces that traps does so before anything is written, even if it
// ends beyond 32 bits.
func TestBulkOperationsOutOfBoundsWriteNothing(t *testing.T) {
	const size = 4 * mib
	last := int32(-mib) // a MiB before the end of 32 bits
	for name, op := range map[string][]byte{
		"copy, source beyond 32 bits":       bulk(w.MemoryCopy(), mib, last, 2*mib),
		"copy, destination beyond 32 bits":  bulk(w.MemoryCopy(), last, mib, 2*mib),
		"copy, source beyond the end":       bulk(w.MemoryCopy(), 0, 3*mib, 2*mib),
		"copy, destination beyond the end":  bulk(w.MemoryCopy(), 3*mib, 0, 2*mib),
		"copy, nearly all there is":         bulk(w.MemoryCopy(), 1, 0, size),
		"fill, beyond 32 bits":              bulk(w.MemoryFill(), last, 7, 2*mib),
		"fill, beyond the end":              bulk(w.MemoryFill(), 3*mib, 7, 2*mib),
		"fill, as much as a number can say": bulk(w.MemoryFill(), 1, 7, -1),
	} {
		b := w.New()
		b.Memory(size>>16, size>>16)
		b.ExportMemory("memory")
		b.Func("run", nil, nil, nil, op)
		m, err := wasm.Decode(b.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		code, err := fuel.Rewrite(m, fuel.Options{})
		if err != nil {
			t.Fatal(err)
		}
		ctx := context.Background()
		rt := wazero.NewRuntime(ctx)
		defer rt.Close(ctx)
		if err := meter.Instantiate(ctx, rt); err != nil {
			t.Fatal(err)
		}
		mod, err := rt.Instantiate(ctx, code)
		if err != nil {
			t.Fatal(err)
		}
		mem, _ := mod.Memory().Read(0, size)
		for i := range mem {
			mem[i] = byte(i>>8 ^ i>>20)
		}
		before := bytes.Clone(mem)
		account := meter.New(ctx, math.MaxInt64, 0)
		if err := account.Attach(mod); err != nil {
			t.Fatal(err)
		}
		if _, err := mod.ExportedFunction("run").Call(meter.With(ctx, account)); err == nil {
			t.Errorf("%s: no trap", name)
		}
		if !bytes.Equal(mem, before) {
			t.Errorf("%s: memory was written to", name)
		}
	}
}

// A table that is copied over itself in pieces gives the result of a single copy.
func TestOverlappingCopyOfALargeTable(t *testing.T) {
	const n, by, at = 1<<20 + 50, 10, 1<<20 + 3 // at lies beyond the first piece
	b := w.New()
	b.Table(n+by, n+by)
	b.Elem(at, b.Func("", nil, nil, nil))
	b.Func("run", nil, nil, nil, bulk(w.TableCopy(0), by, 0, n),
		w.I32Const(at+by), []byte{0x25, 0, 0xd1}, w.If(w.Unreachable())) // table.get, ref.is_null
	m, err := wasm.Decode(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	code, err := fuel.Rewrite(m, fuel.Options{})
	if err != nil {
		t.Fatal(err)
	}
	run, _ := startMetered(t, wazero.NewRuntimeConfigCompiler(), code, math.MaxInt64)
	if err := run(); err != nil {
		t.Error(err)
	}
}
