package prompt

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/terminal"
)

// Beginnings of rows other than our titles: Bar begins a line of others, Continued the rest of
// a line that is too long for a row, Note our remark about hidden rows, and alarm our warning.
// Text of others cannot begin a row, and so cannot imitate a row of ours. Results of calls use
// the same bar.
const (
	Bar       = "     │ "
	Continued = "     : "
	Note      = "     ~ "
	alarm     = "     ! "
)

// A text with more than foldRows rows is folded: its middle is replaced by a note. For a text
// that only accompanies another one, the limit is sideRows.
const (
	foldRows = 24
	sideRows = 4
)

// minRepeats is the number of equal lines in a row from which on they are counted instead of
// shown: so a payload behind thousands of empty lines stays in sight.
const minRepeats = 3

var (
	blanks = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(` {9,}|\t{3,}`) })
	// ownMarks matches the marks that we show in the place of invisible characters.
	ownMarks = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`<(tab>|newline>|\d+ blanks>|U\+|0x)`) })
)

var markReplacer = strings.NewReplacer("\t", "<tab>", "\n", "<newline>")

// row is one row of a text. before is its prefix.
type row struct{ before, text, style string }

// rows returns rows as text in their styles.
func (v View) rows(rows []row) (out []string) {
	for _, r := range rows {
		out = append(out, r.before+v.style(r.style, r.text))
	}
	return out
}

// gutter breaks lines into rows behind bars. Runs of blanks and runs of equal lines are
// counted and not shown. A line end inside a line is shown as a mark.
func gutter(lines []string, width int) []row {
	var rows []row
	for i := 0; i < len(lines); {
		end := i + 1
		for end < len(lines) && lines[end] == lines[i] {
			end++
		}
		one := rowsOf("", lines[i], "", width)
		if more := end - i - 1; more >= minRepeats {
			rows = append(append(rows, one...), notes(width, "the line above %d times more", more)...)
		} else {
			for range end - i {
				rows = append(rows, one...)
			}
		}
		i = end
	}
	return rows
}

// rowsOf returns the rows of one line; the first row begins with words, a text of ours. The
// indentation of the line is kept if it takes at most half of a row.
func rowsOf(words, line, style string, width int) []row {
	text := strings.TrimLeft(line, " ")
	indent := line[:len(line)-len(text)]
	if text == "" || len(indent) > Room(width)/2 {
		indent, text = "", line
	}
	return prefixRows(Bar, style, inRows(words+indent+markedLine(text), width))
}

// inRows breaks a line between words into rows that fit behind a bar. A word that is longer
// than a row is broken where the row is full. Every character is kept.
func inRows(line string, width int) (rows []string) {
	row := ""
	for _, word := range strings.SplitAfter(line, " ") {
		columns := terminal.Width(strings.TrimSuffix(word, " "))
		if columns <= Room(width) && terminal.Width(row)+columns > Room(width) {
			rows, row = append(rows, row), ""
		}
		parts := terminal.Rows(row+word, Room(width))
		rows, row = append(rows, parts[:len(parts)-1]...), parts[len(parts)-1]
	}
	return append(rows, row)
}

func prefixRows(before, style string, texts []string) (rows []row) {
	for _, text := range texts {
		rows = append(rows, row{before, text, style})
		before = Continued
	}
	return rows
}

// markedLine makes a line visible and replaces runs of blanks by their number. Text that
// imitates our marks is escaped.
func markedLine(line string) string {
	line = ownMarks().ReplaceAllString(line, "<U+003C>$1")
	count := func(run string) string { return fmt.Sprintf("<%d blanks>", len(run)) }
	line = blanks().ReplaceAllStringFunc(line, count)
	if text := strings.TrimRight(line, " "); text != "" && text != line {
		line = text + count(line[len(text):])
	}
	return markReplacer.Replace(terminal.Visible(line))
}

// Room returns the number of columns for text in a row behind a bar. Some terminals draw the
// bar in two columns. The last column stays free: terminals differ in what they do after it.
func Room(width int) int { return max(width-terminal.Width(Bar)-1, 2) }

// notes returns a remark of ours, in rows for the middle of a text.
func notes(width int, format string, args ...any) []row {
	var rows []row
	for _, part := range terminal.Wrap(fmt.Sprintf(format, args...), Room(width)) {
		rows = append(rows, row{Note, part, terminal.Dim})
	}
	return rows
}

// folded replaces the middle of rows by a note if there are more than maxRows. The second
// result reports whether it did.
func folded(rows []row, maxRows, width int) ([]row, bool) {
	if len(rows) <= maxRows {
		return rows, false
	}
	note := func(middle []row) []row {
		written := 0
		for _, r := range middle {
			if r.before != Note && r.text != "" {
				written++
			}
		}
		how := strconv.Itoa(written)
		switch written {
		case 0:
			how = "none"
		case len(middle):
			how = "all"
		}
		return notes(width, "%d of %d rows are folded, %s of them with text", len(middle), len(rows), how)
	}
	keep := max(maxRows-len(note(rows)), 2)
	head, tail := (keep+1)/2, len(rows)-keep/2
	out := append([]row(nil), rows[:head]...)
	out = append(out, note(rows[head:tail])...)
	return append(out, rows[tail:]...), true
}
