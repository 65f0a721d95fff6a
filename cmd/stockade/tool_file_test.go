package main

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/terminal/terminaltest"
	"github.com/stockade-dev/stockade/host/sandbox"
	"github.com/stockade-dev/stockade/host/tool"
	"github.com/stockade-dev/stockade/host/wasm"
	"github.com/stockade-dev/stockade/host/wasm/wasmtest"
)

// shapes are small modules, one of each kind.
func shapes() map[string][]byte {
	build := func(imports [][2]string, exports ...string) []byte {
		b := wasmtest.New()
		for _, i := range imports {
			result := wasmtest.I32
			if i[0] == "extism:host/env" {
				result = wasmtest.I64
			}
			b.ImportFunc(i[0], i[1], nil, []wasmtest.ValType{result})
		}
		b.Memory(1, -1)
		b.ExportMemory("memory")
		for _, e := range exports {
			if strings.HasPrefix(e, "_") {
				b.Func(e, nil, nil, nil)
			} else {
				b.Func(e, nil, []wasmtest.ValType{wasmtest.I32}, nil, wasmtest.I32Const(0))
			}
		}
		return b.Bytes()
	}
	var qjs []string
	for i := range 20 {
		qjs = append(qjs, fmt.Sprintf("qjs_f%d", i))
	}
	wasi := func(names ...string) (out [][2]string) {
		for _, name := range names {
			out = append(out, [2]string{"wasi_snapshot_preview1", name})
		}
		return out
	}
	extism := [][2]string{{"extism:host/env", "input_length"}, {"extism:host/env", "input_offset"}}
	run := []wasm.Extern{{Name: "wasi:cli/run@0.2.3", Kind: wasm.ExternInstance}}
	return map[string][]byte{
		"native":       wasmtest.Tool(wasmtest.ToolOptions{NoSection: true}),
		"described":    wasmtest.Tool(wasmtest.ToolOptions{}),
		"unasked":      wasmtest.Tool(wasmtest.ToolOptions{Imports: []wasmtest.Import{{Module: "env", Name: "f"}}}),
		"incompatible": wasmtest.Tool(wasmtest.ToolOptions{Version: "0.2.0", NoSection: true}),
		"large":        wasmtest.Tool(wasmtest.ToolOptions{MemoryMin: 512, Data: []wasmtest.Segment{{Offset: 1 << 16, Bytes: make([]byte, 17<<20)}}}),
		"command":      build(wasi("sched_yield", "sock_open", "sock_open"), "_start"),
		"extism":       build(extism, "count_vowels"),
		"hyper-mcp-v1": build(extism, "describe", "call"),
		"hyper-mcp-v2": build(extism, "list_tools", "call_tool"),
		"world":        build(wasi("sched_yield"), "wasi:http/incoming-handler@0.2.0#handle", "cabi_realloc"),
		"reactor":      build(wasi("sched_yield"), "_initialize", "greet"),
		"library":      build([][2]string{{"env", "host_call"}}, append(qjs, "malloc", "free")...),
		"host":         build(append(wasi("sched_yield"), [2]string{"env", "abort"}), "_start"),
		"component": wasmtest.Component(wasmtest.ComponentOptions{
			Imports: []wasm.Extern{{Name: "wasi:io/streams@0.2.3", Kind: wasm.ExternInstance}, {Name: "wasi:clocks/wall-clock@0.2.3", Kind: wasm.ExternInstance}, {Name: "log", Kind: wasm.ExternFunc}},
			Exports: run, Modules: [][]byte{build(nil, "a"), build([][2]string{{"wasi:io/streams@0.2.3", "f"}}, "wasi:cli/run@0.2.3#run")},
		}),
		"component of a tool": wasmtest.Component(wasmtest.ComponentOptions{Exports: run, Modules: [][]byte{wasmtest.Tool(wasmtest.ToolOptions{})}}),
	}
}

// writeShape writes one of the modules of shapes:
//
//	shape NAME FILE
func writeShape(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 || shapes()[args[0]] == nil {
		ts.Fatalf("usage: shape NAME FILE")
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), shapes()[args[0]], 0o644))
}

// inspected returns the report of `tool info` about a module.
func inspected(t *testing.T, code []byte) fileReport {
	t.Helper()
	mod := tool.NewModule("m", tool.OriginFile, "./m.wasm", code)
	box := sandbox.New(sandbox.Options{})
	t.Cleanup(func() { _ = box.Close() })
	i, err := box.Inspect(t.Context(), mod)
	if err != nil {
		t.Fatal(err)
	}
	return fileReport{"./m.wasm", mod, nil, i}
}

// shownFile returns the output of `tool info` for a person: stdout and stderr.
func shownFile(t *testing.T, r fileReport, columns int) (out, hints string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	a := &app{s: &stdio{out: &stdout, err: &stderr, outColumns: func() int { return columns }}}
	if err := a.showFile(r); err != nil {
		t.Fatal(err)
	}
	return stdout.String(), stderr.String()
}

