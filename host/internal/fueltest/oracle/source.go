package oracle

import (
	"encoding/binary"
	"math/rand/v2"

	"github.com/stockade-dev/stockade/host/wasm"
)

// Seed returns bytes for Generate that depend on n alone: mostly enough for a module of
// middling size, and sometimes for a tiny or a large one.
func Seed(n uint64) []byte {
	r := rand.New(rand.NewPCG(n, 0x57ac_fade))
	out := make([]byte, []int{50, 400, 1000, 1500, 2000, 3000, 4000, 8000}[r.IntN(8)])
	for i := range out {
		out[i] = byte(r.Uint32())
	}
	return out
}

// source turns fuzz bytes into choices. Small changes of the bytes shall make small
// changes of the module, so each choice takes as few bytes as possible. When no bytes are
// left they are zero: zero chooses code that is plain and ends soon.
type source struct{ data []byte }

func (s *source) done() bool { return len(s.data) == 0 }

func (s *source) byte() byte {
	if s.done() {
		return 0
	}
	b := s.data[0]
	s.data = s.data[1:]
	return b
}

// n chooses a number from 0 to limit-1; limit is 256 at most.
func (s *source) n(limit int) int { return int(s.byte()) % limit }

// chance returns true in p of a hundred cases.
func (s *source) chance(p int) bool { return p > 0 && int(s.byte())*100 >= 256*(100-p) }

func (s *source) uint64(size int) uint64 {
	var b [8]byte
	for i := range size {
		b[i] = s.byte()
	}
	return binary.LittleEndian.Uint64(b[:])
}

func pick[T any](s *source, from ...T) T { return from[s.n(len(from))] }

// writer writes the binary format.
type writer struct {
	src *source
	out []byte
	pad int // percentage of numbers that get a longer form than needed
}

func (w *writer) byte(b ...byte) { w.out = append(w.out, b...) }

// op writes an opcode, without padding, which the engine does not accept.
func (w *writer) op(op uint32) {
	if op>>16 == 0 {
		w.byte(byte(op))
		return
	}
	w.byte(byte(op >> 16))
	w.out = binary.AppendUvarint(w.out, uint64(op&0xffff))
}

func (w *writer) u32(v uint32) {
	from := len(w.out)
	w.out = binary.AppendUvarint(w.out, uint64(v))
	w.padding(from, 5, 0)
}

func (w *writer) signed(v int64, bits int) {
	from := len(w.out)
	fill := byte(0)
	if v < 0 {
		fill = 0x7f
	}
	for {
		b := byte(v & 0x7f)
		v >>= 7
		if v == 0 && b&0x40 == 0 || v == -1 && b&0x40 != 0 {
			w.byte(b)
			break
		}
		w.byte(b | 0x80)
	}
	w.padding(from, (bits+6)/7, fill)
}

// padding sometimes lengthens the number that begins at from, up to most bytes.
func (w *writer) padding(from, most int, fill byte) {
	more := most - (len(w.out) - from)
	if more == 0 || !w.src.chance(w.pad) {
		return
	}
	w.out[len(w.out)-1] |= 0x80
	for range w.src.n(more) {
		w.byte(fill | 0x80)
	}
	w.byte(fill)
}

func (w *writer) valTypes(list []wasm.ValType) {
	w.u32(uint32(len(list)))
	for _, t := range list {
		w.byte(byte(t))
	}
}

func (w *writer) name(s string) {
	w.u32(uint32(len(s)))
	w.byte([]byte(s)...)
}

// sized writes the output of f, after its size.
func (w *writer) sized(f func(w *writer)) {
	inner := &writer{src: w.src, pad: w.pad}
	f(inner)
	w.u32(uint32(len(inner.out)))
	w.byte(inner.out...)
}

// section writes a section. A section without entries is mostly left out.
func (w *writer) section(id byte, entries int, entry func(w *writer, i int)) {
	if entries == 0 && !w.src.chance(5) {
		return
	}
	w.byte(id)
	w.sized(func(w *writer) {
		w.u32(uint32(entries))
		for i := range entries {
			entry(w, i)
		}
	})
}
