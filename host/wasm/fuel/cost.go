package fuel

import "github.com/stockade-dev/stockade/host/wasm"

// The variable costs of operations, in addition to the static cost of [Cost], in units.
const (
	// CostFrameLocals is the number of parameters and locals of a called function that cost one
	// unit: the engine clears them.
	CostFrameLocals = 8
	// CostPage is the cost of each page that memory.grow adds; the engine clears it.
	CostPage = 8192
	// CostTableElement is the cost of each element that table.grow adds.
	CostTableElement = 16
	// CostBulkShift is the logarithm of the bytes that cost one unit: 1<<CostBulkShift bytes in
	// memory.fill, copy and init. Elements of table.fill, copy and init cost one unit each.
	CostBulkShift = 3
	// CostHostCall is the extra cost of a call of an imported function, and of every indirect
	// call in a module whose tables may hold one. The host also charges for the sizes of data.
	CostHostCall = 60
)

// Cost returns the static cost of executing an instruction, in units: 0 for instructions that
// only structure the code, 1 for most, and for slower ones about their relative duration.
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
	t[wasm.OpRefFunc] = 2 // becomes a table.get in the table of references
	set(wasm.OpMemoryInit, wasm.OpMemoryFill, 32)
	set(wasm.OpTableInit, wasm.OpTableFill, 16)
	t[wasm.OpTableGrow] = 64
	t[wasm.OpTableSize] = 1
	set(wasm.OpAtomic, wasm.MaxOp, 16)
	set(wasm.OpAtomicNotify, wasm.OpAtomicWait64, 64)
	t[wasm.OpAtomicFence] = 32
	return t
}()

// mayTrap holds the instructions that can end the guest, throw an exception or call a function:
// before each of them the counter has to be in the global, where the host reads it.
var mayTrap = opSet(
	wasm.OpUnreachable, wasm.OpUnreachable,
	wasm.OpThrow, wasm.OpThrowRef,
	wasm.OpCall, wasm.OpReturnCallIndirect,
	wasm.OpTableGet, wasm.OpTableSet,
	wasm.OpI32Load, wasm.OpI64Store32,
	wasm.OpMemoryGrow, wasm.OpMemoryGrow,
	wasm.OpI32DivS, wasm.OpI32RemU,
	wasm.OpI64DivS, wasm.OpI64RemU,
	wasm.OpI32TruncF32S, wasm.OpI32TruncF64U,
	wasm.OpI64TruncF32S, wasm.OpI64TruncF64U,
	wasm.OpMemoryInit, wasm.OpTableFill,
	wasm.OpV128Load, wasm.OpV128Store,
	wasm.OpV128Load8Lane, wasm.OpV128Load64Zero,
	wasm.OpAtomic, wasm.MaxOp,
)

// opSet returns the set of instructions from the first to the second of each pair, both included.
func opSet(ends ...wasm.Op) (t [wasm.MaxOp + 1]bool) {
	for i := 0; i < len(ends); i += 2 {
		for op := ends[i]; op <= ends[i+1]; op++ {
			t[op] = true
		}
	}
	return t
}

// hiddenStateOps names the instructions that keep a module from being reusable: those that change
// tables or drop segments, and memory.init. Other instructions have an empty name.
var hiddenStateOps = [wasm.MaxOp + 1]string{
	wasm.OpTableSet: "table.set", wasm.OpTableInit: "table.init", wasm.OpTableCopy: "table.copy",
	wasm.OpTableGrow: "table.grow", wasm.OpTableFill: "table.fill",
	wasm.OpMemoryInit: "memory.init", wasm.OpDataDrop: "data.drop", wasm.OpElemDrop: "elem.drop",
}

// needsAnalysis holds the instructions that affect the control flow, or that analyze has to
// look at for another reason, such as a cost that depends on operands.
var needsAnalysis = opSet(
	wasm.OpUnreachable, wasm.OpReturnCallIndirect,
	wasm.OpTryTable, wasm.OpTryTable,
	wasm.OpLocalSet, wasm.OpLocalTee,
	wasm.OpTableSet, wasm.OpTableSet,
	wasm.OpMemoryGrow, wasm.OpMemoryGrow,
	wasm.OpRefFunc, wasm.OpRefFunc,
	wasm.OpMisc, wasm.OpVector-1,
)

// callsFunction holds the instructions that call a function, or may call a helper in their place.
var callsFunction = opSet(
	wasm.OpCall, wasm.OpReturnCallIndirect,
	wasm.OpMemoryGrow, wasm.OpMemoryGrow,
	wasm.OpMemoryInit, wasm.OpTableFill,
)
