// Package command reads command lines as bash does, as far as that can be told:
// into the words of programs and their arguments.
//
// A [Line] is literal if it is one program with words that bash does not change.
// [RunsOthers] tells the programs for which that says nothing, as they run what
// their arguments say. A [Pattern] is what a rule says about words. What is easily
// regretted in a command, [Line.Dangers] says.
package command

import (
	"slices"
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// Line is what a rule sees of a command: the simple commands in it, as words, and
// whether that is all there is to know.
type Line struct {
	Commands [][]string // the words that are literal, up to the first that is not
	// Literal: it is one simple command of literal words. Everything else
	// (expansion, substitution, redirection, glob, assignment, pipeline, list,
	// keyword) is not.
	Literal bool

	file *syntax.File // nil: not needed, or not to be read
}

// StartsOneProgram says that the command starts the program that it names and, as far as anybody
// can tell from here, no other.
func (l Line) StartsOneProgram() bool { return l.Literal && !RunsOthers(l.Commands[0]) }

// Of a longer command, or one with more brackets, nothing is known: the
// parser's stack grows with each of them.
const (
	maxCommand  = 64 << 10 // bytes
	maxBrackets = 1000
)

// parsesDifferently reports whether bash and the parser may read a command differently. A
// carriage return is a letter to bash, and a blank or nothing to the parser, so
// that a backslash before the end of a line of Windows continues it for one and
// not for the other. Bash uses some control characters as marks of its own.
func parsesDifferently(s string) bool {
	control := func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' || r == 0x7f }
	return !utf8.ValidString(s) || strings.ContainsFunc(s, control)
}

// Parse reads a command as bash does. Of what it cannot read it knows no words.
func Parse(s string) Line {
	if words, ok := simpleWords(s); ok {
		return Line{Commands: [][]string{words}, Literal: true}
	}
	l := Line{file: parse(s)}
	if l.file == nil || parsesDifferently(s) {
		return l
	}
	syntax.Walk(l.file, func(n syntax.Node) bool {
		if call, ok := n.(*syntax.CallExpr); ok {
			if words, _ := literalWords(call.Args); len(words) > 0 {
				l.Commands = append(l.Commands, words)
			}
		}
		return true
	})
	if call, ok := onlyCall(l.file); ok {
		words, all := literalWords(call.Args)
		l.Literal = all && len(words) > 0
	}
	return l
}

// Words are the words that are literal, wherever in the command they stand: also
// behind one that is not, and in a redirection.
func (l Line) Words() []string {
	if l.file == nil {
		return slices.Concat(l.Commands...)
	}
	var out []string
	syntax.Walk(l.file, func(n syntax.Node) bool {
		if w, ok := n.(*syntax.Word); ok {
			if text, ok := literalWord(w); ok {
				out = append(out, text)
			}
		}
		return true
	})
	return out
}

// parse returns nil for what is no command, or too much of one.
func parse(s string) *syntax.File {
	if len(s) > maxCommand || strings.Count(s, "(") > maxBrackets {
		return nil
	}
	f, err := syntax.NewParser(syntax.Variant(syntax.LangBash), syntax.KeepComments(true)).Parse(strings.NewReader(s), "")
	if err != nil {
		return nil
	}
	return f
}

// onlyCall returns the program and its arguments, if there is nothing else to a
// line, not even a comment.
func onlyCall(f *syntax.File) (*syntax.CallExpr, bool) {
	if len(f.Stmts) != 1 || len(f.Last) > 0 {
		return nil, false
	}
	st := f.Stmts[0]
	call, ok := st.Cmd.(*syntax.CallExpr)
	return call, ok && !st.Negated && !st.Semicolon.IsValid() && !st.Coprocess && len(st.Redirs)+len(st.Comments)+len(call.Assigns) == 0
}

// simpleWords splits a command in which nothing has a meaning for bash, which
// most are. That it agrees with the parser is a fuzz test.
func simpleWords(s string) ([]string, bool) {
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		case c == ' ', c == '-', c == '_', c == '.', c == '/', c == ',', c == ':':
		default:
			return nil, false
		}
	}
	words := strings.Fields(s)
	if len(words) == 0 || len(s) > maxCommand || slices.Contains(keywords, words[0]) {
		return nil, false
	}
	return words, true
}

// keywords begin something else than a simple command, or declare variables
// that a later command reads.
var keywords = []string{
	"if", "then", "else", "elif", "fi", "for", "while", "until", "do", "done", "case", "esac", "in", "select", "function",
	"time", "coproc", "declare", "local", "export", "readonly", "typeset", "nameref", "let",
}

// literalWords returns the words up to the first that bash would change, and
// whether that is all of them.
func literalWords(in []*syntax.Word) (words []string, all bool) {
	for _, w := range in {
		text, ok := literalWord(w)
		if !ok {
			return words, false
		}
		words = append(words, text)
	}
	return words, true
}

func literalWord(w *syntax.Word) (string, bool) {
	var b strings.Builder
	for i, part := range w.Parts {
		switch part := part.(type) {
		case *syntax.Lit:
			text, ok := unescape(part.Value, i == 0)
			if !ok {
				return "", false
			}
			b.WriteString(text)
		case *syntax.SglQuoted:
			if part.Dollar {
				return "", false
			}
			b.WriteString(part.Value)
		case *syntax.DblQuoted:
			if part.Dollar {
				return "", false
			}
			for _, p := range part.Parts {
				lit, ok := p.(*syntax.Lit)
				if !ok || strings.ContainsAny(lit.Value, "\\`$!") { // escapes differ within quotes: rare, so it asks
					return "", false
				}
				b.WriteString(lit.Value)
			}
		default:
			return "", false
		}
	}
	return b.String(), true
}

// unescape takes the backslashes out of an unquoted literal. It fails where
// bash would expand the word: a glob, a tilde, braces.
func unescape(s string, first bool) (string, bool) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\':
			if i++; i == len(s) || s[i] == '\n' {
				return "", false
			}
			b.WriteByte(s[i])
		case strings.IndexByte("*?[]{}~!^", c) >= 0 && (c != '~' || first && i == 0 || strings.ContainsAny(s, ":=")):
			return "", false
		case strings.IndexByte("+@", c) >= 0 && strings.Contains(s, "("): // extended globs
			return "", false
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), true
}
