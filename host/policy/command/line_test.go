package command

import (
	"context"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"mvdan.cc/sh/v3/syntax"
)

// The literal words of a line are the words that bash gives to the program.
func TestLiteralWordsAreWhatBashSees(t *testing.T) {
	for _, command := range []string{
		"echo a b", `echo "a b" c`, `echo 'x y'z"w"`, `echo a\ b`, `echo \*`, `echo a\"b`, `echo ''`, "echo  a   b ", "echo a,b:c/d.e-f_g", "echo a=b", `echo a\\b`,
		"echo @ % + a@b", "echo é", `echo "a"'b'`, "echo a~b", "echo -- -n",
		"echo a#b", "echo =id", "echo %1", "echo a$ $ b", `echo \~ '~' \$x`, "echo a \\\n b", "echo a\\\nb", "echo \"a\\\nb\"", "ec\\\nho a", "echo a\u0085b a\u00a0b a\u2028b", "echo 'a\nb'", "echo --x=y",
	} {
		line := Parse(command)
		if !line.Literal {
			t.Errorf("%q is not literal", command)
			continue
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		out, err := exec.CommandContext(ctx, "bash", "-c", `echo() { printf '%s\0' "$@"; }; `+command).Output()
		cancel()
		if err != nil {
			t.Fatal(err)
		}
		if want := strings.Join(line.Commands[0][1:], "\x00") + "\x00"; string(out) != want {
			t.Errorf("%q: bash sees %q, a rule %q", command, out, want)
		}
	}
}

// The parser's stack grows with each bracket, so a long pattern never gets to it.
func TestALongPatternIsRefusedUnread(t *testing.T) {
	if p, err := ParsePattern(strings.Repeat("(", 10_000_000)); err == nil {
		t.Errorf("it is a pattern of %d words", len(p.Words()))
	}
}

// FuzzParse: the fast path for simple commands returns the same as the parser, and literal
// words, quoted, parse to themselves.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"ls -l", "time ls", "a b/c:d", "export X", "ls $X", "a 'b c' \"d\"", "let a", "! a", "function f", "in x", "a\\b", "~ x", "a{b,c}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, command string) {
		if words, ok := simpleWords(command); ok {
			file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(command), "")
			if err != nil || len(file.Stmts) != 1 {
				t.Fatalf("%q: %v", command, err)
			}
			c, isCall := file.Stmts[0].Cmd.(*syntax.CallExpr)
			if !isCall {
				t.Fatalf("%q is %T", command, file.Stmts[0].Cmd)
			}
			if slow, all := literalWords(c.Args); !all || !slices.Equal(slow, words) || len(c.Assigns) > 0 {
				t.Fatalf("%q is %q, and %q by the parser", command, words, slow)
			}
		}
		line := Parse(command)
		if !line.Literal {
			return
		}
		text, err := Quote(line.Commands[0])
		if err != nil {
			return
		}
		p, err := ParsePattern(text)
		if err != nil || !p.Match(line.Commands[0], false) || !p.Exact() {
			t.Fatalf("%q became %q, %v", command, text, err)
		}
		if !Parse(text).Literal && !strings.ContainsAny(text, `$"\!^*`) {
			t.Fatalf("%q became %q, which is not literal", command, text)
		}
	})
}
