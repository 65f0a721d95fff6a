// Package machine is the guest with which selftest attacks: a module that executes a
// script, which is in its arguments, and answers with a report.
//
// A script is the image of a part of the machine's memory, in hexadecimal: its data, and
// then its calls, each of a function with operands. The functions are those of WASI and
// of the host, by their names ("fd_read", "log.log"), and some of the machine itself
// ("store", "burn"); [FunctionNumbers] maps names to numbers. A report has the result of
// each call and the number of times it was made, and data that the calls have written
// there.
//
// The machine is one piece of code. Each kind of module adds a front, which takes the
// script from its arguments, and the functions of the host that only this kind has.
package machine

import (
	"slices"
	"sync"

	"github.com/stockade-dev/stockade/host/sandbox/abi"
	"github.com/stockade-dev/stockade/host/wasm"
	w "github.com/stockade-dev/stockade/host/wasm/wasmtest"
)

// ScriptArgument is the name of the argument that holds the script.
const ScriptArgument = "asm"

// Kind is the kind of module that the machine is built as.
type Kind int

// The kinds.
const (
	Native  Kind = iota // a module of the native ABI
	Command             // a WASI command, which speaks ikigai's protocol
	Plugin              // an Extism plugin, whose section names the function to call
)

// Kinds lists the kinds.
var Kinds = []Kind{Native, Command, Plugin}

func (k Kind) String() string { return [...]string{"native", "command", "plugin"}[k] }

// The memory of the machine. Data that the host passes is below all of this.
const (
	inputBase  = 0x1000   // the input, if the front has to fetch it
	ImageBase  = 0x200000 // the script: its address, then its data, then its calls
	ImageBytes = 0x100000
	ReportBase = 0x300000 // the result of each call, and data that calls write to the report
	ResultsEnd = 0x1000   // the size of the results at the start of the report
	ReportSize = 0x2000
	outputBase = 0x308000 // the report as JSON, and data of the front
	BufferBase = 0x310000 // free; for reads and writes of 64 KiB
	BufferSize = 0x10000
	StateAt    = 0x330000 // zero unless a script writes there
	// InputLength is the address of the length of the input, if the front has to fetch
	// it.
	InputLength = StateAt + 0x100

	Pages = 56 // of memory
)

// A call of a script is in the memory as a header and its operands.
const (
	OpSize      = 16 // function, address of its result, size with operands, unused
	OperandSize = 16 // kind, unused, value (64 bits)
	ResultSize  = 8  // last result, number of times made

	Immediate = 0 // the value is the operand
	Indirect  = 1 // the operand is the 32-bit number at the address in the value
)

// function is a function that a script can call: an import, or one of the machine itself.
type function struct {
	name  string
	imp   *w.Import
	sig   []w.ValType
	emit  func(m *Machine) []byte // the code, with the operands on the stack; leaves an i32
	kinds []Kind                  // the kinds with this function; nil is all
}

func (f function) availableIn(k Kind) bool { return f.kinds == nil || slices.Contains(f.kinds, k) }

// Globals of the machine. Global 0 belongs to the allocator.
const (
	globalNext   = iota + 1 // the address of the next call
	globalLast              // the result of the previous call
	globalEnded             // 1 if the script ends the module here
	globalResult            // its result then: see "leave"
	globalState             // zero at the start; see "state.set"
)

// Machine is the module while it is assembled.
type Machine struct {
	kind          Kind
	imports       []w.Import
	importIndices map[string]uint32 // index of each import, by the name of the function
	base          uint32            // index of the first function that the machine adds
}

// Functions that the machine adds, by their distance from the base.
const (
	addedPlay = iota
	addedOperand
	addedStep
	addedSay
	addedPut // of a plugin, as are the next two
	addedGet
	addedBlock
	addedBurn
	addedDown
	addedUp
	addedSelf
	addedTree // and the functions that it calls
)

var (
	i32, i64 = w.I32, w.I64
	i32x1    = []w.ValType{i32}
)

func i32s(n int) []w.ValType { return slices.Repeat(i32x1, n) }

