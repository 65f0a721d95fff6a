package wasmtest

import (
	"encoding/binary"

	"github.com/stockade-dev/stockade/host/wasm"
)

// The memory of a module assembled by Tool. Between ScratchBase and ManifestBase a body
// may write anything; the heap of the allocator starts on the page after the manifest.
const (
	describeBase = 16   // address where describe puts the pointer and length of the manifest
	ScratchBase  = 1024 // address where ReturnOK and ReturnError put their result
	ManifestBase = 32768
)

// Manifest is the default manifest of a tool module: one tool named "probe" that takes
// any object and asks for no capability.
const Manifest = `{"abi":"stockade:tool@0.1.0","name":"probe","version":"0.1.0","tools":[` +
	`{"name":"probe","description":"A tool made for a test.","parameters":{"type":"object"}}]}`

// Parameters of the call function: locals 0 to 12 of ToolOptions.Call.
const (
	ParamCallID uint32 = iota
	ParamCallIDLen
	ParamCwd
	ParamCwdLen
	ParamDeadlineSet
	ParamDeadline // i64, milliseconds
	ParamLocaleSet
	ParamLocale
	ParamLocaleLen
	ParamName
	ParamNameLen
	ParamArgs
	ParamArgsLen
	FirstLocal // the first of ToolOptions.Locals
)

// CallParams returns the types of the parameters of the call function.
func CallParams() []ValType {
	return []ValType{I32, I32, I32, I32, I32, I64, I32, I32, I32, I32, I32, I32, I32}
}

// Import is a function that a tool module imports.
type Import struct {
	Module, Name    string
	Params, Results []ValType
}

// Segment is initial content of the memory.
type Segment struct {
	Offset uint32
	Bytes  []byte
}

// ToolOptions holds the content of a tool module. The zero value is a tool that returns "ok".
type ToolOptions struct {
	// Call is the body of call. It finds its arguments in the Param locals and leaves an i32: the
	// address of a result<output, error>. Nil is ReturnOK("ok").
	Call    []byte
	Locals  []ValType // types of more locals of Call, from FirstLocal on
	Imports []Import  // imported functions, with the indices 0, 1, ...
	// Describe is the body of describe, which leaves the address of a pointer and a length. Nil
	// returns the manifest.
	Describe []byte
	// Realloc is the body of cabi_export_realloc, whose parameters are locals 0 to 3: old pointer,
	// old size, alignment, new size. Nil is an allocator that never frees.
	Realloc    []byte
	NoRealloc  bool   // leave out cabi_export_realloc
	Initialize []byte // body of _initialize; nil: it is left out
	PostCall   []byte // body of cabi_post_...#call, whose local 0 is the address that call returned; nil: left out
	Manifest   string // JSON of describe and of the custom section; empty: the constant Manifest
	NoSection  bool   // leave out the custom section stockade-tool
	Version    string // version of the interface in the names of the exports; empty: wasm.NativeVersion

	MemoryMin, MemoryMax int            // pages of the memory; 0: as many as needed, and no maximum
	NoMemory             bool           // leave out the export of the memory
	Data                 []Segment      // initial contents of the memory, in addition to the manifest
	Edit                 func(*Builder) // called last, after everything above was added; nil: nothing is called
}

// CallFunc returns the function index of call in the module that Tool assembles, for a
// body that calls itself.
func (o ToolOptions) CallFunc() uint32 { return uint32(len(o.Imports)) + 2 }

// Tool assembles a module with the native ABI: it exports memory,
// cabi_export_realloc, describe and call.
func Tool(o ToolOptions) []byte {
	manifest := o.Manifest
	if manifest == "" {
		manifest = Manifest
	}
	version := o.Version
	if version == "" {
		version = wasm.NativeVersion
	}
	iface := wasm.NativeInterface + "@" + version
	heapPage := (ManifestBase+len(manifest))/wasm.PageBytes + 1

	b := New()
	for _, i := range o.Imports {
		b.ImportFunc(i.Module, i.Name, i.Params, i.Results)
	}
	pages := max(o.MemoryMin, heapPage+1)
	limit := o.MemoryMax
	if limit == 0 {
		limit = -1
	}
	b.Memory(pages, limit)
	if !o.NoMemory {
		b.ExportMemory("memory")
	}
	heap := b.Global(I32, true, I32Const(int32(heapPage*wasm.PageBytes)))

	realloc, reallocName := o.Realloc, "cabi_export_realloc"
	if realloc == nil {
		realloc = bumpAllocator(heap)
	}
	if o.NoRealloc {
		reallocName = ""
	}
	b.Func(reallocName, []ValType{I32, I32, I32, I32}, []ValType{I32}, []ValType{I32}, realloc)

	describe := o.Describe
	if describe == nil {
		b.Data(describeBase, le32(ManifestBase, uint32(len(manifest))))
		b.Data(ManifestBase, []byte(manifest))
		describe = I32Const(describeBase)
	}
	b.Func(iface+"#describe", nil, []ValType{I32}, nil, describe)

	call := o.Call
	if call == nil {
		call = ReturnOK("ok")
	}
	if got := b.Func(iface+"#call", CallParams(), []ValType{I32}, o.Locals, call); got != o.CallFunc() {
		panic("wasmtest: call is not where CallFunc says")
	}
	if o.Initialize != nil {
		b.Func("_initialize", nil, nil, nil, o.Initialize)
	}
	if o.PostCall != nil {
		b.Func("cabi_post_"+iface+"#call", []ValType{I32}, nil, nil, o.PostCall)
	}
	for _, s := range o.Data {
		b.Data(s.Offset, s.Bytes)
	}
	if !o.NoSection {
		b.Custom(wasm.ManifestSection, []byte(manifest))
	}
	if o.Edit != nil {
		o.Edit(b)
	}
	return b.Bytes()
}

