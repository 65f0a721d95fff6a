package fuel

import (
	"encoding/binary"

	"github.com/stockade-dev/stockade/host/wasm"
)

// bulkChunk limits the number of bytes, or elements, that a bulk operation handles between two
// checks: nothing can stop the engine within one chunk, which takes a millisecond or two if the
// memory has not been touched before.
const bulkChunk = 1 << 20

// helpers holds the functions added to a module for instructions whose cost depends on an operand.
// A helper executes the instruction in pieces (a grow at once) and charges for each. Its
// parameters are the operands and then the counter. It returns the new counter unless the
// instruction has a result of its own, as grow has; then the counter is in the global.
type helpers struct {
	first         uint32 // index of the first helper
	refill        uint32 // index of the function refill
	counter       uint32 // index of the global with the counter
	elemType      func(table uint32) wasm.ValType
	types         []wasm.FuncType // types of the module, then added types
	originalTypes int             // number of types of the module

	index      map[helperKey]uint32 // function index of each helper
	addedTypes map[string]uint32    // index of each added type, by FuncType.String
	typeOf     []uint32             // type index of each helper
	bodies     [][]byte             // body of each helper
}

type helperKey struct {
	op        wasm.Op
	arg, arg2 uint32
}

// typeIndex returns the index of an added function type, and adds the type if needed.
func (h *helpers) typeIndex(params, results []wasm.ValType) uint32 {
	key := wasm.FuncType{Params: params, Results: results}.String()
	if i, ok := h.addedTypes[key]; ok {
		return i
	}
	i := uint32(len(h.types))
	h.types = append(h.types, wasm.FuncType{Params: params, Results: results})
	h.addedTypes[key] = i
	return i
}

// blockType returns the block type for these results, in the binary format.
func (h *helpers) blockType(results []wasm.ValType) []byte {
	switch len(results) {
	case 0:
		return []byte{blockVoid}
	case 1:
		return []byte{byte(results[0])}
	}
	return wasm.AppendSigned(nil, int64(h.typeIndex(nil, results)))
}

// function returns the function index of the helper for an instruction, and adds it if needed.
func (h *helpers) function(in *wasm.Instr) uint32 {
	key := helperKey{in.Op, in.Arg, in.Arg2}
	if i, ok := h.index[key]; ok {
		return i
	}
	var params, results []wasm.ValType
	var body []byte
	i32 := wasm.I32
	switch in.Op {
	case wasm.OpMemoryGrow:
		params, results = []wasm.ValType{i32}, []wasm.ValType{i32}
		body = h.grow(key, 1, CostPage)
	case wasm.OpTableGrow:
		params, results = []wasm.ValType{h.elemType(in.Arg), i32}, []wasm.ValType{i32}
		body = h.grow(key, 2, CostTableElement)
	case wasm.OpMemoryFill:
		params = []wasm.ValType{i32, i32, i32}
		body = h.bulk(key, CostBulkShift, false)
	case wasm.OpTableFill:
		params = []wasm.ValType{i32, h.elemType(in.Arg), i32}
		body = h.bulk(key, 0, false)
	case wasm.OpMemoryCopy, wasm.OpMemoryInit:
		params = []wasm.ValType{i32, i32, i32}
		body = h.bulk(key, CostBulkShift, true)
	default: // table.copy, table.init
		params = []wasm.ValType{i32, i32, i32}
		body = h.bulk(key, 0, true)
	}
	if results == nil {
		results = []wasm.ValType{wasm.I64}
	}
	h.typeOf = append(h.typeOf, h.typeIndex(append(params, wasm.I64), results))
	i := h.first + uint32(len(h.bodies))
	h.bodies = append(h.bodies, body)
	h.index[key] = i
	return i
}

// asm writes the code of a helper.
type asm struct{ out []byte }

