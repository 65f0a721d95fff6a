package wasm

// Op is an instruction. A one-byte opcode is its own value; for an instruction with a prefix byte,
// its number is added to a base, see [OpMisc], [OpVector] and [OpAtomic].
type Op uint16

// The bases of instructions with a prefix byte, and the largest Op.
const (
	OpMisc   Op = 0x100 // prefix 0xfc: saturating truncation, bulk memory, tables
	OpVector Op = 0x200 // prefix 0xfd: vectors
	OpAtomic Op = 0x400 // prefix 0xfe: atomic operations of threads
	MaxOp    Op = 0x44e
)

// The instructions that parts of the host besides the engine need to know.
const (
	OpUnreachable        Op = 0x00
	OpNop                Op = 0x01
	OpBlock              Op = 0x02
	OpLoop               Op = 0x03
	OpIf                 Op = 0x04
	OpElse               Op = 0x05
	OpThrow              Op = 0x08
	OpThrowRef           Op = 0x0a
	OpEnd                Op = 0x0b
	OpBr                 Op = 0x0c
	OpBrIf               Op = 0x0d
	OpBrTable            Op = 0x0e
	OpReturn             Op = 0x0f
	OpCall               Op = 0x10
	OpCallIndirect       Op = 0x11
	OpReturnCall         Op = 0x12
	OpReturnCallIndirect Op = 0x13
	OpDrop               Op = 0x1a
	OpSelect             Op = 0x1b
	OpSelectTyped        Op = 0x1c
	OpTryTable           Op = 0x1f
	OpLocalGet           Op = 0x20
	OpLocalSet           Op = 0x21
	OpLocalTee           Op = 0x22
	OpGlobalGet          Op = 0x23
	OpGlobalSet          Op = 0x24
	OpTableGet           Op = 0x25
	OpTableSet           Op = 0x26
	OpI32Load            Op = 0x28 // the first memory access without a prefix byte
	OpI64Store32         Op = 0x3e // the last memory access without a prefix byte
	OpMemorySize         Op = 0x3f
	OpMemoryGrow         Op = 0x40
	OpI32Const           Op = 0x41
	OpI64Const           Op = 0x42
	OpF32Const           Op = 0x43
	OpF64Const           Op = 0x44
	OpI32DivS            Op = 0x6d
	OpI32RemU            Op = 0x70
	OpI64DivS            Op = 0x7f
	OpI64RemU            Op = 0x82
	OpF32Sqrt            Op = 0x91
	OpF32Div             Op = 0x95
	OpF64Sqrt            Op = 0x9f
	OpF64Div             Op = 0xa3
	OpI32TruncF32S       Op = 0xa8
	OpI32TruncF64U       Op = 0xab
	OpI64TruncF32S       Op = 0xae
	OpI64TruncF64U       Op = 0xb1
	OpI64Extend32S       Op = 0xc4 // the last numeric instruction
	OpRefNull            Op = 0xd0
	OpRefIsNull          Op = 0xd1
	OpRefFunc            Op = 0xd2

	OpMemoryInit = OpMisc + 8
	OpDataDrop   = OpMisc + 9
	OpMemoryCopy = OpMisc + 10
	OpMemoryFill = OpMisc + 11
	OpTableInit  = OpMisc + 12
	OpElemDrop   = OpMisc + 13
	OpTableCopy  = OpMisc + 14
	OpTableGrow  = OpMisc + 15
	OpTableSize  = OpMisc + 16
	OpTableFill  = OpMisc + 17

	OpV128Load        = OpVector + 0x00
	OpV128Store       = OpVector + 0x0b
	OpV128Const       = OpVector + 0x0c
	OpI8x16Shuffle    = OpVector + 0x0d
	OpV128Load8Lane   = OpVector + 0x54
	OpV128Store64Lane = OpVector + 0x5b
	OpV128Load32Zero  = OpVector + 0x5c
	OpV128Load64Zero  = OpVector + 0x5d
	OpF32x4Sqrt       = OpVector + 0xe3
	OpF32x4Div        = OpVector + 0xe7
	OpF64x2Sqrt       = OpVector + 0xef
	OpF64x2Div        = OpVector + 0xf3

	OpAtomicNotify = OpAtomic + 0x00
	OpAtomicWait32 = OpAtomic + 0x01
	OpAtomicWait64 = OpAtomic + 0x02
	OpAtomicFence  = OpAtomic + 0x03
)

// Names of extensions of WebAssembly that the host does not run; there are more.
const (
	exceptions         = "exceptions"
	extendedConstants  = "extended constant expressions"
	functionReferences = "typed function references"
	garbageCollection  = "garbage collection (WasmGC)"
	threads            = "threads"
)

