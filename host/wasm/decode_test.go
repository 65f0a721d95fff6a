package wasm_test

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stockade-dev/stockade/host/wasm"
	"github.com/stockade-dev/stockade/host/wasm/wasmtest"
)

type types = []wasm.ValType

// module joins sections behind a header.
func module(sections ...[]byte) []byte {
	return slices.Concat(append([][]byte{wasmtest.Header()}, sections...)...)
}

func section(id byte, payload ...byte) []byte { return wasmtest.Section(id, payload) }

// full has at least one of everything that Decode records.
func full() []byte {
	b := wasmtest.New()
	b.ImportFunc("env", "log", types{wasm.I32, wasm.I64}, nil)
	b.Memory(2, 10)
	b.Table(3, -1)
	b.Global(wasm.I64, true, wasmtest.I64Const(-1<<63))
	small := b.Func("small", nil, types{wasm.I32}, nil, wasmtest.I32Const(1))
	b.Func("large", types{wasm.F32, wasm.F64}, types{wasm.I32, wasm.I32}, types{wasm.I32},
		wasmtest.I32Const(1<<30), wasmtest.I32Const(-1))
	start := b.Func("", nil, nil, nil)
	b.ExportMemory("memory")
	b.ExportGlobal("g", 0)
	b.ExportFunc("imported", 0)
	b.Start(start)
	b.Elem(0, small, start)
	b.Data(8, []byte("hello"))
	b.Data(16, nil)
	b.Custom("note", []byte("first"))
	b.Custom("note", []byte("second"))
	return b.Bytes()
}

func TestDecodeKeepsTheFactsOfAModule(t *testing.T) {
	data := full()
	m, err := wasm.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	sections := m.Sections
	m.Sections = nil
	for i := range m.Customs {
		if m.Customs[i].Offset == 0 {
			t.Error("custom section without an offset")
		}
		m.Customs[i].Offset = 0
	}
	if len(m.FuncRefs) == 0 {
		t.Error("no index of a function was noted")
	}
	for _, at := range m.FuncRefs {
		if int(data[at]) > 3 {
			t.Errorf("what stands at %d is not the index of a function", at)
		}
	}
	m.FuncRefs = nil
	want := &wasm.Module{
		Raw: data,
		Types: []wasm.FuncType{
			{Params: types{wasm.I32, wasm.I64}, Results: types{}},
			{Params: types{}, Results: types{wasm.I32}},
			{Params: types{wasm.F32, wasm.F64}, Results: types{wasm.I32, wasm.I32}},
			{Params: types{}, Results: types{}},
		},
		Imports:  []wasm.Import{{Module: "env", Name: "log"}},
		Funcs:    []uint32{1, 2, 3},
		Tables:   []wasm.Table{{Elem: wasm.FuncRef, Limits: wasm.Limits{Min: 3}}},
		Memories: []wasm.Limits{{Min: 2, Max: 10, HasMax: true}},
		Exports: []wasm.Export{
			{Name: "small", Index: 1}, {Name: "large", Index: 2}, {Name: "memory", Kind: wasm.KindMemory},
			{Name: "g", Kind: wasm.KindGlobal}, {Name: "imported"},
		},
		Customs:            []wasm.Custom{{Name: "note", Data: []byte("first")}, {Name: "note", Data: []byte("second")}},
		NumGlobals:         1,
		MutableGlobals:     []wasm.Global{{Type: wasm.I64}},
		NumElementSegments: 1,
		NumElements:        2,
		NumDataSegments:    2,
		Count:              [...]int{wasm.KindFunc: 4, wasm.KindTable: 1, wasm.KindMemory: 1, wasm.KindGlobal: 1, wasm.KindTag: 0},
		LargestBody:        12,
		HasStart:           true,
		Start:              3,
	}
	if diff := cmp.Diff(want, m); diff != "" {
		t.Errorf("module (-want +got):\n%s", diff)
	}

	// The sections cover the file without a gap.
	at := len(wasmtest.Header())
	for _, s := range sections {
		if s.Offset != at {
			t.Errorf("section %d begins at %d, want %d", s.ID, s.Offset, at)
		}
		if !bytes.Equal(s.Payload, data[s.PayloadOffset:s.End()]) {
			t.Errorf("section %d: payload is not what stands in the file", s.ID)
		}
		at = s.End()
	}
	if at != len(data) {
		t.Errorf("sections end at %d of %d", at, len(data))
	}

	for name, sig := range map[string]string{
		"small": "() -> i32", "large": "(f32 f64) -> (i32 i32)", "imported": "(i32 i64)",
	} {
		if typ, ok := m.ExportedFunc(name); !ok || typ.String() != sig {
			t.Errorf("%s has the signature %v, %v; want %s", name, typ, ok, sig)
		}
	}
	if _, ok := m.ExportedFunc("memory"); ok {
		t.Error("the memory passes as a function")
	}
	if _, ok := m.FuncType(4); ok {
		t.Error("function 4 of 4 has a type")
	}
}

