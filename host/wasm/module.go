package wasm

import (
	"cmp"
	"fmt"
	"strings"
)

// Limits on modules; Decode refuses a module beyond them. MaxFuncs to MaxTags do not count imports.
// The limits are far above the numbers of real modules (a 31 MiB compiler has 450 imports and
// exports) and bound the memory that a small hostile file can make the host allocate.
const (
	MaxModuleBytes = 128 << 20
	MaxSections    = 1024 // custom sections included
	MaxTypes       = 1 << 16
	MaxParams      = 1000 // parameters, and also results, of a function type
	MaxImports     = 1 << 14
	MaxFuncs       = 1 << 20
	MaxTables      = 1 << 10
	MaxMemories    = 1 << 8
	MaxGlobals     = 1 << 20
	MaxTags        = 1 << 10
	MaxExports     = 1 << 16
	MaxSegments    = 1 << 20 // data segments, and also element segments; a Go module has 38 to 100 thousand
	MaxElements    = 1 << 20 // elements in all element segments together; a 49 MiB compiler has 20 thousand
	MaxFuncRefs    = 1 << 21 // elements of Module.FuncRefs
	MaxNameBytes   = 4096    // bytes of each name
)

// PageBytes is the size of a page, the unit of memory limits.
const PageBytes = 65536

// ValType is a value type, as its byte in the binary format.
type ValType byte

// The value types that Decode accepts.
const (
	I32       ValType = 0x7f
	I64       ValType = 0x7e
	F32       ValType = 0x7d
	F64       ValType = 0x7c
	V128      ValType = 0x7b
	FuncRef   ValType = 0x70
	ExternRef ValType = 0x6f
	ExnRef    ValType = 0x69
	// Ref and RefNull are references to a type of the module, or to an abstract type. Its index is
	// checked and not stored.
	Ref     ValType = 0x64
	RefNull ValType = 0x63
)

var valTypeNames = map[ValType]string{
	I32: "i32", I64: "i64", F32: "f32", F64: "f64", V128: "v128",
	FuncRef: "funcref", ExternRef: "externref", ExnRef: "exnref", Ref: "ref", RefNull: "ref",
}

// String returns the name of the type in the text format, such as "i32".
func (t ValType) String() string { return cmp.Or(valTypeNames[t], "unknown type") }

// FuncType is the signature of a function.
type FuncType struct {
	Params, Results []ValType
}

// String returns the signature in the notation of wit/README.md: "(i32 i64) -> i32", "(i32)".
func (t FuncType) String() string {
	list := func(types []ValType) string { return "(" + strings.Trim(fmt.Sprint(types), "[]") + ")" }
	switch len(t.Results) {
	case 0:
		return list(t.Params)
	case 1:
		return list(t.Params) + " -> " + t.Results[0].String()
	}
	return list(t.Params) + " -> " + list(t.Results)
}

// Global is a global that the module defines.
type Global struct {
	Index uint32 // index among all globals, of which imported ones come first
	Type  ValType
}

// Kind is the kind of an import or an export.
type Kind byte

// The kinds, with the values of their bytes in the binary format.
const (
	KindFunc   Kind = 0
	KindTable  Kind = 1
	KindMemory Kind = 2
	KindGlobal Kind = 3
	KindTag    Kind = 4 // an exception tag
)

var kindNames = [...]string{"function", "table", "memory", "global", "tag"}

func (k Kind) String() string { return kindNames[k] }

// Limits holds the limits of a memory, in pages, or of a table, in elements.
type Limits struct {
	Min, Max uint64 // size at the start, and largest size; Max is 0 unless HasMax
	HasMax   bool
	Shared   bool // a memory shared by threads
	Is64     bool // indices are i64
}

// Table is a table that the module defines.
type Table struct {
	Elem   ValType
	Limits Limits
}

// Import is an import of the module. The fields after Kind are set only for the kinds they name.
type Import struct {
	Module, Name string
	Kind         Kind
	Type         uint32  // KindFunc and KindTag: index in Module.Types, in range
	Limits       Limits  // KindTable and KindMemory
	ValType      ValType // KindTable: type of the elements; KindGlobal: type of the value
	Mutable      bool    // KindGlobal: code can set it
}

