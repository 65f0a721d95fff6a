package prompt

import (
	"crypto/sha256"
	"fmt"
	"regexp"
	"strings"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/terminal"
)

// What stands before each row that is not a title of ours: a bar before a line
// that others have written, dots where a line that is too long for a row goes
// on, and a tilde before what we say of rows that are not shown. No text can
// begin a row, so none can look like another's.
const (
	bar    = "    | "
	goesOn = "    : "
	note   = "    ~ "
)

// Of one text, more rows than foldRows are folded, and keepRows stay at each
// end. What is only said beside something else is folded sooner.
var (
	foldRows = fold{24, 9}
	sideRows = fold{8, 3}
)

type fold struct{ most, keep int }

// repeated is how many copies of a line after it are counted instead of shown:
// a payload behind thousands of empty lines stands in sight.
const repeated = 3

var (
	blanks = regexp.MustCompile(` {9,}|\t{3,}`)
	// ours is what we write for what does not show.
	ours = regexp.MustCompile(`<(tab>|newline>|\d+ blanks>|U\+|0x)`)
)

var marked = strings.NewReplacer("\t", "<tab>", "\n", "<newline>")

// row is one row of a text, without what stands before it.
type row struct{ before, text string }

// gutter breaks lines into rows behind bars. Runs of blanks and of equal lines
// are counted instead of shown. A line end within a line shows as one.
func gutter(lines []string, width int) []row {
	var rows []row
	for i := 0; i < len(lines); {
		end := i + 1
		for end < len(lines) && lines[end] == lines[i] {
			end++
		}
		one := rowsOf(lines[i], width)
		if more := end - i - 1; more >= repeated {
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

// rowsOf is one line in rows.
func rowsOf(line string, width int) []row {
	line = ours.ReplaceAllString(line, "<U+003C>$1")
	counted := func(run string) string { return fmt.Sprintf("<%d blanks>", len(run)) }
	line = blanks.ReplaceAllStringFunc(line, counted)
	if text := strings.TrimRight(line, " "); text != "" && text != line {
		line = text + counted(line[len(text):])
	}
	var rows []row
	before := bar
	for _, part := range terminal.Rows(marked.Replace(terminal.Visible(line)), room(width)) {
		rows = append(rows, row{before, part})
		before = goesOn
	}
	return rows
}

// room is how many columns a row has behind its bar. The last column stays
// free: what a terminal does after it differs.
func room(width int) int { return max(width-len(bar)-1, 2) }

// notes is something that we say among the rows.
func notes(width int, format string, args ...any) []row {
	var rows []row
	for _, part := range terminal.Rows(fmt.Sprintf(format, args...), room(width)) {
		rows = append(rows, row{note, part})
	}
	return rows
}

// folded leaves out the middle of many rows, with what a person needs to know
// of it. It reports whether it did.
func folded(rows []row, text string, f fold, width int) ([]row, bool) {
	if len(rows) <= f.most {
		return rows, false
	}
	middle := rows[f.keep : len(rows)-f.keep]
	written := 0
	for _, r := range middle {
		if r.before != note && r.text != "" {
			written++
		}
	}
	out := append([]row(nil), rows[:f.keep]...)
	out = append(out, notes(width, "%d of %d rows folded, %d of them with text", len(middle), len(rows), written)...)
	out = append(out, notes(width, "%d bytes in all, sha256", len(text))...)
	out = append(out, notes(width, "%x", sha256.Sum256([]byte(text)))...)
	return append(out, rows[len(rows)-f.keep:]...), true
}
