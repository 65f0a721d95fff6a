package sandbox_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/stockade-dev/stockade/host/sandbox"
	"github.com/stockade-dev/stockade/host/sandbox/admit"
	"github.com/stockade-dev/stockade/host/tool"
	"github.com/stockade-dev/stockade/host/wasm"
	w "github.com/stockade-dev/stockade/host/wasm/wasmtest"
)

func TestInspectSaysWhatAFileIsAndRunsNothing(t *testing.T) {
	const manifest = `{"abi":"stockade:tool@0.1.0","name":"probe","tools":[{"name":"one","description":"A tool.","parameters":{"type":"object"},"capabilities":{}}]}`
	sectioned := func(o w.ToolOptions, text string) []byte {
		code, err := wasm.AppendCustom(w.Tool(o), wasm.ManifestSection, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return code
	}
	reactor := w.New()
	reactor.ImportFunc("wasi_snapshot_preview1", "sock_open", []w.ValType{w.I32}, []w.ValType{w.I32})
	reactor.ImportFunc("wasi_snapshot_preview1", "fd_close", []w.ValType{w.I32}, []w.ValType{w.I32})
	reactor.ImportFunc("wasi_snapshot_preview1", "sock_open", nil, nil)
	reactor.Func("_initialize", nil, nil, nil)
	inferred, err := described(t, w.Command(nil, nil), tool.Run{}, func(m *tool.Manifest) { m.Inferred = true }).Read()
	if err != nil {
		t.Fatal(err)
	}
	component := w.Component(w.ComponentOptions{Exports: []wasm.Extern{{Name: "wasi:cli/run@0.2.0", Kind: wasm.ExternInstance}}})
	for name, c := range map[string]struct {
		code    []byte
		kind    wasm.ShapeKind
		tools   int
		missing []string
		refused string // empty: it runs
		other   bool   // it is of a kind that does not run
	}{
		"a tool that would trap if it were asked":   {w.Tool(w.ToolOptions{NoSection: true, Describe: w.Unreachable()}), wasm.Native, 0, nil, "", false},
		"a tool with its manifest in a section":     {sectioned(w.ToolOptions{}, manifest), wasm.Native, 1, nil, "", false},
		"a section that is no manifest":             {sectioned(w.ToolOptions{}, "{"), wasm.Native, 0, nil, "manifest", false},
		"a manifest for another kind":               {sectioned(w.ToolOptions{}, strings.Replace(manifest, "stockade:tool", "other:tool", 1)), wasm.Native, 1, nil, "for the ABI", false},
		"a manifest that says that it is inferred":  {inferred, wasm.Command, 1, nil, "which only the host does", false},
		"a tool that imports what there is not":     {w.Tool(w.ToolOptions{Imports: []w.Import{{Module: "env", Name: "f"}}}), wasm.Native, 1, nil, `"env.f"`, false},
		"one that takes a person's word to compile": {w.Tool(w.ToolOptions{MemoryMin: 512, Data: []w.Segment{{Bytes: make([]byte, 17<<20)}}}), wasm.Native, 1, nil, "above 16 MiB", false},
		"a reactor":              {reactor.Bytes(), wasm.Reactor, 0, []string{"sock_open"}, "it is a WASI reactor", true},
		"a component":            {component, wasm.ComponentModel, 0, nil, `it is a component of WASI 0.2 (exports "wasi:cli/run@0.2.0"), which does not run here`, true},
		"one of another version": {w.Tool(w.ToolOptions{Version: "0.2.0"}), wasm.Incompatible, 1, nil, "0.2.0", true},
	} {
		t.Run(name, func(t *testing.T) {
			box := newBox(t, sandbox.Options{OnCompile: func(*tool.Module) { t.Error("it is compiled") }})
			got, err := box.Inspect(t.Context(), module(c.code))
			if err != nil {
				t.Fatal(err)
			}
			tools := 0
			if got.Manifest != nil {
				tools = len(got.Manifest.Tools)
			}
			if got.Shape.Kind != c.kind || tools != c.tools || !slices.Equal(got.Missing, c.missing) || (got.Module == nil) == (got.Component == nil) {
				t.Errorf("it is %s with %d tools, without %q", got.Shape, tools, got.Missing)
			}
			if (got.Refusal == nil) != (c.refused == "") || got.Refusal != nil && !strings.Contains(got.Refusal.Error(), c.refused) {
				t.Errorf("refused: %v, want %q", got.Refusal, c.refused)
			}
			if kind, ok := errors.AsType[*admit.KindError](got.Refusal); ok != c.other || ok && kind.Shape.Kind != c.kind {
				t.Errorf("refused as a kind: %v", got.Refusal)
			}
		})
	}
	for name, code := range map[string][]byte{
		"text": []byte("hello"), "a module that is cut off": component[:len(component)-1], "nothing": nil, "a component of an old version": []byte("\x00asm\x0a\x00\x01\x00"),
	} {
		got, err := newBox(t, sandbox.Options{}).Inspect(t.Context(), module(code))
		if _, ok := errors.AsType[*admit.RefusedError](err); !ok {
			t.Errorf("%s: %s, %v", name, got.Shape, err)
		}
	}
}