func TestDecodeReadsImportsOfEachKind(t *testing.T) {
	m, err := wasm.Decode(module(
		section(wasm.SectionType, 1, 0x60, 0, 0),
		wasmtest.Section(wasm.SectionImport, []byte{4},
			wasmtest.Name("m"), wasmtest.Name(""), []byte{0, 0},
			wasmtest.Name("m"), wasmtest.Name("t"), []byte{1, 0x6f, 1, 1, 2},
			wasmtest.Name("m"), wasmtest.Name("x"), []byte{2, 7, 1, 0x80, 0x80, 4},
			wasmtest.Name("m"), wasmtest.Name("g"), []byte{3, 0x7b, 1})))
	if err != nil {
		t.Fatal(err)
	}
	want := []wasm.Import{
		{Module: "m"},
		{Module: "m", Name: "t", Kind: wasm.KindTable, ValType: wasm.ExternRef, Limits: wasm.Limits{Min: 1, Max: 2, HasMax: true}},
		{Module: "m", Name: "x", Kind: wasm.KindMemory, Limits: wasm.Limits{Min: 1, Max: 65536, HasMax: true, Shared: true, Is64: true}},
		{Module: "m", Name: "g", Kind: wasm.KindGlobal, ValType: wasm.V128, Mutable: true},
	}
	if diff := cmp.Diff(want, m.Imports); diff != "" {
		t.Errorf("imports (-want +got):\n%s", diff)
	}
}

func TestDecodeAcceptsEverySegmentAndConstant(t *testing.T) {
	zero := []byte{0x41, 0, 0x0b}
	data := module(
		section(wasm.SectionType, 1, 0x60, 0, 0),
		section(wasm.SectionFunction, 1, 0),
		section(wasm.SectionTable, 1, 0x70, 0, 1),
		section(wasm.SectionMemory, 1, 0, 1),
		wasmtest.Section(wasm.SectionGlobal, []byte{8},
			[]byte{0x7f, 0, 0x41, 0xff, 0xff, 0xff, 0xff, 0x78, 0x0b},
			[]byte{0x7e, 0, 0x42, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x7f, 0x0b},
			[]byte{0x7d, 0, 0x43, 1, 2, 3, 4, 0x0b},
			[]byte{0x7c, 0, 0x44, 1, 2, 3, 4, 5, 6, 7, 8, 0x0b},
			append(append([]byte{0x7b, 0, 0xfd, 12}, make([]byte, 16)...), 0x0b),
			[]byte{0x70, 0, 0xd0, 0x70, 0x0b},
			[]byte{0x70, 0, 0xd2, 0, 0x0b},
			[]byte{0x7f, 0, 0x23, 0, 0x41, 1, 0x6a, 0x0b}),
		wasmtest.Section(wasm.SectionElement, []byte{8},
			[]byte{0}, zero, []byte{1, 0},
			[]byte{1, 0, 1, 0},
			[]byte{2, 0}, zero, []byte{0, 1, 0},
			[]byte{3, 0, 1, 0},
			[]byte{4}, zero, []byte{1, 0xd2, 0, 0x0b},
			[]byte{5, 0x70, 1, 0xd0, 0x70, 0x0b},
			[]byte{6, 0}, zero, []byte{0x70, 0},
			[]byte{7, 0x6f, 0}),
		section(wasm.SectionDataCount, 3),
		section(wasm.SectionCode, 1, 2, 0, 0x0b),
		wasmtest.Section(wasm.SectionData, []byte{3}, []byte{0}, zero, []byte{1, 'a'}, []byte{1, 0}, []byte{2, 0}, zero, []byte{0}),
	)
	m, err := wasm.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	if m.NumGlobals != 8 || m.NumElementSegments != 8 || m.NumDataSegments != 3 || !m.HasDataCount {
		t.Errorf("got %d globals, %d element segments, %d data segments, data count %v", m.NumGlobals, m.NumElementSegments, m.NumDataSegments, m.HasDataCount)
	}
}

