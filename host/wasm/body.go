package wasm

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
)

// MaxLocals limits the number of locals that a function may declare; with more it is malformed.
// Eight bytes of a file can ask for four thousand million.
const MaxLocals = 50_000

// Instr is one instruction of a function body.
type Instr struct {
	Offset uint32 // offset of the opcode in Body.Code
	Op     Op
	// Arg is the immediate that is an index or the depth of a label; 0 if there is none. Types
	// of blocks and references are not stored. If there are two, it is the first in the binary
	// format: the type of call_indirect, the segment of memory.init and table.init, the
	// destination of table.copy. For br_table and try_table it is the position of their first
	// label in Body.Labels.
	Arg  uint32
	Arg2 uint32 // the second index; for br_table and try_table the number of labels
}

// Body is the code of one function.
type Body struct {
	Func   uint32 // index of the function, imports first
	Code   []byte // local declarations and instructions; aliases the module
	Offset int    // offset of Code in the module

	LocalsEnd   int       // offset in Code of the first instruction
	LocalGroups uint32    // number of groups in the declarations of locals
	Locals      uint32    // number of declared locals, without the parameters
	Params      uint32    // number of parameters
	LocalTypes  []ValType // types of the parameters and then of the locals

	Instrs []Instr  // the last one ends the function
	Labels []uint32 // depths of labels in br_table, the default last, and in clauses of try_table
}

// End returns the offset in Code of the end of instruction i.
func (b *Body) End(i int) int {
	if i+1 < len(b.Instrs) {
		return int(b.Instrs[i+1].Offset)
	}
	return len(b.Code)
}

// Bodies reads the functions of a module one after another. It checks every index against the
// module: of types, functions, tables, memories, globals, tags, segments, locals and labels. It
// does not check the types of operands.
type Bodies struct {
	// MaxBytes limits the size of bodies in bytes: Next returns a larger one without its
	// instructions, which are then not checked, and with locals of another function. 0: no limit.
	MaxBytes int

	m    *Module
	r    reader
	next int // index in Module.Funcs of the function that Next reads

	declared []bool // for each function: ref.func may name it; nil until the first ref.func

	body  Body
	depth int // number of labels that enclose the current instruction
}

// Bodies returns a reader of the functions that the module defines.
func (m *Module) Bodies() *Bodies {
	b := &Bodies{m: m}
	b.body.Func = uint32(m.ImportedFuncs())
	for _, s := range m.Sections {
		if s.ID == SectionCode {
			b.r = reader{data: m.Raw, pos: s.PayloadOffset, end: s.End()}
			b.r.u32("number of function bodies")
		}
	}
	return b
}

// CheckExtensions returns a [*FormatError] with an Extension if the module uses an extension of
// WebAssembly that the host does not run, and the error of [Bodies.Err] if a function is
// malformed. It skips functions of more than longest bytes; with 0 it skips none.
func (m *Module) CheckExtensions(longest int) error {
	uses, b := m.Extension, m.Bodies()
	b.MaxBytes = longest
	for body, ok := b.Next(); ok && uses == ""; body, ok = b.Next() {
		for _, in := range body.Instrs {
			uses = cmp.Or(uses, in.Op.extension())
		}
	}
	if uses == "" {
		return b.Err()
	}
	return &FormatError{Extension: uses}
}

// isDeclared reports whether a part of the module outside of functions refers to a function:
// ref.func may name only such functions. The engine's own check no longer works once ref.func
// is rewritten or the start function is exported, so it is done here.
func (b *Bodies) isDeclared(function uint32) bool {
	if b.declared == nil {
		b.declared = make([]bool, b.m.Count[KindFunc])
		for _, at := range b.m.FuncRefs {
			i, _ := binary.Uvarint(b.m.Raw[at:])
			b.declared[i] = true
		}
	}
	return b.declared[function]
}

// Next reads the next function. It returns false at the end, and if the function is malformed or
// unsupported, see Err. The next call overwrites the body.
func (b *Bodies) Next() (*Body, bool) {
	if b.next == len(b.m.Funcs) || !b.r.ok() {
		return nil, false
	}
	if b.next > 0 {
		b.body.Func++
	}
	typ := &b.m.Types[b.m.Funcs[b.next]]
	b.next++
	b.body.Params = uint32(len(typ.Params))
	size := b.r.u32("size of a function body")
	from := b.r.pos
	b.r.skip(uint64(size), "function body")
	if !b.r.ok() {
		return nil, false
	}
	b.body.Offset, b.body.Code = from, b.r.data[from:b.r.pos]
	r := reader{data: b.r.data, pos: from, end: b.r.pos, numTypes: len(b.m.Types)}
	b.body.Instrs, b.body.Labels = b.body.Instrs[:0], b.body.Labels[:0]
	if b.MaxBytes > 0 && len(b.body.Code) > b.MaxBytes {
		return &b.body, true
	}
	b.locals(&r)
	b.instructions(&r)
	if b.r.err = r.err; r.err != nil {
		return nil, false
	}
	return &b.body, true
}

