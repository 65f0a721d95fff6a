package markdown

import (
	"strings"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/terminal"
)

// readLine reads a line, or a part of a line that is too long (whole is false), and finishes
// the blocks that end there. It finds blocks as CommonMark does. HTML is text here, and
// references are, too, because a stream cannot resolve them.
func (s *Stream) readLine(raw string, whole bool) {
	text := untab(terminal.Visible(raw))
	if s.midLine { // the line continues where the last part ended
		s.midLine = !whole
		if s.fence != nil {
			s.code(text)
		} else if text = strings.TrimLeft(text, " "); text != "" {
			s.addPara(text)
			s.endLeaf()
		}
		return
	}
	s.block(text)
	if s.midLine = !whole; s.midLine && s.fence == nil {
		s.endLeaf()
	}
}

func (s *Stream) block(rest string) {
	matched := 0
	for ; matched < len(s.containers); matched++ {
		inside, ok := s.containers[matched].continues(rest)
		if !ok {
			break
		}
		rest = inside
	}
	all := matched == len(s.containers)
	if s.fence != nil && all {
		s.code(rest)
		return
	}
	if rest == "" || indent(rest) == len(rest) {
		s.endLeaf()
		if !all { // the empty line lacks the mark of a quote, which ends the quote
			s.close(matched)
		}
		s.separate()
		return
	}
	if !all {
		if s.para != nil && !beginsBlock(rest) { // the marks are optional here
			s.addPara(strings.TrimLeft(rest, " "))
			return
		}
		s.close(matched)
	}
	if rest = s.open(rest); rest != "" {
		s.leaf(rest)
	}
}

// continues reports whether a line belongs to a container that is open. inside is the line
// without the container's marks.
func (c container) continues(text string) (inside string, ok bool) {
	n := indent(text)
	switch {
	case c.quote:
		if n > 3 || n == len(text) || text[n] != '>' {
			return "", false
		}
		return strings.TrimPrefix(text[n+1:], " "), true
	case n >= c.indent:
		return text[c.indent:], true
	case n == len(text):
		return "", true
	}
	return "", false
}

// open opens the containers that begin in a line, and returns the rest of the line.
func (s *Stream) open(text string) string {
	for len(s.containers) < maxDepth {
		n := indent(text)
		if n > 3 || n == len(text) {
			break
		}
		if text[n] == '>' {
			s.endLeaf()
			s.containers = append(s.containers, container{quote: true})
			text = strings.TrimPrefix(text[n+1:], " ")
			continue
		}
		marker, ok := listMarker(text[n:])
		if !ok || isRule(text[n:]) || s.para != nil && !interrupts(text[n:], marker) {
			break
		}
		s.endLeaf()
		inside := n + len(marker)
		if blanks := indent(text[inside:]); blanks < 5 && inside+blanks < len(text) {
			inside += blanks
		} else {
			inside++ // the item is empty or begins with code
		}
		shown := " " + marker + " "
		if len(marker) == 1 {
			shown = " • "
		}
		s.containers = append(s.containers, container{indent: inside, marker: shown})
		text = text[min(inside, len(text)):]
	}
	if indent(text) == len(text) {
		return ""
	}
	return text
}

// leaf reads the part of a line after the marks of its containers.
func (s *Stream) leaf(rest string) {
	n := indent(rest)
	text := rest[n:]
	f, fenced := openFence(rest)
	switch {
	case n > 3 && s.para == nil:
		s.emit(s.wrapCode([]run{{text: rest[4:]}})...)
	case n > 3:
		s.addPara(text)
	case s.para != nil && isUnderline(text):
		lines := s.para
		s.para, s.paraBytes = nil, 0
		level := 1
		if text[0] == '-' {
			level = 2
		}
		s.heading(level, strings.Join(lines, "\n"))
	case fenced:
		s.endLeaf()
		s.fence = f
		if f.info != "" {
			s.emit(s.wrapCode([]run{{text: f.info, style: dim}})...)
		}
	case isHeading(text):
		s.endLeaf()
		level := strings.IndexFunc(text+" ", func(r rune) bool { return r != '#' })
		text = strings.TrimRight(text[level:], " ")
		if bare := strings.TrimRight(text, "#"); bare == "" || bare[len(bare)-1] == ' ' {
			text = bare
		}
		s.heading(level, strings.TrimSpace(text))
	case isRule(text):
		s.endLeaf()
		s.emit(line{runs: []run{{text: strings.Repeat("─", min(s.room(), 40)), style: dim}}})
	default:
		s.addPara(text)
	}
}

