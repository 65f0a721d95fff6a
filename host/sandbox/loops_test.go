package sandbox_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/stockade-dev/stockade/host/sandbox/abi"
	"github.com/stockade-dev/stockade/host/sandbox/dialect/extism"
	"github.com/stockade-dev/stockade/host/sandbox/hostmod"
	"github.com/stockade-dev/stockade/host/sandbox/wasi/preview1"
	"github.com/stockade-dev/stockade/host/tool"
	"github.com/stockade-dev/stockade/host/wasm"
	w "github.com/stockade-dev/stockade/host/wasm/wasmtest"
)

// endless describes guests that do one thing for ever, whatever its result. They are called
// again when they end.
type endless struct {
	name string
	mods func(tb testing.TB) []*tool.Module
}

// always are loops that make test runs as well.
var always = []string{"native ref.func", "plugin alloc", "plugin var_set", "servlet v1 alloc", "servlet v2 alloc"}

// Addresses of the guests' arguments for functions.
const (
	loopText   = 0x10_0000 // 1 MiB of buffers of 32 KiB each, as a list of I/O vectors
	loopName   = 0x20_0000 // "naaaaaa", a name that changes
	loopResult = 0x20_1000 // what functions return
	loopSpace  = 0x21_0000 // the only address that the allocator returns
	loopPages  = 0x40
)

func loops() []endless {
	return slices.Concat(instructionLoops(), nativeLoops(), wasiLoops("native"), wasiLoops("command"), fileLoops(), pluginLoops())
}

// loopModule returns a native tool that repeats some code for ever.
func loopModule(imports []w.Import, body []byte, edit func(*w.Builder)) *tool.Module {
	return probe(w.ToolOptions{
		Imports: imports, MemoryMin: loopPages, Realloc: w.I32Const(loopSpace), Call: loop(body),
		Locals: []w.ValType{w.I32, w.I32},
		Data:   []w.Segment{{Offset: loopText, Bytes: vectors()}, {Offset: loopName, Bytes: []byte("naaaaaa")}},
		Edit: func(b *w.Builder) {
			b.ExportFunc("cabi_realloc", uint32(len(imports)))
			if edit != nil {
				edit(b)
			}
		},
	})
}

// vectors returns 1 KiB of I/O vectors.
func vectors() (out []byte) {
	for range 128 {
		out = append(out, le32(loopText, 32<<10)...)
	}
	return out
}

// nextName returns code that changes the name at loopName, which has 16^6 forms.
func nextName() []byte {
	out := code(w.LocalGet(w.FirstLocal), w.I32Const(1), w.I32Add(), w.LocalSet(w.FirstLocal))
	for i := range int32(6) {
		out = code(out, w.I32Const(loopName+1+i), w.LocalGet(w.FirstLocal), w.I32Const(4*i), w.I32ShrU(), w.I32Const(15), w.I32And(),
			w.I32Const('a'), w.I32Add(), w.I32Store8(0))
	}
	return out
}

func constant(t w.ValType, v int) []byte {
	switch t {
	case w.I32:
		return w.I32Const(int32(v))
	case w.I64:
		return w.I64Const(int64(v))
	case w.F32:
		return []byte{0x43, 0, 0, 0x80, 0x3f} // 1
	case w.F64:
		return []byte{0x44, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f}
	case w.V128:
		return append([]byte{0xfd, 12}, make([]byte, 16)...)
	}
	panic(t)
}

// Instructions.

