//go:build wasip1 && extism

package form

import (
	"encoding/binary"
	"encoding/json"
)

// The functions of Extism's kernel that a plug-in needs
// (https://extism.org/docs/concepts/pdk). Offsets are in the kernel's memory,
// which is copied from and to eight bytes at a time, as Extism's own library
// for Go does it.

//go:wasmimport extism:host/env input_length
func inputLength() uint64

//go:wasmimport extism:host/env input_load_u8
func inputLoad8(at uint64) uint32

//go:wasmimport extism:host/env input_load_u64
func inputLoad64(at uint64) uint64

//go:wasmimport extism:host/env alloc
func alloc(length uint64) uint64

//go:wasmimport extism:host/env store_u8
func store8(at uint64, v uint32)

//go:wasmimport extism:host/env store_u64
func store64(at, v uint64)

//go:wasmimport extism:host/env output_set
func outputSet(at, length uint64)

//go:wasmimport extism:host/env error_set
func errorSet(at uint64)

var run func(in []byte) ([]byte, error)

// Offer makes a job the function of the export "run".
func Offer[In, Out any](_, _ string, job func(In) (Out, error)) {
	run = func(raw []byte) ([]byte, error) {
		var in In
		if err := json.Unmarshal(raw, &in); err != nil {
			return nil, err
		}
		out, err := job(in)
		if err != nil {
			return nil, err
		}
		return json.Marshal(out)
	}
}

// Warm does nothing: every call begins with a new instance.
func Warm(func()) {}

// Main is never called: the module is a library.
func Main() {}

//go:wasmexport run
func exportRun() uint32 {
	out, err := run(input())
	if err != nil {
		errorSet(put([]byte(err.Error())))
		return 1
	}
	outputSet(put(out), uint64(len(out)))
	return 0
}

func input() []byte {
	in := make([]byte, inputLength())
	whole := len(in) &^ 7
	for i := 0; i < whole; i += 8 {
		binary.LittleEndian.PutUint64(in[i:], inputLoad64(uint64(i)))
	}
	for i := whole; i < len(in); i++ {
		in[i] = byte(inputLoad8(uint64(i)))
	}
	return in
}

// put copies bytes to the memory of the kernel and returns their offset.
func put(b []byte) uint64 {
	at := alloc(uint64(len(b)))
	whole := len(b) &^ 7
	for i := 0; i < whole; i += 8 {
		store64(at+uint64(i), binary.LittleEndian.Uint64(b[i:]))
	}
	for i := whole; i < len(b); i++ {
		store8(at+uint64(i), uint32(b[i]))
	}
	return at
}
