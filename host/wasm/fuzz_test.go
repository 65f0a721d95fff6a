package wasm_test

import (
	"bytes"
	"runtime"
	"testing"

	"github.com/stockade-dev/stockade/host/wasm"
	"github.com/stockade-dev/stockade/host/wasm/wasmtest"
	"github.com/stockade-dev/stockade/host/wasm/wasmtest/oracle"
)

func FuzzDecode(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("\x00asm\x0d\x00\x01\x00"))
	f.Add(full())
	for _, test := range malformed() {
		if len(test.data) < 1024 {
			f.Add(test.data)
		}
	}
	f.Add(wasmtest.Tool(wasmtest.ToolOptions{}))
	for _, c := range wasmtest.Hostile() {
		f.Add(wasmtest.Tool(c.Options))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		m, err := wasm.Decode(data)
		runtime.ReadMemStats(&after)
		// The fuzzing engine allocates beside; hence the megabyte.
		if got := after.TotalAlloc - before.TotalAlloc; got > uint64(allowance(len(data))+1<<20) {
			t.Errorf("%d bytes allocated for %d", got, len(data))
		}
		if (m == nil) != (err != nil) {
			t.Fatalf("got module %v and error %v", m, err)
		}
		const name = "stockade-fuzz"
		out, appendErr := wasm.AppendCustom(data, name, data)
		if err != nil {
			if appendErr == nil {
				t.Fatalf("appended to what does not decode: %v", err)
			}
			return
		}
		_ = wasm.Classify(m).String()
		for _, e := range m.Exports {
			if _, ok := m.ExportedFunc(e.Name); ok != (e.Kind == wasm.KindFunc) {
				t.Errorf("export %q: signature found %v", e.Name, ok)
			}
		}
		if appendErr != nil {
			if len(m.Sections) < wasm.MaxSections {
				t.Fatal(appendErr)
			}
			return
		}
		again, err := wasm.Decode(out)
		if err != nil {
			t.Fatalf("the result of AppendCustom: %v", err)
		}
		if got, ok := wasm.CustomSection(again, name); !ok || !bytes.Equal(got, data) {
			t.Errorf("the appended section is %q, %v", got, ok)
		}
	})
}

// What Bodies returns lies within the module, and every index is in range.
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
			if b.Offset+len(b.Code) > len(data) || len(b.Types) != int(b.Params+b.Locals) || b.Locals > wasm.MaxLocals {
				t.Fatalf("function %d: %d bytes at %d of %d, %d variables", b.Func, len(b.Code), b.Offset, len(data), len(b.Types))
			}
			at := b.LocalsEnd
			for i, in := range b.Instrs {
				if int(in.Offset) != at || b.End(i) <= at {
					t.Fatalf("instruction %d is at %d, ends at %d, want %d", i, in.Offset, b.End(i), at)
				}
				at = b.End(i)
				if in.Op >= wasm.OpLocalGet && in.Op <= wasm.OpLocalTee && int(in.Arg) >= len(b.Types) {
					t.Fatalf("local %d of %d", in.Arg, len(b.Types))
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
		if payload, n, ok := wasm.MergedData(m); ok && (n > m.Data || len(payload) > 3*len(data)) {
			t.Fatalf("%d segments became %d in %d bytes", m.Data, n, len(payload))
		}
	})
}
