package markdown

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/terminal"
)

const (
	// maxLine limits the bytes of a line that are read at once; a longer one is read in parts.
	maxLine = 4 << 10
	// maxBlock limits the bytes of a paragraph or a table that are rendered together. A longer
	// one is rendered in parts.
	maxBlock = 4 << 10
	// maxTableRows and maxTableColumns limit the cells of a table: a row can be one byte long
	// and still has as many cells as the first row. A longer table is rendered in parts, and a
	// wider one as text.
	maxTableRows    = 100
	maxTableColumns = 40
	// maxDepth limits the nesting of containers. The marks of deeper ones are shown as text.
	maxDepth   = 8
	minWidth   = 8 // the width of a row in the narrowest terminal, in columns
	codeIndent = 4 // the indentation of code, in columns
)

// Options configure the look of rows.
type Options struct {
	// Width returns the current width of a row in columns. If Width is nil or returns
	// less than 1, rows have 80 columns.
	Width func() int
	// Color adds the 16 colours of the terminal, bold, italic and dim. Without it, the
	// marks of the text are shown instead.
	Color bool
}

// Stream is an answer that arrives in pieces. Only one goroutine may use it.
type Stream struct {
	o Options

	line        []byte // line that has not ended yet
	midLine     bool   // the beginning of the present line was read already
	containers  []container
	para        []string // lines of the open paragraph or table; nil: none
	paraBytes   int      // number of bytes in para
	fence       *fence   // open block of code; nil: none
	blank       bool     // an empty row precedes the next row
	blankPrefix string   // prefix of that empty row
	begun       bool     // at least one row was finished
	preview     bool     // set in the copy that Rest makes: a line of code that has not ended gets no colours
	parsedBytes int      // bytes passed to goldmark, for tests

	out []string // rows that the present call has finished

	rest      []string // last result of Rest; nil: text was added since then
	restWidth int
}

// container is a quote or an item of a list.
type container struct {
	quote  bool
	indent int    // columns before the content of the item
	marker string // marker of the item as it is shown
	shown  bool   // the marker was shown
}

func New(o Options) *Stream { return &Stream{o: o} }

// Render returns the rows of a whole text.
func Render(text string, o Options) []string {
	s := New(o)
	return append(s.Add(text), s.End()...)
}

// Add adds a piece of the text, which may end anywhere, even inside a character. It returns
// the rows that are finished now, without line ends.
func (s *Stream) Add(text string) (done []string) {
	if text == "" {
		return nil
	}
	s.rest = nil
	if len(s.line)+len(text) <= maxLine && !strings.Contains(text, "\n") {
		s.line = append(s.line, text...)
		return nil
	}
	text = string(s.line) + text
	for text != "" {
		end := strings.IndexByte(text[:min(len(text), maxLine)], '\n')
		if end >= 0 {
			s.readLine(strings.TrimSuffix(text[:end], "\r"), true)
			text = text[end+1:]
			continue
		}
		if len(text) <= maxLine {
			break
		}
		end = cutAt(text[:maxLine])
		s.readLine(text[:end], false)
		text = text[end:]
	}
	s.line = append(s.line[:0], text...)
	return s.takeRows()
}

// cutAt returns the index at which a line that is too long is cut: at its last blank if there
// is one, or else before its last character.
func cutAt(line string) int {
	if i := strings.LastIndexByte(line, ' '); i > 0 {
		return i
	}
	for i := range utf8.UTFMax {
		if at := len(line) - i; utf8.RuneStart(line[at-1]) {
			return at - 1
		}
	}
	return len(line)
}

// End ends the text and returns the remaining rows.
func (s *Stream) End() (done []string) {
	s.rest = nil
	if len(s.line) > 0 {
		s.readLine(strings.TrimSuffix(string(s.line), "\r"), true)
		s.line = nil
	}
	s.close(0)
	return s.takeRows()
}

// Rest returns the last rows that [Stream.End] would return now, at most max. It may be called
// many times a second: it renders the open block again only if text was added or the width has
// changed.
func (s *Stream) Rest(max int) []string {
	if width := s.width(); s.rest == nil || s.restWidth != width {
		c := *s
		c.preview = true
		c.containers, c.para = slices.Clone(s.containers), slices.Clone(s.para)
		if s.fence != nil {
			f := *s.fence
			c.fence = &f
		}
		s.rest, s.restWidth = append([]string{}, c.End()...), width
	}
	return s.rest[len(s.rest)-min(max, len(s.rest)):]
}

func (s *Stream) takeRows() (out []string) {
	out, s.out = s.out, nil
	return out
}

func (s *Stream) width() int {
	width := 0
	if s.o.Width != nil {
		width = s.o.Width()
	}
	if width < 1 {
		width = 80
	}
	return max(width, minWidth)
}

// prefix returns the marks and blanks that the open containers put before the next row. It
// takes at most half of the columns.
func (s *Stream) prefix() string {
	var b strings.Builder
	for _, c := range s.containers {
		switch {
		case c.quote:
			b.WriteString("> ")
		case c.shown:
			b.WriteString(strings.Repeat(" ", columns(c.marker)))
		default:
			b.WriteString(c.marker)
		}
	}
	p := []rune(b.String())
	return string(p[max(len(p)-s.width()/2, 0):])
}

// room returns the number of columns that the containers leave for text.
func (s *Stream) room() int { return s.width() - columns(s.prefix()) }

// emit appends finished rows, each behind the prefix of the open containers.
func (s *Stream) emit(rows ...line) {
	for _, r := range rows {
		if s.blank && s.begun {
			s.out = append(s.out, s.blankPrefix)
		}
		s.blank, s.blankPrefix, s.begun = false, "", true
		p := s.prefix()
		text := r.text(s.o.Color)
		if text == "" {
			p = strings.TrimRight(p, " ")
		}
		s.out = append(s.out, terminal.Style(s.o.Color && strings.Trim(p, " ") != "", terminal.Dim, p)+text)
		for i := range s.containers {
			s.containers[i].shown = true
		}
	}
}

// separate requests an empty row before the next row, unless there is one.
func (s *Stream) separate() {
	s.blank = true
	s.blankPrefix = ""
	for i, c := range s.containers {
		if c.quote {
			within := Stream{o: s.o, containers: s.containers[:i+1]}
			s.blankPrefix = terminal.Style(s.o.Color, terminal.Dim, strings.TrimRight(within.prefix(), " "))
		}
	}
}

// endLeaf finishes the open paragraph, table or block of code.
func (s *Stream) endLeaf() {
	if s.para != nil {
		lines := s.para
		s.para, s.paraBytes = nil, 0
		s.paragraph(lines)
	}
	if s.fence != nil {
		s.fence = nil
	}
}

// close ends all containers except the first n, and the open block in them.
func (s *Stream) close(n int) {
	s.endLeaf()
	for len(s.containers) > n {
		if last := s.containers[len(s.containers)-1]; !last.quote && !last.shown {
			s.emit(line{}) // an item without text
		}
		s.containers = s.containers[:len(s.containers)-1]
	}
}
