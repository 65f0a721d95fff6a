package editor

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// opens reports whether an @ after this text begins a path. That in
// mail@example.org is none.
func opens(before string) bool {
	r, _ := utf8.DecodeLastRuneInString(before)
	return before == "" || unicode.IsSpace(r) || strings.ContainsRune("([{\"'`", r)
}

// mentioned is a path as it stands behind an @.
func mentioned(path string) string {
	if strings.ContainsFunc(path, unicode.IsSpace) {
		return `"` + path + `"`
	}
	return path
}

// typeable leaves out names that no prompt can say.
func typeable(name string) bool {
	return name != "" && len(name) <= maxNameBytes && !strings.Contains(name, `"`) && !strings.ContainsFunc(name, unicode.IsControl)
}
