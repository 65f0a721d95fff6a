package oracle

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/stockade-dev/stockade/host/wasm"
)

// Run instantiates the module and executes its export run, which takes no parameters. It
// fails if the module cannot be decoded, imports anything but the host function, or does
// something that no valid module does.
func Run(data []byte, opts Options) (out *Outcome, err error) {
	mod, err := decode(data)
	if err != nil {
		return nil, err
	}
	opts.MaxSteps = cmp.Or(opts.MaxSteps, 10_000_000)
	opts.MaxDepth = cmp.Or(opts.MaxDepth, 1000)
	opts.MaxPages = cmp.Or(opts.MaxPages, 1<<16)
	opts.MaxBulk = cmp.Or(opts.MaxBulk, 100_000_000)
	m := &machine{module: mod, opts: opts, out: &Outcome{EntriesByLocals: map[int]uint64{}}}
	defer func() {
		switch r := recover().(type) {
		case nil:
		case Trap:
			m.out.Trap = r
			if m.out.Phase != Instantiating {
				m.out.TrapOp = m.op
			}
		case Limit:
			m.out.Limit = r
		case error: // an index out of range, or an unknown instruction
			out, err = nil, fmt.Errorf("invalid module: %w", r)
			return
		default:
			panic(r)
		}
		m.finish()
		out = m.out
	}()
	m.instantiate()
	if mod.start >= 0 {
		m.out.Phase = Starting
		m.call(uint32(mod.start))
	}
	m.out.Phase = Running
	m.call(uint32(mod.run))
	for i, t := range mod.typeOf(uint32(mod.run)).Results {
		m.out.Results = append(m.out.Results, Value{t, m.stack[i].lo, m.stack[i].hi})
	}
	return // the results that the deferred function sets
}

// slot holds a value of any type. Only vectors use hi. An i32 or f32 is in the low half
// of lo, and the rest is zero. A null reference is zero.
type slot struct{ lo, hi uint64 }

func funcRef(f uint32) slot { return slot{lo: uint64(f) + 1} }

type machine struct {
	*module
	opts Options
	out  *Outcome

	memory  []byte
	pages   uint32 // the largest number of pages that the memory may have
	tables  []table
	globals []slot

	stack     []slot
	labels    []label
	depth     int
	op        uint32 // the current instruction
	bulkTotal uint64 // see Options.MaxBulk
	counts    [counters]uint64
}

type table struct {
	refs []slot
	most uint32
}

// label is a block that is being executed.
type label struct {
	pc     int // target of a branch to the block
	height int // height of the stack below the operands of the block
	arity  int // number of values that a branch to the block takes
}

func (m *machine) instantiate() {
	if l := m.module.memory; l != nil {
		m.memory = make([]byte, l.Min*wasm.PageBytes)
		m.pages = m.opts.MaxPages
		if l.HasMax {
			m.pages = min(m.pages, uint32(l.Max))
		}
	}
	for _, g := range m.module.globals {
		m.globals = append(m.globals, g.init)
	}
	for _, t := range m.module.tables {
		most := ^uint32(0)
		if t.Limits.HasMax {
			most = uint32(t.Limits.Max)
		}
		m.tables = append(m.tables, table{make([]slot, t.Limits.Min), most})
	}
	for i := range m.elems {
		e := &m.elems[i]
		if e.active {
			copy(m.tables[e.table].slots(e.offset, uint32(len(e.refs))), e.refs)
		}
		if e.active || e.declared {
			e.refs = nil
		}
	}
	for i := range m.datas {
		if d := &m.datas[i]; d.active {
			copy(m.memorySlice(uint64(d.offset), uint64(len(d.bytes))), d.bytes)
			d.bytes = nil
		}
	}
}

// finish records the state in which the machine stopped.
func (m *machine) finish() {
	m.out.Ops = make(map[uint32]uint64)
	for i, n := range m.counts {
		if n > 0 {
			m.out.Ops[opcode(i)] = n
		}
	}
	m.out.Pages = uint32(len(m.memory) / wasm.PageBytes)
	m.out.Memory = HashMemory(m.memory)
	for i, g := range m.globals {
		m.out.Globals = append(m.out.Globals, Value{m.module.globals[i].typ, g.lo, g.hi})
	}
}

func (m *machine) push(v slot)     { m.stack = append(m.stack, v) }
func (m *machine) push32(v uint32) { m.stack = append(m.stack, slot{lo: uint64(v)}) }
func (m *machine) pop32() uint32   { return uint32(m.pop().lo) }
func (m *machine) top() *slot      { return &m.stack[len(m.stack)-1] }
func (m *machine) drop(n int)      { m.stack = m.stack[:len(m.stack)-n] }
func (m *machine) pop() slot       { v := *m.top(); m.drop(1); return v }

// slide moves the topmost n values down to a height of the stack.
func (m *machine) slide(height, n int) {
	copy(m.stack[height:], m.stack[len(m.stack)-n:])
	m.stack = m.stack[:height+n]
}

// memorySlice returns n bytes of memory at an address, or traps.
func (m *machine) memorySlice(at, n uint64) []byte {
	if at+n > uint64(len(m.memory)) { // both have at most 33 bits
		panic(TrapMemory)
	}
	return m.memory[at : at+n]
}

func (t *table) slots(at, n uint32) []slot {
	if uint64(at)+uint64(n) > uint64(len(t.refs)) {
		panic(TrapTable)
	}
	return t.refs[at : at+n]
}

