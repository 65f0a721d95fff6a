package fuel

import (
	"encoding/binary"
	"slices"

	"github.com/stockade-dev/stockade/host/wasm"
)

// counterState is the place of the counter's present value. The counter lives in a global, where
// the host and called functions find it, and is computed in a local, which the engine keeps in a
// register.
type counterState uint8

const (
	unset counterState = iota // the state of a label that no code has reached yet
	clean                     // the value is in the global and in the local
	dirty                     // the value is in the local; the global may be out of date
	stale                     // the value is in the global; the local may be out of date
)

// scope is a block, loop, if or try_table, or the function, whose end is not written yet.
type scope struct {
	kind      labelKind
	state     counterState // state that every branch to the label must bring about, or unset
	elseState counterState // of an if: the state with which its else branch begins
}

// emitter writes the instrumented code of one function after another.
type emitter struct {
	imported    uint32 // number of imported functions; the indices of all others move up by one
	refill      uint32 // index of the imported function refill
	counter     uint32 // index of the global with the counter
	depth       uint32 // index of the global with the depth left for calls; exists only if limitsDepth
	limitsDepth bool   // the depth of calls is limited
	help        *helpers
	refs        *references

	body   *wasm.Body
	flow   *flow
	out    []byte
	copied int // offset in body.Code up to which the code was copied or replaced
	scopes []scope

	state        counterState
	live         bool   // the current instruction can be reached
	globalOnly   bool   // the counter is not kept in the local: exceptions leave blocks in their middle
	counterLocal uint32 // index of the local with the counter
	savedDepth   uint32 // index of the local with the depth at the entry
	innerDepth   uint32 // index of the local with the depth inside the function
	sizeLocal    uint32 // index of the local with the number of bytes of a memory.copy or memory.fill
	wrapsBody    bool   // the body is inside a block, so that there is a single exit
	setAt        int    // if out ends with a local.set of the counter: its position in out; else -1
}

const (
	blockVoid = 0x40

	opI64GeS = 0x59
	opI64Add = 0x7c
	opI64Sub = 0x7d
	opI64Or  = 0x84
)

// function appends the instrumented body of b to out, without its size.
func (e *emitter) function(out []byte, b *wasm.Body, f *flow, results []wasm.ValType) []byte {
	*e = emitter{
		imported: e.imported, refill: e.refill, counter: e.counter, depth: e.depth, limitsDepth: e.limitsDepth, help: e.help, refs: e.refs,
		body: b, flow: f, out: out, scopes: e.scopes[:0], state: stale, live: true, globalOnly: f.catchesExceptions, setAt: -1,
	}
	e.wrapsBody = e.limitsDepth && f.hasCalls
	e.counterLocal = b.Params + b.Locals
	e.savedDepth, e.innerDepth = e.counterLocal+1, e.counterLocal+2

	e.sizeLocal = e.counterLocal + 1
	added := byte(1)
	if e.wrapsBody {
		e.sizeLocal, added = e.counterLocal+3, 3
	}
	e.out = binary.AppendUvarint(e.out, uint64(b.LocalGroups)+2)
	groups := uvarintLen(b.Code)
	e.out = append(e.out, b.Code[groups:b.LocalsEnd]...)
	e.out = append(e.out, added, byte(wasm.I64), 1, byte(wasm.I32))
	e.copied = b.LocalsEnd

	outer := scope{kind: labelBlock}
	if e.wrapsBody {
		e.enterDepth(results)
	} else {
		outer.state = stale // the caller reads the global
	}
	e.scopes = append(e.scopes, outer)

	blocks, start := f.blocks, 0 // of the next block
	for i := range b.Instrs {
		if i == start {
			e.live = true
			e.beginBlock(i, &blocks[0], i == 0)
			blocks, start = blocks[1:], -1
			if len(blocks) > 0 {
				start = int(blocks[0].start)
			}
		}
		in := &b.Instrs[i]
		if !needsAnalysis[in.Op] && (e.state != dirty || !mayTrap[in.Op]) {
			continue
		}
		e.instruction(i, in, i+1 == start)
	}
	return e.out
}

// enterDepth subtracts a call from the depth, at the entry of the function, unless it checks
// late. It begins the block around the body, which has these results.
func (e *emitter) enterDepth(results []wasm.ValType) {
	e.op(wasm.OpGlobalGet, e.depth)
	if e.flow.checksLate {
		e.op(wasm.OpLocalSet, e.savedDepth)
	} else {
		e.op(wasm.OpLocalTee, e.savedDepth)
		e.goDeeper()
	}
	e.out = append(e.out, byte(wasm.OpBlock))
	e.out = append(e.out, e.help.blockType(results)...)
}

