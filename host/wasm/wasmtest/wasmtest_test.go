package wasmtest_test

import (
	"fmt"
	"testing"

	"github.com/stockade-dev/stockade/host/wasm"
	"github.com/stockade-dev/stockade/host/wasm/wasmtest"
)

func TestToolHasTheNativeABI(t *testing.T) {
	options := map[string]wasmtest.ToolOptions{
		"nothing said":        {},
		"a long manifest":     {Manifest: string(make([]byte, 3*wasm.PageBytes))},
		"everything optional": {Initialize: wasmtest.Nop(), PostCall: wasmtest.Nop(), Imports: []wasmtest.Import{wasmtest.ProcExit()}},
	}
	for _, c := range wasmtest.Hostile() {
		if _, ok := options[c.Name]; ok {
			t.Errorf("two cases are named %q", c.Name)
		}
		options[c.Name] = c.Options
	}
	for name, o := range options {
		t.Run(name, func(t *testing.T) {
			m, err := wasm.Decode(wasmtest.Tool(o))
			if err != nil {
				t.Fatal(err)
			}
			if got := wasm.Classify(m); got.Kind != wasm.Native {
				t.Errorf("it is %s", got)
			}
			for name, sig := range map[string]string{
				"cabi_export_realloc":                "(i32 i32 i32 i32) -> i32",
				"stockade:tool/tools@0.1.0#describe": "() -> i32",
				"stockade:tool/tools@0.1.0#call":     "(i32 i32 i32 i32 i32 i64 i32 i32 i32 i32 i32 i32 i32) -> i32",
			} {
				if got, ok := m.ExportedFunc(name); !ok || got.String() != sig {
					t.Errorf("%s has the signature %s, %v; want %s", name, got, ok, sig)
				}
			}
			if e, ok := m.Export("memory"); !ok || e.Kind != wasm.KindMemory {
				t.Errorf("memory is exported as %v, %v", e, ok)
			}
		})
	}
}

func TestToolOptionsLeaveOut(t *testing.T) {
	m, err := wasm.Decode(wasmtest.Tool(wasmtest.ToolOptions{NoRealloc: true, NoMemory: true, NoSection: true, Version: "0.2.0", MemoryMin: 7, MemoryMax: 9}))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"cabi_export_realloc", "memory", "_initialize"} {
		if _, ok := m.Export(name); ok {
			t.Errorf("%s is exported", name)
		}
	}
	if len(m.Customs) > 0 {
		t.Errorf("custom sections are %v", m.Customs)
	}
	if got := wasm.Classify(m); got.Kind != wasm.Incompatible || got.Version != "0.2.0" {
		t.Errorf("it is %s", got)
	}
	if got := m.Memories[0]; got.Min != 7 || got.Max != 9 {
		t.Errorf("memory is %+v", got)
	}
}

func Example() {
	b := wasmtest.New()
	b.Memory(1, 2)
	b.ExportMemory("memory")
	b.Func("double", []wasmtest.ValType{wasmtest.I32}, []wasmtest.ValType{wasmtest.I32}, nil,
		wasmtest.LocalGet(0), wasmtest.LocalGet(0), wasmtest.I32Add())
	m, err := wasm.Decode(b.Bytes())
	if err != nil {
		panic(err)
	}
	double, _ := m.ExportedFunc("double")
	fmt.Println(double)
	// Output: (i32) -> i32
}
