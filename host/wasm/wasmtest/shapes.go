package wasmtest

import (
	"slices"
	"strconv"

	"github.com/stockade-dev/stockade/host/wasm"
)

// rows returns the shapes and their sizes.
func rows() []row {
	return []row{
		// Expensive in one function or in one item. Refused sizes are just over a limit
		// that real programs stay far below.
		{"nested loops", inFuncs(nestedLoops), []size{{50_000, 0, 1, Killed}, {10_000, 0, 1, Killed}, {65, 0, 1, Refused}}},
		{"nested loops that repeat", inFuncs(nestedRepeats), []size{{10_000, 0, 1, Killed}, {65, 0, 1, Refused}}},
		{"nested loops x locals", inFuncs(nestedLoopsLocals), []size{{1000, 1000, 1, Killed}, {2000, 2000, 1, Killed}, {1500, 3000, 1, Killed}, {65, 10, 1, Refused}}},
		{"nested loops x parameters", inFuncs(nestedLoopsParams), []size{{1000, 1000, 1, Killed}, {1, 81, 1, Refused}}},
		{"nested blocks", inFuncs(nestedBlocks), []size{{100_000, 0, 1, Killed}, {300_000, 0, 1, Killed}, {4001, 0, 1, Refused}}},
		{"nested ifs", inFuncs(nestedIfs), []size{{10_000, 0, 1, Killed}, {50_000, 0, 1, Killed}, {4001, 0, 1, Refused}}},
		{"br_ifs", inFuncs(brIfs), []size{{10_000, 0, 1, Killed}, {50_000, 0, 1, Killed}, {8193, 0, 1, Refused}}},
		{"ifs that trap", inFuncs(ifTraps), []size{{10_000, 0, 1, Killed}, {30_000, 0, 1, Killed}, {8193, 0, 1, Refused}}},
		{"ifs x locals in a loop", inFuncs(ifsLocals), []size{{4000, 4000, 1, Killed}, {2000, 2000, 10, Killed}, {1420, 1420, 1, Refused}, {1000, 1000, 1, Bounded}}},
		{"br_table", inFuncs(brTable), []size{{65_536, 0, 1, Killed}, {1_000_000, 0, 1, Killed}, {16_385, 0, 1, Refused}}},
		{"br_tables x labels", inFuncs(brTables), []size{{1100, 1000, 1, Killed}, {300, 300, 1, Bounded}}},
		{"mutable globals x calls", globalsCalls, []size{{4000, 4000, 1, Killed}, {1000, 1, 1, Refused}, {127, 40_000, 1, Refused}}},
		{"loads", inFuncs(loads), []size{{600_000, 0, 1, Killed}, {150_000, 0, 1, Refused}}},
		{"divisions", inFuncs(divisions), []size{{300_000, 0, 1, Killed}, {150_000, 0, 1, Refused}}},
		{"empty functions", inFuncs(emptyFuncs), []size{{1_000_000, 0, 1, Killed}, {300_000, 0, 1, Refused}, {50_001, 0, 1, Refused}}},
		{"functions x locals", inFuncs(funcsLocals), []size{{1000, 50_000, 1, Killed}, {1, 16_385, 1, Refused}, {501, 2000, 1, Refused}}},
		{"groups x locals", inFuncs(localGroups), []size{{1, 1 << 26, 1, Killed}, {64, 1 << 20, 1, Killed}, {1, 1<<32 - 1, 1, Killed}}},
		{"operand stack x calls", inFuncs(stackCalls), []size{{100_000, 1, 1, Bounded}, {5000, 5000, 1, Bounded}}},
		{"tables x elements", tables, []size{{1, 1 << 27, 1, Refused}, {10, 10_000_000, 1, Refused}, {1000, 1000, 1, Refused}, {17, 1, 1, Refused}, {1, 1_048_577, 1, Refused}}},
		{"bytes of data", bigData, []size{{100 << 20, 0, 1, Refused}}},
		{"bytes of a custom section", bigCustom, []size{{100 << 20, 0, 1, Refused}, {2 << 20, 0, 1, Bounded}}},
		{"data segments far apart", farSegments, []size{{1_000_000, 0, 1, Refused}, {12_000, 0, 1, Bounded}}},
		{"passive data segments", passiveSegments, []size{{1_000_000, 0, 1, Refused}, {12_000, 0, 1, Bounded}}},
		{"element segments", elemSegments, []size{{1_000_000, 0, 1, Refused}, {12_000, 0, 1, Refused}}},
		{"elements", elements, []size{{12_000_000, 0, 1, Malformed}, {1_000_000, 0, 12, Malformed}, {80_000, 0, 12, Bounded}}},
		{"element expressions", elemExprs, []size{{4_000_000, 0, 1, Malformed}, {1_000_000, 0, 4, Malformed}, {250_000, 0, 4, Bounded}}},

		// Expensive only when two items that are harmless alone come together.
		{"br_table x locals", inFuncs(brTableLocals), []size{{4095, 1990, 1, Killed}}},
		{"addresses x blocks", inFuncs(addressesBlocks), []size{{4000, 40_000, 1, Killed}}},
		{"operand stack x blocks", inFuncs(stackBlocks), []size{{4000, 75_000, 1, Killed}}},
		{"blocks in a row x reads", inFuncs(chainReads), []size{{4000, 75_000, 6, Bounded}, {1000, 75_000, 60, Bounded}}},
		{"blocks in a row x merged locals", inFuncs(chainLocals), []size{{4000, 73, 1, Killed}}},
		{"rotating locals in a loop", inFuncs(rotation), []size{{3000, 0, 1, Killed}, {16_000, 0, 1, Killed}}},
		{"branches to one label", inFuncs(fanIn), []size{{16_384, 0, 20, Killed}}},
		{"types x functions", typesFuncs, []size{{60_000, 50_000, 1, Killed}}},
		{"types x parameters", wideTypes, []size{{16_000, 1000, 1, Killed}, {60_000, 32, 1, Bounded}}},
		{"globals x functions", globalsFuncs, []size{{300_000, 50_000, 1, Killed}}},
		{"exports x functions", exportsFuncs, []size{{65_000, 50_000, 1, Refused}}},
		{"imports x functions", importsFuncs, []size{{16_000, 50_000, 1, Killed}}},
		{"imports x calls", importsCalls, []size{{16_000, 50_000, 40, Killed}}},
		{"imports x references", importsRefs, []size{{16_000, 1_000_000, 1, Killed}}},
		{"arguments x calls", inFuncs(argsCalls), []size{{16, 80_000, 60, Killed}}},
		{"large function x small ones", largeFirst, []size{{4000, 49_000, 1, Bounded}}},
		{"large maps x small functions", largeMaps, []size{{3900, 49_000, 1, Bounded}}},
		{"spills x small functions", largeSpills, []size{{50_000, 49_000, 1, Bounded}}},

		// Just below the limits for one function, in many functions.
		{"nested loops x locals", inFuncs(nestedLoopsLocals), []size{{64, 125, 1000, Killed}, {32, 125, 250, Killed}, {32, 24, 90, Bounded}}},
		{"nested blocks", inFuncs(nestedBlocks), []size{{2000, 0, 25, Bounded}, {990, 0, 40, Bounded}}},
		{"br_ifs", inFuncs(brIfs), []size{{4090, 0, 60, Killed}, {990, 0, 40, Bounded}}},
		{"ifs that trap", inFuncs(ifTraps), []size{{495, 0, 40, Bounded}}},
		{"ifs x locals in a loop", inFuncs(ifsLocals), []size{{547, 547, 66, Killed}, {390, 390, 200, Killed}, {390, 180, 6, Bounded}}},
		{"br_table", inFuncs(brTable), []size{{4095, 0, 4000, Killed}, {330, 0, 4500, Bounded}, {16_380, 0, 1, Bounded}}},
		{"br_table x locals", inFuncs(brTableLocals), []size{{180, 390, 7, Bounded}}},
		{"mutable globals x calls", globalsCalls, []size{{256, 1950, 300, Killed}, {127, 3900, 10, Bounded}}},
		{"arguments x calls", inFuncs(argsCalls), []size{{16, 6000, 10, Bounded}}},
		{"addresses x blocks", inFuncs(addressesBlocks), []size{{990, 1000, 10, Bounded}}},
		{"operand stack x blocks", inFuncs(stackBlocks), []size{{500, 990, 40, Bounded}}},
		{"blocks in a row x reads", inFuncs(chainReads), []size{{990, 2000, 10, Bounded}}},
		{"blocks in a row x merged locals", inFuncs(chainLocals), []size{{990, 73, 40, Killed}, {400, 30, 24, Bounded}}},
		{"rotating locals in a loop", inFuncs(rotation), []size{{390, 0, 3, Bounded}}},
		{"branches to one label", inFuncs(fanIn), []size{{8192, 0, 7, Bounded}}},
		{"values of blocks", inFuncs(blockValues), []size{{300, 60, 40, Bounded}}},
		{"types x functions", typesFuncs, []size{{9000, 5000, 1, Bounded}}},
		{"globals x functions", globalsFuncs, []size{{990, 49_000, 1, Bounded}}},
		{"exports x functions", exportsFuncs, []size{{990, 49_000, 1, Bounded}}},
		{"imports x functions", importsFuncs, []size{{990, 49_000, 1, Bounded}}},
		{"imports x calls", importsCalls, []size{{990, 10_000, 10, Bounded}}},
		{"elements", elements, []size{{60_000, 0, 1, Bounded}}},
		{"large function x small ones", largeFirst, []size{{990, 49_000, 1, Bounded}}},
		{"spills x small functions", largeSpills, []size{{990, 49_000, 1, Bounded}}},

		// Harmless until they are called.
		{"table.grow in a loop", inCall(growTable), []size{{1 << 24, 0, 1, Bounded}}},
		{"memory.fill in a loop", inCall(fillMemory), []size{{256, 0, 1, Bounded}}},
		{"memory.copy in a loop", inCall(copyMemory), []size{{256, 0, 1, Bounded}}},

		// Much code from few bytes. Only the density is unusual.
		{"memory.copy", dense(func(b *Builder) straightCode { return repeatStep(i32s(3), MemoryCopy()) }), denseSizes(10)},
		{"memory.init", dense(func(b *Builder) straightCode { b.PassiveData(nil); return repeatStep(i32s(3), MemoryInit(0)) }), denseSizes(10)},
		{"memory.grow", dense(func(b *Builder) straightCode { return repeatStep(i32s(1), MemoryGrow(), Drop()) }), denseSizes(5)},
		{"table.copy", dense(func(b *Builder) straightCode { return repeatStep(i32s(3), TableCopy(b.Table(0, 1))) }), denseSizes(10)},
		{"table.grow", dense(func(b *Builder) straightCode {
			return repeatStep(RefNull(FuncRef), i32s(1), TableGrow(b.Table(0, 1)), Drop())
		}), denseSizes(8)},
		{"call_indirect", dense(func(b *Builder) straightCode {
			return repeatStep(i32s(1), CallIndirect(b.Type(nil, nil), b.Table(0, 1)))
		}), denseSizes(5)},
		{"ref.func", dense(func(b *Builder) straightCode { b.Table(1, 1); b.Elem(0, 0); return repeatStep(RefFunc(0), Drop()) }), denseSizes(3)},
		{"loads from constants", dense(func(b *Builder) straightCode { return repeatStep(i32s(1), I32Load(0), Drop()) }), denseSizes(6)},
		{"stores to constants", dense(func(b *Builder) straightCode { return repeatStep(i32s(2), I32Store(0)) }), denseSizes(7)},
		{"divisions by a local", dense(func(b *Builder) straightCode {
			return straightCode{LocalGet(0), join(LocalGet(0), I32DivU()), GlobalSet(0)}
		}), denseSizes(3)},
		{"shifts of vectors", dense(func(b *Builder) straightCode {
			return straightCode{vectorStart, join(LocalGet(0), Vector(vecShr)), vectorStore}
		}), denseSizes(4)},
		{"bit counts of vectors", dense(func(b *Builder) straightCode { return straightCode{vectorStart, Vector(vecPopcnt), vectorStore} }), denseSizes(2)},
		{"conversions of vectors", dense(func(b *Builder) straightCode {
			return straightCode{vectorStart, join(Vector(vecTrunc), Vector(vecConvert)), vectorStore}
		}), denseSizes(6)},
		{"products of vectors", dense(func(b *Builder) straightCode {
			return straightCode{vectorStart, join(LocalGet(1), Vector(vecMul64)), vectorStore}
		}), denseSizes(5)},
	}
}

