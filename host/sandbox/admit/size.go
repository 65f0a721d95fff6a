package admit

import (
	"fmt"

	"github.com/stockade-dev/stockade/host/tool"
	"github.com/stockade-dev/stockade/host/wasm"
	"github.com/stockade-dev/stockade/host/wasm/fuel"
)

// Limits on modules, in addition to those of package wasm; a module over one is refused. They
// keep compiling and instantiating within seconds and a few hundred MiB: the time that the
// engine needs grows with the square of many of these numbers. The largest functions of Go, C,
// Rust and Haskell programs of up to 16 MiB have about half of each limit. A module that is
// too expensive nevertheless is stopped in the child that compiles it. Some limits are higher
// for a module that a person has allowed: clang has 54,000 functions and 650 globals.
const (
	maxFuncs           = 50_000
	maxTypes           = 5_000
	maxTypesFuncs      = 20_000_000 // number of types times number of functions
	maxFuncTypeEntries = 160        // parameters and results together
	maxImports         = 512
	maxExports         = 2_000
	maxGlobals         = 1_000
	maxGlobalsFuncs    = 5_000_000
	maxTables          = 16
	maxData            = 300_000 // segments before merging; Go programs have a hundred thousand
	maxSegments        = 10_000  // data and element segments after merging
	maxElementItems    = 256_000
	maxLocalsSum       = 1_000_000
)

// Limits of one function, or of all functions together if the name ends in Sum or Square.
// They are several times higher for a module that a person has allowed.
const (
	maxBodyBytes      = 256 << 10
	maxLocals         = 4_000
	maxBranches       = 16_384      // blocks, loops, ifs and conditional branches
	maxBranchesSquare = 200_000_000 // sum of the squared numbers of branches
	maxBranchesVars   = 2_000_000   // number of branches times number of parameters and locals
	maxNesting        = 4_000
	maxLoopNesting    = 64
	maxLoopVars       = 8_192 // nesting of loops times number of parameters and locals
	maxLabels         = 8_192 // labels of one br_table
	maxLabelsVars     = 1_000_000
	maxLabelsSum      = 1_000_000
	maxGlobalCalls    = 500_000 // number of mutable globals times number of calls
	maxGlobalCallsSum = 4_000_000
)

const (
	// MaxDepth limits the nesting of calls, in units of about 16 bytes of the engine's stack:
	// 16 MiB. A guest that goes deeper is ended.
	MaxDepth = 1 << 20
	// MaxTableElements limits the elements of all tables together. Each takes 8 bytes. A
	// module that begins with more is refused; growing a table beyond fails.
	MaxTableElements = 1_000_000
)

type limit struct {
	n, max int
	what   string
}

// checkLimits returns an error for the first limit that is exceeded, or nil.
func checkLimits(limits []limit) error {
	for _, l := range limits {
		if l.n > l.max {
			return fmt.Errorf("%d %s, more than the limit of %d", l.n, l.what, l.max)
		}
	}
	return nil
}

// checkSize checks the costs that arise before the first instruction runs, when no deadline
// and no memory limit applies yet.
func checkSize(m *wasm.Module, scale int) error {
	err := checkLimits([]limit{
		{len(m.Funcs), maxFuncs * min(scale, 2), "functions"},
		{len(m.Types), maxTypes, "types"},
		{len(m.Types) * len(m.Funcs), maxTypesFuncs, "types times functions"},
		{len(m.Imports), maxImports, "imports"},
		{len(m.Exports), maxExports, "exports"},
		{m.NumGlobals, maxGlobals, "globals"},
		{m.NumGlobals * len(m.Funcs), maxGlobalsFuncs * scale, "globals times functions"},
		{len(m.Tables), maxTables, "tables"},
		{m.NumDataSegments, maxData, "data segments"},
		{m.NumElements, maxElementItems, "elements in segments"},
		{m.LargestBody, maxBodyBytes * scale, "bytes in one function"}, // an early error: not all of the function is read yet
	})
	if err != nil {
		return fmt.Errorf("it has %w", err)
	}
	for _, t := range m.Types {
		if n := len(t.Params) + len(t.Results); n > maxFuncTypeEntries {
			return fmt.Errorf("one of its function types has %d parameters and results, more than the limit of %d", n, maxFuncTypeEntries)
		}
	}
	var elements uint64
	for _, t := range m.Tables {
		elements += t.Limits.Min // at most 2^32 each, so 16 of them cannot overflow
	}
	if elements > MaxTableElements {
		return fmt.Errorf("its tables start with %d elements, more than the limit of %d", elements, MaxTableElements)
	}
	return nil
}

