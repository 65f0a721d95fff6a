package fueltest

import (
	"bytes"
	"context"
	"math"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/stockade-dev/stockade/host/sandbox/meter"
	"github.com/stockade-dev/stockade/host/wasm"
	"github.com/stockade-dev/stockade/host/wasm/fuel"
	w "github.com/stockade-dev/stockade/host/wasm/wasmtest"
)

// A costProgram repeats one instruction.
type costProgram struct {
	name   string
	locals []w.ValType // after the parameter, local 0: the number of repetitions
	before []byte      // executed once
	body   []byte      // repeated
	times  int         // repetitions in each turn of the loop
	edit   func(*w.Builder)
}

const (
	a, b, c = 1, 2, 3 // locals
	mib     = 1 << 20
)

func cat(pieces ...[]byte) []byte { return bytes.Join(pieces, nil) }

func op(code byte) []byte { return []byte{code} }

var (
	i64s = []w.ValType{w.I64, w.I64}
	f64s = []w.ValType{w.F64, w.F64}
	i32s = []w.ValType{w.I32, w.I32}
	v    = []w.ValType{w.V128, w.V128}
)

func f64(v float64) []byte {
	out := []byte{0x44}
	for i := range 8 {
		out = append(out, byte(math.Float64bits(v)>>(8*i)))
	}
	return out
}

// binaryOp applies an instruction to a and b, and stores the result in a.
func binaryOp(code byte) []byte { return cat(w.LocalGet(a), w.LocalGet(b), op(code), w.LocalSet(a)) }

func unaryOp(code byte) []byte { return cat(w.LocalGet(a), op(code), w.LocalSet(a)) }

const i64Add, f64Add = 0x7c, 0xa0

// sum adds the results of the pieces to a: the engine removes unused results.
func sum(add byte, pieces ...[]byte) []byte {
	return cat(w.LocalGet(a), cat(pieces...), op(add), w.LocalSet(a))
}

func consts(t func(int64) []byte, x, y int64) []byte {
	return cat(t(x), w.LocalSet(a), t(y), w.LocalSet(b))
}

func bulk(op []byte, dst, src, n int32) []byte {
	return cat(w.I32Const(dst), w.I32Const(src), w.I32Const(n), op)
}

