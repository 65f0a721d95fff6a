package command

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Pattern is a command of a rule: words to the letter, "*" for one word
// whatever it is, and a last "..." for any more of them. The program is always
// to the letter.
type Pattern struct {
	words   []string
	any     []bool // of each word
	more    bool
	literal int // how many words come before the first star
}

// MaxPattern is the longest pattern, in bytes.
const MaxPattern = 4096

// ParsePattern reads a pattern, its words separated and quoted as bash does.
func ParsePattern(s string) (Pattern, error) {
	var p Pattern
	if len(s) > MaxPattern || parsesDifferently(s) { // before the parser's stack grows with its brackets
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

// Words are those of the pattern, a "*" for any.
func (p Pattern) Words() []string { return p.words }

// Literal are the words before the first that is any.
func (p Pattern) Literal() []string { return p.words[:p.literal] }

// Exact reports whether there is one command that the pattern is about.
func (p Pattern) Exact() bool { return !p.more && p.literal == len(p.words) }

// Match reports whether the pattern is about these words. With base, the program
// may stand there with its directory.
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

// Quote writes words as the pattern that is about no others.
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
