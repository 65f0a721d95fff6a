package sandbox_test

import (
	"encoding/binary"
	"slices"

	w "github.com/stockade-dev/stockade/host/wasm/wasmtest"
)

// Addresses of data for the bodies below, in the scratch space of wasmtest above the results.
const (
	pathAt  = 8192
	argvAt  = 16384
	resultA = 20480
	dataAt  = 4 << 16 // above the heap, for modules with bigData
)

func le32(words ...uint32) []byte {
	var out []byte
	for _, v := range words {
		out = binary.LittleEndian.AppendUint32(out, v)
	}
	return out
}

func code(pieces ...[]byte) []byte { return slices.Concat(pieces...) }

func i32s(n int) []w.ValType { return slices.Repeat([]w.ValType{w.I32}, n) }

func wasi(name string, params ...w.ValType) w.Import {
	return w.Import{Module: "wasi_snapshot_preview1", Name: name, Params: params, Results: []w.ValType{w.I32}}
}

func own(iface, name string, params ...w.ValType) w.Import {
	return w.Import{Module: "stockade:tool/" + iface + "@0.1.0", Name: name, Params: params}
}

// touch returns code that creates the file of an absolute path, by import 0.
func touch(path string) ([]w.Import, []byte, w.Segment) {
	imp := wasi("path_open", w.I32, w.I32, w.I32, w.I32, w.I32, w.I64, w.I64, w.I32, w.I32)
	const create, mayWrite = 1, 64
	path = path[1:] // relative to the preopen
	return []w.Import{imp}, code(
		w.I32Const(3), w.I32Const(0), w.I32Const(pathAt), w.I32Const(int32(len(path))), w.I32Const(create),
		w.I64Const(mayWrite), w.I64Const(0), w.I32Const(0), w.I32Const(resultA), w.Call(0), w.Drop(),
	), w.Segment{Offset: pathAt, Bytes: []byte(path)}
}

// touches returns a module whose tool creates a file.
func touches(path string) w.ToolOptions {
	imports, body, segment := touch(path)
	return w.ToolOptions{Imports: imports, Data: []w.Segment{segment}, Call: code(body, w.ReturnOK("made"))}
}

// touchAtStart returns a module whose start section tries to create a file.
func touchAtStart(path string) w.ToolOptions {
	imports, body, segment := touch(path)
	return w.ToolOptions{Imports: imports, Data: []w.Segment{segment}, Edit: func(b *w.Builder) {
		b.Start(b.Func("", nil, nil, nil, body))
	}}
}

// execRun is exec.run as an import.
func execRun() w.Import { return own("exec", "run", i32s(9)...) }

// runs is a body that calls import 0, exec.run, with bash and a command, and
// leaves the result at resultA.
func runs(command string) ([]byte, w.Segment) {
	argv := []string{"bash", "-c", command}
	var head, text []byte
	for _, s := range argv {
		head = append(head, le32(argvAt+uint32(8*len(argv)+len(text)), uint32(len(s)))...)
		text = append(text, s...)
	}
	return code(
		w.I32Const(argvAt), w.I32Const(int32(len(argv))), w.I32Const(0), w.I32Const(0), w.I32Const(0),
		w.I32Const(0), w.I32Const(0), w.I32Const(0), w.I32Const(resultA), w.Call(0),
	), w.Segment{Offset: argvAt, Bytes: append(head, text...)}
}

// runsCommand returns a module whose call function starts a process and answers "ran" or
// "refused".
func runsCommand(command string, times int) w.ToolOptions {
	body, segment := runs(command)
	return w.ToolOptions{
		Imports: []w.Import{execRun()}, Data: []w.Segment{segment},
		Call: code(slices.Concat(slices.Repeat([][]byte{body}, times)...),
			w.I32Const(resultA), w.I32Load8U(0), w.If(w.ReturnOK("refused"), w.Return()), w.ReturnOK("ran")),
		Edit: importRealloc,
	}
}

// importRealloc exports the allocator, which is the function after import 0,
// for the results of imports too.
func importRealloc(b *w.Builder) { b.ExportFunc("cabi_realloc", 1) }

// counter returns a module that answers with the number of its calls so far.
func counter() w.ToolOptions {
	const text = w.ScratchBase + 24 + w.ContentBytes
	return w.ToolOptions{Call: code(
		w.I32Const(pathAt), w.I32Const(pathAt), w.I32Load(0), w.I32Const(1), w.I32Add(), w.I32Store(0),
		w.ReturnOK("0"),
		w.I32Const(text), w.I32Const(pathAt), w.I32Load(0), w.I32Const('0'), w.I32Add(), w.I32Store8(0),
	)}
}

// bigStructured returns a module whose structured value is too large for code.
func bigStructured(json []byte) w.ToolOptions {
	return w.ToolOptions{
		Call:      w.ReturnWords(w.ResultOK, w.ScratchBase, 0, 1, dataAt, uint32(len(json))),
		Data:      []w.Segment{{Offset: dataAt, Bytes: json}},
		MemoryMin: 5 + len(json)>>16,
	}
}

// repeat returns a body that runs another one n times. It needs one more local.
func repeat(n int32, body []byte) []byte {
	return w.Loop(body, w.LocalGet(w.FirstLocal), w.I32Const(1), w.I32Add(), w.LocalTee(w.FirstLocal),
		w.I32Const(n), w.I32LtU(), w.BrIf(0))
}
