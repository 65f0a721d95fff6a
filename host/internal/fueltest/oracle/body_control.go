package oracle

import "slices"

// structured generates a block with its content.
func (b *body) structured(op uint32) {
	if len(b.frames) > maxNesting {
		b.op(opNop)
		return
	}
	params, results, hasElse := b.planBlock(op)
	if op == opIf {
		b.consume(append(slices.Clone(params), i32t)...)
	} else {
		b.consume(params...)
	}
	// Most loops count down a local of their own.
	counted, counter := op == opLoop && !b.src.chance(15), uint32(0)
	if counted {
		counter = b.newLocal(loopCounterType)
		b.constI32(int32(pick(b.src, 2, 1, 3, 4, 6, 10, 20, 60)))
		b.emit(opLocalSet, counter)
	}
	b.op(op)
	b.blockType(params, results)
	height := len(b.stack)
	b.frames = append(b.frames, frame{op: op, params: params, results: results, height: height})
	b.push(params...)
	size := 1 + b.src.n(10)
	b.statements(size)
	if counted {
		b.consume(params...)
		b.emit(opLocalGet, counter)
		b.constI32(1)
		b.op(opI32Sub)
		b.emit(opLocalTee, counter)
		if b.src.chance(20) { // another way to test it
			b.constI32(0)
			b.op(opI32GtU)
		}
		b.emit(opBrIf, 0)
		b.push(params...)
	}
	b.closeBlock()
	if hasElse {
		b.op(opElse)
		b.top().unreachable = false
		b.stack = append(b.stack[:height], params...)
		b.statements(size)
		b.closeBlock()
	}
	b.op(opEnd)
	b.frames = b.frames[:len(b.frames)-1]
	b.stack = append(b.stack[:height], results...)
}

// planBlock chooses the type of a block. Without an else the results of an if are its
// parameters.
func (b *body) planBlock(op uint32) (params, results []valType, hasElse bool) {
	s := b.src
	switch have := b.available(); {
	case s.chance(70):
	case len(have) > 0:
		params = append(params, have[len(have)-1-s.n(min(len(have), 3)):]...)
	default:
		params = b.anyTypes(2)
	}
	if op == opIf && s.chance(40) {
		return params, params, false
	}
	if !s.chance(50) {
		results = b.anyTypes(2)
	}
	return params, results, op == opIf
}

// blockType writes the type of a block: in the short form, if there is one, or as the
// index of a type.
func (b *body) blockType(params, results []valType) {
	switch {
	case len(params)+len(results) == 0 && !b.src.chance(15):
		b.byte(0x40)
	case len(params) == 0 && len(results) == 1 && !b.src.chance(30):
		b.byte(byte(results[0]))
	default:
		b.signed(int64(b.typeIndex(params, results)), 33)
	}
}

// loopCounterType marks the locals that count loops, so that no other code finds and sets
// them. They are declared as i32.
const loopCounterType valType = 1

// guardBudget generates code that counts down the budget of the module, and returns from
// the function when none is left. It must precede code that could run in circles, and
// reports whether such code may follow.
func (b *body) guardBudget() bool {
	if b.unguarded && b.src.chance(40) {
		return true
	}
	if b.budget < 0 {
		return b.src.chance(10)
	}
	budget := uint32(b.budget)
	b.emit(opGlobalGet, budget)
	b.constI32(1)
	b.op(opI32Sub)
	b.emit(opGlobalSet, budget)
	b.emit(opGlobalGet, budget)
	b.constI32(0)
	b.op(opI32LtS)
	b.op(opIf)
	b.byte(0x40)
	for _, t := range b.typ.Results {
		b.byte(b.constant(t)...)
	}
	b.op(opReturn)
	b.op(opEnd)
	return true
}

// branchTarget chooses a block to branch to, rarely the function itself, and generates
// the guard of a loop.
func (b *body) branchTarget() (depth uint32, label []valType) {
	i := b.src.n(len(b.frames))
	if i > 0 && i == len(b.frames)-1 && b.src.chance(70) {
		i--
	}
	if b.frameAt(i).op == opLoop && !b.guardBudget() {
		i = len(b.frames) - 1
	}
	return uint32(i), b.frameAt(i).label()
}

