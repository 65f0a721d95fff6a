package transcript

import (
	"regexp"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/humanize"
	"github.com/stockade-dev/stockade/cmd/stockade/internal/terminal"
)

const (
	// ownIndent stands before what we say of a call, and bar before what others do.
	ownIndent = "     "
	bar       = ownIndent + "│ "
	// hanging stands before the rows of ours that go on with one above.
	hanging = ownIndent + "  "

	// maxWidth is how far at the right it is said what came of a call: farther, no eye
	// finds the way from its name.
	maxWidth = 100
	// usualWidth is that where there is no terminal.
	usualWidth = 80
	// maxLine is how many characters of a line of a result are shown.
	maxLine = 200
)

// span is a part of a row.
type span struct{ style, text string }

// formatter makes rows for a terminal.
type formatter struct {
	columns int // 0: none, then rows are not broken
	color   bool
}

// width is how wide a row may be.
func (p formatter) width() int {
	if p.columns > 0 {
		return min(p.columns, maxWidth)
	}
	return usualWidth
}

func (p formatter) style(style, text string) string { return terminal.Style(p.color, style, text) }

// head is a row with something at its right end. The text in the middle is of others,
// and is cut to what is left for it.
func (p formatter) head(left span, middle string, right ...span) string {
	width := p.width()
	end, plain := "", ""
	for _, s := range right {
		end, plain = end+p.style(s.style, s.text), plain+s.text
	}
	if p.columns > 0 {
		room := width - 1 - terminal.Width(left.text) - terminal.Width(plain) - 4
		middle = fitted(middle, room)
		if room < 0 {
			left.text = fitted(left.text, width-1-terminal.Width(plain)-2)
		}
	} else {
		middle = humanize.Clip(middle, maxLine)
	}
	if middle != "" {
		middle = " " + middle
	}
	row := left.text + middle
	if plain == "" {
		return p.style(left.style, left.text) + middle
	}
	// The symbols of ours take one column, but two of some terminals.
	gap := max(width-2-narrowWidth(row)-narrowWidth(plain), 2)
	if p.columns > 0 {
		gap = max(min(gap, width-terminal.Width(row)-terminal.Width(plain)), 1)
	}
	return p.style(left.style, left.text) + middle + strings.Repeat(" ", gap) + end
}

// fitted cuts a visible line to so many columns.
func fitted(line string, columns int) string {
	if terminal.Width(line) <= columns {
		return line
	}
	if columns < 4 {
		return ""
	}
	return terminal.Rows(line, columns-2)[0] + "…"
}

// narrowWidth is how many columns a row takes where symbols take one.
func narrowWidth(row string) (columns int) {
	for _, r := range row {
		switch {
		case r >= 0x300 && r < 0x370: // marks
		case r >= 0x1100 && (r < 0x2000 || r > 0x27FF):
			columns += 2
		default:
			columns++
		}
	}
	return columns
}

// ownRows is what we say, broken between words. The rest of a text of more than one line
// stands behind bars: in it, others may have written.
func (p formatter) ownRows(style, text string) (rows []string) {
	first, rest, more := strings.Cut(strings.TrimRight(text, "\n"), "\n")
	before := ownIndent
	for _, row := range p.wrap(terminal.Visible(first)) {
		rows = append(rows, p.style(style, before+row))
		before = hanging
	}
	if more {
		rows = append(rows, p.prose(style, rest)...)
	}
	return rows
}

func (p formatter) wrap(line string) []string { return p.wrapped(line, len(hanging)) }

// wrapped breaks a visible line between words into rows behind so many columns.
func (p formatter) wrapped(line string, behind int) []string {
	if p.columns <= 0 {
		return []string{line}
	}
	return terminal.Wrap(strings.ReplaceAll(line, "\t", "    "), max(p.columns-1-behind, 8))
}

// quote is what programs have written, behind bars. Its columns mean something, so it is
// broken where the row ends.
func (p formatter) quote(style, text string) (rows []string) {
	for line := range strings.SplitSeq(text, "\n") {
		for _, row := range p.broken(terminal.Visible(line), terminal.Width(bar)) {
			rows = append(rows, bar+p.style(style, row))
		}
	}
	return rows
}

// prose are words of others, behind bars and broken between them.
func (p formatter) prose(style, text string) (rows []string) {
	for line := range strings.SplitSeq(text, "\n") {
		for _, row := range p.wrapped(terminal.Visible(line), terminal.Width(bar)) {
			rows = append(rows, bar+p.style(style, row))
		}
	}
	return rows
}

// broken breaks a visible line into rows that have room behind so many columns.
func (p formatter) broken(line string, behind int) []string {
	if p.columns <= 0 {
		return []string{line}
	}
	return terminal.Rows(strings.ReplaceAll(line, "\t", "    "), max(p.columns-1-behind, 8))
}

// clipped cuts each line, for what is only looked over.
func clipped(lines []string) string {
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = humanize.Clip(l, maxLine)
	}
	return strings.Join(out, "\n")
}

var blanks = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(` {3,}`) })

// inline is a text of others as a part of a row of ours: one line, in which nothing
// is far away from what is before it.
func inline(text string) string {
	text = terminal.Line(text)
	return blanks().ReplaceAllStringFunc(text, func(s string) string { return "<" + strconv.Itoa(len(s)) + " blanks>" })
}

// linesOf are the lines of a text, none of an empty one.
func linesOf(text string) []string {
	text = strings.TrimRight(text, "\n")
	if strings.TrimSpace(text) == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

// lastBytes is the end of a text that is at most so long, from the beginning of a
// character on.
func lastBytes(text string, most int) string {
	if len(text) <= most {
		return text
	}
	text = text[len(text)-most:]
	for text != "" && !utf8.RuneStart(text[0]) {
		text = text[1:]
	}
	return text
}
