package editor

import (
	"strings"
	"unicode"
)

// OpensMention reports whether an @ after the character before begins a path. The @ of
// mail@example.org does not.
func OpensMention(before rune) bool {
	return unicode.IsSpace(before) || strings.ContainsRune("([{\"'`", before)
}

// quoteMention returns a path in the form that it has after an @.
func quoteMention(path string) string {
	if strings.ContainsFunc(path, unicode.IsSpace) {
		return `"` + path + `"`
	}
	return path
}