// instructionLoops returns a loop for each instruction for which the engine leaves compiled
// code, or that has to do with tables, and loops of all others.
func instructionLoops() []endless {
	tables := func(b *w.Builder) { b.Table(4, -1); b.Elem(0, 0, 0, 0, 0); b.Elem(0, 0) }
	drop := func(body ...[]byte) []byte { return append(slices.Concat(body...), w.Drop()...) }
	one, zero := w.I32Const(1), w.I32Const(0)
	var out []endless
	for name, body := range map[string][]byte{
		"ref.func":           drop(w.RefFunc(1)),
		"ref.func, kept":     code(zero, w.RefFunc(1), []byte{0x26, 0}),
		"ref.null":           drop(w.RefNull(w.FuncRef)),
		"memory.grow":        code(one, w.MemoryGrow(), w.Drop(), w.MemorySize(), one, w.I32Sub(), w.I32Const(16), w.I32Shl(), one, w.I32Store(0)),
		"memory.grow by all": drop(w.I32Const(1<<15), w.MemoryGrow()),
		"memory.fill":        code(zero, zero, w.I32Const(0), w.MemoryFill(), w.I32Const(loopText), one, w.I32Const(1<<20), w.MemoryFill()),
		"memory.copy":        code(w.I32Const(loopText), w.I32Const(loopName), w.I32Const(1<<20), w.MemoryCopy()),
		"table.grow":         drop(w.RefNull(w.FuncRef), w.I32Const(1000), w.TableGrow(0)),
		"table.grow of func": drop(w.RefFunc(1), one, w.TableGrow(0)),
		"table.get and set":  code(zero, zero, []byte{0x25, 0}, []byte{0x26, 0}),
		"table.fill":         code(zero, w.RefFunc(1), w.I32Const(4), []byte{0xfc, 17, 0}),
		"table.copy":         code(zero, zero, w.I32Const(4), w.TableCopy(0)),
		"table.size":         drop([]byte{0xfc, 16, 0}),
		"table.init":         code(zero, zero, zero, []byte{0xfc, 12, 0, 0}),
		"elem.drop":          code([]byte{0xfc, 13, 1}),
		"call":               drop(w.Call(1)),
		"call_indirect":      code(w.I32Const(8), w.I32Const(8), one, w.I32Const(8), w.I32Const(1), w.CallIndirect(0, 0), w.Drop()),
		"global":             code(w.GlobalGet(0), w.GlobalSet(0), w.GlobalGet(1), w.Drop()),
		"control":            code(w.Block(w.Loop(zero, w.BrIf(0), zero, w.If(w.Nop(), w.Else(), w.Nop()), zero, w.BrTable(1, 0))), zero, one, one, w.Select(), w.Drop()),
		"locals":             code(w.LocalGet(w.FirstLocal), w.LocalTee(w.FirstLocal), w.LocalSet(w.FirstLocal)),
		"unreachable":        w.Unreachable(),
		"nested calls":       code(w.Recurse(2), w.Drop()),
	} {
		out = append(out, endless{"native " + name, func(testing.TB) []*tool.Module {
			return []*tool.Module{loopModule(nil, body, func(b *w.Builder) {
				tables(b)
				b.Global(w.I32, true, w.I32Const(0))
				b.Global(w.FuncRef, false, w.RefFunc(1))
			})}
		}})
	}
	return append(out, endless{"native all other instructions", func(tb testing.TB) []*tool.Module { return plainInstructions(tb) }})
}

// plainInstructions returns loops of all instructions that take numbers and return one. The
// engine tells which these are.
func plainInstructions(tb testing.TB) (out []*tool.Module) {
	ctx := context.Background()
	rt := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter().WithCoreFeatures(api.CoreFeaturesV2))
	defer rt.Close(ctx)
	var params [][]w.ValType
	for _, t := range []w.ValType{w.I32, w.I64, w.F32, w.F64, w.V128} {
		params = append(params, []w.ValType{t}, []w.ValType{t, t}, []w.ValType{w.I32, t}, []w.ValType{t, w.I32})
	}
	params = append(params, nil, []w.ValType{w.V128, w.F32}, []w.ValType{w.V128, w.F64}, []w.ValType{w.V128, w.I64}, slices.Repeat([]w.ValType{w.V128}, 3))
	immediates := [][]byte{nil, {0}, {0, 0}, {0, 0, 0}, make([]byte, 16), {0, 0, 0, 0}, make([]byte, 8)}
	valid := func(op []byte) []byte {
		for _, imm := range immediates {
			for _, p := range params {
				body := code()
				for _, t := range p {
					body = append(body, constant(t, w.ScratchBase)...)
				}
				body = code(body, op, imm)
				for _, end := range [][]byte{w.Drop(), nil} {
					b := w.New()
					b.Memory(1, 1)
					b.Func("", nil, nil, nil, body, end)
					if c, err := rt.CompileModule(ctx, b.Bytes()); err == nil {
						_ = c.Close(ctx)
						return code(body, end)
					}
				}
			}
		}
		return nil
	}
	n := 0
	var body []byte
	flush := func() {
		if len(body) > 0 {
			out, body = append(out, loopModule(nil, body, nil)), nil
		}
	}
	for op := range wasm.OpAtomic {
		text := []byte{byte(op)}
		switch {
		case op >= wasm.OpVector:
			text = w.Vector(uint32(op - wasm.OpVector))
		case op >= wasm.OpMisc:
			text = append([]byte{0xfc}, w.U32(uint32(op-wasm.OpMisc))...)
		case op >= 0xfc || op < 0x28: // prefixes; control, which has loops of its own
			continue
		}
		if one := valid(text); one != nil {
			if body = append(body, one...); len(body) > 4096 {
				flush()
			}
			n++
		}
	}
	flush()
	// 23 loads and stores, 2 of memory, 4 constants, 123 and 5 on numbers, 8 that saturate,
	// 236 on vectors.
	if n < 390 {
		tb.Errorf("only %d instructions were found", n)
	}
	return out
}

