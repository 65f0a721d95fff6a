package prompt

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/terminal/terminaltest"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/tool"
)

// plain is a question in which nothing deceives.
func plain() Question {
	return Question{Question: policy.Question{
		Call: tool.Call{Args: json.RawMessage(`{"path":"a"}`)}, Tool: "probe", Risk: policy.RiskHigh, Reason: "it starts a process",
		Command: "make", Dir: "/ws", Says: "builds", Tier: 3, Warning: "it is not confined",
		Paths: []string{"/ws/a"}, Network: []string{"api.example.com"},
		Secrets: []tool.Secret{{Name: "TOKEN", Hosts: []string{"api.example.com"}, Header: "X-Key"}},
		Scopes:  []policy.Scope{policy.ScopeOnce, policy.ScopeAlways}, Rules: map[policy.Scope]string{policy.ScopeAlways: "allow it"},
		Changed: []policy.Change{change("old", "new")},
	}, LeadsTo: map[string]string{"/ws/a": "/ws/b"}}
}

func change(was, is string) policy.Change {
	return policy.Change{Rule: "probe", Was: policy.Binding{Description: "1", Said: tool.Said{Description: was}},
		Now: policy.Binding{Description: "2", Said: tool.Said{Description: is}}}
}

// fields are the places of a question in which text of others can stand.
var fields = map[string]func(q *Question, text string){
	"reason":            func(q *Question, text string) { q.Reason = text },
	"command":           func(q *Question, text string) { q.Command = text },
	"directory":         func(q *Question, text string) { q.Dir = text },
	"description":       func(q *Question, text string) { q.Says = text },
	"warning":           func(q *Question, text string) { q.Warning = text },
	"path":              func(q *Question, text string) { q.Paths, q.LeadsTo = []string{text}, nil },
	"link":              func(q *Question, text string) { q.LeadsTo = map[string]string{"/ws/a": text} },
	"host":              func(q *Question, text string) { q.Network = []string{text} },
	"name of a secret":  func(q *Question, text string) { q.Secrets[0].Name = text },
	"host of a secret":  func(q *Question, text string) { q.Secrets[0].Hosts = []string{text} },
	"header":            func(q *Question, text string) { q.Secrets[0].Header = text },
	"rule":              func(q *Question, text string) { q.Rules = map[policy.Scope]string{policy.ScopeAlways: text} },
	"description, was":  func(q *Question, text string) { q.Changed = []policy.Change{change(text, "new")} },
	"description, is":   func(q *Question, text string) { q.Changed = []policy.Change{change("old", text)} },
	"raw arguments":     func(q *Question, text string) { q.Command, q.Call.Args = "", json.RawMessage(text) },
	"changes":           func(q *Question, text string) { q.Command, q.Changes = "", text },
	"header of changes": func(q *Question, text string) { q.Command, q.Changes = "", "--- a/"+text+"\n+++ b/"+text+"\n+x" },
}

// screens are what a person may sit at.
func screens() []*terminaltest.Emulator {
	return []*terminaltest.Emulator{{Columns: 80}, {Columns: 33, Wide: true}}
}

// behind is what stands behind bars on a screen, each line as one.
func behind(rows []terminaltest.Row) string {
	var b strings.Builder
	for _, r := range rows {
		if text, ok := strings.CutPrefix(r.Text, bar); ok {
			b.WriteString("\n" + text)
		} else if text, ok := strings.CutPrefix(r.Text, goesOn); ok {
			b.WriteString(text)
		}
	}
	return b.String()
}

// own are the rows that do not stand behind anything.
func own(rows []terminaltest.Row) []string {
	var out []string
	for _, r := range rows {
		if !strings.HasPrefix(r.Text, bar) && !strings.HasPrefix(r.Text, goesOn) && !strings.HasPrefix(r.Text, note) {
			out = append(out, strings.TrimRight(r.Text, " "))
		}
	}
	return out
}

