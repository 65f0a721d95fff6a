package oracle

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/stockade-dev/stockade/host/wasm"
)

// Generate returns a valid module with an export run, for any bytes. The same bytes give
// the same module.
func Generate(data []byte) []byte { return Config{}.Generate(data) }

// Config enables features beyond WebAssembly 2.0.
type Config struct {
	TailCalls bool
}

// Generate is [Generate] with these features.
func (c Config) Generate(data []byte) []byte {
	g := &generator{Config: c, src: &source{data}}
	g.plan()
	g.bodies()
	return g.assemble()
}

type valType = wasm.ValType

const (
	i32t = wasm.I32
	i64t = wasm.I64
	f32t = wasm.F32
	f64t = wasm.F64
	v128 = wasm.V128
	fref = wasm.FuncRef
	eref = wasm.ExternRef
)

// generator generates one module.
type generator struct {
	Config
	src *source

	pad        int  // percentage of numbers in a longer form than needed
	risk       int  // percentage of operands that may trap and are left as they are
	unguarded  bool // recursion and loops without a guard are possible
	vectors    bool
	emptyFuncs int // number of functions that do nothing, for indices of more than one byte

	types    []wasm.FuncType
	imported int
	funcs    []uint32 // type indices, imported functions first
	code     [][]byte
	run      int
	start    int // index of the start function; -1: none
	memory   *wasm.Limits
	tables   []wasm.Table
	initial  [][]int // the functions in each table after instantiation; -1: null
	globals  []genGlobal
	budget   int // index of the global that guards count down; -1: none
	elems    []genElem
	datas    []genData

	referenced map[uint32]bool // functions that a ref.func in a body names
	countData  bool            // a body names a data segment
}

type genGlobal struct {
	typ     valType
	mutable bool
	init    []byte // without the end instruction
}

type genElem struct {
	flags  uint32 // as in the binary format
	table  uint32
	offset uint32
	typ    valType
	funcs  []int // function indices; -1: null
}

type genData struct {
	flags  uint32
	offset uint32
	bytes  []byte
}

// plan decides on everything but the function bodies.
func (g *generator) plan() {
	s := g.src
	g.referenced = make(map[uint32]bool)
	g.pad = pick(s, 0, 0, 0, 3, 20)
	g.risk = pick(s, 0, 0, 0, 1, 2, 5, 10, 25)
	g.unguarded = s.chance(20)
	g.vectors = s.chance(40)
	g.start = -1
	g.planFuncs()
	if !s.chance(10) {
		g.memory = &wasm.Limits{Min: uint64(pick(s, 1, 1, 1, 2, 3, 0)), HasMax: !s.chance(25)}
		if g.memory.HasMax {
			g.memory.Max = g.memory.Min + uint64(pick(s, 2, 0, 1, 3))
		}
	}
	for range pick(s, 1, 1, 1, 2, 2, 3, 0) {
		t := wasm.Table{Elem: pick(s, fref, fref, fref, fref, eref)}
		t.Limits = wasm.Limits{Min: uint64(pick(s, 8, 4, 16, 1, 30, 0)), HasMax: !s.chance(30)}
		if t.Limits.HasMax {
			t.Limits.Max = t.Limits.Min + uint64(pick(s, 5, 0, 20))
		}
		g.tables = append(g.tables, t)
		g.initial = append(g.initial, slices.Repeat([]int{-1}, int(t.Limits.Min)))
	}
	g.planGlobals()
	g.planSegments()
}

// planGlobals generates the globals and the budget. Some modules have none: without a
// budget, almost no code may run in circles.
func (g *generator) planGlobals() {
	s := g.src
	g.budget = -1
	if s.chance(8) {
		return
	}
	if s.chance(3) {
		for range 120 + s.n(10) {
			g.globals = append(g.globals, genGlobal{i32t, true, []byte{opI32Const, 1}})
		}
	}
	for range s.n(7) {
		t := g.anyType()
		g.globals = append(g.globals, genGlobal{t, s.chance(70), g.constant(t)})
	}
	g.budget = len(g.globals)
	w := &writer{src: s, pad: g.pad}
	w.op(opI32Const)
	w.signed(int64(pick(s, 20, 5, 50, 100, 300)), 32)
	g.globals = append(g.globals, genGlobal{i32t, true, w.out})
}