// extension returns the extension of WebAssembly to which an instruction belongs; empty: the host
// runs the instruction, or it is unknown.
func (op Op) extension() string {
	switch op {
	case 0x06, 0x07, 0x09, 0x18, 0x19, OpThrow, OpThrowRef, OpTryTable: // and those of the older proposal
		return exceptions
	case OpReturnCall, OpReturnCallIndirect:
		return "tail calls"
	case 0x14, 0x15, 0xd4, 0xd5, 0xd6:
		return functionReferences
	case 0xd3, 0xfb:
		return garbageCollection
	}
	if op >= OpAtomic {
		return threads
	}
	return ""
}

// immediate is the kind of the operands that follow an opcode in the code.
type immediate byte

const (
	immUnknown immediate = iota // no such instruction
	immNone
	immBlock      // block type
	immLabel      // depth of a label
	immLabels     // br_table
	immFunc       // function
	immIndirect   // type and table
	immTypes      // result types of select
	immTry        // block type and catch clauses
	immTag        // exception tag
	immLocal      // local
	immGlobal     // global
	immTable      // table
	immTableTable // table and table
	immElemTable  // element segment and table
	immElem       // element segment
	immDataMem    // data segment and memory, which is always 0
	immData       // data segment
	immMem        // memory
	immMemMem     // memory and memory
	immMemarg     // alignment and offset
	immMemargLane // alignment, offset and lane
	immLane       // lane
	immI32        // constant
	immI64        // constant
	immBytes4     // constant
	immBytes8     // constant
	immBytes16    // constant
	immHeap       // heap type
	immZero       // a zero byte
)

var immediates = func() (t [MaxOp + 1]immediate) {
	set := func(from, to Op, imm immediate) {
		for op := from; op <= to; op++ {
			t[op] = imm
		}
	}
	set(OpUnreachable, OpNop, immNone)
	set(OpBlock, OpIf, immBlock)
	set(OpElse, OpElse, immNone)
	set(OpThrow, OpThrow, immTag)
	set(OpThrowRef, OpEnd, immNone)
	set(OpBr, OpBrIf, immLabel)
	set(OpBrTable, OpBrTable, immLabels)
	set(OpReturn, OpReturn, immNone)
	set(OpCall, OpCall, immFunc)
	set(OpCallIndirect, OpCallIndirect, immIndirect)
	set(OpReturnCall, OpReturnCall, immFunc)
	set(OpReturnCallIndirect, OpReturnCallIndirect, immIndirect)
	set(OpDrop, OpSelect, immNone)
	set(OpSelectTyped, OpSelectTyped, immTypes)
	set(OpTryTable, OpTryTable, immTry)
	set(OpLocalGet, OpLocalTee, immLocal)
	set(OpGlobalGet, OpGlobalSet, immGlobal)
	set(OpTableGet, OpTableSet, immTable)
	set(OpI32Load, OpI64Store32, immMemarg)
	set(OpMemorySize, OpMemoryGrow, immMem)
	set(OpI32Const, OpI32Const, immI32)
	set(OpI64Const, OpI64Const, immI64)
	set(OpF32Const, OpF32Const, immBytes4)
	set(OpF64Const, OpF64Const, immBytes8)
	set(OpF64Const+1, OpI64Extend32S, immNone)
	set(OpRefNull, OpRefNull, immHeap)
	set(OpRefIsNull, OpRefIsNull, immNone)
	set(OpRefFunc, OpRefFunc, immFunc)

	set(OpMisc, OpMisc+7, immNone)
	set(OpMemoryInit, OpMemoryInit, immDataMem)
	set(OpDataDrop, OpDataDrop, immData)
	set(OpMemoryCopy, OpMemoryCopy, immMemMem)
	set(OpMemoryFill, OpMemoryFill, immMem)
	set(OpTableInit, OpTableInit, immElemTable)
	set(OpElemDrop, OpElemDrop, immElem)
	set(OpTableCopy, OpTableCopy, immTableTable)
	set(OpTableGrow, OpTableFill, immTable)

	set(OpV128Load, OpV128Store, immMemarg)
	set(OpV128Const, OpI8x16Shuffle, immBytes16)
	set(OpI8x16Shuffle+1, OpVector+0x14, immNone)
	set(OpVector+0x15, OpVector+0x22, immLane)
	set(OpVector+0x23, OpVector+0x53, immNone)
	set(OpV128Load8Lane, OpV128Store64Lane, immMemargLane)
	set(OpV128Load32Zero, OpV128Load64Zero, immMemarg)
	set(OpV128Load64Zero+1, OpVector+0xff, immNone)

	set(OpAtomicNotify, OpAtomicWait64, immMemarg)
	set(OpAtomicFence, OpAtomicFence, immZero)
	set(OpAtomic+0x10, MaxOp, immMemarg)
	return t
}()
