// Package command splits command lines into programs and their arguments, as bash
// does, as far as this is known without running them.
//
// A [Line] is literal if it is one program with words that bash does not change. Even
// a literal line can run anything if its program runs other programs that its
// arguments name; [RunsOthers] reports this. A [Pattern] matches the words of a
// command. [Line.Dangers] lists the dangers of a command.
package command

import (
	"slices"
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// Line is a command line as seen by rules: the simple commands in it, and whether there is
// anything else.
type Line struct {
	Commands [][]string // the leading literal words of each simple command
	// Literal is set if the line is one simple command with literal words only. Expansion,
	// substitution, redirection, glob, assignment, pipeline, list and keyword make it false.
	Literal bool

	file *syntax.File // nil: the line needs no parser, or cannot be parsed
}

// StartsOneProgram reports whether the line starts exactly one program which, as far as is
// known, starts no other program.
func (l Line) StartsOneProgram() bool { return l.Literal && !RunsOthers(l.Commands[0]) }

// Limits of a command that is parsed, because the parser's stack grows with each bracket. The words
// of a command that exceeds one stay unknown.
const (
	maxCommand  = 64 << 10 // bytes
	maxBrackets = 1000     // opening brackets
)

// parsesDifferently reports whether bash and the parser may read a command differently. A
// carriage return is a letter for bash, and a blank or nothing for the parser: a backslash
// before a Windows line end continues the line for one of them and not for the other. Bash
// also uses some control characters as marks of its own.
func parsesDifferently(s string) bool {
	control := func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' || r == 0x7f }
	return !utf8.ValidString(s) || strings.ContainsFunc(s, control)
}

// Parse parses a command as bash does. If it cannot, the line has no commands and is not
// literal.
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

// Words returns all literal words of the command, even after a word that is not literal,
// and in redirections.
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

// parse returns the syntax tree of a command; nil: it is no command, or exceeds a limit.
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

// onlyCall returns the simple command of a line that holds nothing else, not even a comment.
func onlyCall(f *syntax.File) (*syntax.CallExpr, bool) {
	if len(f.Stmts) != 1 || len(f.Last) > 0 {
		return nil, false
	}
	st := f.Stmts[0]
	call, ok := st.Cmd.(*syntax.CallExpr)
	return call, ok && !st.Negated && !st.Semicolon.IsValid() && !st.Coprocess && len(st.Redirs)+len(st.Comments)+len(call.Assigns) == 0
}

// simpleWords splits a command without any character that is special to bash, as most commands
// are. ok is false for any other command. A fuzz test compares it with the parser.
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

// keywords begin something other than a simple command, or declare variables that a later
// command reads.
var keywords = []string{
	"if", "then", "else", "elif", "fi", "for", "while", "until", "do", "done", "case", "esac", "in", "select", "function",
	"time", "coproc", "declare", "local", "export", "readonly", "typeset", "nameref", "let",
}

// literalWords returns the words before the first one that bash would change. all reports
// whether bash would change none.
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
				if !ok || strings.ContainsAny(lit.Value, "\\`$!") { // escapes within quotes have other rules: rare, so not literal
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

// unescape removes the backslashes from an unquoted literal. It fails if bash would expand the
// literal: a glob, a tilde, braces. first is set at the beginning of a word.
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