// Functions of the host.

// patterns are arguments for a function, by the index of the parameter: zeros; pointers and
// lengths; pointers and lengths behind a descriptor, of stdout or of a directory.
var patterns = []func(i int) int{
	func(int) int { return 0 },
	func(i int) int { return []int{loopText, 64}[i%2] },
	func(i int) int { return []int{loopText, 1 << 20}[i%2] },
	behind(1, 64), behind(3, 4096),
}

func behind(fd, n int) func(int) int {
	return func(i int) int {
		if i == 0 {
			return fd
		}
		return []int{loopText, n}[(i-1)%2]
	}
}

// given returns a call of function 0 with a pattern as arguments, and drops its results.
func given(sig abi.Signature, pattern func(int) int) (out []byte) {
	for i, t := range sig.Params {
		out = append(out, constant(w.ValType(t), pattern(i))...)
	}
	out = append(out, w.Call(0)...)
	for range sig.Results {
		out = append(out, w.Drop()...)
	}
	return out
}

func valTypes(types []api.ValueType) (out []w.ValType) {
	for _, t := range types {
		out = append(out, w.ValType(t))
	}
	return out
}

func nativeLoops() (out []endless) {
	imported := func(f hostmod.Function) w.Import {
		return w.Import{Module: abi.ImportModule(f.Interface), Name: f.Name, Params: valTypes(f.Params), Results: valTypes(f.Results)}
	}
	for _, f := range hostmod.Functions {
		out = append(out, endless{"native " + f.Interface + "." + f.Name, func(testing.TB) (mods []*tool.Module) {
			for _, p := range patterns[:3] {
				mods = append(mods, loopModule([]w.Import{imported(f)}, given(f.Signature, p), nil))
			}
			named := given(f.Signature, func(i int) int { return []int{loopName, 7}[i%2] })
			return append(mods, loopModule([]w.Import{imported(f)}, code(nextName(), named), nil))
		}})
	}
	return out
}

func wasiLoops(kind string) (out []endless) {
	functions := preview1.Functions()
	for _, name := range slices.Sorted(maps.Keys(functions)) {
		sig := functions[name]
		imp := w.Import{Module: preview1.ModuleName, Name: name, Params: valTypes(sig.Params), Results: valTypes(sig.Results)}
		out = append(out, endless{kind + " " + name, func(tb testing.TB) (mods []*tool.Module) {
			for i, p := range patterns {
				switch {
				case kind == "native":
					mods = append(mods, loopModule([]w.Import{imp}, given(sig, p), nil))
				case i > 1: // the code is the same
					mods = append(mods, loopCommand(tb, imp, given(sig, p)))
				}
			}
			return mods
		}})
	}
	return out
}

func loopCommand(tb testing.TB, imp w.Import, body []byte) *tool.Module {
	b := w.New()
	b.ImportFunc(imp.Module, imp.Name, imp.Params, imp.Results)
	b.Memory(loopPages, -1)
	b.ExportMemory("memory")
	b.Func("_start", nil, nil, nil, w.Loop(body, w.Br(0)))
	b.Data(loopText, vectors())
	return described(tb, b.Bytes(), tool.Run{Args: []string{"a", "b"}})
}

