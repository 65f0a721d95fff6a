package oracle_test

import (
	"bytes"
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/stockade-dev/stockade/host/internal/fueltest/oracle"
	"github.com/stockade-dev/stockade/host/wasm"
	"github.com/stockade-dev/stockade/host/wasm/wasmtest"
)

const (
	opBr         = 0x0c
	opBrIf       = 0x0d
	opCall       = 0x10
	opIndirect   = 0x11
	opI32Load    = 0x28
	opMemoryGrow = 0x40
	opI32Const   = 0x41
	opI32DivU    = 0x6e
	opMemoryCopy = 0xfc<<16 | 10
	opMemoryFill = 0xfc<<16 | 11
	opTableGrow  = 0xfc<<16 | 15
)

var i32 = []wasmtest.ValType{wasmtest.I32}

func TestStepsOfSmallPrograms(t *testing.T) {
	type builder = *wasmtest.Builder
	run := func(b builder, locals []wasmtest.ValType, body ...[]byte) {
		b.Func("run", nil, i32, locals, body...)
	}
	c := wasmtest.I32Const
	tests := []struct {
		name    string
		build   func(b builder)
		results []uint64
		trap    oracle.Trap
		trapOp  uint32
		steps   uint64
		entered uint64
		hosts   uint64
		depth   int
		bulk    []oracle.BulkOp
	}{
		{name: "a constant", build: func(b builder) { run(b, nil, c(7)) }, results: []uint64{7}, steps: 1, entered: 1, depth: 1},
		{
			name: "structure and nop are free",
			build: func(b builder) {
				run(b, nil, wasmtest.Nop(), wasmtest.Block(wasmtest.Nop(), wasmtest.Loop(wasmtest.Nop())), c(7))
			},
			results: []uint64{7}, steps: 1, entered: 1, depth: 1,
		},
		{
			name: "an if costs one whichever branch it takes, else and end nothing",
			build: func(b builder) {
				run(b, i32,
					c(1), wasmtest.If(c(5), wasmtest.LocalSet(0), wasmtest.Else(), c(6), wasmtest.LocalSet(0)), // const, if, const, set
					c(0), wasmtest.If(c(8), wasmtest.LocalSet(0)), // const, if
					c(0), wasmtest.If(c(8), wasmtest.LocalSet(0), wasmtest.Else(), wasmtest.Nop()), // const, if
					wasmtest.LocalGet(0))
			},
			results: []uint64{5}, steps: 9, entered: 1, depth: 1,
		},
		{
			name: "a loop of ten",
			build: func(b builder) {
				run(b, i32, c(10), wasmtest.LocalSet(0),
					wasmtest.Loop(wasmtest.LocalGet(0), c(1), []byte{0x6b}, []byte{0x22, 0}, wasmtest.BrIf(0)),
					wasmtest.LocalGet(0))
			},
			results: []uint64{0}, steps: 2 + 10*5 + 1, entered: 1, depth: 1,
		},
		{
			name: "what a branch jumps over is not executed",
			build: func(b builder) {
				run(b, nil, wasmtest.Block(wasmtest.Br(0), c(1), wasmtest.Drop()), c(3), wasmtest.Return(), c(4))
			},
			results: []uint64{3}, steps: 3, entered: 1, depth: 1,
		},
		{
			name: "br_table",
			build: func(b builder) {
				table := []byte{0x0e, 2, 0, 1, 2} // depths for 0, 1, and what is above
				run(b, i32, c(1), wasmtest.LocalSet(0),
					wasmtest.Block(
						wasmtest.Block(
							wasmtest.Block(wasmtest.LocalGet(0), table),
							c(10), wasmtest.Return()),
						c(11), wasmtest.Return()),
					c(12))
			},
			results: []uint64{11}, steps: 2 + 2 + 2, entered: 1, depth: 1,
		},
		{
			name: "a branch to the function keeps its results alone",
			build: func(b builder) {
				run(b, nil, c(1), c(2), wasmtest.Block(c(3), wasmtest.Br(1)), wasmtest.Unreachable())
			},
			results: []uint64{3}, steps: 4, entered: 1, depth: 1,
		},
		{
			name: "a call costs one, and the body what it executes",
			build: func(b builder) {
				b.Func("", i32, i32, nil, wasmtest.LocalGet(0), c(2), wasmtest.I32Mul())
				run(b, nil, c(21), wasmtest.Call(0))
			},
			results: []uint64{42}, steps: 2 + 3, entered: 2, depth: 2,
		},
		{
			name: "a host call costs one",
			build: func(b builder) {
				b.ImportFunc("env", "host", i32, i32)
				run(b, nil, c(4), wasmtest.Call(0))
			},
			results: []uint64{13}, steps: 2, entered: 1, hosts: 1, depth: 1,
		},
		{
			name: "the start function counts",
			build: func(b builder) {
				g := b.Global(wasmtest.I32, true, c(1))
				b.Start(b.Func("", nil, nil, nil, c(9), wasmtest.GlobalSet(g)))
				run(b, nil, wasmtest.GlobalGet(g))
			},
			results: []uint64{9}, steps: 2 + 1, entered: 2, depth: 1,
		},
		{
			name: "recursion",
			build: func(b builder) { // f(n) = n == 0 ? 0 : f(n-1) + 1
				b.Func("", i32, i32, nil, wasmtest.LocalGet(0), wasmtest.I32Eqz(), wasmtest.If(c(0), wasmtest.Return()),
					wasmtest.LocalGet(0), c(1), wasmtest.I32Sub(), wasmtest.Call(0), c(1), wasmtest.I32Add())
				run(b, nil, c(5), wasmtest.Call(0))
			},
			results: []uint64{5}, steps: 2 + 5*(3+6) + 5, entered: 7, depth: 7,
		},
		{
			name: "an indirect call",
			build: func(b builder) {
				b.Table(2, 2)
				f := b.Func("", nil, i32, nil, c(8))
				b.Elem(1, f)
				run(b, nil, c(1), []byte{0x11, 0, 0})
			},
			results: []uint64{8}, steps: 2 + 1, entered: 2, depth: 2,
		},
		{
			name: "an indirect call of null",
			build: func(b builder) {
				b.Table(2, 2)
				b.Func("", nil, i32, nil, c(8))
				run(b, nil, c(1), []byte{0x11, 0, 0})
			},
			trap: oracle.TrapTable, trapOp: opIndirect, steps: 2, entered: 1, depth: 1,
		},
		{
			name: "an indirect call with the wrong type",
			build: func(b builder) {
				b.Table(2, 2)
				f := b.Func("", nil, nil, nil)
				b.Elem(1, f)
				run(b, nil, c(1), []byte{0x11, 1, 0})
			},
			trap: oracle.TrapSignature, trapOp: opIndirect, steps: 2, entered: 1, depth: 1,
		},
		{
			name:  "the instruction that traps counts",
			build: func(b builder) { run(b, nil, c(1), c(0), wasmtest.I32DivU(), wasmtest.Drop(), c(1)) },
			trap:  oracle.TrapDivideZero, trapOp: opI32DivU, steps: 3, entered: 1, depth: 1,
		},
		{
			name:  "unreachable counts",
			build: func(b builder) { run(b, nil, wasmtest.Nop(), wasmtest.Unreachable()) },
			trap:  oracle.TrapUnreachable, steps: 1, entered: 1, depth: 1,
		},
		{
			name: "the last byte of memory and the one after it",
			build: func(b builder) {
				b.Memory(1, 1)
				run(b, nil, c(wasm.PageBytes-4), wasmtest.I32Load(0), wasmtest.Drop(), c(wasm.PageBytes-4), wasmtest.I32Load(1))
			},
			trap: oracle.TrapMemory, trapOp: opI32Load, steps: 5, entered: 1, depth: 1,
		},
		{
			name: "memory grows, or not",
			build: func(b builder) {
				b.Memory(1, 3)
				run(b, nil, c(2), wasmtest.MemoryGrow(), wasmtest.Drop(), c(1), wasmtest.MemoryGrow())
			},
			results: []uint64{0xffffffff}, steps: 5, entered: 1, depth: 1,
			bulk: []oracle.BulkOp{{Op: opMemoryGrow, N: 2}, {Op: opMemoryGrow, N: 1, Refused: true}},
		},
		{
			name: "bulk instructions",
			build: func(b builder) {
				b.Memory(1, 1)
				run(b, nil, c(0), c(0x55), c(300), wasmtest.MemoryFill(),
					c(1000), c(290), c(20), wasmtest.MemoryCopy(),
					c(wasm.PageBytes), c(0), c(1), wasmtest.MemoryCopy(), c(0))
			},
			trap: oracle.TrapMemory, trapOp: opMemoryCopy, steps: 12, entered: 1, depth: 1,
			bulk: []oracle.BulkOp{{Op: opMemoryFill, N: 300}, {Op: opMemoryCopy, N: 20}, {Op: opMemoryCopy, N: 1, Trapped: true}},
		},
		{
			name: "a table grows",
			build: func(b builder) {
				b.Table(1, 5)
				run(b, nil, []byte{0xd0, 0x70}, c(4), []byte{0xfc, 15, 0})
			},
			results: []uint64{1}, steps: 3, entered: 1, depth: 1, bulk: []oracle.BulkOp{{Op: opTableGrow, N: 4}},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			b := wasmtest.New()
			test.build(b)
			got, err := oracle.Run(b.Bytes(), oracle.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if want := oracle.Values(i32[:len(test.results)], test.results); !slices.Equal(got.Results, want) {
				t.Errorf("the results are %v, want %v", got.Results, want)
			}
			if got.Trap != test.trap || got.TrapOp != test.trapOp || got.Limit != oracle.LimitNone || got.Phase != oracle.Running {
				t.Errorf("it ended with trap %q of %#x, limit %q and phase %d; want trap %q of %#x", got.Trap, got.TrapOp, got.Limit, got.Phase, test.trap, test.trapOp)
			}
			if got.Steps != test.steps || got.FunctionEntries != test.entered || got.HostCalls != test.hosts || got.Depth != test.depth {
				t.Errorf("%d steps, %d functions entered, %d host calls, depth %d; want %d, %d, %d, %d",
					got.Steps, got.FunctionEntries, got.HostCalls, got.Depth, test.steps, test.entered, test.hosts, test.depth)
			}
			if !slices.Equal(got.Bulk, test.bulk) {
				t.Errorf("bulk instructions are %v, want %v", got.Bulk, test.bulk)
			}
			if sum := sum(got.Ops); sum != got.Steps {
				t.Errorf("the counts of instructions make %d, want %d", sum, got.Steps)
			}
		})
	}
}