// inFuncs makes a shape of functions that are not called.
func inFuncs(add func(b *Builder, n, m int)) shape {
	return func(n, m, times int) []byte {
		return toolWith(func(b *Builder) {
			for range times {
				add(b, n, m)
			}
		})
	}
}

// inCall makes a shape of a module whose call repeats a step for ever.
func inCall(step func(n int) (pages int, code []byte)) shape {
	return func(n, _, _ int) []byte {
		pages, code := step(n)
		return Tool(ToolOptions{
			MemoryMin: pages,
			Call:      join(Loop(code, Br(0)), I32Const(0)),
			Edit:      func(b *Builder) { b.Table(0, -1) },
		})
	}
}

func toolWith(edit func(b *Builder)) []byte { return Tool(ToolOptions{Edit: edit}) }

// Numbers of vector instructions.
const (
	vecPopcnt  = 98  // i8x16.popcnt
	vecShr     = 108 // i8x16.shr_s
	vecMul64   = 213 // i64x2.mul
	vecTrunc   = 249 // i32x4.trunc_sat_f32x4_u
	vecConvert = 251 // f32x4.convert_i32x4_u
)

// Code between these two computes a vector. It is stored, so that no compiler removes it.
var (
	vectorStart = join(I32Const(0), LocalGet(1))
	vectorStore = join(Vector(11), []byte{4, 0}) // v128.store
)

