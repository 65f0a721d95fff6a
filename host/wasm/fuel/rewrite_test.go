package fuel_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/stockade-dev/stockade/host/wasm"
	"github.com/stockade-dev/stockade/host/wasm/fuel"
	w "github.com/stockade-dev/stockade/host/wasm/wasmtest"
)

func rewrite(tb testing.TB, module []byte, opts fuel.Options) ([]byte, error) {
	tb.Helper()
	m, err := wasm.Decode(module)
	if err != nil {
		tb.Fatalf("the original does not decode: %v", err)
	}
	return fuel.Rewrite(m, opts)
}

// mustRewrite returns the decoded result.
func mustRewrite(tb testing.TB, module []byte, opts fuel.Options) *wasm.Module {
	tb.Helper()
	out, err := rewrite(tb, module, opts)
	if err != nil {
		tb.Fatal(err)
	}
	m, err := wasm.Decode(out)
	if err != nil {
		tb.Fatalf("the result does not decode: %v", err)
	}
	return m
}

// ops returns the instructions of function n, counted among the functions that the module
// defines.
func ops(tb testing.TB, m *wasm.Module, n int) (out []wasm.Instr) {
	tb.Helper()
	bodies := m.Bodies()
	for i := 0; ; i++ {
		b, ok := bodies.Next()
		if !ok {
			tb.Fatalf("there is no function %d: %v", n, bodies.Err())
		}
		if i == n {
			return append(out, b.Instrs...)
		}
	}
}

func count(instrs []wasm.Instr, op wasm.Op, arg uint32) (n int) {
	for _, in := range instrs {
		if in.Op == op && in.Arg == arg {
			n++
		}
	}
	return n
}

// Appended types, functions, globals and locals must not make an invalid index valid: a
// guest could set its own counter.
func TestIndicesAreCheckedAgainstTheOriginal(t *testing.T) {
	base := func() *w.Builder {
		b := w.New()
		b.Memory(1, 1)
		b.Table(1, 1)
		b.Global(w.I64, true, w.I64Const(0)) // global 0; the counter would be 1
		return b
	}
	for name, body := range map[string][]byte{
		"global.get":              cat(w.GlobalGet(1), w.Drop()),
		"global.set":              cat(w.I64Const(1), w.GlobalSet(1)),
		"global.set of the depth": cat(w.I64Const(1), w.GlobalSet(2)),
		"local.get":               cat(w.LocalGet(1), w.Drop()),
		"local.set":               cat(w.I64Const(1), w.LocalSet(1)),
		"local.tee":               cat(w.I64Const(1), w.LocalTee(1), w.Drop()),
		"call":                    w.Call(1),
		"call of an added one":    w.Call(2),
		"return_call":             {0x12, 1},
		"ref.func":                {0xd2, 1, 0x1a},
		"call_indirect type":      cat(w.I32Const(0), []byte{0x11, 1, 0}),
		"call_indirect table":     cat(w.I32Const(0), []byte{0x11, 0, 1}),
		"return_call_indirect":    cat(w.I32Const(0), []byte{0x13, 1, 0}),
		"block type":              cat(w.I64Const(0), []byte{0x02, 1, 0x0b, 0x1a}),
		"table.get":               cat(w.I32Const(0), []byte{0x25, 1, 0x1a}),
		"memory.init":             cat(w.I32Const(0), w.I32Const(0), w.I32Const(0), []byte{0xfc, 8, 0, 0}),
		"elem.drop":               {0xfc, 13, 0},
		"label":                   w.Br(1),
		"in dead code":            cat(w.Unreachable(), w.I64Const(1), w.GlobalSet(1)),
		"padded":                  {0x23, 0x81, 0x80, 0x80, 0x80, 0x00, 0x1a},
	} {
		t.Run(name, func(t *testing.T) {
			b := base()
			b.Func("", nil, nil, []wasm.ValType{w.I32}, body)
			if out, err := rewrite(t, b.Bytes(), fuel.Options{MaxDepth: 1000}); err == nil {
				t.Errorf("it was rewritten to %x", out)
			}
		})
	}
}

