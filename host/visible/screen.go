package visible

import (
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/ansi/parser"
)

const (
	maxRows    = 64  // rows that can still change; one more writes out the topmost
	maxColumns = 500 // columns of a row that can still change; a row that reaches them is written out
	maxRight   = 160 // column up to which the cursor moves beyond the end of a row
)

// A Screen writes the text that a terminal would show after all the text that is written to
// the Screen. Overwritten and erased text is left out, and so are colours, titles and links.
// Tabs, bytes that are not UTF-8, and control characters without an effect on text stay. Lines
// are not wrapped, and each character has one column. It takes linear time and bounded memory.
type Screen struct {
	w         io.Writer
	p         *ansi.Parser
	rows      []string // the newest rows, which can still change; at least one
	row, col  int      // position of the cursor, from 0
	saved     [2]int   // row and column of the cursor that the text has saved
	alternate bool     // set while the alternate screen is active, whose text is left out
}

// NewScreen returns a screen that writes to w, and ignores errors of w.
func NewScreen(w io.Writer) *Screen {
	s := &Screen{w: w, p: ansi.NewParser(), rows: make([]string, 1)}
	s.p.SetDataSize(1) // titles are not needed
	s.p.SetHandler(ansi.Handler{
		Execute:   func(b byte) { s.do(ansi.Cmd(b), nil) },
		HandleCsi: s.do,
		HandleEsc: func(cmd ansi.Cmd) { s.do(cmd<<parser.IntermedShift, nil) },
	})
	return s
}

// RenderTerminal returns a text in the form that a terminal would show.
func RenderTerminal(text string) string {
	var out strings.Builder
	s := NewScreen(&out)
	_, _ = s.Write([]byte(text))
	s.Flush()
	return out.String()
}

// isControl reports whether a byte is a control character, or begins an escape sequence.
func isControl(c byte) bool { return c < ' ' && c != '\t' }

// Write implements io.Writer, without errors.
func (s *Screen) Write(text []byte) (int, error) {
	for p, n := text, 0; len(p) > 0; p = p[n:] {
		if s.p.State() == parser.GroundState && !isControl(p[0]) {
			if n = slices.IndexFunc(p, isControl); n < 0 {
				n = len(p)
			}
			s.put(string(p[:n]))
			continue
		}
		if n = 1; p[0] == '\n' {
			s.p.Reset() // no sequence continues on the next line
		}
		if p[0] < 0x80 { // others mean nothing in a sequence
			s.p.Advance(p[0])
		}
	}
	return len(text), nil
}

// Flush writes the rows that are still on the screen, and empties it.
func (s *Screen) Flush() {
	for n := len(s.rows) - 1; n > s.row && s.rows[n] == ""; n-- {
		s.rows = s.rows[:n]
	}
	s.alternate = false
	s.flushRows(len(s.rows), "")
}

// flushRows writes the first n rows followed by end, and removes them from the screen.
func (s *Screen) flushRows(n int, end string) {
	if !s.alternate {
		_, _ = io.WriteString(s.w, strings.Join(s.rows[:n], "\n")+end)
	}
	s.rows = slices.Delete(s.rows, 0, n)
	if s.row -= n; s.row < 0 {
		s.rows, s.row, s.col = slices.Insert(s.rows, 0, ""), 0, 0
	}
}

// put writes text at the cursor. If the text overwrites another, blanks at the end of the
// row are dropped: programs write them to cover the old text.
func (s *Screen) put(text string) {
	old := s.rows[s.row]
	left, over := split(old, s.col)
	now := left + text
	s.col = utf8.RuneCountInString(now)
	if over != "" {
		_, right := split(old, s.col)
		now = strings.TrimRight(now+right, " ")
	}
	if s.rows[s.row] = now; s.col >= maxColumns {
		s.flushRows(s.row+1, "")
	}
}

// split divides a row at a column. A row that ends before the column is filled with blanks.
func split(row string, col int) (left, right string) {
	for i := range row {
		if col == 0 {
			return row[:i], row[i:]
		}
		col--
	}
	return row + strings.Repeat(" ", col), ""
}

// do carries out a control character, a CSI sequence, or an ESC sequence. The last byte of an
// ESC sequence is given as an intermediate byte.
func (s *Screen) do(cmd ansi.Cmd, params ansi.Params) {
	what, _, _ := params.Param(0, 0)
	n, row, col := min(max(what, 1), maxColumns), s.row, s.col
	switch cmd {
	case '\n':
		if row == maxRows-1 {
			s.flushRows(1, "\n")
		}
		row, col = s.row+1, 0
	case '\a', ansi.ESC:
	case 'A':
		row -= n
	case 'B':
		row = min(row+n, len(s.rows)-1)
	case 'C':
		col += n
	case 'D', '\b':
		col -= n
	case '\r', 'G':
		col = n - 1
	case 'H', 'f':
		column, _, _ := params.Param(1, 1)
		row, col = n-1, min(column, maxColumns)-1
	case 'J', 'K': // erasing from the left to the cursor is rare, and not done
		rest, _ := split(s.rows[row], col)
		for i := range s.rows {
			switch {
			case what == 0 && i == row:
				s.rows[i] = strings.TrimRight(rest, " ")
			case what == 2 && (i == row || cmd == 'J'), what == 0 && i > row && cmd == 'J':
				s.rows[i] = ""
			}
		}
	case 's', '7' << parser.IntermedShift:
		s.saved = [2]int{row, col}
	case 'u', '8' << parser.IntermedShift:
		row, col = s.saved[0], s.saved[1]
	case 'h' | '?'<<parser.PrefixShift, 'l' | '?'<<parser.PrefixShift:
		if on := cmd.Final() == 'h'; on != s.alternate && (what == 47 || what == 1047 || what == 1049) {
			s.flushRows(len(s.rows), "")
			row, col, s.alternate = 0, 0, on
		}
	default:
		if cmd < ' ' {
			s.put(string(rune(cmd)))
			return
		}
	}
	s.row = min(max(row, 0), maxRows-1)
	for s.row >= len(s.rows) {
		s.rows = append(s.rows, "")
	}
	s.col = min(max(col, 0), max(utf8.RuneCountInString(s.rows[s.row]), maxRight))
}
