package prompt

import (
	"encoding/json"
	"fmt"
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
		Command: "make", Dir: "/ws", CallerDescription: "builds", Tier: 3, Warning: "it is not confined",
		Paths: []string{"/ws/a"}, Network: []string{"api.example.com"},
		Secrets: []tool.Secret{{Name: "TOKEN", Hosts: []string{"api.example.com"}, Header: "X-Key"}},
		Scopes:  []policy.Scope{policy.ScopeOnce, policy.ScopeAlways}, Rules: map[policy.Scope]string{policy.ScopeAlways: "allow it"},
		BindingChanges: []policy.BindingChange{change("old", "new")},
	}, LeadsTo: map[string]string{"/ws/a": "/ws/b"}}
}

func change(was, is string) policy.BindingChange {
	return policy.BindingChange{Rule: "probe", Was: policy.Binding{Description: "1", Texts: tool.SpecTexts{Description: was}},
		Now: policy.Binding{Description: "2", Texts: tool.SpecTexts{Description: is}}}
}

// fields are the places of a question in which text of others can stand.
var fields = map[string]func(q *Question, text string){
	"reason":       func(q *Question, text string) { q.Reason = text },
	"why it waits": func(q *Question, text string) { q.AskFirstReason = text },
	"module":       func(q *Question, text string) { q.ModuleText = text },
	"output":       func(q *Question, text string) { q.Output = text },
	"result alone": func(q *Question, text string) { q.Changes, q.Output = set(), text },
	"several files": func(q *Question, text string) {
		q.Changes = set(edited("a", text+"\n", "x\n"), edited("b", "x\n", text+"\n"))
	},
	"command":          func(q *Question, text string) { q.Command = text },
	"directory":        func(q *Question, text string) { q.Dir = text },
	"description":      func(q *Question, text string) { q.CallerDescription = text },
	"warning":          func(q *Question, text string) { q.Warning = text },
	"path":             func(q *Question, text string) { q.Paths, q.LeadsTo = []string{text}, nil },
	"link":             func(q *Question, text string) { q.LeadsTo = map[string]string{"/ws/a": text} },
	"host":             func(q *Question, text string) { q.Network = []string{text} },
	"name of a secret": func(q *Question, text string) { q.Secrets[0].Name = text },
	"host of a secret": func(q *Question, text string) { q.Secrets[0].Hosts = []string{text} },
	"header":           func(q *Question, text string) { q.Secrets[0].Header = text },
	"rule":             func(q *Question, text string) { q.Rules = map[policy.Scope]string{policy.ScopeAlways: text} },
	"description, was": func(q *Question, text string) { q.BindingChanges = []policy.BindingChange{change(text, "new")} },
	"description, is":  func(q *Question, text string) { q.BindingChanges = []policy.BindingChange{change("old", text)} },
	"raw arguments":    func(q *Question, text string) { q.Command, q.Call.Args = "", json.RawMessage(text) },
	"changes": func(q *Question, text string) {
		q.Command, q.Changes = "", set(created("a", text), edited("b", "", text))
	},
	"name of a change": func(q *Question, text string) {
		q.Command, q.Changes = "", set(created(text, "x"), edited(text, "x", "y"))
	},
}

// screens returns terminals of different kinds.
func screens() []*terminaltest.Emulator {
	return []*terminaltest.Emulator{{Columns: 80}, {Columns: 33, Wide: true}}
}

// seenBehind returns the texts behind bars on a screen, each as one line.
func seenBehind(rows []terminaltest.Row) string {
	var b strings.Builder
	for _, r := range rows {
		if text, ok := strings.CutPrefix(r.Text, Bar); ok {
			b.WriteString("\n" + text)
		} else if text, ok := strings.CutPrefix(r.Text, alarm); ok {
			b.WriteString("\n" + text)
		} else if text, ok := strings.CutPrefix(r.Text, Continued); ok {
			b.WriteString(text)
		}
	}
	return b.String()
}

