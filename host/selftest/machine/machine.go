// Package machine is the guest with which selftest attacks: a module that
// carries out a script, which lies in its arguments, and answers with a report.
//
// A script is the image of a piece of the machine's memory, in hexadecimal: its
// data, and then its calls, each of a function with operands. The functions are
// those of WASI and of the host, by their names ("fd_read", "log.log"), and what
// the machine does by itself ("store", "burn"); [Numbers] gives their numbers. A
// report says of each call what it returned and how often it was made, and holds
// what the calls have left there.
package machine

import (
	"slices"
	"sync"

	"github.com/stockade-dev/stockade/host/sandbox/abi"
	w "github.com/stockade-dev/stockade/host/wasm/wasmtest"
)

// ScriptPrefix is what comes before a script in the arguments of the machine.
// No argument has a name that is sorted before this one.
const ScriptPrefix = `{"asm":"`

// The memory of the machine. The allocator's heap lies below all of this.
const (
	ImageBase  = 0x200000 // the script: its address, then its data, then its calls
	ImageBytes = 0x100000
	ReportBase = 0x300000 // what each call returned, and what it left for the report
	ResultsEnd = 0x1000   // of the report: up to here lie the results
	ReportSize = 0x2000
	hexBase    = 0x308000 // the report as text
	BufferBase = 0x310000 // nobody's; for what is read and written by the 64 KiB
	BufferSize = 0x10000
	StateAt    = 0x330000 // stays zero unless a script writes there

	Pages = 56 // of memory
)

// A call of a script lies in the memory as a header and its operands.
const (
	OpSize      = 16 // function, address of its result, size with operands, nothing
	OperandSize = 16 // kind, nothing, value (64 bits)
	ResultSize  = 8  // what it returned, how often it was made

	Immediate = 0 // the value is the operand
	Indirect  = 1 // the operand is the 32-bit number at the address that the value is
)

// function is what a script can call: an import, or something that the machine
// does by itself.
type function struct {
	name string
	imp  *w.Import
	sig  []w.ValType
	own  func(m *Machine) []byte // the code, with the operands on the stack; leaves an i32
}

// Globals of the machine. The first belongs to the allocator.
const (
	globalNext  = iota + 1 // the address of the next call
	globalLast             // what the call before this one returned
	globalLeave            // where the result of the module lies, if the script says so
	globalState            // zero unless a script sets it
)

// Machine is the module while it is assembled.
type Machine struct {
	functions []function
	imports   []w.Import
	base      uint32 // index of the first function that the machine adds
}

// Functions that the machine adds, by their distance from the base.
const (
	addedOperand = iota
	addedStep
	addedBurn
	addedDown
	addedUp
	addedSelf
	addedTree // and those that it calls
)

var (
	i32, i64 = w.I32, w.I64
	i32x1    = []w.ValType{i32}
)

func i32s(n int) []w.ValType { return slices.Repeat(i32x1, n) }

func code(pieces ...[]byte) []byte { return slices.Concat(pieces...) }

