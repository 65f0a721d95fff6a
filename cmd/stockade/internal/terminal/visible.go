package terminal

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/stockade-dev/stockade/host/visible"
)

// maxMarks is the number of marks that a character may carry; Vietnamese letters have two.
// Further marks are replaced by their codes: they would cover the lines above and below.
const maxMarks = 2

// Visible makes text harmless on a terminal: a character that moves the cursor, changes
// colours, reorders text or is invisible is replaced by its code, such as <U+001B>, and a
// byte that is not part of a character by <0x9B>. Line ends and tabs are kept.
func Visible(text string) string {
	var s Escaper
	return s.Visible(text)
}

// EscapeControls makes text harmless for a pipe or a file, which may be printed on a terminal
// later. It replaces control characters, which begin escape sequences, and characters that
// reorder text by their codes. It keeps tabs and line ends, also \r\n. It also keeps
// characters that are only invisible, because programs read the text.
func EscapeControls(text string) string {
	if plain(text) {
		return text
	}
	var b strings.Builder
	for i, r := range text {
		switch {
		case r == '\r' && strings.HasPrefix(text[i+1:], "\n"), r == '\n', r == '\t':
			b.WriteRune(r)
		case r == utf8.RuneError && !strings.HasPrefix(text[i:], string(utf8.RuneError)):
			fmt.Fprintf(&b, "<0x%02X>", text[i])
		case unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r):
			fmt.Fprintf(&b, "<U+%04X>", r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// Line makes text visible in one line: line ends become \n and tabs become \t.
func Line(text string) string {
	return strings.NewReplacer("\n", `\n`, "\t", `\t`).Replace(Visible(text))
}

// Escaper makes a text visible that arrives in pieces, each of whole characters. The zero
// value is ready for a new text.
type Escaper struct {
	last  rune // last character shown; 0: none
	marks int  // number of marks on last
}

// Visible returns the next piece made visible, see [Visible].
func (s *Escaper) Visible(text string) string {
	if plain(text) {
		if text != "" {
			s.last, s.marks = rune(text[len(text)-1]), 0
		}
		return text
	}
	var b strings.Builder
	for i, r := range text {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(text[i:], string(utf8.RuneError)):
			fmt.Fprintf(&b, "<0x%02X>", text[i])
			s.last, s.marks = 0, 0
		case s.mustEscape(r):
			fmt.Fprintf(&b, "<U+%04X>", r)
			s.last, s.marks = 0, 0 // a code cannot carry marks
		default:
			b.WriteRune(r)
			if isMark(r) {
				s.marks++
			} else {
				s.last, s.marks = r, 0
			}
		}
	}
	return b.String()
}

// plain reports whether text consists of visible ASCII, line ends and tabs.
func plain(text string) bool {
	for i := range len(text) {
		if c := text[i]; (c < ' ' || c > '~') && c != '\n' && c != '\t' {
			return false
		}
	}
	return true
}

// mustEscape reports whether the next character r would not be seen as it is.
func (s *Escaper) mustEscape(r rune) bool {
	switch {
	case r == emoji && unicode.Is(unicode.So, s.last) && s.marks == 0:
		return false // models write them so
	case visible.IsHidden(r):
		return true
	case isMark(r):
		return s.last <= ' ' || s.marks >= maxMarks
	}
	return false
}

// emoji is the variation selector for the coloured form of a symbol.
const emoji = 0xFE0F

func isMark(r rune) bool { return r >= 0x300 && unicode.In(r, unicode.Mn, unicode.Me) }