func TestDecodeAcceptsPaddedNumbers(t *testing.T) {
	data := module([]byte{wasm.SectionType, 0x84, 0x80, 0x80, 0x80, 0x00, 1, 0x60, 0, 0})
	if _, err := wasm.Decode(data); err != nil {
		t.Error(err)
	}
}

func TestDecodeSaysWhatAFileIsInstead(t *testing.T) {
	long := strings.Repeat("text ", 200)
	tests := []struct {
		data string
		is   error
		want string
	}{
		{"", wasm.ErrNotWasm, "the file is empty"},
		{"\x00as", wasm.ErrNotWasm, "ends within the header, after 3 bytes"},
		{"\x00asm\x01\x00", wasm.ErrNotWasm, "ends within the header, after 6 bytes"},
		{"\x00asm\x0d\x00\x01\x00rest", wasm.ErrComponent, "the file is a component, not a core module"},
		{"\x00asm\x02\x00\x00\x00", wasm.ErrVersion, "02 00 00 00"},
		{"\x7fELF\x02\x01\x01", wasm.ErrNotWasm, "an ELF executable"},
		{"MZ\x90", wasm.ErrNotWasm, "a Windows executable"},
		{"\n<!DOCTYPE html><html>", wasm.ErrNotWasm, "an HTML page"},
		{"<HTML>", wasm.ErrNotWasm, "an HTML page"},
		{"<?xml version='1.0'?>", wasm.ErrNotWasm, "XML"},
		{"\x1f\x8b\x08", wasm.ErrNotWasm, "gzip"},
		{"\x28\xb5\x2f\xfd", wasm.ErrNotWasm, "zstd"},
		{"PK\x03\x04", wasm.ErrNotWasm, "zip"},
		{strings.Repeat("\x00", 257) + "ustar\x00", wasm.ErrNotWasm, "tar"},
		{`{"error":"not found"}`, wasm.ErrNotWasm, "JSON"},
		{"\ufeff [1]", wasm.ErrNotWasm, "JSON"},
		{"(module)", wasm.ErrNotWasm, "WebAssembly text"},
		{"version https://git-lfs.github.com/spec/v1\n", wasm.ErrNotWasm, "Git LFS pointer"},
		{"#!/bin/sh\n", wasm.ErrNotWasm, "a script"},
		{"// A module.\nimport { run } from './run.js'\n", wasm.ErrNotWasm, "JavaScript"},
		{"const fs = require('fs')\n", wasm.ErrNotWasm, "JavaScript"},
		{"import os\n", wasm.ErrNotWasm, "looks like text"},
		{"hello", wasm.ErrNotWasm, "looks like text"},
		{long[:511] + "é" + long, wasm.ErrNotWasm, "looks like text"},
		{"\x01\x02\x03", wasm.ErrNotWasm, "some other binary file"},
		{"abc\xff\xfe", wasm.ErrNotWasm, "some other binary file"},
	}
	for _, test := range tests {
		m, err := wasm.Decode([]byte(test.data))
		if m != nil || !errors.Is(err, test.is) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%.20q: got %v, %v; want %q", test.data, m, err, test.want)
		}
	}
}

func TestDecodeRefusesAModuleThatIsTooLarge(t *testing.T) {
	data := make([]byte, wasm.MaxModuleBytes+1)
	copy(data, wasmtest.Header())
	if _, err := wasm.Decode(data); !errors.Is(err, wasm.ErrTooLarge) {
		t.Errorf("got %v, want %v", err, wasm.ErrTooLarge)
	}
}

// one type, one function, one table, one memory
var (
	typeSection   = section(wasm.SectionType, 1, 0x60, 0, 0)
	funcSection   = section(wasm.SectionFunction, 1, 0)
	tableSection  = section(wasm.SectionTable, 1, 0x70, 0, 1)
	memorySection = section(wasm.SectionMemory, 1, 0, 1)
	codeSection   = section(wasm.SectionCode, 1, 2, 0, 0x0b)
)

