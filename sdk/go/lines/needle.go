package lines

import "bytes"

// needle is a text to look for. It is not empty.
type needle struct {
	text []byte // lower case if fold is set
	fold bool   // ASCII letters match in either case
	at   int    // the rarest byte of text
	a, b byte   // that byte; and in the other case if that is another
}

func newNeedle(n need) needle {
	out := needle{text: []byte(n.text), fold: n.fold}
	for i, c := range out.text {
		if rank[c] > rank[out.text[out.at]] {
			out.at = i
		}
	}
	out.a = out.text[out.at]
	out.b = out.a
	if n.fold && 'a' <= out.a && out.a <= 'z' {
		out.b -= 'a' - 'A'
	}
	return out
}

// patience is how often a byte may be found in vain, beside once in 64 bytes,
// until the text is looked for as a whole.
const patience = 16

// index is where the text is found first, or -1. It adds to vain how often it
// looked closer for nothing.
func (n *needle) index(data []byte, vain *uint64) int {
	end := len(data) - len(n.text) // the last place where it can begin
	nextA, nextB := -1, -1         // where the byte is found next; behind everything if nowhere
	for i, tries := 0, 0; i <= end; {
		from := i + n.at
		if nextA < from {
			nextA = indexByte(data, from, n.a)
		}
		next := nextA
		if n.b != n.a {
			if nextB < from {
				nextB = indexByte(data, from, n.b)
			}
			next = min(next, nextB)
		}
		i = next - n.at
		if i > end {
			break
		}
		if n.is(data[i : i+len(n.text)]) {
			return i
		}
		*vain++
		i++
		if tries++; tries > patience+i/64 && !n.fold {
			if j := bytes.Index(data[i:], n.text); j >= 0 {
				return i + j
			}
			return -1
		}
	}
	return -1
}

// indexByte is where a byte is found at from or later, or the end of the data
// and more.
func indexByte(data []byte, from int, c byte) int {
	if i := bytes.IndexByte(data[from:], c); i >= 0 {
		return from + i
	}
	return 2 * (len(data) + 1)
}

func (n *needle) is(data []byte) bool {
	if !n.fold {
		return bytes.Equal(data, n.text)
	}
	for i, c := range data {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != n.text[i] {
			return false
		}
	}
	return true
}