// instrument returns the module with its instrumentation, or an error if compiling it is too
// expensive. scale multiplies some limits. The module may be of any ABI.
func instrument(m *wasm.Module, scale int) ([]byte, error) {
	if err := checkSize(m, scale); err != nil {
		return nil, err
	}
	return fuel.Rewrite(m, fuel.Options{
		MaxDepth: MaxDepth, MaxTableElements: MaxTableElements, MergeData: true, MaxSegments: maxSegments,
		Inspect: newInspector(m, scale).addFunction,
	})
}

// inspector checks whether compiling the functions of a module is affordable.
type inspector struct {
	globals int // number of mutable globals
	scale   int // factor of some limits: 1 or largeScale

	locals, squares, labels, globalCalls int // sums over all functions so far
}

func newInspector(m *wasm.Module, scale int) *inspector {
	return &inspector{globals: len(m.MutableGlobals), scale: scale}
}

// largeScale is the scale of some limits for a module that a person has allowed; otherwise 1.
const largeScale = 16

func scaleOf(mod *tool.Module) int {
	if mod.AllowLarge || mod.Bytes > LargeBytes {
		return largeScale
	}
	return 1
}

// addFunction checks a function and adds it to the sums. The error names the exceeded limit.
func (i *inspector) addFunction(b *wasm.Body) error {
	var branches, nesting, deepest, loops, deepestLoops, labels, mostLabels, calls int
	loopAt := make([]int, 0, 16) // nesting at the open loops
	for k := range b.Instrs {
		in := &b.Instrs[k]
		switch in.Op {
		case wasm.OpBlock, wasm.OpLoop, wasm.OpIf, wasm.OpTryTable:
			branches++
			nesting++
			deepest = max(deepest, nesting)
			if in.Op == wasm.OpLoop {
				loopAt = append(loopAt, nesting)
				loops = len(loopAt)
				deepestLoops = max(deepestLoops, loops)
			}
		case wasm.OpEnd:
			if n := len(loopAt); n > 0 && loopAt[n-1] == nesting {
				loopAt = loopAt[:n-1]
			}
			nesting--
		case wasm.OpBrIf:
			branches++
		case wasm.OpBrTable:
			labels += int(in.Arg2)
			mostLabels = max(mostLabels, int(in.Arg2))
		case wasm.OpCall, wasm.OpCallIndirect:
			calls++
		}
	}
	vars := int(b.Params + b.Locals)
	i.locals += int(b.Locals)
	i.squares += branches * branches
	i.labels += labels
	i.globalCalls += i.globals * calls
	err := checkLimits([]limit{
		{int(b.Locals), maxLocals, "locals"},
		{branches, maxBranches * i.scale, "blocks and branches"},
		{branches * vars, maxBranchesVars * i.scale, "blocks and branches times locals"},
		{deepest, maxNesting * i.scale, "nested blocks"},
		{deepestLoops, maxLoopNesting, "nested loops"},
		{deepestLoops * vars, maxLoopVars, "nested loops times locals"},
		{mostLabels, maxLabels * i.scale, "labels of a br_table"},
		{labels * vars, maxLabelsVars * i.scale, "labels of br_tables times locals"},
		{i.globals * calls, maxGlobalCalls * i.scale, "calls times mutable globals"},
	})
	if err != nil {
		return fmt.Errorf("function %d has %w", b.Func, err)
	}
	err = checkLimits([]limit{
		{i.locals, maxLocalsSum, "locals"},
		{i.squares, maxBranchesSquare * i.scale, "as the sum of the squares of blocks and branches"},
		{i.labels, maxLabelsSum * i.scale, "labels of br_tables"},
		{i.globalCalls, maxGlobalCallsSum * i.scale, "calls times mutable globals"},
	})
	if err != nil {
		return fmt.Errorf("its functions together have %w", err)
	}
	return nil
}
