package oracle

import (
	"math"
	"math/bits"
)

// numeric executes an instruction that computes a number from one or two numbers.
func (m *machine) numeric(op uint32) {
	if twoOperands(op) {
		b := m.pop().lo
		m.top().lo = arithmetic(op, m.top().lo, b)
	} else {
		m.top().lo = arithmetic(op, m.top().lo, 0)
	}
}

// twoOperands reports whether a numeric instruction has two operands.
func twoOperands(op uint32) bool {
	switch {
	case op == 0x45, op == 0x50: // eqz
		return false
	case op <= 0x66: // comparisons
		return true
	}
	return op >= 0x6a && op <= 0x78 || op >= 0x7c && op <= 0x8a || op >= 0x92 && op <= 0x98 || op >= 0xa0 && op <= 0xa6
}

// arithmetic computes one instruction; b is zero if there is only one operand.
func arithmetic(op uint32, a, b uint64) uint64 {
	switch {
	case op < 0x50 || op >= 0x67 && op < 0x79:
		return i32(op, uint32(a), uint32(b))
	case op < 0x5b || op >= 0x79 && op < 0x8b:
		return i64(op, a, b)
	case op < 0x67:
		return compareFloats(op, a, b)
	case op < 0xa7:
		return floatOp(op, a, b)
	}
	return convert(op, a)
}

func i32(op uint32, a, b uint32) uint64 {
	sa, sb := int32(a), int32(b)
	switch op {
	case 0x45: // i32.eqz
		return bit(a == 0)
	case 0x46: // i32.eq
		return bit(a == b)
	case 0x47: // i32.ne
		return bit(a != b)
	case 0x48: // i32.lt_s
		return bit(sa < sb)
	case 0x49: // i32.lt_u
		return bit(a < b)
	case 0x4a: // i32.gt_s
		return bit(sa > sb)
	case 0x4b: // i32.gt_u
		return bit(a > b)
	case 0x4c: // i32.le_s
		return bit(sa <= sb)
	case 0x4d: // i32.le_u
		return bit(a <= b)
	case 0x4e: // i32.ge_s
		return bit(sa >= sb)
	case 0x4f: // i32.ge_u
		return bit(a >= b)
	case 0x67: // i32.clz
		return uint64(bits.LeadingZeros32(a))
	case 0x68: // i32.ctz
		return uint64(bits.TrailingZeros32(a))
	case 0x69: // i32.popcnt
		return uint64(bits.OnesCount32(a))
	}
	var v uint32
	switch op {
	case 0x6a: // i32.add
		v = a + b
	case 0x6b: // i32.sub
		v = a - b
	case 0x6c: // i32.mul
		v = a * b
	case 0x6d: // i32.div_s
		if b != 0 && sa == math.MinInt32 && sb == -1 {
			panic(TrapOverflow)
		}
		v = uint32(sa / nonZero(sb))
	case 0x6e: // i32.div_u
		v = a / nonZero(b)
	case 0x6f: // i32.rem_s
		v = uint32(sa % nonZero(sb))
	case 0x70: // i32.rem_u
		v = a % nonZero(b)
	case 0x71: // i32.and
		v = a & b
	case 0x72: // i32.or
		v = a | b
	case 0x73: // i32.xor
		v = a ^ b
	case 0x74: // i32.shl
		v = a << (b & 31)
	case 0x75: // i32.shr_s
		v = uint32(sa >> (b & 31))
	case 0x76: // i32.shr_u
		v = a >> (b & 31)
	case 0x77: // i32.rotl
		v = bits.RotateLeft32(a, int(b&31))
	case 0x78: // i32.rotr
		v = bits.RotateLeft32(a, -int(b&31))
	}
	return uint64(v)
}

