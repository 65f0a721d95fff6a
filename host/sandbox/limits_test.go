package sandbox_test

import (
	"bytes"
	"context"
	"errors"
	"math"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/sandbox"
	"github.com/stockade-dev/stockade/host/tool"
	w "github.com/stockade-dev/stockade/host/wasm/wasmtest"
)

// counts returns a body that runs a loop n times.
func counts(n int32) []byte {
	local := w.FirstLocal
	return code(w.I32Const(n), w.LocalSet(local),
		w.Loop(w.LocalGet(local), w.I32Const(1), w.I32Sub(), w.LocalTee(local), w.BrIf(0)))
}

func TestEveryBudgetEndsACall(t *testing.T) {
	box := newBox(t, sandbox.Options{})
	spins := probe(w.ToolOptions{Call: w.Spin()})
	const limit = 3_000_000
	for key, c := range map[string]struct {
		limits  policy.Limits
		budgets []*policy.Budget
	}{
		"tool_fuel":       {policy.Limits{Fuel: limit}, nil},
		"tool_fuel_total": {policy.Limits{}, []*policy.Budget{policy.NewBudget(policy.ToolFuelKey, 2*limit, limit)}},
		"session_fuel": {policy.Limits{}, []*policy.Budget{
			policy.NewBudget(policy.ToolFuelKey, math.MaxInt64, 0), policy.NewBudget(policy.SessionFuelKey, limit, 0)}},
	} {
		t.Run(key, func(t *testing.T) {
			j := granted(t, spins, ask{limits: c.limits})
			j.grant = j.grant.WithBudgets(c.budgets...)
			r := j.mustRun(t, box)
			failure(t, r, tool.CodeFuel, tool.InternalError, "raise "+key+" ")
			for _, says := range []string{strconv.FormatUint(r.Usage.FuelUsed, 10), strconv.Itoa(limit)} {
				if key != "tool_fuel_total" && !strings.Contains(r.Err.Message, says) {
					t.Errorf("%q does not say %s", r.Err.Message, says)
				}
			}
			if r.Usage.FuelUsed < limit || r.Usage.FuelUsed > limit+10_000 {
				t.Errorf("%d units were used of %d", r.Usage.FuelUsed, limit)
			}
		})
	}
}

func TestASharedBudgetPaysWhatWasUsed(t *testing.T) {
	box := newBox(t, sandbox.Options{})
	mod := probe(w.ToolOptions{Locals: []w.ValType{w.I32}, Call: code(counts(1000), w.ReturnOK("ok"))})
	budget := policy.NewBudget(policy.SessionFuelKey, 1<<40, 0)
	var used uint64
	for range 3 {
		j := granted(t, mod, ask{})
		j.grant = j.grant.WithBudgets(budget)
		r := j.mustRun(t, box)
		output(t, r)
		used += r.Usage.FuelUsed
	}
	if used < 3*5000 || budget.Left() != 1<<40-used {
		t.Errorf("%d used, %d gone", used, 1<<40-budget.Left())
	}
}

func TestFuelIsTheSameInEveryRun(t *testing.T) {
	for name, o := range map[string]w.ToolOptions{
		"returns": {Locals: []w.ValType{w.I32}, Call: code(counts(2_000_000), w.ReturnOK("ok"))},
		"traps":   {Locals: []w.ValType{w.I32}, Call: code(counts(2_000_000), w.Unreachable())},
		"traps out of bounds": {Locals: []w.ValType{w.I32},
			Call: code(w.Loop(w.LocalGet(w.FirstLocal), w.I32Const(4), w.I32Add(), w.LocalTee(w.FirstLocal), w.I32Load(0), w.Drop(), w.Br(0)), w.I32Const(0))},
	} {
		t.Run(name, func(t *testing.T) {
			mod := probe(o)
			first := uint64(0)
			for _, interpreter := range []bool{false, true, false} {
				box := newBox(t, sandbox.Options{Interpreter: interpreter})
				for range 3 {
					r := granted(t, mod, ask{}).mustRun(t, box)
					if first == 0 {
						first = r.Usage.FuelUsed
					}
					if r.Usage.FuelUsed != first || first == 0 {
						t.Fatalf("%d units, before %d", r.Usage.FuelUsed, first)
					}
				}
			}
		})
	}
}