func (g *generator) planFuncs() {
	s := g.src
	if s.chance(40) {
		for range pick(s, 1, 1, 1, 2) {
			g.funcs = append(g.funcs, g.typeIndex([]valType{i32t}, []valType{i32t}))
			g.imported++
		}
	}
	for range s.n(3) { // types that may have no function
		g.types = append(g.types, wasm.FuncType{Params: g.anyTypes(3), Results: g.anyTypes(2)})
	}
	if s.chance(5) { // as the type of a block, 64 takes two bytes
		for range 58 + s.n(8) {
			g.types = append(g.types, wasm.FuncType{Results: []valType{i64t}})
		}
	}
	if s.chance(4) {
		g.emptyFuncs = 118 + s.n(12)
		g.funcs = append(g.funcs, slices.Repeat([]uint32{g.typeIndex(nil, nil)}, g.emptyFuncs)...)
	}
	n := 1 + pick(s, 0, 1, 2, 2, 3, 3, 4, 5, 6)
	first := len(g.funcs)
	g.run = first + s.n(n)*s.n(2) // the first in half of all cases
	for i := range n {
		if first+i != g.run {
			g.funcs = append(g.funcs, g.typeIndex(g.anyTypes(4), g.anyTypes(3)))
			continue
		}
		var results []valType
		for range pick(s, 1, 2, 3, 4, 0) {
			results = append(results, pick(s, i32t, i64t, f32t, f64t))
		}
		if g.vectors && s.chance(15) {
			results = append(results, v128)
		}
		g.funcs = append(g.funcs, g.typeIndex(nil, results))
	}
	if !s.chance(15) {
		return
	}
	fits := slices.IndexFunc(g.funcs, func(t uint32) bool { return len(g.types[t].Params)+len(g.types[t].Results) == 0 })
	if fits >= 0 && s.chance(40) { // it can be run
		g.start = fits
		return
	}
	g.start = len(g.funcs)
	g.funcs = append(g.funcs, g.typeIndex(nil, nil))
}

func (g *generator) planSegments() {
	s := g.src
	for i, t := range g.tables {
		if t.Elem == fref && t.Limits.Min > 0 && !s.chance(10) {
			n := min(1+s.n(12), int(t.Limits.Min))
			e := genElem{flags: uint32(pick(s, 2, 6)), table: uint32(i), offset: uint32(s.n(int(t.Limits.Min) - n + 1)), typ: fref}
			if i == 0 && s.chance(60) {
				e.flags &^= 2 // table 0 need not be named
			}
			e.funcs = g.elements(n, e.flags)
			copy(g.initial[i][e.offset:], e.funcs)
			g.elems = append(g.elems, e)
		}
	}
	for range pick(s, 1, 0, 2) { // passive and declarative segments
		e := genElem{flags: uint32(pick(s, 1, 5, 5, 3, 7)), typ: fref}
		e.funcs = g.elements(s.n(6), e.flags)
		if e.flags&4 != 0 && s.chance(30) {
			e.typ = eref
			for i := range e.funcs {
				e.funcs[i] = -1
			}
		}
		g.elems = append(g.elems, e)
	}
	for range pick(s, 1, 0, 2, 3) {
		d := genData{flags: 1}
		for range pick(s, 4, 0, 1, 20, 60) {
			d.bytes = append(d.bytes, s.byte())
		}
		if g.memory != nil && g.memory.Min > 0 && s.chance(50) {
			d.flags = uint32(pick(s, 0, 2))
			d.offset = uint32(pick(s, 0, 1000, 30000, wasm.PageBytes-len(d.bytes)))
			if s.chance(g.risk) {
				d.offset = uint32(g.memory.Min)*wasm.PageBytes - uint32(len(d.bytes)) + 1
			}
		}
		g.datas = append(g.datas, d)
	}
}

// elements chooses the functions of an element segment. Only a segment of expressions can
// hold null.
func (g *generator) elements(n int, flags uint32) (out []int) {
	for range n {
		if flags&4 != 0 && g.src.chance(20) {
			out = append(out, -1)
		} else {
			out = append(out, g.src.n(len(g.funcs)))
		}
	}
	return out
}

func (g *generator) anyType() valType {
	t := pick(g.src, i32t, i32t, i32t, i64t, i64t, f32t, f64t, v128, fref, eref, i32t, i64t, f64t)
	if t == v128 && !g.vectors {
		return i64t
	}
	return t
}