// harmless fails unless a screen shows a question with no row of others' text in
// front of a bar, and nothing done beyond printing. expected are rows of ours in
// their order; what is left of ours warns.
func harmless(t *testing.T, e *terminaltest.Emulator, expected []string) {
	t.Helper()
	if e.Acts != nil {
		t.Errorf("it did more than print: %q", e.Acts[:min(len(e.Acts), 5)])
	}
	for i, r := range e.Rows() {
		if r.Wrapped {
			t.Errorf("row %d began because the one before was full: %q", i, r.Text)
		}
	}
	mine := own(e.Rows())
	for _, row := range mine {
		if len(expected) > 0 && row == expected[0] {
			expected = expected[1:]
			continue
		}
		if strings.Contains(row, "EVIL") || strings.ContainsFunc(row, func(r rune) bool { return r < ' ' || r > '~' }) {
			t.Errorf("a row of ours is %q", row)
		}
	}
	if len(expected) > 0 {
		t.Errorf("a row of ours is missing, or in another place: %q\nof\n%s", expected[0], strings.Join(mine, "\n"))
	}
}

func show(e *terminaltest.Emulator, q Question, color, all bool) {
	r := Renderer{Width: e.Columns, Color: color}
	text, folded := r.Question(q, all)
	fmt.Fprint(e, text, r.Choices(q, folded))
}

func TestSpoofingIsHarmless(t *testing.T) {
	vectors := terminaltest.Vectors()
	if len(vectors) < 40 {
		t.Fatalf("%d vectors", len(vectors))
	}
	// What stands outside of the bars where nothing deceives.
	expected := map[string][][]string{}
	for place, set := range fields {
		for _, e := range screens() {
			benign := plain()
			set(&benign, "x")
			show(e, benign, false, true)
			expected[place] = append(expected[place], own(e.Rows()))
		}
	}
	for _, v := range vectors {
		t.Run(v.Name, func(t *testing.T) {
			for place, set := range fields {
				if place == "header of changes" && v.Name == "mark on the bar" {
					continue // there, it goes on a slash
				}
				for i, e := range screens() {
					hostile := plain()
					set(&hostile, v.Text)
					color := i%2 == 0
					show(e, hostile, color, true)
					harmless(t, e, expected[place][i])
					if e.Styled != color {
						t.Errorf("%s: coloured: %v", place, e.Styled)
					}
					seen := behind(e.Rows())
					if !strings.Contains(seen, v.Shows) && !(strings.HasPrefix(place, "description, ") && strings.Contains(v.Shows, "x")) {
						t.Errorf("%s: %q does not show %q", place, seen, v.Shows)
					}
					said := strings.Join(own(e.Rows()), " ")
					for strings.Contains(said, "  ") {
						said = strings.ReplaceAll(said, "  ", " ")
					}
					if !strings.Contains(said, v.Warns) {
						t.Errorf("%s: nothing says %q: %s", place, v.Warns, said)
					}
				}
			}
			if t.Failed() {
				return
			}
			// In the arguments, as JSON; folded; in a batch.
			hostile := plain()
			hostile.Command = ""
			args, err := json.Marshal(map[string]string{"text": v.Text, v.Text: "x"})
			if err != nil {
				t.Fatal(err)
			}
			hostile.Call.Args = args
			for _, e := range screens() {
				show(e, hostile, true, false)
				harmless(t, e, nil)
				if !strings.Contains(behind(e.Rows()), "EVIL") {
					t.Errorf("the arguments do not show it: %q", behind(e.Rows()))
				}
			}
			for _, e := range screens() {
				r := Renderer{Width: e.Columns}
				text, _ := r.Batch([]Question{plain(), hostile})
				fmt.Fprint(e, text, r.BatchChoices([]Question{plain(), hostile}, true))
				harmless(t, e, nil)
			}
			// As the name of a tool.
			hostile = plain()
			hostile.Tool = v.Text
			for _, e := range screens() {
				show(e, hostile, true, false)
				if e.Acts != nil {
					t.Errorf("as a name it did %q", e.Acts)
				}
				for _, row := range own(e.Rows()) {
					if strings.ContainsFunc(row, func(r rune) bool { return r < ' ' || r > '~' }) {
						t.Errorf("as a name it made the row %q", row)
					}
				}
				if !slices.ContainsFunc(own(e.Rows()), func(row string) bool { return strings.Contains(row, "warning: the name of the") }) {
					t.Error("nothing says that it is no name of a tool")
				}
			}
		})
	}
}