// The work of a guest between two checks of its counter is limited, so that the garbage
// collector gets its turn. Otherwise these calls would never end, because they are cancelled
// only after a collection.
func TestTheCollectorDoesNotWaitForAGuest(t *testing.T) {
	box := newBox(t, sandbox.Options{})
	const big = 200 << 20
	fill := code(w.I32Const(0), w.I32Const(1), w.I32Const(big), w.MemoryFill())
	copies := code(w.I32Const(0), w.I32Const(1<<20), w.I32Const(big-1<<20), w.MemoryCopy())
	for name, o := range map[string]w.ToolOptions{
		"a loop":           {Call: w.Spin()},
		"calls":            {Call: code(w.Call(w.ToolOptions{}.CallFunc()+1), w.I32Const(0)), Edit: callTree},
		"memory.fill":      {MemoryMin: big >> 16, Call: code(w.Loop(fill, w.Br(0)), w.I32Const(0))},
		"memory.copy":      {MemoryMin: big >> 16, Call: code(w.Loop(copies, w.Br(0)), w.I32Const(0))},
		"memory.grow of 0": {Call: code(w.Loop(w.I32Const(0), w.MemoryGrow(), w.Drop(), w.Br(0)), w.I32Const(0))},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			j := granted(t, probe(o), ask{limits: policy.Limits{Timeout: time.Hour, Fuel: 1 << 60}})
			if err := sandbox.Load(box, j.mod); err != nil {
				t.Fatal(err)
			}
			ended := make(chan tool.Result)
			go func() {
				r, _ := j.run(ctx, box)
				ended <- r
			}()
			for range 5 {
				runtime.GC()
				select {
				case r := <-ended:
					t.Fatalf("the call ended by itself: %s", r.Summary())
				default:
				}
			}
			cancel(errors.New("enough"))
			failure(t, <-ended, tool.CodeCancelled, tool.InternalError, "")
		})
	}
}

// callTree adds functions each of which calls the next twice: 2^40 calls
// without a loop or a deep recursion.
func callTree(b *w.Builder) {
	for range 40 {
		b.Func("", nil, nil, nil, w.Call(b.NextFunc()+1), w.Call(b.NextFunc()+1))
	}
	b.Func("", nil, nil, nil)
}

func TestNoBlockingCallOutlivesTheDeadline(t *testing.T) {
	box := newBox(t, sandbox.Options{})
	random := w.ToolOptions{Imports: []w.Import{wasi("random_get", i32s(2)...)}, MemoryMin: 1024,
		Call: code(w.Loop(w.I32Const(1<<16), w.I32Const(32<<20), w.Call(0), w.Drop(), w.Br(0)), w.I32Const(0))}
	random.Imports[0].Results = i32s(1)
	r := granted(t, probe(random), ask{limits: policy.Limits{Timeout: 50 * time.Millisecond}}).mustRun(t, box)
	failure(t, r, tool.CodeTimeout, tool.InternalError, "tool_timeout")
	if r.Usage.FuelUsed < 1<<16 {
		t.Errorf("random bytes cost %d units", r.Usage.FuelUsed)
	}
}

// The host hashes no more than the guest can pay for, even in one call.
func TestAHashIsPaidForPieceByPiece(t *testing.T) {
	box := newBox(t, sandbox.Options{})
	const pages = 1024
	mod := probe(w.ToolOptions{Imports: []w.Import{own("digest", "sha256", i32s(3)...)}, MemoryMin: pages,
		Call: code(w.I32Const(0), w.I32Const(pages<<16), w.I32Const(resultA), w.Call(0), w.ReturnOK("ok")),
		Edit: func(b *w.Builder) { b.ExportFunc("cabi_realloc", 1) }})
	r := granted(t, mod, ask{limits: policy.Limits{Fuel: 10_000_000}}).mustRun(t, box)
	failure(t, r, tool.CodeFuel, tool.InternalError, "of a call")
	if r.Usage.FuelUsed > 13_000_000 {
		t.Errorf("%d units were used", r.Usage.FuelUsed)
	}
	r = granted(t, mod, ask{}).mustRun(t, box)
	if output(t, r); r.Usage.FuelUsed < pages<<16 {
		t.Errorf("%d units were used for %d bytes", r.Usage.FuelUsed, pages<<16)
	}
}

