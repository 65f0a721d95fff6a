package prompt

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stockade-dev/stockade/host/diff"
	"github.com/stockade-dev/stockade/host/git"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/tool"
)

// toText is rows as they are written.
func toText(rows []row) string {
	var b strings.Builder
	for _, r := range rows {
		b.WriteString(r.before + r.text + "\n")
	}
	return b.String()
}

func TestALongLineDoesNotLookLikeMore(t *testing.T) {
	wide := func(s string) string { return s + strings.Repeat(".", Room(80)-1-len(s)) + " " }
	text := "+" + wide("// see the manual")[1:] + wide(`-system("rm -rf ~")`) + "removed docs/old.md"
	want := Bar + "+" + wide("// see the manual")[1:] + "\n" + Continued + wide(`-system("rm -rf ~")`) + "\n" + Continued + "removed docs/old.md\n"
	if got := toText(gutter(strings.Split(text, "\n"), 80)); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestWhatDoesNotShowIsCounted(t *testing.T) {
	for in, want := range map[string]string{
		"<tab> <12 blanks> <U+0000> <b>": "     │ <U+003C>tab> <U+003C>12 blanks> <U+003C>U+0000> <b>\n",
		"a   ":                           "     │ a<3 blanks>\n",
		"  a":                            "     │   a\n",
		" ":                              "     │  \n",
		strings.Repeat(" ", 30) + "a":    "     │ " + strings.Repeat(" ", 30) + "a\n",
		strings.Repeat(" ", 60) + "a":    "     │ <60 blanks>a\n",
		"ls" + strings.Repeat(" ", 9):    "     │ ls<9 blanks>\n",
		"a\tb":                           "     │ a<tab>b\n",
		"a\na\na\nb":                     "     │ a\n     │ a\n     │ a\n     │ b\n",
		"a\na\na\na\nb":                  "     │ a\n     ~ the line above 3 times more\n     │ b\n",
	} {
		if got := toText(gutter(strings.Split(in, "\n"), 80)); got != want {
			t.Errorf("%q: got\n%s\nwant\n%s", in, got, want)
		}
	}
	// One thing stays one line.
	if got := toText(gutter([]string{"a\nb"}, 80)); got != "     │ a<newline>b\n" {
		t.Errorf("got %q", got)
	}
}

func version(text string) *tool.Version {
	return &tool.Version{Mode: 0o644, Size: int64(len(text)), Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil }}
}

func set(changes ...tool.Change) *diff.Set {
	repository := &git.Dir{Path: "/ws/.git"} // the target of references
	for _, c := range changes {
		if name, ok := strings.CutPrefix(c.Path, "/ws/.git/"); ok && strings.HasPrefix(name, "refs/") {
			repository.Refs = append(repository.Refs, git.Ref{Name: name, After: strings.Repeat("a", 40)})
		}
	}
	return diff.New(context.Background(), changes, "/ws", nil, repository)
}

func edited(name, before, after string) tool.Change {
	return tool.Change{Path: "/ws/" + name, Kind: tool.Modified, Before: version(before), After: version(after)}
}

func created(name, text string) tool.Change {
	return tool.Change{Path: "/ws/" + name, Kind: tool.Created, After: version(text)}
}

func removed(name, text string) tool.Change {
	return tool.Change{Path: "/ws/" + name, Kind: tool.Removed, Before: version(text)}
}

// aCommit returns a set in which git has made a commit.
func aCommit() *diff.Set {
	told := tool.Change{Path: "/ws/.git/refs/heads/main", Kind: tool.Created, After: version("x")}
	return diff.New(context.Background(), []tool.Change{told}, "/ws", nil, &git.Dir{Path: "/ws/.git", Refs: []git.Ref{{Name: "refs/heads/main", After: "x", NewCommits: 1, Subject: "two"}}})
}

var everyScope = []policy.Scope{policy.ScopeOnce, policy.ScopeTurn, policy.ScopeSession, policy.ScopeProject, policy.ScopeAlways}

