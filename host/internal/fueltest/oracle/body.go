package oracle

import (
	"slices"

	"github.com/stockade-dev/stockade/host/wasm"
)

// Bounds that keep the size of a module in proportion to its bytes.
const (
	maxNesting    = 7 // of nested blocks
	maxValueDepth = 3 // of nested operands that are computed
)

// frame is an open block.
type frame struct {
	op              uint32 // opBlock, also for the function itself, opLoop or opIf
	params, results []valType
	height          int  // height of the stack below the operands of the block
	unreachable     bool // the code that follows is never executed, and its stack is polymorphic
}

// label returns the types of the operands that a branch to the block takes.
func (f *frame) label() []valType {
	if f.op == opLoop {
		return f.params
	}
	return f.results
}

// body generates the body of one function. It tracks the types on the stack, so that it
// can choose any instruction: missing operands are generated.
type body struct {
	*generator
	writer
	src        *source
	self       int
	typ        wasm.FuncType
	locals     []valType // parameters, then locals
	scratch    map[valType]uint32
	stack      []valType
	floor      int // operands below this height must not be used
	frames     []frame
	valueDepth int // number of nested calls of value
}

// bodies generates the function bodies. It begins with run, so that there are bytes left
// for it.
func (g *generator) bodies() {
	n := len(g.funcs) - g.imported
	g.code = make([][]byte, n)
	for i := range n {
		f := (g.run - g.imported + i) % n
		if f < g.emptyFuncs {
			g.code[f] = []byte{0, opEnd}
		} else {
			g.code[f] = g.body(g.imported + f)
		}
	}
}

func (g *generator) body(self int) []byte {
	s := g.src
	b := &body{generator: g, writer: writer{src: s, pad: g.pad}, src: s, self: self, typ: g.typeOf(self), scratch: make(map[valType]uint32)}
	b.locals = slices.Clone(b.typ.Params)
	for range s.n(6) {
		b.locals = append(b.locals, g.anyType())
	}
	if s.chance(3) {
		b.locals = append(b.locals, slices.Repeat([]valType{i64t}, 110+s.n(20))...)
	}
	b.frames = []frame{{op: opBlock, results: b.typ.Results}}
	b.statements(10 + s.n(60))
	b.closeBlock()
	b.op(opEnd)

	w := &writer{src: s, pad: g.pad}
	w.localTypes(b.locals[len(b.typ.Params):])
	return append(w.out, b.out...)
}

// localTypes declares locals in groups of one type, which need not be as large as
// possible and can be empty.
func (w *writer) localTypes(types []valType) {
	type group struct {
		n uint32
		t valType
	}
	var groups []group
	for _, t := range types {
		if t == loopCounterType {
			t = i32t
		}
		if w.src.chance(5) {
			groups = append(groups, group{0, f64t})
		}
		if n := len(groups); n > 0 && groups[n-1].t == t && !w.src.chance(20) {
			groups[n-1].n++
		} else {
			groups = append(groups, group{1, t})
		}
	}
	w.u32(uint32(len(groups)))
	for _, g := range groups {
		w.u32(g.n)
		w.byte(byte(g.t))
	}
}

func (b *body) top() *frame { return &b.frames[len(b.frames)-1] }

// available returns the operands that the next instruction can take.
func (b *body) available() []valType { return b.stack[max(b.floor, b.top().height):] }

func (b *body) push(types ...valType) { b.stack = append(b.stack, types...) }

// pop removes n operands; in dead code there can be fewer.
func (b *body) pop(n int) {
	b.stack = b.stack[:len(b.stack)-min(n, len(b.stack)-b.top().height)]
}

// markUnreachable must be called after an instruction that never continues.
func (b *body) markUnreachable() {
	f := b.top()
	b.stack = b.stack[:f.height]
	f.unreachable = true
}

// emit writes an instruction with indices. Its operands must be on the stack.
func (b *body) emit(op uint32, indices ...uint32) {
	b.op(op)
	for _, i := range indices {
		b.u32(i)
	}
}