func code(pieces ...[]byte) []byte { return slices.Concat(pieces...) }

// wasiFunctions are the functions of WASI that scripts use; all return an error number
// unless marked.
var wasiFunctions = []struct {
	name   string
	params []w.ValType
}{
	{"args_get", i32s(2)}, {"args_sizes_get", i32s(2)},
	{"environ_get", i32s(2)}, {"environ_sizes_get", i32s(2)},
	{"clock_time_get", []w.ValType{i32, i64, i32}},
	{"fd_allocate", []w.ValType{i32, i64, i64}},
	{"fd_close", i32s(1)},
	{"fd_fdstat_set_flags", i32s(2)},
	{"fd_filestat_get", i32s(2)},
	{"fd_filestat_set_size", []w.ValType{i32, i64}},
	{"fd_filestat_set_times", []w.ValType{i32, i64, i64, i32}},
	{"fd_prestat_get", i32s(2)},
	{"fd_pwrite", []w.ValType{i32, i32, i32, i64, i32}},
	{"fd_read", i32s(4)},
	{"fd_readdir", []w.ValType{i32, i32, i32, i64, i32}},
	{"fd_renumber", i32s(2)},
	{"fd_write", i32s(4)},
	{"path_create_directory", i32s(3)},
	{"path_filestat_get", i32s(5)},
	{"path_filestat_set_times", []w.ValType{i32, i32, i32, i32, i64, i64, i32}},
	{"path_link", i32s(7)},
	{"path_open", []w.ValType{i32, i32, i32, i32, i32, i64, i64, i32, i32}},
	{"path_readlink", i32s(6)},
	{"path_remove_directory", i32s(3)},
	{"path_rename", i32s(6)},
	{"path_symlink", i32s(5)},
	{"path_unlink_file", i32s(3)},
	{"poll_oneoff", i32s(4)},
	{"proc_exit", i32s(1)}, // does not return
	{"random_get", i32s(2)},
	{"sched_yield", nil},
	{"sock_accept", i32s(3)},
}

// hostFunctions are the host's own functions.
var hostFunctions = []struct {
	iface, name string
	params      []w.ValType
}{
	{"config", "get", i32s(3)},
	{"digest", "sha256", i32s(3)},
	{"digest", "sha1", i32s(3)},
	{"exec", "run", i32s(9)},
	{"http", "fetch", i32s(14)},
	{"kv", "get", i32s(3)},
	{"kv", "set", []w.ValType{i32, i32, i32, i32, i32, i64, i32}},
	{"log", "log", i32s(3)},
	{"progress", "report", []w.ValType{i64, i32, i64, i32, i32}},
	{"search", "stat", i32s(3)},
	{"secrets", "placeholder", i32s(3)},
}

