package visible

import (
	"io"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/ansi/parser"
)

const (
	maxRows    = 64  // limits how far up the cursor goes
	maxColumns = 500 // limits how much of a longer line can change
	maxRight   = 160 // limits how far beyond the end of a row the cursor goes
)

// A Screen passes on what a terminal shows at the end of the text that is written to the Screen.
// Text that was overwritten or erased is gone, and so are titles and links. No colour hides text.
// Tabs, bytes that are not UTF-8, and control characters without an effect on text stay. Time is
// linear in the text, and memory is bounded.
type Screen struct {
	w        io.Writer
	p        *ansi.Parser
	rows     []string // those that can still change
	row, col int      // of the cursor
	saved    [2]int
	covers   bool // the alternate screen is in use, of which nothing stays
}

// NewScreen returns a screen that passes on to w, whose errors it ignores.
func NewScreen(w io.Writer) *Screen {
	s := &Screen{w: w, p: ansi.NewParser(), rows: make([]string, 1)}
	s.p.SetDataSize(1) // of titles
	s.p.SetHandler(ansi.Handler{
		Execute:   func(b byte) { s.do(ansi.Cmd(b), nil) },
		HandleCsi: s.do,
		HandleEsc: func(cmd ansi.Cmd) { s.do(cmd<<parser.IntermedShift, nil) },
	})
	return s
}

// Shown returns what a terminal shows of a text.
func Shown(text string) string {
	var out strings.Builder
	s := NewScreen(&out)
	_, _ = s.Write([]byte(text))
	s.Flush()
	return out.String()
}

// acts reports whether a byte, alone or as the first of a sequence, does not show.
func acts(c byte) bool { return c < ' ' && c != '\t' }

// Write implements io.Writer, without errors.
func (s *Screen) Write(text []byte) (int, error) {
	for p, n := text, 0; len(p) > 0; p = p[n:] {
		if s.p.State() == parser.GroundState && !acts(p[0]) {
			if n = slices.IndexFunc(p, acts); n < 0 {
				n = len(p)
			}
			s.put(string(p[:n]))
			continue
		}
		if n = 1; p[0] == '\n' {
			s.p.Reset() // no sequence goes on in another line
		}
		if p[0] < 0x80 { // others mean nothing in a sequence
			s.p.Advance(p[0])
		}
	}
	return len(text), nil
}

// Flush passes on what is on the screen, and empties it.
func (s *Screen) Flush() {
	for n := len(s.rows) - 1; n > s.row && s.rows[n] == ""; n-- {
		s.rows = s.rows[:n]
	}
	s.covers = false
	s.pass(len(s.rows), "")
}

// pass passes on the first rows, and what ends the last of them.
func (s *Screen) pass(n int, end string) {
	if !s.covers {
		_, _ = io.WriteString(s.w, strings.Join(s.rows[:n], "\n")+end)
	}
	s.rows = slices.Delete(s.rows, 0, n)
	if s.row -= n; s.row < 0 {
		s.rows, s.row, s.col = slices.Insert(s.rows, 0, ""), 0, 0
	}
}

// put writes text at the cursor. Blanks at the end of a row that was written over stay away: they
// only cover what was there.
func (s *Screen) put(text string) {
	was := s.rows[s.row]
	left, over := split(was, s.col)
	now := left + text
	if s.col = width(now); over != "" {
		_, right := split(was, s.col)
		now = strings.TrimRight(now+right, " ")
	}
	if s.rows[s.row] = now; s.col >= maxColumns || len(now) > 8*maxColumns {
		s.pass(s.row+1, "")
	}
}

// split divides a row at a column. Blanks stand for a wide character of which one half lies on
// each side, and for what the row lacks on the left.
func split(row string, col int) (left, right string) {
	at := 0
	for i, r := range row {
		n := columns(r)
		if at >= col && n > 0 {
			return row[:i], row[i:]
		} else if at+n > col {
			return row[:i] + " ", " " + row[i+len(string(r)):]
		}
		at += n
	}
	return row + strings.Repeat(" ", max(col-at, 0)), ""
}

func width(text string) (n int) {
	for _, r := range text {
		n += columns(r)
	}
	return n
}

func columns(r rune) int {
	if r < 0x300 {
		return 1
	}
	return ansi.StringWidth(string(r))
}

var moves = map[ansi.Cmd][2]int{'A': {-1, 0}, 'B': {1, 0}, 'C': {0, 1}, 'D': {0, -1}, '\b': {0, -1}}

// do carries out a control character, or a sequence: of ESC, its last byte is where one of CSI has
// an intermediate one.
func (s *Screen) do(cmd ansi.Cmd, params ansi.Params) {
	what, _, _ := params.Param(0, 0)
	n, row, col := min(max(what, 1), maxColumns), s.row, s.col
	switch cmd {
	case '\n':
		if row == maxRows-1 {
			s.pass(1, "\n")
		}
		row, col = s.row+1, 0
	case '\a', ansi.ESC:
	case 'A', 'B', 'C', 'D', '\b':
		row = min(row+moves[cmd][0]*n, len(s.rows)-1)
		col += moves[cmd][1] * n
	case '\r', 'G':
		col = n - 1
	case 'H', 'f':
		column, _, _ := params.Param(1, 1)
		row, col = n-1, min(column, maxColumns)-1
	case 'J', 'K':
		left, right := split(s.rows[row], col+what%2)
		if what <= 2 {
			s.rows[row] = strings.TrimRight([3]string{left, strings.Repeat(" ", col+1) + right}[what], " ")
		}
		for i := range s.rows {
			if cmd == 'J' && (i < row && (what == 1 || what == 2) || i > row && (what == 0 || what == 2)) {
				s.rows[i] = ""
			}
		}
	case 's', '7' << parser.IntermedShift:
		s.saved = [2]int{row, col}
	case 'u', '8' << parser.IntermedShift:
		row, col = s.saved[0], s.saved[1]
	case 'h' | '?'<<parser.PrefixShift, 'l' | '?'<<parser.PrefixShift:
		if on := cmd.Final() == 'h'; on != s.covers && (what == 47 || what == 1047 || what == 1049) {
			s.pass(len(s.rows), "")
			row, col, s.covers = 0, 0, on
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
	s.col = min(max(col, 0), max(width(s.rows[s.row]), maxRight))
}
