package markdown

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/terminal"
)

const (
	// maxLine is how many bytes of a line are read at once. A longer one is a
	// paragraph that is cut.
	maxLine = 4 << 10
	// maxBlock is how many bytes of a paragraph or of a table are rendered together.
	maxBlock = 4 << 10
	// maxTableRows and maxTableColumns bound the cells of a table: a row may be one
	// byte, and has as many cells as the first.
	maxTableRows    = 100
	maxTableColumns = 40
	// maxDepth is how many containers stand in one another. The marks of more are text.
	maxDepth = 8
	// minWidth is the width of a row in the narrowest terminal.
	minWidth = 8
	// codeIndent is how far code stands to the right.
	codeIndent = 4
)

// Options say how rows look.
type Options struct {
	// Width is how many columns a row may take now. Nil or less than 1 are 80.
	Width func() int
	// Color gives rows the 16 colours of the terminal, bold, italic and dim. Without
	// it, the marks of the text stay where its colours would be.
	Color bool
}

// Stream is an answer that comes in pieces. It is used by one goroutine.
type Stream struct {
	o Options

	line        []byte // that has not ended yet
	midLine     bool   // its beginning was read already
	containers  []container
	para        []string // the lines of the paragraph or table that is open
	paraBytes   int
	fence       *fence
	blank       bool   // an empty row is due before the next
	blankPrefix string // what stands in it
	begun       bool   // a row was finished
	preview     bool   // this is a copy for Rest: a line of code that has not ended has no colours
	parsedBytes int    // bytes that goldmark was given, for tests

	out []string // rows of this call

	rest      []string // what Rest returned, until more is added
	restWidth int
}

// container is a quote, or an item of a list.
type container struct {
	quote  bool
	indent int    // of what belongs to the item, in columns
	marker string // of the item, as it is shown
	shown  bool   // the marker was
}

// New returns an empty stream.
func New(o Options) *Stream { return &Stream{o: o} }

// Render returns the rows of a whole text.
func Render(text string, o Options) []string {
	s := New(o)
	return append(s.Add(text), s.End()...)
}

// Add adds a piece, which may end anywhere, even within a character. It returns
// the rows that are finished by it, without line ends.
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

// cutAt is where a line is cut that is too long: at a blank, or at least between
// characters.
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

// End ends the text and returns the rows that were not finished.
func (s *Stream) End() (done []string) {
	s.rest = nil
	if len(s.line) > 0 {
		s.readLine(strings.TrimSuffix(string(s.line), "\r"), true)
		s.line = nil
	}
	s.close(0)
	return s.takeRows()
}

// Rest returns the last rows, at most max, that [Stream.End] would return now. It
// may be called many times a second: it renders one block, and only when something
// was added or the width is another.
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

// prefix is what stands before the next row because of its containers. It takes
// half of the columns at most.
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

// room is how many columns the containers leave.
func (s *Stream) room() int { return s.width() - columns(s.prefix()) }

// emit finishes rows of a block.
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

// separate asks for an empty row before the next.
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

// endLeaf finishes the block that is open.
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

// close ends all containers but the first n, and what is open in them.
func (s *Stream) close(n int) {
	s.endLeaf()
	for len(s.containers) > n {
		if last := s.containers[len(s.containers)-1]; !last.quote && !last.shown {
			s.emit(line{}) // an item without text
		}
		s.containers = s.containers[:len(s.containers)-1]
	}
}
