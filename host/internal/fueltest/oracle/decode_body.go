package oracle

import (
	"encoding/binary"
	"errors"

	"github.com/stockade-dev/stockade/host/wasm"
)

// function reads a function body.
func (r *reader) function(t wasm.FuncType, types []wasm.FuncType) function {
	f := function{params: len(t.Params), results: len(t.Results)}
	for range r.u32() {
		f.locals += int(r.u32())
		r.byte() // their type: the initial value is zero or null, which is zero
	}
	var open []int // the blocks around the instruction, as indices in f.code
	for len(r.data) > 0 {
		in := r.instr(&f, types)
		here := len(f.code)
		switch in.op {
		case opBlock, opLoop, opIf:
			open = append(open, here)
		case opElse:
			f.code[open[len(open)-1]].hi = uint64(here)
		case opEnd:
			if len(open) == 0 { // of the function
				if len(r.data) > 0 {
					panic(errors.New("there is code after the end of a function"))
				}
				break
			}
			block := &f.code[open[len(open)-1]]
			block.lo = uint64(here)
			if block.op == opIf && block.hi != 0 {
				f.code[block.hi].lo = uint64(here)
				block.hi++ // the else branch starts after the else
			} else {
				block.hi = uint64(here)
			}
			open = open[:len(open)-1]
		}
		f.code = append(f.code, in)
	}
	if len(open) > 0 {
		panic(errCutOff)
	}
	return f
}

// instr reads an instruction.
func (r *reader) instr(f *function, types []wasm.FuncType) (in instr) {
	in.op = uint32(r.byte())
	if in.op == miscPrefix || in.op == vecPrefix {
		in.op = in.op<<16 | r.u32()
	}
	var err error
	if in.counter, err = counterIndex(in.op); err != nil {
		panic(err)
	}
	switch op := in.op; op {
	case opBlock, opLoop, opIf:
		in.a, in.b = r.blockType(types)
	case opBr, opBrIf, opCall, opReturnCall, opRefFunc,
		opLocalGet, opLocalSet, opLocalTee, opGlobalGet, opGlobalSet, opTableGet, opTableSet,
		opDataDrop, opElemDrop, opTableGrow, opTableSize, opTableFill:
		in.a = r.u32()
	case opCallIndirect, opReturnCallIndirect, opMemInit, opMemCopy, opTableInit, opTableCopy:
		in.a, in.b = r.u32(), r.u32()
	case opBrTable:
		in.a, in.b = uint32(len(f.labels)), r.u32()+1 // the default label is the last
		for range in.b {
			f.labels = append(f.labels, r.u32())
		}
	case opSelectTyped:
		r.bytes(int(r.u32()))
	case opMemorySize, opMemoryGrow, opMemFill, opRefNull:
		r.byte() // memory 0, or the type of the reference
	case opI32Const:
		in.lo = uint64(uint32(r.signed(32)))
	case opI64Const:
		in.lo = uint64(r.signed(64))
	case opF32Const:
		in.lo = uint64(binary.LittleEndian.Uint32(r.bytes(4)))
	case opF64Const:
		in.lo = binary.LittleEndian.Uint64(r.bytes(8))
	default:
		if op >= opI32Load && op <= opI64Store32 {
			in.lo = r.memArg()
		} else if op>>16 == vecPrefix {
			r.vecImmediates(&in)
		}
	}
	return in
}

func (r *reader) vecImmediates(in *instr) {
	switch sub := in.op & 0xffff; {
	case sub <= 11, sub == 92, sub == 93: // loads and stores
		in.lo = r.memArg()
	case sub >= 84 && sub <= 91: // loads and stores of a lane
		in.lo = r.memArg()
		in.lane = r.byte()
	case in.op == opV128Const, in.op == opShuffle:
		v := r.vector()
		in.lo, in.hi = v.lo, v.hi
	case sub >= 21 && sub <= 34: // extract_lane and replace_lane
		in.lane = r.byte()
	}
}

// memArg reads the alignment, which is only a hint, and the offset.
func (r *reader) memArg() uint64 {
	r.u32()
	return uint64(r.u32())
}

// blockType reads the type of a block and returns its numbers of parameters and results.
func (r *reader) blockType(types []wasm.FuncType) (params, results uint32) {
	switch v := r.signed(33); {
	case v >= 0:
		return uint32(len(types[v].Params)), uint32(len(types[v].Results))
	case v == -0x40:
		return 0, 0
	}
	return 0, 1
}