func TestAQuestionIsAFewRows(t *testing.T) {
	edit := set(edited("notes.md", "one\ntwo\nthree\nfour\nfive\nsix\nseven\n", "one\ntwo\nthree\n4\nfive\nsix\nseven\n"))
	places := strings.Repeat("before\none\nafter\n"+strings.Repeat("\n", 8), 4)
	for name, c := range map[string]struct {
		q    policy.Question
		want string
	}{
		"an edit": {policy.Question{Tool: "file_edit", Reason: "it changes files", Changes: edit, Scopes: everyScope, Paths: []string{"/ws/notes.md"}}, `
  file_edit  modified notes.md (31 bytes, before 34)                      +1 -1
     │ 3   three
     │ 4 - four
     │ 4 + 4
     │ 5   five
  Keep these changes?  [y]1  [s]2 every file_edit, this session  [n]3  [?]
`},
		"edits before new files, and what changes before what is around it": {policy.Question{Tool: "apply_patch", Reason: "it changes files", Changes: set(created("a", strings.Repeat("x\ny\n", 20)), edited("b", places, strings.ReplaceAll(places, "one", "two")))}, `
  apply_patch wants to keep its changes
     │ modified b  +4 -4
     │  2 - one
     │  2 + two
     │ 13 - one
     │ 13 + two
     │ 24 - one
     │ 24 + two
     │ 35 - one
     │ 35 + two
     │ created a (80 bytes)  +40 -0
     │  1 + x
     │  2 + y
     │  3 + x
     │  4 + y
     │  5 + x
     ~ 30 of 40 rows are folded, all of them with text
     │ 36 + y
     │ 37 + x
     │ 38 + y
     │ 39 + x
     │ 40 + y
  Keep these changes?  [y]1 yes  [n]2 no  [d] all of it  [?]
`},
		"a file that was moved and changed": {policy.Question{Tool: "apply_patch", Reason: "it changes files", Scopes: []policy.Scope{policy.ScopeOnce},
			Changes: set(tool.Change{Path: "/ws/t/b.py", From: "/ws/t/a.py", Kind: tool.Renamed, Before: version("one\n"), After: version("three\n")})}, `
  apply_patch  renamed t/b.py from t/a.py (6 bytes, before 4)             +1 -1
     │ 1 - one
     │ 1 + three
  Keep these changes?  [y]1 yes  [n]2 no  [?]
`},
		"an edit of a file in another encoding": {policy.Question{Tool: "file_edit", Reason: "it changes files", Changes: set(edited("notes.md", "\xff\xfea\x00\n\x00", "\xff\xfe\xe9\x00\n\x00")), Scopes: everyScope}, `
  file_edit  modified notes.md                                            +1 -1
     │     \ it is in UTF-16, little-endian with a byte order mark
     │ 1 - a
     │ 1 + é
  Keep these changes?  [y]1  [s]2 every file_edit, this session  [n]3  [?]
`},
		"a command that has run": {policy.Question{
			Tool: "bash", Reason: "it changes files", Command: "git commit -am two", Dir: "/ws", Tier: 3, Scopes: everyScope, Changes: aCommit(),
		}, `
  bash has run
     │ git commit -am two
  it would change
     │ git: 1 commit on main: "two"
  in /ws, jail tier 3 of 3
  Keep these changes?  [y]1  [s]2 this command, this session  [n]3
    [x] only its output  [?]
`},
		"a command that waits": {policy.Question{
			Tool: "bash", Reason: "it starts a process, and it reaches the network", AskFirstReason: "it reaches the network", Command: "npm publish", Dir: "/ws", Tier: 3,
			Network: []string{"registry.example.org"}, Secrets: []tool.Secret{{Name: "NPM_TOKEN", Hosts: []string{"registry.example.org"}}}, Scopes: []policy.Scope{policy.ScopeOnce},
		}, `
  bash wants to run   (it reaches the network)
     │ npm publish
  in /ws, jail tier 3 of 3, may reach registry.example.org, secret NPM_TOKEN
  for registry.example.org
  Run it?  [y]1 once  [n]2 no  [?]
`},
		"a command that nothing confines": {policy.Question{
			Tool: "bash", Reason: "it starts a process", AskFirstReason: "what it does is not kept apart in tier 0", Command: "make", Dir: "/ws", Warning: policy.UnconfinedWarning, Scopes: []policy.Scope{policy.ScopeOnce},
		}, `
  bash wants to run
  (what it does is not kept apart in tier 0, so it is asked first)
     │ make
  in /ws, jail tier 0 of 3
     ! it is not confined here: it has all your rights, on all your files
  Run it?  [y]1 once  [n]2 no  [?]
`},
		"a tool that reaches a host": {policy.Question{
			Call: tool.Call{Args: json.RawMessage(`{"q":"x"}`)}, Tool: "fetch", Reason: "it reaches the network", Network: []string{"api.example.com"}, Scopes: []policy.Scope{policy.ScopeOnce},
		}, `
  fetch wants to run   (it reaches the network)
     │ {"q":"x"}
  Let it reach api.example.com?  [y]1 once  [n]2 no  [?]
`},
		"a tool that would open a host": {policy.Question{
			Call: tool.Call{Args: json.RawMessage(`{"url":"https://a.example/x"}`)}, Tool: "http_fetch", Reason: "it reaches the network, and no rule opens a.example",
			Network: []string{"b.example", "a.example"}, OpensHost: "a.example", Scopes: []policy.Scope{policy.ScopeOnce, policy.ScopeSession},
		}, `
  http_fetch wants to run
  (it reaches the network, and no rule opens a.example)
     │ GET https://a.example/x
  may reach b.example, a.example
  Let it reach a.example?  [y]1 once
    [s]2 every http_fetch to a.example, this session  [n]3  [?]
`},
		"a request says what is sent where, however long that is": {policy.Question{
			Call: tool.Call{Args: json.RawMessage(`{"body":"` + strings.Repeat(`line\nGET https://other.example\n`, 40) + `","format":"raw","headers":{"x-b":"1\n2","x-a":"3"},"method":"POST","url":"http://127.0.0.1:8978/x"}`)},
			Tool: "http_fetch", Reason: "it reaches the network", Network: []string{"127.0.0.1:8978"}, Scopes: []policy.Scope{policy.ScopeOnce},
		}, `
  http_fetch wants to run   (it reaches the network)
     │ POST http://127.0.0.1:8978/x
     │ x-a: 3
     │ x-b: 1<newline>2
     │ with {"format":"raw"}
  and sends 1.2 KiB
     │ line
     │ GET https://other.example
     │ line
     │ GET https://other.example
     │ line
     │ GET https://other.example
     │ line
     │ GET https://other.example
     ~ 66 of 81 rows are folded, all of them with text
     │ line
     │ GET https://other.example
     │ line
     │ GET https://other.example
     │ line
     │ GET https://other.example
     │ 
  Let it reach 127.0.0.1:8978?  [y]1 once  [n]2 no  [d] all of it  [?]
`},
		"a search says for what": {policy.Question{
			Call: tool.Call{Args: json.RawMessage(`{"num_results":3,"query":"nobody <b>\n[y]1"}`)}, Tool: "web_search", Reason: "it reaches the network", Network: []string{"api.example.com"}, Scopes: []policy.Scope{policy.ScopeOnce},
		}, `
  web_search wants to run   (it reaches the network)
     │ nobody <b><newline>[y]1
     │ with {"num_results":3}
     ! it holds text that looks like this program's own; text behind a bar is
     : never ours
  Let it reach api.example.com?  [y]1 once  [n]2 no  [?]
`},
		"what somebody else asks about each time": {policy.Question{
			Tool: "file_edit", Reason: `the project rule "file_edit" says ask: [y]1`, AskingSource: policy.SourceProject, Changes: edit, Scopes: []policy.Scope{policy.ScopeOnce},
		}, `
  file_edit  modified notes.md (31 bytes, before 34)                      +1 -1
  (a rule of the project asks each time)
     │ 3   three
     │ 4 - four
     │ 4 + 4
     │ 5   five
  Keep these changes?  [y]1 yes  [n]2 no  [?]
`},
		"a file that is no text": {policy.Question{Tool: "file_write", Reason: "it changes files", Changes: set(created("p.png", "\x00")), Scopes: []policy.Scope{policy.ScopeOnce}}, `
  file_write  created p.png (1 byte)
     ! p.png: it is no text (1 byte)
  Keep these changes?  [y]1 yes  [n]2 no  [?]
`},
		"a large text": {policy.Question{Tool: "file_write", Reason: "it changes files", Changes: set(created("dst", strings.Repeat("a line\n", 30_000))), Scopes: []policy.Scope{policy.ScopeOnce}}, `
  file_write  created dst (210000 bytes)
     ~ the changes in 1 of 1 files are folded
  Keep these changes?  [y]1 yes  [n]2 no  [d] all of it  [?]
`},
		"several files, and one that is no text": {policy.Question{
			Tool: "bash", Reason: "it changes files", Command: "x", Dir: "/ws", Tier: 3, Scopes: []policy.Scope{policy.ScopeOnce},
			Changes: set(created("b", "--- a/x\n"), edited("p.png", "\x00", "\x00\x01"), removed("a b", "1\n")),
		}, `
  bash has run
     │ x
  it would change
     │ removed "a b" (2 bytes)  +0 -1
     │ 1 - 1
     ! p.png: it is no text (2 bytes)
     │ modified p.png (2 bytes, before 1)
     │ created b (8 bytes)  +1 -0
     │ 1 + --- a/x
  in /ws, jail tier 3 of 3
  Keep these changes?  [y]1 yes  [n]2 no  [x] only its output  [?]
`},
	} {
		t.Run(name, func(t *testing.T) {
			p := ForCall(Question{Question: c.q})
			if got := "\n" + lines(append(p.Rows(View{}), p.Keys(View{})...)); got != c.want {
				t.Errorf("got %s\nwant %s", got, c.want)
			}
		})
	}
}

