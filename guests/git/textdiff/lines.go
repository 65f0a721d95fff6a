// Package textdiff compares texts line by line, with the same result as git's default: by Myers'
// algorithm, with insertions and removals moved to the places that people expect.
package textdiff

import (
	"encoding/binary"
	"math/bits"
)

// Text is a text divided into lines. A line includes its ending, which the last line may lack.
type Text struct {
	data   []byte
	starts []int32  // offset of each line, and of the end of the text
	sums   []uint32 // hash of each line; equal lines have equal hashes
}

// NewText divides a text into lines. It reads 8 bytes at once: in WebAssembly, package bytes
// reads 1.
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
		end := (x - ones) &^ x & (ones << 7) // its lowest bit marks the first line feed
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

// common returns the number of equal bytes at the beginning of two texts.
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

// sameLine reports whether line i of a and line j of b are equal.
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

// Data returns the whole text.
func (t *Text) Data() []byte { return t.data }

// Len returns the number of lines.
func (t *Text) Len() int { return len(t.starts) - 1 }

// Line returns line number i, from 0, with its ending.
func (t *Text) Line(i int) []byte { return t.data[t.starts[i]:t.starts[i+1]] }

// Change replaces the lines from A to before AEnd of the old text by the lines from B to before BEnd
// of the new text. Lines count from 0. One of both ranges can be empty.
type Change struct{ A, AEnd, B, BEnd int }

// Diff returns the changes from a to b, in order. check is called from time to time, and its error
// ends the comparison; nil: nothing ends it.
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