func i64(op uint32, a, b uint64) uint64 {
	sa, sb := int64(a), int64(b)
	switch op {
	case 0x50: // i64.eqz
		return bit(a == 0)
	case 0x51: // i64.eq
		return bit(a == b)
	case 0x52: // i64.ne
		return bit(a != b)
	case 0x53: // i64.lt_s
		return bit(sa < sb)
	case 0x54: // i64.lt_u
		return bit(a < b)
	case 0x55: // i64.gt_s
		return bit(sa > sb)
	case 0x56: // i64.gt_u
		return bit(a > b)
	case 0x57: // i64.le_s
		return bit(sa <= sb)
	case 0x58: // i64.le_u
		return bit(a <= b)
	case 0x59: // i64.ge_s
		return bit(sa >= sb)
	case 0x5a: // i64.ge_u
		return bit(a >= b)
	case 0x79: // i64.clz
		return uint64(bits.LeadingZeros64(a))
	case 0x7a: // i64.ctz
		return uint64(bits.TrailingZeros64(a))
	case 0x7b: // i64.popcnt
		return uint64(bits.OnesCount64(a))
	case 0x7c: // i64.add
		return a + b
	case 0x7d: // i64.sub
		return a - b
	case 0x7e: // i64.mul
		return a * b
	case 0x7f: // i64.div_s
		if sa == math.MinInt64 && sb == -1 {
			panic(TrapOverflow)
		}
		return uint64(sa / nonZero(sb))
	case 0x80: // i64.div_u
		return a / nonZero(b)
	case 0x81: // i64.rem_s
		return uint64(sa % nonZero(sb))
	case 0x82: // i64.rem_u
		return a % nonZero(b)
	case 0x83: // i64.and
		return a & b
	case 0x84: // i64.or
		return a | b
	case 0x85: // i64.xor
		return a ^ b
	case 0x86: // i64.shl
		return a << (b & 63)
	case 0x87: // i64.shr_s
		return uint64(sa >> (b & 63))
	case 0x88: // i64.shr_u
		return a >> (b & 63)
	case 0x89: // i64.rotl
		return bits.RotateLeft64(a, int(b&63))
	}
	return bits.RotateLeft64(a, -int(b&63)) // i64.rotr
}

func nonZero[T int32 | uint32 | int64 | uint64](divisor T) T {
	if divisor == 0 {
		panic(TrapDivideZero)
	}
	return divisor
}

func compareFloats(op uint32, a, b uint64) uint64 {
	if op < opF64Eq { // an f32 becomes an f64 without loss
		return compare(op-opF32Eq, float64(f32(a)), float64(f32(b)))
	}
	return compare(op-opF64Eq, f64(a), f64(b))
}

func compare(op uint32, a, b float64) uint64 {
	switch op {
	case 0: // eq
		return bit(a == b)
	case 1: // ne
		return bit(a != b)
	case 2: // lt
		return bit(a < b)
	case 3: // gt
		return bit(a > b)
	case 4: // le
		return bit(a <= b)
	}
	return bit(a >= b)
}

const (
	sign32 = 1 << 31
	sign64 = 1 << 63
)

// floatOp computes the instructions whose operands and result are floats.
func floatOp(op uint32, a, b uint64) uint64 {
	switch op { // on bits
	case 0x8b: // f32.abs
		return a &^ sign32
	case 0x8c: // f32.neg
		return a ^ sign32
	case 0x98: // f32.copysign
		return a&^sign32 | b&sign32
	case 0x99: // f64.abs
		return a &^ sign64
	case 0x9a: // f64.neg
		return a ^ sign64
	case 0xa6: // f64.copysign
		return a&^sign64 | b&sign64
	}
	if op >= 0x99 {
		const fromF32 = 0x99 - 0x8b // the instructions come in the same order
		x, y := f64(a), f64(b)
		switch op - fromF32 {
		case 0x92: // add
			return bits64(x + y)
		case 0x93: // sub
			return bits64(x - y)
		case 0x94: // mul
			return bits64(x * y)
		case 0x95: // div
			return bits64(x / y)
		}
		return bits64(floatOp64(op-fromF32, x, y))
	}
	x, y := f32(a), f32(b)
	switch op {
	case 0x92: // add
		return bits32(x + y)
	case 0x93: // sub
		return bits32(x - y)
	case 0x94: // mul
		return bits32(x * y)
	case 0x95: // div
		return bits32(x / y)
	}
	return bits32(float32(floatOp64(op, float64(x), float64(y))))
}

// floatOp64 computes the instructions that give the same result for an f32 when computed
// as an f64. (For the square root, this holds because an f64 has more than twice the
// digits.)
func floatOp64(op uint32, a, b float64) float64 {
	switch op {
	case 0x8d: // ceil
		return math.Ceil(a)
	case 0x8e: // floor
		return math.Floor(a)
	case 0x8f: // trunc
		return math.Trunc(a)
	case 0x90: // nearest
		return math.RoundToEven(a)
	case 0x91: // sqrt
		return math.Sqrt(a)
	}
	if a != a || b != b { // in Go an infinity can win
		return math.NaN()
	}
	if op == 0x96 { // min
		return math.Min(a, b)
	}
	return math.Max(a, b)
}

