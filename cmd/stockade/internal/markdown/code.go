package markdown

import (
	"strings"
	"time"

	"github.com/alecthomas/chroma/v2"
	"github.com/alecthomas/chroma/v2/lexers"
)

const (
	// minCode is how many bytes of code are highlighted together at least: what comes
	// later tells how what came before is to be read.
	minCode = 1 << 10
	// maxCode is how many bytes of a block are highlighted again with what follows,
	// which may go on with a comment that began there.
	maxCode = 16 << 10
	// maxCodeLine is the longest line that is highlighted: the expressions of some
	// languages take the square of it and more.
	maxCodeLine = 1000
	// maxLexing is how long a part may take, about 50 times what it does.
	maxLexing = 250 * time.Millisecond
)

// fence is a block of code that is open.
type fence struct {
	mark   byte
	length int // of the marks that open it
	indent int
	info   string // what stands beside the marks, if it is more than a language
	lexer  chroma.Lexer

	lines []string // that are highlighted together
	bytes int      // of them
	done  int      // how many of them are finished
	new   int      // bytes of the others
}

// openFence reads the line that opens a block of code.
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
	if language, _, _ := strings.Cut(f.info, " "); language != "" && len(language) < 32 {
		// Others than these highlight a whole text before they return.
		if known, ok := lexers.Get(language).(*chroma.RegexLexer); ok {
			f.lexer = known
			if language == f.info {
				f.info = ""
			}
		}
	}
	return f, true
}

// closes reports whether a line closes the block.
func (f *fence) closes(line string) bool {
	n := indent(line)
	text := strings.TrimRight(line[n:], " ")
	return n < 4 && len(text) >= f.length && strings.Trim(text, string(f.mark)) == ""
}

// code reads a line of the block that is open.
func (s *Stream) code(text string) {
	f := s.fence
	if f.closes(text) {
		s.endLeaf()
		return
	}
	text = strings.TrimRight(text[min(indent(text), f.indent):], " ")
	if f.lexer == nil || s.plain || !s.o.Color || len(text) > maxCodeLine {
		s.flushCode()
		f.lines, f.bytes, f.done = nil, 0, 0
		s.emit(s.wrapCode([]run{{text: text}})...)
		return
	}
	f.lines = append(f.lines, text)
	f.bytes += len(text) + 1
	if f.new += len(text) + 1; f.new >= max(minCode, f.bytes/4) {
		s.flushCode()
	}
}

// flushCode finishes the lines of the block that are not. Each is highlighted
// five times at most, because what is read again is at most four times as long as
// what is new.
func (s *Stream) flushCode() {
	f := s.fence
	if f.done == len(f.lines) {
		return
	}
	s.read += f.bytes
	lines, ok := highlight(f.lexer, f.lines)
	s.plain = s.plain || !ok
	for _, l := range lines[f.done:] {
		s.emit(s.wrapCode(l)...)
	}
	f.done, f.new = len(f.lines), 0
	if f.bytes > maxCode {
		f.lines, f.bytes, f.done = nil, 0, 0
	}
}

// highlight gives lines of code their colours. If that is too much work, or the
// lexer fails or shows another text, they have none and it is not ok.
func highlight(lexer chroma.Lexer, code []string) (lines [][]run, ok bool) {
	defer func() {
		if recover() != nil { // a lexer panics where its rules do not fit together
			ok = false
		}
		if !ok {
			lines = nil
			for _, l := range code {
				lines = append(lines, []run{{text: l}})
			}
		}
	}()
	text := strings.Join(code, "\n") + "\n"
	tokens, err := lexer.Tokenise(&chroma.TokeniseOptions{State: "root"}, text)
	if err != nil {
		return nil, false
	}
	var current []run
	start, at := time.Now(), 0
	for token := tokens(); token != chroma.EOF; token = tokens() {
		if time.Since(start) > maxLexing || !strings.HasPrefix(text[at:], token.Value) {
			return nil, false
		}
		at += len(token.Value)
		for i, part := range strings.Split(token.Value, "\n") {
			if i > 0 {
				lines, current = append(lines, current), nil
			}
			if part != "" {
				current = append(current, run{text: part, style: styleOf(token.Type)})
			}
		}
	}
	return lines, at == len(text)
}

// styleOf is the style of a kind of token. Each of its colours can be read on a
// dark and on a light ground.
func styleOf(t chroma.TokenType) style {
	switch {
	case t.InCategory(chroma.Comment) && t != chroma.CommentPreproc:
		return dim
	case t.InCategory(chroma.Keyword), t == chroma.NameTag, t == chroma.CommentPreproc:
		return magenta
	case t.InSubCategory(chroma.LiteralString), t == chroma.GenericInserted:
		return green
	case t.InCategory(chroma.Literal), t == chroma.NameAttribute, t == chroma.NameBuiltin:
		return cyan
	case t == chroma.GenericDeleted:
		return red
	case t == chroma.GenericHeading, t == chroma.GenericSubheading, t == chroma.NameFunction, t == chroma.NameClass:
		return bold
	}
	return 0
}
