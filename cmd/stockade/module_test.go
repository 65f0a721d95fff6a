package main

import (
	"bytes"
	"encoding/binary"
	"maps"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/stockade-dev/stockade/host/wasm/wasmtest"
)

// The memory of the modules below.
const (
	guestFD, guestVec, guestSize = wasmtest.ScratchBase + 4096, wasmtest.ScratchBase + 4104, wasmtest.ScratchBase + 4112
	guestBuffer, guestBytes      = wasmtest.ScratchBase + 8192, 16 << 10
	guestText                    = wasmtest.ScratchBase + 4120
)

// handed returns modules whose tool gets {"p":"/PATH"}. The tool returns the content of
// the file, the names in the directory, or "wrote"; after an error it returns "errno NN".
// The modules know the place of their argument, and no more of JSON.
func handed() map[string]wasmtest.ToolOptions {
	join := func(pieces ...[]byte) []byte { return bytes.Join(pieces, nil) }
	words := func(words ...uint32) (out []byte) {
		for _, w := range words {
			out = binary.LittleEndian.AppendUint32(out, w)
		}
		return out
	}
	i32, i64 := wasmtest.I32, wasmtest.I64
	wasi := func(name string, params ...wasmtest.ValType) wasmtest.Import {
		return wasmtest.Import{Module: "wasi_snapshot_preview1", Name: name, Params: params, Results: []wasmtest.ValType{i32}}
	}
	const errno = wasmtest.FirstLocal
	at := func(address int32) []byte { return wasmtest.I32Const(address) }
	// A text of the memory as the result.
	tell := func(start, size []byte) []byte {
		const list = wasmtest.ScratchBase + 24
		image := join(words(wasmtest.ResultOK, list, 1, 0, 0, 0), words(wasmtest.ContentText, 0, 0, 0, 0, 0, 0, 0, 0))
		return join(wasmtest.StoreBytes(wasmtest.ScratchBase, image), at(list), start, wasmtest.I32Store(4), at(list), size, wasmtest.I32Store(8), at(wasmtest.ScratchBase))
	}
	failed := join(
		wasmtest.StoreBytes(guestText, []byte("errno ")),
		at(guestText), wasmtest.LocalGet(errno), at(10), wasmtest.I32DivU(), at('0'), wasmtest.I32Add(), wasmtest.I32Store8(6),
		at(guestText), wasmtest.LocalGet(errno), wasmtest.LocalGet(errno), at(10), wasmtest.I32DivU(), at(10), wasmtest.I32Mul(), wasmtest.I32Sub(), at('0'), wasmtest.I32Add(), wasmtest.I32Store8(7),
		tell(at(guestText), at(8)), wasmtest.Return())
	check := join(wasmtest.LocalSet(errno), wasmtest.LocalGet(errno), wasmtest.If(failed))
	argument := func(skip int32) []byte {
		return join(wasmtest.LocalGet(wasmtest.ParamArgs), at(skip), wasmtest.I32Add(), wasmtest.LocalGet(wasmtest.ParamArgsLen), at(skip+2), wasmtest.I32Sub())
	}
	open := func(oflags int32, rights int64) []byte {
		return join(at(3), at(1), argument(7), at(oflags), wasmtest.I64Const(rights), wasmtest.I64Const(0), at(0), at(guestFD), wasmtest.Call(0), check)
	}
	fd := join(at(guestFD), wasmtest.I32Load(0))
	size := join(at(guestSize), wasmtest.I32Load(0))
	buffer := []wasmtest.Segment{{Offset: guestVec, Bytes: words(guestBuffer, guestBytes)}}
	pathOpen := wasi("path_open", i32, i32, i32, i32, i32, i64, i64, i32, i32)
	files := func(second wasmtest.Import, data []wasmtest.Segment, code ...[]byte) wasmtest.ToolOptions {
		return wasmtest.ToolOptions{Call: join(code...), Locals: []wasmtest.ValType{i32, i32}, Imports: []wasmtest.Import{pathOpen, second}, Data: data}
	}
	const (
		mayRead, mayWrite, mayList         = 1 << 1, 1 << 6, 1 << 14
		create, directory, truncate        = 1, 2, 8
		i                           uint32 = errno + 1
	)
	// Each entry of a directory begins with numbers: they become blanks.
	readable := wasmtest.Loop(
		at(guestBuffer), wasmtest.LocalGet(i), wasmtest.I32Add(), wasmtest.I32Load8U(0), at('!'), wasmtest.I32Sub(), at('~'-'!'), wasmtest.I32GtU(), wasmtest.If(
			at(guestBuffer), wasmtest.LocalGet(i), wasmtest.I32Add(), at(' '), wasmtest.I32Store8(0)),
		wasmtest.LocalGet(i), at(1), wasmtest.I32Add(), wasmtest.LocalTee(i), size, wasmtest.I32LtU(), wasmtest.BrIf(0))
	return map[string]wasmtest.ToolOptions{
		"reads": files(wasi("fd_read", i32, i32, i32, i32), buffer, open(0, mayRead),
			fd, at(guestVec), at(1), at(guestSize), wasmtest.Call(1), check, tell(at(guestBuffer), size)),
		"lists": files(wasi("fd_readdir", i32, i32, i32, i64, i32), buffer, open(directory, mayList),
			fd, at(guestBuffer), at(guestBytes), wasmtest.I64Const(0), at(guestSize), wasmtest.Call(1), check, readable, tell(at(guestBuffer), size)),
		"writes": files(wasi("fd_write", i32, i32, i32, i32), []wasmtest.Segment{{Offset: guestVec, Bytes: words(guestBuffer, 5)}, {Offset: guestBuffer, Bytes: []byte("wrote")}},
			open(create|truncate, mayWrite), fd, at(guestVec), at(1), at(guestSize), wasmtest.Call(1), check, tell(at(guestBuffer), at(5))),
	}
}

// manifested puts the manifest of a file into a module: what it says of itself and
// asks for. CODE in the environment of the script makes it another module that says
// the same.
func manifested(ts *testscript.TestScript, o wasmtest.ToolOptions, file string) wasmtest.ToolOptions {
	if file != "" {
		o.Manifest = strings.TrimSpace(ts.ReadFile(file))
	}
	if code := ts.Getenv("CODE"); code != "" {
		o.Data = append(o.Data, wasmtest.Segment{Offset: wasmtest.ManifestBase - 64, Bytes: []byte(code)})
	}
	return o
}

// undescribed are modules without a manifest section, which are asked to describe
// themselves.
func undescribed() map[string]wasmtest.ToolOptions {
	return map[string]wasmtest.ToolOptions{
		"undescribed":           {NoSection: true, Call: wasmtest.EchoArgs()},
		"undescribed, for ever": {NoSection: true, Describe: wasmtest.Spin()},
	}
}

func added() map[string]wasmtest.ToolOptions {
	out := handed()
	maps.Copy(out, undescribed())
	return out
}
