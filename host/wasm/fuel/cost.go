package fuel

import "github.com/stockade-dev/stockade/host/wasm"

// What operations cost besides their static cost, see [Cost].
const (
	// CostFrameLocals is how many parameters and locals of a called function
	// cost one unit: the engine clears them.
	CostFrameLocals = 8
	// CostPage is the cost of a page that memory.grow added, which is cleared.
	CostPage = 8192
	// CostTableElement is the cost of an element that table.grow added.
	CostTableElement = 16
	// CostBulkShift: so many bytes, as a power of two, of memory.fill, copy and
	// init cost one unit. Elements of table.fill, copy and init cost one each.
	CostBulkShift = 3
	// CostHostCall is what a call of an imported function costs the guest on
	// top of a call, and every indirect call in a module that could call one in
	// that way. The host charges by size besides.
	CostHostCall = 60
)

// Cost is what executing an instruction costs. It is 0 for those that only
// give structure, 1 for most, and for slower ones about what they take longer
// than those.
func Cost(op wasm.Op) uint32 { return uint32(costs[op]) }

var costs = func() (t [wasm.MaxOp + 1]uint8) {
	set := func(from, to wasm.Op, cost uint8) {
		for op := from; op <= to; op++ {
			t[op] = cost
		}
	}
	set(0, wasm.MaxOp, 1)
	for _, op := range []wasm.Op{wasm.OpNop, wasm.OpBlock, wasm.OpLoop, wasm.OpElse, wasm.OpEnd} {
		t[op] = 0
	}
	set(wasm.OpCall, wasm.OpReturnCallIndirect, 4)
	set(wasm.OpThrow, wasm.OpThrowRef, 32)
	t[wasm.OpEnd] = 0
	set(wasm.OpI32DivS, wasm.OpI32RemU, 8)
	set(wasm.OpI64DivS, wasm.OpI64RemU, 8)
	for _, op := range []wasm.Op{wasm.OpF32Sqrt, wasm.OpF32Div, wasm.OpF64Sqrt, wasm.OpF64Div} {
		t[op] = 8
	}
	for _, op := range []wasm.Op{wasm.OpF32x4Sqrt, wasm.OpF32x4Div, wasm.OpF64x2Sqrt, wasm.OpF64x2Div} {
		t[op] = 12
	}
	t[wasm.OpMemoryGrow] = 64
	t[wasm.OpRefFunc] = 64 // leaves the guest
	set(wasm.OpMemoryInit, wasm.OpMemoryFill, 32)
	set(wasm.OpTableInit, wasm.OpTableFill, 16)
	t[wasm.OpTableGrow] = 64
	t[wasm.OpTableSize] = 1
	set(wasm.OpAtomic, wasm.MaxOp, 16)
	set(wasm.OpAtomicNotify, wasm.OpAtomicWait64, 64)
	t[wasm.OpAtomicFence] = 32
	return t
}()

// traps says which instructions can end the guest, or leave it: before one of
// them the counter has to be where the host looks for it.
var traps = func() (t [wasm.MaxOp + 1]bool) {
	set := func(from, to wasm.Op) {
		for op := from; op <= to; op++ {
			t[op] = true
		}
	}
	t[wasm.OpUnreachable] = true
	set(wasm.OpThrow, wasm.OpThrowRef)
	set(wasm.OpCall, wasm.OpReturnCallIndirect)
	set(wasm.OpTableGet, wasm.OpTableSet)
	set(wasm.OpI32Load, wasm.OpI64Store32)
	t[wasm.OpMemoryGrow] = true
	set(wasm.OpI32DivS, wasm.OpI32RemU)
	set(wasm.OpI64DivS, wasm.OpI64RemU)
	set(wasm.OpI32TruncF32S, wasm.OpI32TruncF64U)
	set(wasm.OpI64TruncF32S, wasm.OpI64TruncF64U)
	t[wasm.OpRefFunc] = true
	set(wasm.OpMemoryInit, wasm.OpTableFill)
	set(wasm.OpV128Load, wasm.OpV128Store)
	set(wasm.OpV128Load8Lane, wasm.OpV128Load64Zero)
	set(wasm.OpAtomic, wasm.MaxOp)
	return t
}()

// hidden says which instructions change what is neither memory nor a global:
// tables, and whether a segment has been dropped.
var hidden = func() (t [wasm.MaxOp + 1]bool) {
	for op := range hiddenNames {
		t[op] = true
	}
	return t
}()

var hiddenNames = map[wasm.Op]string{
	wasm.OpTableSet: "table.set", wasm.OpTableInit: "table.init", wasm.OpTableCopy: "table.copy",
	wasm.OpTableGrow: "table.grow", wasm.OpTableFill: "table.fill",
	wasm.OpMemoryInit: "memory.init", wasm.OpDataDrop: "data.drop", wasm.OpElemDrop: "elem.drop",
}

// plain says which instructions do nothing to the control flow, and cost the
// same whatever their operands are.
var plain = func() (t [wasm.MaxOp + 1]bool) {
	for op := range t {
		t[op] = true
	}
	special := func(from, to wasm.Op) {
		for op := from; op <= to; op++ {
			t[op] = false
		}
	}
	special(wasm.OpUnreachable, wasm.OpReturnCallIndirect)
	special(wasm.OpTryTable, wasm.OpTryTable)
	special(wasm.OpLocalSet, wasm.OpLocalTee)
	special(wasm.OpTableSet, wasm.OpTableSet)
	special(wasm.OpMemoryGrow, wasm.OpMemoryGrow)
	special(wasm.OpRefFunc, wasm.OpRefFunc)
	special(wasm.OpMisc, wasm.OpVector-1)
	return t
}()

// callsOut says which instructions call a function, be it a helper.
var callsOut = func() (t [wasm.MaxOp + 1]bool) {
	for op := wasm.OpCall; op <= wasm.OpReturnCallIndirect; op++ {
		t[op] = true
	}
	t[wasm.OpMemoryGrow] = true
	for op := wasm.OpMemoryInit; op <= wasm.OpTableFill; op++ {
		t[op] = true
	}
	return t
}()