// call calls a function. Its arguments are on the stack, and its results replace them.
func (m *machine) call(f uint32) {
	if int(f) < m.imported {
		m.out.HostCalls++
		m.top().lo = uint64(Host(uint32(m.top().lo)))
		return
	}
	if m.depth == m.opts.MaxDepth {
		panic(LimitDepth)
	}
	m.depth++
	m.out.Depth = max(m.out.Depth, m.depth)
	for again := true; again; {
		m.out.FunctionEntries++
		body := &m.funcs[int(f)-m.imported]
		m.out.EntriesByLocals[body.params+body.locals]++
		f, again = m.body(body)
	}
	m.depth--
}

// body executes a body. After a tail call it returns the next function, whose arguments
// are then in the place of its own.
func (m *machine) body(f *function) (next uint32, tail bool) {
	base := len(m.stack) - f.params
	m.stack = append(m.stack, make([]slot, f.locals)...)
	outer := len(m.labels)
	m.labels = append(m.labels, label{len(f.code), base, f.results})
	for pc := 0; pc < len(f.code); {
		in := &f.code[pc]
		pc++
		switch in.op { // not counted as steps
		case opNop:
			continue
		case opBlock:
			m.labels = append(m.labels, label{int(in.lo) + 1, len(m.stack) - int(in.a), int(in.b)})
			continue
		case opLoop: // a branch executes it again
			m.labels = append(m.labels, label{pc - 1, len(m.stack) - int(in.a), int(in.a)})
			continue
		case opElse: // the first branch of the if is done
			pc = int(in.lo)
			continue
		case opEnd:
			if len(m.labels) == outer+1 {
				pc = m.branch(0)
			} else {
				m.labels = m.labels[:len(m.labels)-1]
			}
			continue
		}

		if m.out.Steps == m.opts.MaxSteps {
			panic(LimitSteps)
		}
		m.out.Steps++
		m.op = in.op
		m.counts[in.counter]++
		switch in.op {
		case opUnreachable:
			panic(TrapUnreachable)
		case opIf:
			yes := m.pop32() != 0
			m.labels = append(m.labels, label{int(in.lo) + 1, len(m.stack) - int(in.a), int(in.b)})
			if !yes {
				pc = int(in.hi)
			}
		case opBr:
			pc = m.branch(in.a)
		case opBrIf:
			if m.pop32() != 0 {
				pc = m.branch(in.a)
			}
		case opBrTable:
			i := min(m.pop32(), in.b-1)
			pc = m.branch(f.labels[in.a+i])
		case opReturn:
			pc = m.branch(uint32(len(m.labels) - outer - 1))
		case opCall:
			m.call(in.a)
		case opCallIndirect:
			m.call(m.callee(in))
		case opReturnCall, opReturnCallIndirect:
			next = in.a
			if in.op == opReturnCallIndirect {
				next = m.callee(in)
			}
			m.labels = m.labels[:outer]
			m.slide(base, len(m.typeOf(next).Params))
			if int(next) < m.imported {
				m.call(next)
				return 0, false
			}
			return next, true
		case opDrop:
			m.drop(1)
		case opSelect, opSelectTyped:
			if m.pop32() == 0 {
				m.stack[len(m.stack)-2] = *m.top()
			}
			m.drop(1)
		case opLocalGet:
			m.push(m.stack[base+int(in.a)])
		case opLocalSet:
			m.stack[base+int(in.a)] = m.pop()
		case opLocalTee:
			m.stack[base+int(in.a)] = *m.top()
		case opGlobalGet:
			m.push(m.globals[in.a])
		case opGlobalSet:
			m.globals[in.a] = m.pop()
		case opI32Const, opI64Const, opF32Const, opF64Const:
			m.push(slot{lo: in.lo})
		case opMemorySize:
			m.push32(uint32(len(m.memory) / wasm.PageBytes))
		case opMemoryGrow:
			m.memoryGrow()
		case opRefNull:
			m.push(slot{})
		case opRefIsNull:
			m.top().lo = bit(m.top().lo == 0)
		case opRefFunc:
			m.push(funcRef(in.a))
		default:
			switch op := in.op; {
			case op >= opI32Load && op <= opI64Store32:
				m.access(in)
			case op >= opI32Eqz && op <= opI64Extend32S:
				m.numeric(op)
			case op >= opTruncSat && op < opMemInit:
				m.top().lo = truncSat(op-opTruncSat, m.top().lo)
			case op>>16 == vecPrefix:
				m.vector(in)
			default:
				m.bulk(in)
			}
		}
	}
	return 0, false
}

// branch leaves blocks and returns the next instruction.
func (m *machine) branch(depth uint32) (pc int) {
	at := len(m.labels) - 1 - int(depth)
	l := m.labels[at]
	m.labels = m.labels[:at]
	m.slide(l.height, l.arity)
	return l.pc
}

// callee returns the function that an indirect call finds in its table, or traps.
func (m *machine) callee(in *instr) uint32 {
	ref := m.tables[in.b].slots(m.pop32(), 1)[0]
	if ref.lo == 0 {
		panic(TrapTable)
	}
	f := uint32(ref.lo - 1)
	want, got := m.types[in.a], m.typeOf(f)
	if !slices.Equal(want.Params, got.Params) || !slices.Equal(want.Results, got.Results) {
		panic(TrapSignature)
	}
	return f
}
