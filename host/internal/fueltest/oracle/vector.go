package oracle

import (
	"encoding/binary"
	"fmt"
	"math/bits"
)

// The interpreter knows the vector instructions that Generate uses: every kind of
// immediate, and the arithmetic that exists for every shape.

// lane returns lane i of a vector with lanes of width bits.
func (v slot) lane(width, i int) uint64 {
	half := v.lo
	if i*width >= 64 {
		half = v.hi
	}
	return half >> (i * width % 64) & (^uint64(0) >> (64 - width))
}

func (v *slot) setLane(width, i int, x uint64) {
	half := &v.lo
	if i*width >= 64 {
		half = &v.hi
	}
	mask := ^uint64(0) >> (64 - width) << (i * width % 64)
	*half = *half&^mask | x<<(i*width%64)&mask
}

// lanes returns a vector with the lanes that f returns.
func lanes(width int, f func(i int) uint64) (v slot) {
	for i := range 128 / width {
		v.setLane(width, i, f(i))
	}
	return v
}

// extend extends the sign bit of a lane.
func extend(width int, x uint64) int64 { return int64(x<<(64-width)) >> (64 - width) }

// shape returns the number of bits of a lane, for the shapes i8x16, i16x8, i32x4, i64x2,
// f32x4, f64x2 in this order.
func shape(i uint32) int { return []int{8, 16, 32, 64, 32, 64}[i] }

// vector executes a vector instruction.
func (m *machine) vector(in *instr) {
	switch sub := in.op & 0xffff; {
	case sub <= 11, sub >= 84 && sub <= 93:
		m.vecAccess(sub, in)
	case in.op == opV128Const:
		m.push(slot{in.lo, in.hi})
	case in.op == opShuffle:
		choice := slot{in.lo, in.hi}
		b, a := m.pop(), m.pop()
		m.push(lanes(8, func(i int) uint64 {
			c := int(choice.lane(8, i))
			if c < 16 {
				return a.lane(8, c)
			}
			return b.lane(8, c-16)
		}))
	case sub == 14: // i8x16.swizzle
		choice, a := m.pop(), m.pop()
		m.push(lanes(8, func(i int) uint64 {
			if c := choice.lane(8, i); c < 16 {
				return a.lane(8, int(c))
			}
			return 0
		}))
	case sub >= 15 && sub <= 20: // splat
		x := m.pop().lo
		m.push(lanes(shape(sub-15), func(int) uint64 { return x }))
	case sub >= 21 && sub <= 34:
		m.oneLane(sub, int(in.lane))
	case sub >= 35 && sub <= 64: // i8x16.eq to i32x4.ge_u
		width := shape((sub - 35) / 10)
		b, a := m.pop(), m.pop()
		m.push(lanes(width, func(i int) uint64 {
			x, y := a.lane(width, i), b.lane(width, i)
			op := 0x51 + (sub-35)%10 // the same of i64
			if n := (sub - 35) % 10; n < 2 || n%2 == 0 {
				x, y = uint64(extend(width, x)), uint64(extend(width, y))
			}
			return -i64(op, x, y)
		}))
	case sub >= 65 && sub <= 70: // f32x4.eq to ge
		b, a := m.pop(), m.pop()
		m.push(lanes(32, func(i int) uint64 {
			return -compare(sub-65, float64(f32(a.lane(32, i))), float64(f32(b.lane(32, i))))
		}))
	case sub >= 71 && sub <= 76: // f64x2.eq to ge
		b, a := m.pop(), m.pop()
		m.push(lanes(64, func(i int) uint64 { return -compare(sub-71, f64(a.lane(64, i)), f64(b.lane(64, i))) }))
	case sub >= 77 && sub <= 83:
		m.bitwise(sub)
	case sub >= 214 && sub <= 219: // i64x2.eq, ne, lt_s, gt_s, le_s, ge_s
		b, a := m.pop(), m.pop()
		op := []uint32{0x51, 0x52, 0x53, 0x55, 0x57, 0x59}[sub-214]
		m.push(lanes(64, func(i int) uint64 { return -i64(op, a.lane(64, i), b.lane(64, i)) }))
	case sub >= 96 && sub < 224:
		m.vecInteger(8<<((sub-96)/32), (sub-96)%32)
	case sub == 224, sub == 225: // f32x4.abs, neg
		a := m.pop()
		m.push(lanes(32, func(i int) uint64 { return floatOp(0x8b+sub-224, a.lane(32, i), 0) }))
	case sub == 236, sub == 237: // f64x2.abs, neg
		a := m.pop()
		m.push(lanes(64, func(i int) uint64 { return floatOp(0x99+sub-236, a.lane(64, i), 0) }))
	default:
		panic(unknownVector(sub))
	}
}

func unknownVector(sub uint32) error { return fmt.Errorf("vector instruction %d is not known", sub) }

