package main

import "bytes"

// scanner finds the tags of an HTML document. It makes no tree and keeps nothing of the
// text that it has passed, so that a server cannot cause deep recursion or use much
// memory. Attributes are parsed only on request.
type scanner struct {
	src []byte
	pos int     // offset of the next byte to read
	raw element // raw element that was just opened, see [properties]; 0: none
	buf [maxTagName]byte
}

// maxTagName limits the length of names that are looked up; a longer name is that of an
// unknown element.
const maxTagName = 16

type tokenKind byte

const (
	endToken   tokenKind = iota // the end of the document
	textToken                   // text with entities
	rawToken                    // the text of a raw element, such as script, but not of title and textarea
	openToken                   // a start tag, such as <a href=...>
	closeToken                  // an end tag, such as </a>
)

// token is one piece of a document. Its slices point into the document.
type token struct {
	kind  tokenKind
	name  element
	tag   []byte // the name as it is written
	text  []byte
	attrs []byte // the rest of the tag after the name, without the >
}

func (s *scanner) next() token {
	if s.raw != 0 {
		name := s.raw
		s.raw = 0
		end := s.rawEnd(name.String())
		text := s.src[s.pos:end]
		s.pos = end
		if len(text) > 0 {
			kind := rawToken
			if name == elemTitle || name == elemTextarea {
				kind = textToken
			}
			return token{kind: kind, name: name, text: text}
		}
	}
	for s.pos < len(s.src) {
		start := s.pos
		if s.src[start] != '<' || !s.isMarkup(start) {
			return token{kind: textToken, text: s.textTo(start)}
		}
		if t, ok := s.tag(); ok {
			return t
		}
	}
	return token{}
}

// isMarkup reports whether the < at offset i begins markup, and is not text.
func (s *scanner) isMarkup(i int) bool {
	if i+1 >= len(s.src) {
		return false
	}
	switch c := s.src[i+1]; {
	case c == '!', c == '?', isLetter(c):
		return true
	case c == '/':
		return i+2 < len(s.src)
	}
	return false
}

// textTo returns the text from start to the next markup, and moves pos to its end.
func (s *scanner) textTo(start int) []byte {
	i := start
	if s.src[i] == '<' {
		i++
	}
	for i < len(s.src) {
		n := bytes.IndexByte(s.src[i:], '<')
		if n < 0 {
			i = len(s.src)
			break
		}
		if i += n; s.isMarkup(i) {
			break
		}
		i++
	}
	s.pos = i
	return s.src[start:i]
}

// tag passes over the markup at pos and returns its token. ok is false for a comment or other
// markup that is no tag, and for a tag that has no end.
func (s *scanner) tag() (t token, ok bool) {
	rest := s.src[s.pos:]
	switch c := rest[1]; {
	case isLetter(c):
		t.kind = openToken
		s.pos++
	case c == '/' && isLetter(rest[2]):
		t.kind = closeToken
		s.pos += 2
	case bytes.HasPrefix(rest, []byte("<!--")):
		s.pos += commentLen(rest)
		return t, false
	default:
		if n := bytes.IndexByte(rest, '>'); n >= 0 {
			s.pos += n + 1
		} else {
			s.pos = len(s.src)
		}
		return t, false
	}
	start := s.pos
	for s.pos < len(s.src) && !isSpace(s.src[s.pos]) && s.src[s.pos] != '/' && s.src[s.pos] != '>' {
		s.pos++
	}
	t.tag = s.src[start:s.pos]
	if s.pos-start <= maxTagName {
		name := s.buf[:s.pos-start]
		for i, c := range s.src[start:s.pos] {
			if c >= 'A' && c <= 'Z' {
				c += 'a' - 'A'
			}
			name[i] = c
		}
		t.name = elementOf(name)
	}
	start = s.pos
	a := attributes{src: s.src, pos: s.pos}
	if start >= len(s.src) || s.src[start] != '>' { // most have no attributes
		for a.next() {
		}
	}
	if a.pos >= len(s.src) { // the document ends within the tag, so it does not count
		s.pos = len(s.src)
		return token{}, false
	}
	t.attrs, s.pos = s.src[start:a.pos], a.pos+1
	if t.kind == openToken && propertiesOf[t.name].raw {
		s.raw = t.name
	}
	return t, true
}

