package wasmtest

import (
	"bytes"
	"encoding/binary"
	"slices"

	"github.com/stockade-dev/stockade/host/wasm"
)

// ValType is a value type.
type ValType = wasm.ValType

// The value types.
const (
	I32       = wasm.I32
	I64       = wasm.I64
	F32       = wasm.F32
	F64       = wasm.F64
	V128      = wasm.V128
	FuncRef   = wasm.FuncRef
	ExternRef = wasm.ExternRef
)

// Builder assembles one module. The zero value is not usable; see [New].
type Builder struct {
	types    []wasm.FuncType
	imports  [][]byte
	imported uint32 // number of imported functions
	funcs    []function
	tables   [][]byte
	memories [][]byte
	tags     [][]byte
	globals  [][]byte
	exports  [][]byte
	start    *uint32
	elements [][]byte
	data     [][]byte
	customs  []byte

	dataCount bool // a data count section is needed
}

type function struct {
	typ  uint32
	code []byte
}

// New returns an empty module.
func New() *Builder { return &Builder{} }

// Memory adds a memory with limits in pages and returns its index. A negative max: no maximum.
func (b *Builder) Memory(min, max int) uint32 {
	b.memories = append(b.memories, limits(min, max))
	return uint32(len(b.memories) - 1)
}

// Table adds a table of functions with limits in elements and returns its index. A
// negative max means no maximum.
func (b *Builder) Table(min, max int) uint32 {
	b.tables = append(b.tables, join([]byte{byte(FuncRef)}, limits(min, max)))
	return uint32(len(b.tables) - 1)
}

func limits(min, max int) []byte {
	if max < 0 {
		return join([]byte{0}, U32(uint32(min)))
	}
	return join([]byte{1}, U32(uint32(min)), U32(uint32(max)))
}

// Tag adds a tag of exceptions that carry these values and returns its index.
func (b *Builder) Tag(values []ValType) uint32 {
	b.tags = append(b.tags, join([]byte{0}, U32(b.typeIndex(values, nil))))
	return uint32(len(b.tags) - 1)
}

// ImportFunc imports a function and returns its index. Imports come before functions in
// the index space, so it panics after the first [Builder.Func].
func (b *Builder) ImportFunc(module, name string, params, results []ValType) uint32 {
	if len(b.funcs) > 0 {
		panic("wasmtest: ImportFunc after Func")
	}
	b.imports = append(b.imports, join(Name(module), Name(name), []byte{byte(wasm.KindFunc)}, U32(b.typeIndex(params, results))))
	b.imported++
	return b.imported - 1
}

// ImportMemory imports a memory. The module must then define none of its own.
func (b *Builder) ImportMemory(module, name string, min, max int) {
	b.imports = append(b.imports, join(Name(module), Name(name), []byte{byte(wasm.KindMemory)}, limits(min, max)))
}

// NextFunc returns the index of the next Func, for a body that calls itself.
func (b *Builder) NextFunc() uint32 { return b.imported + uint32(len(b.funcs)) }

// Func adds a function and returns its index. It is exported as name, unless name is
// empty. Locals are numbered after the parameters. The pieces of the body are joined and
// an end instruction is added.
func (b *Builder) Func(name string, params, results, locals []ValType, body ...[]byte) uint32 {
	var groups []Locals
	for _, t := range locals {
		groups = append(groups, Locals{1, t})
	}
	index := b.FuncOf(b.typeIndex(params, results), groups, body...)
	if name != "" {
		b.ExportFunc(name, index)
	}
	return index
}

// Type adds a function type, even if the same one exists, and returns its index.
func (b *Builder) Type(params, results []ValType) uint32 {
	b.types = append(b.types, wasm.FuncType{Params: params, Results: results})
	return uint32(len(b.types) - 1)
}

// Locals is a group of local variables of one type, as in the binary format.
type Locals struct {
	Count uint32
	Type  ValType
}

// FuncOf is [Builder.Func] for the index of a type. Groups of locals can be very large.
func (b *Builder) FuncOf(typ uint32, locals []Locals, body ...[]byte) uint32 {
	index := b.NextFunc()
	code := U32(uint32(len(locals)))
	for _, l := range locals {
		code = append(append(code, U32(l.Count)...), byte(l.Type))
	}
	b.funcs = append(b.funcs, function{typ, join(code, join(body...), []byte{opEnd})})
	return index
}

// Global adds a global with an initial value, such as I32Const(0), and returns its index.
func (b *Builder) Global(t ValType, mutable bool, init []byte) uint32 {
	m := byte(0)
	if mutable {
		m = 1
	}
	b.globals = append(b.globals, join([]byte{byte(t), m}, init, []byte{opEnd}))
	return uint32(len(b.globals) - 1)
}

// ExportFunc exports a function, which may be an imported one.
func (b *Builder) ExportFunc(name string, index uint32) { b.export(name, wasm.KindFunc, index) }

