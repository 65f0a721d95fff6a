package markdown

import (
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/terminal"
)

// style is a set of the constants below, which can be combined.
type style uint8

const (
	bold style = 1 << iota
	italic
	underline
	dim
	red
	green
	magenta
	cyan
)

var sgr = []struct {
	style style
	code  string
}{{bold, "1"}, {dim, "2"}, {italic, "3"}, {underline, "4"}, {red, "31"}, {green, "32"}, {magenta, "35"}, {cyan, "36"}}

type run struct {
	text  string
	style style
}

// line is one row of the screen. width is its width in columns.
type line struct {
	runs  []run
	width int
}

func (l *line) add(text string, width int, st style) {
	l.width += width
	if n := len(l.runs); n > 0 && l.runs[n-1].style == st {
		l.runs[n-1].text += text
		return
	}
	l.runs = append(l.runs, run{text, st})
}

func (l *line) append(other line) {
	for _, r := range other.runs {
		l.add(r.text, 0, r.style)
	}
	l.width += other.width
}

// text returns the row as text, with escape sequences if color is set.
func (l line) text(color bool) string {
	runs := l.runs
	for len(runs) > 0 && strings.Trim(runs[len(runs)-1].text, " ") == "" {
		runs = runs[:len(runs)-1]
	}
	var b strings.Builder
	for i, r := range runs {
		if i == len(runs)-1 {
			r.text = strings.TrimRight(r.text, " ")
		}
		var codes []string
		for _, s := range sgr {
			if r.style&s.style != 0 {
				codes = append(codes, s.code)
			}
		}
		b.WriteString(terminal.Style(color, strings.Join(codes, ";"), r.text))
	}
	return b.String()
}

// filler collects characters into words and words into rows.
type filler struct {
	width int
	rows  []line
	row   line
	word  line
	gap   line // blanks between row and word
}

// wrap breaks text into rows of at most width columns, between words; a word that is longer
// than a row is broken inside. A line end in the text ends the row.
func wrap(runs []run, width int) []line {
	f := filler{width: width}
	for _, r := range runs {
		clusters(r.text, func(c string, w int) {
			switch {
			case c == "\n":
				f.endWord()
				f.endRow()
			case c == " ":
				f.endWord()
				f.gap.add(" ", 1, r.style&^(dim|underline))
			case w > 1 || f.word.width+w > width: // also between Chinese characters
				f.endWord()
				f.word.add(c, w, r.style)
				if w > 1 {
					f.endWord()
				}
			default:
				f.word.add(c, w, r.style)
			}
		})
	}
	f.endWord()
	if len(f.row.runs) > 0 || len(f.rows) == 0 {
		f.endRow()
	}
	return f.rows
}

func (f *filler) endWord() {
	if len(f.word.runs) == 0 {
		return
	}
	if f.row.width+f.gap.width+f.word.width > f.width && f.row.width > 0 {
		f.endRow()
	}
	if f.row.width > 0 {
		f.row.append(f.gap)
	}
	f.row.append(f.word)
	f.gap, f.word = line{}, line{}
}

func (f *filler) endRow() {
	f.rows = append(f.rows, f.row)
	f.row, f.gap = line{}, line{}
}

// wrapCode breaks a line of code where the row is full, and keeps its blanks.
func (s *Stream) wrapCode(runs []run) (rows []line) {
	width := s.room()
	in := min(codeIndent, max(width-codeIndent, 0))
	if len(s.containers) > 0 {
		in /= 2
	}
	row := line{}
	for _, r := range runs {
		clusters(r.text, func(c string, w int) {
			if row.width+w > width-in && row.width > 0 {
				rows, row = append(rows, row), line{}
			}
			row.add(c, w, r.style)
		})
	}
	rows = append(rows, row)
	for i := range rows {
		if rows[i].width > 0 {
			rows[i].runs = slices.Insert(rows[i].runs, 0, run{text: strings.Repeat(" ", in)})
			rows[i].width += in
		}
	}
	return rows
}

// clusters calls do with each character of a text together with its marks, and with the width
// of both in columns.
func clusters(text string, do func(cluster string, width int)) {
	for text != "" {
		if text[0] < 0x80 && (len(text) == 1 || text[1] < 0x80) {
			do(text[:1], 1)
			text = text[1:]
			continue
		}
		c, w := ansi.FirstGraphemeCluster(text, ansi.GraphemeWidth)
		do(c, w)
		text = text[len(c):]
	}
}

func columns(text string) (width int) {
	clusters(text, func(_ string, w int) { width += w })
	return width
}
