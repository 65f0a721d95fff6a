// Package gitconfig parses configurations of git and finds keys that can make git run a
// program.
package gitconfig

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// MaxBytes limits the size of a configuration, in bytes. Callers pass no larger one to this
// package.
const MaxBytes = 64 << 10

// harmlessKeys are keys that never make git run a program. A star is any subsection.
var harmlessKeys = []string{
	"core.repositoryformatversion", "core.filemode", "core.bare", "core.logallrefupdates", "core.ignorecase", "core.symlinks",
	"core.precomposeunicode", "remote.*.url", "remote.*.fetch", "branch.*.remote", "branch.*.merge", "submodule.active", "user.name", "user.email",
	"init.defaultbranch",
}

// Key is a key with its value. Name is section.key or section.subsection.key; only the
// subsection keeps its case, the rest is in lower case.
type Key struct{ Name, Value string }

func (k Key) String() string { return k.Name + " = " + k.Value }

// kind returns the name with a star in place of the subsection.
func (k Key) kind() string {
	first, last := strings.Index(k.Name, "."), strings.LastIndex(k.Name, ".")
	if first == last {
		return k.Name
	}
	return k.Name[:first] + ".*" + k.Name[last:]
}

// Parse parses a configuration. It accepts less than git does: only the form that git itself
// writes for values that need no quotes. Anything else is an error.
func Parse(text string) (keys []Key, err error) {
	section, n := "", 0
	for line := range strings.Lines(text) {
		n++
		refuse := func(what string) ([]Key, error) { return nil, fmt.Errorf("line %d: %s", n, what) }
		line = strings.Trim(strings.TrimSuffix(line, "\n"), " \t")
		if strings.ContainsFunc(line, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
			return refuse("a control character")
		}
		switch {
		case line == "":
		case line[0] == '#' || line[0] == ';':
		case strings.ContainsAny(line, `\`):
			return refuse("a backslash")
		case line[0] == '[':
			inner, ok := strings.CutSuffix(line[1:], "]")
			name, quoted, subsection := strings.Cut(inner, ` "`)
			if subsection {
				quoted, subsection = strings.CutSuffix(quoted, `"`)
				ok = ok && subsection
			}
			if !ok || !keyName(name) || strings.ContainsAny(quoted, `"[]`) {
				return refuse("a section that is not simple")
			}
			section = strings.ToLower(name)
			if subsection {
				section += "." + quoted
			}
		default:
			key, value, ok := strings.Cut(line, "=")
			key, value = strings.TrimRight(key, " \t"), strings.TrimLeft(value, " \t")
			if !ok || !keyName(key) || strings.ContainsAny(value, `"#;`) {
				return refuse("a value that is not simple")
			}
			keys = append(keys, Key{section + "." + strings.ToLower(key), value})
		}
	}
	return keys, nil
}

// keyName reports whether a section or a key can have this name.
func keyName(name string) bool {
	return name != "" && strings.Trim(strings.ToLower(name), "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

// Harmless returns an error unless the configuration has only keys and values that never make
// git run a program.
func Harmless(text string) error {
	keys, err := Parse(text)
	if err != nil {
		return err
	}
	for _, k := range keys {
		if !slices.Contains(harmlessKeys, k.kind()) {
			return fmt.Errorf("the key %s", k.kind())
		}
		// A URL such as "ext::PROGRAM" names a program.
		if strings.Contains(k.Value, "::") || strings.HasPrefix(k.Value, "-") {
			return fmt.Errorf("the value of %s", k.kind())
		}
	}
	return nil
}

// askable holds the keys that may change after an answer, each with the form of its value.
// They name the places that git pulls from and pushes to, by http, https or ssh.
var askable = sync.OnceValue(func() map[string]*regexp.Regexp {
	return map[string]*regexp.Regexp{
		"branch.*.remote":     regexp.MustCompile(`^(\.|[A-Za-z0-9_][A-Za-z0-9._/-]*)$`),
		"branch.*.pushremote": regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._/-]*$`),
		"branch.*.merge":      regexp.MustCompile(`^refs/[A-Za-z0-9._/@+-]+$`),
		"branch.*.rebase":     regexp.MustCompile(`^(true|false|merges)$`),
		"remote.*.url":        regexp.MustCompile(`^((https?|ssh)://[A-Za-z0-9@_][^\s:]*(:[^\s:]*)*|([A-Za-z0-9_][A-Za-z0-9._-]*@)?[A-Za-z0-9_][A-Za-z0-9._-]*:[A-Za-z0-9_~/.][^\s:]*)$`),
		"remote.*.fetch":      regexp.MustCompile(`^\+?refs/[^\s:]+:refs/[^\s:]+$`),
	}
})

// Diff returns the keys that differ between two configurations, as text. It returns an error
// if one of them may not change even after an answer, or if a configuration cannot be parsed.
func Diff(before, after string) (words []string, err error) {
	was, err := Parse(before)
	if err != nil {
		return nil, fmt.Errorf("before the change: %w", err)
	}
	is, err := Parse(after)
	if err != nil {
		return nil, err
	}
	for _, diff := range []struct {
		keys, other []Key
		format      string
	}{{is, was, "%s"}, {was, is, "without %s"}} {
		left := slices.Clone(diff.other)
		for _, k := range diff.keys {
			if i := slices.Index(left, k); i >= 0 {
				left = slices.Delete(left, i, i+1)
				continue
			}
			valid := askable()[k.kind()]
			if valid == nil {
				return nil, fmt.Errorf("the key %s", k.kind())
			}
			if diff.format == "%s" && (!valid.MatchString(k.Value) || strings.Contains(k.Value, "::")) {
				return nil, fmt.Errorf("the value of %s", k.kind())
			}
			words = append(words, fmt.Sprintf(diff.format, k))
		}
	}
	return words, nil
}