// ownFunctions are the functions of the machine itself.
var ownFunctions = []function{
	// Goes back to an operand, up to that many times, while the call before returned
	// zero.
	{name: "again", sig: i32s(2), emit: func(*Machine) []byte {
		const pc, target, times = 0, 1, 2
		return code(
			w.LocalSet(times), w.LocalSet(target),
			w.LocalGet(pc), w.I32Load(4), w.I32Load(4), w.LocalGet(times), w.I32LtU(), w.GlobalGet(globalLast), w.I32Eqz(), w.I32And(),
			w.If(w.LocalGet(target), w.GlobalSet(globalNext)),
			w.GlobalGet(globalLast))
	}},
	// The same whatever the call before returned.
	{name: "always", sig: i32s(2), emit: func(*Machine) []byte {
		const pc, target, times = 0, 1, 2
		return code(
			w.LocalSet(times), w.LocalSet(target),
			w.LocalGet(pc), w.I32Load(4), w.I32Load(4), w.LocalGet(times), w.I32LtU(), w.If(w.LocalGet(target), w.GlobalSet(globalNext)),
			w.I32Const(0))
	}},
	// Adds 1 to the number at an address if the call before returned zero.
	{name: "tally", sig: i32x1, emit: func(*Machine) []byte {
		const at = 1
		return code(w.LocalTee(at), w.LocalGet(at), w.I32Load(0), w.GlobalGet(globalLast), w.I32Eqz(), w.I32Add(), w.I32Store(0), w.I32Const(0))
	}},
	{name: "store", sig: i32s(2), emit: thenZero(w.I32Store(0))},
	{name: "load", sig: i32s(1), emit: constCode(w.I32Load(0))},
	{name: "add", sig: i32s(2), emit: func(*Machine) []byte { // to the number at an address
		const at, more = 1, 2
		return code(w.LocalSet(more), w.LocalSet(at),
			w.LocalGet(at), w.LocalGet(at), w.I32Load(0), w.LocalGet(more), w.I32Add(), w.I32Store(0), w.I32Const(0))
	}},
	{name: "fill", sig: i32s(3), emit: thenZero(w.MemoryFill())}, // address, byte, length
	{name: "memory.grow", sig: i32s(1), emit: constCode(w.MemoryGrow())},
	{name: "memory.size", emit: constCode(w.MemorySize())},
	{name: "table.grow", sig: i32s(1), emit: func(*Machine) []byte {
		return code(w.LocalSet(1), w.RefNull(w.FuncRef), w.LocalGet(1), w.TableGrow(0))
	}},
	{name: "table.size", emit: constCode([]byte{0xfc, 16, 0})},
	{name: "ref.func", emit: func(m *Machine) []byte { return code(w.RefFunc(m.base+addedPlay), w.Drop(), w.I32Const(0)) }},
	{name: "state.set", sig: i32s(1), emit: thenZero(w.GlobalSet(globalState))},
	{name: "state.get", emit: constCode(w.GlobalGet(globalState))},
	// Ends the module without a report: with the result at an address, or the return
	// value of a plugin's function. A command just ends.
	{name: "leave", sig: i32s(1), emit: thenZero(code(w.GlobalSet(globalResult), w.I32Const(1), w.GlobalSet(globalEnded)))},
	{name: "say", sig: i32s(2), emit: func(m *Machine) []byte { return code(w.Call(m.base+addedSay), w.I32Const(0)) }}, // a text to the host
	{name: "burn", sig: []w.ValType{i64}, emit: func(m *Machine) []byte { return code(m.Burn(), w.I32Const(0)) }},
	{name: "recurse", sig: i32s(1), emit: func(m *Machine) []byte { return w.Call(m.base + addedDown) }}, // to that depth
	{name: "recurse.self", sig: i32s(1), emit: func(m *Machine) []byte { return w.Call(m.base + addedSelf) }},
	{name: "tree", emit: func(m *Machine) []byte { return code(w.Call(m.base+addedTree), w.I32Const(0)) }},
	{name: "trap", emit: constCode(w.Unreachable())},
}

func constCode(c []byte) func(*Machine) []byte { return func(*Machine) []byte { return c } }

func thenZero(c []byte) func(*Machine) []byte { return constCode(code(c, w.I32Const(0))) }

// treeDepth is the depth to which the calls of "tree" branch: 2^33 calls, which take
// minutes and end.
const treeDepth = 33

// functions lists the functions that scripts can call, of all kinds.
var functions = sync.OnceValue(func() (all []function) {
	for _, f := range wasiFunctions {
		imp := w.Import{Module: "wasi_snapshot_preview1", Name: f.name, Params: f.params, Results: i32x1}
		if f.name == "proc_exit" {
			imp.Results = nil
		}
		all = append(all, function{name: f.name, imp: &imp, sig: f.params})
	}
	for _, f := range hostFunctions {
		imp := w.Import{Module: abi.ImportModule(f.iface), Name: f.name, Params: f.params}
		all = append(all, function{name: f.iface + "." + f.name, imp: &imp, sig: f.params, kinds: []Kind{Native}})
	}
	for _, module := range pluginFunctions {
		for _, f := range module.functions {
			imp := w.Import{Module: module.module, Name: f.name, Params: f.params, Results: f.results}
			all = append(all, function{name: "extism." + f.name, imp: &imp, sig: f.params, kinds: []Kind{Plugin}})
		}
	}
	return slices.Concat(all, ownFunctions, blockFunctions)
})

