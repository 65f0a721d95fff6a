// Package ignore matches paths with the patterns of .gitignore files, for the host and for the
// guests that walk the files of a project.
package ignore

import "strings"

// Pattern is one line of a .gitignore file.
type Pattern struct {
	segments []string // parts of the pattern between slashes; "**" stands for any number of names
	literal  string   // NAME if the pattern is NAME or *NAME, for a quick comparison; else empty
	suffix   bool     // the pattern is *NAME
	anchored bool     // matches only from the file's directory on, not at any depth
	dirOnly  bool
	negated  bool
}

// Parse reads the patterns of a .gitignore file.
func Parse(text []byte) []Pattern {
	var patterns []Pattern
	for line := range strings.Lines(strings.TrimPrefix(string(text), "\uFEFF")) {
		line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
		if p, ok := ParseLine(line); ok {
			patterns = append(patterns, p)
		}
	}
	return patterns
}

// ParseLine reads one line without its ending. ok is false for a line without a pattern.
func ParseLine(line string) (p Pattern, ok bool) {
	if strings.HasPrefix(line, "#") {
		return p, false
	}
	line = trimSpaces(line)
	line, p.negated = strings.CutPrefix(line, "!")
	line, p.dirOnly = strings.CutSuffix(line, "/")
	if line == "" {
		return p, false
	}
	p.anchored = strings.Contains(line, "/")
	p.segments = strings.Split(strings.TrimPrefix(line, "/"), "/")
	if rest, suffix := strings.CutPrefix(line, "*"); !p.anchored && rest != "" && !strings.ContainsAny(rest, `*?[\`) {
		p.literal, p.suffix = rest, suffix
	}
	return p, true
}

// trimSpaces removes spaces at the end, except a space that a backslash quotes.
func trimSpaces(line string) string {
	end := 0
	for i := 0; i < len(line); i++ {
		switch line[i] {
		case ' ':
			continue
		case '\\':
			i++
		}
		end = min(i+1, len(line))
	}
	return line[:end]
}

// Match reports whether the pattern matches a path, which is given by its names below the
// directory of the .gitignore file.
func (p *Pattern) Match(segments []string, isDir bool) bool {
	if p.dirOnly && !isDir {
		return false
	}
	if p.literal != "" {
		name := segments[len(segments)-1]
		return name == p.literal || p.suffix && strings.HasSuffix(name, p.literal)
	}
	if !p.anchored {
		return matchSegment(p.segments[0], segments[len(segments)-1])
	}
	return matchSegments(p.segments, segments)
}

// matchSegments matches whole paths. Only the latest "**" is ever tried again, because an
// earlier one could not match more: the time is at most the product of the two lengths.
func matchSegments(pattern, name []string) bool {
	p, n := 0, 0
	retryP, retryN := -1, 0
	for n < len(name) {
		switch {
		case p < len(pattern) && pattern[p] == "**":
			if p == len(pattern)-1 {
				return true // everything inside, but not the directory itself
			}
			p++
			retryP, retryN = p, n
		case p < len(pattern) && matchSegment(pattern[p], name[n]):
			p++
			n++
		case retryP >= 0:
			retryN++
			p, n = retryP, retryN
		default:
			return false
		}
	}
	return p == len(pattern)
}

// matchSegment matches one name: * is any text, ? one character, [...] one of a set, and a
// backslash quotes. A malformed pattern matches nothing.
func matchSegment(pattern, name string) bool {
	p, n := 0, 0
	retryP, retryN := -1, 0
	for n < len(name) {
		if p < len(pattern) && pattern[p] == '*' {
			p++
			retryP, retryN = p, n
			continue
		}
		if width, charWidth := matchOne(pattern[p:], name[n:]); width > 0 {
			p += width
			n += charWidth
			continue
		}
		if retryP < 0 {
			return false
		}
		retryN++
		p, n = retryP, retryN
	}
	return strings.Trim(pattern[p:], "*") == ""
}

// matchOne matches the first character of name, which is not empty. It returns the number of
// bytes that it used of both; zero: no match.
func matchOne(pattern, name string) (patternWidth, nameWidth int) {
	if pattern == "" {
		return 0, 0
	}
	switch pattern[0] {
	case '?':
		return 1, 1
	case '[':
		if width, ok := matchSet(pattern, name[0]); ok {
			return width, 1
		}
		return 0, 0
	case '\\':
		if len(pattern) > 1 && pattern[1] == name[0] {
			return 2, 1
		}
		return 0, 0
	}
	if pattern[0] == name[0] {
		return 1, 1
	}
	return 0, 0
}

// matchSet reports whether c is in the set at the beginning of pattern, such as [a-z]. width
// is the length of the set. A set that is not closed matches nothing.
func matchSet(pattern string, c byte) (width int, ok bool) {
	i := 1
	negated := false
	if i < len(pattern) && (pattern[i] == '!' || pattern[i] == '^') {
		negated = true
		i++
	}
	found := false
	for first := true; ; first = false {
		if i >= len(pattern) {
			return 0, false
		}
		if pattern[i] == ']' && !first {
			return i + 1, found != negated
		}
		if class, rest, isClass := cutClass(pattern[i:]); isClass {
			in, known := inClass(class, c)
			if !known {
				return 0, false
			}
			found = found || in
			i = len(pattern) - len(rest)
			continue
		}
		low, next := setChar(pattern, i)
		high := low
		if next+1 < len(pattern) && pattern[next] == '-' && pattern[next+1] != ']' {
			high, next = setChar(pattern, next+1)
		}
		if next > len(pattern) {
			return 0, false
		}
		found = found || low <= c && c <= high
		i = next
	}
}

// setChar returns the character at i, which a backslash may quote, and the offset after it.
// next is beyond the pattern if the backslash quotes nothing.
func setChar(pattern string, i int) (c byte, next int) {
	if pattern[i] != '\\' {
		return pattern[i], i + 1
	}
	if i+1 >= len(pattern) {
		return 0, len(pattern) + 1
	}
	return pattern[i+1], i + 2
}

// cutClass splits a class such as [:alpha:] from the beginning of s; ok is false without one.
func cutClass(s string) (class, rest string, ok bool) {
	inner, ok := strings.CutPrefix(s, "[:")
	if !ok {
		return "", s, false
	}
	return strings.Cut(inner, ":]")
}

// classes holds the POSIX classes as pairs of a first and a last character.
var classes = map[string]string{
	"alnum": "09AZaz", "alpha": "AZaz", "blank": "\t\t  ", "cntrl": "\x00\x1f\x7f\x7f", "digit": "09", "graph": "!~",
	"lower": "az", "print": " ~", "punct": "!/:@[`{~", "space": "\t\r  ", "upper": "AZ", "xdigit": "09AFaf",
}

// inClass reports whether c is in a POSIX class, and whether the class is known.
func inClass(class string, c byte) (in, known bool) {
	pairs, known := classes[class]
	for i := 0; i < len(pairs); i += 2 {
		in = in || pairs[i] <= c && c <= pairs[i+1]
	}
	return in, known
}

// Negated reports whether the pattern takes back what an earlier one excludes.
func (p *Pattern) Negated() bool { return p.negated }
