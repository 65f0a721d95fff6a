package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/stockade-dev/stockade/host/policy"
)

func TestNothingIsPrintedWhileAQuestionIsOpen(t *testing.T) {
	var s screen
	var shown []string
	show := func(text string) { s.show(func() { shown = append(shown, text) }) }
	show("before")
	done := s.ask()
	show("first")
	show("second")
	if !slices.Equal(shown, []string{"before"}) {
		t.Errorf("while the question was open it showed %q", shown)
	}
	done()
	show("after")
	if want := []string{"before", "first", "second", "after"}; !slices.Equal(shown, want) {
		t.Errorf("showed %q, want %q", shown, want)
	}
}

func TestAnAnswerFromBeforeTheQuestionDoesNotCount(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	lines := newLineReader(r)
	fmt.Fprint(w, "prompt\ny\ny\n")
	if got, err := lines.next(t.Context()); got != "prompt" || err != nil {
		t.Fatalf("got %q, %v", got, err)
	}
	moment := lines.discard()
	answered := make(chan string)
	go func() {
		got, _ := lines.after(t.Context(), moment)
		answered <- got
	}()
	fmt.Fprint(w, "n\n")
	if got := <-answered; got != "n" {
		t.Errorf("the answer was %q", got)
	}
}

func TestEveryRowOfWhatIsAskedAboutStandsBehindABar(t *testing.T) {
	pad := strings.Repeat(" ", 70)
	for name, text := range map[string]string{
		"a line":                    "make test",
		"lines that look like ours": "ls\n[risk safe] ls wants to run: it only reads\n  command:\nls (risk safe): Allow? [y]es once, [n]o:",
		"blanks up to the next row": "touch x #" + pad + "[risk high] bash wants to run" + pad + "ls -l",
		"other blanks":              "ls" + strings.Repeat("\u3164", 200) + strings.Repeat("\u2800", 200) + strings.Repeat("\u00a0", 200) + ";touch x",
		"escapes":                   "ls\x1b[2K\x1b[1A\r\b\x07\u202e\u2066\u200b\U000e0041\x9b31m",
		"wide characters":           strings.Repeat("世", 500),
		"tabs":                      "ls" + strings.Repeat("\t", 50) + "x",
		"a very long line":          strings.Repeat("x", 5000) + "END",
		"many lines":                strings.Repeat("x\n", 500) + "END",
	} {
		t.Run(name, func(t *testing.T) {
			for _, all := range []bool{false, true} {
				rows, folded := gutter(text, 80, all)
				for line := range strings.SplitSeq(strings.TrimSuffix(rows, "\n"), "\n") {
					if !strings.HasPrefix(line, bar) && !strings.HasPrefix(line, goesOn) || len([]rune(line))+strings.Count(line, "世") > 80 && !strings.Contains(line, "rows folded") {
						t.Errorf("row %q", line)
					}
				}
				if i := strings.IndexFunc(rows, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }); i >= 0 {
					t.Errorf("an unprintable character at %d of %q", i, rows)
				}
				if strings.Contains(rows, strings.Repeat(" ", 20)) {
					t.Errorf("blanks in %q", rows)
				}
				if folded == all && len(text) > 2000 || folded && all {
					t.Errorf("all %v, folded %v", all, folded)
				}
				if strings.HasSuffix(text, "END") && !strings.HasSuffix(rows, "END\n") {
					t.Errorf("the end is out of sight: %q", rows[len(rows)-40:])
				}
			}
		})
	}
}

func TestALongLineDoesNotLookLikeMore(t *testing.T) {
	wide := func(s string) string { return s + strings.Repeat(".", 73-len(s)) }
	rows, _ := gutter("+"+wide("// see the manual")[1:]+wide(`-system("rm -rf ~")`)+"removed docs/old.md", 80, true)
	want := bar + "+" + wide("// see the manual")[1:] + "\n" + goesOn + wide(`-system("rm -rf ~")`) + "\n" + goesOn + "removed docs/old.md\n"
	if rows != want {
		t.Errorf("got\n%s\nwant\n%s", rows, want)
	}
	painted := paint(rows)
	if strings.Count(painted, "\x1b["+styleGreen+"m") != 3 || strings.Contains(painted, "\x1b["+styleRed+"m") {
		t.Errorf("it is painted %q", painted)
	}
	if got, _ := gutter("<tab> <12 blanks> <U+0000> <b>", 80, true); got != bar+"<U+003C>tab> <U+003C>12 blanks> <U+003C>U+0000> <b>\n" {
		t.Errorf("got %q", got)
	}
}

func TestChoicesOfferOnlyWhatCounts(t *testing.T) {
	once := []policy.Scope{policy.ScopeOnce}
	if got := choices(once, false); got != "[y]es once, [n]o:" {
		t.Errorf("got %q", got)
	}
	every := []policy.Scope{policy.ScopeOnce, policy.ScopeSession, policy.ScopeAlways}
	if got := choices(every, true); got != "[y]es once, [s]ession, [a]lways, [v]iew all, [n]o:" {
		t.Errorf("got %q", got)
	}
}

func TestVisibleLeavesTextAlone(t *testing.T) {
	for _, text := range []string{"plain", "two\nlines\tand a tab", "Grüße, 世界, αβγ, مرحبا, 😀", "`$(x)` \\n"} {
		if got := visible(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}
