package selftest

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stockade-dev/stockade/host/sandbox/abi"
	"github.com/stockade-dev/stockade/host/selftest/machine"
	"github.com/stockade-dev/stockade/host/tool"
	"github.com/stockade-dev/stockade/host/wasm"
	w "github.com/stockade-dev/stockade/host/wasm/wasmtest"
)

var (
	i32, i64 = w.I32, w.I64
	i32x1    = []w.ValType{i32}
)

func i32s(n int) []w.ValType { return slices.Repeat(i32x1, n) }

func code(pieces ...[]byte) []byte { return slices.Concat(pieces...) }

// compileAttack holds modules that must not be compiled.
type compileAttack struct {
	name, description string
	modules           func() [][]byte
	wantMessage       string // text that each refusal must contain
	slow              bool
}

func (a compileAttack) run(t *trial) (string, error) {
	var last string
	modules := a.modules()
	if len(modules) == 0 {
		return "", newUntried("there is no such module")
	}
	for i, code := range modules {
		o, err := t.run(Guest{Code: code})
		if err == nil {
			last, err = stoppedBy(o, a.wantMessage, tool.CodeNotAdmitted)
		}
		if err != nil && len(modules) > 1 {
			err = fmt.Errorf("module %d: %w", i+1, err)
		}
		if err != nil {
			return "", err
		}
	}
	if len(modules) > 1 {
		t.detail = fmt.Sprintf("%d modules", len(modules))
	}
	return last, nil
}