// The same for indices outside of functions, which Decode checks.
func TestDecodeChecksIndicesOutsideOfFunctions(t *testing.T) {
	for name, edit := range map[string]func(*w.Builder){
		"export of a function":        func(b *w.Builder) { b.ExportFunc("f", 1) },
		"export of a global":          func(b *w.Builder) { b.ExportGlobal("g", 1) },
		"start":                       func(b *w.Builder) { b.Start(1) },
		"element":                     func(b *w.Builder) { b.Table(2, 2); b.Elem(0, 1) },
		"initial value of a function": func(b *w.Builder) { b.Global(w.FuncRef, false, []byte{0xd2, 1}) },
		"initial value of a global":   func(b *w.Builder) { b.Global(w.I64, false, w.GlobalGet(2)) },
	} {
		t.Run(name, func(t *testing.T) {
			b := w.New()
			b.Global(w.I64, true, w.I64Const(0))
			b.Func("", nil, nil, nil)
			edit(b)
			if m, err := wasm.Decode(b.Bytes()); err == nil {
				t.Errorf("decoded: %+v", m)
			}
		})
	}
}

// A start function runs as an export, so the engine does not check its type.
func TestStartFunctionMustTakeAndReturnNothing(t *testing.T) {
	b := w.New()
	b.Start(b.Func("", []wasm.ValType{w.I32}, nil, nil))
	if _, err := wasm.Decode(b.Bytes()); err == nil {
		t.Error("a start function with a parameter was decoded")
	}
	b = w.New()
	b.ImportFunc("env", "f", nil, nil)
	b.Start(b.Func("", nil, nil, nil, w.Nop()))
	m := mustRewrite(t, b.Bytes(), fuel.Options{})
	if e, ok := m.Export(fuel.ExportStart); m.HasStart || !ok || e.Index != 2 {
		t.Errorf("start section %v, export %+v", m.HasStart, e)
	}
}

