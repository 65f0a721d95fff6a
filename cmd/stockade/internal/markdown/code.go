package markdown

import "strings"

// fence is an open block of code between lines of ``` or ~~~.
type fence struct {
	mark     byte
	length   int       // number of opening marks
	indent   int       // columns before the marks
	info     string    // text after the marks, if it is more than a language
	language *language // language of the code; nil: the code has no colours
	closer   string    // end mark of the open comment or string literal of several lines; empty: none is open
	style    style     // style of that comment or string literal
}

// openFence reads a line that opens a block of code. It returns false for other lines.
func openFence(line string) (*fence, bool) {
	n := indent(line)
	text := line[n:]
	if n > 3 || text == "" || text[0] != '`' && text[0] != '~' {
		return nil, false
	}
	info := strings.TrimLeft(text, text[:1])
	f := &fence{mark: text[0], length: len(text) - len(info), indent: n, info: strings.TrimSpace(info)}
	if f.length < 3 || f.mark == '`' && strings.Contains(info, "`") {
		return nil, false
	}
	name, _, _ := strings.Cut(f.info, " ")
	if f.language = languages()[strings.ToLower(name)]; f.language != nil && name == f.info {
		f.info = ""
	}
	return f, true
}

func (f *fence) closes(line string) bool {
	n := indent(line)
	text := strings.TrimRight(line[n:], " ")
	return n < 4 && len(text) >= f.length && strings.Trim(text, string(f.mark)) == ""
}

// code renders a line of the open block of code.
func (s *Stream) code(text string) {
	f := s.fence
	if f.closes(text) {
		s.endLeaf()
		return
	}
	text = strings.TrimRight(text[min(indent(text), f.indent):], " ")
	if f.language == nil || s.preview || !s.o.Color {
		s.emit(s.wrapCode([]run{{text: text}})...)
		return
	}
	s.emit(s.wrapCode(f.scan(text))...)
}

// scan returns a line of code with its colours. The time is proportional to the length of any
// line: scan searches only once for the end of a quotation mark that is never closed.
func (f *fence) scan(text string) (runs []run) {
	l := f.language
	if text != "" && f.closer == "" {
		if st, ok := l.first[text[0]]; ok {
			return []run{{text: text, style: st}}
		}
	}
	start, current := 0, style(0) // start and style of the open run
	paint := func(from, to int, st style) {
		if st == current || from == to {
			return
		}
		if from > start {
			runs = append(runs, run{text: text[start:from], style: current})
		}
		start, current = from, st
	}
	open := "" // quotation marks that are not closed in this line
	for i := 0; i < len(text); {
		rest, end, st := text[i:], i+1, style(0)
		b, isBlock := l.blockAt(rest)
		switch c := text[i]; {
		case f.closer != "":
			st, end = f.style, len(text)
			if n := strings.Index(rest, f.closer); n >= 0 {
				end, f.closer = i+n+len(f.closer), ""
			}
		case l.isComment(text, i):
			st, end = dim, len(text)
		case isBlock:
			st, end = b.style, i+len(b.begin)
			f.closer, f.style = b.end, b.style
		case strings.IndexByte(l.quotes, c) >= 0 && strings.IndexByte(open, c) < 0:
			if n := quotedLen(rest); n > 0 {
				st, end = green, i+n
			} else {
				open += string(c)
			}
		case c >= '0' && c <= '9':
			st, end = cyan, i+wordLen(rest, ".")
		case isWord(c):
			end = i + wordLen(rest, "")
			word := text[i:end]
			if l.anyCase {
				word = strings.ToLower(word)
			}
			if l.words[word] {
				st = magenta
			}
		}
		paint(i, end, st)
		i = end
	}
	if start < len(text) {
		runs = append(runs, run{text: text[start:], style: current})
	}
	return runs
}

// quotedLen returns the length of the string literal that begins text; 0: it is not closed.
func quotedLen(text string) int {
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case text[0]:
			return i + 1
		}
	}
	return 0
}

// isWord reports whether a byte belongs to a word, like every byte outside ASCII.
func isWord(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}

// wordLen returns the length of the word at the beginning of text. The characters in others
// also belong to words.
func wordLen(text, others string) int {
	for i := range len(text) {
		if !isWord(text[i]) && strings.IndexByte(others, text[i]) < 0 {
			return i
		}
	}
	return len(text)
}
