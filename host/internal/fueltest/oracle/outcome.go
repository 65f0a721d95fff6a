package oracle

import (
	"fmt"
	"hash/crc64"
	"slices"
	"strings"

	"github.com/stockade-dev/stockade/host/wasm"
)

// Names that the modules have in common: of the function that is run, and of
// the only one that can be imported. That is (i32) -> i32; see [Host].
const (
	RunName    = "run"
	HostModule = "env"
	HostName   = "host"
)

// Host is what the imported function "env" "host" does.
func Host(arg uint32) uint32 { return arg*3 + 1 }

// Options bounds a run.
type Options struct {
	MaxSteps uint64 // 0: ten million
	MaxDepth int    // of calls, run itself included; 0: 1000
	MaxPages uint32 // of memory, if the module allows more; 0: 65536
	MaxBulk  uint64 // bytes and references filled or copied, all in all; 0: a hundred million
}

// Trap says why a run was aborted, in the words that the engine has for it.
type Trap string

const (
	TrapNone        Trap = ""
	TrapUnreachable Trap = "unreachable"
	TrapDivideZero  Trap = "integer divide by zero"
	TrapOverflow    Trap = "integer overflow"
	TrapConversion  Trap = "invalid conversion to integer"
	TrapMemory      Trap = "out of bounds memory access"
	TrapTable       Trap = "invalid table access" // out of bounds, or a call of a null reference
	TrapSignature   Trap = "indirect call type mismatch"
)

// Limit says which of the options ended a run.
type Limit string

const (
	LimitNone  Limit = ""
	LimitSteps Limit = "steps"
	LimitDepth Limit = "depth"
	LimitBulk  Limit = "bulk"
)

// Phase is what ran last.
type Phase int

const (
	Instantiating Phase = iota // active segments; no step has been made
	Starting                   // the start function
	Running                    // the function run
)

// Outcome is what a run did.
type Outcome struct {
	Results []Value // empty unless Trap and Limit are
	Trap    Trap
	TrapOp  uint32 // the instruction that trapped, as in Ops
	Limit   Limit
	Phase   Phase

	// Steps is the number of instructions executed, the one that trapped
	// included. block, loop, else, end and nop are none.
	Steps uint64
	// Ops says how often each instruction was a step. The key of one with a
	// prefix is prefix<<16 | number. The sum is Steps.
	Ops map[uint32]uint64
	// FunctionEntries is how often the body of a function was entered, by whatever
	// call, and by run and the start function.
	FunctionEntries uint64
	// EntriesByLocals says how often a body was entered by how many parameters and
	// locals it has. The sum is Entered.
	EntriesByLocals map[int]uint64
	// HostCalls is how often the imported function was called.
	HostCalls uint64
	// Depth is how deeply calls were nested at most; run alone is 1.
	Depth int
	// Bulk is every memory.init, copy, fill and grow, and table.init, copy, fill
	// and grow in the order of their execution.
	Bulk []BulkOp

	Pages   uint32  // of memory at the end
	Memory  uint64  // HashMemory of it
	Globals []Value // at the end, all of them
}

// BulkOp is an instruction that takes longer the larger its last operand is.
type BulkOp struct {
	Op      uint32 // as in Outcome.Ops
	N       uint32
	Refused bool // a grow that returned -1
	Trapped bool // then it is the last
}

// HashMemory is how Outcome describes memory.
func HashMemory(memory []byte) uint64 { return crc64.Checksum(memory, ecma) }

var ecma = crc64.MakeTable(crc64.ECMA)

// Observed is what an engine did with the same module.
type Observed struct {
	Err     error    // of instantiating the module or of calling run
	Results []uint64 // of run, as for Values
	Memory  []byte   // nil if there is none
	Globals []uint64 // the lower halves of their values; more than the module's own do not matter
}

// Diff says how an engine's outcome differs from this one, in words, or ""
// if it does not. A run that a limit ended cannot be compared. After a trap
// before run only the error is.
func (o *Outcome) Diff(got Observed) string {
	switch {
	case o.Limit != LimitNone:
		return fmt.Sprintf("not comparable: the limit of %s ended the run", o.Limit)
	case o.Trap == TrapNone && got.Err != nil:
		return fmt.Sprintf("it failed: %v", got.Err)
	case o.Trap != TrapNone && got.Err == nil:
		return fmt.Sprintf("it did not trap, want %q", o.Trap)
	case o.Trap != TrapNone && !strings.Contains(got.Err.Error(), string(o.Trap)):
		return fmt.Sprintf("it trapped with %v, want %q", got.Err, o.Trap)
	case o.Phase != Running:
		return ""
	}
	if o.Trap == TrapNone {
		types := make([]wasm.ValType, len(o.Results))
		for i, v := range o.Results {
			types[i] = v.Type
		}
		if r := Values(types, got.Results); !slices.EqualFunc(r, o.Results, Value.Equal) {
			return fmt.Sprintf("the results are %v, want %v", r, o.Results)
		}
	}
	if n := uint32(len(got.Memory) / wasm.PageBytes); n != o.Pages {
		return fmt.Sprintf("memory has %d pages, want %d", n, o.Pages)
	}
	if HashMemory(got.Memory) != o.Memory {
		return "memory has other contents"
	}
	if len(got.Globals) < len(o.Globals) {
		return fmt.Sprintf("there are %d globals, want %d", len(got.Globals), len(o.Globals))
	}
	for i, want := range o.Globals {
		if g := (Value{want.Type, got.Globals[i], want.Hi}); !g.Equal(want) {
			return fmt.Sprintf("global %d is %v, want %v", i, g, want)
		}
	}
	return ""
}