// Export is an export of the module. Names are unique in a module.
type Export struct {
	Name  string
	Kind  Kind
	Index uint32 // index among all items of Kind, of which imported ones come first; in range
}

// Section ids in the binary format.
const (
	SectionCustom    byte = 0
	SectionType      byte = 1
	SectionImport    byte = 2
	SectionFunction  byte = 3
	SectionTable     byte = 4
	SectionMemory    byte = 5
	SectionGlobal    byte = 6
	SectionExport    byte = 7
	SectionStart     byte = 8
	SectionElement   byte = 9
	SectionCode      byte = 10
	SectionData      byte = 11
	SectionDataCount byte = 12
	SectionTag       byte = 13
)

// Section is one section as it stands in the file.
type Section struct {
	ID            byte
	Offset        int    // offset in the file of the id byte
	PayloadOffset int    // offset in the file of the first byte after the size
	Payload       []byte // aliases the input
}

// End returns the offset in the file of the first byte after the section.
func (s Section) End() int { return s.PayloadOffset + len(s.Payload) }

// Custom is a custom section.
type Custom struct {
	Name   string
	Offset int    // offset in the file of the section's id byte
	Data   []byte // the bytes after the name; aliases the input
}

// Module is the result of Decode. Nothing changes it later, so several goroutines may read it.
type Module struct {
	Raw      []byte    // the file
	Sections []Section // in the order of the file
	Types    []FuncType
	Imports  []Import
	Funcs    []uint32 // type index of each function that the module defines
	Tables   []Table
	Memories []Limits // limits of each memory that the module defines, in pages
	Tags     []uint32 // type index of each exception tag that the module defines
	Exports  []Export
	Customs  []Custom

	Count [KindTag + 1]int // number of items of each kind, imports included

	NumGlobals         int      // number of globals that the module defines
	MutableGlobals     []Global // globals that the module defines and code can set
	NumElementSegments int
	NumElements        int // number of elements in all element segments
	NumDataSegments    int
	LargestBody        int // size in bytes of the largest function body, with the declarations of locals

	// FuncRefs holds the offset in the file of every function index outside of function bodies: in
	// exports, elements and constant expressions, but not in the start section.
	FuncRefs []uint32

	// Extension names one extension of WebAssembly that the host does not run and that is used
	// outside of function bodies; empty: none. See [Module.CheckExtensions].
	Extension string

	HasStart bool   // instantiation runs the function Start, before the host can call an export
	Start    uint32 // function index

	HasDataCount bool // there is a data count section; its number equals NumDataSegments
}

// Export returns the export of that name; false if there is none.
func (m *Module) Export(name string) (Export, bool) {
	for _, e := range m.Exports {
		if e.Name == name {
			return e, true
		}
	}
	return Export{}, false
}

// ImportedFuncs returns the number of imported functions, which is also the index of the first
// function that the module defines.
func (m *Module) ImportedFuncs() int { return m.Count[KindFunc] - len(m.Funcs) }

// FuncType returns the signature of a function by its index in the function index space, in which
// imports come first; false if there is no such function.
func (m *Module) FuncType(index uint32) (FuncType, bool) {
	i := uint64(index)
	for _, imp := range m.Imports {
		if imp.Kind != KindFunc {
			continue
		}
		if i == 0 {
			return m.Types[imp.Type], true
		}
		i--
	}
	if i < uint64(len(m.Funcs)) {
		return m.Types[m.Funcs[i]], true
	}
	return FuncType{}, false
}

// ExportedFunc returns the signature of the exported function of that name; false if there is no
// such export or it is no function.
func (m *Module) ExportedFunc(name string) (FuncType, bool) {
	e, ok := m.Export(name)
	if !ok || e.Kind != KindFunc {
		return FuncType{}, false
	}
	return m.FuncType(e.Index)
}
