package main

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/stockade-dev/stockade/host/wasm/wasmtest"
)

// foreignModules are modules that were made for other hosts: commands of WASI and plugins of
// Extism.
func foreignModules() map[string]func(data string) []byte {
	return map[string]func(string) []byte{"says": says, "shows": shows, "plugin": plugged, "servlet": servlet}
}

// Addresses at which the modules below keep their data.
const (
	atSizes, atVec, atCount, atFD = 16, 32, 48, 56
	atArgv, atArgs, atInput       = 1024, 4096, 16384
	inputBytes                    = 8192
)

// assembled is a command with the first functions of WASI that it imports, and data of
// which nothing comes.
func assembled(data string, functions []string, params [][]wasmtest.ValType, locals int, body ...[]byte) []byte {
	b := wasmtest.New()
	for i, name := range functions {
		results := []wasmtest.ValType{wasmtest.I32}
		if name == "proc_exit" {
			results = nil
		}
		b.ImportFunc("wasi_snapshot_preview1", name, params[i], results)
	}
	b.Memory(1, 2)
	b.ExportMemory("memory")
	b.Data(40000, []byte(data+"."))
	var own []wasmtest.ValType
	for range locals {
		own = append(own, wasmtest.I32)
	}
	b.Func("_start", nil, nil, own, body...)
	return b.Bytes()
}

func i32s(n int) (out []wasmtest.ValType) {
	for range n {
		out = append(out, wasmtest.I32)
	}
	return out
}

func seq(pieces ...[]byte) (out []byte) {
	for _, p := range pieces {
		out = append(out, p...)
	}
	return out
}

// says is a command that prints its name, its arguments and what it reads, with a "|"
// behind each but the last.
func says(data string) []byte {
	const argsSizes, argsGet, read, write = 0, 1, 2, 3
	const i = 0
	at := wasmtest.I32Const
	size := seq(at(atSizes+4), wasmtest.I32Load(0))
	vec := func(address, size []byte) []byte {
		return seq(at(atVec), address, wasmtest.I32Store(0), at(atVec), size, wasmtest.I32Store(4))
	}
	piped := wasmtest.Loop(
		at(atArgs), wasmtest.LocalGet(i), wasmtest.I32Add(), wasmtest.I32Load8U(0), wasmtest.I32Eqz(), wasmtest.If(
			at(atArgs), wasmtest.LocalGet(i), wasmtest.I32Add(), at('|'), wasmtest.I32Store8(0)),
		wasmtest.LocalGet(i), at(1), wasmtest.I32Add(), wasmtest.LocalTee(i), size, wasmtest.I32LtU(), wasmtest.BrIf(0))
	return assembled(data, []string{"args_sizes_get", "args_get", "fd_read", "fd_write"}, [][]wasmtest.ValType{i32s(2), i32s(2), i32s(4), i32s(4)}, 1,
		at(atSizes), at(atSizes+4), wasmtest.Call(argsSizes), wasmtest.Drop(), at(atArgv), at(atArgs), wasmtest.Call(argsGet), wasmtest.Drop(), piped,
		vec(at(atArgs), size), at(1), at(atVec), at(1), at(atCount), wasmtest.Call(write), wasmtest.Drop(),
		vec(at(atInput), at(inputBytes)), at(0), at(atVec), at(1), at(atCount), wasmtest.Call(read), wasmtest.Drop(),
		vec(at(atInput), seq(at(atCount), wasmtest.I32Load(0))), at(1), at(atVec), at(1), at(atCount), wasmtest.Call(write), wasmtest.Drop())
}

// shows is a command that prints the file that its first argument names, or ends with the
// number of the error. Like the library of Zig it opens any path below descriptor 3.
func shows(data string) []byte {
	const argsSizes, argsGet, open, read, write, exit = 0, 1, 2, 3, 4, 5
	const errno = 0
	at := wasmtest.I32Const
	path := seq(at(atArgv+4), wasmtest.I32Load(0))
	size := seq(at(atArgs-1), at(atSizes+4), wasmtest.I32Load(0), wasmtest.I32Add(), path, wasmtest.I32Sub())
	check := seq(wasmtest.LocalTee(errno), wasmtest.If(wasmtest.LocalGet(errno), wasmtest.Call(exit)))
	const mayRead = 1 << 1
	params := [][]wasmtest.ValType{i32s(2), i32s(2), append(append(i32s(5), wasmtest.I64, wasmtest.I64), i32s(2)...), i32s(4), i32s(4), i32s(1)}
	return assembled(data, []string{"args_sizes_get", "args_get", "path_open", "fd_read", "fd_write", "proc_exit"}, params, 1,
		at(atSizes), at(atSizes+4), wasmtest.Call(argsSizes), wasmtest.Drop(), at(atArgv), at(atArgs), wasmtest.Call(argsGet), wasmtest.Drop(),
		at(3), at(1), path, size, at(0), wasmtest.I64Const(mayRead), wasmtest.I64Const(0), at(0), at(atFD), wasmtest.Call(open), check,
		at(atVec), at(atInput), wasmtest.I32Store(0), at(atVec), at(inputBytes), wasmtest.I32Store(4),
		at(atFD), wasmtest.I32Load(0), at(atVec), at(1), at(atCount), wasmtest.Call(read), check,
		at(atVec), at(atCount), wasmtest.I32Load(0), wasmtest.I32Store(4), at(1), at(atVec), at(1), at(atCount), wasmtest.Call(write), check)
}