// FunctionNumbers returns the number of each function in scripts, from 1, by name.
var FunctionNumbers = sync.OnceValue(func() map[string]int {
	numbers := map[string]int{}
	for i, f := range functions() {
		numbers[f.name] = i + 1
	}
	return numbers
})

// OperandCounts returns the number of operands of each function, by name.
var OperandCounts = sync.OnceValue(func() map[string]int {
	params := map[string]int{}
	for _, f := range functions() {
		params[f.name] = len(f.sig)
	}
	return params
})

// Options holds the differences from a machine that only executes its script.
type Options struct {
	Kind Kind
	// Start is the body of the module's start function, and Initialize that of
	// _initialize, which the host does not call in a command. Nil: none.
	Start, Initialize func(m *Machine) []byte
	// Section is the manifest in the custom section of a command. Empty: none.
	Section string
	// ListsTools makes a plugin that lists and calls its tools itself, like one of
	// hyper-mcp; it has no section.
	ListsTools bool
	// Pages is the size of the memory in pages, if more than the constant Pages.
	Pages int
	// Data is put into the memory.
	Data []w.Segment
}

// PlainModule returns the machine without options, as a module of a kind.
func PlainModule(k Kind) []byte { return plainModules()[k] }

var plainModules = sync.OnceValue(func() (all [][]byte) {
	for _, k := range Kinds {
		all = append(all, Module(Options{Kind: k}))
	}
	return all
})

// Module returns a machine with options.
func Module(o Options) []byte {
	m := &Machine{kind: o.Kind, importIndices: map[string]uint32{}}
	for _, f := range functions() {
		if f.imp != nil && f.availableIn(m.kind) {
			m.importIndices[f.name] = uint32(len(m.imports))
			m.imports = append(m.imports, *f.imp)
		}
	}
	o.Pages = max(o.Pages, Pages)
	if m.kind == Native {
		return m.native(o)
	}
	m.base = uint32(len(m.imports))
	b := w.New()
	for _, i := range m.imports {
		b.ImportFunc(i.Module, i.Name, i.Params, i.Results)
	}
	b.Memory(o.Pages, -1)
	b.ExportMemory("memory")
	b.Global(i32, true, w.I32Const(0)) // instead of the allocator's
	for _, s := range append(o.Data, m.frameSegments()...) {
		b.Data(s.Offset, s.Bytes)
	}
	m.add(b, o)
	if o.Initialize != nil {
		b.Func("_initialize", nil, nil, nil, o.Initialize(m))
	}
	if m.kind == Plugin {
		m.plugin(b, o.ListsTools)
		if !o.ListsTools {
			o.Section = pluginSection
		}
	} else {
		m.command(b)
	}
	if o.Section != "" {
		b.Custom(wasm.ManifestSection, []byte(o.Section))
	}
	return b.Bytes()
}

// ImportIndex returns the index of an import. It panics if the kind does not have it.
func (m *Machine) ImportIndex(name string) uint32 {
	n, ok := m.importIndices[name]
	if !ok {
		panic("machine: a " + m.kind.String() + " has no " + name)
	}
	return n
}

// call returns code that calls an import.
func (m *Machine) call(name string) []byte { return w.Call(m.ImportIndex(name)) }

// Block returns code that copies memory into a new block of a plugin, and leaves the
// offset of the block. The address and the length are i32s on the stack.
func (m *Machine) Block() []byte { return w.Call(m.base + addedBlock) }

// Burn returns code with a loop of as many turns as the i64 on the stack.
func (m *Machine) Burn() []byte { return w.Call(m.base + addedBurn) }