func sum(ops map[uint32]uint64) (n uint64) {
	for v := range maps.Values(ops) {
		n += v
	}
	return n
}

func TestOpsCountEachInstruction(t *testing.T) {
	b := wasmtest.New()
	b.Func("run", nil, i32, i32, wasmtest.I32Const(3), wasmtest.LocalSet(0),
		wasmtest.Loop(wasmtest.LocalGet(0), wasmtest.I32Const(1), wasmtest.I32Sub(), wasmtest.LocalTee(0), wasmtest.BrIf(0)),
		wasmtest.LocalGet(0))
	got, err := oracle.Run(b.Bytes(), oracle.Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := map[uint32]uint64{opI32Const: 4, 0x20: 4, 0x21: 1, 0x22: 3, 0x6b: 3, opBrIf: 3}
	if !maps.Equal(got.Ops, want) {
		t.Errorf("got %v, want %v", got.Ops, want)
	}
}

func TestLimitsEndARun(t *testing.T) {
	b := wasmtest.New()
	b.Memory(1, 100)
	b.Func("run", nil, i32, nil, wasmtest.I32Const(2), wasmtest.MemoryGrow(), wasmtest.Drop(), wasmtest.Loop(wasmtest.Br(0)), wasmtest.I32Const(0))
	got, err := oracle.Run(b.Bytes(), oracle.Options{MaxSteps: 1000, MaxPages: 2})
	if err != nil {
		t.Fatal(err)
	}
	if got.Limit != oracle.LimitSteps || got.Steps != 1000 || got.Ops[opBr] != 997 || got.Pages != 1 || got.Results != nil {
		t.Errorf("got %+v", got)
	}

	b = wasmtest.New()
	b.Func("run", nil, i32, nil, wasmtest.Call(0))
	got, err = oracle.Run(b.Bytes(), oracle.Options{MaxDepth: 50})
	if err != nil {
		t.Fatal(err)
	}
	if got.Limit != oracle.LimitDepth || got.Depth != 50 || got.Steps != 50 || got.Ops[opCall] != 50 {
		t.Errorf("got %+v", got)
	}
}

func TestTailCallsDoNotNest(t *testing.T) {
	b := wasmtest.New()
	// f(n) = n == 0 ? 77 : f(n-1), with a value below the argument
	b.Func("", i32, i32, i32, wasmtest.I32Const(1), wasmtest.LocalGet(0), wasmtest.I32Eqz(), wasmtest.If(wasmtest.I32Const(77), wasmtest.Return()),
		wasmtest.LocalGet(0), wasmtest.I32Const(1), wasmtest.I32Sub(), []byte{0x12, 0})
	b.Func("run", nil, i32, nil, wasmtest.I32Const(5000), wasmtest.Call(0))
	got, err := oracle.Run(b.Bytes(), oracle.Options{MaxDepth: 2})
	if err != nil {
		t.Fatal(err)
	}
	if want := uint64(2 + 5000*8 + 6); got.Steps != want || got.FunctionEntries != 5002 || got.Depth != 2 || got.Results[0].Lo != 77 {
		t.Errorf("got %+v, want %d steps", got, want)
	}
}

func TestRunDescribesTheFinalState(t *testing.T) {
	b := wasmtest.New()
	b.Memory(1, 2)
	b.Data(3, []byte("abc"))
	b.Global(wasmtest.I64, true, wasmtest.I64Const(-5))
	b.Func("run", nil, nil, nil, wasmtest.I32Const(1), wasmtest.I32Const('x'), wasmtest.I32Store8(0),
		wasmtest.I32Const(1), wasmtest.MemoryGrow(), wasmtest.Drop(), wasmtest.Unreachable())
	got, err := oracle.Run(b.Bytes(), oracle.Options{})
	if err != nil {
		t.Fatal(err)
	}
	memory := make([]byte, 2*wasm.PageBytes)
	copy(memory, "\x00x\x00abc")
	if got.Pages != 2 || got.Memory != oracle.HashMemory(memory) {
		t.Errorf("%d pages with hash %#x, want %#x", got.Pages, got.Memory, oracle.HashMemory(memory))
	}
	if want := (oracle.Value{Type: wasm.I64, Lo: ^uint64(4)}); len(got.Globals) != 1 || got.Globals[0] != want {
		t.Errorf("globals are %v, want %v", got.Globals, want)
	}
}

func TestSegmentsOutOfBoundsTrapBeforeAnythingRuns(t *testing.T) {
	b := wasmtest.New()
	b.Memory(1, 1)
	b.Data(wasm.PageBytes-1, []byte("ab"))
	b.Func("run", nil, nil, nil)
	got, err := oracle.Run(b.Bytes(), oracle.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got.Trap != oracle.TrapMemory || got.Phase != oracle.Instantiating || got.Steps != 0 {
		t.Errorf("got %+v", got)
	}
}

func TestRunRefuses(t *testing.T) {
	foreign := wasmtest.New()
	foreign.ImportFunc("env", "other", nil, nil)
	foreign.Func("run", nil, nil, nil)
	argument := wasmtest.New()
	argument.Func("run", i32, nil, nil)
	unknown := wasmtest.New()
	unknown.Func("run", nil, nil, nil, []byte{0xf5})
	underflow := wasmtest.New()
	underflow.Func("run", nil, nil, nil, wasmtest.Drop(), wasmtest.I32Add())
	for what, data := range map[string][]byte{
		"text":                     []byte("text"),
		"another import":           foreign.Bytes(),
		"no run":                   wasmtest.New().Bytes(),
		"a run with a parameter":   argument.Bytes(),
		"an unknown instruction":   unknown.Bytes(),
		"operands that are absent": underflow.Bytes(),
	} {
		if got, err := oracle.Run(data, oracle.Options{}); err == nil {
			t.Errorf("%s: got %+v", what, got)
		}
	}
}

func TestValuesAreEqualAsFarAsTheSpecificationSays(t *testing.T) {
	value := func(t wasm.ValType, lo uint64) oracle.Value { return oracle.Value{Type: t, Lo: lo} }
	equal := [][2]oracle.Value{
		{value(wasm.F32, 0x7fc00000), value(wasm.F32, 0xffc12345)},
		{value(wasm.F64, 0x7ff8000000000000), value(wasm.F64, 0xfff0000000000001)},
		{value(wasm.I32, 5), value(wasm.I32, 0xff<<32|5)}, // the engine may leave anything in the upper half
		{value(wasm.FuncRef, 1), value(wasm.FuncRef, 0xc000123)},
	}
	different := [][2]oracle.Value{
		{value(wasm.F32, 0), value(wasm.F32, 1<<31)},
		{value(wasm.F64, 0), value(wasm.F64, 1<<63)},
		{value(wasm.I64, 5), value(wasm.I32, 5)},
		{value(wasm.I64, 5), value(wasm.I64, 1<<32|5)},
		{value(wasm.FuncRef, 0), value(wasm.FuncRef, 1)},
		{{Type: wasm.V128, Lo: 1, Hi: 2}, {Type: wasm.V128, Lo: 1, Hi: 3}},
	}
	for _, pair := range equal {
		if !pair[0].Equal(pair[1]) {
			t.Errorf("%v and %v are different", pair[0], pair[1])
		}
	}
	for _, pair := range different {
		if pair[0].Equal(pair[1]) {
			t.Errorf("%v and %v are equal", pair[0], pair[1])
		}
	}
	got := oracle.Values([]wasm.ValType{wasm.I64, wasm.V128, wasm.I32}, []uint64{1, 2, 3, 4})
	want := []oracle.Value{{Type: wasm.I64, Lo: 1}, {Type: wasm.V128, Lo: 2, Hi: 3}, {Type: wasm.I32, Lo: 4}}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestDiffersFindsEachDifference(t *testing.T) {
	build := func(body ...[]byte) *oracle.Outcome {
		b := wasmtest.New()
		b.Memory(1, 1)
		b.Global(wasmtest.I64, true, wasmtest.I64Const(9))
		b.Func("run", nil, i32, nil, body...)
		out, err := oracle.Run(b.Bytes(), oracle.Options{MaxSteps: 100})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	returned, trapped := build(wasmtest.I32Const(7)), build(wasmtest.Unreachable())
	endless := build(wasmtest.Loop(wasmtest.Br(0)), wasmtest.Unreachable())
	memory, other := make([]byte, wasm.PageBytes), make([]byte, wasm.PageBytes)
	other[5] = 1
	ok, globals := []uint64{7}, []uint64{9, 12345}
	trap := errors.New("wasm error: unreachable\nwasm stack trace: ...")
	tests := []struct {
		name string
		out  *oracle.Outcome
		got  oracle.Observed
		same bool
	}{
		{"the same", returned, oracle.Observed{Results: ok, Memory: memory, Globals: globals}, true},
		{"the same trap", trapped, oracle.Observed{Err: trap, Memory: memory, Globals: globals}, true},
		{"results", returned, oracle.Observed{Results: []uint64{8}, Memory: memory, Globals: globals}, false},
		{"memory", returned, oracle.Observed{Results: ok, Memory: other, Globals: globals}, false},
		{"memory after a trap", trapped, oracle.Observed{Err: trap, Memory: other, Globals: globals}, false},
		{"no memory", returned, oracle.Observed{Results: ok, Globals: globals}, false},
		{"a global", returned, oracle.Observed{Results: ok, Memory: memory, Globals: []uint64{8}}, false},
		{"no global", returned, oracle.Observed{Results: ok, Memory: memory}, false},
		{"a trap", returned, oracle.Observed{Err: trap, Memory: memory, Globals: globals}, false},
		{"no trap", trapped, oracle.Observed{Results: ok, Memory: memory, Globals: globals}, false},
		{"another trap", trapped, oracle.Observed{Err: errors.New("integer overflow"), Memory: memory, Globals: globals}, false},
		{"no end", endless, oracle.Observed{Memory: memory, Globals: globals}, false},
	}
	for _, test := range tests {
		if diff := test.out.Diff(test.got); (diff == "") != test.same {
			t.Errorf("%s: %q", test.name, diff)
		}
	}
}

func TestRunTwiceGivesTheSame(t *testing.T) {
	for n := range uint64(50) {
		data := oracle.Generate(oracle.Seed(n))
		original := bytes.Clone(data)
		first, err := oracle.Run(data, oracle.Options{MaxSteps: 10000})
		if err != nil {
			t.Fatal(err)
		}
		second, err := oracle.Run(data, oracle.Options{MaxSteps: 10000})
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(data, original) {
			t.Fatalf("seed %d: Run changed the module", n)
		}
		if first.Steps != second.Steps || first.Memory != second.Memory || first.Trap != second.Trap {
			t.Errorf("seed %d: got %+v and %+v", n, first, second)
		}
	}
}

// BenchmarkRun reports the steps per second.
func BenchmarkRun(b *testing.B) {
	module := wasmtest.New()
	module.Memory(1, 1)
	module.Func("run", nil, nil, []wasmtest.ValType{wasmtest.I32, wasmtest.I32},
		wasmtest.Loop(
			wasmtest.Block(wasmtest.LocalGet(0), wasmtest.I32Const(3), wasmtest.I32And(), wasmtest.BrIf(0),
				wasmtest.LocalGet(0), wasmtest.I32Const(0xfff), wasmtest.I32And(), wasmtest.LocalGet(1), wasmtest.I32Store(0)),
			wasmtest.LocalGet(1), wasmtest.LocalGet(0), wasmtest.I32Mul(), wasmtest.LocalSet(1),
			wasmtest.LocalGet(0), wasmtest.I32Const(1), wasmtest.I32Add(), wasmtest.LocalTee(0), wasmtest.Br(0)))
	data := module.Bytes()
	const steps = 1_000_000
	for b.Loop() {
		if _, err := oracle.Run(data, oracle.Options{MaxSteps: steps}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(steps)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Msteps/s")
}
