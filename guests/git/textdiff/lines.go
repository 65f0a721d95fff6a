// Package textdiff compares texts line by line, as git does when nothing is
// configured: by Myers' algorithm, with what was inserted or removed moved to where
// people expect it.
package textdiff

import (
	"encoding/binary"
	"math/bits"
)

// Text is a text in lines. A line has its ending, which the last one may lack.
type Text struct {
	data   []byte
	starts []int32  // of the lines, and the end
	sums   []uint32 // of the lines: the same of lines that are the same
}

// NewText cuts a text into lines. It looks at eight bytes at a time: in WebAssembly what
// package bytes does looks at one.
func NewText(data []byte) *Text {
	const usual = 32 // bytes of a line
	starts, sums := make([]int32, 1, len(data)/usual+2), make([]uint32, 0, len(data)/usual+1)
	const ones, factor = 0x0101010101010101, 0x9e3779b97f4a7c15
	sum := uint64(0)
	for at := 0; at < len(data); {
		w := uint64(0)
		if rest := data[at:]; len(rest) >= 8 {
			w = binary.LittleEndian.Uint64(rest)
		} else {
			for i, c := range rest {
				w |= uint64(c) << (8 * i)
			}
		}
		x := w ^ '\n'*ones
		end := (x - ones) &^ x & (ones << 7) // the lowest bit is of the first that ends a line
		n := min(bits.TrailingZeros64(end)>>3+1, 8, len(data)-at)
		w &= ^uint64(0) >> (64 - 8*n)
		sum = (sum ^ w) * factor
		sum ^= sum >> 32
		if at += n; end != 0 || at == len(data) {
			starts = append(starts, int32(at))
			sums = append(sums, uint32(sum))
			sum = 0
		}
	}
	return &Text{data, starts, sums}
}

// common is how many bytes two texts begin with that are the same.
func common(a, b []byte) (n int) {
	for n+8 <= len(a) && n+8 <= len(b) {
		if x := binary.LittleEndian.Uint64(a[n:]) ^ binary.LittleEndian.Uint64(b[n:]); x != 0 {
			return n + bits.TrailingZeros64(x)>>3
		}
		n += 8
	}
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// sameLine reports whether two lines are the same.
func sameLine(a *Text, i int, b *Text, j int) bool {
	if a.sums[i] != b.sums[j] {
		return false
	}
	x, y := a.Line(i), b.Line(j)
	n := len(x)
	if n != len(y) || n < 8 {
		return string(x) == string(y)
	}
	for at := 0; at+8 <= n; at += 8 {
		if binary.LittleEndian.Uint64(x[at:]) != binary.LittleEndian.Uint64(y[at:]) {
			return false
		}
	}
	return binary.LittleEndian.Uint64(x[n-8:]) == binary.LittleEndian.Uint64(y[n-8:])
}

// Data is the text as a whole.
func (t *Text) Data() []byte { return t.data }

// Len is how many lines there are.
func (t *Text) Len() int { return len(t.starts) - 1 }

// Line is the line with a number, from 0.
func (t *Text) Line(i int) []byte { return t.data[t.starts[i]:t.starts[i+1]] }

// Change says that the lines A to AEnd of the old text are the lines B to BEnd of
// the new one, all from 0 and without the last. One of both can be empty.
type Change struct{ A, AEnd, B, BEnd int }

// Diff returns what differs, in order. check is asked from time to time whether to go
// on; it can be nil.
func Diff(a, b *Text, check func() error) ([]Change, error) {
	d := &differ{check: check}
	d.a.init(a)
	d.b.init(b)
	if err := d.compare(); err != nil {
		return nil, err
	}
	d.a.compact(&d.b)
	d.b.compact(&d.a)
	var out []Change
	i, j := 0, 0
	for i < a.Len() || j < b.Len() {
		for i < a.Len() && j < b.Len() && !d.a.isChanged(i) && !d.b.isChanged(j) {
			i++
			j++
		}
		c := Change{A: i, B: j}
		for d.a.isChanged(i) {
			i++
		}
		for d.b.isChanged(j) {
			j++
		}
		if c.AEnd, c.BEnd = i, j; i > c.A || j > c.B {
			out = append(out, c)
		}
	}
	return out, nil
}
