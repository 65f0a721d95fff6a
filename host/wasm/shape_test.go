package wasm_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stockade-dev/stockade/host/wasm"
	"github.com/stockade-dev/stockade/host/wasm/wasmtest"
)

func TestClassifyTellsWhoAModuleWasBuiltFor(t *testing.T) {
	build := func(imports [][2]string, exports ...string) []byte {
		b := wasmtest.New()
		for _, i := range imports {
			b.ImportFunc(i[0], i[1], nil, nil)
		}
		for _, e := range exports {
			b.Func(e, nil, nil, nil)
		}
		return b.Bytes()
	}
	// plugin returns a module with a memory whose functions return an i32.
	plugin := func(exports ...string) []byte {
		b := wasmtest.New()
		b.Memory(1, -1)
		b.ExportMemory("memory")
		for _, e := range exports {
			b.Func(e, nil, []wasmtest.ValType{wasmtest.I32}, nil, wasmtest.I32Const(0))
		}
		return b.Bytes()
	}
	imports := func(names ...[2]string) [][2]string { return names }
	extism := [2]string{"extism:host/env", "alloc"}
	wasi := [2]string{"wasi_snapshot_preview1", "fd_write"}
	native := func(versions ...string) (names []string) {
		for _, v := range versions {
			names = append(names, "stockade:tool/tools@"+v+"#call", "stockade:tool/tools@"+v+"#describe")
		}
		return names
	}
	family := func(prefix string, n int) (names []string) {
		for i := range n {
			names = append(names, fmt.Sprint(prefix, i))
		}
		return names
	}
	shape := func(kind wasm.ShapeKind, version string) wasm.Shape {
		return wasm.Shape{Kind: kind, Version: version, Interface: "stockade:tool/tools@" + version}
	}
	withDetail := func(s wasm.Shape, detail string) wasm.Shape { s.Detail = detail; return s }

	tests := []struct {
		name string
		data []byte
		want wasm.Shape
		text string
	}{
		{"our own tool", wasmtest.Tool(wasmtest.ToolOptions{}), shape(wasm.Native, "0.1.0"), "a tool module for stockade:tool/tools@0.1.0"},
		{"a later patch", build(imports(wasi), native("0.1.12")...), shape(wasm.Native, "0.1.12"), "0.1.12"},
		{"two versions, the newer one fits", build(nil, native("0.1.0", "0.1.3")...), shape(wasm.Native, "0.1.3"), "0.1.3"},
		{"two versions, one of them fits", build(nil, native("0.2.0", "0.1.0")...), shape(wasm.Native, "0.1.0"), "0.1.0"},
		{"another minor version", build(nil, native("0.2.0")...),
			withDetail(shape(wasm.Incompatible, "0.2.0"), "this host has version 0.1.0"),
			"a tool module for stockade:tool/tools@0.2.0 (this host has version 0.1.0)"},
		{"a pre-release", build(nil, native("0.1.0-rc1")...),
			withDetail(shape(wasm.Incompatible, "0.1.0-rc1"), "this host has version 0.1.0"), "0.1.0-rc1"},
		{"a version that only begins alike", build(nil, native("0.10.0")...),
			withDetail(shape(wasm.Incompatible, "0.10.0"), "this host has version 0.1.0"), "0.10.0"},
		{"describe is missing", build(nil, native("0.1.0")[0]),
			withDetail(shape(wasm.Incompatible, "0.1.0"), "it does not export describe"), "does not export describe"},
		{"call is missing", build(nil, native("0.1.0")[1]),
			withDetail(shape(wasm.Incompatible, "0.1.0"), "it does not export call"), "does not export call"},
		{"names of the newer mangling", build(nil, "cm32p2|stockade:tool/tools@0.1|call"),
			wasm.Shape{Kind: wasm.Incompatible, Interface: "stockade:tool/tools",
				Detail: "its exports have cm32p2 names; the host calls stockade:tool/tools@0.1.0#call"}, "cm32p2"},
		{"an Extism plugin that is a command too", build(imports(extism, wasi), "_start"), wasm.Shape{Kind: wasm.Extism}, "an Extism plugin"},
		{"hyper-mcp v1", build(imports(extism), "describe", "call"), wasm.Shape{Kind: wasm.HyperMCPv1}, "hyper-mcp v1"},
		{"hyper-mcp v2", build(imports(extism), "list_tools", "call_tool", "describe", "call"), wasm.Shape{Kind: wasm.HyperMCPv2}, "hyper-mcp v2"},
		{"user functions of Extism", build(imports([2]string{"extism:host/user", "f"}), "run"), wasm.Shape{Kind: wasm.Extism}, "an Extism plugin"},
		{"a WASI command", build(imports(wasi), "_start"), wasm.Shape{Kind: wasm.Command}, "a WASI command"},
		{"a command that imports nothing", build(nil, "_start"), wasm.Shape{Kind: wasm.Command}, "a WASI command"},
		{"a command with other imports", build(imports(wasi, [2]string{"env", "f"}, [2]string{"env", "g"}), "_start"),
			wasm.Shape{Kind: wasm.Unknown, Detail: `imports from ["env"]`}, "without a known interface"},
		{"another world", build(nil, "wasi:cli/run@0.2.0#run"),
			wasm.Shape{Kind: wasm.World, Detail: "exports wasi:cli/run@0.2.0"}, "another WIT world (exports wasi:cli/run@0.2.0)"},
		{"a world of free functions", build(nil, "cabi_realloc", "greet"), wasm.Shape{Kind: wasm.World}, "another WIT world"},
		{"a reactor", build(imports(wasi), "_initialize", "greet"), wasm.Shape{Kind: wasm.Reactor}, "a WASI reactor"},
		{"nothing known", build(nil, "greet"), wasm.Shape{}, "without a known interface"},
		{"a plugin with every function of TinyGo", build(imports(wasi), "_start", "run_test", "malloc", "free", "asyncify_get_state"), wasm.Shape{Kind: wasm.Command}, "a WASI command"},
		{"a plugin that imports nothing of Extism's", plugin("run_test", "_start", "malloc", "asyncify_get_state", "__main_void"), wasm.Shape{Kind: wasm.Extism}, "an Extism plugin"},
		{"a plugin that imports nothing", plugin("run"), wasm.Shape{Kind: wasm.Extism}, "an Extism plugin"},
		{"a command of Rust", plugin("_start", "__main_void"), wasm.Shape{Kind: wasm.Command}, "a WASI command"},
		{"a command of TinyGo", plugin("_start", "malloc", "calloc", "realloc", "free", "asyncify_get_state"), wasm.Shape{Kind: wasm.Command}, "a WASI command"},
		{"a reactor whose functions return a code", plugin("_initialize", "run"), wasm.Shape{Kind: wasm.Reactor}, "a WASI reactor"},
		{"the engine of a language", build(imports(wasi, [2]string{"env", "f"}), append(family("qjs_", 20), "_initialize", "malloc")...),
			wasm.Shape{Kind: wasm.Library, Detail: `exports 20 functions qjs_*, imports from ["env"]`}, `a library for a program that embeds it (exports 20 functions qjs_*`},
		{"a command that exports all that it has", build(imports(wasi), append(family("sqlite3_", 40), "_start")...), wasm.Shape{Kind: wasm.Command}, "a WASI command"},
		{"many functions of one prefix, and nobody who allocates", build(nil, family("i32_", 20)...), wasm.Shape{}, "without a known interface"},
		{"a reactor with a few functions of one prefix", build(nil, append(family("do_", 15), "_initialize", "malloc")...), wasm.Shape{Kind: wasm.Reactor}, "a WASI reactor"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			m, err := wasm.Decode(test.data)
			if err != nil {
				t.Fatal(err)
			}
			got := wasm.Classify(m)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("shape (-want +got):\n%s", diff)
			}
			if !strings.Contains(got.String(), test.text) {
				t.Errorf("described as %q, want %q in it", got, test.text)
			}
		})
	}
}

