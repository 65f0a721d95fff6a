package oracle

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/stockade-dev/stockade/host/wasm"
)

// module is a decoded module, ready to be instantiated.
type module struct {
	types     []wasm.FuncType
	imported  int // number of imported functions, all of them "env"."host"
	funcTypes []uint32
	funcs     []function // without the imported ones
	tables    []wasm.Table
	memory    *wasm.Limits
	globals   []global
	elems     []segment
	datas     []segment
	start     int // index of the start function; -1: none
	run       int
}

type global struct {
	typ  wasm.ValType
	init slot
}

// segment is a data or an element segment.
type segment struct {
	active, declared bool
	table            uint32
	offset           uint32
	bytes            []byte // of a data segment
	refs             []slot // of an element segment
}

type function struct {
	params, results int
	locals          int // number of locals without the parameters
	code            []instr
	labels          []uint32 // of all br_table instructions
}

// instr is an instruction with its immediates. Their meaning depends on op.
type instr struct {
	op      uint32
	counter uint16 // index of its counter in machine.counts
	lane    uint8
	// a and b are indices in the order of the format, or the numbers of parameters and
	// results of a block, or the start and the number of the labels of a br_table in
	// function.labels.
	a, b uint32
	// lo is a constant, or the offset of a memory access, or the end of the block; hi is
	// the upper half of a vector, or the start of the else branch (the end of the block,
	// if there is none).
	lo, hi uint64
}

// counters is the number of values of instr.counter: 256 for instructions without a
// prefix, and as many for each of the two prefixes.
const counters = 3 * 256

func counterIndex(op uint32) (uint16, error) {
	switch op >> 16 {
	case 0:
		return uint16(op), nil
	case miscPrefix, vecPrefix:
		if sub := op & 0xffff; sub < 256 {
			return uint16((op>>16-miscPrefix+1)<<8 | sub), nil
		}
	}
	return 0, fmt.Errorf("unknown instruction %#x", op)
}

// opcode is the reverse of counterIndex.
func opcode(count int) uint32 {
	if count < 256 {
		return uint32(count)
	}
	return uint32(miscPrefix-1+count>>8)<<16 | uint32(count&0xff)
}

var errCutOff = errors.New("cut off")

// reader reads the fields of a section. It panics with an error at the first malformed
// field; decode recovers.
type reader struct{ data []byte }

func (r *reader) bytes(n int) []byte {
	if n > len(r.data) {
		panic(errCutOff)
	}
	out := r.data[:n]
	r.data = r.data[n:]
	return out
}

func (r *reader) byte() byte { return r.bytes(1)[0] }

func (r *reader) u32() uint32 {
	v := uint64(0)
	for shift := 0; shift < 35; shift += 7 {
		b := r.byte()
		v |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return uint32(v)
		}
	}
	panic(errors.New("number is too long"))
}

// signed reads a signed number of up to that many bits.
func (r *reader) signed(bits int) int64 {
	v := int64(0)
	for shift := 0; shift < bits; shift += 7 {
		b := r.byte()
		v |= int64(b&0x7f) << shift
		if b < 0x80 {
			if shift+7 < 64 && b&0x40 != 0 {
				v |= -1 << (shift + 7)
			}
			return v
		}
	}
	panic(errors.New("number is too long"))
}

func (r *reader) vector() slot {
	b := r.bytes(16)
	return slot{binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])}
}

func decode(data []byte) (_ *module, err error) {
	m, err := wasm.Decode(data)
	if err != nil {
		return nil, err
	}
	defer func() {
		switch r := recover().(type) {
		case nil:
		case error:
			err = fmt.Errorf("invalid module: %w", r)
		default:
			panic(r)
		}
	}()
	out := &module{types: m.Types, tables: m.Tables, start: -1}
	for _, imp := range m.Imports {
		if imp.Kind != wasm.KindFunc || imp.Module != HostModule || imp.Name != HostName {
			return nil, fmt.Errorf("import %q %q is not known", imp.Module, imp.Name)
		}
		out.funcTypes = append(out.funcTypes, imp.Type)
		out.imported++
	}
	out.funcTypes = append(out.funcTypes, m.Funcs...)
	if len(m.Memories) > 0 {
		out.memory = &m.Memories[0]
	}
	if m.HasStart {
		out.start = int(m.Start)
	}
	run, ok := m.Export(RunName)
	if !ok || run.Kind != wasm.KindFunc || len(out.typeOf(run.Index).Params) > 0 {
		return nil, fmt.Errorf("there is no function %q without parameters", RunName)
	}
	out.run = int(run.Index)
	for _, s := range m.Sections {
		r := &reader{s.Payload}
		switch s.ID {
		case wasm.SectionGlobal:
			for range r.u32() {
				g := global{typ: wasm.ValType(r.byte())}
				r.byte() // mutability
				g.init = r.constant(out)
				out.globals = append(out.globals, g)
			}
		case wasm.SectionElement:
			for range r.u32() {
				out.elems = append(out.elems, r.elements(out))
			}
		case wasm.SectionCode:
			for i := range r.u32() {
				body := &reader{r.bytes(int(r.u32()))}
				t := m.Types[m.Funcs[i]]
				out.funcs = append(out.funcs, body.function(t, m.Types))
			}
		case wasm.SectionData:
			for range r.u32() {
				flags := r.u32()
				d := segment{active: flags != 1}
				if flags == 2 {
					r.u32() // memory 0
				}
				if d.active {
					d.offset = uint32(r.constant(out).lo)
				}
				d.bytes = r.bytes(int(r.u32()))
				out.datas = append(out.datas, d)
			}
		}
	}
	return out, nil
}

// typeOf returns the signature of a function by its index.
func (m *module) typeOf(f uint32) wasm.FuncType { return m.types[m.funcTypes[f]] }

// constant reads and evaluates a constant expression.
func (r *reader) constant(m *module) (v slot) {
	for {
		switch op := r.byte(); op {
		case opEnd:
			return v
		case opI32Const:
			v = slot{lo: uint64(uint32(r.signed(32)))}
		case opI64Const:
			v = slot{lo: uint64(r.signed(64))}
		case opF32Const:
			v = slot{lo: uint64(binary.LittleEndian.Uint32(r.bytes(4)))}
		case opF64Const:
			v = slot{lo: binary.LittleEndian.Uint64(r.bytes(8))}
		case opGlobalGet:
			v = m.globals[r.u32()].init
		case opRefNull:
			r.byte()
			v = slot{}
		case opRefFunc:
			v = funcRef(r.u32())
		case vecPrefix:
			if sub := r.u32(); sub != opV128Const-vec {
				panic(fmt.Errorf("vector instruction %d is not constant", sub))
			}
			v = r.vector()
		default:
			panic(fmt.Errorf("instruction %#x is not constant", op))
		}
	}
}

// elements reads an element segment.
func (r *reader) elements(m *module) segment {
	flags := r.u32()
	active, explicit, exprs := flags&1 == 0, flags&2 != 0, flags&4 != 0
	e := segment{active: active, declared: !active && explicit}
	if active {
		if explicit {
			e.table = r.u32()
		}
		e.offset = uint32(r.constant(m).lo)
	}
	if !active || explicit {
		r.byte() // kind or type of the elements
	}
	for range r.u32() {
		if exprs {
			e.refs = append(e.refs, r.constant(m))
		} else {
			e.refs = append(e.refs, funcRef(r.u32()))
		}
	}
	return e
}
