// Package visible knows which characters show as what they are, and writes JSON
// in which each does.
package visible

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// EscapeJSON is the same JSON in which every character that does not show, or that
// some reader takes for the end of a line, is escaped, and every byte that is no
// character is replaced. White space between values stays.
func EscapeJSON(data []byte) []byte {
	if bytes.IndexFunc(data, IsHidden) < 0 {
		return data
	}
	out := make([]byte, 0, len(data)+64)
	for len(data) > 0 {
		r, n := utf8.DecodeRune(data)
		switch {
		case !IsHidden(r):
			out = append(out, data[:n]...)
		case r > 0xFFFF:
			high, low := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
		data = data[n:]
	}
	return out
}

// IsLine reports whether a text is one line, of characters that show as what they are.
func IsLine(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r == '\n' || r == '\t' || IsHidden(r) }) < 0
}

// IsHidden reports whether a character never shows as what it is: what is not
// printable, and what is called so and yet leaves nothing or a blank behind.
func IsHidden(r rune) bool {
	switch r {
	case '\n', '\t':
		return false
	case 0x2800, 0xFFFC, 0x16FE4, 0x1D159, unicode.ReplacementChar:
		return true
	}
	return !unicode.IsPrint(r) || unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}
