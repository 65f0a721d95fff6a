// Package visible knows which characters show as themselves, and writes JSON in which
// every character does. It also renders text as a terminal shows it.
package visible

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// EscapeJSON returns the same JSON with hidden characters escaped, including the ones
// that some readers take for the end of a line. Bytes that are not UTF-8 are replaced.
// White space between values stays.
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

// IsLine reports whether a text is one line of characters that show as themselves.
func IsLine(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r == '\n' || r == '\t' || IsHidden(r) }) < 0
}

// IsHidden reports whether a character never shows as itself: it is not printable, or is
// shown as nothing or as a blank although Unicode calls it printable.
func IsHidden(r rune) bool {
	switch r {
	case '\n', '\t':
		return false
	case 0x2800, 0xFFFC, 0x16FE4, 0x1D159, unicode.ReplacementChar:
		return true
	}
	return !unicode.IsPrint(r) || unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}