func TestWhatIsSaidOfFilesThatRun(t *testing.T) {
	for shape, c := range map[string]struct{ says, hints []string }{
		"native": {[]string{"kind       a tool module for stockade:tool/tools@0.1.0\n", "tools      it lists them when it is asked\n", "runs here  yes\n"},
			[]string{"with nothing granted: stockade tool info --ask ./m.wasm"}},
		"command": {[]string{"kind       a WASI command\n", "missing    of WASI preview 1: sock_open\n", "imports    wasi_snapshot_preview1 (3): sched_yield, sock_open, sock_open\n",
			"runs here  yes, if it answers --schema as ikigai's tools do, or is described\n"}, []string{"to begin a description: stockade tool describe ./m.wasm", "tool info --ask ./m.wasm"}},
		"extism": {[]string{"kind       an Extism plugin\n", "imports    extism:host/env (2): input_length, input_offset\n", "exports    1 function: count_vowels\n",
			"runs here  yes: each of its functions that takes no parameters is a tool with\n           one text\n"}, []string{"to begin a description of them: stockade tool describe ./m.wasm"}},
		"hyper-mcp-v1": {[]string{"kind       an Extism plugin for mcp.run or hyper-mcp v1\n", "runs here  yes\n"}, []string{"tool info --ask ./m.wasm"}},
		"hyper-mcp-v2": {[]string{"kind       an Extism plugin for hyper-mcp v2\n", "runs here  yes\n"}, []string{"tool info --ask ./m.wasm"}},
	} {
		r := inspected(t, shapes()[shape])
		r.Refusal = nil // whichever kinds this program has
		out, hints := shownFile(t, r, 80)
		for _, text := range c.says {
			if !strings.Contains(out, text) {
				t.Errorf("%s: it does not say %q:\n%s", shape, text, out)
			}
		}
		for _, text := range c.hints {
			if !strings.Contains(hints, text) {
				t.Errorf("%s: it does not advise %q:\n%s", shape, text, hints)
			}
		}
	}
}

var inQuotes = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)

// TestNoNameInAFileReadsLikeAWordOfOurs: names and texts of a module stand in quotes
// or behind bars, and do nothing on a terminal.
func TestNoNameInAFileReadsLikeAWordOfOurs(t *testing.T) {
	for turn, v := range terminaltest.Vectors() {
		text := strings.ToValidUTF8(v.Text, "?")
		var externs []wasm.Extern
		b := wasmtest.New()
		for i := range 12 {
			b.ImportFunc(fmt.Sprint(text, i%7), text, nil, nil)
			externs = append(externs, wasm.Extern{Name: fmt.Sprint(text, i), Kind: wasm.ExternKind(i % 6)})
		}
		for i := range 12 {
			b.Func(fmt.Sprint(text, i), nil, nil, nil)
		}
		described := worst(v.Text)
		described.Tools = described.Tools[:3]
		files := map[string]func() fileReport{
			"a module": func() fileReport { return inspected(t, b.Bytes()) },
			"a component": func() fileReport {
				return inspected(t, wasmtest.Component(wasmtest.ComponentOptions{Imports: externs, Exports: externs}))
			},
			"a manifest": func() fileReport {
				r := inspected(t, shapes()["native"])
				r.Manifest = &described
				return r
			},
		}
		for i, name := range slices.Sorted(maps.Keys(files)) {
			if !*whole && (turn+i)%3 > 0 {
				continue // the texts take turns
			}
			r := files[name]()
			e := &terminaltest.Emulator{Columns: 80, Wide: true}
			out, hints := shownFile(t, r, e.Columns)
			fmt.Fprint(e, out+hints)
			if e.Acts != nil || e.Styled {
				t.Errorf("%s, %s: it did %q", v.Name, name, e.Acts)
			}
			ours := ""
			for _, row := range e.Rows() {
				if strings.HasPrefix(row.Text, "     │ ") || strings.HasPrefix(row.Text, "     : ") {
					continue
				}
				if ours += row.Text; strings.ContainsFunc(row.Text, func(r rune) bool { return r < ' ' || r > '~' }) {
					t.Errorf("%s, %s: it is in a row of ours: %q", v.Name, name, row.Text)
				}
			}
			if unquoted := inQuotes.ReplaceAllString(ours, ""); strings.Contains(unquoted, "EVIL") {
				t.Errorf("%s, %s: it reads like ours: %q", v.Name, name, unquoted)
			}
		}
	}
	for name, want := range map[string]string{
		"fd_write": "fd_write", "": `""`, "[method]a.b": "[method]a.b", "a, runs here": `"a, runs here"`, "a\nruns here  yes": `"a\nruns here  yes"`, `"`: `"\""`,
		"\u202eyes": `"\u202eyes"`, strings.Repeat("a", 90): `"` + strings.Repeat("a", 60) + `"...`, strings.Repeat("é", 40): `"` + strings.Repeat(`\u00e9`, 30) + `"...`,
	} {
		if got := displayName(name); got != want {
			t.Errorf("the name %q is shown as %s, want %s", name, got, want)
		}
	}
}