func i32s(n int) []byte { return repeat(n, I32Const(0)) }

// straightCode is code without branches: a start, a step to repeat, and an end.
type straightCode struct{ start, step, end []byte }

func repeatStep(step ...[]byte) straightCode { return straightCode{step: join(step...)} }

// dense makes a shape of functions of straight code, whose locals are an i32 and a vector.
func dense(of func(b *Builder) straightCode) shape {
	return func(n, _, times int) []byte {
		return toolWith(func(b *Builder) {
			c := of(b)
			typ := b.Type([]ValType{I32}, nil)
			for range times {
				b.FuncOf(typ, []Locals{{1, V128}}, c.start, repeat(n, c.step), c.end)
			}
		})
	}
}

// denseSizes returns the size of a module of 15 MB in functions of 250 kB, by the bytes of a step.
func denseSizes(bytes int) []size {
	return []size{{250_000 / bytes, 0, 60, Bounded}}
}

// nested returns n blocks or loops inside each other, with before ahead of each, inner in
// the innermost, and after at the end of each.
func nested(n int, op byte, before, inner, after []byte) []byte {
	return join(repeat(n, before, []byte{op, noValue}), inner, repeat(n, after, []byte{opEnd}))
}

// addFunc adds a function that takes an i32 and has m more as locals.
func addFunc(b *Builder, m int, body ...[]byte) {
	b.FuncOf(b.i32Type(), []Locals{{uint32(m), I32}}, body...)
}

