// Package terminaltest is a terminal for tests, with texts that try to deceive a person
// who looks at one.
package terminaltest

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Emulator is a small terminal of unlimited height. It follows the bytes that it gets, and
// records every action except printing text and ending lines. It shares no code with the parts
// of the program that make text harmless.
type Emulator struct {
	Columns int
	// Wide makes each character outside ASCII two columns wide, as some terminals do for
	// characters of ambiguous width.
	Wide bool

	Acts   []string // the recorded actions, as text
	Styled bool     // set when any text was coloured

	rows     [][]cell
	wrapped  map[int]bool // rows that began because the previous row was full
	row, col int
}

type cell struct {
	text  string
	marks int
}

// Row is the content of one row.
type Row struct {
	Text    string
	Wrapped bool // the row began because the previous row was full
}

// Rows returns the content of the terminal.
func (e *Emulator) Rows() []Row {
	var out []Row
	for i, cells := range e.rows {
		var b strings.Builder
		for _, c := range cells {
			if c.text == "" {
				c.text = " "
			}
			if c.text != "\x00" { // second column of a wide character
				b.WriteString(c.text)
			}
		}
		out = append(out, Row{b.String(), e.wrapped[i]})
	}
	return out
}

func (e *Emulator) act(format string, args ...any) {
	e.Acts = append(e.Acts, fmt.Sprintf(format, args...))
}

// Write implements io.Writer.
func (e *Emulator) Write(p []byte) (int, error) {
	for rest := string(p); rest != ""; {
		rest = rest[e.next(rest):]
	}
	return len(p), nil
}

// next interprets the beginning of s and returns the number of bytes that it used.
func (e *Emulator) next(s string) int {
	r, n := utf8.DecodeRuneInString(s)
	if r == utf8.RuneError && n == 1 { // some terminals take it for an 8-bit control character
		r = rune(s[0])
		if r > 0x9F {
			e.act("byte %02X", r)
			return 1
		}
	}
	switch {
	case r == '\n':
		e.row, e.col = e.row+1, 0
	case r == '\t':
		e.col = (e.col/8 + 1) * 8
	case r == '\r':
		e.act("carriage return")
		e.col = 0
	case r == '\b':
		e.act("backspace")
		e.col = max(e.col-1, 0)
	case r == 0x1B:
		return n + e.escape(s[n:])
	case r == 0x9B:
		return n + e.csi(s[n:])
	case r < ' ' || r >= 0x7F && r <= 0x9F:
		e.act("control %02X", r)
	case isInvisible(r):
		e.act("invisible U+%04X", r)
	case unicode.In(r, unicode.Mn, unicode.Me):
		e.mark(r)
	default:
		e.print(r)
	}
	return n
}

func (e *Emulator) escape(s string) int {
	switch {
	case s == "":
		return 0
	case s[0] == '[':
		return 1 + e.csi(s[1:])
	case strings.IndexByte("]PX^_", s[0]) >= 0: // up to BEL or ST
		end := len(s)
		for _, stop := range []string{"\a", "\x1b\\", "\x9c"} {
			if i := strings.Index(s, stop); i >= 0 {
				end = min(end, i+len(stop))
			}
		}
		e.act("string %q", s[:end])
		return end
	}
	e.act("escape %q", s[0])
	return 1
}

func (e *Emulator) csi(s string) int {
	i := strings.IndexFunc(s, func(r rune) bool { return r >= '@' && r <= '~' })
	if i < 0 {
		return len(s)
	}
	count := 1
	_, _ = fmt.Sscanf(s[:i], "%d", &count)
	switch s[i] {
	case 'm':
		e.Styled = true
		return i + 1
	case 'A':
		e.row = max(e.row-count, 0)
	case 'B':
		e.row += count
	case 'C':
		e.col += count
	case 'D':
		e.col = max(e.col-count, 0)
	case 'G':
		e.col = max(count-1, 0)
	case 'H':
		e.row, e.col = 0, 0
	case 'J':
		e.rows = nil
	case 'K':
		if e.row < len(e.rows) {
			e.rows[e.row] = nil
		}
	}
	e.act("CSI %s", s[:i+1])
	return i + 1
}

func (e *Emulator) mark(r rune) {
	e.grow()
	cells := e.rows[e.row]
	if e.col == 0 || e.col > len(cells) || strings.TrimSpace(cells[e.col-1].text) == "" && cells[e.col-1].text != "\x00" {
		e.act("mark U+%04X on nothing", r)
		return
	}
	at := e.col - 1
	if cells[at].text == "\x00" {
		at--
	}
	cells[at].text += string(r)
	if cells[at].marks++; cells[at].marks > 3 {
		e.act("mark U+%04X on a tower", r)
	}
}

func (e *Emulator) print(r rune) {
	width := 1
	if r >= 0x80 && (e.Wide || isWide(r)) {
		width = 2
	}
	if e.col+width > e.Columns {
		e.row, e.col = e.row+1, 0
		if e.wrapped == nil {
			e.wrapped = map[int]bool{}
		}
		e.wrapped[e.row] = true
	}
	e.grow()
	for len(e.rows[e.row]) < e.col+width {
		e.rows[e.row] = append(e.rows[e.row], cell{})
	}
	if old := e.rows[e.row][e.col].text; old != "" {
		e.act("%q over %q", r, old)
	}
	e.rows[e.row][e.col] = cell{text: string(r)}
	if width == 2 {
		e.rows[e.row][e.col+1] = cell{text: "\x00"}
	}
	e.col += width
}

func (e *Emulator) grow() {
	for len(e.rows) <= e.row {
		e.rows = append(e.rows, nil)
	}
}

// isInvisible reports whether r leaves nothing or a blank on the screen, or reorders the
// text around it.
func isInvisible(r rune) bool {
	for _, span := range [][2]rune{
		{0xA0, 0xA0}, {0xAD, 0xAD}, {0x34F, 0x34F}, {0x61C, 0x61C}, {0x115F, 0x1160}, {0x17B4, 0x17B5}, {0x180B, 0x180F}, {0x1680, 0x1680},
		{0x2000, 0x200F}, {0x2028, 0x202F}, {0x205F, 0x206F}, {0x2800, 0x2800}, {0x3000, 0x3000}, {0x3164, 0x3164}, {0xE000, 0xF8FF},
		{0xFE00, 0xFE0E}, {0xFEFF, 0xFEFF}, {0xFFA0, 0xFFA0}, {0xFFF0, 0xFFFD}, {0x1D159, 0x1D159}, {0x1D173, 0x1D17A}, {0xE0000, 0x10FFFF},
	} {
		if r >= span[0] && r <= span[1] {
			return true
		}
	}
	return false
}

// isWide reports whether r takes two columns in every terminal.
func isWide(r rune) bool {
	return r >= 0x1100 && r <= 0x115F || r >= 0x2E80 && r <= 0xA4CF || r >= 0xAC00 && r <= 0xD7A3 || r >= 0xF900 && r <= 0xFAFF ||
		r >= 0xFE30 && r <= 0xFE6F || r >= 0xFF01 && r <= 0xFF60 || r >= 0xFFE0 && r <= 0xFFE6 || r >= 0x1F300 && r <= 0x1FAFF || r >= 0x20000 && r <= 0x3FFFD
}