// constI32 writes a constant that the next instruction consumes; it is not pushed.
func (b *body) constI32(v int32) {
	b.op(opI32Const)
	b.signed(int64(v), 32)
}

// pushConst generates a constant operand.
func (b *body) pushConst(v int) {
	b.constI32(int32(v))
	b.push(i32t)
}

// statements generates up to n statements; in dead code, mostly fewer.
func (b *body) statements(n int) {
	for ; n > 0 && !b.src.done(); n-- {
		if b.top().unreachable && b.src.chance(30) {
			return
		}
		b.statement()
	}
}

// statement generates an instruction of a random kind, with its operands.
func (b *body) statement() {
	switch n := b.src.n(128); {
	case n < 12:
		b.compute(pick(b.src, i32t, i64t, f32t, f64t))
	case n < 16:
		b.value(b.anyType())
	case n < 20:
		if len(b.available()) > 0 || b.top().unreachable {
			b.op(opDrop)
			b.pop(1)
		}
	case n < 32:
		b.setLocal()
	case n < 37:
		b.setGlobal()
	case n < 43:
		b.storeAny()
	case n < 48:
		b.value(pick(b.src, i32t, i64t, f32t, f64t)) // often a load
	case n < 54:
		b.bulkMemory()
	case n < 62:
		b.tableStatement()
	case n < 64:
		b.op(opNop)
	case n < 67:
		b.selectAny()
	case n < 76:
		b.structured(opBlock)
	case n < 85:
		b.structured(opLoop)
	case n < 94:
		b.structured(opIf)
	case n < 100:
		b.branchIf()
	case n < 107:
		b.diverge(n - 100)
	case n < 114:
		b.call()
	case n < 119:
		b.callIndirect()
	case n < 121:
		b.tailCall()
	default:
		b.vectorStatement()
	}
}

// consume generates operands of these types for the next instruction, and pops them from
// the stack.
func (b *body) consume(types ...valType) {
	b.pushOperands(types...)
	b.pop(len(types))
}

// diverge generates an instruction that never continues. It is rare in the outermost
// block, because the rest of the function would not be executed.
func (b *body) diverge(kind int) {
	if len(b.frames) == 1 && !b.src.chance(15) {
		return
	}
	switch {
	case kind < 2:
		b.branch()
	case kind < 5:
		b.branchTable()
	case kind < 6:
		b.emitReturn()
	case b.top().unreachable || b.src.chance(max(b.risk, 3)):
		b.op(opUnreachable)
		b.markUnreachable()
	}
}

// pushOperands puts operands of these types on the stack. It often uses operands that are
// there already. In dead code some can be left out.
func (b *body) pushOperands(types ...valType) {
	there := 0
	if b.src.chance(60) {
		have := b.available()
		bottomless := b.top().unreachable && b.floor <= b.top().height
		for n := len(types); n > 0 && there == 0; n-- {
			switch {
			case len(have) >= n:
				if slices.Equal(have[len(have)-n:], types[:n]) {
					there = n
				}
			case bottomless && slices.Equal(have, types[n-len(have):n]):
				there = n
			}
		}
	}
	for _, t := range types[there:] {
		b.value(t)
	}
}

// value generates an operand of a type without touching existing ones.
func (b *body) value(t valType) {
	height, floor := len(b.stack), b.floor
	b.floor = height
	b.valueDepth++
	b.produce(t)
	b.valueDepth--
	b.floor = floor
	b.stack = append(b.stack[:height], t)
}

// produce generates code that pushes a value of a type. The value may be missing in
// b.stack.
func (b *body) produce(t valType) {
	s := b.src
	switch n := s.n(16); {
	case n < 4:
	case n < 8:
		if i, ok := b.pickOfType(b.locals, t); ok {
			b.emit(opLocalGet, i)
			return
		}
	case n < 9:
		types := make([]valType, len(b.globals))
		for i, g := range b.globals {
			types[i] = g.typ
		}
		if i, ok := b.pickOfType(types, t); ok {
			b.emit(opGlobalGet, i)
			return
		}
	case b.valueDepth > maxValueDepth:
	case n < 13:
		if b.compute(t) {
			return
		}
	case n < 15:
		if b.loadAny(t) {
			return
		}
	default:
		b.consume(t, t, i32t)
		b.selectOf(t)
		return
	}
	if t == fref && s.chance(60) {
		f := uint32(s.n(len(b.funcs)))
		b.referenced[f] = true
		b.emit(opRefFunc, f)
		return
	}
	b.byte(b.constant(t)...)
}

