package fueltest

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"
)

// A script is a file of a suite.
type script struct {
	Source   string `json:"source_filename"`
	Commands []command
}

type command struct {
	Type       string
	Line       int    // in the source
	Name       string // of a module, for later commands
	As         string // register: for the imports of later modules
	Filename   string
	ModuleType string `json:"module_type"`
	Text       string // the text of the error
	Action     action
	Expected   []value
}

// text reports whether the module is in the text format, which neither wazero nor this
// host reads.
func (c command) text() bool { return c.ModuleType == "text" }

type action struct {
	Type   string // invoke or get
	Module string // empty: the latest
	Field  string
	Args   []value
}

func readScript(file string) (*script, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	s := new(script)
	return s, json.Unmarshal(data, s)
}

// A value is an argument or an expected result.
type value struct {
	Type     string
	LaneType string `json:"lane_type"` // of a v128
	Value    lanes
}

// lanes has one element, or one for each lane of a v128. It is nil if any reference is
// expected.
type lanes []string

func (l *lanes) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '[' {
		return json.Unmarshal(data, (*[]string)(l))
	}
	*l = make(lanes, 1)
	return json.Unmarshal(data, &(*l)[0])
}

// laneBits returns the size of a lane in bits, or of the value if it is no v128.
func (v value) laneBits() int {
	typ := v.Type
	if typ == "v128" {
		typ = v.LaneType
	}
	switch typ {
	case "i8":
		return 8
	case "i16":
		return 16
	case "i32", "f32":
		return 32
	}
	return 64
}

// size returns the number of values in wazero's API.
func (v value) size() int {
	if v.Type == "v128" {
		return 2
	}
	return 1
}

// lane returns the bits of a lane.
func (v value) lane(i int) (uint64, error) {
	text, bits := v.Value[i], v.laneBits()
	switch v.Type {
	case "externref", "funcref", "exnref":
		if text == "null" {
			return 0, nil
		}
		// In wazero a reference is a number, and 0 is null. So the suite's 0 becomes 1.
		n, err := strconv.ParseUint(text, 10, 32)
		return n + 1, err
	}
	if strings.HasPrefix(text, "-") {
		n, err := strconv.ParseInt(text, 10, bits)
		return uint64(n) & mask(bits), err
	}
	return strconv.ParseUint(text, 10, bits)
}

// bits returns an argument for wazero's API.
func (v value) bits() ([]uint64, error) {
	out := make([]uint64, v.size())
	for i := range v.Value {
		n, err := v.lane(i)
		if err != nil {
			return nil, err
		}
		at := i * v.laneBits()
		out[at/64] |= n << (at % 64)
	}
	return out, nil
}

// match compares the bits of a result with the expected value. A NaN without a class has
// to be the same to the bit.
func (v value) match(got []uint64) error {
	bits := v.laneBits()
	switch {
	case v.Value == nil && strings.HasSuffix(v.Type, "ref"):
		if got[0] == 0 {
			return fmt.Errorf("got null, want any %s", v.Type)
		}
		return nil
	case v.Type == "v128" && len(v.Value)*bits != 128, v.Type != "v128" && len(v.Value) != 1:
		return fmt.Errorf("the suite expects a %s of %d lanes of %d bits", v.Type, len(v.Value), bits)
	}
	for i, text := range v.Value {
		at := i * bits
		lane := got[at/64] >> (at % 64) & mask(bits)
		ok := false
		switch text {
		case "nan:canonical":
			ok = canonical(lane, bits)
		case "nan:arithmetic":
			ok = arithmetic(lane, bits)
		default:
			want, err := v.lane(i)
			if err != nil {
				return err
			}
			ok = lane == want
		}
		if !ok {
			return fmt.Errorf("lane %d of the %s is %d (%#x), want %s", i, v.Type, lane, lane, text)
		}
	}
	return nil
}

func mask(bits int) uint64 { return math.MaxUint64 >> (64 - bits) }

// canonical reports whether n is a NaN, of either sign, whose payload is the highest bit
// only.
func canonical(n uint64, bits int) bool {
	if bits == 32 {
		return n&0x7fffffff == 0x7fc00000
	}
	return n&0x7fffffffffffffff == 0x7ff8000000000000
}

// arithmetic reports whether n is a NaN whose payload has the highest bit.
func arithmetic(n uint64, bits int) bool {
	if bits == 32 {
		return n&0x7fc00000 == 0x7fc00000
	}
	return n&0x7ff8000000000000 == 0x7ff8000000000000
}

func TestValuesMatch(t *testing.T) {
	f32 := func(lane string) value { return value{Type: "f32", Value: lanes{lane}} }
	f64 := func(lane string) value { return value{Type: "f64", Value: lanes{lane}} }
	i16s := value{Type: "v128", LaneType: "i16", Value: lanes{"1", "2", "3", "4", "65535", "6", "7", "8"}}
	for _, c := range []struct {
		want value
		got  []uint64
		ok   bool
	}{
		{f32("nan:canonical"), []uint64{0xffc00000}, true},
		{f32("nan:canonical"), []uint64{0x7fc00001}, false},
		{f32("nan:arithmetic"), []uint64{0xffc00001}, true},
		{f32("nan:arithmetic"), []uint64{0x7f800001}, false},
		{f32("2141192192"), []uint64{0x7fa00000}, true},
		{f32("2141192192"), []uint64{0x7fc00000}, false},
		{f32("0"), []uint64{0x80000000}, false},
		{f32("0"), []uint64{1 << 32}, true}, // only the lower half counts
		{f64("nan:canonical"), []uint64{0xfff8000000000000}, true},
		{f64("nan:canonical"), []uint64{0x7ff8000000000001}, false},
		{f64("nan:arithmetic"), []uint64{0x7ff8000000000001}, true},
		{f64("nan:arithmetic"), []uint64{0x7ff0000000000001}, false},
		{value{Type: "i32", Value: lanes{"-1"}}, []uint64{0xffffffff}, true},
		{value{Type: "i64", Value: lanes{"-1"}}, []uint64{math.MaxUint64}, true},
		{i16s, []uint64{0x0004000300020001, 0x000800070006ffff}, true},
		{i16s, []uint64{0x0004000300020001, 0x000900070006ffff}, false},
		{value{Type: "externref", Value: lanes{"0"}}, []uint64{0}, false},
		{value{Type: "externref", Value: lanes{"null"}}, []uint64{0}, true},
		{value{Type: "funcref"}, []uint64{4096}, true},
		{value{Type: "funcref"}, []uint64{0}, false},
		{value{Type: "i32"}, []uint64{0}, false},
	} {
		if err := c.want.match(c.got); (err == nil) != c.ok {
			t.Errorf("%v and %#x: %v", c.want, c.got, err)
		}
	}
}
