// Package visible finds hidden characters, which a reader of a text would not see or would take for
// blanks, and writes JSON without them. It also renders text as a terminal shows it.
package visible

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// EscapeJSON returns the same JSON with hidden characters escaped, including those that some
// readers take for the end of a line. Bytes that are not UTF-8 become U+FFFD. Spaces, tabs and line
// feeds between values stay, and a carriage return there becomes a space.
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
		case r == '\r': // JSON has no raw one inside a string
			out = append(out, ' ')
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

// IsLine reports whether a text is one line without tabs and hidden characters.
func IsLine(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r == '\n' || r == '\t' || IsHidden(r) }) < 0
}

// IsHidden reports whether a character is hidden: it is not printable, or is shown as nothing or as
// a blank although Unicode calls it printable. A tab and a line feed are not hidden.
func IsHidden(r rune) bool {
	switch r {
	case '\n', '\t':
		return false
	case 0x2800, 0xFFFC, 0x16FE4, 0x1D159, unicode.ReplacementChar:
		return true
	}
	return !unicode.IsPrint(r) || unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}