func TestClassifySeesAWorldInACustomSection(t *testing.T) {
	b := wasmtest.New()
	b.Custom("component-type:tools", nil)
	m, err := wasm.Decode(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if got := wasm.Classify(m); got.Kind != wasm.World {
		t.Errorf("got %v", got)
	}
}

func TestClassifyIgnoresNamesThatAreNoFunctions(t *testing.T) {
	b := wasmtest.New()
	b.Global(wasm.I32, false, wasmtest.I32Const(0))
	b.ExportGlobal("stockade:tool/tools@0.1.0#call", 0)
	b.ExportGlobal("stockade:tool/tools@0.1.0#describe", 0)
	m, err := wasm.Decode(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if got := wasm.Classify(m); got.Kind != wasm.Unknown {
		t.Errorf("got %v", got)
	}
}

func TestImportsAreGroupedByTheirModule(t *testing.T) {
	b := wasmtest.New()
	for _, i := range [][2]string{{"env", "b"}, {"wasi_snapshot_preview1", "fd_write"}, {"env", "a"}} {
		b.ImportFunc(i[0], i[1], nil, nil)
	}
	m, err := wasm.Decode(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	want := []wasm.ImportGroup{{Module: "env", Names: []string{"b", "a"}}, {Module: "wasi_snapshot_preview1", Names: []string{"fd_write"}}}
	if diff := cmp.Diff(want, m.ImportGroups()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
