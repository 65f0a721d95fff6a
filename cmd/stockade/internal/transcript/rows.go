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
	// ownIndent is the indentation of our rows below a call; bar begins each row of others.
	ownIndent = "     "
	bar       = ownIndent + "│ "
	hanging   = ownIndent + "  " // indentation of the second and later rows of our texts

	// maxWidth limits the column where an outcome ends: an eye cannot follow a longer row from
	// the name of the call. In wider terminals the rest of the row stays empty.
	maxWidth   = 100
	usualWidth = 80  // width of a row with an outcome, without a terminal
	maxLine    = 200 // characters of a line of others that are shown in most places; a longer one is cut
)

// span is a part of a row in one style.
type span struct{ style, text string }

// formatter makes rows for a terminal.
type formatter struct {
	columns int // width of the terminal; 0: none, rows are not broken
	color   bool
}

// width returns the width of a row with an outcome at its end; wrapped text may be wider.
func (p formatter) width() int {
	if p.columns > 0 {
		return min(p.columns, maxWidth)
	}
	return usualWidth
}

func (p formatter) style(style, text string) string { return terminal.Style(p.color, style, text) }

// head returns a row with right at its right end. middle is text of others, and is cut if
// there is too little room.
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
	// Our symbols take one column in most terminals and two in some.
	gap := max(width-2-narrowWidth(row)-narrowWidth(plain), 2)
	if p.columns > 0 {
		gap = max(min(gap, width-terminal.Width(row)-terminal.Width(plain)), 1)
	}
	return p.style(left.style, left.text) + middle + strings.Repeat(" ", gap) + end
}

// fitted cuts a visible line to at most columns columns, with "…" at its end. In less than 4
// columns, nothing is left of a longer line.
func fitted(line string, columns int) string {
	if terminal.Width(line) <= columns {
		return line
	}
	if columns < 4 {
		return ""
	}
	return terminal.Rows(line, columns-2)[0] + "…"
}

// narrowWidth returns the width of a row in a terminal that shows our symbols in one column.
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

// ownRows returns a text of ours in rows, broken between words. Lines after the first stand
// behind bars, because others may have written them.
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

func (p formatter) wrap(line string) []string { return p.fit(line, len(hanging), terminal.Wrap) }

// fit breaks a visible line into rows with a function of package terminal; behind is the width of a
// prefix that the caller adds.
func (p formatter) fit(line string, behind int, breaks func(line string, columns int) []string) []string {
	if p.columns <= 0 {
		return []string{line}
	}
	return breaks(strings.ReplaceAll(line, "\t", "    "), max(p.columns-1-behind, 8))
}

// quote returns output of programs in rows behind bars. A line is broken where the row is
// full, because columns of output have a meaning.
func (p formatter) quote(style, text string) []string { return p.barred(style, text, terminal.Rows) }

// prose returns text of others in rows behind bars, broken between words.
func (p formatter) prose(style, text string) []string { return p.barred(style, text, terminal.Wrap) }

func (p formatter) barred(style, text string, breaks func(line string, columns int) []string) (rows []string) {
	for line := range strings.SplitSeq(text, "\n") {
		for _, row := range p.fit(terminal.Visible(line), terminal.Width(bar), breaks) {
			rows = append(rows, bar+p.style(style, row))
		}
	}
	return rows
}

// clipped joins the lines with line ends, each cut to maxLine characters.
func clipped(lines []string) string {
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = humanize.Clip(l, maxLine)
	}
	return strings.Join(out, "\n")
}

var blanks = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(` {3,}`) })

// inline returns text of others for use inside a row of ours: one line, in which runs of three
// or more blanks are replaced, so that no part can be pushed out of sight.
func inline(text string) string {
	text = terminal.Line(text)
	return blanks().ReplaceAllStringFunc(text, func(s string) string { return "<" + strconv.Itoa(len(s)) + " blanks>" })
}

// linesOf returns the lines of a text; nil if it is blank.
func linesOf(text string) []string {
	text = strings.TrimRight(text, "\n")
	if strings.TrimSpace(text) == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

// lastBytes returns the last bytes of a text, at most maxBytes, from a whole character on.
func lastBytes(text string, maxBytes int) string {
	if len(text) <= maxBytes {
		return text
	}
	text = text[len(text)-maxBytes:]
	for text != "" && !utf8.RuneStart(text[0]) {
		text = text[1:]
	}
	return text
}
