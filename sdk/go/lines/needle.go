package lines

import "bytes"

// needle is a text to search for. It is never empty.
type needle struct {
	text []byte // lower case if fold is set
	fold bool   // set if ASCII letters match in either case
	at   int    // position of the rarest byte in text
	a, b byte   // the rarest byte, and its other case; equal if it has none
}

// maxFold limits the length of a needle without regard to case, in bytes; a longer text is cut
// to its part around the rarest byte, which is as necessary as the whole. Such a needle is
// compared byte by byte wherever its rarest byte is found.
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

// maxMisses is the number of times that the rarest byte may be found in vain, besides once in
// 64 bytes, before the whole text is searched for.
const maxMisses = 16

// sighting holds the next positions of a needle in a block: of its rarest byte in both cases,
// and of its text. A position beyond the block means that there is none. It is valid for
// several lines: otherwise a case that does not occur would be searched to the end of the
// block for each line.
type sighting struct{ a, b, text int }

// unseen is a sighting before the first search.
var unseen = sighting{-1, -1, -1}

// index returns the position of the text at pos or later; -1: none. It adds the searched bytes
// and the comparisons in vain to w.
func (n *needle) index(data []byte, pos int, seen *sighting, w *Work) int {
	end := len(data) - len(n.text) // its last possible position
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

// indexByte returns the position of a byte at from or later. If there is none, the position is
// beyond the end of the data.
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