func (a *asm) op(op wasm.Op, args ...uint32) {
	if op >= wasm.OpMisc {
		a.out = append(a.out, 0xfc)
		op -= wasm.OpMisc
	}
	a.out = append(a.out, byte(op))
	for _, arg := range args {
		a.out = binary.AppendUvarint(a.out, uint64(arg))
	}
}

func (a *asm) raw(bytes ...byte) { a.out = append(a.out, bytes...) }

func (a *asm) i32(v int64) { a.out = wasm.AppendSigned(append(a.out, byte(wasm.OpI32Const)), v) }
func (a *asm) i64(v int64) { a.out = appendI64Const(a.out, v) }

// instruction writes the instruction of the helper. Arg comes first, as in the binary format.
func (a *asm) instruction(key helperKey) {
	switch key.op {
	case wasm.OpMemoryGrow, wasm.OpMemoryFill, wasm.OpTableGrow, wasm.OpTableFill:
		a.op(key.op, key.arg)
	default:
		a.op(key.op, key.arg, key.arg2)
	}
}

const (
	opI32Eq        = 0x46
	opI32LtU       = 0x49
	opI32GtU       = 0x4b
	opI32Add       = 0x6a
	opI32Sub       = 0x6b
	opI32Or        = 0x72
	opI64Mul       = 0x7e
	opI64ExtendI32 = 0xad // unsigned
	opI32ShrU      = 0x76
)

// charge writes code that subtracts the price from the counter in a local, and checks the
// counter. price writes code that pushes the price, an i64.
func (h *helpers) charge(a *asm, counter uint32, price func()) {
	a.op(wasm.OpLocalGet, counter)
	price()
	a.raw(opI64Sub)
	a.op(wasm.OpLocalTee, counter)
	a.op(wasm.OpGlobalSet, h.counter)
	a.op(wasm.OpLocalGet, counter)
	a.i64(0)
	a.raw(opI64GeS, byte(wasm.OpIf), blockVoid, byte(wasm.OpElse))
	a.op(wasm.OpLocalGet, counter)
	a.op(wasm.OpCall, h.refill)
	a.op(wasm.OpLocalTee, counter)
	a.op(wasm.OpGlobalSet, h.counter)
	a.raw(byte(wasm.OpEnd))
}

// grow returns the body of a helper that grows a memory or table and charges for the new pages or
// elements, unless growing failed. params is the number of operands; the last of them is the
// number to add, each at the cost unit.
func (h *helpers) grow(key helperKey, params uint32, unit int64) []byte {
	counter, old := params, params+1 // a parameter and a local
	a := &asm{}
	a.raw(1, 1, byte(wasm.I32))
	for p := range params {
		a.op(wasm.OpLocalGet, p)
	}
	a.instruction(key)
	a.op(wasm.OpLocalTee, old)
	a.i32(-1)
	a.raw(opI32Eq, byte(wasm.OpIf), blockVoid, byte(wasm.OpElse))
	h.charge(a, counter, func() {
		a.op(wasm.OpLocalGet, params-1)
		a.raw(opI64ExtendI32)
		a.i64(unit)
		a.raw(opI64Mul)
	})
	a.raw(byte(wasm.OpEnd))
	a.op(wasm.OpLocalGet, old)
	a.raw(byte(wasm.OpEnd))
	return a.out
}

