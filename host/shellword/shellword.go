// Package shellword writes text as one word of a command line, to be shown and copied.
package shellword

import (
	"fmt"
	"strings"
	"unicode"
)

// Quote returns s as one word for a POSIX shell. If s holds characters that are hidden or easily
// mistaken for others, the word is $'...' in plain ASCII, which bash and zsh read; see [IsPOSIX].
// ok is false if s holds a NUL, which no word can.
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

// IsPOSIX reports whether all words of [Quote] in a text work in every POSIX shell.
func IsPOSIX(text string) bool { return !strings.Contains(text, "$'") }

// EscapeSingle returns s in the form between single quotes, without the quotes.
func EscapeSingle(s string) string { return strings.ReplaceAll(s, "'", `'\''`) }

// EscapeANSIC returns s in the form between $' and ', without these. It escapes bytes and not
// characters, which a shell reads according to its locale.
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

// obscure reports whether a reader may mistake a character for another, or not see it.
func obscure(r rune) bool {
	if r <= '~' {
		return r < ' '
	}
	return !unicode.IsLetter(r) && !unicode.IsDigit(r) || unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r)
}