// warned returns the warnings on a screen, each as one line.
func warned(rows []terminaltest.Row) string {
	var b strings.Builder
	in := false
	for _, r := range rows {
		text, begins := strings.CutPrefix(r.Text, alarm)
		rest, goes := strings.CutPrefix(r.Text, Continued)
		if in = begins || in && goes; begins {
			b.WriteString("\n" + strings.TrimRight(text, " "))
		} else if in {
			b.WriteString(" " + strings.TrimRight(rest, " "))
		}
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

// own are the rows that do not stand behind anything.
func own(rows []terminaltest.Row) []string {
	var out []string
	for _, r := range rows {
		if !strings.HasPrefix(r.Text, Bar) && !strings.HasPrefix(r.Text, Continued) && !strings.HasPrefix(r.Text, Note) && !strings.HasPrefix(r.Text, alarm) &&
			!strings.HasPrefix(r.Text, "  its text ") { // which is as long as it is
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

// show puts all that there is to a question on a screen: the rows, the details, the
// whole, the arguments.
func show(e *terminaltest.Emulator, q Question, color bool) {
	p, v := ForCall(q), View{Width: e.Columns, Height: 5000, Color: color}
	print := func(rows []string) { fmt.Fprint(e, lines(rows)) }
	print(p.Rows(v))
	print(p.keys(v, p.choices, true)) // whether or not something is folded
	for _, key := range []string{"?", "d", "j"} {
		if c, ok := p.Answer(v, key); ok {
			print(p.Expand(v, c))
		}
	}
}

func TestSpoofingIsHarmless(t *testing.T) {
	vectors := terminaltest.Vectors()
	if len(vectors) < 40 {
		t.Fatalf("%d vectors", len(vectors))
	}
	// The rows outside of the bars for a harmless text, without rows that are odd by
	// themselves.
	expected := map[string][][]string{}
	for place, set := range fields {
		for _, e := range screens() {
			benign := plain()
			set(&benign, "<x>")
			show(e, benign, false)
			expected[place] = append(expected[place], own(e.Rows()))
		}
	}
	for _, v := range vectors {
		t.Run(v.Name, func(t *testing.T) {
			for place, set := range fields {
				for i, e := range screens() {
					hostile := plain()
					set(&hostile, v.Text)
					color := i%2 == 0
					show(e, hostile, color)
					harmless(t, e, expected[place][i])
					if e.Styled != color {
						t.Errorf("%s: coloured: %v", place, e.Styled)
					}
					asItIs := utf8.ValidString(v.Text) && !strings.Contains(v.Text, "\x00") && !strings.Contains(v.Text, "\r\n")
					if hostile.Changes != nil && !hostile.Changes.Empty() && (place == "name of a change" || !asItIs) {
						continue // a name is quoted, and it is said how a file is encoded
					}
					seen := seenBehind(e.Rows())
					if !strings.Contains(seen, v.Shows) && !(strings.HasPrefix(place, "description, ") && strings.Contains(v.Shows, "x")) {
						t.Errorf("%s: %q does not show %q", place, seen, v.Shows)
					}
					if !strings.Contains(warned(e.Rows()), v.Warns) && !(place == "several files" && v.Name == "mark on the bar") { // there, it is on a sign
						t.Errorf("%s: nothing says %q: %s", place, v.Warns, warned(e.Rows()))
					}
				}
			}
			if t.Failed() {
				return
			}
			// In the arguments, as JSON; in a batch.
			hostile := plain()
			hostile.Command = ""
			args, err := json.Marshal(map[string]string{"text": v.Text, v.Text: "x"})
			if err != nil {
				t.Fatal(err)
			}
			hostile.Call.Args = args
			for _, e := range screens() {
				show(e, hostile, true)
				harmless(t, e, nil)
				if !strings.Contains(seenBehind(e.Rows()), "EVIL") {
					t.Errorf("the arguments do not show it: %q", seenBehind(e.Rows()))
				}
			}
			for _, e := range screens() {
				p, v := forCalls([]Question{plain(), hostile}), View{Width: e.Columns}
				fmt.Fprint(e, lines(p.Rows(v)), lines(p.Keys(v)))
				harmless(t, e, nil)
			}
			// As the name of a tool.
			hostile = plain()
			hostile.Tool = v.Text
			for _, e := range screens() {
				show(e, hostile, true)
				if e.Acts != nil {
					t.Errorf("as a name it did %q", e.Acts)
				}
				for _, row := range own(e.Rows()) {
					if strings.ContainsFunc(row, func(r rune) bool { return r < ' ' || r > '~' }) {
						t.Errorf("as a name it made the row %q", row)
					}
				}
				if !strings.Contains(warned(e.Rows()), "the name of the") {
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
		"a long command":           {strings.Repeat("x", 100_000) + " ; EVIL", true, []string{" ; EVIL", " of 1409 rows are folded"}, ""},
		"a payload in the middle":  {long, true, []string{"touch last", " rows are folded, ", " of them with text"}, "EVIL"},
		"a payload between blanks": {"ls" + strings.Repeat(" ", 5000) + "EVIL" + strings.Repeat(" ", 5000), false, []string{"ls<5000 blanks>EVIL<5000 blanks>"}, ""},
		"a payload between empty lines": {"ls" + strings.Repeat("\n", 5000) + "EVIL" + strings.Repeat("\n", 5000), false,
			[]string{"EVIL", "the line above 4998 times more"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			q := plain()
			q.Command = c.command
			p, v := ForCall(q), View{}
			text := lines(p.Rows(v))
			if offered := strings.Contains(lines(p.Keys(v)), "[d] all of it"); offered != c.folded {
				t.Errorf("all of it is offered: %v", offered)
			}
			for _, want := range c.shows {
				if !strings.Contains(text, want) {
					t.Errorf("it does not show %q:\n%s", want, text)
				}
			}
			if c.hides != "" && strings.Contains(text, c.hides) {
				t.Errorf("it is not folded:\n%s", text)
			}
			if !strings.Contains(lines(p.Expand(v, Choice{Letter: keyFullText, shows: true})), "EVIL") {
				t.Error("not even all of it shows the payload")
			}
		})
	}
}

const maxFuzzed = 500 // bytes

// FuzzPrompt: whatever is in a question, its text is printable, line ends and
// our colours, no row is wider than the terminal, and it is no higher.
func FuzzPrompt(f *testing.F) {
	for i, v := range terminaltest.Vectors() {
		f.Add(v.Text[:min(len(v.Text), maxFuzzed)], v.Text[:min(len(v.Text), maxFuzzed)], uint8(20+i), uint8(i), i%2 == 0)
	}
	ours := strings.NewReplacer("\x1b[1m", "", "\x1b[2m", "", "\x1b[31m", "", "\x1b[32m", "", "\x1b[33m", "", "\x1b[0m", "")
	f.Fuzz(func(t *testing.T, text, other string, width, height uint8, color bool) {
		if len(text) > maxFuzzed || len(other) > maxFuzzed {
			return // to look at more in the same time
		}
		v := View{Width: max(int(width), 10), Height: max(int(height), 12), Color: color}
		q := plain()
		q.Tool, q.Reason, q.Command, q.Dir, q.CallerDescription, q.Warning, q.ModuleText, q.AskFirstReason, q.Output = other, text, other, text, other, text, other, text, other
		q.Paths, q.LeadsTo, q.Network = []string{text}, map[string]string{text: other}, []string{text, other}
		q.Secrets[0].Name, q.Rules[policy.ScopeAlways], q.BindingChanges = text, other, []policy.BindingChange{change(text, other)}
		diff := q
		diff.Command, diff.Changes, diff.Call.Args = "", set(created(other, text), edited("b", text, other), removed(text, other)), json.RawMessage(other)
		var out strings.Builder
		for _, p := range []*Prompt{ForCall(q), ForCall(diff), forCalls([]Question{q, diff})} {
			rows, keys := p.Rows(v), p.Keys(v)
			if n := len(rows) + len(keys); n > v.Height && v.Width >= 40 {
				t.Errorf("it takes %d rows of %d:\n%s", n, v.Height, lines(append(rows, keys...)))
			}
			out.WriteString(lines(rows) + lines(keys))
			for _, key := range []rune{keyDetails, keyFullText, keyArguments} {
				if c, ok := p.Answer(v, string(key)); ok {
					out.WriteString(lines(p.Expand(v, c)))
				}
			}
		}
		printed := ours.Replace(out.String())
		if !color && printed != out.String() {
			t.Error("it is coloured")
		}
		if !utf8.ValidString(printed) {
			t.Error("it is no text")
		}
		e := &terminaltest.Emulator{Columns: v.Width, Wide: true}
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