// ExportMemory exports memory 0.
func (b *Builder) ExportMemory(name string) { b.export(name, wasm.KindMemory, 0) }

// ExportGlobal exports a global.
func (b *Builder) ExportGlobal(name string, index uint32) { b.export(name, wasm.KindGlobal, index) }

func (b *Builder) export(name string, kind wasm.Kind, index uint32) {
	b.exports = append(b.exports, join(Name(name), []byte{byte(kind)}, U32(index)))
}

// Start makes a function run when the module is instantiated.
func (b *Builder) Start(index uint32) { b.start = &index }

// Elem fills table 0 from offset with functions.
func (b *Builder) Elem(offset uint32, funcs ...uint32) {
	e := join([]byte{0}, I32Const(int32(offset)), []byte{opEnd}, U32(uint32(len(funcs))))
	for _, f := range funcs {
		e = append(e, U32(f)...)
	}
	b.elements = append(b.elements, e)
}

// ElemExprs adds a passive element segment of n times the same constant expression.
func (b *Builder) ElemExprs(n int, expr []byte) {
	b.elements = append(b.elements, join([]byte{5, byte(FuncRef)}, U32(uint32(n)), repeat(n, expr, []byte{opEnd})))
}

// Data adds bytes that instantiation writes to memory 0 at an offset.
func (b *Builder) Data(offset uint32, content []byte) {
	b.data = append(b.data, join([]byte{0}, I32Const(int32(offset)), []byte{opEnd}, U32(uint32(len(content))), content))
}

// PassiveData adds bytes that code can write to a memory.
func (b *Builder) PassiveData(content []byte) {
	b.data = append(b.data, join([]byte{1}, U32(uint32(len(content))), content))
	b.dataCount = true
}

// Custom adds a custom section at the end of the module.
func (b *Builder) Custom(name string, payload []byte) {
	b.customs = append(b.customs, Section(wasm.SectionCustom, Name(name), payload)...)
}

func (b *Builder) typeIndex(params, results []ValType) uint32 {
	i := slices.IndexFunc(b.types, func(t wasm.FuncType) bool {
		return slices.Equal(t.Params, params) && slices.Equal(t.Results, results)
	})
	if i < 0 {
		i = len(b.types)
		b.types = append(b.types, wasm.FuncType{Params: params, Results: results})
	}
	return uint32(i)
}

// Bytes returns the module. The builder can be used further.
func (b *Builder) Bytes() []byte {
	out := Header()
	vector := func(id byte, items [][]byte) {
		if len(items) > 0 {
			out = append(out, Section(id, U32(uint32(len(items))), bytes.Join(items, nil))...)
		}
	}
	var types, funcs, bodies [][]byte
	for _, t := range b.types {
		types = append(types, join([]byte{0x60}, valTypes(t.Params), valTypes(t.Results)))
	}
	for _, f := range b.funcs {
		funcs = append(funcs, U32(f.typ))
		bodies = append(bodies, join(U32(uint32(len(f.code))), f.code))
	}
	vector(wasm.SectionType, types)
	vector(wasm.SectionImport, b.imports)
	vector(wasm.SectionFunction, funcs)
	vector(wasm.SectionTable, b.tables)
	vector(wasm.SectionMemory, b.memories)
	vector(wasm.SectionTag, b.tags)
	vector(wasm.SectionGlobal, b.globals)
	vector(wasm.SectionExport, b.exports)
	if b.start != nil {
		out = append(out, Section(wasm.SectionStart, U32(*b.start))...)
	}
	vector(wasm.SectionElement, b.elements)
	if b.dataCount {
		out = append(out, Section(wasm.SectionDataCount, U32(uint32(len(b.data))))...)
	}
	vector(wasm.SectionCode, bodies)
	vector(wasm.SectionData, b.data)
	return append(out, b.customs...)
}

// Header returns the first eight bytes of a core module.
func Header() []byte { return []byte("\x00asm\x01\x00\x00\x00") }

// Section returns a section with its size, for modules made by hand.
func Section(id byte, payload ...[]byte) []byte {
	p := join(payload...)
	return join([]byte{id}, U32(uint32(len(p))), p)
}

// Name returns a name in the binary format: its length and its bytes.
func Name(s string) []byte { return join(U32(uint32(len(s))), []byte(s)) }

// U32 returns the shortest unsigned LEB128 form of v.
func U32(v uint32) []byte { return binary.AppendUvarint(nil, uint64(v)) }

func valTypes(types []ValType) []byte {
	out := U32(uint32(len(types)))
	for _, t := range types {
		out = append(out, byte(t))
	}
	return out
}

func repeat(n int, pieces ...[]byte) []byte { return bytes.Repeat(join(pieces...), n) }

func join(pieces ...[]byte) []byte { return slices.Concat(pieces...) }