// anyTypes chooses up to most types.
func (g *generator) anyTypes(most int) (out []valType) {
	for range g.src.n(most + 1) {
		out = append(out, g.anyType())
	}
	return out
}

// typeIndex returns the index of a type. It adds the type if it is missing, and sometimes
// again.
func (g *generator) typeIndex(params, results []valType) uint32 {
	i := slices.IndexFunc(g.types, func(t wasm.FuncType) bool {
		return slices.Equal(t.Params, params) && slices.Equal(t.Results, results)
	})
	if i < 0 || g.src.chance(5) {
		i = len(g.types)
		g.types = append(g.types, wasm.FuncType{Params: params, Results: results})
	}
	return uint32(i)
}

func (g *generator) typeOf(f int) wasm.FuncType { return g.types[g.funcs[f]] }

// constant returns an instruction that pushes a constant of a type.
func (g *generator) constant(t valType) []byte {
	s := g.src
	w := &writer{src: s, pad: g.pad}
	switch t {
	case i32t:
		w.op(opI32Const)
		w.signed(int64(int32(g.integer(4))), 32)
	case i64t:
		w.op(opI64Const)
		w.signed(int64(g.integer(8)), 64)
	case f32t:
		w.op(opF32Const)
		v := math.Float32bits(float32(g.real()))
		if s.chance(5) {
			v = uint32(s.uint64(4))
		}
		w.out = binary.LittleEndian.AppendUint32(w.out, v)
	case f64t:
		w.op(opF64Const)
		v := math.Float64bits(g.real())
		if s.chance(5) {
			v = s.uint64(8)
		}
		w.out = binary.LittleEndian.AppendUint64(w.out, v)
	case v128:
		w.op(opV128Const)
		w.out = binary.LittleEndian.AppendUint64(w.out, g.integer(8))
		w.out = binary.LittleEndian.AppendUint64(w.out, g.integer(8))
	case fref, eref:
		w.op(opRefNull)
		w.byte(byte(t))
	}
	return w.out
}

// integer chooses an integer of size bytes: often a small or an extreme one.
func (g *generator) integer(size int) uint64 {
	s := g.src
	switch s.n(8) {
	case 0, 1, 2:
		return uint64(s.n(10))
	case 3:
		return uint64(int64(int8(s.byte())))
	case 4:
		return ^uint64(0) << (s.byte() % 64)
	case 5:
		return 1<<(s.byte()%64) - uint64(s.n(2))
	case 6:
		return uint64(s.n(4)) * wasm.PageBytes
	}
	return s.uint64(size)
}

func (g *generator) real() float64 {
	s := g.src
	switch s.n(6) {
	case 0, 1:
		return float64(int8(s.byte()))
	case 2:
		return float64(int8(s.byte())) / 4
	case 3:
		return pick(s, 0, math.Copysign(0, -1), math.Inf(1), math.Inf(-1), math.NaN(), math.MaxFloat64,
			math.SmallestNonzeroFloat64, math.MaxFloat32, math.SmallestNonzeroFloat32)
	case 4: // near the limits of integers
		v := math.Ldexp(1, pick(s, 31, 32, 63, 64)) + float64(s.n(3)-1)
		if s.chance(50) {
			v = -v
		}
		return v
	}
	return math.Ldexp(float64(s.byte()), int(int8(s.byte())))
}

