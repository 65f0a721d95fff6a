package oracle

import (
	"fmt"
	"math"

	"github.com/stockade-dev/stockade/host/wasm"
)

// Value is a value with its type. A null reference is 0, any other reference is not.
type Value struct {
	Type   wasm.ValType
	Lo, Hi uint64 // Hi is the upper half of a v128
}

// Values gives types to the results of an engine: 64 bits for each value, and twice as
// many for a v128.
func Values(types []wasm.ValType, bits []uint64) []Value {
	var out []Value
	for _, t := range types {
		v := Value{Type: t, Lo: bits[0]}
		bits = bits[1:]
		if t == wasm.V128 {
			v.Hi = bits[0]
			bits = bits[1:]
		}
		out = append(out, v)
	}
	return out
}

// Equal compares bits, except that all NaNs are equal, and all references that are not
// null.
func (v Value) Equal(w Value) bool {
	if v.Type != w.Type {
		return false
	}
	switch v.Type {
	case wasm.I32:
		return uint32(v.Lo) == uint32(w.Lo)
	case wasm.F32:
		return uint32(v.Lo) == uint32(w.Lo) || isNaN32(v.Lo) && isNaN32(w.Lo)
	case wasm.F64:
		return v.Lo == w.Lo || isNaN64(v.Lo) && isNaN64(w.Lo)
	case wasm.V128:
		return v.Lo == w.Lo && v.Hi == w.Hi
	case wasm.FuncRef, wasm.ExternRef:
		return (v.Lo == 0) == (w.Lo == 0)
	}
	return v.Lo == w.Lo
}

func (v Value) String() string {
	switch v.Type {
	case wasm.F32:
		return fmt.Sprintf("f32 %v", f32(v.Lo))
	case wasm.F64:
		return fmt.Sprintf("f64 %v", f64(v.Lo))
	case wasm.V128:
		return fmt.Sprintf("v128 %016x%016x", v.Hi, v.Lo)
	}
	return fmt.Sprintf("%s %#x", v.Type, v.Lo)
}

func f32(bits uint64) float32  { return math.Float32frombits(uint32(bits)) }
func f64(bits uint64) float64  { return math.Float64frombits(bits) }
func isNaN32(bits uint64) bool { f := f32(bits); return f != f }
func isNaN64(bits uint64) bool { f := f64(bits); return f != f }
func bits32(f float32) uint64  { return uint64(math.Float32bits(f)) }
func bits64(f float64) uint64  { return math.Float64bits(f) }
func bit(condition bool) uint64 {
	if condition {
		return 1
	}
	return 0
}