func malformed() []struct {
	name, want string
	data       []byte
} {
	exports := func(entries ...[]byte) []byte {
		return module(typeSection, funcSection,
			wasmtest.Section(wasm.SectionExport, wasmtest.U32(uint32(len(entries))), slices.Concat(entries...)), codeSection)
	}
	type test = struct {
		name, want string
		data       []byte
	}
	return []test{
		{"section id out of range", "unknown section id 14", module(section(14))},
		{"unknown section", "unknown section id 14", module(section(14))},
		{"section without a size", "size of the type section is cut off", module([]byte{1})},
		{"section longer than the file", "type section has 100 bytes, but only 1 are left", module([]byte{1, 100, 0})},
		{"section longer than its contents", "type section has 1 bytes too many", module(section(1, 0, 0))},
		{"section shorter than its contents", "results is cut off", module([]byte{1, 4, 1, 0x60, 1, 0x7f, 0})},
		{"empty known section", "types is cut off", module(section(1))},
		{"sections out of order", "type section is repeated or out of order", module(memorySection, typeSection)},
		{"section twice", "type section is repeated", module(typeSection, typeSection)},
		{"data count after code", "data count section is repeated or out of order",
			module(typeSection, funcSection, codeSection, section(wasm.SectionDataCount, 0))},
		{"size of six bytes", "is not a 32-bit LEB128 number", module([]byte{1, 0x80, 0x80, 0x80, 0x80, 0x80, 0})},
		{"size with stray bits", "is not a 32-bit LEB128 number", module([]byte{1, 0x80, 0x80, 0x80, 0x80, 0x10})},
		{"too many sections", "more than 1024 sections", module(bytes.Repeat(section(0, 0), wasm.MaxSections+1))},

		{"more types than bytes", "cannot fit", module(section(1, 0xff, 0x7f))},
		{"more types than the limit", "more than the limit of 65536", module(section(1, 0xff, 0xff, 0xff, 0xff, 0x0f))},
		{"type that is no function", "unsupported form 0x5d", module(section(1, 1, 0x5d, 0, 0))},
		{"value type of a proposal", "unsupported value type 0x62", module(section(1, 1, 0x60, 1, 0x62, 0))},
		{"too many parameters", "more than the limit of 1000",
			module(wasmtest.Section(1, []byte{1, 0x60}, wasmtest.U32(1001), bytes.Repeat([]byte{0x7f}, 1001), []byte{0}))},

		{"import of an unknown kind", "unsupported kind 0x05", module(section(2, 1, 0, 0, 5, 0))},
		{"import of an unknown type", "type index 0, but there are 0 types", module(section(2, 1, 0, 0, 0, 0))},
		{"import name that is not UTF-8", "name of an import is not valid UTF-8", module(section(2, 1, 0, 1, 0xff, 0, 0))},
		{"import name beyond the section", "module name of an import has 100 bytes", module(section(2, 1, 100, 0, 0, 0))},
		{"import name that is too long", "more than the limit of 4096",
			module(wasmtest.Section(2, []byte{1}, wasmtest.Name(strings.Repeat("a", 4097)), []byte{0, 0, 0}))},
		{"global that is half mutable", "mutability of a global is 0x02", module(section(2, 1, 0, 0, 3, 0x7f, 2))},

		{"function of an unknown type", "type index 1, but there are 1 types", module(typeSection, section(3, 1, 1))},
		{"function without code", "1 functions, but no code section", module(typeSection, funcSection)},
		{"code without function", "1 function bodies for 0 functions", module(codeSection)},
		{"body without end", "function body 0 does not end", module(typeSection, funcSection, section(10, 1, 2, 0, 0))},
		{"body of one byte", "function body 0 does not end", module(typeSection, funcSection, section(10, 1, 1, 0x0b, 0))},
		{"body beyond the section", "function body has 100 bytes", module(typeSection, funcSection, section(10, 1, 100, 0, 0x0b))},

		{"table of numbers", "unsupported reference type 0x7f", module(section(4, 1, 0x7f, 0, 1))},
		{"shared table", "limits of a table: unsupported flags 0x03", module(section(4, 1, 0x70, 3, 1, 1))},
		{"memory with unknown flags", "limits of a memory: unsupported flags 0x08", module(section(5, 1, 8, 1))},
		{"shared memory without a maximum", "unsupported flags 0x02", module(section(5, 1, 2, 1))},
		{"memory of more than 4 GiB", "more than 65536 pages", module(section(5, 1, 0, 0x81, 0x80, 0x04))},
		{"memory with a maximum below the minimum", "minimum 2 is larger than maximum 1", module(section(5, 1, 1, 2, 1))},
		{"64-bit memory of more than 2^48 pages", "more than 281474976710656 pages",
			module(section(5, 1, 4, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01))},
		{"64-bit number of eleven bytes", "is not a 64-bit LEB128 number",
			module(section(5, 1, 4, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00))},

		{"global with a call", "instruction 0x10 is not constant", module(section(6, 1, 0x7f, 0, 0x10, 0, 0x0b))},
		{"global with a vector instruction", "instruction 0xfd 13 is not constant", module(section(6, 1, 0x7b, 0, 0xfd, 13, 0x0b))},
		{"global without end", "initial value of a global is cut off", module(section(6, 1, 0x7f, 0, 0x41, 0))},
		{"constant with stray bits", "is not a signed 32-bit LEB128 number",
			module(section(6, 1, 0x7f, 0, 0x41, 0xff, 0xff, 0xff, 0xff, 0x0f, 0x0b))},
		{"constant that is too long", "is not a signed 32-bit LEB128 number",
			module(section(6, 1, 0x7f, 0, 0x41, 0x80, 0x80, 0x80, 0x80, 0x80, 0, 0x0b))},
		{"64-bit constant with stray bits", "is not a signed 64-bit LEB128 number",
			module(section(6, 1, 0x7e, 0, 0x42, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01, 0x0b))},

		{"two exports of one name", `two exports are named "f"`,
			exports([]byte{1, 'f', 0, 0}, []byte{1, 'f', 0, 0})},
		{"export of an unknown kind", "unsupported kind 0x09", exports([]byte{1, 'f', 9, 0})},
		{"export of a missing function", `export "f" is function 1, but there are 1`, exports([]byte{1, 'f', 0, 1})},
		{"export of a missing memory", `export "f" is memory 0, but there are 0`, exports([]byte{1, 'f', 2, 0})},
		{"export of a missing table", `export "f" is table 0, but there are 0`, exports([]byte{1, 'f', 1, 0})},
		{"export of a missing global", `export "f" is global 0, but there are 0`, exports([]byte{1, 'f', 3, 0})},

		{"start of a missing function", "start function 1, but there are 1 functions",
			module(typeSection, funcSection, section(8, 1), codeSection)},
		{"start with a parameter", "start function has the signature (i32)",
			module(section(1, 1, 0x60, 1, 0x7f, 0), funcSection, section(8, 0), codeSection)},

		{"element segment with unknown flags", "unsupported flags 8", module(tableSection, section(9, 1, 8, 0, 0))},
		{"element segment of an unknown kind", "unsupported kind 0x01", module(section(9, 1, 1, 1, 0))},
		{"element segment without a table", "fills table 0, but there are 0", module(section(9, 1, 0, 0x41, 0, 0x0b, 0))},
		{"element that is no function", "function 0, but there are 0", module(section(9, 1, 1, 0, 1, 0))},
		{"data segment with unknown flags", "unsupported flags 3", module(memorySection, section(11, 1, 3, 0))},
		{"data segment without a memory", "fills memory 0, but there are 0", module(section(11, 1, 0, 0x41, 0, 0x0b, 0))},
		{"data segment beyond the section", "data segment has 100 bytes", module(memorySection, section(11, 1, 0, 0x41, 0, 0x0b, 100))},
		{"data count that lies", "data count says 1, but there are 0", module(section(12, 1))},

		{"custom section without a name", "name of a custom section is cut off", module(section(0))[:10]},
		{"custom section with an invalid name", "not valid UTF-8", module(section(0, 1, 0xc0))},
		{"two manifests", `second custom section "stockade-tool"`,
			module(wasmtest.Section(0, wasmtest.Name("stockade-tool"), []byte("a")), wasmtest.Section(0, wasmtest.Name("stockade-tool"), []byte("b")))},
	}
}

