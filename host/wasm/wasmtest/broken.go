package wasmtest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/stockade-dev/stockade/host/wasm"
)

// mutants is the number of modules with random damage.
const mutants = 64

// brokenModules returns modules that break the binary format, or promise too much content.
func brokenModules() []Bomb {
	var out []Bomb
	add := func(row, name string, want Fate, module func() []byte) {
		out = append(out, Bomb{Name: row + ", " + name, Kind: row, Want: want, Module: module})
	}
	whole := moduleWithCode(nil)
	m, err := wasm.Decode(whole)
	if err != nil {
		panic(err)
	}

	for _, s := range m.Sections {
		add("cut short", fmt.Sprintf("in section %d", s.ID), Malformed, func() []byte { return whole[:s.PayloadOffset+len(s.Payload)/2] })
	}

	for _, n := range []struct {
		name  string
		bytes []byte
	}{
		{"without an end", slices.Repeat([]byte{0x80}, 64)},
		{"of six bytes", []byte{0x81, 0x80, 0x80, 0x80, 0x80, 0}},
		{"of more than 32 bits", []byte{0xff, 0xff, 0xff, 0xff, 0x1f}},
	} {
		add("number", n.name+" as a size", Malformed, func() []byte { return join(Header(), []byte{wasm.SectionType}, n.bytes) })
		add("number", n.name+" as a count", Malformed, func() []byte { return join(Header(), Section(wasm.SectionType, n.bytes)) })
		add("number", n.name+" in code", Refused, func() []byte { return moduleWithCode(join([]byte{0x20}, n.bytes, Drop())) })
	}

	most := U32(math.MaxUint32)
	for id := wasm.SectionType; id <= wasm.SectionData; id++ {
		if id == wasm.SectionStart {
			continue
		}
		add("count of 2^32-1", fmt.Sprintf("in section %d", id), Malformed, func() []byte {
			return join(Header(), Section(id, most, make([]byte, 64)))
		})
	}
	add("count of 2^32-1", "of groups of locals", Refused, func() []byte { return moduleWithRawCode(most) })
	add("count of 2^32-1", "of locals, twice", Refused, func() []byte {
		group := join(most, []byte{byte(I32)})
		return moduleWithRawCode(join([]byte{2}, group, group, []byte{opEnd}))
	})
	add("count of 2^32-1", "of labels", Refused, func() []byte { return moduleWithCode(join(LocalGet(0), []byte{0x0e}, most)) })
	add("count of 2^32-1", "of types of select", Refused, func() []byte { return moduleWithCode(join([]byte{0x1c}, most)) })
	// An engine that reads names allocates for the number it is told. One that ignores
	// the section has a good module.
	for _, n := range []struct {
		name       string
		subsection byte
		content    []byte
	}{
		{"of bytes of a name", 0, most},
		{"of names of functions", 1, most},
		{"of names of locals", 2, join([]byte{1, 0}, most)},
	} {
		add("count of 2^32-1", n.name, Bounded, func() []byte {
			return toolWith(func(b *Builder) {
				b.Custom("name", join([]byte{n.subsection}, U32(uint32(len(n.content))), n.content))
			})
		})
	}

	for _, n := range []struct {
		name  string
		bytes []byte
	}{
		{"longer than the section", []byte{100, 'x'}},
		{"of 2^32-1 bytes", most},
		{"of a mebibyte", Name(strings.Repeat("x", 1<<20))},
		{"that is not UTF-8", Name("\xff\xfe")},
	} {
		add("name", n.name, Malformed, func() []byte {
			return join(Header(), Section(wasm.SectionType, []byte{1, 0x60, 0, 0}), Section(wasm.SectionFunction, []byte{1, 0}),
				Section(wasm.SectionExport, []byte{1}, n.bytes, []byte{byte(wasm.KindFunc), 0}), Section(wasm.SectionCode, []byte{1, 2, 0, opEnd}))
		})
	}
	add("name", "of a custom section that is shorter", Malformed, func() []byte {
		return join(whole, Section(wasm.SectionCustom, []byte{100, 'x'}))
	})

	// Items that a host adds to a module when it rewrites it must not be reachable by
	// these: the i64s would fit a counter.
	for _, i := range []struct {
		name string
		body []byte
	}{
		{"global.get", join(GlobalGet(uint32(m.NumGlobals)), Drop())},
		{"global.set", join(I64Const(1<<40), GlobalSet(uint32(m.NumGlobals)))},
		{"local.get", join(LocalGet(1), Drop())},
		{"local.set", join(I64Const(1<<40), LocalSet(1))},
		{"local.tee", join(I64Const(1<<40), LocalTee(1), Drop())},
		{"call", join(I64Const(0), Call(uint32(len(m.Funcs))), Drop())},
		{"ref.func", join(RefFunc(uint32(len(m.Funcs))), Drop())},
		{"call_indirect", join(I64Const(0), I32Const(0), CallIndirect(uint32(len(m.Types)), 0), Drop())},
		{"block", join([]byte{opBlock}, signed(int64(len(m.Types))), End())},
		{"memory.init", join(i32s(3), MemoryInit(uint32(m.NumDataSegments)))},
		{"table.grow", join(RefNull(FuncRef), I32Const(1), TableGrow(uint32(len(m.Tables))), Drop())},
	} {
		add("index one past the last", i.name, Refused, func() []byte { return moduleWithCode(i.body) })
	}

	for _, b := range []struct {
		name string
		code []byte
	}{
		{"without an end", nil},
		{"with an end too many", []byte{opEnd, opEnd}},
		{"with a block that does not end", []byte{opBlock, noValue, opEnd}},
		{"with an else but no if", join(Else(), End())},
		{"with an opcode that is none", []byte{0xff, opEnd}},
		{"with a vector opcode that is none", join(Vector(0x3fff), End())},
		{"that ends after a prefix", []byte{0xfc}},
		{"that ends in a vector", []byte{0xfd, 12, 1, 2, 3}},
		{"that ends in a float", []byte{0x44, 1, 2, 3}},
		{"that goes on after its end", []byte{opEnd, 0x01}},
	} {
		add("body", b.name, Refused, func() []byte { return moduleWithRawCode(join([]byte{0}, b.code)) })
	}

	// By the specification this is a vector constant with a padded opcode. An
	// engine whose vector opcodes are single bytes finds a loop in the constant.
	add("two readings", "a loop in a vector constant", Refused, func() []byte {
		hidden := join(End(), Loop(Br(0)), []byte{opBlock, noValue}, repeat(7, Nop()), Unreachable())
		return moduleWithCode(Block(LocalGet(0), BrIf(0), Unreachable(), []byte{0xfd, 0x8c, 0}, hidden, Drop()))
	})

	for i := range uint64(mutants) {
		add("mutant", fmt.Sprint(i), Bounded, func() []byte { return mutant(i) })
	}
	return out
}

