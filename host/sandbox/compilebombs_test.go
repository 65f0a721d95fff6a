package sandbox_test

import (
	"bytes"
	"slices"

	w "github.com/stockade-dev/stockade/host/wasm/wasmtest"
)

// Modules that take the compiler minutes or gigabytes. They are given to the
// child as they are, because what is admitted may know their shapes.

// nestedLoops returns n nested loops, with as many locals: 15 s and 1 GB for a thousand, far
// more for two thousand.
func nestedLoops(n int) []byte {
	var body []byte
	for i := range uint32(n) {
		body = slices.Concat(body, []byte{0x03, 0x40}, w.LocalGet(i), w.I64Const(1), []byte{0x7c}, w.LocalSet(i))
	}
	body = append(body, bytes.Repeat(slices.Concat(w.I32Const(0), w.BrIf(0), []byte{0x0b}), n)...)
	return oneFunction(slices.Repeat([]w.ValType{w.I64}, n), body)
}

// branches returns one function of n branches, each the end of a block.
func branches(n int) []byte {
	return oneFunction(nil, bytes.Repeat(slices.Concat(w.I32Const(0), w.BrIf(0)), n))
}

// loads returns functions of many loads: gigabytes.
func loads(functions int) []byte {
	b := w.New()
	b.Memory(1, -1)
	for range functions {
		b.Func("", nil, nil, nil, bytes.Repeat(slices.Concat(w.I32Const(0), w.I32Load(0), w.Drop()), 170_000))
	}
	return b.Bytes()
}

func oneFunction(locals []w.ValType, body []byte) []byte {
	b := w.New()
	b.Memory(1, -1)
	b.Func("", nil, nil, locals, body)
	return b.Bytes()
}