// addPara adds a line to the open paragraph or table. A paragraph that is too long is
// finished. A table that is too long is finished, too, and its rest begins with the same head.
func (s *Stream) addPara(text string) {
	s.para = append(s.para, text)
	s.paraBytes += len(text) + 1
	if s.paraBytes <= maxBlock && len(s.para) <= maxTableRows {
		return
	}
	var head []string
	if len(s.para) > 2 && isDelimiter(s.para[1]) && len(s.para[0])+len(s.para[1]) < maxBlock/2 {
		head = s.para[:2:2]
	}
	s.endLeaf()
	for _, l := range head {
		s.para = append(s.para, l)
		s.paraBytes += len(l) + 1
	}
}

// beginsBlock reports whether a line without the marks of its containers begins a block
// instead of continuing a paragraph.
func beginsBlock(text string) bool {
	n := indent(text)
	if n > 3 || n == len(text) {
		return false
	}
	_, listed := listMarker(text[n:])
	_, fenced := openFence(text)
	return listed || fenced || text[n] == '>' || isHeading(text[n:]) || isRule(text[n:])
}

// interrupts reports whether a list item with this marker and text may begin inside a
// paragraph. It must not be empty, and its number must be 1: another number often belongs to a
// sentence.
func interrupts(text, marker string) bool {
	return len(strings.TrimSpace(text)) > len(marker) && (len(marker) == 1 || marker[:len(marker)-1] == "1")
}

// listMarker returns the marker at the beginning of a list item: -, +, *, 1. or 1).
func listMarker(text string) (marker string, ok bool) {
	digits := 0
	for digits < len(text) && text[digits] >= '0' && text[digits] <= '9' {
		digits++
	}
	switch {
	case digits == len(text), digits > 9,
		digits == 0 && !strings.ContainsRune("-+*", rune(text[0])),
		digits > 0 && text[digits] != '.' && text[digits] != ')':
		return "", false
	}
	marker = text[:digits+1]
	return marker, len(text) == len(marker) || text[len(marker)] == ' '
}

// isHeading reports whether a line begins with one to six # before a blank or its end.
func isHeading(text string) bool {
	level := 0
	for level < len(text) && text[level] == '#' {
		level++
	}
	return level >= 1 && level <= 6 && (level == len(text) || text[level] == ' ')
}

// isRule reports whether a line consists of three or more -, * or _, and blanks.
func isRule(text string) bool {
	mark, count := text[0], 0
	if mark != '-' && mark != '*' && mark != '_' {
		return false
	}
	for i := range len(text) {
		switch text[i] {
		case mark:
			count++
		case ' ':
		default:
			return false
		}
	}
	return count >= 3
}

// isUnderline reports whether a line consists of = or - only, which makes a heading of the
// paragraph above.
func isUnderline(text string) bool {
	bare := strings.TrimRight(text, " ")
	return bare != "" && (strings.Trim(bare, "=") == "" || strings.Trim(bare, "-") == "")
}

// isDelimiter reports whether a line can be the second line of a table, such as |---|---|.
func isDelimiter(text string) bool {
	return strings.Contains(text, "-") && strings.Contains(text, "|") && strings.Trim(text, "|-: ") == ""
}

func indent(text string) int { return len(text) - len(strings.TrimLeft(text, " ")) }

// untab replaces tabs by blanks. A tab at the beginning of the line becomes four blanks, which
// keeps the levels of code inside containers. Other tabs lead to the next multiple of four
// columns.
func untab(text string) string {
	if !strings.Contains(text, "\t") {
		return text
	}
	bare := strings.TrimLeft(text, " \t")
	var b strings.Builder
	b.WriteString(strings.ReplaceAll(text[:len(text)-len(bare)], "\t", "    "))
	column := b.Len()
	for i, part := range strings.Split(bare, "\t") {
		if i > 0 {
			b.WriteString("    "[column%4:])
			column += 4 - column%4
		}
		b.WriteString(part)
		column += columns(part)
	}
	return b.String()
}