// Extensions of WebAssembly that a module uses are recognized in its bytes by name, and
// not called malformed. A module without any passes.
func TestExtensionsAreNamed(t *testing.T) {
	body := func(code ...byte) []byte {
		code = append(append([]byte{0}, code...), 0x0b)
		return module(typeSection, funcSection, tableSection, memorySection, section(wasm.SectionTag, 1, 0, 0), section(wasm.SectionCode, append([]byte{1, byte(len(code))}, code...)...))
	}
	untagged := func(code ...byte) []byte {
		code = append(append([]byte{0}, code...), 0x0b)
		return module(typeSection, funcSection, tableSection, memorySection, section(wasm.SectionCode, append([]byte{1, byte(len(code))}, code...)...))
	}
	global := func(init ...byte) []byte {
		return module(section(wasm.SectionGlobal, append(append([]byte{2, 0x7f, 0, 0x41, 1, 0x0b, 0x7f, 0}, init...), 0x0b)...))
	}
	for _, test := range []struct {
		name, uses string
		data       []byte
	}{
		{"nothing of it", "", untagged(0x01)},
		{"a constant", "", global(0x41, 1)},
		{"a tail call", "tail calls", untagged(0x12, 0)},
		{"an indirect tail call", "tail calls", untagged(0x41, 0, 0x13, 0, 0)},
		{"a tag", "exceptions", body(0x01)},
		{"an imported tag", "exceptions", module(typeSection, section(wasm.SectionImport, 1, 1, 'a', 1, 'b', 4, 0, 0))},
		{"a table of exceptions", "exceptions", untagged(0x1f, 0x40, 0, 0x0b)},
		{"a reference to an exception", "exceptions", module(section(1, 1, 0x60, 1, 0x69, 0))},
		{"an exception of the older form", "exceptions", untagged(0x06, 0x40, 0x19, 0x0b)},
		{"throwing again in the older form", "exceptions", untagged(0x09, 0)},
		{"a sum of constants", "extended constant expressions", global(0x41, 1, 0x41, 1, 0x6a)},
		{"a product of long constants", "extended constant expressions", global(0x42, 1, 0x42, 1, 0x7e)},
		{"a global of its own in a constant", "extended constant expressions", global(0x23, 0)},
		{"a struct", "garbage collection (WasmGC)", module(section(1, 1, 0x5f, 0))},
		{"an array", "garbage collection (WasmGC)", module(section(1, 1, 0x5e, 0x7f, 0))},
		{"a group of types", "garbage collection (WasmGC)", module(section(1, 1, 0x4e, 1, 0x60, 0, 0))},
		{"an i31 reference", "garbage collection (WasmGC)", module(section(1, 1, 0x60, 1, 0x6c, 0))},
		{"struct.new", "garbage collection (WasmGC)", untagged(0xfb, 0, 0)},
		{"struct.new in a constant", "garbage collection (WasmGC)", global(0xfb, 1, 0)},
		{"call_ref", "typed function references", untagged(0x14, 0)},
		{"a reference to a type", "typed function references", module(section(1, 1, 0x60, 1, 0x64, 0, 0))},
		{"relaxed SIMD", "relaxed SIMD", untagged(0xfd, 0x80, 0x02)},
		{"the last of relaxed SIMD", "relaxed SIMD", untagged(0xfd, 0x93, 0x02)},
		{"SIMD", "", untagged(0xfd, 0x4d)},
		{"wide arithmetic", "wide arithmetic", untagged(0xfc, 19)},
		{"an atomic", "threads", untagged(0x41, 0, 0xfe, 0x10, 2, 0)},
		{"a shared memory", "threads", module(section(5, 1, 3, 1, 2))},
		{"memory64", "64-bit memory (memory64)", module(section(5, 1, 4, 1))},
		{"a table with 64-bit indices", "64-bit memory (memory64)", module(section(4, 1, 0x70, 4, 1))},
		{"two memories", "several memories (multi-memory)", module(section(5, 2, 0, 1, 0, 1))},
		{"one memory too many", "several memories (multi-memory)", module(section(2, 1, 1, 'a', 1, 'b', 2, 0, 1), memorySection)},
	} {
		m, err := wasm.Decode(test.data)
		if err == nil {
			err = m.CheckExtensions(1 << 20)
		}
		format, _ := errors.AsType[*wasm.FormatError](err)
		if is := format != nil && err.Error() != "" && strings.Contains(err.Error(), "uses "+test.uses+", which this host does not run"); is != (test.uses != "") || test.uses == "" && err != nil {
			t.Errorf("%s: got %v", test.name, err)
		}
	}
}

