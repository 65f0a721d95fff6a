package policy

import (
	"errors"
	"fmt"
	"path"
	"strings"
	"unicode/utf8"
)

// pathPattern is a pattern over absolute paths, as rules and directories use
// it. Segments are compared one by one and case counts. "*" within a segment
// stands for any run of characters of it, a segment "**" for any number of
// whole segments, none included: "/a/**" is /a and everything below. Nothing
// else is special, and what is special elsewhere is refused.
type pathPattern struct {
	segments []string
	literal  string // the path before the first segment with a star; "" is the root
}

const maxPattern = 4096 // bytes

// foreign is what other patterns mean something by. Whoever writes it means
// more than the letter, and a rule that denies would cover less than it reads.
const foreign = `[]{}?\`

func parsePathPattern(s string) (pathPattern, error) {
	if err := checkPattern(s); err != nil {
		return pathPattern{}, err
	}
	p := pathPattern{segments: strings.Split(s, "/")}
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
			return pathPattern{}, fmt.Errorf("%.80q ends in a slash: write %s for the directory itself, or %s/** for it and all that is in it", s, strings.TrimRight(s, "/"), strings.TrimRight(s, "/"))
		case seg == "":
			return pathPattern{}, fmt.Errorf("%.80q has two slashes next to each other", s)
		case seg == "." || seg == "..":
			return pathPattern{}, fmt.Errorf("%.80q has a segment %q: write the path that is meant", s, seg)
		case strings.ContainsAny(seg, foreign):
			return pathPattern{}, fmt.Errorf("%.80q: %q is not supported: only * (any letters of one name) and ** (any number of names) stand for others; write a rule for each path that is meant, or * for what such a letter of a name stands for", s, seg[strings.IndexAny(seg, foreign)])
		case seg != "**" && strings.Contains(seg, "**"):
			return pathPattern{}, fmt.Errorf("%.80q: ** is a segment of its own, as in /a/**/b", s)
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
	case len(s) > maxPattern:
		return fmt.Errorf("the pattern has more than %d bytes", maxPattern)
	case strings.ContainsRune(s, 0) || !utf8.ValidString(s):
		return fmt.Errorf("%.80q is no path", s)
	case !absolute(s):
		return fmt.Errorf("%.80q is not absolute", s)
	}
	return nil
}

// absolute takes a path of Windows too, with slashes.
func absolute(s string) bool {
	return strings.HasPrefix(s, "/") || len(s) > 2 && s[1] == ':' && s[2] == '/' && (s[0]|0x20) >= 'a' && (s[0]|0x20) <= 'z'
}

// match reports whether the pattern covers a path that is absolute and clean.
func (p pathPattern) match(name string) bool {
	return matchSegments(p.segments, segmentsOf(name))
}

func segmentsOf(name string) []string {
	name = strings.Trim(name, "/")
	if name == "" {
		return nil
	}
	return strings.Split(name, "/")
}

// matchSegments goes back to the last "**" only: the time is at most the
// product of both lengths, whatever the pattern.
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

func matchSegment(pattern, name string) bool {
	if !strings.Contains(pattern, "*") {
		return pattern == name
	}
	i, j, star, mark := 0, 0, -1, 0
	for j < len(name) {
		switch {
		case i < len(pattern) && pattern[i] == '*':
			star, mark = i, j
			i++
		case i < len(pattern) && pattern[i] == name[j]:
			i++
			j++
		case star >= 0:
			mark++
			i, j = star+1, mark
		default:
			return false
		}
	}
	return strings.Trim(pattern[i:], "*") == ""
}

// cleanPath is the path that an argument names, and whether the words alone
// tell which that is: ".." after a symbolic link leads elsewhere than it reads.
func cleanPath(arg, cwd string) (name string, sure bool) {
	if strings.ContainsRune(arg, 0) || !utf8.ValidString(arg) {
		return "", false
	}
	arg, cwd = slashed(arg), slashed(cwd)
	sure = true
	for seg := range strings.SplitSeq(arg, "/") {
		sure = sure && seg != ".."
	}
	if !absolute(arg) {
		arg = cwd + "/" + arg
	}
	return path.Clean(arg), sure
}