func (b *Builder) i32Type() uint32 { return b.typeIndex([]ValType{I32}, nil) }

// sumStack adds up n values on the stack and uses the sum, so that no compiler removes them.
func sumStack(n int) []byte { return join(I32Const(0), repeat(n, I32Add()), GlobalSet(0)) }

func nestedLoops(b *Builder, n, _ int) { addFunc(b, 0, nested(n, opLoop, nil, nil, nil)) }

func nestedRepeats(b *Builder, n, _ int) {
	addFunc(b, 0, nested(n, opLoop, nil, nil, join(LocalGet(0), BrIf(0))))
}

// nestedLoopsLocals changes each local in the innermost loop, so that each loop has to
// merge two values of each local.
func nestedLoopsLocals(b *Builder, n, m int) {
	addFunc(b, m, nested(n, opLoop, nil, incrementLocals(m), join(LocalGet(0), BrIf(0))))
}

// incrementLocals adds 1 to each of m locals.
func incrementLocals(m int) []byte {
	var body []byte
	for i := range uint32(m) {
		body = append(body, join(LocalGet(i+1), I32Const(1), I32Add(), LocalSet(i+1))...)
	}
	return body
}

func ifsLocals(b *Builder, n, m int) {
	var body []byte
	for i := range uint32(n) {
		l := i%uint32(max(m, 1)) + 1
		body = append(body, join(LocalGet(0), If(LocalGet(l), I32Const(1), I32Add(), LocalSet(l)))...)
	}
	addFunc(b, m, Loop(body, LocalGet(0), BrIf(0)))
}