// TestFoldedRowsAreCounted: however narrow it is, the note names the rows that are missing.
func TestFoldedRowsAreCounted(t *testing.T) {
	for width := 1; width <= 80; width++ {
		b := rowBuilder{v: View{Width: width}, first: 3}
		for range 30 {
			b.out = append(b.out, "row")
		}
		rows, folded := b.fit(10)
		left := strings.Count(strings.Join(rows, " "), "row ") // the last row has none behind it
		if note := lines(b.v.rows(notes(width, "%d rows are folded", 30-left-1))); !folded || width > 20 && (len(rows) > 10 || !strings.Contains(lines(rows), note)) {
			t.Errorf("in %d columns %d rows stay:\n%s", width, left+1, lines(rows))
		}
	}
}

// TestWhatKeysMean: a wider answer counts only after its rule was shown, and keys under a
// resting hand are never a yes.
func TestWhatKeysMean(t *testing.T) {
	q := Question{Question: policy.Question{
		Call: tool.Call{Args: json.RawMessage(`{"path":"a"}`)}, Tool: "file_edit", Changes: set(edited("a", "a\n", "b\n")),
		Scopes: everyScope, Rules: map[policy.Scope]string{policy.ScopeTurn: "RULE", policy.ScopeSession: "RULE", policy.ScopeProject: "RULE", policy.ScopeAlways: "RULE"},
	}}
	for typed, want := range map[string]policy.Answer{
		"y": {Allow: true, Scope: policy.ScopeOnce}, "1": {Allow: true, Scope: policy.ScopeOnce}, " YES ": {Allow: true, Scope: policy.ScopeOnce},
		"s": {Allow: true, Scope: policy.ScopeSession}, "2": {Allow: true, Scope: policy.ScopeSession},
		"n": {}, "3": {}, "no": {},
		"? t": {Allow: true, Scope: policy.ScopeTurn}, "? p": {Allow: true, Scope: policy.ScopeProject}, "? a": {Allow: true, Scope: policy.ScopeAlways},
		"d j ? y": {Allow: true, Scope: policy.ScopeOnce},
	} {
		p := ForCall(q)
		words := []string{typed}
		if strings.Contains(strings.TrimSpace(typed), " ") {
			words = strings.Fields(typed)
		}
		for i, word := range words {
			c, ok := p.Answer(View{}, word)
			shown := p.Expand(View{}, c)
			switch last := i == len(words)-1; {
			case !ok:
				t.Errorf("%q: %q is no answer", typed, word)
			case last != (shown == nil):
				t.Errorf("%q: %q shows %q", typed, word, shown)
			case !last && word == "?" && strings.Count(lines(shown), "     │ RULE\n") != 4:
				t.Errorf("%q: it does not show what each answer allows:\n%s", typed, lines(shown))
			case last:
				want.By = answeredBy
				if got := c.Policy(); got != want {
					t.Errorf("%q: %+v, want %+v", typed, got, want)
				}
			}
		}
	}
	p := ForCall(q)
	for _, typed := range []string{"", " ", "\n", "0", "4", "yy", "y n", "ja", "always", "a", "t", "p", "b", "k", "[y]"} {
		if c, ok := p.Answer(View{}, typed); ok {
			t.Errorf("%q is %+v", typed, c)
		}
	}
	q.Scopes = []policy.Scope{policy.ScopeOnce}
	p = ForCall(q)
	if c, ok := p.Answer(View{}, "2"); !ok || c.Policy().Allow {
		t.Errorf("2 is %+v, %v", c, ok)
	}
	p.Expand(View{}, Choice{Letter: keyDetails, shows: true})
	for _, typed := range []string{"s", "t", "p", "a", "3"} {
		if c, ok := p.Answer(View{}, typed); ok {
			t.Errorf("%q, which is not offered, is %+v", typed, c)
		}
	}
	// A question of another kind may have a key that shows something otherwise.
	p = New("Go on?", []Choice{{Letter: 'd', Label: "a letter of its own"}, {Letter: 'n', Label: "no"}}, func() string { return "" }, func() string { return "" })
	if c, ok := p.Answer(View{}, "d"); !ok || p.Expand(View{}, c) != nil {
		t.Errorf("d is %+v", c)
	}
	// A key is not taken for another where there are other choices.
	other := plain()
	other.BindingChanges = nil
	p = forCalls([]Question{q, other})
	if c, ok := p.Answer(View{Height: 60}, "1"); !ok || !c.Policy().Allow {
		t.Errorf("1 is %+v", c)
	}
	for _, typed := range []string{"y", "1", "2", "yes"} {
		if c, ok := p.Answer(View{Height: 12}, typed); ok && c.Policy().Allow {
			t.Errorf("on a screen that does not show all, %q is a yes", typed)
		}
	}
	// All changes below the directory, if each question offers that, on the first row and
	// without a digit.
	q.Scopes = append(q.Scopes, policy.ScopeFree)
	if _, ok := forCalls([]Question{q, other}).Answer(View{Height: 60}, "w"); ok {
		t.Error("w answers a question that does not offer it")
	}
	other.Scopes = q.Scopes
	p = forCalls([]Question{q, other})
	if keys := p.Keys(View{Width: 200, Height: 60}); !strings.Contains(keys[0], "[e]2 one by one  [w] all changes below ./, this session  [n]3 no to all") {
		t.Errorf("the keys are %q", keys)
	}
	if c, ok := p.Answer(View{Height: 60}, "w"); !ok || c.Policy().Scope != policy.ScopeFree || p.Reply(c) != "  kept; allowed for this session: all changes below this directory" {
		t.Errorf("w is %+v, %q", c, p.Reply(c))
	}
	if c, ok := p.Answer(View{Height: 12}, "w"); ok {
		t.Errorf("on a screen that does not show all, w is %+v", c)
	}
}

