package fueltest

import (
	"testing"

	"github.com/stockade-dev/stockade/host/internal/fueltest/oracle"
	"github.com/stockade-dev/stockade/host/wasm"
	"github.com/stockade-dev/stockade/host/wasm/wasmtest"
)

// The results of Bodies lie within the module, and every index is in range.
func FuzzBodies(f *testing.F) {
	f.Add([]byte{})
	for n := range uint64(30) {
		f.Add(oracle.Generate(oracle.Seed(n)))
	}
	for _, c := range wasmtest.Hostile() {
		f.Add(wasmtest.Tool(c.Options))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := wasm.Decode(data)
		if err != nil {
			return
		}
		bodies, n := m.Bodies(), 0
		for {
			b, ok := bodies.Next()
			if !ok {
				break
			}
			n++
			if b.Offset+len(b.Code) > len(data) || len(b.LocalTypes) != int(b.Params+b.Locals) || b.Locals > wasm.MaxLocals {
				t.Fatalf("function %d: %d bytes at %d of %d, %d variables", b.Func, len(b.Code), b.Offset, len(data), len(b.LocalTypes))
			}
			at := b.LocalsEnd
			for i, in := range b.Instrs {
				if int(in.Offset) != at || b.End(i) <= at {
					t.Fatalf("instruction %d is at %d, ends at %d, want %d", i, in.Offset, b.End(i), at)
				}
				at = b.End(i)
				if in.Op >= wasm.OpLocalGet && in.Op <= wasm.OpLocalTee && int(in.Arg) >= len(b.LocalTypes) {
					t.Fatalf("local %d of %d", in.Arg, len(b.LocalTypes))
				}
				if _, ok := m.FuncType(in.Arg); in.Op == wasm.OpCall && !ok {
					t.Fatalf("call of function %d", in.Arg)
				}
			}
			if at != len(b.Code) {
				t.Fatalf("instructions end at %d of %d", at, len(b.Code))
			}
		}
		if (bodies.Err() == nil) != (n == len(m.Funcs)) {
			t.Fatalf("%d of %d functions, %v", n, len(m.Funcs), bodies.Err())
		}
		if payload, n, ok := wasm.MergeDataSegments(m, 1); ok && (n > m.NumDataSegments || len(payload) > 4*len(data)) {
			t.Fatalf("%d segments became %d in %d bytes", m.NumDataSegments, n, len(payload))
		}
	})
}
