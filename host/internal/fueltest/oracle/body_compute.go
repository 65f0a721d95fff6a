package oracle

import "github.com/stockade-dev/stockade/host/wasm"

// sig is an instruction that computes one value from others.
type sig struct {
	op     uint32
	params []valType
	result valType
	lanes  int // number of lanes to choose from by an immediate; 0: no immediate
}

var (
	numericSigs = byResult(numerics())
	vectorSigs  = byResult(vectors())
)

func byResult(list []sig) map[valType][]sig {
	out := make(map[valType][]sig)
	for _, s := range list {
		out[s.result] = append(out[s.result], s)
	}
	return out
}

func numerics() (list []sig) {
	add := func(from, to uint32, result valType, params ...valType) {
		for op := from; op <= to; op++ {
			list = append(list, sig{op: op, params: params, result: result})
		}
	}
	add(0x45, 0x45, i32t, i32t)       // i32.eqz
	add(0x46, 0x4f, i32t, i32t, i32t) // comparisons
	add(0x50, 0x50, i32t, i64t)       // i64.eqz
	add(0x51, 0x5a, i32t, i64t, i64t)
	add(0x5b, 0x60, i32t, f32t, f32t)
	add(0x61, 0x66, i32t, f64t, f64t)
	add(0x67, 0x69, i32t, i32t) // clz, ctz, popcnt
	add(0x6a, 0x78, i32t, i32t, i32t)
	add(0x79, 0x7b, i64t, i64t)
	add(0x7c, 0x8a, i64t, i64t, i64t)
	add(0x8b, 0x91, f32t, f32t) // abs to sqrt
	add(0x92, 0x98, f32t, f32t, f32t)
	add(0x99, 0x9f, f64t, f64t)
	add(0xa0, 0xa6, f64t, f64t, f64t)
	add(0xa7, 0xa7, i32t, i64t) // i32.wrap_i64
	add(0xa8, 0xa9, i32t, f32t) // i32.trunc_f32
	add(0xaa, 0xab, i32t, f64t)
	add(0xac, 0xad, i64t, i32t) // i64.extend_i32
	add(0xae, 0xaf, i64t, f32t)
	add(0xb0, 0xb1, i64t, f64t)
	add(0xb2, 0xb3, f32t, i32t) // f32.convert_i32
	add(0xb4, 0xb5, f32t, i64t)
	add(0xb6, 0xb6, f32t, f64t) // f32.demote_f64
	add(0xb7, 0xb8, f64t, i32t)
	add(0xb9, 0xba, f64t, i64t)
	add(0xbb, 0xbb, f64t, f32t) // f64.promote_f32
	add(0xbc, 0xbc, i32t, f32t) // reinterpretations
	add(0xbd, 0xbd, i64t, f64t)
	add(0xbe, 0xbe, f32t, i32t)
	add(0xbf, 0xbf, f64t, i64t)
	add(0xc0, 0xc1, i32t, i32t) // extend8_s, extend16_s
	add(0xc2, 0xc4, i64t, i64t)
	add(opTruncSat, opTruncSat+1, i32t, f32t)
	add(opTruncSat+2, opTruncSat+3, i32t, f64t)
	add(opTruncSat+4, opTruncSat+5, i64t, f32t)
	add(opTruncSat+6, opTruncSat+7, i64t, f64t)
	add(opRefIsNull, opRefIsNull, i32t, fref)
	add(opRefIsNull, opRefIsNull, i32t, eref)
	return list
}

func vectors() (list []sig) {
	add := func(lanes int, from, to uint32, result valType, params ...valType) {
		for op := from; op <= to; op++ {
			list = append(list, sig{vec | op, params, result, lanes})
		}
	}
	add(0, 13, 14, v128, v128, v128) // i8x16.shuffle, which has other immediates, and swizzle
	add(0, 15, 17, v128, i32t)       // splat
	add(0, 18, 18, v128, i64t)
	add(0, 19, 19, v128, f32t)
	add(0, 20, 20, v128, f64t)
	add(16, 21, 22, i32t, v128) // extract_lane
	add(16, 23, 23, v128, v128, i32t)
	add(8, 24, 25, i32t, v128)
	add(8, 26, 26, v128, v128, i32t)
	add(4, 27, 27, i32t, v128)
	add(4, 28, 28, v128, v128, i32t)
	add(2, 29, 29, i64t, v128)
	add(2, 30, 30, v128, v128, i64t)
	add(4, 31, 31, f32t, v128)
	add(4, 32, 32, v128, v128, f32t)
	add(2, 33, 33, f64t, v128)
	add(2, 34, 34, v128, v128, f64t)
	add(0, 35, 76, v128, v128, v128) // comparisons
	add(0, 77, 77, v128, v128)       // v128.not
	add(0, 78, 81, v128, v128, v128)
	add(0, 82, 82, v128, v128, v128, v128) // v128.bitselect
	add(0, 83, 83, i32t, v128)             // v128.any_true
	for _, shape := range []uint32{96, 128, 160, 192} {
		add(0, shape, shape+1, v128, v128)           // abs, neg
		add(0, shape+3, shape+4, i32t, v128)         // all_true, bitmask
		add(0, shape+11, shape+13, v128, v128, i32t) // shl, shr_s, shr_u
		add(0, shape+14, shape+14, v128, v128, v128) // add
		add(0, shape+17, shape+17, v128, v128, v128) // sub
		if shape > 96 {
			add(0, shape+21, shape+21, v128, v128, v128) // mul
		}
		add(0, shape+22, shape+25, v128, v128, v128) // min and max; for i64x2 comparisons
	}
	add(0, 98, 98, v128, v128) // i8x16.popcnt
	add(0, 218, 219, v128, v128, v128)
	add(0, 224, 225, v128, v128) // f32x4.abs, neg
	add(0, 236, 237, v128, v128)
	return list
}