func compileAttacks() []Attack {
	one := func(module func() []byte) func() [][]byte { return func() [][]byte { return [][]byte{module()} } }
	edit := func(e func(b *w.Builder)) func() [][]byte {
		return one(func() []byte { return w.Tool(w.ToolOptions{Edit: e}) })
	}
	// body returns a module with one more function, which takes an i32 and has locals.
	body := func(locals uint32, pieces ...[]byte) func() [][]byte {
		return edit(func(b *w.Builder) {
			b.FuncOf(b.Type(i32x1, nil), []w.Locals{{Count: locals, Type: i32}}, pieces...)
		})
	}
	imports := func(i w.Import) func() [][]byte {
		return one(func() []byte { return w.Tool(w.ToolOptions{Imports: []w.Import{i}}) })
	}
	nested := func(n int, op byte, inner []byte) []byte {
		return code(bytes.Repeat([]byte{op, 0x40}, n), inner, bytes.Repeat(w.End(), n))
	}
	memory := func(limits ...byte) func() [][]byte {
		return one(func() []byte { return withSection(wasm.SectionMemory, code([]byte{1}, limits)) })
	}
	const block, loop = 0x02, 0x03
	const callExport = abi.ExportCall

	var out []Attack
	for _, a := range []compileAttack{
		{name: "locals-bomb", description: "Declare 67 million local variables in a function of some bytes.", wantMessage: "locals", modules: body(1 << 26)},
		{name: "many-locals", description: "Declare ten thousand local variables in a function.", wantMessage: "locals", modules: body(10_000)},
		{name: "locals-sum", description: "Declare millions of local variables in many functions.", wantMessage: "locals", modules: edit(func(b *w.Builder) {
			typ := b.Type(i32x1, nil)
			for range 300 {
				b.FuncOf(typ, []w.Locals{{Count: 3900, Type: i32}})
			}
		})},
		{name: "nested-blocks", description: "Nest eight thousand blocks.", wantMessage: "nested blocks", modules: body(0, nested(8000, block, nil))},
		{name: "nested-loops", description: "Nest a hundred loops.", wantMessage: "nested loops", modules: body(0, nested(100, loop, nil))},
		{name: "loops-times-locals", description: "Nest sixty loops that all change a thousand variables.", wantMessage: "nested loops times locals",
			modules: body(1000, nested(60, loop, code(w.LocalGet(0), w.LocalSet(1))))},
		{name: "branches-bomb", description: "Branch twenty thousand times in one function.", wantMessage: "blocks and branches",
			modules: body(0, bytes.Repeat(code(w.LocalGet(0), w.BrIf(0)), 20_000))},
		{name: "br-table-bomb", description: "Branch to a hundred thousand labels at once.", wantMessage: "labels of a br_table",
			modules: body(0, w.Block(w.LocalGet(0), w.BrTable(make([]uint32, 100_000)...)))},
		{name: "large-function", description: "Put 400 KB of code into one function.", wantMessage: "bytes in one function",
			modules: body(0, bytes.Repeat(w.Nop(), 400_000))},
		{name: "many-functions", description: "Define sixty thousand functions.", wantMessage: "functions", modules: edit(func(b *w.Builder) {
			typ := b.Type(nil, nil)
			for range 60_000 {
				b.FuncOf(typ, nil)
			}
		})},
		{name: "many-types", description: "Define ten thousand types.", wantMessage: "types", modules: edit(func(b *w.Builder) {
			for range 10_000 {
				b.Type(nil, nil)
			}
		})},
		{name: "many-globals", description: "Define five thousand globals.", wantMessage: "globals", modules: edit(func(b *w.Builder) {
			for range 5000 {
				b.Global(i32, true, w.I32Const(0))
			}
		})},
		{name: "many-exports", description: "Export a function under five thousand names.", wantMessage: "exports", modules: edit(func(b *w.Builder) {
			for i := range 5000 {
				b.ExportFunc(fmt.Sprint(i), 0)
			}
		})},
		{name: "wide-type", description: "Pass a thousand parameters to a function.", wantMessage: "parameters and results",
			modules: edit(func(b *w.Builder) { b.Type(i32s(1000), nil) })},
		{name: "data-segments", description: "Add twenty thousand pieces of data that cannot be joined.", wantMessage: "segments", modules: edit(func(b *w.Builder) {
			for range 20_000 {
				b.PassiveData([]byte{1})
			}
		})},
		{name: "table-minimum", description: "Ask for a table of 134 million elements from the start.", wantMessage: "tables start with",
			modules: edit(func(b *w.Builder) { b.Table(1<<27, -1) })},
		{name: "many-tables", description: "Define a hundred tables.", wantMessage: "tables", modules: edit(func(b *w.Builder) {
			for range 100 {
				b.Table(1, -1)
			}
		})},
		{name: "large-module", description: "Be a module of 17 MiB that nobody has asked to be compiled.", wantMessage: "only if a person asks", modules: one(func() []byte {
			return w.Tool(w.ToolOptions{MemoryMin: 512, Data: []w.Segment{{Offset: 1 << 16, Bytes: bytes.Repeat([]byte{1}, 17<<20)}}})
		})},

		{name: "not-a-module", description: "Be a script, an executable, an archive, or nothing.", modules: func() [][]byte {
			return [][]byte{[]byte("#!/bin/sh\necho x\n"), []byte("\x7fELF\x02\x01\x01"), []byte("PK\x03\x04"), {0}, []byte("\x00asm"), []byte("\x00asm\x02\x00\x00\x00")}
		}},
		{name: "cut-short", description: "End in the middle, at sixteen places.", modules: func() [][]byte {
			var cut [][]byte
			whole := machine.PlainModule(machine.Native)
			for i := range 16 {
				cut = append(cut, whole[:len(whole)*(i+1)/17])
			}
			return cut
		}},
		{name: "endless-number", description: "Write numbers that do not end, or do not fit.", modules: func() [][]byte {
			var all [][]byte
			for _, n := range [][]byte{bytes.Repeat([]byte{0x80}, 64), {0x81, 0x80, 0x80, 0x80, 0x80, 0}, {0xff, 0xff, 0xff, 0xff, 0x1f}} {
				all = append(all, code(w.Header(), []byte{wasm.SectionType}, n), code(w.Header(), w.Section(wasm.SectionType, n)))
			}
			return all
		}},
		{name: "count-bomb", description: "Promise four billion of everything that a module can have.", modules: func() [][]byte {
			var all [][]byte
			for id := wasm.SectionType; id <= wasm.SectionData; id++ {
				if id != wasm.SectionStart {
					all = append(all, code(w.Header(), w.Section(id, w.U32(minusOne), make([]byte, 64))))
				}
			}
			return all
		}},
		{name: "invalid-code", description: "Take values from an empty stack, and jump out of a function.", modules: func() [][]byte {
			return slices.Concat(body(0, w.I32Add(), w.Drop())(), body(0, w.Br(7))(), body(0, []byte{0xff})(), body(0, w.I64Const(1), w.LocalSet(0))())
		}},
		{name: "index-outside", description: "Name functions, globals and types that the module does not have, which the host may have added.", modules: func() [][]byte {
			return slices.Concat(
				body(0, w.I64Const(1<<60), w.GlobalSet(1))(), body(0, w.I64Const(1<<60), w.GlobalSet(2))(),
				body(0, w.I64Const(1<<60), w.LocalSet(1))(), body(0, w.Call(4))(), body(0, w.RefFunc(4), w.Drop())(), body(0, w.Call(1000))(),
				edit(func(b *w.Builder) { b.ExportGlobal("mine", 1) })())
		}},

		{name: "reserved-name", description: "Export names that are kept for the counter of fuel.", wantMessage: "reserved", modules: func() [][]byte {
			return slices.Concat(
				edit(func(b *w.Builder) { b.ExportGlobal("stockade:fuel", b.Global(i64, true, w.I64Const(0))) })(),
				edit(func(b *w.Builder) { b.ExportFunc("stockade:start", 0) })())
		}},
		{name: "reserved-import", description: "Import the function that refills the counter of fuel.", wantMessage: "stockade:fuel",
			modules: imports(w.Import{Module: "stockade:fuel", Name: "refill", Params: []w.ValType{i64}, Results: []w.ValType{i64}})},
		{name: "unknown-import", description: "Import functions that the host does not have.", wantMessage: "does not have", modules: func() [][]byte {
			return slices.Concat(
				imports(w.Import{Module: "env", Name: "system", Params: i32x1, Results: i32x1})(),
				imports(w.Import{Module: "wasi_snapshot_preview1", Name: "path_exec", Params: i32x1, Results: i32x1})(),
				imports(w.Import{Module: abi.ImportModule("exec"), Name: "run_shell", Params: i32x1})())
		}},
		{name: "wrong-signature", description: "Import a function of the host with other parameters than it has.", wantMessage: "another signature", modules: func() [][]byte {
			return slices.Concat(
				imports(w.Import{Module: "wasi_snapshot_preview1", Name: "fd_write", Params: []w.ValType{i64}, Results: i32x1})(),
				imports(w.Import{Module: abi.ImportModule("exec"), Name: "run", Params: i32x1})())
		}},
		{name: "imported-memory", description: "Import a memory from the host.", wantMessage: "memory",
			modules: edit(func(b *w.Builder) { b.ImportMemory("env", "memory", 1, -1) })},
		{name: "host-function-as-call", description: "Have the host call one of its own functions as if it were the tool.", wantMessage: "imported function",
			modules: one(func() []byte {
				// An import with the type of describe, exported as describe.
				b := w.New()
				b.ImportFunc("wasi_snapshot_preview1", "sched_yield", nil, i32x1)
				b.Memory(1, -1)
				b.ExportMemory(abi.ExportMemory)
				b.Func(abi.ExportRealloc[0], i32s(4), i32x1, nil, w.I32Const(0))
				b.Func(callExport, w.CallParams(), i32x1, nil, w.I32Const(0))
				b.ExportFunc(abi.ExportDescribe, 0)
				return b.Bytes()
			})},
		{name: "wide-memory", description: "Have a memory with 64-bit addresses.", modules: memory(4, 1)},
		{name: "shared-memory", description: "Have a memory that is shared with other threads.", modules: memory(3, 1, 2)},
		{name: "two-memories", description: "Have a second memory, which no limit knows of.", modules: edit(func(b *w.Builder) { b.Memory(1, -1) })},
		{name: "compile-time", description: "Take the compiler minutes, with less of everything than the limits.", wantMessage: "more than the limit of", slow: true,
			modules: func() (modules [][]byte) {
				for _, b := range w.Bombs() {
					if b.Name == compileTimeBomb {
						modules = append(modules, b.Module())
					}
				}
				return modules
			}},
	} {
		out = append(out, Attack{Name: a.name, Description: a.description, kinds: native, run: a.run, slow: a.slow})
	}
	return append(out,
		Attack{Name: "imports-of-others", Description: "Import what the host has for another kind of module, or for itself.", kinds: nonNative, run: importsOfOthers},
		Attack{Name: "host-function-as-tool", Description: "Have the host call one of its own functions as if it were the command or the plugin.", kinds: nonNative, run: hostFunctionAsTool},
		Attack{Name: "compiled-code-changed", Description: "Run compiled code that somebody has changed on disk.", run: compiledChanged},
		Attack{Name: "compiled-code-of-others", Description: "Run compiled code that other users of the machine can change.", run: compiledOfOthers},
	)
}