func nestedBlocks(b *Builder, n, _ int) { addFunc(b, 0, nested(n, opBlock, nil, nil, nil)) }
func nestedIfs(b *Builder, n, _ int)    { addFunc(b, 0, nested(n, opIf, LocalGet(0), nil, nil)) }

func brTable(b *Builder, n, _ int) {
	addFunc(b, 0, Block(LocalGet(0), BrTable(make([]uint32, n)...)))
}

// brTables branches from each of n blocks to up to m enclosing ones.
func brTables(b *Builder, n, m int) {
	body := repeat(n, []byte{opBlock, noValue})
	for i := range n {
		labels := make([]uint32, m)
		for j := range labels {
			labels[j] = uint32(j % (n - i))
		}
		body = append(body, join(LocalGet(0), BrTable(labels...), End())...)
	}
	addFunc(b, 0, body)
}

func brIfs(b *Builder, n, _ int)   { addFunc(b, 0, repeat(n, LocalGet(0), BrIf(0))) }
func ifTraps(b *Builder, n, _ int) { addFunc(b, 0, repeat(n, LocalGet(0), If(Unreachable()))) }

// globalsCalls has n mutable globals, which the engine loads after each of m calls.
func globalsCalls(n, m, times int) []byte {
	return toolWith(func(b *Builder) {
		for range n {
			b.Global(I32, true, I32Const(0))
		}
		callee := b.Func("", nil, nil, nil)
		for range times {
			addFunc(b, 0, repeat(m, Call(callee)))
		}
	})
}

func nestedLoopsParams(b *Builder, n, m int) {
	params := slices.Repeat([]ValType{I32}, m)
	loop := join([]byte{opLoop}, signed(int64(b.Type(params, params))))
	addFunc(b, 0, i32s(m), repeat(n, loop), repeat(n, LocalGet(0), BrIf(0), End()), repeat(m, Drop()))
}

func loads(b *Builder, n, _ int) {
	addFunc(b, 0, repeat(n, LocalGet(0), I32Load(0), LocalSet(0)))
}

func divisions(b *Builder, n, _ int) {
	addFunc(b, 1, repeat(n, LocalGet(0), LocalGet(1), I32DivU(), LocalSet(0)))
}

func emptyFuncs(b *Builder, n, _ int) {
	typ := b.Type(nil, nil)
	for range n {
		b.FuncOf(typ, nil)
	}
}

func funcsLocals(b *Builder, n, m int) {
	for range n {
		addFunc(b, m)
	}
}

// localGroups declares n groups of m locals in one function.
func localGroups(b *Builder, n, m int) {
	b.FuncOf(b.i32Type(), slices.Repeat([]Locals{{uint32(m), I32}}, n))
}

// stackCalls leaves n values on the stack during m calls.
func stackCalls(b *Builder, n, m int) {
	addFunc(b, 0, repeat(n, MemorySize()), repeat(m, Call(1), Drop()), sumStack(n))
}

func tables(n, m, _ int) []byte {
	return toolWith(func(b *Builder) {
		for range n {
			b.Table(m, -1)
		}
	})
}

func bigData(n, _, _ int) []byte {
	return toolWith(func(b *Builder) { b.Data(0, make([]byte, n)) })
}

func bigCustom(n, _, _ int) []byte {
	return toolWith(func(b *Builder) { b.Custom("large", make([]byte, n)) })
}

