//go:build bench

package main

// The library is linked by wasmtime-go, whose own wrapping knows neither the
// pooling allocator nor how to prepare instances. Until that link its functions
// are unresolved.

// #cgo LDFLAGS: -Wl,--unresolved-symbols=ignore-all
// #include <stdlib.h>
// #include "pooled.h"
import "C"

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"os"
	"unsafe"

	_ "github.com/bytecodealliance/wasmtime-go/v37"
	"github.com/stockade-dev/stockade/host/sandbox"
	"github.com/stockade-dev/stockade/host/sandbox/abi"
	"github.com/stockade-dev/stockade/host/wasm"
)

// wasmtimeWay makes an instance for each call, from a pool and with fuel. The module
// begins in the same state as our own instances.
type wasmtimeWay struct {
	pooled       *C.pooled
	dir          *C.char
	name, args   []byte
	fuel, millis uint64
}

func newWasmtime(s *setup, j job) (_ way, err error) {
	code, err := os.ReadFile(s.files[j.name])
	if err != nil {
		return nil, err
	}
	c := s.calls[j.name]
	memory, globals, err := sandbox.Snapshot(context.Background(), s.box, c.Module)
	if err != nil {
		return nil, err
	}
	if code, err = preinitialise(code, memory, globals); err != nil {
		return nil, err
	}
	m, err := wasm.Decode(code)
	if err != nil {
		return nil, err
	}
	limits := c.Grant.Limits()
	var f C.failure
	w := &wasmtimeWay{
		pooled: C.pooled_new((*C.uint8_t)(unsafe.SliceData(code)), C.size_t(len(code)), C.uint64_t(limits.MemoryBytes), &f),
		dir:    C.CString(s.dir), name: []byte(j.name), args: []byte(j.arguments("/")),
		fuel: limits.Fuel, millis: uint64(limits.Timeout.Milliseconds()),
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.close())
		}
	}()
	for _, i := range m.Imports {
		if i.Module == "wasi_snapshot_preview1" || i.Kind != wasm.KindFunc || f.text[0] != 0 {
			continue
		}
		t := m.Types[i.Type]
		module, name, params, results := []byte(i.Module), []byte(i.Name), types(t.Params), types(t.Results)
		C.pooled_import(w.pooled, text(module), text(name), text(params), text(results), &f)
	}
	if f.text[0] == 0 {
		C.pooled_ready(w.pooled, &f)
	}
	return w, failureError(&f)
}

func types(list []wasm.ValType) []byte {
	out := make([]byte, len(list))
	for i, t := range list {
		out[i] = byte(t)
	}
	return out
}

func text(b []byte) C.string {
	return C.string{data: (*C.char)(unsafe.Pointer(unsafe.SliceData(b))), size: C.size_t(len(b))}
}

func failureError(f *C.failure) error {
	if f.text[0] == 0 {
		return nil
	}
	return errors.New("wasmtime: " + C.GoString(&f.text[0]))
}

func (w *wasmtimeWay) call(context.Context) ([]byte, error) {
	var c C.pooled_call
	var f C.failure
	C.pooled_begin(w.pooled, w.dir, C.uint64_t(w.fuel), C.uint64_t(w.millis), text(w.name), text(w.args), &c, &f)
	defer C.pooled_end(&c)
	if err := failureError(&f); err != nil {
		return nil, err
	}
	return copyResult(unsafe.Slice((*byte)(c.memory), c.size), uint32(c.result))
}

// copyResult copies the JSON of a result out of the guest's memory.
func copyResult(memory []byte, at uint32) ([]byte, error) {
	word := func(at uint32) uint32 { return binary.LittleEndian.Uint32(memory[at:]) }
	const optionPayload = 4
	structured := at + abi.ResultPayload + abi.OutputStructured
	if memory[at] != 0 || memory[structured] != 1 {
		return nil, errors.New("the tool failed")
	}
	from, n := word(structured+optionPayload), word(structured+optionPayload+4)
	return bytes.Clone(memory[from : from+n]), nil
}

func (w *wasmtimeWay) close() error {
	C.pooled_delete(w.pooled)
	C.free(unsafe.Pointer(w.dir))
	return nil
}
