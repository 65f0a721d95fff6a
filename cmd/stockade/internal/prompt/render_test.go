package prompt

import (
	"strings"
	"testing"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/terminal"
	"github.com/stockade-dev/stockade/host/policy"
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
	if got := text(gutter(lines(diff), 80)); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	q := plain()
	q.Command, q.Changes = "", diff
	painted, _ := Renderer{Color: true}.Question(q, true)
	if strings.Count(painted, "\x1b["+terminal.Green+"m") != 3 || strings.Contains(painted, "\x1b["+terminal.Red+"m-") {
		t.Errorf("it is painted %q", painted)
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
		if got := text(gutter(lines(in), 80)); got != want {
			t.Errorf("%q: got\n%s\nwant\n%s", in, got, want)
		}
	}
	// What is one thing stays one line.
	if got := text(gutter([]string{"a\nb"}, 80)); got != "    | a<newline>b\n" {
		t.Errorf("got %q", got)
	}
}

func TestAQuestionSaysWhereItLeads(t *testing.T) {
	q := plain()
	got, _ := Renderer{}.Question(q, false)
	for _, want := range []string{
		"  command:\n    | make\n", "  in the directory (jail tier 3):\n    | /ws\n", "  file that a yes lets it read:\n    | /ws/a\n",
		"  which leads, through a symbolic link, to:\n    | /ws/b\n", "  hosts that it may reach:\n    | api.example.com\n",
		"  secrets:\n    | TOKEN, as a placeholder; the value goes to api.example.com, in X-Key\n",
		"  always, kept until `stockade policy revoke`:\n    | allow it\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("it does not say\n%s\nbut\n%s", want, got)
		}
	}
	if strings.Contains(got, "warning: it") {
		t.Errorf("it warns of nothing:\n%s", got)
	}
	// Escapes that hide what can be read are none in what is shown.
	q.Command, q.Call.Args = "", []byte(`{"a":"\u0072\u006d <x> & 1"}`)
	if got, _ := (Renderer{}).Question(q, false); !strings.Contains(got, `    | {"a":"rm <x> & 1"}`) {
		t.Errorf("the arguments are\n%s", got)
	}
}

func TestChoicesOfferOnlyWhatCounts(t *testing.T) {
	q := Question{Question: policy.Question{Tool: "ls", Scopes: []policy.Scope{policy.ScopeOnce}}}
	if got := (Renderer{}).Choices(q, false); got != "ls (risk safe): Allow? [y]es once, [n]o: " {
		t.Errorf("got %q", got)
	}
	q.Scopes = []policy.Scope{policy.ScopeOnce, policy.ScopeSession, policy.ScopeAlways}
	if got := (Renderer{}).Choices(q, true); got != "ls (risk safe): Allow? [y]es once, [s]ession, [a]lways, [v]iew all, [n]o: " {
		t.Errorf("got %q", got)
	}
	for _, row := range strings.Split(Renderer{Width: 40}.Choices(q, true), "\n") {
		if len(row) > 40 {
			t.Errorf("the row %q does not fit", row)
		}
	}
	qs := []Question{q, plain()}
	if got := (Renderer{}).BatchChoices(qs, true); got != "2 calls (the highest risk is high): Allow? [y]es to all once, [o]ne by one,\n  [n]o to all: " {
		t.Errorf("got %q", got)
	}
	if got := (Renderer{}).BatchChoices(qs, false); got != "2 calls (the highest risk is high): Allow? [o]ne by one, [n]o to all: " {
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
