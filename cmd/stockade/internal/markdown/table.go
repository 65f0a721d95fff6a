package markdown

import (
	"strings"

	extast "github.com/yuin/goldmark/extension/ast"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/table"
)

// minColumn is the least width of a column, unless its cells are narrower. If there is less
// room, the table is shown as a list.
const minColumn = 8

// between separates two columns. The bar before text of others looks different.
const between = " | "

func (s *Stream) table(t *extast.Table, source []byte) (rows []line) {
	var cells [][][]run
	natural := make([]int, len(t.Alignments))
	for r := t.FirstChild(); r != nil; r = r.NextSibling() {
		var row [][]run
		for c := r.FirstChild(); c != nil && len(row) < len(natural); c = c.NextSibling() {
			in, st := s.inline(source), style(0)
			if len(cells) == 0 {
				st = bold
			}
			in.children(c, st)
			for _, l := range wrap(in.runs, 1<<20) {
				natural[len(row)] = max(natural[len(row)], l.width)
			}
			row = append(row, in.runs)
		}
		cells = append(cells, row)
	}
	widths, ok := table.Fit(natural, minColumn, s.room()-len(between)*(len(natural)-1))
	if !ok {
		return s.list(cells)
	}
	for i, row := range cells {
		rows = append(rows, beside(row, widths, t.Alignments)...)
		if i == 0 {
			var under []string
			for _, w := range widths {
				under = append(under, strings.Repeat("-", w))
			}
			rows = append(rows, line{runs: []run{{text: strings.Join(under, "-+-"), style: dim}}})
		}
	}
	return rows
}

// beside returns the rows of one table row, whose cells stand side by side.
func beside(row [][]run, widths []int, alignments []extast.Alignment) (rows []line) {
	var wrapped [][]line
	height := 1
	for i, w := range widths {
		var cell []line
		if i < len(row) {
			cell = wrap(row[i], max(w, 1))
		}
		wrapped = append(wrapped, cell)
		height = max(height, len(cell))
	}
	for y := range height {
		var l line
		for i, w := range widths {
			if i > 0 {
				l.add(between, len(between), dim)
			}
			var cell line
			if y < len(wrapped[i]) {
				cell = wrapped[i][y]
			}
			left, right := 0, max(w-cell.width, 0)
			switch {
			case i == 0: // a row must not begin with blanks
			case alignments[i] == extast.AlignRight:
				left, right = right, 0
			case alignments[i] == extast.AlignCenter:
				left, right = right/2, right-right/2
			}
			l.add(strings.Repeat(" ", left), left, 0)
			l.append(cell)
			l.add(strings.Repeat(" ", right), right, 0)
		}
		rows = append(rows, l)
	}
	return rows
}

// list shows a table that does not fit as a list: one table row after the other, each cell
// with the head of its column.
func (s *Stream) list(cells [][][]run) (rows []line) {
	if len(cells) == 1 {
		cells = append(cells, cells[0])
	}
	for i, row := range cells[1:] {
		if i > 0 {
			rows = append(rows, line{})
		}
		for j, cell := range row {
			var runs []run
			if j < len(cells[0]) && len(cells[0][j]) > 0 {
				runs = append(append(runs, cells[0][j]...), run{text: ": "})
			}
			rows = append(rows, wrap(append(runs, cell...), s.room())...)
		}
	}
	return rows
}
