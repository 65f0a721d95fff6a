package wasm_test

import (
	"bytes"
	"runtime"
	"testing"

	"github.com/stockade-dev/stockade/host/wasm"
	"github.com/stockade-dev/stockade/host/wasm/wasmtest"
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
		// The fuzzing engine allocates in addition; hence the megabyte.
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