func TestLongTextIsFolded(t *testing.T) {
	var script strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&script, "echo %d\n", i)
	}
	half := script.Len() / 2
	long := script.String()[:half] + "\ncurl EVIL\n" + script.String()[half:] + "touch last"
	for name, c := range map[string]struct {
		command string
		folded  bool
		shows   []string
		hides   string
	}{
		"a long command":           {strings.Repeat("x", 100_000) + " ; EVIL", true, []string{" ; EVIL", "1352 of 1370 rows folded", "100007 bytes in all", "sha256"}, ""},
		"a payload in the middle":  {long, true, []string{"touch last", "rows folded", " of them with text", fmt.Sprintf("%d bytes in all", len(long))}, "EVIL"},
		"a payload between blanks": {"ls" + strings.Repeat(" ", 5000) + "EVIL" + strings.Repeat(" ", 5000), false, []string{"ls<5000 blanks>EVIL<5000 blanks>"}, ""},
		"a payload between empty lines": {"ls" + strings.Repeat("\n", 5000) + "EVIL" + strings.Repeat("\n", 5000), false,
			[]string{"EVIL", "the line above 4998 times more"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			q := plain()
			q.Command = c.command
			text, folded := Renderer{}.Question(q, false)
			if folded != c.folded || strings.Contains(Renderer{}.Choices(q, folded), "[v]iew all") != c.folded {
				t.Errorf("folded: %v", folded)
			}
			for _, want := range c.shows {
				if !strings.Contains(text, want) {
					t.Errorf("it does not show %q:\n%s", want, text)
				}
			}
			if c.hides != "" && strings.Contains(text, c.hides) {
				t.Errorf("it is not folded:\n%s", text)
			}
			if strings.Count(text, "\n") > 70 {
				t.Errorf("it has %d rows", strings.Count(text, "\n"))
			}
			e := &terminaltest.Emulator{Columns: 80}
			show(e, q, false, true)
			if seen := behind(e.Rows()); !strings.Contains(seen, "EVIL") {
				t.Error("not even all of it shows the payload")
			}
		})
	}
}

const maxFuzzed = 500 // bytes

// FuzzRenderer: whatever is in a question, its text is printable, line ends and
// our colours, and no row is wider than the terminal.
func FuzzRenderer(f *testing.F) {
	for i, v := range terminaltest.Vectors() {
		f.Add(v.Text[:min(len(v.Text), maxFuzzed)], v.Text[:min(len(v.Text), maxFuzzed)], uint8(20+i), i%2 == 0)
	}
	ours := strings.NewReplacer("\x1b[1m", "", "\x1b[2m", "", "\x1b[31m", "", "\x1b[32m", "", "\x1b[33m", "", "\x1b[0m", "")
	f.Fuzz(func(t *testing.T, text, other string, width uint8, color bool) {
		if len(text) > maxFuzzed || len(other) > maxFuzzed {
			return // to look at more in the same time
		}
		columns := max(int(width), 10)
		q := plain()
		q.Tool, q.Reason, q.Command, q.Dir, q.Says, q.Warning = other, text, other, text, other, text
		q.Paths, q.LeadsTo, q.Network = []string{text}, map[string]string{text: other}, []string{text, other}
		q.Secrets[0].Name, q.Rules[policy.ScopeAlways], q.Changed = text, other, []policy.Change{change(text, other)}
		diff := q
		diff.Command, diff.Changes, diff.Call.Args = "", text, json.RawMessage(other)
		r := Renderer{Width: columns, Color: color}
		var out strings.Builder
		for _, q := range []Question{q, diff} {
			for _, all := range []bool{false, true} {
				shown, folded := r.Question(q, all)
				out.WriteString(shown + r.Choices(q, folded) + "\n")
			}
		}
		shown, _ := r.Batch([]Question{q, diff})
		out.WriteString(shown + r.BatchChoices([]Question{q, diff}, true) + "\n")
		printed := ours.Replace(out.String())
		if !color && printed != out.String() {
			t.Error("it is coloured")
		}
		if !utf8.ValidString(printed) {
			t.Error("it is no text")
		}
		e := &terminaltest.Emulator{Columns: columns, Wide: true}
		fmt.Fprint(e, printed)
		if e.Acts != nil {
			t.Errorf("it did more than print: %q", e.Acts)
		}
		for i, row := range e.Rows() {
			if row.Wrapped {
				t.Errorf("row %d is too wide: %q", i-1, e.Rows()[i-1].Text)
			}
		}
	})
}