// The duration of each instruction per unit of fuel: `go test -bench Cost` reports it as
// ns/unit. The costs of package fuel are chosen so that nothing is far above a nanosecond
// except loads that miss every cache.
var costPrograms = []costProgram{
	{"i32.add", i32s, nil, binaryOp(0x6a), 100, nil},
	{"i64.mul", i64s, consts(w.I64Const, 3, 5), binaryOp(0x7e), 100, nil},
	{"i64.div_s", i64s, consts(w.I64Const, math.MaxInt64, 1), binaryOp(0x7f), 100, nil},
	{"i64.rem_u", i64s, consts(w.I64Const, math.MaxInt64, math.MaxInt64-1), binaryOp(0x82), 100, nil},
	{"i32.div_u", i32s, cat(w.I32Const(-1), w.LocalSet(a), w.I32Const(1), w.LocalSet(b)), binaryOp(0x6e), 100, nil},
	{"i64.popcnt", i64s, nil, unaryOp(0x7b), 100, nil},
	{"f64.add", f64s, nil, binaryOp(0xa0), 100, nil},
	{"f64.add, denormal", f64s, cat(f64(5e-324), w.LocalSet(a), f64(5e-324), w.LocalSet(b)), binaryOp(0xa0), 100, nil},
	{"f64.div", f64s, cat(f64(1), w.LocalSet(a), f64(1.0000001), w.LocalSet(b)), binaryOp(0xa3), 100, nil},
	{"f64.div, denormal", f64s, cat(f64(5e-324), w.LocalSet(a), f64(1), w.LocalSet(b)), binaryOp(0xa3), 100, nil},
	{"f64.sqrt", f64s, cat(f64(1e300), w.LocalSet(b)), sum(f64Add, w.LocalGet(b), op(0x9f)), 100, nil},
	{"f64.sqrt, denormal", f64s, cat(f64(5e-324), w.LocalSet(b)), sum(f64Add, w.LocalGet(b), op(0x9f)), 100, nil},
	{"f64.mul, denormal", f64s, cat(f64(5e-324), w.LocalSet(b)), sum(f64Add, w.LocalGet(b), f64(1.5), op(0xa2)), 100, nil},
	{"f64.nearest", f64s, nil, unaryOp(0x9e), 100, nil},
	{"i64.trunc_f64_s", []w.ValType{w.I64, w.F64}, nil, sum(i64Add, w.LocalGet(b), op(0xb0)), 100, nil},
	{"f64.convert_i64_u", []w.ValType{w.F64, w.I64}, nil, sum(f64Add, w.LocalGet(b), op(0xba)), 100, nil},
	{"f64x2.sqrt", v, nil, cat(w.LocalGet(a), w.Vector(0xef), w.LocalSet(a)), 100, nil},
	{"f64x2.div", v, nil, cat(w.LocalGet(a), w.LocalGet(b), w.Vector(0xf3), w.LocalSet(a)), 100, nil},
	{"i64x2.mul", v, nil, cat(w.LocalGet(a), w.LocalGet(b), w.Vector(0xd5), w.LocalSet(a)), 100, nil},
	{"i8x16.shl", v, nil, cat(w.LocalGet(a), w.I32Const(3), w.Vector(0x6b), w.LocalSet(a)), 100, nil},
	{"i8x16.popcnt", v, nil, cat(w.LocalGet(a), w.Vector(0x62), w.LocalSet(a)), 100, nil},
	{"i32x4.trunc_sat_f64x2_u_zero", v, nil, cat(w.LocalGet(a), w.Vector(0xfd), w.LocalSet(a)), 100, nil},
	{"f64x2.pmin", v, nil, cat(w.LocalGet(a), w.LocalGet(b), w.Vector(0xf6), w.LocalSet(a)), 100, nil},
	{"f32x4.nearest", v, nil, cat(w.LocalGet(a), w.Vector(0x6a), w.LocalSet(a)), 100, nil},
	{"load, cached", i32s, nil, cat(w.LocalGet(a), w.I32Load(64), w.LocalSet(a)), 100, nil},
	{"load, missing the caches", i32s, nil, cat(
		w.LocalGet(a), w.I32Const(1664525), w.I32Mul(), w.I32Const(1013904223), w.I32Add(), w.LocalTee(a),
		w.I32Const(63*mib-1), w.I32And(), w.I32Load(0), w.LocalGet(b), w.I32Add(), w.LocalSet(b)), 10, nil},
	{"load, each address from the last", i32s, nil, cat(
		w.LocalGet(a), w.LocalGet(a), w.I32Load(0), w.I32Add(), w.I32Const(1664525), w.I32Mul(), w.I32Const(1013904223), w.I32Add(),
		w.I32Const(63*mib-1), w.I32And(), w.LocalSet(a)), 10, nil},
	{"store", i32s, nil, cat(w.LocalGet(a), w.LocalGet(b), w.I32Store(64)), 100, nil},
	{"global.get and set", nil, nil, cat(w.GlobalGet(0), w.GlobalSet(0)), 100, nil},
	{"br_table", i32s, nil, cat(op(0x02), op(0x40), w.LocalGet(a), w.BrTable(0, 0, 0, 0), w.End()), 100, nil},
	{"call", nil, nil, w.Call(1), 100, nil},
	{"call, 400 locals", nil, nil, w.Call(2), 100, nil},
	{"call, 8 parameters", nil, nil, cat(bytes.Repeat(w.I64Const(1), 8), w.Call(3)), 100, nil},
	{"call_indirect", nil, nil, cat(w.I32Const(0), w.CallIndirect(0, 0)), 100, nil},
	{"call of the host", nil, nil, w.Call(0), 10, nil},
	{"memory.size", nil, nil, cat(w.MemorySize(), w.Drop()), 100, nil},
	{"memory.grow of 0", nil, nil, cat(w.I32Const(0), w.MemoryGrow(), w.Drop()), 10, nil},
	{"memory.grow that fails", nil, nil, cat(w.I32Const(-1), w.MemoryGrow(), w.Drop()), 10, nil},
	{"table.grow of 0", nil, nil, cat(w.RefNull(w.FuncRef), w.I32Const(0), w.TableGrow(0), w.Drop()), 10, nil},
	{"table.size", nil, nil, cat([]byte{0xfc, 16, 0}, w.Drop()), 100, nil},
	{"table.get", nil, nil, cat(w.I32Const(0), []byte{0x25, 0}, w.Drop()), 100, nil},
	{"table.set", nil, nil, cat(w.I32Const(1), w.RefNull(w.FuncRef), []byte{0x26, 0}), 100, nil},
	{"ref.func", nil, nil, cat(w.RefFunc(1), w.Drop()), 100, nil},
	{"memory.fill, 1 B", nil, nil, bulk(w.MemoryFill(), 0, 1, 1), 10, nil},
	{"memory.fill, 63 B", nil, nil, bulk(w.MemoryFill(), 0, 1, 63), 10, nil},
	{"memory.fill, 4 KiB", nil, nil, bulk(w.MemoryFill(), 0, 1, 4096), 10, nil},
	{"memory.fill, 32 MiB", nil, nil, bulk(w.MemoryFill(), 0, 1, 32*mib), 1, nil},
	{"memory.copy, 1 B", nil, nil, bulk(w.MemoryCopy(), 0, 5, 1), 10, nil},
	{"memory.copy, 32 MiB", nil, nil, bulk(w.MemoryCopy(), 0, 32*mib, 30*mib), 1, nil},
	{"memory.copy, overlapping", nil, nil, bulk(w.MemoryCopy(), 1, 0, 32*mib), 1, nil},
	{"table.fill, 1000", nil, nil, cat(w.I32Const(0), w.RefNull(w.FuncRef), w.I32Const(1000), []byte{0xfc, 17, 0}), 10, nil},
	{"table.copy, 1", nil, nil, bulk(w.TableCopy(0), 0, 5, 1), 10, nil},
	{"table.copy, 100000", nil, nil, bulk(w.TableCopy(0), 0, 5, 90_000), 1, nil},
	{"memory.init, 1 B", nil, nil, bulk([]byte{0xfc, 8, 0, 0}, 0, 0, 1), 10, nil},
	{"data.drop", nil, nil, []byte{0xfc, 9, 0}, 100, nil},
}

