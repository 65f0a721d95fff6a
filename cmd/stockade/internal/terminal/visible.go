package terminal

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/stockade-dev/stockade/host/visible"
)

// maxMarks is how many marks a character can carry, as a letter of Vietnamese
// does. More of them grow over the lines above and below.
const maxMarks = 2

// Visible makes text harmless on a terminal: a character that moves the cursor,
// changes colours, reorders text or does not show is replaced by its code, such
// as <U+001B>, and a byte that is no character by <0x9B>. Line ends and tabs
// stay.
func Visible(text string) string {
	var s Escaper
	return s.Visible(text)
}

// EscapeControls makes text harmless for a pipe or a file, from which it may be printed on a terminal
// later. It replaces control characters, which begin escape sequences, and characters that
// reorder text by their codes. Line ends, also \r\n, and tabs stay, as do characters that are
// only invisible, since programs read the text.
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

// Line is visible text in one line: line ends and tabs are \n and \t.
func Line(text string) string {
	return strings.NewReplacer("\n", `\n`, "\t", `\t`).Replace(Visible(text))
}

// Escaper makes a text visible that comes in pieces, each of whole characters.
// The zero value is at the beginning of a text.
type Escaper struct {
	last  rune // that was shown; 0 is none
	marks int  // on it
}

// Visible returns the next piece, see [Visible].
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
			s.last, s.marks = 0, 0 // no mark goes on a code
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

// plain: all of it is ASCII that shows.
func plain(text string) bool {
	for i := range len(text) {
		if c := text[i]; (c < ' ' || c > '~') && c != '\n' && c != '\t' {
			return false
		}
	}
	return true
}

// mustEscape reports whether a character does not show as what it is where it stands.
func (s *Escaper) mustEscape(r rune) bool {
	switch {
	case r == emoji && unicode.Is(unicode.So, s.last) && s.marks == 0:
		return false // as models write them
	case visible.IsHidden(r):
		return true
	case isMark(r):
		return s.last <= ' ' || s.marks >= maxMarks
	}
	return false
}

// emoji is the variation selector that asks for the colourful form of a symbol.
const emoji = 0xFE0F

func isMark(r rune) bool { return r >= 0x300 && unicode.In(r, unicode.Mn, unicode.Me) }
