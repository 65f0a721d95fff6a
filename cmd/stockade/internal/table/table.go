package table

import (
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/terminal"
)

const (
	gap = 2
	// minColumnWidth is the least width of a column that becomes narrower. If there is less
	// room, each row of the table becomes a list of its cells.
	minColumnWidth = 10
)

// Column is the head of a column, with the way in which the column may become narrower.
type Column struct {
	head string
	kind kind
}

type kind int

const (
	fixed kind = iota
	text
	path
)

// Fixed returns a column whose cells stay whole: a name to copy, a number, a time.
func Fixed(head string) Column { return Column{head, fixed} }

// Text returns a column whose cells are broken between words.
func Text(head string) Column { return Column{head, text} }

// Path returns a column whose cells are cut in the middle.
func Path(head string) Column { return Column{head, path} }

// Table is a table under construction.
type Table struct {
	columns []Column
	rows    [][]string
}

// New returns a table without rows. If no column has a head, the table has no head row.
func New(columns ...Column) *Table {
	t := &Table{columns: columns}
	var heads []string
	for _, c := range columns {
		heads = append(heads, c.head)
	}
	if strings.Join(heads, "") != "" {
		t.rows = append(t.rows, heads)
	}
	return t
}

// Row adds a row. Cells are formatted with fmt.Sprint and made visible; missing cells are
// empty.
func (t *Table) Row(cells ...any) {
	row := make([]string, len(t.columns))
	for i, c := range cells {
		row[i] = terminal.Line(fmt.Sprint(c))
	}
	t.rows = append(t.rows, row)
}

// Write writes the table for a terminal of columns columns. 0: w is not a terminal, and each
// cell stays whole.
func (t *Table) Write(w io.Writer, columns int) error {
	measure := ansi.StringWidth
	if columns < 1 {
		measure = utf8.RuneCountInString
	}
	natural := make([]int, len(t.columns))
	for _, row := range t.rows {
		for i, cell := range row {
			natural[i] = max(natural[i], measure(cell))
		}
	}
	widths, ok := natural, true
	if columns > 0 {
		widths, ok = t.fit(natural, columns-1-gap*(len(natural)-1))
	}
	var b strings.Builder
	for i, row := range t.rows {
		if !ok {
			if i > 0 {
				t.list(&b, row, columns-1)
			}
			continue
		}
		t.row(&b, row, widths, measure)
	}
	out := b.String()
	if columns > 0 {
		out = blanks().ReplaceAllString(out, "\n")
	}
	_, err := io.WriteString(w, out)
	return err
}

// blanks matches blanks at the end of a row, which a person cannot see. Pipes and files
// keep them, because programs expect the same columns in each row.
var blanks = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(` +\n`) })

// fit returns widths with which the table fits into columns columns. ok is false if there are
// none.
func (t *Table) fit(natural []int, columns int) (widths []int, ok bool) {
	var flexible []int
	for i, c := range t.columns {
		if c.kind == fixed {
			columns -= natural[i]
		} else {
			flexible = append(flexible, natural[i])
		}
	}
	narrow, ok := Fit(flexible, minColumnWidth, columns)
	for i, c := range t.columns {
		if c.kind == fixed {
			widths = append(widths, natural[i])
		} else if ok {
			widths, narrow = append(widths, narrow[0]), narrow[1:]
		}
	}
	return widths, ok
}

func (t *Table) row(b *strings.Builder, row []string, widths []int, measure func(string) int) {
	var cells [][]string
	height := 1
	for i, cell := range row {
		lines := []string{cell}
		if measure(cell) > widths[i] {
			lines = shrinkCell(cell, widths[i], t.columns[i].kind)
		}
		cells = append(cells, lines)
		height = max(height, len(lines))
	}
	for y := range height {
		var line strings.Builder
		for i, lines := range cells {
			cell := ""
			if y < len(lines) {
				cell = lines[y]
			}
			line.WriteString(cell)
			if i < len(cells)-1 {
				line.WriteString(strings.Repeat(" ", max(widths[i]-measure(cell), 0)+gap))
			}
		}
		b.WriteString(line.String() + "\n")
	}
}

// list writes a row as a list: the head of each column with its cell beside it.
func (t *Table) list(b *strings.Builder, row []string, columns int) {
	heads := 0
	for _, c := range t.columns {
		heads = max(heads, len(c.head))
	}
	if b.Len() > 0 {
		b.WriteString("\n")
	}
	for i, cell := range row {
		if cell == "" {
			continue
		}
		head := t.columns[i].head
		for _, l := range shrinkCell(cell, max(columns-heads-gap, minColumnWidth), t.columns[i].kind) {
			fmt.Fprintf(b, "%-*s%s\n", heads+gap, head, l)
			head = ""
		}
	}
}

// shrinkCell returns the rows of a cell in a column of this width and kind.
func shrinkCell(cell string, width int, k kind) []string {
	switch {
	case ansi.StringWidth(cell) <= width, k == fixed:
		return []string{cell}
	case k == path:
		return []string{Middle(cell, width)}
	}
	return terminal.Wrap(cell, width)
}

// Middle cuts a text in its middle to width columns, if it is longer. Of a path it keeps the
// beginning and more of the end.
func Middle(cell string, width int) string {
	const dots = "..."
	if ansi.StringWidth(cell) <= width {
		return cell
	}
	begin := (width - len(dots)) / 3
	return ansi.Truncate(cell, begin, "") + dots + ansi.TruncateLeft(cell, ansi.StringWidth(cell)-(width-len(dots)-begin), "")
}
