package editor

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// The limits of what a prompt can name.
const (
	maxMentions     = 100
	maxMentionBytes = 4096
)

// Mentions returns the paths that a prompt names with an @, each once, in their
// order: @main.go, or @"a name with blanks", in which \ stands before a " and
// before itself. An @ within a word is none, as in mail@example.org, and signs
// that end a sentence do not belong to a path without quotes. It returns at most
// 100, and leaves out what is longer than 4,096 bytes. Whether there is such a
// file is not asked.
func Mentions(prompt string) []string {
	var out []string
	seen := map[string]bool{}
	for i := 0; i < len(prompt) && len(out) < maxMentions; {
		if prompt[i] != '@' || !opens(prompt[:i]) {
			i++
			continue
		}
		path, end := mention(prompt[i+1:])
		i += 1 + end
		if path != "" && len(path) <= maxMentionBytes && !seen[path] {
			seen[path] = true
			out = append(out, path)
		}
	}
	return out
}

// opens reports whether an @ after this text begins a mention.
func opens(before string) bool {
	r, _ := utf8.DecodeLastRuneInString(before)
	return before == "" || unicode.IsSpace(r) || strings.ContainsRune("([{<,;'\"`", r)
}

// mention reads what stands behind an @, and says where it ends.
func mention(s string) (path string, end int) {
	if !strings.HasPrefix(s, `"`) {
		end = strings.IndexFunc(s, unicode.IsSpace)
		if end < 0 {
			end = len(s)
		}
		return strings.TrimRight(s[:end], trailing), end
	}
	var b strings.Builder
	for i := 1; i < len(s) && s[i] != '\n'; i++ {
		switch {
		case s[i] == '"':
			return b.String(), i + 1
		case s[i] == '\\' && i+1 < len(s) && (s[i+1] == '"' || s[i+1] == '\\'):
			i++
		}
		b.WriteByte(s[i])
	}
	return "", 1 // it does not end
}

// trailing are the signs that end a sentence, or a part of it.
const trailing = ".,;:!?)]}>'\"`"

// mentioned writes a path so that [Mentions] finds it behind an @.
func mentioned(path string) string {
	if !strings.ContainsFunc(path, unicode.IsSpace) && !strings.HasPrefix(path, `"`) && strings.TrimRight(path, trailing) == path {
		return path
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(path) + `"`
}
