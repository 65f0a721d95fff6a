package transcript

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/humanize"
	"github.com/stockade-dev/stockade/cmd/stockade/internal/terminal"
	"github.com/stockade-dev/stockade/host/diff"
	"github.com/stockade-dev/stockade/host/session"
)

// maxDiffLines limits the lines of differences shown below a call; the rest is left out.
const maxDiffLines = 40

// maxFiles limits the changed files listed below a call; the others are counted.
const maxFiles = 8

// diffRows returns the lines of a difference in rows behind bars, with line numbers.
func (p formatter) diffRows(lines []diff.Line) (rows []string) {
	digits := 1
	for _, l := range lines {
		digits = max(digits, len(strconv.Itoa(l.Number)))
	}
	for _, l := range lines {
		before, style := strings.Repeat(" ", digits+1), cmp.Or(terminal.SignStyles[l.Op], terminal.Dim)
		if l.Op != 0 {
			before = fmt.Sprintf("%*d %c", digits, l.Number, l.Op)
		}
		for i, row := range p.fit(terminal.Visible(humanize.Clip(l.Text, 2000)), terminal.Width(bar)+len(before)+1, terminal.Rows) {
			if i > 0 {
				before = strings.Repeat(" ", len(before))
			}
			rows = append(rows, bar+p.style(style, before+" "+row))
		}
	}
	return rows
}

// counts returns the numbers of added and removed lines as text; empty if both are 0, which
// means unknown.
func counts(added, removed int) string {
	switch {
	case added == 0 && removed == 0:
		return ""
	case removed == 0:
		return fmt.Sprintf("+%d", added)
	case added == 0:
		return fmt.Sprintf("−%d", removed)
	}
	return fmt.Sprintf("+%d −%d", added, removed)
}

// changeRows returns the rows about the changes of a call: their summary or the changed files,
// with differences, of at most mostFiles files and mostLines lines; the others are counted. With
// context, it also shows unchanged lines, and names an only file, which the call's row names.
func (t *Transcript) changeRows(c *call, context bool, mostFiles, mostLines int) (rows []string) {
	p := t.formatter()
	if c.changes.Summary != nil {
		rows = p.prose(terminal.Dim, clipped(c.changes.Summary))
	}
	files := c.changes.Files
	alone := !context && len(files) == 1 && c.changes.More == 0 && !c.exec && files[0].Diff != "" && files[0].From == ""
	room, left := mostLines, 0
	for i, f := range files[:min(len(files), mostFiles)] {
		if c.changes.Summary == nil && !alone {
			rows = append(rows, p.prose("", ChangeText(f, t.work))...)
		}
		if f.Diff != "" {
			lines := diff.ParseUnified(f.Diff)
			if !context {
				lines = slices.DeleteFunc(lines, func(l diff.Line) bool { return l.Op == ' ' })
			}
			some := lines[:min(len(lines), room)]
			rows = append(rows, p.diffRows(some)...)
			room, left = room-len(some), left+len(lines)-len(some)
		}
		if more := len(files) + c.changes.More - i - 1; i == mostFiles-1 && more > 0 && c.changes.Summary == nil {
			rows = append(rows, p.ownRows(terminal.Dim, "and "+humanize.Plural(more, "more change")+t.showHint(c))...)
		}
	}
	if left > 0 {
		rows = append(rows, p.ownRows(terminal.Dim, "… "+humanize.Plural(left, "more line")+t.showHint(c))...)
	}
	return rows
}

// ChangeText returns a change in one visible line. Its paths are those of [Relative].
func ChangeText(c session.Change, workspace string) string {
	line := string(c.Kind) + " " + Relative(c.Path, workspace)
	if c.From != "" {
		line = string(c.Kind) + " " + Relative(c.From, workspace) + " → " + Relative(c.Path, workspace)
	}
	line = humanize.Clip(terminal.Line(line), maxLine)
	if n := counts(c.Added, c.Removed); n != "" {
		line += "  " + n
	}
	return line
}

// Relative returns a path relative to the workspace, or unchanged if it is outside. An empty
// workspace is unknown.
func Relative(path, workspace string) string {
	if workspace == "" {
		return path
	}
	if rel, err := filepath.Rel(workspace, path); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return path
}