// goDeeper lowers the depth by frameCost. The code before must have pushed the old depth.
func (e *emitter) goDeeper() {
	e.constant(frameCost(e.body, e.flow))
	e.out = append(e.out, opI64Sub)
	e.op(wasm.OpLocalTee, e.innerDepth)
	e.op(wasm.OpGlobalSet, e.depth)
}

// beginBlock writes the charge and the check at the start of a basic block, which begins with
// instruction i. first is set for the first block of the function.
func (e *emitter) beginBlock(i int, b *block, first bool) {
	if e.globalOnly {
		e.state = stale
	}
	restore := e.globalOnly && e.wrapsBody && !first // an exception may have skipped the code that restores the depth
	if b.charge == 0 && !b.check && !restore {
		return
	}
	e.copyTo(int(e.body.Instrs[i].Offset))
	if restore {
		e.op(wasm.OpLocalGet, e.innerDepth)
		e.op(wasm.OpGlobalSet, e.depth)
	}
	enters := e.wrapsBody && b.firstCheck
	if enters {
		e.flush() // the charges so far count even if the depth is exceeded
		e.op(wasm.OpLocalGet, e.savedDepth)
		e.goDeeper()
	}
	if b.charge != 0 {
		if e.state == stale {
			e.op(wasm.OpGlobalGet, e.counter)
		} else {
			e.op(wasm.OpLocalGet, e.counterLocal)
		}
		if b.charge > 0 {
			e.constant(b.charge)
			e.out = append(e.out, opI64Sub)
		} else {
			e.constant(-b.charge)
			e.out = append(e.out, opI64Add)
		}
		e.setCounterLocal()
		e.state = dirty
	} else if b.check && e.state == stale {
		e.op(wasm.OpGlobalGet, e.counter)
		e.setCounterLocal()
		e.state = clean
	}
	if b.check {
		e.check(enters || first && e.wrapsBody, b.assignedSpan)
	}
	if e.globalOnly {
		e.flush()
	}
}

// check writes the check of the counter, and with depth also of the depth. It matters that the
// else branch is the rare one: the engine allocates registers for the code after the check as
// they are at the end of the first branch, and would reload everything in every loop.
func (e *emitter) check(depth bool, names span) {
	if e.setAt >= 0 {
		e.out[e.setAt] = byte(wasm.OpLocalTee)
		e.setAt = -1
	} else {
		e.op(wasm.OpLocalGet, e.counterLocal)
	}
	if depth {
		e.op(wasm.OpLocalGet, e.innerDepth)
		e.out = append(e.out, opI64Or)
	}
	e.out = append(e.out, byte(wasm.OpI64Const), 0, opI64GeS, byte(wasm.OpIf), blockVoid, byte(wasm.OpElse))
	e.renameLocals(names)
	e.op(wasm.OpLocalGet, e.counterLocal)
	if depth {
		// A guest that always owes fuel must not get away with any depth: a value that is
		// not negative means that the depth is exceeded.
		e.out = append(e.out, byte(wasm.OpI64Const), 0)
		e.op(wasm.OpLocalGet, e.innerDepth)
		e.out = append(e.out, byte(wasm.OpI64Const), 0, opI64GeS, byte(wasm.OpSelect))
	}
	e.op(wasm.OpCall, e.refill)
	if e.state == clean {
		e.op(wasm.OpLocalTee, e.counterLocal)
		e.op(wasm.OpGlobalSet, e.counter)
	} else {
		e.op(wasm.OpLocalSet, e.counterLocal)
	}
	e.out = append(e.out, byte(wasm.OpEnd))
}

// maxRenamed limits the locals for which renameLocals writes code at a check, some seven bytes
// for each. If a loop assigns more locals, it writes none.
const maxRenamed = 12

// renameLocals gives the locals that a loop assigns, if they hold numbers, new names for the
// engine, before the rare call of refill. names is their range in flow.assigned. Values in
// registers at the head of a loop that are needed after a call in it would be written to the
// stack in every turn of the loop; now only the new names are, and only when the call is made.
// The instructions that rename change no bit and are not optimised away.
func (e *emitter) renameLocals(names span) {
	if names.to-names.from > maxRenamed {
		return
	}
	for i := names.from; i < names.to; i++ {
		local := e.flow.assigned[i]
		t := e.body.LocalTypes[local]
		if t == wasm.I32 || t == wasm.I64 || t == wasm.F32 || t == wasm.F64 {
			e.op(wasm.OpLocalGet, local)
			e.out = append(e.out, sameBits[t]...)
			e.op(wasm.OpLocalSet, local)
		}
	}
}

var sameBits = map[wasm.ValType][]byte{
	wasm.I32: {0x41, 0, 0x72}, // | 0
	wasm.I64: {0x42, 0, 0x84},
	wasm.F32: {0xbc, 0xbe}, // to i32 and back
	wasm.F64: {0xbd, 0xbf},
}