func convert(op uint32, a uint64) uint64 {
	switch op {
	case 0xa7, 0xbc: // i32.wrap_i64, i32.reinterpret_f32
		return uint64(uint32(a))
	case 0xa8, 0xa9, 0xaa, 0xab: // i32.trunc_f32_s, f32_u, f64_s, f64_u
		return trunc(op-0xa8, a)
	case 0xac, 0xc4: // i64.extend_i32_s, i64.extend32_s
		return uint64(int32(a))
	case 0xae, 0xaf, 0xb0, 0xb1: // i64.trunc_f32_s, f32_u, f64_s, f64_u
		return trunc(op-0xae+4, a)
	case 0xb2: // f32.convert_i32_s
		return bits32(float32(int32(a)))
	case 0xb3: // f32.convert_i32_u
		return bits32(float32(uint32(a)))
	case 0xb4: // f32.convert_i64_s
		return bits32(float32(int64(a)))
	case 0xb5: // f32.convert_i64_u
		return bits32(float32(a))
	case 0xb6: // f32.demote_f64
		return bits32(float32(f64(a)))
	case 0xb7: // f64.convert_i32_s
		return bits64(float64(int32(a)))
	case 0xb8: // f64.convert_i32_u
		return bits64(float64(uint32(a)))
	case 0xb9: // f64.convert_i64_s
		return bits64(float64(int64(a)))
	case 0xba: // f64.convert_i64_u
		return bits64(float64(a))
	case 0xbb: // f64.promote_f32
		return bits64(float64(f32(a)))
	case 0xc0: // i32.extend8_s
		return uint64(uint32(int8(a)))
	case 0xc1: // i32.extend16_s
		return uint64(uint32(int16(a)))
	case 0xc2: // i64.extend8_s
		return uint64(int8(a))
	case 0xc3: // i64.extend16_s
		return uint64(int16(a))
	}
	return a // i64.extend_i32_u and the other reinterpretations
}

// truncation describes one of the eight instructions that convert a float to an integer,
// in the order of their opcodes.
type truncation struct {
	from64, signed, to64 bool
	above, below         float64 // integral values between above and below are in range
}

func truncationOf(i uint32) truncation {
	t := truncation{from64: i&2 != 0, signed: i&1 == 0, to64: i >= 4}
	t.above, t.below = -1, 1<<32
	switch {
	case t.signed && t.to64:
		// The float before the smallest one in range.
		t.above, t.below = math.Nextafter(-1<<63, math.Inf(-1)), 1<<63
	case t.signed:
		t.above, t.below = -1<<31-1, 1<<31
	case t.to64:
		t.below = 1 << 64
	}
	return t
}

func (t truncation) operand(a uint64) float64 {
	if t.from64 {
		return math.Trunc(f64(a))
	}
	return math.Trunc(float64(f32(a)))
}

// integer converts a value that is in range.
func (t truncation) integer(v float64) uint64 {
	switch {
	case t.signed && t.to64:
		return uint64(int64(v))
	case t.signed:
		return uint64(uint32(int32(v)))
	}
	return uint64(v)
}

// trunc converts or traps. i is the position of the instruction among the eight.
func trunc(i uint32, a uint64) uint64 {
	t := truncationOf(i)
	v := t.operand(a)
	if v != v {
		panic(TrapConversion)
	}
	if v <= t.above || v >= t.below {
		panic(TrapOverflow)
	}
	return t.integer(v)
}

// truncSat converts, or returns the nearest integer.
func truncSat(i uint32, a uint64) uint64 {
	t := truncationOf(i)
	v := t.operand(a)
	width := 32
	if t.to64 {
		width = 64
	}
	largest := ^uint64(0) >> (64 - width)
	switch {
	case v != v:
		return 0
	case v <= t.above && t.signed:
		return 1 << (width - 1)
	case v <= t.above:
		return 0
	case v >= t.below && t.signed:
		return largest >> 1
	case v >= t.below:
		return largest
	}
	return t.integer(v)
}