// importsOfOthers tries each import in a module of its own.
func importsOfOthers(t *trial) (string, error) {
	others := []w.Import{{Module: "stockade:fuel", Name: "refill", Params: []w.ValType{i64}, Results: []w.ValType{i64}}, {Module: "env", Name: "system", Params: i32x1, Results: i32x1}}
	for iface, name := range map[string]string{"config": "get", "exec": "run", "http": "fetch", "kv": "set", "log": "log", "search": "run", "secrets": "placeholder"} {
		others = append(others, w.Import{Module: abi.ImportModule(iface), Name: name, Params: i32x1})
	}
	wantMessage := "imports from"
	if t.kind == machine.Plugin {
		wantMessage = "needs functions"
	}
	return compileAttack{wantMessage: wantMessage, modules: func() (all [][]byte) {
		for _, imp := range others {
			all = append(all, tinyModule(t.kind, imp, func(b *w.Builder, name string, typ []w.ValType) {
				b.Func(name, nil, typ, nil, bytes.Repeat(w.I32Const(0), len(typ)))
			}))
		}
		return all
	}}.run(t)
}

// hostFunctionAsTool exports an import as the tool's function. A command may import
// unknown functions of WASI, with any type.
func hostFunctionAsTool(t *trial) (string, error) {
	imp, wantMessage := w.Import{Module: "wasi_snapshot_preview1", Name: "none"}, "imported function"
	if t.kind == machine.Plugin {
		imp, wantMessage = w.Import{Module: "extism:host/env", Name: "http_status_code", Results: i32x1}, "no function that can be called"
	}
	return compileAttack{wantMessage: wantMessage, modules: func() [][]byte {
		return [][]byte{tinyModule(t.kind, imp, func(b *w.Builder, name string, _ []w.ValType) { b.ExportFunc(name, 0) })}
	}}.run(t)
}