// instruction writes instruction i, which needs work: control flow, a call, a bulk operation,
// ref.func, or a flush before a trap. startsNext is set if a block begins after it.
func (e *emitter) instruction(i int, in *wasm.Instr, startsNext bool) {
	switch in.Op {
	case wasm.OpBlock, wasm.OpTryTable, wasm.OpLoop, wasm.OpIf:
		e.enter(i, in)
		return
	case wasm.OpElse, wasm.OpEnd:
		e.leave(i, in, startsNext)
		return
	case wasm.OpCall, wasm.OpReturnCall:
		e.call(i, in)
		return
	case wasm.OpRefFunc:
		e.copyTo(int(in.Offset))
		e.out, e.setAt = e.refs.appendTo(e.out, in.Arg), -1
		e.skip(i)
		return
	}
	if !e.live {
		return
	}
	if mayTrap[in.Op] && e.state == dirty {
		e.copyTo(int(in.Offset))
		e.flush()
	}
	switch in.Op {
	case wasm.OpBr, wasm.OpBrIf:
		e.prepareBranch(i, in.Arg)
		e.live = in.Op == wasm.OpBrIf
	case wasm.OpBrTable:
		e.prepareBranch(i, e.body.Labels[in.Arg:in.Arg+in.Arg2]...)
		e.live = false
	case wasm.OpReturn:
		e.prepareBranch(i, uint32(len(e.scopes)-1))
		if e.wrapsBody {
			e.copyTo(int(in.Offset))
			e.op(wasm.OpBr, uint32(len(e.scopes)-1))
			e.skip(i)
		}
		e.live = false
	case wasm.OpReturnCallIndirect:
		e.leaveDepth(i)
		e.live = false
	case wasm.OpCallIndirect:
		e.state = stale
	case wasm.OpUnreachable, wasm.OpThrow, wasm.OpThrowRef:
		e.live = false
	case wasm.OpMemoryCopy, wasm.OpMemoryFill:
		if _, known := constantSize(e.body, i); !known {
			e.inlineBulk(i, in)
		}
	case wasm.OpMemoryGrow, wasm.OpTableGrow:
		e.copyTo(int(in.Offset))
		e.callHelper(in)
		e.skip(i)
		e.state = stale
	case wasm.OpMemoryInit, wasm.OpTableInit, wasm.OpTableCopy, wasm.OpTableFill:
		e.copyTo(int(in.Offset))
		e.callHelper(in)
		e.op(wasm.OpLocalSet, e.counterLocal)
		e.skip(i)
		e.state = clean
	}
}

// callHelper writes a call of the helper that stands in for an instruction.
func (e *emitter) callHelper(in *wasm.Instr) {
	if e.state == stale {
		e.op(wasm.OpGlobalGet, e.counter)
	} else {
		e.op(wasm.OpLocalGet, e.counterLocal)
	}
	e.op(wasm.OpCall, e.help.function(in))
}

// inlineBulk writes code that executes a copy or a fill in place if it is small when it runs, and
// else calls its helper.
func (e *emitter) inlineBulk(i int, in *wasm.Instr) {
	e.matchState(int(in.Offset), dirty)
	e.copyTo(int(in.Offset))
	i32 := wasm.I32
	e.op(wasm.OpLocalTee, e.sizeLocal)
	e.op(wasm.OpLocalGet, e.sizeLocal)
	e.out = append(e.out, byte(wasm.OpI32Const), maxInlineLog, opI32ShrU, byte(wasm.OpIf))
	e.out = wasm.AppendSigned(e.out, int64(e.help.typeIndex([]wasm.ValType{i32, i32, i32}, nil)))
	e.callHelper(in)
	e.op(wasm.OpLocalSet, e.counterLocal)
	e.out = append(e.out, byte(wasm.OpElse))
	e.out = append(e.out, e.body.Code[in.Offset:e.body.End(i)]...)
	e.op(wasm.OpLocalGet, e.counterLocal)
	e.op(wasm.OpLocalGet, e.sizeLocal)
	e.out = append(e.out, byte(wasm.OpI32Const), CostBulkShift, opI32ShrU, opI64ExtendI32, opI64Sub)
	e.op(wasm.OpLocalSet, e.counterLocal)
	e.out = append(e.out, byte(wasm.OpEnd))
	e.skip(i)
	e.state = dirty
	if e.globalOnly {
		e.flush()
	}
}

// call writes a call or tail call of the function with index in.Arg.
func (e *emitter) call(i int, in *wasm.Instr) {
	if e.live && e.state == dirty {
		e.copyTo(int(in.Offset))
		e.flush()
	}
	if e.live && in.Op == wasm.OpReturnCall {
		e.leaveDepth(i)
	}
	if in.Arg >= e.imported {
		e.copyTo(int(in.Offset))
		e.op(in.Op, in.Arg+1)
		e.skip(i)
	}
	switch in.Op {
	case wasm.OpCall:
		e.state = stale
	case wasm.OpReturnCall:
		e.live = false
	}
}

