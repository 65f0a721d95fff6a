// Package shellword writes text as one word of a command line, to be shown and
// copied.
package shellword

import (
	"fmt"
	"strings"
	"unicode"
)

// Quote makes one word for a POSIX shell. A text that holds what does not show,
// or shows as something else, becomes $'...' in plain ASCII, which bash and zsh
// take; [IsPOSIX] tells which it is. No word can hold a NUL: ok is false then.
func Quote(s string) (word string, ok bool) {
	switch {
	case strings.Contains(s, "\x00"):
		return "", false
	case s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=:") == "":
		return s, true
	case strings.ContainsFunc(s, obscure):
		return "$'" + EscapeANSIC(s) + "'", true
	}
	return "'" + EscapeSingle(s) + "'", true
}

// IsPOSIX reports whether a text that holds words of [Quote] is for any shell.
func IsPOSIX(text string) bool { return !strings.Contains(text, "$'") }

// EscapeSingle is a text between single quotes.
func EscapeSingle(s string) string { return strings.ReplaceAll(s, "'", `'\''`) }

// EscapeANSIC is a text between $' and '. It writes bytes and no characters: what a
// shell makes of those depends on its locale.
func EscapeANSIC(s string) string {
	var b strings.Builder
	for i := range len(s) {
		switch c := s[i]; {
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\t':
			b.WriteString(`\t`)
		case c == '\'' || c == '\\':
			b.WriteString(`\` + string(c))
		case c >= ' ' && c <= '~':
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, `\x%02x`, c)
		}
	}
	return b.String()
}

// obscure: a reader cannot be sure of the character.
func obscure(r rune) bool {
	if r <= '~' {
		return r < ' '
	}
	return !unicode.IsLetter(r) && !unicode.IsDigit(r) || unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r)
}
