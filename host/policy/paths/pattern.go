package paths

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// Pattern matches absolute paths, in rules and lists of directories. It is compared segment by
// segment, with case. "*" within a segment matches any characters; a segment "**" matches any
// number of segments, even none: "/a/**" matches /a and everything below. Characters with a
// meaning in other kinds of patterns are refused.
type Pattern struct {
	segments []string
	literal  string // result of Literal
}

// MaxPattern limits the length of a pattern, in bytes; a longer one is an error.
const MaxPattern = 4096

// unsupportedChars have a meaning in other kinds of patterns. Their author expects that
// meaning, and a rule that denies would cover less than it seems to.
const unsupportedChars = `[]{}?\`

// ParsePattern parses a pattern. A path that is not absolute and clean, or a character that is
// special in other kinds of patterns, is an error.
func ParsePattern(s string) (Pattern, error) {
	if err := checkPattern(s); err != nil {
		return Pattern{}, err
	}
	p := Pattern{segments: strings.Split(s, "/")}
	if p.segments[0] == "" {
		p.segments = p.segments[1:]
	}
	if s == "/" {
		p.segments = nil
	}
	literal := 0
	for i, seg := range p.segments {
		switch {
		case seg == "" && i == len(p.segments)-1:
			return Pattern{}, fmt.Errorf("%.80q ends in a slash: write %s for the directory itself, or %s/** for it and all that is in it", s, strings.TrimRight(s, "/"), strings.TrimRight(s, "/"))
		case seg == "":
			return Pattern{}, fmt.Errorf("%.80q has two slashes next to each other", s)
		case seg == "." || seg == "..":
			return Pattern{}, fmt.Errorf("%.80q has a segment %q: write the path that is meant", s, seg)
		case strings.ContainsAny(seg, unsupportedChars):
			return Pattern{}, fmt.Errorf("%.80q: %q is not supported: only * (any letters of one name) and ** (any number of names) stand for others; write a rule for each path that is meant, or * for what such a letter of a name stands for", s, seg[strings.IndexAny(seg, unsupportedChars)])
		case seg != "**" && strings.Contains(seg, "**"):
			return Pattern{}, fmt.Errorf("%.80q: ** is a segment of its own, as in /a/**/b", s)
		}
		if literal == i && !strings.Contains(seg, "*") {
			literal++
		}
	}
	if p.literal = strings.Join(p.segments[:literal], "/"); literal > 0 && s[0] == '/' {
		p.literal = "/" + p.literal
	}
	return p, nil
}

func checkPattern(s string) error {
	switch {
	case s == "":
		return errors.New("the pattern is empty, which would match nothing")
	case len(s) > MaxPattern:
		return fmt.Errorf("the pattern has more than %d bytes", MaxPattern)
	case strings.ContainsRune(s, 0) || !utf8.ValidString(s):
		return fmt.Errorf("%.80q is no path", s)
	case !isAbs(s):
		return fmt.Errorf("%.80q is not absolute", s)
	}
	return nil
}

// Literal returns the path before the first segment with a star; empty: the root.
func (p Pattern) Literal() string { return p.literal }

// Match reports whether the pattern matches an absolute, clean path with slashes.
func (p Pattern) Match(name string) bool {
	return matchSegments(p.segments, segmentsOf(name))
}

// Covers reports whether the pattern matches a host path or one of the directories above.
func (p Pattern) Covers(host string) bool {
	segments := segmentsOf(filepath.ToSlash(host))
	for n := len(segments); n >= 0; n-- {
		if matchSegments(p.segments, segments[:n]) {
			return true
		}
	}
	return false
}

func segmentsOf(name string) []string {
	name = strings.Trim(name, "/")
	if name == "" {
		return nil
	}
	return strings.Split(name, "/")
}

// matchSegments matches whole paths. It backtracks only to the previous "**", so that its time
// is at most the product of both lengths.
func matchSegments(pattern, name []string) bool {
	i, j, star, mark := 0, 0, -1, 0
	for j < len(name) {
		switch {
		case i < len(pattern) && pattern[i] == "**":
			star, mark = i, j
			i++
		case i < len(pattern) && matchSegment(pattern[i], name[j]):
			i++
			j++
		case star >= 0:
			mark++
			i, j = star+1, mark
		default:
			return false
		}
	}
	for i < len(pattern) && pattern[i] == "**" {
		i++
	}
	return i == len(pattern)
}

// matchSegment matches one segment. It looks for the text between two stars at the first
// possible place: if the rest does not fit there, it fits nowhere.
func matchSegment(pattern, name string) bool {
	text, pattern, star := strings.Cut(pattern, "*")
	if !star {
		return text == name
	}
	name, ok := strings.CutPrefix(name, text)
	for ok {
		if text, pattern, star = strings.Cut(pattern, "*"); !star {
			return strings.HasSuffix(name, text)
		}
		_, name, ok = strings.Cut(name, text)
	}
	return false
}
