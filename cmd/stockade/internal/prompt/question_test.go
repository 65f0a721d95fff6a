package prompt

import (
	"strings"
	"testing"
)

// text is rows as they are written.
func text(rows []row) string {
	var b strings.Builder
	for _, r := range rows {
		b.WriteString(r.before + r.text + "\n")
	}
	return b.String()
}

func TestALongLineDoesNotLookLikeMore(t *testing.T) {
	wide := func(s string) string { return s + strings.Repeat(".", 73-len(s)) }
	diff := "+" + wide("// see the manual")[1:] + wide(`-system("rm -rf ~")`) + "removed docs/old.md"
	want := bar + "+" + wide("// see the manual")[1:] + "\n" + goesOn + wide(`-system("rm -rf ~")`) + "\n" + goesOn + "removed docs/old.md\n"
	if got := text(gutter(strings.Split(diff, "\n"), 80)); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestWhatDoesNotShowIsCounted(t *testing.T) {
	for in, want := range map[string]string{
		"<tab> <12 blanks> <U+0000> <b>": "    | <U+003C>tab> <U+003C>12 blanks> <U+003C>U+0000> <b>\n",
		"a   ":                           "    | a<3 blanks>\n",
		"  a":                            "    |   a\n",
		" ":                              "    |  \n",
		"ls" + strings.Repeat(" ", 9):    "    | ls<9 blanks>\n",
		"a\tb":                           "    | a<tab>b\n",
		"a\na\na\nb":                     "    | a\n    | a\n    | a\n    | b\n",
		"a\na\na\na\nb":                  "    | a\n    ~ the line above 3 times more\n    | b\n",
	} {
		if got := text(gutter(strings.Split(in, "\n"), 80)); got != want {
			t.Errorf("%q: got\n%s\nwant\n%s", in, got, want)
		}
	}
	// What is one thing stays one line.
	if got := text(gutter([]string{"a\nb"}, 80)); got != "    | a<newline>b\n" {
		t.Errorf("got %q", got)
	}
}

func TestOrdinaryTextIsNotSuspect(t *testing.T) {
	for _, text := range []string{
		"go test ./... && echo done", "Grüße aus Köln", "кот и пёс", "\u03b7 \u03b3\u03ac\u03c4\u03b1", "世界.txt", "Vie\u0323\u0302t", "\u26a0\ufe0f careful",
		"if a < b | c > d: return", "| a | table |", "a – б",
	} {
		var s suspect
		if s.look(text); s.found != nil {
			t.Errorf("%q: %q", text, s.found)
		}
	}
}