// farSegments spreads bytes over a memory of 64 MiB, so that joined segments would have 64 MiB.
func farSegments(n, _, _ int) []byte {
	const pages = 1024
	return Tool(ToolOptions{MemoryMin: pages, Edit: func(b *Builder) {
		for i := range uint32(n) {
			b.Data(i*2654435761%(pages*wasm.PageBytes), []byte{1})
		}
	}})
}

func passiveSegments(n, _, _ int) []byte {
	return toolWith(func(b *Builder) {
		for range n {
			b.PassiveData([]byte{1})
		}
	})
}

func elemSegments(n, _, _ int) []byte {
	return toolWith(func(b *Builder) {
		b.Table(1, 1)
		for range n {
			b.Elem(0, 0)
		}
	})
}

// brTableLocals merges m locals that have one value on each of the n ways from a br_table,
// and another on the way around the br_table.
func brTableLocals(b *Builder, n, m int) {
	addFunc(b, m, Block(LocalGet(0), BrIf(0), incrementLocals(m), LocalGet(0), BrTable(make([]uint32, n)...)), incrementLocals(m))
}

// addressesBlocks loads from m addresses, which the engine remembers in each of n blocks.
func addressesBlocks(b *Builder, n, m int) {
	addFunc(b, 0, repeat(m, I32Const(0), I32Load(0), Drop()), repeat(n, LocalGet(0), BrIf(0)))
}

// stackBlocks keeps m values on the stack in n blocks.
func stackBlocks(b *Builder, n, m int) {
	addFunc(b, 0, repeat(m, MemorySize()), repeat(n, LocalGet(0), BrIf(0)), sumStack(m))
}

// chainReads has n blocks in a row and then reads a local m times that was set before the
// first block; the engine looks it up block by block.
func chainReads(b *Builder, n, m int) {
	addFunc(b, 0, repeat(n, LocalGet(0), BrIf(0)), repeat(m, LocalGet(0), Drop()))
}

// chainLocals has n blocks in a row that branch to one place, where m locals have two values.
func chainLocals(b *Builder, n, m int) {
	addFunc(b, m, Block(incrementLocals(m), repeat(n, LocalGet(0), BrIf(0)), incrementLocals(m)), incrementLocals(m))
}

// typesFuncs has n types, all of which the engine visits for each of m functions.
func typesFuncs(n, m, _ int) []byte {
	return toolWith(func(b *Builder) {
		for range n {
			b.Type(nil, nil)
		}
		emptyFuncs(b, m, 0)
	})
}

// wideTypes has n types of m parameters, of the type with the longest name.
func wideTypes(n, m, _ int) []byte {
	return toolWith(func(b *Builder) {
		params := slices.Repeat([]ValType{ExternRef}, m)
		for range n {
			b.Type(params, nil)
		}
	})
}

func globalsFuncs(n, m, _ int) []byte {
	return toolWith(func(b *Builder) {
		for range n {
			b.Global(I32, false, I32Const(0))
		}
		emptyFuncs(b, m, 0)
	})
}

// yieldImports imports one function n times.
func yieldImports(n int) []Import {
	return slices.Repeat([]Import{{Module: "wasi_snapshot_preview1", Name: "sched_yield", Results: []ValType{I32}}}, n)
}

func importsFuncs(n, m, _ int) []byte {
	return Tool(ToolOptions{Imports: yieldImports(n), Edit: func(b *Builder) { emptyFuncs(b, m, 0) }})
}

// importsCalls calls the last of n imports m times; the engine searches from the first.
func importsCalls(n, m, times int) []byte {
	return Tool(ToolOptions{Imports: yieldImports(n), Edit: func(b *Builder) {
		for range times {
			addFunc(b, 0, repeat(m, Call(uint32(n-1)), Drop()))
		}
	}})
}

func importsRefs(n, m, _ int) []byte {
	return Tool(ToolOptions{Imports: yieldImports(n), Edit: func(b *Builder) {
		for range m {
			b.Global(FuncRef, false, RefFunc(uint32(n-1)))
		}
	}})
}