// On its way back from a recursion a guest can call the host again and again, with a thousand
// pieces of output each time.
func TestNoRowOfHostCallsOutlivesTheDeadline(t *testing.T) {
	box := newBox(t, sandbox.Options{})
	i32 := []w.ValType{w.I32}
	o := w.ToolOptions{
		Imports:   []w.Import{{Module: "wasi_snapshot_preview1", Name: "fd_write", Params: i32s(4), Results: i32}},
		MemoryMin: 300,
	}
	const depth, calls, pieces = 2_000, 200, 1024
	f := o.CallFunc() + 1
	o.Call = code(w.I32Const(depth), w.Call(f), w.ReturnOK("ok"))
	o.Edit = func(b *w.Builder) {
		b.Func("", i32, nil, nil, w.LocalGet(0), w.If(
			w.LocalGet(0), w.I32Const(1), w.I32Sub(), w.Call(f),
			bytes.Repeat(code(w.I32Const(1), w.I32Const(1<<20), w.I32Const(pieces), w.I32Const(8), w.Call(0), w.Drop()), calls)))
	}
	r := granted(t, probe(o), ask{limits: policy.Limits{Timeout: 100 * time.Millisecond}}).mustRun(t, box)
	failure(t, r, tool.CodeTimeout, tool.InternalError, "timed out")
	if all := uint64(depth * calls * pieces); r.Usage.FuelUsed == 0 || r.Usage.FuelUsed > all/2 {
		t.Errorf("%d units were used", r.Usage.FuelUsed)
	}
}

func TestDeepRecursionIsCheap(t *testing.T) {
	box := newBox(t, sandbox.Options{})
	locals := make([]w.ValType, 500)
	for i := range locals {
		locals[i] = w.I64
	}
	for name, l := range map[string][]w.ValType{"small frames": nil, "large frames": locals} {
		t.Run(name, func(t *testing.T) {
			j := granted(t, probe(w.ToolOptions{Locals: l, Call: w.Recurse(w.ToolOptions{}.CallFunc())}), ask{})
			failure(t, j.mustRun(t, box), tool.CodeTrap, tool.InternalError, "nested too deeply")
			before := heapInUse()
			var wg sync.WaitGroup
			for range 16 {
				wg.Go(func() {
					r, err := j.run(t.Context(), box)
					if err != nil || r.Err == nil || r.Err.Code != tool.CodeTrap {
						t.Errorf("%+v, %v", r.Err, err)
					}
				})
			}
			wg.Wait()
			if grown := heapInUse() - before; grown > 1<<30 {
				t.Errorf("16 recursions took %d MiB", grown>>20)
			}
		})
	}
}

func heapInUse() int64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapSys - m.HeapReleased)
}

func TestAllCallsTogetherHaveALimitOfMemory(t *testing.T) {
	box := newBox(t, sandbox.Options{MemoryBytes: 8 << 20})
	grows := granted(t, probe(w.ToolOptions{Call: code(
		w.I32Const(200), w.MemoryGrow(), w.I32Const(-1), w.I32Eq(), w.If(w.Unreachable()), w.ReturnOK("ok"))}), ask{})
	failure(t, grows.mustRun(t, box), tool.CodeMemory, tool.InternalError, "raise tool_memory_total")

	fits := granted(t, probe(w.ToolOptions{Call: code(
		w.I32Const(100), w.MemoryGrow(), w.I32Const(-1), w.I32Eq(), w.If(w.Unreachable()), w.ReturnOK("ok"))}), ask{})
	for range 5 { // what a call had comes back
		output(t, fits.mustRun(t, box))
	}
}

// A module whose memory at the start exceeds a limit gets none, and the error names the
// limit.
func TestAModuleThatStartsTooLarge(t *testing.T) {
	const page = 64 << 10
	for key, c := range map[string]struct {
		options sandbox.Options
		limits  policy.Limits
	}{
		"tool_memory":       {sandbox.Options{}, policy.Limits{MemoryBytes: 99 * page}},
		"tool_memory_total": {sandbox.Options{MemoryBytes: 99 * page}, policy.Limits{}},
	} {
		both(t, w.ToolOptions{MemoryMin: 100}, func(t *testing.T, mod *tool.Module) {
			r := granted(t, mod, ask{limits: c.limits}).mustRun(t, newBox(t, c.options))
			failure(t, r, tool.CodeMemory, tool.InternalError, "raise "+key+" ")
			if want := "6400 KiB of memory, more than " + key + " has left of its 6336 KiB"; !strings.Contains(r.Err.Message, want) {
				t.Errorf("%q does not say %q", r.Err.Message, want)
			}
		})
	}
}
