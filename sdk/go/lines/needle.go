package lines

import "bytes"

// needle is a text to look for. It is not empty.
type needle struct {
	text []byte // lower case if fold is set
	fold bool   // ASCII letters match in either case
	at   int    // the rarest byte of text
	a, b byte   // that byte; and in the other case if that is another
}

// maxFold is how long a text is of which the case does not matter. It is
// compared byte by byte wherever its rarest byte is found, and a part of it is
// as necessary as the whole.
const maxFold = 16

func newNeedle(n requiredText) needle {
	out := needle{text: []byte(n.text), fold: n.fold}
	for i, c := range out.text {
		if rank[c] > rank[out.text[out.at]] {
			out.at = i
		}
	}
	if n.fold && len(out.text) > maxFold {
		first := min(max(out.at-maxFold/2, 0), len(out.text)-maxFold)
		out.text = out.text[first : first+maxFold]
		out.at -= first
	}
	out.a = out.text[out.at]
	out.b = out.a
	if n.fold && 'a' <= out.a && out.a <= 'z' {
		out.b -= 'a' - 'A'
	}
	return out
}

// maxMisses is how often a byte may be found in vain, beside once in 64 bytes,
// until the text is looked for as a whole.
const maxMisses = 16

// sighting is what is known of a needle in a block: where its byte is found
// next, in either case, behind everything if nowhere, and where the text is.
// It is kept from line to line: a case that does not occur would be looked for
// to the end of the block for each of them.
type sighting struct{ a, b, text int }

var unseen = sighting{-1, -1, -1}

// index is where the text is found first, at pos or later, or -1. It adds to
// the work what it looked at, and how often it looked closer for nothing.
func (n *needle) index(data []byte, pos int, seen *sighting, w *Work) int {
	end := len(data) - len(n.text) // the last place where it can begin
	for i, tries := pos, 0; i <= end; {
		from := i + n.at
		if seen.a < from {
			seen.a = indexByte(data, from, n.a, w)
		}
		next := seen.a
		if n.b != n.a {
			if seen.b < from {
				seen.b = indexByte(data, from, n.b, w)
			}
			next = min(next, seen.b)
		}
		i = next - n.at
		if i > end {
			break
		}
		if n.matches(data[i : i+len(n.text)]) {
			return i
		}
		w.Vain++
		i++
		if tries++; tries > maxMisses+(i-pos)/64 && !n.fold {
			j := bytes.Index(data[i:], n.text)
			if j < 0 {
				w.Looked += uint64(len(data) - i)
				return -1
			}
			w.Looked += uint64(j)
			return i + j
		}
	}
	return -1
}

// indexByte is where a byte is found at from or later, or the end of the data
// and more.
func indexByte(data []byte, from int, c byte, w *Work) int {
	if i := bytes.IndexByte(data[from:], c); i >= 0 {
		w.Looked += uint64(i) + 1
		return from + i
	}
	w.Looked += uint64(len(data) - from)
	return 2 * (len(data) + 1)
}

func (n *needle) matches(data []byte) bool {
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