// exportsFuncs has n exports, which the engine compares with each of m functions when it
// describes one of them, as it does for a trap.
func exportsFuncs(n, m, _ int) []byte {
	return toolWith(func(b *Builder) {
		emptyFuncs(b, m, 0)
		for i := range n {
			b.ExportFunc(strconv.Itoa(i), uint32(i%m))
		}
	})
}

func elements(n, _, times int) []byte {
	return toolWith(func(b *Builder) {
		b.Table(n, n)
		for range times {
			b.Elem(0, make([]uint32, n)...)
		}
	})
}

func elemExprs(n, _, times int) []byte {
	return toolWith(func(b *Builder) {
		for range times {
			b.ElemExprs(n, RefNull(FuncRef))
		}
	})
}

// largeFirst has a function of n blocks, whose tables the engine keeps and clears for
// each of m functions after it.
func largeFirst(n, m, _ int) []byte {
	return toolWith(func(b *Builder) {
		brIfs(b, n, 0)
		for range m {
			brIfs(b, 1, 0)
		}
	})
}

// argsCalls passes n values to each of m calls and takes as many back.
func argsCalls(b *Builder, n, m int) {
	values := slices.Repeat([]ValType{I64}, n)
	typ := b.typeIndex(values, values)
	callee := b.FuncOf(typ, nil, Unreachable())
	addFunc(b, 0, repeat(n, I64Const(0)), repeat(m, Call(callee)), repeat(n, Drop()))
}

// blockValues has n blocks with m results each.
func blockValues(b *Builder, n, m int) {
	values := slices.Repeat([]ValType{I32}, m)
	block := join([]byte{opBlock}, signed(int64(b.typeIndex(nil, values))))
	addFunc(b, 0, repeat(n, block, repeat(m, MemorySize()), LocalGet(0), BrIf(0), End(), repeat(m, Drop())))
}

// rotation copies each of n locals to its neighbour, in a loop. The engine finds out one
// by one that all are equal.
func rotation(b *Builder, n, _ int) {
	var body []byte
	for i := range uint32(n) {
		body = append(body, join(LocalGet(i+2), LocalSet(i+1))...)
	}
	addFunc(b, n+1, Loop(body, LocalGet(0), BrIf(0)), incrementLocals(n))
}

// fanIn branches to one label from the n leaves of a tree of ifs.
func fanIn(b *Builder, n, _ int) {
	var tree func(n int, depth uint32) []byte
	tree = func(n int, depth uint32) []byte {
		if n < 2 {
			return join(LocalGet(0), BrIf(depth))
		}
		return join(LocalGet(0), If(tree(n/2, depth+1), Else(), tree(n-n/2, depth+1)))
	}
	addFunc(b, 0, Block(tree(n, 0)))
}

// largeMaps has a function that sets n locals in each of some blocks. The engine then has
// maps of that size, which it clears for each of m functions.
func largeMaps(n, m, _ int) []byte {
	const blocks = 10
	return toolWith(func(b *Builder) {
		var body []byte
		for i := range uint32(n) {
			body = append(body, join(LocalGet(0), LocalSet(i+1))...)
		}
		addFunc(b, n, repeat(blocks, body, LocalGet(0), BrIf(0)))
		for range m {
			addFunc(b, 0, repeat(blocks, LocalGet(0), LocalTee(0), BrIf(0)))
		}
	})
}

// largeSpills is largeMaps for the map of spilled values.
func largeSpills(n, m, _ int) []byte {
	return toolWith(func(b *Builder) {
		stackCalls(b, n, 1)
		for range m {
			stackCalls(b, 20, 1)
		}
	})
}

func growTable(n int) (int, []byte) {
	return 0, join(RefNull(FuncRef), I32Const(int32(n)), TableGrow(0), Drop())
}

// fillMemory and copyMemory return n pages, and code that writes them with one instruction.
func fillMemory(n int) (int, []byte) {
	return n, join(I32Const(0), I32Const(0), I32Const(int32(n*wasm.PageBytes)), MemoryFill())
}

func copyMemory(n int) (int, []byte) {
	return n, join(I32Const(1), I32Const(0), I32Const(int32(n*wasm.PageBytes-1)), MemoryCopy())
}