// Err returns the error for which Next returned false; nil: the functions ended.
func (b *Bodies) Err() error {
	if b.r.err == nil {
		return nil
	}
	return fmt.Errorf("function %d: %w", b.body.Func, b.r.err)
}

func (b *Bodies) locals(r *reader) {
	start := r.pos
	types := append(b.body.LocalTypes[:0], b.m.Types[b.m.Funcs[b.next-1]].Params...)
	b.body.LocalGroups = uint32(r.count(MaxModuleBytes, 2, "groups of locals"))
	var n uint64
	for range b.body.LocalGroups {
		k := r.u32("number of locals")
		t := r.valType("local")
		if n += uint64(k); n > MaxLocals {
			r.failAt(start, "more than %d locals", MaxLocals)
		}
		if !r.ok() {
			return
		}
		for range k {
			types = append(types, t)
		}
	}
	b.body.LocalTypes = types
	b.body.Locals = uint32(n)
	b.body.LocalsEnd = r.pos - b.body.Offset
}

func (b *Bodies) instructions(r *reader) {
	instrs, labels := b.body.Instrs[:0], b.body.Labels[:0]
	b.depth = 1
	for b.depth > 0 {
		if r.err != nil {
			return
		}
		if len(instrs) == cap(instrs) {
			instrs = slices.Grow(instrs, 1)
		}
		instrs = instrs[:len(instrs)+1]
		in := &instrs[len(instrs)-1]
		*in = Instr{Offset: uint32(r.pos - b.body.Offset)}
		if r.pos >= r.end {
			r.failAt(r.pos, "the end instruction of a block is missing")
			return
		}
		op := r.data[r.pos]
		r.pos++
		in.Op = Op(op)
		if op >= 0xfc {
			in.Op = readPrefixedOp(r, op)
		}
		switch imm := immediates[in.Op]; imm {
		case immNone:
			if in.Op == OpEnd {
				b.depth--
			}
		case immLocal:
			in.Arg = r.index(int(b.body.Params+b.body.Locals), "local")
		case immI32:
			r.skipSigned(32, "constant")
		case immI64:
			r.skipSigned(64, "constant")
		case immMemarg:
			b.memarg(r)
		default:
			labels = b.immediate(r, in, imm, labels)
		}
	}
	b.body.Instrs, b.body.Labels = instrs, labels
	if r.ok() && r.pos != r.end {
		r.failAt(r.pos, "%d bytes after the end of the function", r.end-r.pos)
	}
}

func readPrefixedOp(r *reader, prefix byte) Op {
	start := r.pos
	base, last := OpMisc, OpTableFill
	switch prefix {
	case 0xfd:
		base, last = OpVector, OpVector+0xff
	case 0xfe:
		base, last = OpAtomic, MaxOp
	case 0xff:
		base, last = 0xff, 0xff
	}
	var sub uint32
	if prefix == 0xfc {
		sub = r.u32("opcode")
	} else if sub = uint32(r.byte("opcode")); sub >= 0x80 {
		// The engine reads one byte, and takes the second byte of a number above 127 for a nop.
		// So only numbers that both readers understand alike are accepted.
		switch second := r.byte("opcode"); {
		case second == 2 && sub <= 0x93:
			sub += 0x80 // relaxed SIMD: 0x100 to 0x113
		case second != 1:
			sub = math.MaxUint32
		}
	}
	if sub > uint32(last-base) {
		extension := ""
		switch {
		case prefix == 0xfc && sub >= 19 && sub <= 22:
			extension = "wide arithmetic"
		case prefix == 0xfd && sub != math.MaxUint32:
			extension = "relaxed SIMD"
		}
		r.failUnsupported(start, extension, "unknown instruction 0x%02x %d", prefix, sub)
		return OpNop
	}
	return base + Op(sub)
}