func (p costProgram) module() []byte {
	m := w.New()
	m.Memory(64*mib>>16, 64*mib>>16)
	m.Table(100_000, 200_000)
	m.Global(w.I64, true, w.I64Const(0))
	host := m.ImportFunc("env", "host", nil, nil)
	leaf := m.Func("leaf", nil, nil, nil)
	many := make([]w.ValType, 400)
	for i := range many {
		many[i] = w.I64
	}
	m.Func("", nil, nil, many, w.LocalGet(399), w.Drop())
	m.Func("", many[:8], nil, nil)
	m.Elem(0, leaf, host)
	var body []byte
	for range p.times {
		body = append(body, p.body...)
	}
	m.Func("run", []w.ValType{w.I32}, nil, p.locals, p.before,
		w.Loop(body, w.LocalGet(0), w.I32Const(1), w.I32Sub(), w.LocalTee(0), w.BrIf(0)))
	if bytes.Contains(p.body, []byte{0xfc, 8}) || bytes.Contains(p.body, []byte{0xfc, 9}) {
		m.PassiveData([]byte{1})
	}
	return m.Bytes()
}

func BenchmarkCost(bench *testing.B) {
	for _, p := range costPrograms {
		bench.Run(p.name, func(bench *testing.B) {
			ctx := context.Background()
			rt := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigCompiler())
			defer rt.Close(ctx)
			if err := meter.Instantiate(ctx, rt); err != nil {
				bench.Fatal(err)
			}
			_, err := rt.NewHostModuleBuilder("env").NewFunctionBuilder().
				WithGoModuleFunction(api.GoModuleFunc(func(context.Context, api.Module, []uint64) {}), nil, nil).
				Export("host").Instantiate(ctx)
			if err != nil {
				bench.Fatal(err)
			}
			m, err := wasm.Decode(p.module())
			if err != nil {
				bench.Fatal(err)
			}
			code, err := fuel.Rewrite(m, fuel.Options{MaxDepth: 1 << 20})
			if err != nil {
				bench.Fatal(err)
			}
			mod, err := rt.Instantiate(ctx, code)
			if err != nil {
				bench.Fatal(err)
			}
			account := meter.New(ctx, math.MaxInt64, 0)
			if err := account.Attach(mod); err != nil {
				bench.Fatal(err)
			}
			run := mod.ExportedFunction("run")
			ctx = meter.With(ctx, account)
			if _, err := run.Call(ctx, 1); err != nil { // touches the memory
				bench.Fatal(err)
			}
			before := account.Used()
			bench.ResetTimer()
			if _, err := run.Call(ctx, uint64(min(bench.N, math.MaxInt32))); err != nil {
				bench.Fatal(err)
			}
			bench.ReportMetric(float64(bench.Elapsed().Nanoseconds())/float64(account.Used()-before), "ns/unit")
			bench.ReportMetric(0, "ns/op")
		})
	}
}