func TestDecodeRefusesMalformedModules(t *testing.T) {
	for _, test := range malformed() {
		t.Run(test.name, func(t *testing.T) {
			m, err := wasm.Decode(test.data)
			format, ok := errors.AsType[*wasm.FormatError](err)
			if m != nil || !ok {
				t.Fatalf("got %v, %v", m, err)
			}
			if !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %q, want %q in it", err, test.want)
			}
			if format.Offset < 8 || format.Offset > len(test.data) {
				t.Errorf("offset %d is not within the sections", format.Offset)
			}
		})
	}
}

func TestDecodeRefusesAModuleThatIsCutWithinASection(t *testing.T) {
	data := full()
	whole, err := wasm.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	between := map[int]bool{len(wasmtest.Header()): true}
	for _, s := range whole.Sections {
		between[s.End()] = true
	}
	for n := range len(data) {
		if _, err := wasm.Decode(data[:n]); err == nil && !between[n] {
			t.Errorf("%d of %d bytes pass for a module", n, len(data))
		}
	}
}

func TestDecodeAllocatesInProportion(t *testing.T) {
	// Entries that cost the host most in relation to their size.
	const n = 1 << 14
	var names []byte
	for i := range n {
		names = append(names, wasmtest.Name(fmt.Sprintf("%x", i))...)
		names = append(names, 0, 0)
	}
	tests := map[string][]byte{
		"types":     module(wasmtest.Section(1, wasmtest.U32(n), bytes.Repeat([]byte{0x60, 0, 0}, n))),
		"imports":   module(wasmtest.Section(2, wasmtest.U32(n), bytes.Repeat([]byte{0, 0, 3, 0x7f, 0}, n))),
		"functions": module(typeSection, wasmtest.Section(3, wasmtest.U32(n), make([]byte, n)), wasmtest.Section(10, wasmtest.U32(n), bytes.Repeat([]byte{2, 0, 0x0b}, n))),
		"exports":   module(typeSection, funcSection, wasmtest.Section(7, wasmtest.U32(n), names), codeSection),
		"customs":   module(bytes.Repeat(section(0, 0), wasm.MaxSections)),
	}
	for name, data := range tests {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			if _, err := wasm.Decode(data); err != nil {
				t.Fatal(err)
			}
			runtime.ReadMemStats(&after)
			got, most := after.TotalAlloc-before.TotalAlloc, uint64(allowance(len(data)))
			if t.Logf("%d bytes allocated for %d", got, len(data)); got > most {
				t.Errorf("%d bytes allocated, more than %d", got, most)
			}
		})
	}
}

