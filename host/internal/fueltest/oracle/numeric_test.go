package oracle

import (
	"math"
	"testing"
)

// TestNumericEdges has the results of the specification, which Go's own operators would
// not all give.
func TestNumericEdges(t *testing.T) {
	const (
		inf      = 0x7f800000
		nan      = 0x7fc00000
		minusOne = 0xffffffff
		smallest = 1 << 31 // of i32
	)
	f := func(v float64) uint64 { return math.Float64bits(v) }
	tests := []struct {
		name string
		op   uint32
		a, b uint64
		want uint64
		trap Trap
	}{
		{"i32.div_s", 0x6d, smallest, minusOne, 0, TrapOverflow},
		{"i32.rem_s", 0x6f, smallest, minusOne, 0, TrapNone},
		{"i32.div_u", 0x6e, 1, 0, 0, TrapDivideZero},
		{"i32.rem_s by zero", 0x6f, 1, 0, 0, TrapDivideZero},
		{"i64.div_s", 0x7f, 1 << 63, math.MaxUint64, 0, TrapOverflow},
		{"i64.rem_s", 0x81, 1 << 63, math.MaxUint64, 0, TrapNone},
		{"i32.shl", 0x74, 1, 33, 2, TrapNone},
		{"i32.shr_s", 0x75, smallest, 31, minusOne, TrapNone},
		{"i64.rotr", 0x8a, 1, 65, 1 << 63, TrapNone},
		{"i32.clz", 0x67, 0, 0, 32, TrapNone},
		{"i64.ctz", 0x7a, 0, 0, 64, TrapNone},
		{"f64.min of zeros", 0xa4, f(0), 1 << 63, 1 << 63, TrapNone},
		{"f64.max of zeros", 0xa5, 1 << 63, f(0), f(0), TrapNone},
		{"f32.min of -inf and NaN", 0x96, inf | sign32, nan, nan, TrapNone},
		{"f64.nearest", 0x9e, f(2.5), 0, f(2), TrapNone},
		{"f64.nearest of a negative", 0x9e, f(-0.5), 0, 1 << 63, TrapNone},
		{"f32.copysign", 0x98, 0x3f800000, nan | sign32, 0xbf800000, TrapNone},
		{"f64.lt of NaN", 0x63, f(math.NaN()), f(1), 0, TrapNone},
		{"f64.ne of NaN", 0x62, f(math.NaN()), f(math.NaN()), 1, TrapNone},
		{"i32.trunc_f64_s, just in range", 0xaa, f(-2147483648.9), 0, smallest, TrapNone},
		{"i32.trunc_f64_s, just out of range", 0xaa, f(-2147483649), 0, 0, TrapOverflow},
		{"i32.trunc_f64_u, just in range", 0xab, f(-0.9), 0, 0, TrapNone},
		{"i32.trunc_f64_u, just out of range", 0xab, f(-1), 0, 0, TrapOverflow},
		{"i32.trunc_f32_s of NaN", 0xa8, nan, 0, 0, TrapConversion},
		{"i32.trunc_f32_s of inf", 0xa8, inf, 0, 0, TrapOverflow},
		{"i64.trunc_f64_s, smallest", 0xb0, f(-1 << 63), 0, 1 << 63, TrapNone},
		{"i64.trunc_f64_s, too large", 0xb0, f(1 << 63), 0, 0, TrapOverflow},
		{"i64.trunc_f64_u, large", 0xb1, f(1 << 63), 0, 1 << 63, TrapNone},
		{"i64.extend_i32_s", 0xac, smallest, 0, 0xffffffff80000000, TrapNone},
		{"i64.extend_i32_u", 0xad, smallest, 0, smallest, TrapNone},
		{"f32.convert_i64_u rounds once", 0xb5, 0x7fffff4000000001, 0, 0x5effffff, TrapNone},
	}
	for _, test := range tests {
		got, trap := try(func() uint64 { return arithmetic(test.op, test.a, test.b) })
		if trap != test.trap || trap == TrapNone && got != test.want && !(isNaN32(got) && test.want == nan) {
			t.Errorf("%s: got %#x, trap %q; want %#x, trap %q", test.name, got, trap, test.want, test.trap)
		}
	}
	saturating := []struct {
		i       uint32
		a, want uint64
	}{
		{0, nan, 0}, {0, inf, math.MaxInt32}, {0, inf | sign32, smallest}, {1, inf, math.MaxUint32}, {1, inf | sign32, 0},
		{2, f(1e10), math.MaxInt32}, {3, f(-5), 0}, {6, f(1e30), math.MaxInt64}, {6, f(-1e30), 1 << 63}, {7, f(1e30), math.MaxUint64}, {7, f(3.9), 3},
	}
	for _, test := range saturating {
		if got := truncSat(test.i, test.a); got != test.want {
			t.Errorf("saturating truncation %d of %#x gives %#x, want %#x", test.i, test.a, got, test.want)
		}
	}
}

func try(f func() uint64) (v uint64, trap Trap) {
	defer func() { trap, _ = recover().(Trap) }()
	return f(), TrapNone
}