// wasiFunctions are those of WASI that scripts use; all return an error number
// unless said otherwise.
var wasiFunctions = []struct {
	name   string
	params []w.ValType
}{
	{"args_sizes_get", i32s(2)}, {"environ_sizes_get", i32s(2)},
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

// hostFunctions are our own.
var hostFunctions = []struct {
	iface, name string
	params      []w.ValType
}{
	{"exec", "run", i32s(9)},
	{"http", "fetch", i32s(14)},
	{"kv", "get", i32s(3)},
	{"kv", "set", []w.ValType{i32, i32, i32, i32, i32, i64, i32}},
	{"log", "log", i32s(3)},
	{"progress", "report", []w.ValType{i64, i32, i64, i32, i32}},
	{"secrets", "placeholder", i32s(3)},
}

// ownFunctions are what the machine does by itself.
var ownFunctions = []function{
	// Goes back to an operand, up to so many times, while the call before
	// returned zero.
	{name: "again", sig: i32s(2), own: func(*Machine) []byte {
		const pc, target, times = 0, 1, 2
		return code(
			w.LocalSet(times), w.LocalSet(target),
			w.LocalGet(pc), w.I32Load(4), w.I32Load(4), w.LocalGet(times), w.I32LtU(), w.GlobalGet(globalLast), w.I32Eqz(), w.I32And(),
			w.If(w.LocalGet(target), w.GlobalSet(globalNext)),
			w.GlobalGet(globalLast))
	}},
	// The same whatever the call before returned.
	{name: "always", sig: i32s(2), own: func(*Machine) []byte {
		const pc, target, times = 0, 1, 2
		return code(
			w.LocalSet(times), w.LocalSet(target),
			w.LocalGet(pc), w.I32Load(4), w.I32Load(4), w.LocalGet(times), w.I32LtU(), w.If(w.LocalGet(target), w.GlobalSet(globalNext)),
			w.I32Const(0))
	}},
	// Adds 1 to the number at an address if the call before returned zero.
	{name: "tally", sig: i32x1, own: func(*Machine) []byte {
		const at = 1
		return code(w.LocalTee(at), w.LocalGet(at), w.I32Load(0), w.GlobalGet(globalLast), w.I32Eqz(), w.I32Add(), w.I32Store(0), w.I32Const(0))
	}},
	{name: "store", sig: i32s(2), own: done(w.I32Store(0))},
	{name: "load", sig: i32s(1), own: only(w.I32Load(0))},
	{name: "add", sig: i32s(2), own: func(*Machine) []byte { // to the number at an address
		const at, more = 1, 2
		return code(w.LocalSet(more), w.LocalSet(at),
			w.LocalGet(at), w.LocalGet(at), w.I32Load(0), w.LocalGet(more), w.I32Add(), w.I32Store(0), w.I32Const(0))
	}},
	{name: "fill", sig: i32s(3), own: done(w.MemoryFill())}, // address, byte, length
	{name: "memory.grow", sig: i32s(1), own: only(w.MemoryGrow())},
	{name: "memory.size", own: only(w.MemorySize())},
	{name: "table.grow", sig: i32s(1), own: func(*Machine) []byte {
		return code(w.LocalSet(1), w.RefNull(w.FuncRef), w.LocalGet(1), w.TableGrow(0))
	}},
	{name: "table.size", own: only([]byte{0xfc, 16, 0})},
	{name: "state.set", sig: i32s(1), own: done(w.GlobalSet(globalState))},
	{name: "state.get", own: only(w.GlobalGet(globalState))},
	{name: "leave", sig: i32s(1), own: done(w.GlobalSet(globalLeave))}, // with the result at an address
	{name: "burn", sig: []w.ValType{i64}, own: func(m *Machine) []byte { return code(m.Burn(), w.I32Const(0)) }},
	{name: "recurse", sig: i32s(1), own: func(m *Machine) []byte { return w.Call(m.base + addedDown) }}, // so deep
	{name: "recurse.self", sig: i32s(1), own: func(m *Machine) []byte { return w.Call(m.base + addedSelf) }},
	{name: "tree", own: func(m *Machine) []byte { return code(w.Call(m.base+addedTree), w.I32Const(0)) }},
	{name: "trap", own: only(w.Unreachable())},
}

func only(c []byte) func(*Machine) []byte { return func(*Machine) []byte { return c } }

func done(c []byte) func(*Machine) []byte { return only(code(c, w.I32Const(0))) }

// treeDepth is how deep the calls of "tree" branch: 2^33 of them, which is
// minutes and not for ever.
const treeDepth = 33

// assembled lists the functions and numbers them.
func assembled() *Machine {
	m := &Machine{}
	for _, f := range wasiFunctions {
		imp := w.Import{Module: "wasi_snapshot_preview1", Name: f.name, Params: f.params, Results: i32x1}
		if f.name == "proc_exit" {
			imp.Results = nil
		}
		m.functions = append(m.functions, function{name: f.name, imp: &imp, sig: f.params})
	}
	for _, f := range hostFunctions {
		imp := w.Import{Module: abi.ImportModule(f.iface), Name: f.name, Params: f.params}
		m.functions = append(m.functions, function{name: f.iface + "." + f.name, imp: &imp, sig: f.params})
	}
	for _, f := range m.functions {
		m.imports = append(m.imports, *f.imp)
	}
	m.functions = append(m.functions, ownFunctions...)
	m.base = w.ToolOptions{Imports: m.imports}.CallFunc() + 1
	return m
}

// Numbers gives each function its number in scripts, from 1.
var Numbers = sync.OnceValue(func() map[string]int {
	numbers := map[string]int{}
	for i, f := range assembled().functions {
		numbers[f.name] = i + 1
	}
	return numbers
})

// Params is how many operands each function has.
var Params = sync.OnceValue(func() map[string]int {
	params := map[string]int{}
	for _, f := range assembled().functions {
		params[f.name] = len(f.sig)
	}
	return params
})

// Code is the module.
var Code = sync.OnceValue(func() []byte { return assembled().assemble(w.ToolOptions{}) })

// Initializing is the machine as a module that does something while it
// initialises.
func Initializing(body func(m *Machine) []byte, data ...w.Segment) []byte {
	m := assembled()
	m.base++ // _initialize comes before what the machine adds
	return m.assemble(w.ToolOptions{Initialize: body(m), Data: data})
}

// Number is the index of an import.
func (m *Machine) Number(name string) uint32 {
	return uint32(slices.IndexFunc(m.functions, func(f function) bool { return f.name == name }))
}

// Burn is the code that turns a loop so often as the i64 on the stack says.
func (m *Machine) Burn() []byte { return w.Call(m.base + addedBurn) }

func (m *Machine) assemble(o w.ToolOptions) []byte {
	o.Imports, o.MemoryMin = m.imports, Pages
	o.Locals, o.Call, o.Edit = i32s(3), m.run(), m.add
	return w.Tool(o)
}

// run is the body of the machine's call function: read the script, make its
// calls one by one, write the report.
func (m *Machine) run() []byte {
	const from, to, char = w.FirstLocal, w.FirstLocal + 1, w.FirstLocal + 2
	const pc, returned = from, to
	digit := func(at uint32) []byte { // (c & 15) + (c >> 6) * 9
		c := code(w.LocalGet(from), w.I32Load8U(at))
		return code(c, w.I32Const(15), w.I32And(), c, w.I32Const(6), w.I32ShrU(), w.I32Const(9), w.I32Mul(), w.I32Add())
	}
	nibble := func(c []byte) []byte { // n + '0' + (n > 9) * ('a' - '9' - 1)
		return code(c, w.LocalTee(char), w.I32Const('0'), w.I32Add(), w.LocalGet(char), w.I32Const(9), w.I32GtU(), w.I32Const(39), w.I32Mul(), w.I32Add())
	}
	const list = w.ScratchBase + 24
	return code(
		// Where an instance serves another call, which it must not, that has to be noticed.
		w.I32Const(ReportBase), w.I32Const(0), w.I32Const(ReportSize), w.MemoryFill(), w.I32Const(0), w.GlobalSet(globalLeave),
		w.LocalGet(w.ParamArgs), w.I32Const(int32(len(ScriptPrefix))), w.I32Add(), w.LocalSet(from),
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
			w.GlobalGet(globalLeave), w.If(w.GlobalGet(globalLeave), w.Return()),
			w.GlobalGet(globalNext), w.LocalTee(pc), w.I32Load(0), w.BrIf(0),
		),
		w.I32Const(ReportBase), w.LocalSet(from),
		w.I32Const(hexBase), w.LocalSet(to),
		w.Loop(
			w.LocalGet(to), nibble(code(w.LocalGet(from), w.I32Load8U(0), w.I32Const(4), w.I32ShrU())), w.I32Store8(0),
			w.LocalGet(to), nibble(code(w.LocalGet(from), w.I32Load8U(0), w.I32Const(15), w.I32And())), w.I32Store8(1),
			w.LocalGet(to), w.I32Const(2), w.I32Add(), w.LocalSet(to),
			w.LocalGet(from), w.I32Const(1), w.I32Add(), w.LocalTee(from), w.I32Const(ReportBase+ReportSize), w.I32LtU(), w.BrIf(0),
		),
		w.ReturnWords(w.ResultOK, list, 1, 0, 0, 0, w.ContentText, hexBase, 2*ReportSize, 0, 0, 0, 0, 0, 0),
	)
}

