package prompt

import (
	"fmt"
	"regexp"
	"strings"
	"sync"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/terminal"
)

// What stands before each row that is not a title of ours: a bar before a line
// that others have written, dots where a line that is too long for a row goes
// on, a tilde before what we say of rows that are not shown, and a mark before what we
// warn of. No text can begin a row, so none can look like another's. The bar is that of
// results.
const (
	Bar       = "     │ "
	Continued = "     : "
	Note      = "     ~ "
	alarm     = "     ! "
)

// Of one text, more rows than these are folded. What is only said beside something
// else is folded sooner.
const (
	foldRows = 24
	sideRows = 4
)

// minRepeats is how many copies of a line after it are counted instead of shown:
// a payload behind thousands of empty lines stands in sight.
const minRepeats = 3

var (
	blanks = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(` {9,}|\t{3,}`) })
	// ownMarks is what we write for what does not show.
	ownMarks = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`<(tab>|newline>|\d+ blanks>|U\+|0x)`) })
)

var markReplacer = strings.NewReplacer("\t", "<tab>", "\n", "<newline>")

// row is one row of a text, without what stands before it.
type row struct{ before, text, style string }

// rows returns rows as text with their styles.
func (v View) rows(rows []row) (out []string) {
	for _, r := range rows {
		out = append(out, r.before+v.style(r.style, r.text))
	}
	return out
}

// gutter breaks lines into rows behind bars. Runs of blanks and of equal lines
// are counted instead of shown. A line end within a line shows as one.
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

// rowsOf is one line in rows, the first of which begins with a few words of ours. What
// it is indented by shows as blanks where the line still begins in the first half of
// the row.
func rowsOf(words, line, style string, width int) []row {
	text := strings.TrimLeft(line, " ")
	indent := line[:len(line)-len(text)]
	if text == "" || len(indent) > Room(width)/2 {
		indent, text = "", line
	}
	return prefixRows(Bar, style, inRows(words+indent+markedLine(text), width))
}

// inRows breaks a line between its words into rows that have room behind a bar, and a
// word that is longer than a row where it ends. No character of it is left out.
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

// markedLine is a visible line, in which runs of blanks are counted, and what we write is
// nobody else's.
func markedLine(line string) string {
	line = ownMarks().ReplaceAllString(line, "<U+003C>$1")
	count := func(run string) string { return fmt.Sprintf("<%d blanks>", len(run)) }
	line = blanks().ReplaceAllStringFunc(line, count)
	if text := strings.TrimRight(line, " "); text != "" && text != line {
		line = text + count(line[len(text):])
	}
	return markReplacer.Replace(terminal.Visible(line))
}

// Room is how many columns a row has behind its bar, which some terminals draw in two.
// The last column stays free: what a terminal does after it differs.
func Room(width int) int { return max(width-terminal.Width(Bar)-1, 2) }

// notes is something that we say among the rows.
func notes(width int, format string, args ...any) []row {
	var rows []row
	for _, part := range terminal.Wrap(fmt.Sprintf(format, args...), Room(width)) {
		rows = append(rows, row{Note, part, terminal.Dim})
	}
	return rows
}

// folded leaves out the middle of rows of which there are too many, and says so. It
// reports whether it did.
func folded(rows []row, most, width int) ([]row, bool) {
	if len(rows) <= most {
		return rows, false
	}
	said := func(middle []row) []row {
		written := 0
		for _, r := range middle {
			if r.before != Note && r.text != "" {
				written++
			}
		}
		return notes(width, "%d of %d rows are folded, %d of them with text", len(middle), len(rows), written)
	}
	keep := max(most-len(said(rows)), 2)
	head, tail := (keep+1)/2, len(rows)-keep/2
	out := append([]row(nil), rows[:head]...)
	out = append(out, said(rows[head:tail])...)
	return append(out, rows[tail:]...), true
}
