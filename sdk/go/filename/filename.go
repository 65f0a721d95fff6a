// Package filename writes the names of files as text, and reads them back. A name can hold
// any byte but NUL and a slash. In a path, each part that is no UTF-8, that has characters
// which do not show, or that begins with a quotation mark is written as a string of Go:
// dir/"caf\xe9.txt". All tools print and accept paths in this form. WASI demands UTF-8, so the
// host reads this form in all paths of guests, and search.list returns it.
package filename

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// Show writes a path as text of one line.
func Show(path string) string {
	parts := strings.Split(path, "/")
	for i, part := range parts {
		if !isPlain(part) || strings.HasPrefix(part, `"`) {
			parts[i] = strconv.Quote(part)
		}
	}
	return strings.Join(parts, "/")
}

// UTF8 writes a path for WASI. It is the path itself, unless that is no UTF-8 or [Parse] would
// read another one.
func UTF8(path string) string {
	if utf8.ValidString(path) && Parse(path) == path {
		return path
	}
	return Show(path)
}

func isPlain(name string) bool {
	return utf8.ValidString(name) && !strings.ContainsFunc(name, func(r rune) bool { return !strconv.IsPrint(r) })
}

// Parse reads a path that [Show] has written. A part that Show would write in another way, such
// as "a" or "\x61" with its quotation marks, is the name itself.
func Parse(text string) string {
	if !strings.Contains(text, `"`) {
		return text
	}
	parts := strings.Split(text, "/")
	for i, part := range parts {
		if name, err := strconv.Unquote(part); err == nil && part[0] == '"' && !strings.Contains(name, "/") && Show(name) == part {
			parts[i] = name
		}
	}
	return strings.Join(parts, "/")
}
