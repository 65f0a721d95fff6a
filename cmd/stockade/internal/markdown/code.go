package markdown

import (
	"strings"
	"sync"
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
	maxCode = 8 << 10
	// maxColored is how many bytes of code of an answer are highlighted: at half a
	// megabyte a second, no more is worth its time.
	maxColored = 128 << 10
	// maxCodeLine is the longest line that is highlighted: the expressions of some
	// languages take the square of it and more.
	maxCodeLine = 1000
	// maxLexing is how long a part may take, more than ten times what it usually does.
	maxLexing = 250 * time.Millisecond
)

// fence is a block of code that is open.
type fence struct {
	mark   byte
	length int // of the marks that open it
	indent int
	info   string // what stands beside the marks, if it is more than a language
	lexer  chroma.Lexer

	lines   []string // that are highlighted together
	bytes   int      // of them
	done    int      // how many of them are finished
	new     int      // bytes of the others
	colored [][]run  // the first of the lines, highlighted
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
	language, _, _ := strings.Cut(f.info, " ")
	if known, ok := languages()[strings.ToLower(language)]; ok {
		if f.lexer = known; language == f.info {
			f.info = ""
		}
	}
	return f, true
}

// languages are the lexers by their names and by the endings of their files. chroma
// looks a name that it does not know up among all patterns of files, which takes
// milliseconds. It also has lexers that highlight a whole text before they return,
// and so cannot be stopped; those are left out.
var languages = sync.OnceValue(func() map[string]chroma.Lexer {
	out := map[string]chroma.Lexer{}
	for _, l := range lexers.GlobalLexerRegistry.Lexers {
		if _, ok := l.(*chroma.RegexLexer); !ok {
			continue
		}
		names := append([]string{l.Config().Name}, l.Config().Aliases...)
		for _, pattern := range l.Config().Filenames {
			if ending, ok := strings.CutPrefix(pattern, "*."); ok && out[ending] == nil {
				out[ending] = l
			}
		}
		for _, name := range names {
			out[strings.ToLower(name)] = l
		}
	}
	return out
})

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
	if f.lexer == nil || s.plain || s.live || !s.o.Color || len(text) > maxCodeLine {
		s.flushCode()
		f.lines, f.bytes, f.done, f.colored = nil, 0, 0, nil
		s.emit(s.wrapCode([]run{{text: text}})...)
		return
	}
	f.lines = append(f.lines, text)
	f.bytes += len(text) + 1
	if f.new += len(text) + 1; f.new >= max(minCode, f.bytes/3) {
		s.flushCode()
	}
}

// flushCode finishes the lines of the block that are not. What is read again is at
// most twice as long as what is new.
func (s *Stream) flushCode() {
	f := s.fence
	if f.done == len(f.lines) {
		return
	}
	s.color()
	for _, l := range f.colored[f.done:] {
		s.emit(s.wrapCode(l)...)
	}
	s.colored += f.new
	s.plain = s.plain || s.colored > maxColored
	f.done, f.new = len(f.lines), 0
	if f.bytes > maxCode {
		f.lines, f.bytes, f.done, f.colored = nil, 0, 0, nil
	}
}

// color highlights the lines of the block, if it has not been done.
func (s *Stream) color() {
	f := s.fence
	if len(f.colored) == len(f.lines) {
		return
	}
	s.read += f.bytes
	lines, ok := highlight(f.lexer, f.lines)
	f.colored, s.plain = lines, s.plain || !ok
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
