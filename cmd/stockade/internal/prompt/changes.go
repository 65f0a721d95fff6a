package prompt

import (
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/terminal"
	"github.com/stockade-dev/stockade/host/diff"
	"github.com/stockade-dev/stockade/host/tool"
)

// contextFor is how many lines around each difference are shown before all of it is.
const contextFor = 1

// What of differences a question shows, before all of them are.
const (
	maxRead  = 4 << 20   // bytes of contents that are compared
	maxTexts = 200       // differences
	maxText  = 128 << 10 // bytes of one
)

// line is one line of a difference, and how often it stands there in a row.
type line struct {
	diff.Line
	far bool // from every difference
}

// note is the sign of a line that says something of all of a file, or of its end.
const note = '\\'

func noted(text string) line { return line{Line: diff.Line{Op: note, Text: `\ ` + text, Times: 1}} }

// allLines are the lines of a difference.
func allLines(t *diff.Text) iter.Seq[line] {
	return func(yield func(line) bool) {
		for _, words := range t.Notes {
			if !yield(noted(words)) {
				return
			}
		}
		for _, h := range t.Hunks {
			for l := range h.Lines() {
				if !yield(line{Line: l}) || l.NoEnd && !yield(noted(strings.TrimPrefix(diff.NoEnd, `\ `))) {
					return
				}
			}
		}
	}
}

// linesOf are the lines of a difference, of which it is known whether they are far from
// what differs.
func linesOf(t *diff.Text) []line {
	lines := slices.Collect(allLines(t))
	differs := func(l line) bool { return l.Op == '+' || l.Op == '-' }
	for i, l := range lines {
		switch {
		case l.Op == ' ':
			lines[i].far = !slices.ContainsFunc(lines[max(0, i-contextFor):min(len(lines), i+contextFor+1)], differs)
		case l.Op == note && i > 0 && lines[i-1].NoEnd:
			lines[i].far = lines[i-1].far || t.Change.Before == nil // of a new file, nobody has asked
		}
	}
	return lines
}

// counts are how many lines of a file come and go.
func counts(t *diff.Text) string {
	if t == nil || t.Added+t.Removed == 0 {
		return ""
	}
	return fmt.Sprintf("+%d -%d", t.Added, t.Removed)
}

// rowsOfLines are lines behind bars, with their numbers before them, and with what is around
// differences.
func rowsOfLines(lines []line, digits, width int, context bool) (rows []row) {
	tabs := tabs(lines)
	for _, l := range lines {
		if l.far || l.Op == ' ' && !context {
			continue
		}
		text := l.Text
		if tabs {
			rest := strings.TrimLeft(text, "\t")
			text = strings.Repeat("    ", len(text)-len(rest)) + rest
		}
		for i := range l.Times {
			words := fmt.Sprintf("%*d %c ", digits, l.Number+i, l.Op)
			if l.Op == note {
				words = strings.Repeat(" ", digits+3)
			}
			rows = append(rows, rowsOf(words, text, terminal.Signs[l.Op], width)...)
			if more := l.Times - i - 1; more >= repeated {
				rows = append(rows, notes(width, "the line above %d times more", more)...)
				break
			}
		}
	}
	return rows
}

// digits is the width of the greatest line number, in columns.
func digits(t *diff.Text) int {
	if t == nil || len(t.Hunks) == 0 {
		return 1
	}
	last := t.Hunks[len(t.Hunks)-1]
	return len(strconv.Itoa(max(last.WasEnd, last.IsEnd)))
}

// tabs reports whether tabs are all that indents lines: blanks in their place cannot be
// taken for others then.
func tabs(lines []line) bool {
	return !slices.ContainsFunc(lines, func(l line) bool { return strings.HasPrefix(strings.TrimLeft(l.Text, "\t"), " ") })
}

// texts are the differences that a question shows, by their change: of those that are
// told in a line of their own, as many as may be compared now.
func texts(set *diff.Set) map[int]*diff.Text {
	out, single := map[int]*diff.Text{}, map[int]bool{}
	for _, e := range set.Entries {
		single[e.Members[0]] = e.Form == diff.Single
	}
	left := int64(maxRead)
	for _, i := range set.Order() {
		if size := diff.SizeOf(set.At(i)); single[i] && len(out) < maxTexts && size <= left {
			left -= size
			if t := set.Text(i); t.Err == nil && t.Bytes() <= maxText {
				out[i] = t
			}
		}
	}
	return out
}

// item is a line that tells of changes, with the difference if it tells of one alone.
type item struct {
	diff.Told
	text  *diff.Text
	lines []line // of it
	large bool   // there is a text, and it is too large to be shown at once
}

// order sorts plain lines: those without a difference come first, then files that stay, then
// new files, then lines that only count.
func (i item) order() int {
	switch {
	case i.Form == diff.Several:
		return 3
	case i.text == nil || len(i.text.Hunks) == 0:
		return 0
	case i.text.Change.Before != nil:
		return 1
	}
	return 2
}

// share says which part of the room a difference gets: files that stay come first, and the
// others get what is left.
func (i item) share() int {
	if i.order() < 2 {
		return 0
	}
	return 1
}

// alone is the one line that tells of all changes, and how many lines come and go, if it
// may stand in a row of ours: no blank, quote or letter beyond ASCII stands in a name.
func (q Question) alone() (told, come string) {
	if q.Changes == nil || len(q.Changes.Changes) != 1 {
		return "", ""
	}
	all := slices.DeleteFunc(q.Changes.Told(2), func(t diff.Told) bool { return t.Red }) // which stand below it
	c := q.Changes.Changes[0]
	plain := func(path string) bool { return path == "" || word(path) }
	if len(all) != 1 || !all[0].Alone() || !plain(c.Path) || !plain(c.From) || links(c) {
		return "", ""
	}
	return all[0].Words, counts(q.texts[0])
}

// links reports whether the name of another file stands behind that of a change.
func links(c tool.Change) bool {
	return slices.ContainsFunc([]*tool.Version{c.Before, c.After}, func(v *tool.Version) bool { return v != nil && (v.Target != "" || v.Twin != "") })
}
