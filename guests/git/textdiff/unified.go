package textdiff

import (
	"bytes"
	"strconv"
	"unicode"
	"unicode/utf8"
)

const (
	around     = 3  // unchanged lines that are shown before and after a change
	maxHeading = 80 // bytes of the heading of a hunk, which is cut
)

// Unified calls emit with each line of a unified diff, until emit returns an error. mark is the first
// character of the line, and line the rest with its ending.
func Unified(a, b *Text, changes []Change, emit func(mark byte, line []byte) error) error {
	heading, looked := []byte(nil), 0
	for len(changes) > 0 {
		n := 1
		for n < len(changes) && changes[n].A-changes[n-1].AEnd <= 2*around {
			n++
		}
		hunk := changes[:n]
		changes = changes[n:]
		from, to := max(hunk[0].A-around, 0), min(hunk[n-1].AEnd+around, a.Len())
		bFrom, bTo := max(hunk[0].B-around, 0), min(hunk[n-1].BEnd+around, b.Len())
		for i := from - 1; i >= looked; i-- {
			if line, ok := headingOf(a.Line(i)); ok {
				heading = line
				break
			}
		}
		looked = max(from, looked)
		head := []byte("@ -")
		head = append(appendRange(append(appendRange(head, from, to), " +"...), bFrom, bTo), " @@"...)
		if heading != nil {
			head = append(append(head, ' '), heading...)
		}
		if err := emit('@', append(head, '\n')); err != nil {
			return err
		}
		at := from
		for _, c := range hunk {
			err := emitAll(a, at, c.A, ' ', emit)
			if err == nil {
				err = emitAll(a, c.A, c.AEnd, '-', emit)
			}
			if err == nil {
				err = emitAll(b, c.B, c.BEnd, '+', emit)
			}
			if err != nil {
				return err
			}
			at = c.AEnd
		}
		if err := emitAll(a, at, to, ' ', emit); err != nil {
			return err
		}
	}
	return nil
}

func emitAll(t *Text, from, to int, mark byte, emit func(byte, []byte) error) error {
	for i := from; i < to; i++ {
		if err := emit(mark, t.Line(i)); err != nil {
			return err
		}
	}
	return nil
}

// appendRange appends the range of a hunk, in the form of its header, to out.
func appendRange(out []byte, from, to int) []byte {
	n := to - from
	if n > 0 {
		from++
	}
	out = strconv.AppendInt(out, int64(from), 10)
	if n != 1 {
		out = strconv.AppendInt(append(out, ','), int64(n), 10)
	}
	return out
}

// headingOf returns the heading of a hunk below a line. It returns false unless the line
// begins with a letter, as the first line of a function does.
func headingOf(line []byte) ([]byte, bool) {
	if len(line) == 0 || !(line[0] == '_' || line[0] == '$' || 'a' <= line[0] && line[0] <= 'z' || 'A' <= line[0] && line[0] <= 'Z') {
		return nil, false
	}
	if len(line) > maxHeading {
		line = line[:maxHeading]
		for len(line) > 0 && line[len(line)-1] >= utf8.RuneSelf { // the last character may be cut
			line = line[:len(line)-1]
		}
	}
	return bytes.TrimRightFunc(line, unicode.IsSpace), true
}
