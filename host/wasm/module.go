package wasm

import (
	"cmp"
	"fmt"
	"strings"
)

// Limits on what Decode accepts. They are far above what real modules hold
// (a 31 MiB compiler has 450 imports and exports) and bound the memory that a
// small hostile file can make the host allocate.
const (
	MaxModuleBytes = 128 << 20
	MaxSections    = 1024 // custom sections included
	MaxTypes       = 1 << 16
	MaxParams      = 1000 // also of results
	MaxImports     = 1 << 14
	MaxFuncs       = 1 << 20
	MaxTables      = 1 << 10
	MaxMemories    = 1 << 8
	MaxGlobals     = 1 << 20
	MaxTags        = 1 << 10
	MaxExports     = 1 << 16
	MaxSegments    = 1 << 20 // of each kind; a Go module has 38 to 100 thousand
	MaxElements    = 1 << 20 // of all element segments; a 49 MiB compiler has 20 thousand
	MaxFuncRefs    = 1 << 21 // see Module.FuncRefs
	MaxNameBytes   = 4096
)

// PageBytes is the size of a page, the unit of memory limits.
const PageBytes = 65536

// ValType is a value type, by its byte in the binary format.
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
	// Ref and RefNull are references to one type of the module. Which one is
	// checked and not kept.
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

// String returns the signature as wit/README.md writes it: "(i32 i64) -> i32",
// "() -> i32", "(i32)".
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

// Global is a variable of the module's own.
type Global struct {
	Index uint32 // imported ones come first
	Type  ValType
}

// Kind is what an import or an export is.
type Kind byte

// The kinds, by their byte in the binary format.
const (
	KindFunc   Kind = 0
	KindTable  Kind = 1
	KindMemory Kind = 2
	KindGlobal Kind = 3
	KindTag    Kind = 4 // of an exception
)

var kindNames = [...]string{"function", "table", "memory", "global", "tag"}

func (k Kind) String() string { return kindNames[k] }

// Limits bounds a memory, in pages, or a table, in elements.
type Limits struct {
	Min, Max uint64 // Max is 0 unless HasMax
	HasMax   bool
	Shared   bool // a memory that threads share
	Is64     bool // addressed by i64
}

// Table is a table that the module defines.
type Table struct {
	Elem   ValType
	Limits Limits
}

// Import is one thing that the module asks its host for. Which fields besides
// the names and Kind are set depends on Kind.
type Import struct {
	Module, Name string
	Kind         Kind
	Type         uint32  // KindFunc and KindTag: index in Module.Types, in range
	Limits       Limits  // KindTable and KindMemory
	ValType      ValType // KindTable: element type; KindGlobal: type of the value
	Mutable      bool    // KindGlobal
}

// Export is one thing that the module offers. Names are unique in a module.
type Export struct {
	Name  string
	Kind  Kind
	Index uint32 // in the index space of Kind, imports first; in range
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
	Offset        int    // of the id byte
	PayloadOffset int    // of the first byte after the size
	Payload       []byte // aliases the input
}

// End is the offset of the first byte after the section.
func (s Section) End() int { return s.PayloadOffset + len(s.Payload) }

// Custom is a custom section.
type Custom struct {
	Name   string
	Offset int    // of the section's id byte
	Data   []byte // what follows the name; aliases the input
}

// Module is what Decode learned of a module. It is not changed after Decode
// returned it, so it may be read from several goroutines.
type Module struct {
	Raw      []byte    // the file
	Sections []Section // all of them, in the order of the file
	Types    []FuncType
	Imports  []Import
	Funcs    []uint32 // the type index of each function that the module defines
	Tables   []Table
	Memories []Limits // in pages
	Tags     []uint32 // the type index of each exception tag that the module defines
	Exports  []Export
	Customs  []Custom

	// Count is how many there are of each kind, imports included.
	Count [KindTag + 1]int

	NumGlobals         int      // that the module defines
	MutableGlobals     []Global // those of them that can be set
	NumElementSegments int      // element segments
	NumElements        int      // in all of them
	NumDataSegments    int      // data segments
	LargestBody        int      // in bytes, its local declarations included

	// FuncRefs are the offsets in the file of every index of a function outside
	// of function bodies, but for the start section's: in exports, elements and
	// initial values.
	FuncRefs []uint32

	// Extension is an extension of WebAssembly that the host does not run, used outside of
	// functions; empty: none. See [Module.CheckExtensions].
	Extension string

	// HasStart says that instantiation runs the function Start: code that runs
	// before any export is called.
	HasStart bool
	Start    uint32

	// HasDataCount says that there is a data count section. Its number equals Data.
	HasDataCount bool
}

// Export returns the export of that name.
func (m *Module) Export(name string) (Export, bool) {
	for _, e := range m.Exports {
		if e.Name == name {
			return e, true
		}
	}
	return Export{}, false
}

// ImportedFuncs is how many functions the module imports: the index of the first
// of its own.
func (m *Module) ImportedFuncs() int { return m.Count[KindFunc] - len(m.Funcs) }

// FuncType returns the signature of a function by its index in the function
// index space, in which imports come first; false when there is no such function.
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

// ExportedFunc returns the signature of the exported function of that name;
// false when there is no such export or when it is no function.
func (m *Module) ExportedFunc(name string) (FuncType, bool) {
	e, ok := m.Export(name)
	if !ok || e.Kind != KindFunc {
		return FuncType{}, false
	}
	return m.FuncType(e.Index)
}