// fileLoops returns loops that use files, of which the directory "d" has many.
func fileLoops() (out []endless) {
	i32, i64 := w.I32, w.I64
	open := wasi("path_open", i32, i32, i32, i32, i32, i64, i64, i32, i32)
	opens := func(fd, at, n, how int32) []byte {
		return code(w.I32Const(fd), w.I32Const(0), w.I32Const(at), w.I32Const(n), w.I32Const(how), w.I64Const(1<<30-1), w.I64Const(1<<30-1), w.I32Const(0),
			w.I32Const(loopResult), w.Call(0), w.Drop())
	}
	named := func(extra ...[]byte) []byte {
		return code(w.I32Const(3), w.I32Const(loopName), w.I32Const(7), slices.Concat(extra...))
	}
	const create, directory = 1, 2
	opened := code(w.I32Const(loopResult), w.I32Load(0))
	for name, c := range map[string]struct {
		imports []w.Import
		body    []byte
	}{
		"directories left open": {[]w.Import{open}, opens(3, loopName, 1, directory)},
		"a directory opened":    {[]w.Import{open, wasi("fd_close", i32)}, code(opens(3, loopName, 1, directory), opened, w.Call(1), w.Drop())},
		"files created":         {[]w.Import{open, wasi("fd_close", i32)}, code(nextName(), opens(3, loopName, 7, create), opened, w.Call(1), w.Drop())},
		"directories created":   {[]w.Import{wasi("path_create_directory", i32, i32, i32)}, code(nextName(), named(w.Call(0), w.Drop()))},
		"links created":         {[]w.Import{wasi("path_symlink", i32, i32, i32, i32, i32)}, code(nextName(), w.I32Const(loopName), w.I32Const(7), named(w.Call(0), w.Drop()))},
		"files looked for":      {[]w.Import{wasi("path_filestat_get", i32, i32, i32, i32, i32)}, code(nextName(), w.I32Const(3), w.I32Const(0), w.I32Const(loopName), w.I32Const(7), w.I32Const(loopResult+64), w.Call(0), w.Drop())},
		"a file written":        {[]w.Import{open, wasi("fd_write", i32, i32, i32, i32)}, code(opens(3, loopName, 7, create), w.Loop(opened, w.I32Const(loopText), w.I32Const(32), w.I32Const(loopResult+64), w.Call(1), w.I32Eqz(), w.BrIf(0)))},
		"far apart in a file":   {[]w.Import{open, wasi("fd_pwrite", i32, i32, i32, i64, i32)}, code(opens(3, loopName, 7, create), w.Loop(opened, w.I32Const(loopText), w.I32Const(1), w.LocalGet(w.FirstLocal), w.I32Const(1<<16), w.I32Add(), w.LocalTee(w.FirstLocal), []byte{0xad}, w.I32Const(loopResult+64), w.Call(1), w.I32Eqz(), w.BrIf(0)))},
		"a directory read":      {[]w.Import{open, wasi("fd_readdir", i32, i32, i32, i64, i32)}, code(opens(3, loopName, 1, directory), w.Loop(opened, w.I32Const(loopSpace), w.I32Const(1<<20), w.I64Const(0), w.I32Const(loopResult+64), w.Call(1), w.I32Eqz(), w.BrIf(0)))},
		"a name of it read":     {[]w.Import{open, wasi("fd_readdir", i32, i32, i32, i64, i32)}, code(opens(3, loopName, 1, directory), w.Loop(opened, w.I32Const(loopSpace), w.I32Const(1), w.I64Const(0), w.I32Const(loopResult+64), w.Call(1), w.I32Eqz(), w.BrIf(0)))},
		"four thousand clocks":  {[]w.Import{wasi("poll_oneoff", i32, i32, i32, i32)}, code(w.I32Const(loopSpace), w.I32Const(loopSpace+0x8_0000), w.I32Const(4096), w.I32Const(loopResult+64), w.Call(0), w.Drop())},
	} {
		out = append(out, endless{"native files: " + name, func(testing.TB) []*tool.Module { return []*tool.Module{loopModule(c.imports, c.body, nil)} }})
	}
	return out
}

// Plugins.