// play is the body of the function that finds the script in the input at an address,
// makes its calls one by one, and writes the report. It returns 1 if the script has ended
// the module early, so that there is no report.
func (m *Machine) play() []byte {
	const from, to, char = 0, 1, 2
	const pc, returned = from, to
	digit := func(at uint32) []byte { // (c & 15) + (c >> 6) * 9
		c := code(w.LocalGet(from), w.I32Load8U(at))
		return code(c, w.I32Const(15), w.I32And(), c, w.I32Const(6), w.I32ShrU(), w.I32Const(9), w.I32Mul(), w.I32Add())
	}
	nibble := func(c []byte) []byte { // n + '0' + (n > 9) * ('a' - '9' - 1)
		return code(c, w.LocalTee(char), w.I32Const('0'), w.I32Add(), w.LocalGet(char), w.I32Const(9), w.I32GtU(), w.I32Const(39), w.I32Mul(), w.I32Add())
	}
	return code(
		// If an instance serves another call, which it must not, that has to be noticed.
		w.I32Const(ReportBase), w.I32Const(0), w.I32Const(ReportSize), w.MemoryFill(), w.I32Const(0), w.GlobalSet(globalEnded),
		// The input before the key depends on the kind.
		w.Loop(
			w.LocalGet(from), w.I32Const(1), w.I32Add(), w.LocalTee(from),
			load64(0), w.I64Const(1<<56-1), i64And, w.I64Const(littleEndian(scriptKey)), i64Ne, w.BrIf(0),
		),
		w.LocalGet(from), w.I32Const(int32(len(scriptKey))), w.I32Add(), w.LocalSet(from),
		w.I32Const(ImageBase), w.LocalSet(to),
		w.Loop(
			w.LocalGet(from), w.I32Load8U(0), w.I32Const('"'), w.I32Ne(), w.If(
				w.LocalGet(to), digit(0), w.I32Const(4), w.I32Shl(), digit(1), w.I32Add(), w.I32Store8(0),
				w.LocalGet(to), w.I32Const(1), w.I32Add(), w.LocalSet(to),
				w.LocalGet(from), w.I32Const(2), w.I32Add(), w.LocalSet(from),
				w.Br(1),
			),
		),
		w.I32Const(ImageBase), w.I32Load(0), w.LocalSet(pc),
		w.Loop(
			w.LocalGet(pc), w.LocalGet(pc), w.I32Load(8), w.I32Add(), w.GlobalSet(globalNext),
			w.LocalGet(pc), w.Call(m.base+addedStep), w.LocalSet(returned),
			w.LocalGet(pc), w.I32Load(4), w.LocalGet(returned), w.I32Store(0),
			w.LocalGet(pc), w.I32Load(4), w.LocalGet(pc), w.I32Load(4), w.I32Load(4), w.I32Const(1), w.I32Add(), w.I32Store(4),
			w.LocalGet(returned), w.GlobalSet(globalLast),
			w.GlobalGet(globalEnded), w.If(w.I32Const(1), w.Return()),
			w.GlobalGet(globalNext), w.LocalTee(pc), w.I32Load(0), w.BrIf(0),
		),
		w.I32Const(ReportBase), w.LocalSet(from),
		w.I32Const(m.hexBase()), w.LocalSet(to),
		w.Loop(
			w.LocalGet(to), nibble(code(w.LocalGet(from), w.I32Load8U(0), w.I32Const(4), w.I32ShrU())), w.I32Store8(0),
			w.LocalGet(to), nibble(code(w.LocalGet(from), w.I32Load8U(0), w.I32Const(15), w.I32And())), w.I32Store8(1),
			w.LocalGet(to), w.I32Const(2), w.I32Add(), w.LocalSet(to),
			w.LocalGet(from), w.I32Const(1), w.I32Add(), w.LocalTee(from), w.I32Const(ReportBase+ReportSize), w.I32LtU(), w.BrIf(0),
		),
		w.I32Const(0),
	)
}

// scriptKey is the text before a script, in any input. It has 7 bytes.
const scriptKey = `"` + ScriptArgument + `":"`

func littleEndian(key string) (v int64) {
	for i := range len(key) {
		v |= int64(key[i]) << (8 * i)
	}
	return v
}