// pickOfType chooses the index of an entry equal to t; false if there is none.
func (b *body) pickOfType(types []valType, t valType) (uint32, bool) {
	var found []uint32
	for i, x := range types {
		if x == t {
			found = append(found, uint32(i))
		}
	}
	if len(found) == 0 {
		return 0, false
	}
	return found[b.src.n(len(found))], true
}

// newLocal adds a local and returns its index.
func (b *body) newLocal(t valType) uint32 {
	b.locals = append(b.locals, t)
	return uint32(len(b.locals) - 1)
}

func (b *body) setLocal() {
	if len(b.locals) == 0 {
		b.newLocal(b.anyType())
	}
	i := b.src.n(min(len(b.locals), 256))
	if b.locals[i] == loopCounterType {
		i = int(b.newLocal(b.anyType()))
	}
	t := b.locals[i]
	if have := b.available(); len(have) > 0 && b.src.chance(50) { // a local that fits the operand
		if j, ok := b.pickOfType(b.locals, have[len(have)-1]); ok {
			i, t = int(j), b.locals[j]
		}
	}
	b.consume(t)
	if b.src.chance(30) {
		b.emit(opLocalTee, uint32(i))
		b.push(t)
	} else {
		b.emit(opLocalSet, uint32(i))
	}
}

func (b *body) setGlobal() {
	if len(b.globals) == 0 {
		b.op(opNop)
		return
	}
	i := b.src.n(len(b.globals))
	if g := b.globals[i]; g.mutable && i != b.budget {
		b.consume(g.typ)
		b.emit(opGlobalSet, uint32(i))
	}
}

func (b *body) selectAny() {
	t := b.anyType()
	if have := b.available(); len(have) > 0 {
		t = have[len(have)-1]
	}
	b.consume(t, t, i32t)
	b.selectOf(t)
	b.push(t)
}

// selectOf writes a select. A select of references must name its type.
func (b *body) selectOf(t valType) {
	if t == fref || t == eref || b.src.chance(20) {
		b.byte(opSelectTyped, 1, byte(t))
	} else {
		b.op(opSelect)
	}
}

// closeBlock leaves exactly the results of the block on the stack, before an end or else.
func (b *body) closeBlock() {
	f := b.top()
	if !f.unreachable && f.op != opLoop && b.src.chance(15) { // whatever lies below the results
		b.consume(f.results...)
		if len(b.frames) == 1 && b.src.chance(50) {
			b.op(opReturn)
		} else {
			b.emit(opBr, 0)
		}
		b.markUnreachable()
	}
	have := b.stack[f.height:]
	if f.unreachable {
		for len(have) > 0 && (len(have) > len(f.results) || !slices.Equal(have, f.results[len(f.results)-len(have):])) {
			b.op(opDrop)
			have = have[:len(have)-1]
		}
		if len(have) == 0 && len(f.results) > 0 {
			b.stack = b.stack[:f.height]
			for _, t := range f.results[b.src.n(len(f.results)+1):] {
				b.value(t)
			}
		}
		return
	}
	for len(have) > 0 && (len(have) > len(f.results) || !slices.Equal(have, f.results[:len(have)])) {
		b.drop(have[len(have)-1])
		have = have[:len(have)-1]
	}
	b.stack = b.stack[:f.height+len(have)]
	for _, t := range f.results[len(have):] {
		b.value(t)
	}
}

// drop writes code that removes a value from the stack.
func (b *body) drop(t valType) {
	if b.src.chance(30) {
		if i, ok := b.pickOfType(b.locals, t); ok {
			b.emit(opLocalSet, i)
			return
		}
	}
	b.op(opDrop)
}
