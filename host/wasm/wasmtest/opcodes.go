package wasmtest

import "github.com/stockade-dev/stockade/host/wasm"

const (
	opBlock = 0x02
	opLoop  = 0x03
	opIf    = 0x04
	opEnd   = 0x0b
	noValue = 0x40 // the block type of a block without parameters and results
)

// Instructions, named as in the text format.

func Unreachable() []byte { return []byte{0x00} }
func Nop() []byte         { return []byte{0x01} }
func Return() []byte      { return []byte{0x0f} }
func Drop() []byte        { return []byte{0x1a} }
func Select() []byte      { return []byte{0x1b} }

// Block, Loop and If take no parameters, leave no result, and end themselves.

func Block(body ...[]byte) []byte { return structured(opBlock, body) }
func Loop(body ...[]byte) []byte  { return structured(opLoop, body) }
func If(body ...[]byte) []byte    { return structured(opIf, body) }

func structured(op byte, body [][]byte) []byte {
	return join([]byte{op, noValue}, join(body...), []byte{opEnd})
}

// Else separates the two halves of the body of an If.
func Else() []byte { return []byte{0x05} }

// End is an end instruction beyond those that Block, Loop, If and Func add.
func End() []byte { return []byte{opEnd} }

// Br and BrIf branch to the label that is depth blocks out.

func Br(depth uint32) []byte   { return index(0x0c, depth) }
func BrIf(depth uint32) []byte { return index(0x0d, depth) }

// BrTable takes the number of a label, counted from 0; larger numbers select the last.
func BrTable(labels ...uint32) []byte {
	code := join([]byte{0x0e}, U32(uint32(len(labels)-1)))
	for _, l := range labels {
		code = append(code, U32(l)...)
	}
	return code
}

func Call(function uint32) []byte { return index(0x10, function) }

// CallIndirect takes the arguments and the index of an element of a table.
func CallIndirect(typ, table uint32) []byte { return join(index(0x11, typ), U32(table)) }

func LocalGet(i uint32) []byte  { return index(0x20, i) }
func LocalSet(i uint32) []byte  { return index(0x21, i) }
func LocalTee(i uint32) []byte  { return index(0x22, i) }
func GlobalGet(i uint32) []byte { return index(0x23, i) }
func GlobalSet(i uint32) []byte { return index(0x24, i) }

func index(op byte, i uint32) []byte { return join([]byte{op}, U32(i)) }

// Loads take an address, stores an address and a value; offset is added to the address.
// The alignment is that of the type.

func I32Load(offset uint32) []byte   { return access(0x28, 2, offset) }
func I32Load8U(offset uint32) []byte { return access(0x2d, 0, offset) }
func I32Store(offset uint32) []byte  { return access(0x36, 2, offset) }
func I32Store8(offset uint32) []byte { return access(0x3a, 0, offset) }

func access(op, align byte, offset uint32) []byte { return join([]byte{op, align}, U32(offset)) }

func MemorySize() []byte { return []byte{0x3f, 0} }

// MemoryGrow takes a number of pages and leaves the old size, or -1.
func MemoryGrow() []byte { return []byte{0x40, 0} }

// MemoryCopy takes destination, source and length.
func MemoryCopy() []byte { return []byte{0xfc, 10, 0, 0} }

// MemoryFill takes destination, value and length.
func MemoryFill() []byte { return []byte{0xfc, 11, 0} }

// MemoryInit takes a destination, an offset in the data segment, and a length.
func MemoryInit(segment uint32) []byte { return join([]byte{0xfc, 8}, U32(segment), []byte{0}) }

// TableGrow takes a reference and a number of elements and leaves the old size, or -1.
func TableGrow(table uint32) []byte { return join([]byte{0xfc, 15}, U32(table)) }

// TableCopy takes destination, source and length, all in one table.
func TableCopy(table uint32) []byte { return join([]byte{0xfc, 14}, U32(table), U32(table)) }

func RefNull(t ValType) []byte       { return []byte{0xd0, byte(t)} }
func RefFunc(function uint32) []byte { return index(0xd2, function) }

// Vector is a vector instruction without an immediate, by its number.
func Vector(op uint32) []byte { return index(0xfd, op) }

func I32Const(v int32) []byte { return join([]byte{0x41}, signed(int64(v))) }
func I64Const(v int64) []byte { return join([]byte{0x42}, signed(v)) }

func I32Eqz() []byte  { return []byte{0x45} }
func I32Eq() []byte   { return []byte{0x46} }
func I32Ne() []byte   { return []byte{0x47} }
func I32LtU() []byte  { return []byte{0x49} }
func I32GtU() []byte  { return []byte{0x4b} }
func I32GeU() []byte  { return []byte{0x4f} }
func I32Add() []byte  { return []byte{0x6a} }
func I32Sub() []byte  { return []byte{0x6b} }
func I32Mul() []byte  { return []byte{0x6c} }
func I32DivU() []byte { return []byte{0x6e} }
func I32And() []byte  { return []byte{0x71} }
func I32Shl() []byte  { return []byte{0x74} }
func I32ShrU() []byte { return []byte{0x76} }

func signed(v int64) []byte { return wasm.AppendSigned(nil, v) }