func TestLinesOfADifference(t *testing.T) {
	for name, c := range map[string]struct{ before, after, want string }{
		"lines that look like the beginning of another": {"-- a/x\n@@ -1 +1 @@\n", "++ b/x\n@@ -1 +1 @@\n", "1--- a/x\n1+++ b/x\n2 @@ -1 +1 @@\n"},
		"what is around is left out":                    {"a\nb\nc\nd\ne\n", "a\nb\nC\nd\ne\n", "2 b\n3-c\n3+C\n4 d\n"},
		"two places":                                    {"a\n1\n2\n3\n4\n5\n6\n7\nb\n", "A\n1\n2\n3\n4\n5\n6\n7\nB\n", "1-a\n1+A\n2 1\n8 7\n9-b\n9+B\n"},
		"the end of the file":                           {"a", "a\n", "1-a\n0\\\\ No newline at end of file\n1+a\n"},
	} {
		got := ""
		for _, l := range linesOf(set(edited("a", c.before, c.after)).Text(0)) {
			if !l.far {
				got += fmt.Sprintf("%d%c%s\n", l.Number, l.Op, l.Text)
			}
		}
		if got != c.want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, c.want)
		}
	}
}

func TestNamesOfFilesAreFoldedLast(t *testing.T) {
	var changes []tool.Change
	for i := range 12 {
		changes = append(changes, edited(fmt.Sprintf("d%d/f", i), "", strings.Repeat("x\ny\n", 5)))
	}
	p := ForCall(Question{Question: policy.Question{Tool: "bash", Command: "x", Dir: "/ws", Scopes: []policy.Scope{policy.ScopeOnce}, Changes: set(changes...)}})
	shown := lines(append(p.Rows(View{}), p.Keys(View{})...))
	for i := range 12 {
		if !strings.Contains(shown, fmt.Sprintf("     │ modified d%d/f (20 bytes, before 0)  +10 -0\n", i)) {
			t.Errorf("f%d is not named", i)
		}
	}
	if !strings.Contains(shown, "the changes in 12 of 12 files are folded") || !strings.Contains(shown, "[d] all of it") {
		t.Errorf("it does not say that something is folded:\n%s", shown)
	}
}