// leaveDepth restores the depth before instruction i, a tail call.
func (e *emitter) leaveDepth(i int) {
	if e.wrapsBody {
		e.copyTo(int(e.body.Instrs[i].Offset))
		e.op(wasm.OpLocalGet, e.savedDepth)
		e.op(wasm.OpGlobalSet, e.depth)
	}
}

func (e *emitter) enter(i int, in *wasm.Instr) {
	s := scope{}
	switch in.Op {
	case wasm.OpLoop:
		// Branches back have the counter in the local: no load in the loop.
		s.kind, s.state = labelLoop, dirty
		if e.globalOnly {
			s.state = stale
		}
		if e.live {
			e.matchState(int(in.Offset), s.state)
			e.state = s.state
		}
	case wasm.OpIf:
		s.kind, s.elseState = labelIf, e.state
		if e.live {
			s.state = e.state // without an else branch, control goes from here to the end
		}
	}
	e.scopes = append(e.scopes, s)
}

func (e *emitter) leave(i int, in *wasm.Instr, startsNext bool) {
	s := &e.scopes[len(e.scopes)-1]
	if s.kind != labelLoop && e.live {
		s.state = e.matchState(int(in.Offset), s.state)
	}
	if in.Op == wasm.OpElse {
		s.kind, e.state, e.live = labelElse, s.elseState, startsNext
		return
	}
	last := len(e.scopes) == 1
	if s.kind != labelLoop && s.state != unset {
		e.state = s.state
	}
	e.live = e.live || startsNext
	e.scopes = e.scopes[:len(e.scopes)-1]
	if !last {
		return
	}
	if !e.wrapsBody {
		e.copyTo(len(e.body.Code))
		return
	}
	e.copyTo(e.body.End(i)) // the end of the block around the body
	e.flush()
	e.op(wasm.OpLocalGet, e.savedDepth)
	e.op(wasm.OpGlobalSet, e.depth)
	e.out = append(e.out, byte(wasm.OpEnd))
}

// prepareBranch brings the counter into the state that the labels at depths require, before
// instruction i branches.
func (e *emitter) prepareBranch(i int, depths ...uint32) {
	at := int(e.body.Instrs[i].Offset)
	for _, d := range depths {
		s := &e.scopes[len(e.scopes)-1-int(d)]
		s.state = e.matchState(at, s.state)
	}
}

// matchState brings the counter into the state want, which a label requires, before the
// instruction at the offset at; unset and clean require nothing. It returns the state that the
// label has then.
func (e *emitter) matchState(at int, want counterState) counterState {
	switch {
	case want == unset, want == clean:
		return e.state
	case want == dirty && e.state == stale:
		e.copyTo(at)
		e.op(wasm.OpGlobalGet, e.counter)
		e.setCounterLocal()
		e.state = clean
	case want == stale && e.state == dirty:
		e.copyTo(at)
		e.flush()
	}
	return want
}

// flush writes the counter to the global, if the local has a newer value.
func (e *emitter) flush() {
	if e.state != dirty {
		return
	}
	if e.setAt >= 0 {
		e.out[e.setAt] = byte(wasm.OpLocalTee)
		e.setAt = -1
	} else {
		e.op(wasm.OpLocalGet, e.counterLocal)
	}
	e.op(wasm.OpGlobalSet, e.counter)
	e.state = clean
}

// setCounterLocal writes a local.set that pops the counter from the stack.
func (e *emitter) setCounterLocal() {
	at := len(e.out)
	e.op(wasm.OpLocalSet, e.counterLocal)
	e.setAt = at
}

func (e *emitter) op(op wasm.Op, index uint32) {
	e.setAt = -1
	e.out = binary.AppendUvarint(append(e.out, byte(op)), uint64(index))
}

func (e *emitter) constant(v int64) { e.out = appendI64Const(e.out, v) }

// copyTo copies the original code from e.copied up to an offset.
func (e *emitter) copyTo(offset int) {
	if offset > e.copied {
		e.setAt = -1
		e.out = append(e.out, e.body.Code[e.copied:offset]...)
		e.copied = offset
	}
}

// skip leaves out the original instruction i; all code before it must have been copied.
func (e *emitter) skip(i int) { e.copied = e.body.End(i) }

func appendI64Const(out []byte, v int64) []byte {
	return wasm.AppendSigned(append(out, byte(wasm.OpI64Const)), v)
}

func uvarintLen(b []byte) int {
	return slices.IndexFunc(b, func(c byte) bool { return c < 0x80 }) + 1
}
