package oracle

import (
	"fmt"
	"hash/crc64"
	"slices"
	"strings"

	"github.com/stockade-dev/stockade/host/wasm"
)

// The names that all modules share: of the function to run, and of the only function that
// can be imported. Its type is (i32) -> i32; see [Host].
const (
	RunName    = "run"
	HostModule = "env"
	HostName   = "host"
)

// Host is the imported function "env" "host".
func Host(arg uint32) uint32 { return arg*3 + 1 }

// Options holds the limits of a run. A zero field means its default.
type Options struct {
	MaxSteps uint64 // 0: ten million
	MaxDepth int    // of nested calls, run itself included; 0: 1000
	MaxPages uint32 // of memory, if the module allows more; 0: 65536
	MaxBulk  uint64 // bytes and references filled or copied in total; 0: a hundred million
}

// Trap is the reason why a run was aborted, in the words of the engine.
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

// Limit names the option that ended a run.
type Limit string

const (
	LimitNone  Limit = ""
	LimitSteps Limit = "steps"
	LimitDepth Limit = "depth"
	LimitBulk  Limit = "bulk"
)

// Phase is the part of a run that was executed last.
type Phase int

const (
	Instantiating Phase = iota // no step has been executed
	Starting                   // the start function
	Running                    // the function run
)

// Outcome is the result of a run.
type Outcome struct {
	Results []Value // nil if Trap or Limit is set
	Trap    Trap
	TrapOp  uint32 // the instruction that trapped, a key of Ops
	Limit   Limit
	Phase   Phase

	// Steps is the number of executed instructions, including one that trapped. block,
	// loop, else, end and nop do not count.
	Steps uint64
	// Ops is the number of steps for each instruction. The key of a prefixed instruction
	// is prefix<<16 | number. The sum is Steps.
	Ops map[uint32]uint64
	// FunctionEntries is the number of times that a function body was entered: by any
	// call, and for run and the start function.
	FunctionEntries uint64
	// EntriesByLocals is FunctionEntries by the number of parameters and locals of the
	// body. The sum is FunctionEntries.
	EntriesByLocals map[int]uint64
	// HostCalls is the number of calls of the imported function.
	HostCalls uint64
	// Depth is the largest depth of nested calls; run alone is 1.
	Depth int
	// Bulk lists every memory.init, copy, fill and grow, and table.init, copy, fill and
	// grow in the order of their execution.
	Bulk []BulkOp

	Pages   uint32  // of memory at the end
	Memory  uint64  // HashMemory of the memory at the end
	Globals []Value // all globals at the end
}

// BulkOp is an instruction whose duration depends on its last operand, N.
type BulkOp struct {
	Op      uint32 // a key of Outcome.Ops
	N       uint32
	Refused bool // a grow that returned -1
	Trapped bool // it trapped, and is the last
}

// HashMemory returns the checksum of a memory that an Outcome has.
func HashMemory(memory []byte) uint64 { return crc64.Checksum(memory, ecma) }

var ecma = crc64.MakeTable(crc64.ECMA)

// Observed is the result of running the same module on an engine.
type Observed struct {
	Err     error    // of instantiating the module or of calling run
	Results []uint64 // of run, as for Values
	Memory  []byte   // nil if there is none
	Globals []uint64 // lower halves of the values; globals beyond those of the module are ignored
}

// Diff describes in words how the result of an engine differs from this outcome; ""
// if it does not. It also reports a run that a limit ended, which cannot be compared. After a
// trap before run it compares the error only.
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