// tinyModule returns a command or a plugin with one import. function adds the function
// that the host calls, with the given name and results.
func tinyModule(k Kind, imp w.Import, function func(b *w.Builder, name string, results []w.ValType)) []byte {
	b := w.New()
	b.ImportFunc(imp.Module, imp.Name, imp.Params, imp.Results)
	if k == machine.Plugin {
		b.ImportFunc("extism:host/env", "reset", nil, nil)
	}
	b.Memory(1, -1)
	b.ExportMemory(abi.ExportMemory)
	if k == machine.Plugin {
		function(b, toolName, i32x1)
	} else {
		function(b, "_start", nil)
	}
	return b.Bytes()
}

// compiledCode has a guest compiled into a directory of the attack, and returns the
// largest file there, the native code.
func (t *trial) compiledCode() (g Guest, file string, err error) {
	g.CacheDir = t.hostPath("compiled")
	if err := errors.Join(os.Mkdir(g.CacheDir, 0o700), t.noteState("compiled")); err != nil {
		return g, "", newUntried("%v", err)
	}
	if _, err := t.runReport(g, newHarmlessScript()); err != nil {
		return g, "", err
	}
	var largest int64
	err = filepath.WalkDir(g.CacheDir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		if fi, err := d.Info(); err == nil && fi.Size() > largest {
			largest, file = fi.Size(), name
		}
		return nil
	})
	if err != nil || file == "" {
		return g, "", newUntried("no compiled code is kept: %v", err)
	}
	return g, file, nil
}

// compiledChanged appends a byte to the native code, which would be harmless to run.
func compiledChanged(t *trial) (string, error) {
	g, file, err := t.compiledCode()
	if err != nil {
		return "", err
	}
	good, err := os.ReadFile(file)
	if err == nil {
		err = os.WriteFile(file, append(slices.Clone(good), 'x'), 0o600)
	}
	if err != nil {
		return "", newUntried("%v", err)
	}
	if _, err := t.runReport(g, newHarmlessScript()); err != nil {
		return "", err
	}
	if now, err := os.ReadFile(file); err == nil && !bytes.Equal(now, good) {
		return "", errors.New("what was changed has run, and stays")
	}
	return "cache: sums of its files; the module is compiled again", nil
}

// compiledOfOthers makes the native code writable for other users, and changes nothing
// else.
func compiledOfOthers(t *trial) (string, error) {
	g, file, err := t.compiledCode()
	if err == nil {
		if err = os.Chmod(file, 0o666); err != nil {
			err = newUntried("%v", err)
		}
	}
	if err != nil {
		return "", err
	}
	o := t.target.Run(t.ctx, t.withModule(g.withScript(newHarmlessScript())))
	switch {
	case o.Err == nil && o.Result.Err == nil:
		return "", errors.New("it has run")
	case o.Err == nil || !strings.Contains(o.Err.Error(), "cannot be trusted"):
		return "", newUntried("something else stopped it: %s, %v", o.Result.Summary(), o.Err)
	}
	return "cache: what others can write cannot be trusted", nil
}

// compileTimeBomb needs two hundred seconds of processor time, and little memory.
const compileTimeBomb = "nested loops x locals, 32 x 125, 250 times"

// withSection returns a good module in which the section id has another payload.
func withSection(id byte, payload []byte) []byte {
	good := w.Tool(w.ToolOptions{})
	m, err := wasm.Decode(good)
	if err != nil {
		return nil
	}
	out := w.Header()
	for _, s := range m.Sections {
		p := s.Payload
		if s.ID == id {
			p = payload
		}
		out = append(out, w.Section(s.ID, p)...)
	}
	return out
}
