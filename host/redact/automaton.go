package redact

import (
	"bytes"
	"slices"
)

// automaton finds every occurrence of many patterns at once, in time linear in the text (Aho
// and Corasick, 1975). It never changes once it is built.
type automaton struct {
	nodes   []node
	root    [256]int32 // children of node 0, by byte; 0: none
	longest int        // length of the longest pattern, in bytes
	marker  []byte     // text that replaces a pattern
}

// pattern is a text to find. Its first head and last tail bytes are not secret, and are not
// replaced.
type pattern struct {
	text       []byte
	head, tail int
}

// node is a prefix of patterns. Node 0 is the empty prefix.
type node struct {
	fail         int32 // node of the longest proper suffix that is also a prefix of a pattern
	child        int32 // first child; 0: none
	sibling      int32 // next child of the same parent; 0: none
	match        int32 // length of the longest pattern that ends here; 0: none
	head, tail   int32 // bytes at both ends of this pattern that are not replaced
	shorterMatch int32 // node of a shorter pattern that ends here and may cover head and tail; 0: none
	depth        int32 // length of the prefix
	hold         int32 // length of the longest suffix that can still grow to a pattern
	b            byte  // last byte of the prefix
}

func newAutomaton(patterns []pattern) *automaton {
	a := &automaton{nodes: make([]node, 1), marker: marker(patterns)}
	for _, p := range patterns {
		at := int32(0)
		for _, b := range p.text {
			next := a.childOf(at, b)
			if next == 0 {
				next = int32(len(a.nodes))
				a.nodes = append(a.nodes, node{b: b, sibling: a.nodes[at].child, depth: a.nodes[at].depth + 1})
				a.nodes[at].child = next
				if at == 0 {
					a.root[b] = next
				}
			}
			at = next
		}
		n := &a.nodes[at]
		if n.match == 0 {
			n.head, n.tail = int32(p.head), int32(p.tail)
		}
		n.match, n.head, n.tail = int32(len(p.text)), min(n.head, int32(p.head)), min(n.tail, int32(p.tail))
		a.longest = max(a.longest, len(p.text))
	}
	queue := []int32{0}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		for c := a.nodes[at].child; c != 0; c = a.nodes[c].sibling {
			queue = append(queue, c)
			if at != 0 { // a single byte has only the empty suffix, node 0
				a.nodes[c].fail = a.step(a.nodes[at].fail, a.nodes[c].b)
			}
			n, suffix := &a.nodes[c], &a.nodes[a.nodes[c].fail]
			switch {
			case n.match == 0:
				n.match, n.head, n.tail, n.shorterMatch = suffix.match, suffix.head, suffix.tail, suffix.shorterMatch
			case n.head+n.tail > 0 && suffix.match > 0:
				n.shorterMatch = n.fail
			}
			if n.hold = suffix.hold; n.child != 0 {
				n.hold = n.depth
			}
		}
	}
	return a
}

func (a *automaton) childOf(at int32, b byte) int32 {
	if at == 0 {
		return a.root[b]
	}
	for c := a.nodes[at].child; c != 0; c = a.nodes[c].sibling {
		if a.nodes[c].b == b {
			return c
		}
	}
	return 0
}

// step returns the node after a further byte.
func (a *automaton) step(at int32, b byte) int32 {
	for at != 0 {
		if c := a.childOf(at, b); c != 0 {
			return c
		}
		at = a.nodes[at].fail
	}
	return a.root[b]
}

// find reports whether a text holds a pattern.
func (a *automaton) find(text []byte) bool {
	at := int32(0)
	for _, b := range text {
		if at = a.step(at, b); at != 0 && a.nodes[at].match != 0 {
			return true
		}
	}
	return false
}

// scanner replaces patterns in a text that comes in pieces. Overlapping patterns are replaced
// together, by one marker. It holds back only bytes that may be the beginning of a pattern,
// fewer than the longest pattern has.
type scanner struct {
	a    *automaton
	at   int32  // the node for the text so far
	held []byte // bytes that are held back
	runs []span // parts of held that are to be replaced, in order, without overlaps
	open bool   // set if the first run began before held: its marker is written
}

// span is a range of bytes, without the byte at end.
type span struct{ start, end int }

// feed takes one more piece and appends to dst the text that is certain now. last is set for
// the last piece: then all text is certain.
func (s *scanner) feed(dst, piece []byte, last bool) []byte {
	for i, b := range piece {
		if s.at = s.a.step(s.at, b); s.at == 0 {
			continue
		}
		for at, end := s.at, len(s.held)+i+1; at != 0 && s.a.nodes[at].match > 0; at = s.a.nodes[at].shorterMatch {
			n := &s.a.nodes[at]
			s.cover(span{end - int(n.match-n.head), end - int(n.tail)})
		}
	}
	s.held = append(s.held, piece...)
	safe := len(s.held) - int(s.a.nodes[s.at].hold)
	if last {
		safe = len(s.held)
	}
	from, done := 0, 0
	for _, r := range s.runs {
		if r.start >= safe {
			break
		}
		dst = append(dst, s.held[from:r.start]...)
		if !s.open {
			dst = append(dst, s.a.marker...)
		}
		if from = min(r.end, safe); r.end > safe {
			s.open = true
			break
		}
		s.open = false
		done++
	}
	dst = append(dst, s.held[from:safe]...)
	s.runs = slices.Delete(s.runs, 0, done)
	for i := range s.runs {
		s.runs[i].start, s.runs[i].end = max(s.runs[i].start-safe, 0), s.runs[i].end-safe
	}
	s.held = append(s.held[:0], s.held[safe:]...)
	if last {
		*s = scanner{a: s.a, held: s.held[:0], runs: s.runs[:0]}
	}
	return dst
}

// cover adds a run and joins it with all runs that end after its start.
func (s *scanner) cover(r span) {
	for n := len(s.runs); n > 0 && s.runs[n-1].end > r.start; n-- {
		r.start, r.end = min(r.start, s.runs[n-1].start), max(r.end, s.runs[n-1].end)
		s.runs = s.runs[:n-1]
	}
	s.runs = append(s.runs, r)
}

// marker returns the text that replaces a secret. It holds no pattern, and its first and last
// bytes are in none, so that no pattern can arise around it. If none of the texts is so, it is
// "[redacted]".
func marker(patterns []pattern) []byte {
	for _, inner := range []string{"redacted", "*****", ""} {
		for _, ends := range []string{"[]", "<>", "{}", "()", "**", "##", "~~", "||", "!!", "^^", "``", "  ", "██", "∎∎"} {
			left, right := []rune(ends)[0], []rune(ends)[1]
			m := []byte(string(left) + inner + string(right))
			first, last := m[0], m[len(m)-1]
			if !slices.ContainsFunc(patterns, func(p pattern) bool {
				return bytes.IndexByte(p.text, first) >= 0 || bytes.IndexByte(p.text, last) >= 0 || bytes.Contains(m, p.text)
			}) {
				return m
			}
		}
	}
	return []byte("[redacted]")
}
