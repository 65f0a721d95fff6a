package editor

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/humanize"
	"github.com/stockade-dev/stockade/cmd/stockade/internal/terminal"
	"github.com/stockade-dev/stockade/host/visible"
)

// piece is a unit of the text: the cursor moves over it in one step, and one Backspace
// deletes it. It is a character with its marks, the end of a line, or a folded paste.
type piece struct {
	text   string // text to send
	show   string // visible text for the screen
	cols   int    // columns on the screen
	pasted int    // number of the folded paste, from 1; 0: the piece is no folded paste
}

func (p piece) blank() bool {
	return p.pasted == 0 && (p.text == " " || p.text == "\t" || p.text == "\n")
}
func (p piece) isEnd() bool  { return p.text == "\n" }
func (p piece) isWord() bool { return p.pasted > 0 || isWord(first(p.text)) }

func first(s string) rune { r, _ := utf8.DecodeRuneInString(s); return r }
func last(s string) rune  { r, _ := utf8.DecodeLastRuneInString(s); return r }

func isWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' }

// pieces splits a text into pieces. A character that a terminal would not show as it is
// becomes a piece whose show is its code.
func (e *Editor) pieces(text string) []piece {
	out := make([]piece, 0, len(text))
	for text != "" {
		p := piece{text: text[:1], show: text[:1], cols: 1}
		if c := text[0]; c >= ' ' && c <= '~' && (len(text) == 1 || text[1] < utf8.RuneSelf) {
			out, text = append(out, p), text[1:]
			continue
		}
		switch text[0] {
		case '\n':
			p.show, p.cols = "", 0
		case '\t':
			p.show, p.cols = "    ", 4
		case 0x7F: // like the other control characters
			p.show, p.cols = terminal.Visible(p.text), len("<U+007F>")
		default:
			p.text, _ = ansi.FirstGraphemeCluster(text, e.widths)
			p.show = terminal.Visible(p.text)
			p.cols = e.widths.StringWidth(p.show)
		}
		out, text = append(out, p), text[len(p.text):]
	}
	return out
}

// foldText returns a long text as a single piece that shows the size of the text. verb says
// how the text came in. among are other pieces: the text gets a number that none of them has.
func foldText(verb, text string, among []piece) piece {
	n := 1
	for _, p := range among {
		n = max(n, p.pasted+1)
	}
	size := fmt.Sprintf("%s characters", humanize.Exact(int64(utf8.RuneCountInString(text))))
	if lines := countLines(text); lines > 1 {
		size = fmt.Sprintf("%s lines", humanize.Exact(int64(lines)))
	}
	if hidden := countHidden(text); hidden > 0 {
		size += fmt.Sprintf(", %s hidden", humanize.Exact(int64(hidden)))
	}
	show := fmt.Sprintf("[%s %s]", verb, size)
	if n > 1 {
		show = fmt.Sprintf("[%s %s #%d]", verb, size, n)
	}
	return piece{text: text, show: show, cols: len(show), pasted: n}
}

func countLines(text string) int { return strings.Count(strings.TrimSuffix(text, "\n"), "\n") + 1 }

// join returns the text to send of some pieces.
func join(pieces []piece) string {
	var b strings.Builder
	for _, p := range pieces {
		b.WriteString(p.text)
	}
	return b.String()
}

// row is the range of pieces in one row of the screen; to is after the last one.
type row struct{ from, to int }

// layout breaks the pieces from index from on into rows of at most columns columns, after a
// blank if possible.
func layout(text []piece, from, columns int) (rows []row) {
	r, used, blank := row{from, from}, 0, -1 // blank: index behind the last blank of the row
	for i := from; i < len(text); i++ {
		p := text[i]
		if p.isEnd() {
			rows = append(rows, row{r.from, i})
			r, used, blank = row{i + 1, i + 1}, 0, -1
			continue
		}
		cols := min(p.cols, columns)
		for used+cols > columns && i > r.from {
			at := i
			if blank > r.from && !p.blank() {
				at = blank
			}
			rows = append(rows, row{r.from, at})
			r, used, blank = row{at, at}, 0, -1
			for _, moved := range text[at:i] {
				used += min(moved.cols, columns)
			}
		}
		if used += cols; p.blank() {
			blank = i + 1
		}
	}
	return append(rows, row{r.from, len(text)})
}

// rowOf returns the index of the row with the piece at.
func rowOf(rows []row, at int) int {
	for i := len(rows) - 1; i > 0; i-- {
		if at >= rows[i].from {
			return i
		}
	}
	return 0
}

// lineStart returns the index of the first piece in the line of the piece at.
func (e *Editor) lineStart(at int) int {
	for at > e.textStart() && !e.text[at-1].isEnd() {
		at--
	}
	return at
}

func (e *Editor) lineEnd(at int) int {
	for at < len(e.text) && !e.text[at].isEnd() {
		at++
	}
	return at
}

// wordLeft returns the index of the first piece of the word that ends before at. A word
// consists of pieces for which is returns true; a folded paste is a word by itself.
func (e *Editor) wordLeft(at int, is func(piece) bool) int {
	for at > e.textStart() && !is(e.text[at-1]) {
		at--
	}
	for end := at; at > e.textStart() && is(e.text[at-1]) && (at == end || e.text[at].pasted == 0 && e.text[at-1].pasted == 0); {
		at--
	}
	return at
}

func (e *Editor) wordRight(at int, is func(piece) bool) int {
	for at < len(e.text) && !is(e.text[at]) {
		at++
	}
	for start := at; at < len(e.text) && is(e.text[at]) && (at == start || e.text[at].pasted == 0 && e.text[at-1].pasted == 0); {
		at++
	}
	return at
}

func countHidden(text string) (n int) {
	for _, r := range text {
		if (r < ' ' || r > '~') && visible.IsHidden(r) {
			n++
		}
	}
	return n
}