// allowance is what Decode may allocate, as its documentation promises.
func allowance(inputBytes int) int { return 32*inputBytes + 384<<10 }

// TestDecodeBoundsReferences: too many references to functions outside of functions are
// refused before many are stored. The first two modules have 63 MB.
func TestDecodeBoundsReferences(t *testing.T) {
	segments := func(n, items int, flags byte, item []byte) []byte {
		segment := slices.Concat([]byte{flags}, map[byte][]byte{1: {0}, 5: {0x70}}[flags], wasmtest.U32(uint32(items)), bytes.Repeat(item, items))
		return wasmtest.Section(wasm.SectionElement, wasmtest.U32(uint32(n)), bytes.Repeat(segment, n))
	}
	refs := bytes.Repeat([]byte{0xd2, 0}, 40<<10)
	for name, data := range map[string][]byte{
		"elements":         module(typeSection, funcSection, segments(60, wasm.MaxElements, 1, []byte{0}), codeSection),
		"null elements":    module(typeSection, funcSection, segments(20, wasm.MaxElements, 5, []byte{0xd0, 0x70, 0x0b}), codeSection),
		"long expressions": module(typeSection, funcSection, segments(10, 60, 5, append(refs, 0x0b)), codeSection),
		"initial values": module(typeSection, funcSection, wasmtest.Section(wasm.SectionGlobal, wasmtest.U32(600),
			bytes.Repeat(slices.Concat([]byte{0x70, 0}, refs, []byte{0x0b}), 600)), codeSection),
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := wasm.Decode(data)
			runtime.ReadMemStats(&after)
			if _, ok := errors.AsType[*wasm.FormatError](err); !ok || !strings.Contains(err.Error(), "more than ") {
				t.Errorf("got %v", err)
			}
			if got := after.TotalAlloc - before.TotalAlloc; got > 64<<20 {
				t.Errorf("%d MiB were allocated", got>>20)
			}
		})
	}
}