// assemble writes the module.
func (g *generator) assemble() []byte {
	s := g.src
	declared := make([]int, 0, len(g.referenced))
	for f := range g.referenced {
		declared = append(declared, int(f))
	}
	slices.Sort(declared)
	if len(declared) > 0 { // else ref.func would be invalid
		g.elems = append(g.elems, genElem{flags: 3, typ: fref, funcs: declared})
	}
	w := &writer{src: s, pad: g.pad}
	w.byte([]byte("\x00asm\x01\x00\x00\x00")...)
	g.custom(w)
	w.section(wasm.SectionType, len(g.types), func(w *writer, i int) {
		w.byte(0x60)
		w.valTypes(g.types[i].Params)
		w.valTypes(g.types[i].Results)
	})
	w.section(wasm.SectionImport, g.imported, func(w *writer, i int) {
		w.name(HostModule)
		w.name(HostName)
		w.byte(byte(wasm.KindFunc))
		w.u32(g.funcs[i])
	})
	g.custom(w)
	w.section(wasm.SectionFunction, len(g.funcs)-g.imported, func(w *writer, i int) { w.u32(g.funcs[g.imported+i]) })
	w.section(wasm.SectionTable, len(g.tables), func(w *writer, i int) {
		w.byte(byte(g.tables[i].Elem))
		w.limits(g.tables[i].Limits)
	})
	if g.memory != nil {
		w.section(wasm.SectionMemory, 1, func(w *writer, _ int) { w.limits(*g.memory) })
	}
	w.section(wasm.SectionGlobal, len(g.globals), func(w *writer, i int) {
		w.byte(byte(g.globals[i].typ), byte(bit(g.globals[i].mutable)))
		w.byte(g.globals[i].init...)
		w.op(opEnd)
	})
	g.exports(w)
	if g.start >= 0 {
		w.byte(wasm.SectionStart)
		w.sized(func(w *writer) { w.u32(uint32(g.start)) })
	}
	w.section(wasm.SectionElement, len(g.elems), func(w *writer, i int) { g.elems[i].write(w) })
	if g.countData || s.chance(20) {
		w.byte(wasm.SectionDataCount)
		w.sized(func(w *writer) { w.u32(uint32(len(g.datas))) })
	}
	w.section(wasm.SectionCode, len(g.code), func(w *writer, i int) {
		w.sized(func(w *writer) { w.byte(g.code[i]...) })
	})
	w.section(wasm.SectionData, len(g.datas), func(w *writer, i int) {
		d := g.datas[i]
		w.u32(d.flags)
		if d.flags == 2 {
			w.u32(0) // the memory
		}
		if d.flags != 1 {
			w.offset(d.offset)
		}
		w.u32(uint32(len(d.bytes)))
		w.byte(d.bytes...)
	})
	g.custom(w)
	return w.out
}

func (g *generator) custom(w *writer) {
	if !g.src.chance(10) {
		return
	}
	w.byte(wasm.SectionCustom)
	w.sized(func(w *writer) {
		w.name("x")
		for range 1 + g.src.n(5) { // the engine fails at an empty one
			w.byte(g.src.byte())
		}
	})
}

func (g *generator) exports(w *writer) {
	type export struct {
		name  string
		kind  wasm.Kind
		index uint32
	}
	s := g.src
	list := []export{{RunName, wasm.KindFunc, uint32(g.run)}}
	if g.memory != nil && !s.chance(25) {
		list = append(list, export{"memory", wasm.KindMemory, 0})
	}
	for i := range g.globals {
		if s.chance(40) {
			list = append(list, export{fmt.Sprintf("global%d", i), wasm.KindGlobal, uint32(i)})
		}
	}
	for i := range g.tables {
		if s.chance(30) {
			list = append(list, export{fmt.Sprintf("table%d", i), wasm.KindTable, uint32(i)})
		}
	}
	for i := range g.funcs { // including imported ones and run
		if s.chance(15) {
			list = append(list, export{fmt.Sprintf("func%d", i), wasm.KindFunc, uint32(i)})
		}
	}
	w.section(wasm.SectionExport, len(list), func(w *writer, i int) {
		w.name(list[i].name)
		w.byte(byte(list[i].kind))
		w.u32(list[i].index)
	})
}

func (w *writer) limits(l wasm.Limits) {
	w.byte(byte(bit(l.HasMax)))
	w.u32(uint32(l.Min))
	if l.HasMax {
		w.u32(uint32(l.Max))
	}
}

// offset writes the offset of an active segment.
func (w *writer) offset(v uint32) {
	w.op(opI32Const)
	w.signed(int64(int32(v)), 32)
	w.op(opEnd)
}

func (e *genElem) write(w *writer) {
	w.u32(e.flags)
	if e.flags&1 == 0 { // active
		if e.flags&2 != 0 {
			w.u32(e.table)
		}
		w.offset(e.offset)
	}
	exprs := e.flags&4 != 0
	switch {
	case e.flags&3 == 0: // only a segment for table 0 has no kind or type
	case exprs:
		w.byte(byte(e.typ))
	default:
		w.byte(0) // functions
	}
	w.u32(uint32(len(e.funcs)))
	for _, f := range e.funcs {
		switch {
		case !exprs:
			w.u32(uint32(f))
			continue
		case f < 0:
			w.op(opRefNull)
			w.byte(byte(e.typ))
		default:
			w.op(opRefFunc)
			w.u32(uint32(f))
		}
		w.op(opEnd)
	}
}