func TestReservedNamesAreRefused(t *testing.T) {
	for name, edit := range map[string]func(*w.Builder){
		"import": func(b *w.Builder) {
			b.ImportFunc(fuel.ImportModule, fuel.ImportRefill, []wasm.ValType{w.I64}, []wasm.ValType{w.I64})
		},
		"another import of the module": func(b *w.Builder) { b.ImportFunc(fuel.ImportModule, "x", nil, nil) },
		"export of a global":           func(b *w.Builder) { b.ExportGlobal(fuel.ExportFuel, b.Global(w.I64, true, w.I64Const(0))) },
		"export of a function":         func(b *w.Builder) { b.ExportFunc(fuel.ExportStart, b.Func("", nil, nil, nil)) },
	} {
		t.Run(name, func(t *testing.T) {
			b := w.New()
			edit(b)
			if _, err := rewrite(t, b.Bytes(), fuel.Options{}); !errors.Is(err, fuel.ErrReserved) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestWhatIsNotSupportedIsRefused(t *testing.T) {
	b := w.New()
	b.Func("", nil, nil, nil)
	good := b.Bytes()
	for name, c := range map[string]struct {
		says   string
		module []byte
	}{
		"64-bit memory": {"64-bit", insert(good, wasm.SectionCode, wasm.SectionMemory, []byte{1, 4, 1})},
		"64-bit table":  {"64-bit", insert(good, wasm.SectionCode, wasm.SectionTable, []byte{1, 0x70, 4, 1})},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := rewrite(t, c.module, fuel.Options{}); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v", err)
			}
		})
	}
	for _, body := range [][]byte{
		{0x28, 0x40, 0, 0},          // the index of a memory in an access
		{0x06, 0x40, 0x0b},          // try of an older proposal
		{0xfb, 0},                   // garbage-collected types
		{0xfc, 18}, {0xfd, 0x80, 2}, // beyond what is defined
		{0xfe, 4}, {0xff},
		{0x14, 0}, {0xd5, 0}, {0xc5},
	} {
		b := w.New()
		b.Memory(1, 1)
		b.Func("", nil, nil, nil, body)
		if _, err := rewrite(t, b.Bytes(), fuel.Options{}); err == nil {
			t.Errorf("% x was rewritten", body)
		}
	}
}

// insert puts a section before another.
func insert(module []byte, before, id byte, payload []byte) []byte {
	m, err := wasm.Decode(module)
	if err != nil {
		panic(err)
	}
	for _, s := range m.Sections {
		if s.ID == before {
			return bytes.Join([][]byte{module[:s.Offset], w.Section(id, payload), module[s.Offset:]}, nil)
		}
	}
	panic("no such section")
}

// Every loop and every function that calls checks the counter, small leaves do not, and
// the check has the shape that the engine compiles well.
func TestWhereTheCounterIsLookedAt(t *testing.T) {
	b := w.New()
	b.Memory(1, 1)
	i32 := []wasm.ValType{w.I32}
	leaf := b.Func("", i32, i32, nil, w.LocalGet(0), w.I32Const(1), w.I32Add())
	b.Func("", nil, nil, nil, w.Loop(w.I32Const(1), w.BrIf(0)))
	b.Func("", i32, i32, nil, w.LocalGet(0), w.Call(leaf))
	b.Func("", nil, nil, nil, repeat(200, w.I32Const(1), w.Drop()))
	b.Func("", nil, nil, nil, cat(w.I32Const(0), []byte{0x12, 0, 0x1a})) // return_call: a loop without a loop
	b.Func("", nil, nil, nil, repeat(20_000, w.I32Const(1), w.Drop()))
	b.Func("", nil, i32, nil, repeat(1000, w.I32Const(1), w.Call(leaf), w.Drop()), w.I32Const(0))
	self := b.NextFunc()
	b.Func("", i32, nil, nil, w.Block(w.LocalGet(0), w.BrIf(0), w.LocalGet(0), w.Call(self))) // before the call, not the branch
	costly := b.NextFunc()
	b.Func("", i32, nil, nil, w.Block(w.LocalGet(0), w.BrIf(0), w.LocalGet(0), w.Call(costly)), repeat(50, w.I32Const(1), w.Drop()))
	b.Func("", nil, nil, nil, w.Call(self+2), repeat(500, w.I32Const(1), w.Drop()))
	b.Func("", nil, nil, nil, repeat(50, w.I32Const(1), w.Drop()))
	m := mustRewrite(t, b.Bytes(), fuel.Options{})
	const refill = 0
	is := func(op wasm.Op) func(wasm.Instr) bool { return func(in wasm.Instr) bool { return in.Op == op } }
	for _, f := range []uint32{self, costly} {
		instrs := ops(t, m, int(f))
		branch, look := slices.IndexFunc(instrs, is(wasm.OpBrIf)), slices.IndexFunc(instrs, is(wasm.OpCall))
		if late := branch < look; late != (f == self) {
			t.Errorf("function %d: the branch is instruction %d, the look %d", f, branch, look)
		}
	}
	for i, want := range []struct {
		what        string
		least, most int
	}{
		{"a leaf", 0, 0},
		{"a loop", 1, 1},
		{"a call", 1, 1},
		{"a leaf with 400 instructions", 1, 1},
		{"a tail call", 1, 1},
		{"40000 instructions in a row", 4, 8},
		{"1000 calls of a leaf in a row", 7, 600},
		{"a recursion that can end at once", 1, 1},
		{"one whose end costs more", 1, 2},
		{"1000 instructions after a call, for each level of a recursion", 2, 2},
		{"a short leaf that costs 100 units", 1, 1},
	} {
		if n := count(ops(t, m, i), wasm.OpCall, refill); n < want.least || n > want.most {
			t.Errorf("%s: %d looks, want %d to %d", want.what, n, want.least, want.most)
		}
	}
	// The rare branch is the else branch: forty percent slower in loops of
	// floating-point numbers otherwise.
	for i := range 11 {
		instrs := ops(t, m, i)
		for k, in := range instrs {
			if in.Op == wasm.OpCall && in.Arg == refill && instrs[k-2].Op != wasm.OpElse {
				t.Errorf("function %d: %v before the call of refill", i, instrs[k-2].Op)
			}
		}
	}
}

// A conditional exit of a function must leave the right value in the global.
func TestTheGlobalIsWrittenBeforeEveryExit(t *testing.T) {
	for name, body := range map[string][]byte{
		"return":   cat(w.I32Const(1), w.If(w.Return())),
		"br":       cat(w.I32Const(1), w.If(w.Br(1))),
		"br_if":    cat(w.I32Const(1), w.BrIf(0)),
		"br_table": cat(w.I32Const(1), []byte{0x0e, 1, 0, 0}),
		"end":      cat(w.I32Const(1), w.Drop()),
		"load":     cat(w.I32Const(-1), w.I32Load(0), w.Drop()),
		"trap":     cat(w.I32Const(1), w.If(w.Unreachable())),
	} {
		t.Run(name, func(t *testing.T) {
			b := w.New()
			b.Memory(1, 1)
			b.Func("", nil, nil, nil, body)
			dirty := false
			m := mustRewrite(t, b.Bytes(), fuel.Options{})
			for _, in := range ops(t, m, 0) {
				switch in.Op {
				case wasm.OpLocalSet, wasm.OpLocalTee:
					dirty = true
				case wasm.OpGlobalSet:
					dirty = false
				case wasm.OpReturn, wasm.OpBr, wasm.OpBrIf, wasm.OpBrTable, wasm.OpUnreachable, wasm.OpI32Load:
					if dirty {
						t.Errorf("the counter is only in the local before instruction %v", in.Op)
					}
				}
			}
			if dirty {
				t.Error("the counter is only in the local at the end")
			}
		})
	}
}

func TestSectionsKeepTheirOrder(t *testing.T) {
	// Only a type and a data count: import, global, export and code are added around
	// them.
	b := w.New()
	b.Memory(1, 1)
	b.Func("f", nil, nil, nil, w.I32Const(0), w.I32Const(0), w.I32Const(0), []byte{0xfc, 8, 0, 0})
	module := insert(b.Bytes(), wasm.SectionCode, wasm.SectionDataCount, []byte{1})
	module = append(module, w.Section(wasm.SectionData, []byte{1, 1, 0})...)
	m := mustRewrite(t, module, fuel.Options{})
	var got []byte
	for _, s := range m.Sections {
		got = append(got, s.ID)
	}
	if want := []byte{1, 2, 3, 5, 6, 7, 12, 10, 11}; !bytes.Equal(got, want) {
		t.Errorf("sections %v, want %v", got, want)
	}
	if mustRewrite(t, w.Header(), fuel.Options{}).Imports == nil {
		t.Error("an empty module imports nothing")
	}
}

// A data count is removed with the segments that were merged, unless code names segments.
func TestDataCountsAreKeptWhereTheyAreNeeded(t *testing.T) {
	for name, c := range map[string]struct {
		body []byte
		want int // segments
	}{
		"code that names none": {w.Nop(), 1},
		"code that names one":  {slices.Concat(w.I32Const(0), w.I32Const(0), w.I32Const(0), []byte{0xfc, 8, 0, 0}), 2},
		"code that drops one":  {[]byte{0xfc, 9, 0}, 2},
		"code that is dead":    {slices.Concat(w.Unreachable(), []byte{0xfc, 9, 0}), 2},
	} {
		b := w.New()
		b.Memory(1, 1)
		b.Data(0, []byte("a"))
		b.Data(4, []byte("b"))
		b.Func("f", nil, nil, nil, c.body)
		m := mustRewrite(t, insert(b.Bytes(), wasm.SectionCode, wasm.SectionDataCount, []byte{2}), fuel.Options{MergeData: true})
		if m.NumDataSegments != c.want || m.HasDataCount != (c.want == 2) {
			t.Errorf("%s: %d segments, counted: %v", name, m.NumDataSegments, m.HasDataCount)
		}
	}
}

func TestTablesGetALimit(t *testing.T) {
	b := w.New()
	b.Table(10, -1)
	b.Table(0, 5)
	b.Table(0, 1<<30)
	m := mustRewrite(t, b.Bytes(), fuel.Options{MaxTableElements: 100})
	for i, want := range []uint64{40, 5, 30} {
		if l := m.Tables[i].Limits; !l.HasMax || l.Max != want {
			t.Errorf("table %d: %+v, want at most %d", i, l, want)
		}
	}
	if _, err := rewrite(t, b.Bytes(), fuel.Options{MaxTableElements: 9}); err == nil {
		t.Error("a table that starts with more was accepted")
	}
}

// No code makes references: they come from a table that nothing else uses, and that holds
// each function once.
func TestNoCodeMakesReferences(t *testing.T) {
	build := func(declared bool, body ...[]byte) []byte {
		b := w.New()
		host := b.ImportFunc("a", "b", nil, nil)
		b.Table(1, 1)
		b.Func("f", nil, nil, nil, cat(body...))
		if g := b.Func("", nil, nil, nil); declared {
			b.Elem(0, g, host)
		}
		return b.Bytes()
	}
	again := cat(w.RefFunc(2), w.Drop(), w.RefFunc(0), w.Drop())
	m := mustRewrite(t, build(true, w.Loop(again, again), w.Unreachable(), again), fuel.Options{MaxTableElements: 100})
	is := ops(t, m, 0)
	if n := count(is, wasm.OpRefFunc, 0) + count(is, wasm.OpRefFunc, 3); n != 0 {
		t.Errorf("%d references are made", n)
	}
	if n := count(is, wasm.OpTableGet, 1); n != 6 || len(m.Tables) != 2 || m.Tables[1].Limits != (wasm.Limits{Min: 2, Max: 2, HasMax: true}) || m.NumElements != 4 {
		t.Errorf("%d references are taken from the tables %+v with %d elements", n, m.Tables, m.NumElements)
	}
	if out, err := rewrite(t, build(false, w.RefFunc(2), w.Drop()), fuel.Options{}); err == nil {
		t.Errorf("a function that ref.func must not name is named in %x", out)
	}
}

// Each function is inspected once, however long it is, and can be refused.
func TestInspectRefuses(t *testing.T) {
	b := w.New()
	b.Func("", nil, nil, []wasm.ValType{w.I32, w.I64})
	b.Func("", nil, nil, []wasm.ValType{w.I32, w.I64, w.F32}, repeat(10_000, []byte{1}))
	refusal := errors.New("too many locals")
	for _, refused := range []uint32{0, 2, 3} {
		var seen []uint32
		_, err := rewrite(t, b.Bytes(), fuel.Options{Inspect: func(body *wasm.Body) error {
			seen = append(seen, body.Locals)
			if body.Locals == refused {
				return refusal
			}
			return nil
		}})
		if refused == 0 {
			if err != nil || !slices.Equal(seen, []uint32{2, 3}) {
				t.Errorf("saw functions with %d locals: %v", seen, err)
			}
		} else if !errors.Is(err, refusal) {
			t.Errorf("%d locals: %v", refused, err)
		}
	}
}

func cat(pieces ...[]byte) []byte { return bytes.Join(pieces, nil) }

func repeat(n int, pieces ...[]byte) []byte { return bytes.Repeat(cat(pieces...), n) }

// Modules that would grow too much are refused before they have grown.
func TestGrowthHasLimits(t *testing.T) {
	fill := cat(w.I32Const(0), w.I32Const(0), w.I32Const(-1), w.MemoryFill())
	for name, build := range map[string]func(b *w.Builder){
		"instructions that become much more code": func(b *w.Builder) {
			typ := b.Type(nil, nil)
			for range 100 {
				b.FuncOf(typ, nil, repeat(20_000, w.MemoryFill()))
			}
		},
		"a helper for each table and segment": func(b *w.Builder) {
			for range 10 {
				b.Table(1, 1)
			}
			var all []byte
			for elem := range 100 {
				b.ElemExprs(0, nil)
				for table := range 10 {
					all = append(all, cat(w.I32Const(0), w.I32Const(0), w.I32Const(0), []byte{0xfc, 12, byte(elem), byte(table)})...)
				}
			}
			b.Func("", nil, nil, nil, all)
		},
	} {
		b := w.New()
		b.Memory(1, 1)
		build(b)
		if out, err := rewrite(t, b.Bytes(), fuel.Options{}); err == nil {
			t.Errorf("%s: %d bytes became %d", name, len(b.Bytes()), len(out))
		}
	}
	b := w.New()
	b.Memory(1, 1)
	b.Func("", nil, nil, nil, repeat(1000, fill))
	mustRewrite(t, b.Bytes(), fuel.Options{}) // this much is fine
}