// compute generates an instruction with a result of a type; false if there is none.
func (b *body) compute(t valType) bool {
	sigs := numericSigs[t]
	if b.vectors && len(vectorSigs[t]) > 0 && (t == v128 || b.src.chance(10)) {
		sigs = vectorSigs[t]
	}
	if len(sigs) == 0 {
		return false
	}
	s := sigs[b.src.n(len(sigs))]
	if s = b.avoidTrap(s); s.op == 0 {
		return true
	}
	b.consume(s.params...)
	switch s.op {
	case 0x6d, 0x6e, 0x6f, 0x70: // i32.div and rem
		if !b.src.chance(max(b.risk, 2)) {
			b.constI32(1)
			b.op(opI32Or)
		}
	case 0x7f, 0x80, 0x81, 0x82: // i64.div and rem
		if !b.src.chance(max(b.risk, 2)) {
			b.op(opI64Const)
			b.signed(1, 64)
			b.op(opI64Or)
		}
	case 0x98, 0xbc, vec | 19, vec | 32: // f32.copysign, i32.reinterpret_f32, f32x4.splat, f32x4.replace_lane
		b.canonicalizeNaN(f32t)
	case 0xa6, 0xbd, vec | 20, vec | 34:
		b.canonicalizeNaN(f64t)
	}
	b.op(s.op)
	if s.op == opShuffle {
		for range 16 {
			b.byte(byte(b.src.n(32)))
		}
	} else if s.lanes > 0 {
		b.byte(byte(b.src.n(s.lanes)))
	}
	b.push(s.result)
	return true
}

// avoidTrap makes it rare that a conversion of a float to an integer traps. It may change
// the instruction. Operation 0 means that all code has been generated.
func (b *body) avoidTrap(s sig) sig {
	i := s.op - 0xa8 // as for trunc
	if s.op >= 0xae {
		i = s.op - 0xae + 4
	}
	switch {
	case s.op < 0xa8 || s.op > 0xb1 || s.op == 0xac || s.op == 0xad:
		return s
	case b.src.chance(max(b.risk, 3)):
		return s
	case b.src.chance(50):
		s.op = opTruncSat + i
		return s
	case b.src.chance(max(b.risk, 3)):
		b.constNaN(s.params[0])
	default:
		b.pushMasked(0xff)
		b.pop(1)
		if s.params[0] == f32t {
			b.op(0xb2) // f32.convert_i32_s
		} else {
			b.op(0xb7) // f64.convert_i32_s
		}
	}
	b.op(s.op)
	b.push(s.result)
	return sig{}
}

// pushMasked generates an i32 whose set bits are all in mask.
func (b *body) pushMasked(mask int32) {
	b.value(i32t)
	b.constI32(mask)
	b.op(opI32And)
}

// canonicalizeNaN replaces a NaN on the top of the stack by the canonical NaN. It is
// needed wherever the bits of a float become visible.
func (b *body) canonicalizeNaN(t valType) {
	i, ok := b.scratch[t]
	if !ok {
		i = b.newLocal(t)
		b.scratch[t] = i
	}
	b.emit(opLocalTee, i)
	b.constNaN(t)
	b.emit(opLocalGet, i)
	b.emit(opLocalGet, i)
	if t == f32t {
		b.op(opF32Eq)
	} else {
		b.op(opF64Eq)
	}
	b.op(opSelect)
}

func (b *body) constNaN(t valType) {
	if t == f32t {
		b.byte(opF32Const, 0, 0, 0xc0, 0x7f)
	} else {
		b.byte(opF64Const, 0, 0, 0, 0, 0, 0, 0xf8, 0x7f)
	}
}

// access is a load or a store; align is the binary logarithm of its size in bytes. lanes
// is the number of lanes of a lane access, else 0.
type access struct {
	op    uint32
	typ   valType
	align uint32
	lanes int
}

