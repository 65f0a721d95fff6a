// Package textdiff compares texts line by line, as git does when nothing is
// configured: by Myers' algorithm, with what was inserted or removed moved to where
// people expect it.
package textdiff

import "bytes"

// Text is a text in lines. A line has its ending, which the last one may lack.
type Text struct {
	data   []byte
	starts []int32 // of the lines, and the end
}

// Lines cuts a text into lines.
func Lines(data []byte) *Text {
	t := &Text{data: data, starts: make([]int32, 1, bytes.Count(data, []byte{'\n'})+2)}
	for at := 0; at < len(data); {
		if i := bytes.IndexByte(data[at:], '\n'); i >= 0 {
			at += i + 1
		} else {
			at = len(data)
		}
		t.starts = append(t.starts, int32(at))
	}
	return t
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
		if !d.a.is(i) && !d.b.is(j) {
			i++
			j++
			continue
		}
		c := Change{A: i, B: j}
		for d.a.is(i) {
			i++
		}
		for d.b.is(j) {
			j++
		}
		c.AEnd, c.BEnd = i, j
		out = append(out, c)
	}
	return out, nil
}
