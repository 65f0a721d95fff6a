package editor

import (
	"strings"
	"unicode"
)

// OpensMention reports whether an @ behind this character begins a path. That in
// mail@example.org is none.
func OpensMention(before rune) bool {
	return unicode.IsSpace(before) || strings.ContainsRune("([{\"'`", before)
}

// quoteMention is a path as it stands behind an @.
func quoteMention(path string) string {
	if strings.ContainsFunc(path, unicode.IsSpace) {
		return `"` + path + `"`
	}
	return path
}

// typeable leaves out names that no prompt can say.
func typeable(name string) bool {
	return name != "" && len(name) <= maxNameBytes && !strings.Contains(name, `"`) && !strings.ContainsFunc(name, unicode.IsControl)
}
