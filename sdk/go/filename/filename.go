// Package filename writes the names of files as text, and parses them. A name can hold any
// byte but NUL and a slash. In a path, a part is written as a Go string if it is not UTF-8,
// has invisible characters, or begins with a quotation mark: dir/"caf\xe9.txt". All tools
// show and accept paths in this form. Names of WASI are UTF-8: the host parses this form in
// all paths of guests, and search.list returns it.
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

// UTF8 returns a path for WASI. It is the path itself, unless that is not UTF-8 or [Parse]
// would return a different path.
func UTF8(path string) string {
	if utf8.ValidString(path) && Parse(path) == path {
		return path
	}
	return Show(path)
}

func isPlain(name string) bool {
	return utf8.ValidString(name) && !strings.ContainsFunc(name, func(r rune) bool { return !strconv.IsPrint(r) })
}

// Parse parses a path that [Show] has written. A part that Show would write differently,
// such as "a" or "\x61" with its quotation marks, is the name itself.
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