// bumpAllocator is the body of a realloc that takes memory from a global and never gives
// it back. Local 4 is the new block.
func bumpAllocator(heap uint32) []byte {
	const oldPtr, oldSize, align, newSize, block = 0, 1, 2, 3, 4
	return join(
		// block = (heap + align - 1) & -align
		GlobalGet(heap), LocalGet(align), I32Add(), I32Const(1), I32Sub(),
		I32Const(0), LocalGet(align), I32Sub(), I32And(), LocalSet(block),
		// heap = block + newSize
		LocalGet(block), LocalGet(newSize), I32Add(), GlobalSet(heap),
		// trap when that went past 2^32
		GlobalGet(heap), LocalGet(block), I32LtU(), If(Unreachable()),
		// if heap/65536 >= pages, grow by the missing pages and one more
		GlobalGet(heap), I32Const(16), I32ShrU(), MemorySize(), I32GeU(), If(
			GlobalGet(heap), I32Const(16), I32ShrU(), MemorySize(), I32Sub(), I32Const(1), I32Add(), MemoryGrow(),
			I32Const(-1), I32Eq(), If(Unreachable()),
		),
		LocalGet(block), LocalGet(oldPtr),
		LocalGet(oldSize), LocalGet(newSize), LocalGet(oldSize), LocalGet(newSize), I32LtU(), Select(),
		MemoryCopy(),
		LocalGet(block),
	)
}

// StoreBytes returns code that writes content to the memory at an address, byte by byte.
func StoreBytes(address uint32, content []byte) []byte {
	var code []byte
	for i, c := range content {
		code = append(code, join(I32Const(int32(address)+int32(i)), I32Const(int32(c)), I32Store8(0))...)
	}
	return code
}

// The discriminants of a result, of content and of error, in the order of wit/types.wit.
const (
	ResultOK  = 0
	ResultErr = 1

	ContentText     = 0
	ContentJSON     = 1
	ContentImage    = 2
	ContentResource = 3

	ErrorInvalidInput = 0
	ErrorUnknownTool  = 1
	ErrorNotFound     = 2
	ErrorDenied       = 3
	ErrorIO           = 4
	ErrorParse        = 5
	ErrorUnavailable  = 6
	ErrorCancelled    = 7 // an error without a text
	ErrorFailed       = 8
)

// Sizes of the lowered types, in bytes.
const (
	resultBytes  = 24 // discriminant, then list pointer and length, then option<string>
	ContentBytes = 36 // the largest case is resource
)

// OKResult returns the memory image of a result that holds one text and, unless structured is
// empty, a structured value. It must be placed at base, which is a multiple of 4.
func OKResult(base uint32, text, structured string) []byte {
	list := base + resultBytes
	texts := list + ContentBytes
	image := le32(ResultOK, list, 1, 0, 0, 0)
	if structured != "" {
		image = le32(ResultOK, list, 1, 1, texts+uint32(len(text)), uint32(len(structured)))
	}
	image = append(image, le32(ContentText, texts, uint32(len(text)), 0, 0, 0, 0, 0, 0)...)
	return join(image, []byte(text), []byte(structured))
}

// ErrorResult returns the memory image of a result that holds an error with a text. It
// must be placed at base, which is a multiple of 4.
func ErrorResult(base, discriminant uint32, text string) []byte {
	return join(le32(ResultErr, discriminant, base+resultBytes, uint32(len(text)), 0, 0), []byte(text))
}

// ReturnImage returns a body that writes a memory image to ScratchBase and returns that
// address. The image has at most ManifestBase - ScratchBase bytes.
func ReturnImage(image []byte) []byte {
	if len(image) > ManifestBase-ScratchBase {
		panic("wasmtest: the image does not fit below the manifest")
	}
	return join(StoreBytes(ScratchBase, image), I32Const(ScratchBase))
}

// ReturnWords is ReturnImage of 32-bit words, for results that are wrong in some field.
// Good words are: 0, list pointer and length, 0 or 1, structured pointer and length.
func ReturnWords(words ...uint32) []byte { return ReturnImage(le32(words...)) }

// ReturnOK returns a body that succeeds with a text.
func ReturnOK(text string) []byte { return ReturnImage(OKResult(ScratchBase, text, "")) }

// ReturnStructured returns a body that succeeds with a text and a structured value in JSON.
func ReturnStructured(text, structured string) []byte {
	return ReturnImage(OKResult(ScratchBase, text, structured))
}

// ReturnError returns a body that fails with one of the Error discriminants.
func ReturnError(discriminant uint32, text string) []byte {
	return ReturnImage(ErrorResult(ScratchBase, discriminant, text))
}

// EchoArgs returns a body that succeeds with its arguments as the structured value.
func EchoArgs() []byte {
	return join(
		StoreBytes(ScratchBase, le32(ResultOK, ScratchBase, 0, 1, 0, 0)),
		I32Const(ScratchBase), LocalGet(ParamArgs), I32Store(16),
		I32Const(ScratchBase), LocalGet(ParamArgsLen), I32Store(20),
		I32Const(ScratchBase),
	)
}

func le32(words ...uint32) []byte {
	out := make([]byte, 0, 4*len(words))
	for _, w := range words {
		out = binary.LittleEndian.AppendUint32(out, w)
	}
	return out
}