// bulk returns the body of a helper that executes an operation on (destination, source or value,
// number) in chunks; 1<<shift bytes or elements cost one unit. With source, the second operand
// moves along with the destination; a copy of more than one chunk begins at the end if the source
// is below the destination. An operation out of bounds traps before it writes, as without chunks.
func (h *helpers) bulk(key helperKey, shift int64, source bool) []byte {
	const dst, src, n, counter, k, back = 0, 1, 2, 3, 4, 5
	both := func(a *asm, op byte, by uint32) { // moves dst, and src if it is a source
		for _, p := range []uint32{dst, src} {
			if p == src && !source {
				continue
			}
			a.op(wasm.OpLocalGet, p)
			a.op(wasm.OpLocalGet, by)
			a.raw(op)
			a.op(wasm.OpLocalSet, p)
		}
	}
	whole := func(a *asm) {
		a.op(wasm.OpLocalGet, dst)
		a.op(wasm.OpLocalGet, src)
		a.op(wasm.OpLocalGet, n)
		a.instruction(key)
	}
	// overflows pushes whether p + n needs more than 32 bits.
	overflows := func(a *asm, p uint32) {
		a.op(wasm.OpLocalGet, p)
		a.op(wasm.OpLocalGet, n)
		a.raw(opI32Add)
		a.op(wasm.OpLocalGet, p)
		a.raw(opI32LtU)
	}
	price := func(a *asm, of uint32) {
		h.charge(a, counter, func() {
			a.op(wasm.OpLocalGet, of)
			if shift > 0 {
				a.i32(shift)
				a.raw(opI32ShrU)
			}
			a.raw(opI64ExtendI32)
		})
	}
	a := &asm{}
	a.raw(1, 2, byte(wasm.I32))

	a.op(wasm.OpLocalGet, n)
	a.i32(bulkChunk)
	a.raw(opI32GtU, byte(wasm.OpIf), blockVoid, byte(wasm.OpElse))
	whole(a)
	price(a, n)
	a.op(wasm.OpLocalGet, counter)
	a.raw(byte(wasm.OpReturn), byte(wasm.OpEnd))

	{
		overflows(a, dst)
		if source {
			overflows(a, src)
			a.raw(opI32Or)
		}
		a.raw(byte(wasm.OpIf), blockVoid)
		whole(a) // traps
		a.raw(byte(wasm.OpEnd))
		// An empty operation traps if its place is out of bounds.
		both(a, opI32Add, n)
		a.op(wasm.OpLocalGet, dst)
		a.op(wasm.OpLocalGet, src)
		a.i32(0)
		a.instruction(key)
		if key.op == wasm.OpMemoryCopy || key.op == wasm.OpTableCopy {
			a.op(wasm.OpLocalGet, src)
			a.op(wasm.OpLocalGet, dst)
			a.raw(opI32LtU)
			a.op(wasm.OpLocalTee, back)
			a.raw(byte(wasm.OpIf), blockVoid, byte(wasm.OpElse))
			both(a, opI32Sub, n)
			a.raw(byte(wasm.OpEnd))
		} else {
			both(a, opI32Sub, n)
		}
	}

	a.raw(byte(wasm.OpLoop), blockVoid)
	{
		a.op(wasm.OpLocalGet, n)
		a.i32(bulkChunk)
		a.op(wasm.OpLocalGet, n)
		a.i32(bulkChunk)
		a.raw(opI32LtU, byte(wasm.OpSelect))
		a.op(wasm.OpLocalSet, k)

		a.op(wasm.OpLocalGet, back)
		a.raw(byte(wasm.OpIf), blockVoid)
		both(a, opI32Sub, k)
		a.raw(byte(wasm.OpEnd))

		a.op(wasm.OpLocalGet, dst)
		a.op(wasm.OpLocalGet, src)
		a.op(wasm.OpLocalGet, k)
		a.instruction(key)

		price(a, k)

		a.op(wasm.OpLocalGet, back)
		a.raw(byte(wasm.OpIf), blockVoid, byte(wasm.OpElse))
		both(a, opI32Add, k)
		a.raw(byte(wasm.OpEnd))

		a.op(wasm.OpLocalGet, n)
		a.op(wasm.OpLocalGet, k)
		a.raw(opI32Sub)
		a.op(wasm.OpLocalTee, n)
		a.op(wasm.OpBrIf, 0)
	}
	a.raw(byte(wasm.OpEnd))
	a.op(wasm.OpLocalGet, counter)
	a.raw(byte(wasm.OpEnd))
	return a.out
}