func pluginLoops() (out []endless) {
	types := func(name string) abi.Signature {
		module, short := "extism:host/env", name
		if rest, ok := strings.CutPrefix(name, "user:"); ok {
			module, short = "extism:host/user", rest
		}
		sig, ok := extism.Dialect{}.ImportSignature(module, short)
		if !ok {
			panic(name)
		}
		return sig
	}
	call := func(p *plugin, name string, params ...[]byte) []byte {
		out := p.call(name, params...)
		for range types(name).Results {
			out = append(out, w.Drop()...)
		}
		return out
	}
	alloc := func(size int64) func(*plugin) []byte {
		return func(p *plugin) []byte { return call(p, "alloc", w.I64Const(size)) }
	}
	// fresh calls a function with blocks of two sizes, which the function may free.
	fresh := func(name string, size int64) func(*plugin) []byte {
		return func(p *plugin) []byte {
			body := code(p.call("alloc", w.I64Const(16)), w.LocalSet(0), p.call("alloc", w.I64Const(size)), w.LocalSet(1),
				p.call("store_u64", w.LocalGet(0), w.LocalGet(2)), w.LocalGet(2), w.I64Const(1), []byte{0x7c}, w.LocalSet(2))
			var params [][]byte
			for i, t := range types(name).Params {
				if w.ValType(t) == w.I64 {
					params = append(params, w.LocalGet(uint32(i)))
				} else {
					params = append(params, w.I32Const(1))
				}
			}
			return code(body, call(p, name, params...), call(p, "free", w.LocalGet(0)), call(p, "free", w.LocalGet(1)))
		}
	}
	used := func(p *plugin) []byte { // each page of it
		return p.call("store_u64", p.call("alloc", w.I64Const(4096)), w.I64Const(1))
	}
	bodies := map[string][]func(*plugin) []byte{"alloc": {alloc(1), used, alloc(1 << 20), alloc(48 << 20)}}
	for _, name := range pluginFunctions {
		if name != "alloc" {
			bodies[name] = []func(*plugin) []byte{fresh(name, 16), fresh(name, 60<<10), fresh(name, 1<<20-100)}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(bodies)) {
		out = append(out, endless{"plugin " + name, func(testing.TB) (mods []*tool.Module) {
			for _, body := range bodies[name] {
				mods = append(mods, one(func(p *plugin) []byte { return loop(body(p)) }))
			}
			return mods
		}})
	}
	for kind, exports := range map[string][2]string{"servlet v1": {"describe", "call"}, "servlet v2": {"list_tools", "call_tool"}} {
		for _, name := range []string{"alloc", "var_set"} {
			out = append(out, endless{kind + " " + name, func(testing.TB) (mods []*tool.Module) {
				for _, body := range bodies[name] {
					p := &plugin{}
					again := loop(body(p))
					mods = append(mods, p.module(map[string][]byte{exports[0]: w.I32Const(0), exports[1]: again}))
				}
				return mods
			}})
		}
	}
	return out
}

// pluginFunctions are the functions of Extism and hyper-mcp.
var pluginFunctions = []string{
	"alloc", "free", "length", "length_unsafe", "load_u8", "load_u64", "store_u8", "store_u64", "input_load_u8", "input_load_u64", "input_length",
	"input_offset", "output_set", "output_length", "output_offset", "error_set", "error_get", "reset", "memory_bytes", "get_log_level",
	"config_get", "var_get", "var_set", "http_request", "http_status_code", "http_headers",
	"log_trace", "log_debug", "log_info", "log_warn", "log_error",
	"user:notify_progress", "user:notify_logging_message", "user:notify_tool_list_changed", "user:notify_prompt_list_changed",
	"user:notify_resource_list_changed", "user:notify_resource_updated", "user:notify_url_elicitation_completed",
	"user:create_elicitation", "user:create_message", "user:list_roots", "user:get_access_token", "user:get_keyring_secret",
}

// TestEachLoopIsOne: all names differ, and each loop is a valid module.
func TestEachLoopIsOne(t *testing.T) {
	seen := map[string]bool{}
	for _, l := range loops() {
		if seen[l.name] {
			t.Errorf("two loops are named %q", l.name)
		}
		seen[l.name] = true
	}
	for _, name := range always {
		if !seen[name] {
			t.Errorf("there is no loop named %q", name)
		}
	}
	if len(seen) < 150 {
		t.Error(fmt.Sprint(len(seen), " loops"))
	}
}