// add adds what the machine has besides its call function.
func (m *Machine) add(b *w.Builder) {
	b.ExportFunc("cabi_import_realloc", uint32(len(m.imports)))
	b.Table(1, -1)
	for range globalState {
		b.Global(i32, true, w.I32Const(0))
	}
	const at = 0
	b.Func("", i32x1, []w.ValType{i64}, nil, // addedOperand: the operand at an address
		w.LocalGet(at), w.I32Load(0), w.If(w.LocalGet(at), w.I32Load(8), w.I32Load(0), extend, w.Return()),
		w.LocalGet(at), load64(8))
	b.Func("", i32x1, i32x1, i32s(2), m.step()) // addedStep
	const left = 0
	b.Func("", []w.ValType{i64}, nil, nil, // addedBurn: turns so many times
		w.Loop(w.LocalGet(left), w.I64Const(1), []byte{0x7d}, w.LocalTee(left), []byte{0x50}, w.I32Eqz(), w.BrIf(0)))
	// addedDown and addedUp call each other so many times, and addedSelf itself;
	// they add up on the way back, so that no engine can make loops of them.
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
}

var extend = []byte{0xad} // i64.extend_i32_u

func load64(offset uint32) []byte { return code([]byte{0x29, 3}, w.U32(offset)) }

// step is the body of the function that makes the call at an address.
func (m *Machine) step() []byte {
	const pc = 0
	labels := []uint32{uint32(len(m.functions))} // 0 is no function
	for i := range m.functions {
		labels = append(labels, uint32(i))
	}
	body := code(w.LocalGet(pc), w.I32Load(0), w.BrTable(append(labels, uint32(len(m.functions)))...))
	for i, f := range m.functions {
		var call []byte
		for n, t := range f.sig {
			call = append(call, code(w.LocalGet(pc), w.I32Const(int32(OpSize+n*OperandSize)), w.I32Add(), w.Call(m.base+addedOperand))...)
			if t == i32 {
				call = append(call, 0xa7) // i32.wrap_i64
			}
		}
		if f.imp != nil {
			call = append(call, w.Call(uint32(i))...)
			if len(f.imp.Results) == 0 {
				call = append(call, w.I32Const(0)...)
			}
		} else {
			call = append(call, f.own(m)...)
		}
		body = code(w.Block(body), call, w.Return())
	}
	return code(w.Block(body), w.Unreachable())
}