func (m *machine) vecAccess(sub uint32, in *instr) {
	switch {
	case in.op == opV128Load:
		b := m.memorySlice(m.pop().lo+in.lo, 16)
		m.push(slot{binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])})
	case in.op == opV128Store:
		v := m.pop()
		b := m.memorySlice(m.pop().lo+in.lo, 16)
		binary.LittleEndian.PutUint64(b, v.lo)
		binary.LittleEndian.PutUint64(b[8:], v.hi)
	case sub <= 6: // v128.load8x8_s, u, load16x4_s, u, load32x2_s, u
		half := slot{lo: m.read(m.pop().lo+in.lo, 8)}
		width := shape((sub - 1) / 2)
		m.push(lanes(2*width, func(i int) uint64 {
			x := half.lane(width, i)
			if sub%2 == 1 {
				x = uint64(extend(width, x))
			}
			return x
		}))
	case sub <= 10: // v128.load8_splat to load64_splat
		width := shape(sub - 7)
		x := m.read(m.pop().lo+in.lo, uint64(width/8))
		m.push(lanes(width, func(int) uint64 { return x }))
	case sub <= 87: // v128.load8_lane to load64_lane
		width := shape(sub - 84)
		v := m.pop()
		v.setLane(width, int(in.lane), m.read(m.pop().lo+in.lo, uint64(width/8)))
		m.push(v)
	case sub <= 91: // v128.store8_lane to store64_lane
		width := shape(sub - 88)
		v := m.pop()
		m.write(m.pop().lo+in.lo, uint64(width/8), v.lane(width, int(in.lane)))
	case sub == 92: // v128.load32_zero
		m.push(slot{lo: m.read(m.pop().lo+in.lo, 4)})
	case sub == 93: // v128.load64_zero
		m.push(slot{lo: m.read(m.pop().lo+in.lo, 8)})
	}
}

// oneLane executes extract_lane and replace_lane.
func (m *machine) oneLane(sub uint32, i int) {
	width := []int{8, 8, 8, 16, 16, 16, 32, 32, 64, 64, 32, 32, 64, 64}[sub-21]
	switch sub {
	case 23, 26, 28, 30, 32, 34:
		x := m.pop().lo
		m.top().setLane(width, i, x)
		return
	}
	x := m.pop().lane(width, i)
	if sub == 21 || sub == 24 { // i8x16.extract_lane_s, i16x8.extract_lane_s
		x = uint64(uint32(extend(width, x)))
	}
	m.push(slot{lo: x})
}

func (m *machine) bitwise(sub uint32) {
	switch sub {
	case 77: // v128.not
		a := m.pop()
		m.push(slot{^a.lo, ^a.hi})
		return
	case 82: // v128.bitselect
		c, b, a := m.pop(), m.pop(), m.pop()
		m.push(slot{a.lo&c.lo | b.lo&^c.lo, a.hi&c.hi | b.hi&^c.hi})
		return
	case 83: // v128.any_true
		a := m.pop()
		m.push(slot{lo: bit(a.lo|a.hi != 0)})
		return
	}
	b, a := m.pop(), m.pop()
	f := func(x, y uint64) uint64 {
		switch sub {
		case 78:
			return x & y
		case 79:
			return x &^ y
		case 80:
			return x | y
		}
		return x ^ y
	}
	m.push(slot{f(a.lo, b.lo), f(a.hi, b.hi)})
}

// vecInteger executes an instruction that exists for integers of each width. op is its
// offset in the order of i8x16.
func (m *machine) vecInteger(width int, op uint32) {
	switch op {
	case 3: // all_true
		a := m.pop()
		all := uint64(1)
		for i := range 128 / width {
			all &= bit(a.lane(width, i) != 0)
		}
		m.push(slot{lo: all})
		return
	case 4: // bitmask
		a := m.pop()
		mask := uint64(0)
		for i := range 128 / width {
			mask |= a.lane(width, i) >> (width - 1) << i
		}
		m.push(slot{lo: mask})
		return
	case 11, 12, 13: // shl, shr_s, shr_u
		by := m.pop32() % uint32(width)
		a := m.pop()
		m.push(lanes(width, func(i int) uint64 {
			x := a.lane(width, i)
			switch op {
			case 11:
				return x << by
			case 12:
				return uint64(extend(width, x) >> by)
			}
			return x >> by
		}))
		return
	}
	if op == 2 && width > 8 { // only bytes have a popcnt
		panic(unknownVector(96 + op))
	}
	var b slot
	if op > 2 {
		b = m.pop()
	}
	a := m.pop()
	m.push(lanes(width, func(i int) uint64 {
		x, y := a.lane(width, i), b.lane(width, i)
		sx, sy := extend(width, x), extend(width, y)
		switch op {
		case 0: // abs
			return uint64(max(sx, -sx))
		case 1: // neg
			return -x
		case 2: // popcnt
			return uint64(bits.OnesCount64(x))
		case 14: // add
			return x + y
		case 17: // sub
			return x - y
		case 21: // mul
			return x * y
		case 22: // min_s
			return uint64(min(sx, sy))
		case 23: // min_u
			return min(x, y)
		case 24: // max_s
			return uint64(max(sx, sy))
		case 25: // max_u
			return max(x, y)
		}
		panic(unknownVector(96 + op))
	}))
}