var loads = []access{
	{0x28, i32t, 2, 0}, {0x29, i64t, 3, 0}, {0x2a, f32t, 2, 0}, {0x2b, f64t, 3, 0},
	{0x2c, i32t, 0, 0}, {0x2d, i32t, 0, 0}, {0x2e, i32t, 1, 0}, {0x2f, i32t, 1, 0},
	{0x30, i64t, 0, 0}, {0x31, i64t, 0, 0}, {0x32, i64t, 1, 0}, {0x33, i64t, 1, 0}, {0x34, i64t, 2, 0}, {0x35, i64t, 2, 0},
	{vec, v128, 4, 0}, {vec | 1, v128, 3, 0}, {vec | 2, v128, 3, 0}, {vec | 3, v128, 3, 0}, {vec | 4, v128, 3, 0}, {vec | 5, v128, 3, 0}, {vec | 6, v128, 3, 0},
	{vec | 7, v128, 0, 0}, {vec | 8, v128, 1, 0}, {vec | 9, v128, 2, 0}, {vec | 10, v128, 3, 0},
	{vec | 84, v128, 0, 16}, {vec | 85, v128, 1, 8}, {vec | 86, v128, 2, 4}, {vec | 87, v128, 3, 2},
	{vec | 92, v128, 2, 0}, {vec | 93, v128, 3, 0},
}

var stores = []access{
	{0x36, i32t, 2, 0}, {0x37, i64t, 3, 0}, {0x38, f32t, 2, 0}, {0x39, f64t, 3, 0},
	{0x3a, i32t, 0, 0}, {0x3b, i32t, 1, 0}, {0x3c, i64t, 0, 0}, {0x3d, i64t, 1, 0}, {0x3e, i64t, 2, 0},
	{vec | 11, v128, 4, 0},
	{vec | 88, v128, 0, 16}, {vec | 89, v128, 1, 8}, {vec | 90, v128, 2, 4}, {vec | 91, v128, 3, 2},
}

// canAccessMemory reports whether code may access the memory: whether it has pages, or is
// accessed at a risk.
func (b *body) canAccessMemory() bool {
	return b.memory != nil && (b.memory.Min > 0 || b.src.chance(b.risk))
}

// address generates the address of an access: mostly a valid one.
func (b *body) address() {
	switch {
	case b.src.chance(b.risk):
		b.value(i32t)
	case b.memory.Min > 0 && b.src.chance(8): // right at the end
		b.pushConst(int(b.memory.Min*wasm.PageBytes) - 100 + b.src.n(100-16))
	default:
		b.pushMasked(pick[int32](b.src, 0xff, 0xf, 0xfff, 0x7fff))
	}
}

func (b *body) memArg(a access) {
	b.u32(uint32(b.src.n(int(a.align) + 1)))
	offset := uint32(b.src.n(4)) // with an address at the end of the memory it may be one too large
	if b.src.chance(20) {
		offset = uint32(b.src.n(256))
	}
	if b.src.chance(b.risk) {
		offset = pick[uint32](b.src, 0x10000, 0xffff, 0xffffffff, 0x7fffffff)
	}
	b.u32(offset)
	if a.lanes > 0 {
		b.byte(byte(b.src.n(a.lanes)))
	}
}

// loadAny generates a load of a type, or a table.get; false if neither is possible.
func (b *body) loadAny(t valType) bool {
	if t == fref || t == eref {
		table, ok := b.findTable(t)
		return ok && b.tableGet(table)
	}
	if !b.canAccessMemory() {
		return false
	}
	var fit []access
	for _, l := range loads {
		if l.typ == t {
			fit = append(fit, l)
		}
	}
	l := fit[b.src.n(len(fit))]
	b.address()
	if l.lanes > 0 {
		b.value(v128)
		b.pop(1)
	}
	b.pop(1)
	b.op(l.op)
	b.memArg(l)
	b.push(t)
	return true
}

func (b *body) storeAny() {
	if !b.canAccessMemory() {
		b.op(opNop)
		return
	}
	all := stores
	if !b.vectors {
		all = stores[:9]
	}
	s := all[b.src.n(len(all))]
	if b.src.chance(b.risk) {
		b.pushOperands(i32t, s.typ)
	} else {
		b.address()
		b.value(s.typ)
	}
	b.pop(2)
	if s.typ == f32t || s.typ == f64t {
		b.canonicalizeNaN(s.typ)
	}
	b.op(s.op)
	b.memArg(s)
}

func (b *body) vectorStatement() {
	switch {
	case !b.vectors:
		b.compute(pick(b.src, i32t, i64t, f32t, f64t))
	case b.src.chance(40):
		b.value(v128)
	default:
		b.compute(v128)
	}
}
