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

// contextLines is the number of unchanged lines shown before and after each difference, unless
// all lines are shown.
const contextLines = 1

// Limits on the differences that a question shows before a person asks for all. A difference
// beyond them is not shown.
const (
	maxRead  = 4 << 20   // bytes of file contents read for comparisons
	maxTexts = 200       // number of differences
	maxText  = 128 << 10 // bytes of all lines of one difference
)

// line is a line of a difference. far: it is too far from any changed line to be shown.
type line struct {
	diff.Line
	far bool // the line is too far from any changed line to be shown
}

// opNote is the Op of a line that is no part of the file, but a note about it or its end.
const opNote = '\\'

func noteLine(text string) line {
	return line{Line: diff.Line{Op: opNote, Text: `\ ` + text, Count: 1}}
}

// allLines yields the lines of a difference, and notes about the file.
func allLines(t *diff.Text) iter.Seq[line] {
	return func(yield func(line) bool) {
		for _, words := range t.Notes {
			if !yield(noteLine(words)) {
				return
			}
		}
		for _, h := range t.Hunks {
			for l := range h.Lines() {
				if !yield(line{Line: l}) || l.NoEnd && !yield(noteLine(strings.TrimPrefix(diff.NoEnd, `\ `))) {
					return
				}
			}
		}
	}
}

// linesOf returns the lines of a difference, and marks those far from any changed line.
func linesOf(t *diff.Text) []line {
	lines := slices.Collect(allLines(t))
	differs := func(l line) bool { return l.Op == '+' || l.Op == '-' }
	for i, l := range lines {
		switch {
		case l.Op == ' ':
			lines[i].far = !slices.ContainsFunc(lines[max(0, i-contextLines):min(len(lines), i+contextLines+1)], differs)
		case l.Op == opNote && i > 0 && lines[i-1].NoEnd:
			lines[i].far = lines[i-1].far || t.Change.Before == nil // a new file needs no note about its end
		}
	}
	return lines
}

// counts returns the numbers of added and removed lines as text; empty: there are none.
func counts(t *diff.Text) string {
	if t == nil || t.Added+t.Removed == 0 {
		return ""
	}
	return fmt.Sprintf("+%d -%d", t.Added, t.Removed)
}

// rowsOfLines returns lines as rows behind bars, with line numbers of digits columns. Without
// context, unchanged lines are left out.
func rowsOfLines(lines []line, digits, width int, context bool) (rows []row) {
	// Lines that are indented with tabs only are shown with blanks, which nobody can mistake for
	// blanks of the file.
	tabs := !slices.ContainsFunc(lines, func(l line) bool { return strings.HasPrefix(strings.TrimLeft(l.Text, "\t"), " ") })
	for _, l := range lines {
		if l.far || l.Op == ' ' && !context {
			continue
		}
		text := l.Text
		if tabs {
			rest := strings.TrimLeft(text, "\t")
			text = strings.Repeat("    ", len(text)-len(rest)) + rest
		}
		for i := range l.Count {
			words := fmt.Sprintf("%*d %c ", digits, l.Number+i, l.Op)
			if l.Op == opNote {
				words = strings.Repeat(" ", digits+3)
			}
			rows = append(rows, rowsOf(words, text, terminal.SignStyles[l.Op], width)...)
			if more := l.Count - i - 1; more >= minRepeats {
				rows = append(rows, notes(width, "the line above %d times more", more)...)
				break
			}
		}
	}
	return rows
}

// digits returns the number of digits of the largest line number.
func digits(t *diff.Text) int {
	if t == nil || len(t.Hunks) == 0 {
		return 1
	}
	last := t.Hunks[len(t.Hunks)-1]
	return len(strconv.Itoa(max(last.OldEnd, last.NewEnd)))
}

// shownDiffs returns the differences that a question shows at first, by the index of their
// change: those of changes that are not grouped, within maxRead, maxTexts and maxText.
func shownDiffs(set *diff.Set) map[int]*diff.Text {
	out, single := map[int]*diff.Text{}, map[int]bool{}
	for _, e := range set.Entries {
		single[e.Members[0]] = e.Form == diff.FormSingle
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

// changeItem is a line about one or more changes. With a single change it has the difference.
type changeItem struct {
	diff.SummaryLine
	textDiff *diff.Text // difference of a single change; nil: there is none, or it was not computed
	lines    []line     // lines of textDiff
	large    bool       // the change has a difference, but the difference is too large to be shown here
}

// order returns the rank of an item in the list: first items without a difference, then
// changed files, then new files, then items that only count changes.
func (i changeItem) order() int {
	switch {
	case i.Form == diff.FormSeveral:
		return 3
	case i.textDiff == nil || len(i.textDiff.Hunks) == 0:
		return 0
	case i.textDiff.Change.Before != nil:
		return 1
	}
	return 2
}

// group returns the number of the group with which the item's difference shares rows: 0 for
// files that existed before, 1 for new files. Group 1 gets the rows that group 0 leaves.
func (i changeItem) group() int {
	if i.order() < 2 {
		return 0
	}
	return 1
}

// singleChange returns the line about the only change of a call, and the numbers of added and
// removed lines. Both are empty if there are more changes, or if a name is not plain, so that the
// line must not stand in a row of ours.
func (q Question) singleChange() (text, lineCounts string) {
	if q.Changes == nil || len(q.Changes.Changes) != 1 {
		return "", ""
	}
	all := slices.DeleteFunc(q.Changes.SummaryLines(2), func(t diff.SummaryLine) bool { return t.NotShown }) // lines in red are shown below
	c := q.Changes.Changes[0]
	plain := func(path string) bool { return path == "" || isPlainWord(path) }
	hasOtherName := func(v *tool.Version) bool { return v != nil && (v.Target != "" || v.HardLink != "") } // which is shown, too
	if len(all) != 1 || !all[0].IsSingle() || !plain(c.Path) || !plain(c.From) || hasOtherName(c.Before) || hasOtherName(c.After) {
		return "", ""
	}
	return all[0].Words, counts(q.diffs[0])
}