// moduleWithCode returns a tool module with one more function, which takes an i32, and
// with a table, an element segment and a passive data segment that its code can name.
func moduleWithCode(body []byte) []byte { return moduleWithRawCode(join([]byte{0}, body, End())) }

// moduleWithRawCode is moduleWithCode for a body that begins with the declarations of
// locals and ends with the end instruction.
func moduleWithRawCode(code []byte) []byte {
	return toolWith(func(b *Builder) {
		b.Table(1, 1)
		b.Elem(0, 0)
		b.PassiveData([]byte("passive"))
		b.funcs = append(b.funcs, function{b.i32Type(), code})
	})
}

// mutant returns a small module of one of the shapes with a few bytes changed. The same
// seed gives the same bytes.
func mutant(seed uint64) []byte {
	r := rand.New(rand.NewPCG(seed, 0))
	all := rows()
	row := all[r.IntN(len(all))]
	module := row.shape(1+r.IntN(4), 1+r.IntN(3), 1)
	for range 1 + r.IntN(8) {
		i := len(Header()) + r.IntN(len(module)-len(Header()))
		switch r.IntN(4) {
		case 0:
			module[i] ^= 1 << r.IntN(8)
		case 1:
			module[i] = byte(r.Uint32())
		case 2:
			module = slices.Delete(module, i, i+1)
		default:
			module = slices.Insert(module, i, byte(r.Uint32()))
		}
	}
	return module
}