// add adds everything but the front.
func (m *Machine) add(b *w.Builder, o Options) {
	b.Table(1, -1)
	for range globalState {
		b.Global(i32, true, w.I32Const(0))
	}
	b.Global(w.FuncRef, false, w.RefFunc(m.base+addedPlay)) // so that ref.func can name it
	const at = 0
	b.Func("", i32x1, i32x1, i32s(2), m.play()) // addedPlay
	b.Func("", i32x1, []w.ValType{i64}, nil,    // addedOperand: the operand at an address
		w.LocalGet(at), w.I32Load(0), w.If(w.LocalGet(at), w.I32Load(8), w.I32Load(0), i64ExtendI32, w.Return()),
		w.LocalGet(at), load64(8))
	b.Func("", i32x1, i32x1, []w.ValType{i32, i32, i64}, m.step()) // addedStep
	b.Func("", i32s(2), nil, nil, m.say())                         // addedSay
	m.addBlocks(b)
	const left = 0
	b.Func("", []w.ValType{i64}, nil, nil, // addedBurn: turns so many times
		w.Loop(w.LocalGet(left), w.I64Const(1), []byte{0x7d}, w.LocalTee(left), []byte{0x50}, w.I32Eqz(), w.BrIf(0)))
	// addedDown and addedUp call each other that many times, and addedSelf itself; they
	// add up on the way back, so that no engine can turn them into loops.
	for _, other := range []uint32{addedUp, addedDown, addedSelf} {
		b.Func("", i32x1, i32x1, nil,
			w.LocalGet(0), w.I32Eqz(), w.If(w.I32Const(0), w.Return()),
			w.LocalGet(0), w.I32Const(1), w.I32Sub(), w.Call(m.base+other), w.I32Const(1), w.I32Add())
	}
	for i := range uint32(treeDepth) {
		next := m.base + addedTree + i + 1
		b.Func("", nil, nil, nil, w.Call(next), w.Call(next))
	}
	b.Func("", nil, nil, nil)
	if o.Start != nil {
		b.Start(b.Func("", nil, nil, nil, o.Start(m)))
	}
}

var (
	i64ExtendI32 = []byte{0xad} // i64.extend_i32_u
	i32WrapI64   = []byte{0xa7} // i32.wrap_i64
	i64And       = []byte{0x83}
	i64Ne        = []byte{0x52}
	i64Add       = []byte{0x7c}
	i64Shr       = []byte{0x88} // unsigned
	i64Eqz       = []byte{0x50}
)

func load64(offset uint32) []byte { return code([]byte{0x29, 0}, w.U32(offset)) }

func store64(offset uint32) []byte { return code([]byte{0x37, 0}, w.U32(offset)) }

// step is the body of the function that makes the call at an address.
func (m *Machine) step() []byte {
	const pc, long = 0, 3
	var own []function
	labels := make([]uint32, len(functions())+1) // 0 is no function
	for i, f := range functions() {
		if labels[i+1] = ^uint32(0); f.availableIn(m.kind) {
			labels[i+1] = uint32(len(own))
			own = append(own, f)
		}
	}
	labels[0] = ^uint32(0)
	for i, l := range labels {
		labels[i] = min(l, uint32(len(own)))
	}
	body := code(w.LocalGet(pc), w.I32Load(0), w.BrTable(append(labels, uint32(len(own)))...))
	for _, f := range own {
		var call []byte
		for n, t := range f.sig {
			call = append(call, code(w.LocalGet(pc), w.I32Const(int32(OpSize+n*OperandSize)), w.I32Add(), w.Call(m.base+addedOperand))...)
			if t == i32 {
				call = append(call, i32WrapI64...)
			}
		}
		switch {
		case f.imp == nil:
			call = append(call, f.emit(m)...)
		case len(f.imp.Results) == 0:
			call = append(call, code(m.call(f.name), w.I32Const(0))...)
		case f.imp.Results[0] == i64: // a result of more than 32 bits becomes all ones
			call = append(call, code(m.call(f.name), w.LocalTee(long), w.I64Const(32), i64Shr, i64Eqz,
				w.If(w.LocalGet(long), i32WrapI64, w.Return()), w.I32Const(-1))...)
		default:
			call = append(call, m.call(f.name)...)
		}
		body = code(w.Block(body), call, w.Return())
	}
	return code(w.Block(body), w.Unreachable())
}
