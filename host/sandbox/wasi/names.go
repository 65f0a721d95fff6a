package wasi

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// sameName reports whether some file system of the host may treat a and b as the same name.
// Many ignore case and the two encodings of an accent; a few ignore invisible characters. The
// check errs on the safe side: a harmless name beside a masked secret may be hidden too.
func sameName(a, b string) bool {
	if strings.EqualFold(a, b) {
		return true
	}
	if isASCII(a) && isASCII(b) {
		return false
	}
	return strings.EqualFold(normalizeName(a), normalizeName(b))
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

// normalizeName returns a name without invisible characters, with its accents decomposed.
func normalizeName(s string) string {
	return norm.NFD.String(strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point) {
			return -1
		}
		return r
	}, s))
}