// immediate reads the rarer immediates of an instruction. It returns labels, to which it appends
// the labels of the instruction.
func (b *Bodies) immediate(r *reader, in *Instr, imm immediate, labels []uint32) []uint32 {
	switch imm {
	case immBlock:
		b.blockType(r)
		b.depth++
	case immTry:
		b.blockType(r)
		in.Arg = uint32(len(labels))
		n := r.count(1<<16, 2, "catch clauses")
		for range n {
			start := r.pos
			kind := r.byte("catch clause")
			if kind > 3 {
				r.failAt(start, "catch clause of the unknown kind 0x%02x", kind)
			}
			if kind < 2 {
				b.index(r, KindTag)
			}
			labels = append(labels, r.index(b.depth, "label"))
		}
		in.Arg2 = uint32(n)
		b.depth++
	case immLabel:
		in.Arg = r.index(b.depth, "label")
	case immLabels:
		in.Arg = uint32(len(labels))
		n := r.count(MaxModuleBytes, 1, "labels")
		for i := 0; i <= n && r.ok(); i++ {
			labels = append(labels, r.index(b.depth, "label"))
		}
		in.Arg2 = uint32(n) + 1
	case immFunc:
		at := r.pos
		in.Arg = b.index(r, KindFunc)
		if in.Op == OpRefFunc && r.ok() && !b.isDeclared(in.Arg) {
			r.failAt(at, "undeclared reference to function %d", in.Arg)
		}
	case immIndirect:
		in.Arg = r.index(len(b.m.Types), "type")
		in.Arg2 = b.index(r, KindTable)
	case immTypes:
		for range r.count(MaxParams, 1, "types of select") {
			r.valType("type of select")
		}
	case immTag:
		in.Arg = b.index(r, KindTag)
	case immGlobal:
		in.Arg = b.index(r, KindGlobal)
	case immTable:
		in.Arg = b.index(r, KindTable)
	case immTableTable:
		in.Arg = b.index(r, KindTable)
		in.Arg2 = b.index(r, KindTable)
	case immElemTable:
		in.Arg = r.index(b.m.NumElementSegments, "element segment")
		in.Arg2 = b.index(r, KindTable)
	case immElem:
		in.Arg = r.index(b.m.NumElementSegments, "element segment")
	case immDataMem:
		in.Arg = r.index(b.m.NumDataSegments, "data segment")
		b.memory(r)
	case immData:
		in.Arg = r.index(b.m.NumDataSegments, "data segment")
	case immMem:
		b.memory(r)
	case immMemMem:
		b.memory(r)
		b.memory(r)
	case immMemargLane:
		b.memarg(r)
		r.byte("lane")
	case immLane:
		r.byte("lane")
	case immBytes4:
		r.skip(4, "constant")
	case immBytes8:
		r.skip(8, "constant")
	case immBytes16:
		r.skip(16, "constant")
	case immHeap:
		r.refType("type of ref.null")
	case immZero:
		start := r.pos
		if r.byte("zero byte") != 0 {
			r.failAt(start, "a byte that must be zero is not")
		}
	default:
		r.failUnsupported(b.body.Offset+int(in.Offset), in.Op.extension(), "unknown instruction 0x%02x", byte(in.Op))
	}
	return labels
}

// index reads an index of a kind. It fails if the module has no such item.
func (b *Bodies) index(r *reader, k Kind) uint32 { return r.index(b.m.Count[k], k.String()) }

// blockType reads a block type: no result, one result, or the index of a function type.
func (b *Bodies) blockType(r *reader) {
	start := r.pos
	switch t := r.byte("block type"); {
	case !r.ok(), t == 0x40:
	case t >= 0x40 && t < 0x80: // a negative number of one byte
		r.pos = start
		r.valType("block type")
	default:
		r.pos = start
		if i := r.signed33("block type"); r.ok() && (i < 0 || i >= int64(len(b.m.Types))) {
			r.failAt(start, "block type %d, but there are %d types", i, len(b.m.Types))
		}
	}
}

// memory reads the index of a memory. It must be 0, as there is at most one memory.
func (b *Bodies) memory(r *reader) {
	start := r.pos
	if r.byte("memory") != 0 {
		r.failAt(start, "the index of a memory is not a zero byte")
	}
	if b.m.Count[KindMemory] == 0 {
		r.failAt(start, "memory 0, but there are none")
	}
}

// memarg reads the alignment and the offset of a memory access. It refuses the form with the
// index of a memory, whose bit makes the alignment too large.
func (b *Bodies) memarg(r *reader) {
	start := r.pos
	if align := r.u32("alignment"); align > 31 {
		r.failAt(start, "alignment of 2^%d", align)
	}
	if b.m.Count[KindMemory] == 0 {
		r.failAt(start, "memory 0, but there are none")
	}
	r.u32("offset")
}