// frameAt returns the block depth levels out.
func (b *body) frameAt(depth int) *frame { return &b.frames[len(b.frames)-1-depth] }

func (b *body) branch() {
	depth, label := b.branchTarget()
	b.consume(label...)
	b.emit(opBr, depth)
	b.markUnreachable()
}

func (b *body) branchIf() {
	if len(b.frames) == 1 && b.src.chance(70) {
		return
	}
	depth, label := b.branchTarget()
	b.consume(append(slices.Clone(label), i32t)...)
	b.emit(opBrIf, depth)
	b.push(label...)
}

// branchTable branches to one of several blocks that take the same operands.
func (b *body) branchTable() {
	depth, label := b.branchTarget()
	fit := []uint32{depth}
	for i := range b.frames {
		f := b.frameAt(i)
		if slices.Equal(f.label(), label) && (f.op != opLoop || uint32(i) == depth || b.guardBudget()) {
			fit = append(fit, uint32(i))
		}
	}
	b.consume(append(slices.Clone(label), i32t)...)
	b.op(opBrTable)
	n := pick(b.src, 2, 0, 1, 1, 2, 3, 3, 4, 5, 9, 130)
	b.u32(uint32(n))
	for range n + 1 {
		b.u32(fit[b.src.n(len(fit))])
	}
	b.markUnreachable()
}

func (b *body) emitReturn() {
	b.consume(b.typ.Results...)
	b.op(opReturn)
	b.markUnreachable()
}

// call calls any function. Functions that come later in the module need no guard: only
// calls to earlier ones can run in circles.
func (b *body) call() {
	f := b.src.n(len(b.funcs))
	if f >= b.imported && (f <= b.self || b.src.chance(30)) && !b.guardBudget() {
		return
	}
	t := b.typeOf(f)
	b.consume(t.Params...)
	b.emit(opCall, uint32(f))
	b.push(t.Results...)
}

// callIndirect calls an entry of a table, mostly with the type that is right unless the
// table has changed.
func (b *body) callIndirect() {
	table, ok := b.findTable(fref)
	if !ok || !b.guardBudget() {
		return
	}
	slot, typ := b.tableEntry(table)
	t := b.types[typ]
	b.pushOperands(t.Params...)
	b.entryIndex(slot)
	b.pop(len(t.Params) + 1)
	b.emit(opCallIndirect, typ, table)
	b.push(t.Results...)
}

// tableEntry chooses an entry of a table, and the type to call it with.
func (b *body) tableEntry(table uint32) (slot int, typ uint32) {
	if initial := b.initial[table]; len(initial) > 0 {
		slot = b.src.n(len(initial))
		for range initial { // null is a trap
			if initial[slot] >= 0 || b.src.chance(b.risk) {
				break
			}
			slot = (slot + 1) % len(initial)
		}
		if f := initial[slot]; f >= 0 && !b.src.chance(b.risk) {
			return slot, b.funcs[f]
		}
	}
	return slot, uint32(b.src.n(len(b.types)))
}

// entryIndex generates the index of a table's entry.
func (b *body) entryIndex(slot int) {
	if b.src.chance(b.risk) {
		b.value(i32t)
	} else {
		b.pushConst(slot)
	}
}

// tailCall generates a tail call of a function with the same results, if the module may
// have tail calls.
func (b *body) tailCall() {
	if !b.TailCalls || !b.guardBudget() {
		b.op(opNop)
		return
	}
	var direct []uint32
	for f := range b.funcs {
		if slices.Equal(b.typeOf(f).Results, b.typ.Results) {
			direct = append(direct, uint32(f))
		}
	}
	if len(direct) > 0 && b.src.chance(60) {
		f := direct[b.src.n(len(direct))]
		b.consume(b.typeOf(int(f)).Params...)
		b.emit(opReturnCall, f)
		b.markUnreachable()
		return
	}
	table, ok := b.findTable(fref)
	if !ok {
		return
	}
	for range 5 {
		slot, typ := b.tableEntry(table)
		if t := b.types[typ]; slices.Equal(t.Results, b.typ.Results) {
			b.pushOperands(t.Params...)
			b.entryIndex(slot)
			b.emit(opReturnCallIndirect, typ, table)
			b.markUnreachable()
			return
		}
	}
}