func TestTabsAreBlanksWhereNothingElseIs(t *testing.T) {
	for _, c := range []struct{ before, after, want string }{
		{"\tx\n", "\tx\n\t\ty\tz\n", "     │ 1       x\n     │ 2 +         y<tab>z\n"},
		{"\tx\n", "    x\n", "     │ 1 - <tab>x\n     │ 1 +     x\n"},
	} {
		text := set(edited("a", c.before, c.after)).Text(0)
		if got := toText(rowsOfLines(linesOf(text), digits(text), 80, true)); got != c.want {
			t.Errorf("got\n%s\nwant\n%s", got, c.want)
		}
	}
}

func TestColours(t *testing.T) {
	p := ForCall(Question{Question: policy.Question{Tool: "file_edit", Changes: set(edited("a", "a\n", strings.Repeat("b", 100)+"\n"))}})
	shown := lines(append(p.Rows(View{Color: true}), p.Keys(View{Color: true})...))
	for _, want := range []string{
		"     │ \x1b[31m1 - a\x1b[0m\n", "     │ \x1b[32m1 + bbb", "     : \x1b[32mbbb", "\x1b[1m  Keep these changes?",
	} {
		if !strings.Contains(shown, want) {
			t.Errorf("it does not show %q but %q", want, shown)
		}
	}
}

func TestOrdinaryTextIsNotSuspect(t *testing.T) {
	for _, text := range []string{
		"go test ./... && echo done", "Grüße aus Köln", "кот и пёс", "\u03b7 \u03b3\u03ac\u03c4\u03b1", "世界.txt", "Vie\u0323\u0302t", "\u26a0\ufe0f careful",
		"if a < b | c > d: return", "| a | table |", "a – б",
	} {
		var s spoofCheck
		if s.check(text); s.found != nil {
			t.Errorf("%q: %q", text, s.found)
		}
	}
}
