package command

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Pattern matches commands. It consists of literal words, "*" for any one word, and a last
// "..." for any number of further words. The program, its first word, is always literal.
type Pattern struct {
	words   []string
	any     []bool // for each word: set if it is "*"
	more    bool   // set if the last word is "..."
	literal int    // number of words before the first "*"
}

// MaxPattern limits the length of a pattern, in bytes; a longer one is an error.
const MaxPattern = 4096

// ParsePattern parses a pattern. Its words are separated and quoted as in bash.
func ParsePattern(s string) (Pattern, error) {
	var p Pattern
	if len(s) > MaxPattern || parsesDifferently(s) { // the limit also bounds the parser's stack
		return p, fmt.Errorf("%.80q is not one command", s)
	}
	f, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(s), "")
	if err != nil || len(f.Stmts) != 1 {
		return p, fmt.Errorf("%.80q is not one command", s)
	}
	call, ok := onlyCall(f)
	if !ok {
		return p, fmt.Errorf("%.80q is more than a program and its arguments", s)
	}
	for i, w := range call.Args {
		if w.Lit() == "..." && i == len(call.Args)-1 && i > 0 {
			p.more = true
			break
		}
		isAny := w.Lit() == "*"
		text, ok := literalWord(w)
		if !ok && !isAny {
			return p, fmt.Errorf("%.80q: word %d is not literal; * stands for a whole word, ... at the end for any more", s, i+1)
		}
		p.words, p.any = append(p.words, text), append(p.any, isAny)
		if p.literal == i && !isAny {
			p.literal++
		}
	}
	if p.literal == 0 || p.words[0] == "" {
		return p, errors.New("a command begins with its program, to the letter")
	}
	return p, nil
}

// Words returns the words of the pattern: an empty text for "*", and nothing for "...".
func (p Pattern) Words() []string { return p.words }

// Literal returns the words before the first "*".
func (p Pattern) Literal() []string { return p.words[:p.literal] }

// Exact reports whether the pattern matches only one command.
func (p Pattern) Exact() bool { return !p.more && p.literal == len(p.words) }

// Match reports whether the pattern matches these words. base is set to match the program also
// with a directory before its name.
func (p Pattern) Match(words []string, base bool) bool {
	if len(words) < len(p.words) || len(words) > len(p.words) && !p.more {
		return false
	}
	for i, w := range p.words {
		switch {
		case p.any[i], words[i] == w:
		case i == 0 && base && path.Base(words[0]) == w:
		default:
			return false
		}
	}
	return true
}

// Quote returns the text of a pattern that matches exactly these words. It fails if no text
// does.
func Quote(words []string) (string, error) {
	quoted := make([]string, len(words))
	for i, w := range words {
		if w == "..." || w == "*" {
			quoted[i] = "'" + w + "'"
			continue
		}
		q, err := syntax.Quote(w, syntax.LangPOSIX)
		if err != nil {
			return "", fmt.Errorf("word %d of the command cannot be written down: %w", i+1, err)
		}
		quoted[i] = q
	}
	text := strings.Join(quoted, " ")
	if p, err := ParsePattern(text); err != nil {
		return "", err
	} else if !slices.Equal(p.words, words) {
		return "", errors.New("the command cannot be written down as a rule")
	}
	return text, nil
}
