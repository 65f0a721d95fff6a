package wasi

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// sameName reports whether some file system of the host takes two names for the
// same. Case and the two ways to write an accent are the business of many; a
// few ignore characters that nobody sees. Who looks here would rather be wrong
// about a file that is not called Secret beside a masked secret.
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

// normalizeName is a name without what nobody sees, its accents taken apart.
func normalizeName(s string) string {
	return norm.NFD.String(strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point) {
			return -1
		}
		return r
	}, s))
}
