package editor

import (
	"strings"
	"unicode"
)

// OpensMention reports whether an @ behind this character begins a path. The @ of
// mail@example.org does not.
func OpensMention(before rune) bool {
	return unicode.IsSpace(before) || strings.ContainsRune("([{\"'`", before)
}

// quoteMention returns a path as it stands behind an @.
func quoteMention(path string) string {
	if strings.ContainsFunc(path, unicode.IsSpace) {
		return `"` + path + `"`
	}
	return path
}

// typeable reports whether a prompt can contain the name.
func typeable(name string) bool {
	return name != "" && len(name) <= maxNameBytes && !strings.Contains(name, `"`) && !strings.ContainsFunc(name, unicode.IsControl)
}