// commentLen returns the length of the comment at the beginning of rest.
func commentLen(rest []byte) int {
	for _, short := range []string{"<!-->", "<!--->"} {
		if bytes.HasPrefix(rest, []byte(short)) {
			return len(short)
		}
	}
	for i := 4; ; i++ {
		n := bytes.IndexByte(rest[i:], '>')
		if n < 0 {
			return len(rest)
		}
		i += n
		if end := rest[4:i]; bytes.HasSuffix(end, []byte("--")) || bytes.HasSuffix(end, []byte("--!")) {
			return i + 1
		}
	}
}

// rawEnd returns the offset at which the text of a raw element ends.
func (s *scanner) rawEnd(name string) int {
	for i := s.pos; ; {
		n := bytes.Index(s.src[i:], []byte("</"))
		if n < 0 {
			return len(s.src)
		}
		i += n
		end := i + 2 + len(name)
		if end < len(s.src) && bytes.EqualFold(s.src[i+2:end], []byte(name)) && (isSpace(s.src[end]) || s.src[end] == '/' || s.src[end] == '>') {
			return i
		}
		i += 2
	}
}

// attributes reads the attributes of a tag. src begins after the name of the tag.
type attributes struct {
	src         []byte
	pos         int
	name, value []byte // as written, with entities; value is nil if there is none
}

// next reads the next attribute, and reports whether there is one. After the last one,
// pos is at the > or at the end of src.
func (a *attributes) next() bool {
	for a.pos < len(a.src) && (isSpace(a.src[a.pos]) || a.src[a.pos] == '/') {
		a.pos++
	}
	if a.pos >= len(a.src) || a.src[a.pos] == '>' {
		return false
	}
	start := a.pos
	a.pos++ // a name may begin with =
	for a.pos < len(a.src) && !isSpace(a.src[a.pos]) && a.src[a.pos] != '/' && a.src[a.pos] != '>' && a.src[a.pos] != '=' {
		a.pos++
	}
	a.name, a.value = a.src[start:a.pos], nil
	a.skipSpace()
	if a.pos >= len(a.src) || a.src[a.pos] != '=' {
		return true
	}
	a.pos++
	a.skipSpace()
	if a.pos >= len(a.src) {
		return true
	}
	switch quote := a.src[a.pos]; quote {
	case '>':
	case '"', '\'':
		a.pos++
		n := bytes.IndexByte(a.src[a.pos:], quote)
		if n < 0 {
			a.pos = len(a.src)
			return false
		}
		a.value = a.src[a.pos : a.pos+n]
		a.pos += n + 1
	default:
		start := a.pos
		for a.pos < len(a.src) && !isSpace(a.src[a.pos]) && a.src[a.pos] != '>' {
			a.pos++
		}
		a.value = a.src[start:a.pos]
	}
	return true
}

func (a *attributes) skipSpace() {
	for a.pos < len(a.src) && isSpace(a.src[a.pos]) {
		a.pos++
	}
}

// attribute returns the value of the tag's first attribute with a name, as written. ok is
// false if there is none.
func (t token) attribute(name string) (value []byte, ok bool) {
	a := attributes{src: t.attrs}
	for a.next() {
		if hasName(a.name, name) {
			return a.value, true
		}
	}
	return nil, false
}

// hasName reports whether an attribute has this name, in upper or lower case. name consists of
// lower-case letters and hyphens.
func hasName(attribute []byte, name string) bool {
	if len(attribute) != len(name) {
		return false
	}
	for i := range len(name) {
		if attribute[i]|0x20 != name[i] {
			return false
		}
	}
	return true
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' || c == '\f' }