// kernel are functions of Extism's host, with their types.
var kernel = []struct {
	name            string
	params, results int
}{{"input_offset", 0, 1}, {"input_length", 0, 1}, {"output_set", 2, 0}, {"alloc", 1, 1}, {"store_u8", 2, 0}, {"config_get", 1, 1}, {"length", 1, 1}}

const (
	inputOffset = iota
	inputLength
	outputSet
	alloc
	storeU8
	configGet
	length
)

// exported is a function of a plugin.
type exported struct {
	name string
	body []byte
}

// extism is a plugin with some functions, each without parameters and with one result.
func extism(data string, functions ...exported) []byte {
	i64s := func(n int) (out []wasmtest.ValType) {
		for range n {
			out = append(out, wasmtest.I64)
		}
		return out
	}
	b := wasmtest.New()
	for _, f := range kernel {
		params := i64s(f.params)
		if f.name == "store_u8" {
			params[1] = wasmtest.I32
		}
		b.ImportFunc("extism:host/env", f.name, params, i64s(f.results))
	}
	b.Memory(1, 2)
	b.ExportMemory("memory")
	b.Data(64, []byte(data+"."))
	for _, f := range functions {
		b.Func(f.name, nil, i32s(1), i64s(1), f.body, wasmtest.I32Const(0))
	}
	return b.Bytes()
}

// text puts a text into the memory of the host, at an offset that is left in local 0.
func text(s string) []byte {
	out := seq(wasmtest.I64Const(int64(len(s))), wasmtest.Call(alloc), wasmtest.LocalSet(0))
	for i := range len(s) {
		out = append(out, seq(wasmtest.LocalGet(0), wasmtest.I64Const(int64(i)), i64Add, wasmtest.I32Const(int32(s[i])), wasmtest.Call(storeU8))...)
	}
	return out
}

var i64Add = []byte{0x7c}

// plugged returns a plugin with two functions: echo returns its input, and units the
// configuration under that name.
func plugged(data string) []byte {
	return extism(data,
		exported{"echo", seq(wasmtest.Call(inputOffset), wasmtest.Call(inputLength), wasmtest.Call(outputSet))},
		exported{"units", seq(text("units"), wasmtest.LocalGet(0), wasmtest.Call(configGet), wasmtest.LocalTee(0), wasmtest.LocalGet(0), wasmtest.Call(length), wasmtest.Call(outputSet))})
}

// servlet is a plugin for mcp.run that lists one tool, which always says the same.
func servlet(data string) []byte {
	say := func(s string) []byte {
		return seq(text(s), wasmtest.LocalGet(0), wasmtest.I64Const(int64(len(s))), wasmtest.Call(outputSet))
	}
	return extism(data,
		exported{"describe", say(`{"tools":[{"name":"now","description":"The time.","inputSchema":{"type":"object","properties":{}}}]}`)},
		exported{"call", say(`{"content":[{"type":"text","text":"high noon"}]}`)})
}

// published copies a plugin that others have made, of those in the module of Extism's
// SDK for Go:
//
//	published NAME FILE
func published(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: published NAME FILE")
	}
	dir, err := extismSDK()
	ts.Check(err)
	data, err := os.ReadFile(filepath.Join(dir, "wasm", args[0]+".wasm"))
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), data, 0o644))
}

var extismSDK = sync.OnceValues(func() (string, error) {
	cmd := exec.Command("go", "mod", "download", "-json", "github.com/extism/go-sdk")
	cmd.Dir = filepath.Join("..", "..", "host", "internal", "fueltest") // its go.mod requires the SDK
	out, err := cmd.Output()
	var downloaded struct{ Dir string }
	err = errors.Join(err, json.Unmarshal(out, &downloaded))
	return downloaded.Dir, err
})
