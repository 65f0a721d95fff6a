package admit

import (
	"fmt"

	"github.com/stockade-dev/stockade/host/tool"
	"github.com/stockade-dev/stockade/host/wasm"
	"github.com/stockade-dev/stockade/host/wasm/fuel"
)

// Limits on what is compiled, beyond those of package wasm. They keep what
// compiling and instantiating take within seconds and a few hundred MiB: the
// engine needs time that grows with the square of many of these numbers. The
// largest functions of Go, C, Rust and Haskell programs of up to 16 MiB have
// about half of what is allowed. What gets through all the same is killed in
// the process that compiles. Some are higher in a module that a person has let in: clang
// has 54,000 functions and 650 globals.
const (
	maxFuncs           = 50_000
	maxTypes           = 5_000
	maxTypesFuncs      = 20_000_000 // types times functions
	maxFuncTypeEntries = 160        // parameters and results
	maxImports         = 512
	maxExports         = 2_000
	maxGlobals         = 1_000
	maxGlobalsFuncs    = 5_000_000
	maxTables          = 16
	maxData            = 300_000 // segments before merging, of which Go has a hundred thousand
	maxSegments        = 10_000  // of data and of elements, after merging
	maxElementItems    = 256_000
	maxLocalsSum       = 1_000_000
)

// Limits of one function, or of a sum over functions if the name says so. In
// a module that a person has let in they are several times higher.
const (
	maxBodyBytes      = 256 << 10
	maxLocals         = 4_000
	maxBranches       = 16_384      // blocks, loops, ifs and conditional branches
	maxBranchesSquare = 200_000_000 // sum of the squares of these
	maxBranchesVars   = 2_000_000   // branches times parameters and locals
	maxNesting        = 4_000
	maxLoopNesting    = 64
	maxLoopVars       = 8_192 // nesting of loops times parameters and locals
	maxLabels         = 8_192 // of one br_table
	maxLabelsVars     = 1_000_000
	maxLabelsSum      = 1_000_000
	maxGlobalCalls    = 500_000 // mutable globals times calls
	maxGlobalCallsSum = 4_000_000
)

const (
	// MaxDepth bounds how deep calls are nested, in units of about 16 bytes of the
	// engine's stack: 16 MiB.
	MaxDepth = 1 << 20
	// MaxTableElements is how many all tables have together, 8 bytes each.
	MaxTableElements = 1_000_000
)

type limit struct {
	n, most int
	what    string
}

// checkLimits says which is the first that is over its limit.
func checkLimits(limits []limit) error {
	for _, l := range limits {
		if l.n > l.most {
			return fmt.Errorf("%d %s, more than the limit of %d", l.n, l.what, l.most)
		}
	}
	return nil
}

// checkSize refuses what would cost the host too much before the first
// instruction runs, where no deadline and no memory limit holds.
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
		{m.LargestBody, maxBodyBytes * scale, "bytes in one function"}, // said here before all of it is read
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

// instrument refuses what would take too long to compile, and returns the module
// as it is compiled. A module of any ABI can pass it.
func instrument(m *wasm.Module, scale int) ([]byte, error) {
	if err := checkSize(m, scale); err != nil {
		return nil, err
	}
	return fuel.Rewrite(m, fuel.Options{
		MaxDepth: MaxDepth, MaxTableElements: MaxTableElements, MergeData: true, MaxSegments: maxSegments,
		Inspect: newInspector(m, scale).addFunction,
	})
}

// inspector refuses functions that would take the compiler too long.
type inspector struct {
	globals int // mutable ones
	scale   int // of the limits

	locals, squares, labels, globalCalls int // of all functions so far
}

func newInspector(m *wasm.Module, scale int) *inspector {
	return &inspector{globals: len(m.MutableGlobals), scale: scale}
}

// largeScale is how many times higher some limits are for a module that only a person
// lets in.
const largeScale = 16

func scaleOf(mod *tool.Module) int {
	if mod.AllowLarge || mod.Bytes > LargeBytes {
		return largeScale
	}
	return 1
}

// addFunction adds a function up. Its error says what is too much.
func (i *inspector) addFunction(b *wasm.Body) error {
	var branches, nesting, deepest, loops, deepestLoops, labels, mostLabels, calls int
	loopAt := make([]int, 0, 16) // nesting of the loops that are open
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
