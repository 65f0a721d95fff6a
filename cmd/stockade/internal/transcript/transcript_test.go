package transcript

import (
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/terminal/terminaltest"
	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/redact"
	"github.com/stockade-dev/stockade/host/session"
	"github.com/stockade-dev/stockade/host/tool"
)

func event(typ session.Type, call string, body any) session.Event {
	return session.Event{Header: session.Header{Session: "s", Type: typ, Call: call, Time: time.Unix(0, 0)}, Body: tool.Marshal(body)}
}

// at is an event so many milliseconds after the first.
func at(ms int, e session.Event) session.Event {
	e.Time = e.Time.Add(time.Duration(ms) * time.Millisecond)
	return e
}

func proposed(id, name, args string) session.Event {
	return event(session.TypeToolCall, id, llm.CallMessage(llm.NewCall(id, name, args)))
}

// returned is the event of a result that took 3 ms.
func returned(id string, r tool.Result) session.Event {
	r.Usage.Duration = 3 * time.Millisecond
	return event(session.TypeToolResult, id, llm.ResultMessage(id, "probe", r))
}

func gave(id, output string) session.Event {
	return returned(id, tool.Result{Output: tool.Text(output)})
}

func ended(calls int) session.Event {
	return event(session.TypeTurnEnded, "", session.TurnEnded{Reason: session.EndAnswered, Calls: calls, DurationMS: 3400})
}

func options(columns int) Options {
	return Options{Columns: func() int { return columns }, HintText: tool.Hint.String, ShowCommand: "/show"}
}

// shownBy returns the rows of events, with answers in braces.
func shownBy(o Options, events ...session.Event) string {
	t := New(o)
	var b strings.Builder
	for _, e := range events {
		write(&b, t.Show(e))
	}
	return b.String()
}

func write(b *strings.Builder, parts []Part) {
	for _, p := range parts {
		switch {
		case p.Restart:
			b.WriteString("(void)\n")
		case p.Answer != "":
			b.WriteString("{" + p.Answer + "}\n")
		default:
			b.WriteString(strings.Join(p.Rows, "\n") + "\n")
		}
	}
}

const diffText = "--- a\n+++ b\n@@ -3,3 +3,3 @@\n Monday\n-TODO: rope\n+DONE: rope\n Tuesday\n@@ -120 +120 @@\n-old\n\\ No newline at end of file\n+new\n"

// TestACallIsARow, with what came of it at the right, and below it what matters.
func TestACallIsARow(t *testing.T) {
	yes, no := true, false
	edited := session.Changes{Files: []session.Change{{Path: "/w/notes.md", Kind: tool.Modified, Diff: diffText, Added: 2, Removed: 2}}}
	edit := proposed("a", "file_edit", `{"path":"notes.md","old_string":"TODO","new_string":"DONE","replace_all":true}`)
	bash := proposed("a", "bash", `{"command":"go test ./..."}`)
	runs := event(session.TypeCallIntended, "a", session.Intent{Exec: true, Rehearsal: true})
	answered := func(yes *bool, scope policy.Scope) session.Event {
		return event(session.TypeDecision, "a", session.Decision{Answer: yes, AnsweredBy: "terminal", Scope: scope})
	}
	exit := func(code int, output string) session.Event {
		return returned("a", tool.Result{Output: tool.Marshal(map[string]any{"output": output, "exit_code": code})})
	}
	started := event(session.TypeTurnStarted, "", session.TurnStarted{Prompt: "x", Workspace: "/w"})
	denied := tool.Failed(tool.CodeDenied, tool.PermissionDenied, "Git runs this file by itself.")
	unknown := tool.Failed(tool.CodeUnknownTool, tool.NotFound, `there is no tool "fetch"`)
	unknown.Err.Hint = tool.Advise("did you mean %q?", "http_fetch")
	gaveAll := func(call, result string) session.Event {
		return returned(call, tool.Result{Output: json.RawMessage(result)})
	}
	manyLines := strings.TrimSuffix(strings.Repeat("line\n", 9)+"a\nb\nc\n", "\n")
	for name, c := range map[string]struct {
		events []session.Event
		want   string
	}{
		"a read says only how long it is": {
			[]session.Event{proposed("a", "file_read", `{"path":"notes.md"}`), gave("a", "1: a\n2: b")}, `
  1  file_read notes.md                                       2 lines     3 ms
`},
		"the note below a page is no line of it": {
			[]session.Event{proposed("a", "file_read", `{"path":"big.txt","offset":5}`), gaveAll("a", `{"output":"5: a\n6: b\n[1999994 more lines follow]","lines":2000000,"next_offset":7}`)}, `
  1  file_read big.txt, from line 5         lines 5 to 6 of 2,000,000     3 ms
`},
		"nor is it of a whole file": {
			[]session.Event{proposed("a", "file_read", `{"path":"a.txt"}`), gaveAll("a", `{"output":"1: a\n2: b\n[the file is utf-16le]","lines":2}`)}, `
  1  file_read a.txt                                          2 lines     3 ms
`},
		"what is read as it is has lines that begin with anything": {
			[]session.Event{proposed("a", "file_read", `{"path":"a.txt","raw":true,"limit":1,"offset":2}`), gaveAll("a", `{"output":"[b]\n","lines":3,"next_offset":3}`)}, `
  1  file_read a.txt, from line 2, raw                    line 2 of 3     3 ms
`},
		"whichever tool reads a file, it is not shown": {
			[]session.Event{proposed("a", "filesystem", `{"operation":"read","path":"a.txt"}`), gave("a", "a\nb\n")}, `
  1  filesystem read a.txt                                    2 lines     3 ms
`},
		"a request shows its status, and where it came to": {
			[]session.Event{proposed("a", "http_fetch", `{"url":"a.example"}`), gaveAll("a", `{"output":"x","status":500,"url":"https://b.example/","note":"https:// was put before the URL; the server redirected to https://b.example/"}`)}, `
  1  http_fetch a.example                                         500     3 ms
     redirected to https://b.example/
     │ x
`},
		"what refuses a call after a yes is said, and not that the person did": {
			[]session.Event{proposed("a", "http_fetch", `{"url":"a.example"}`), answered(&yes, ""), returned("a", tool.Failed(tool.CodeDenied, tool.PermissionDenied, "a.example redirects to b.example: the administrator denies it"))}, `
  1  http_fetch a.example                                          not allowed
     a.example redirects to b.example: the administrator denies it
`},
		"a yes that does not count is no answer of the person": {
			[]session.Event{proposed("a", "http_fetch", `{"url":"a.example"}`), event(session.TypeDecision, "a", session.Decision{Answer: &no, AnsweredBy: "no yes that counts: the question was not answered within 10m0s"}), returned("a", denied)}, `
  1  http_fetch a.example                                          not allowed
     not run: no yes that counts: the question was not answered within 10m0s
`},
		"a call that is no command was stopped": {
			[]session.Event{proposed("a", "http_fetch", `{"url":"a.example"}`), returned("a", tool.Failed(tool.CodeCancelled, tool.InternalError, "http_fetch was cancelled after 250003 units of fuel"))}, `
  1  http_fetch a.example                              you stopped it     3 ms
`},
		"an unknown tool is said once, with what to call instead": {
			[]session.Event{proposed("a", "fetch", `{}`), returned("a", unknown)}, `
  1  fetch                                               no such tool     3 ms
     did you mean "http_fetch"?
`},
		"an image is what it is, and no data": {
			[]session.Event{proposed("a", "file_read", `{"path":"a.png"}`), returned("a", tool.Result{Output: tool.Text("image/png, 640x480, 31.2 KB"),
				Images: []tool.Image{{Mime: "image/png", Data: make([]byte, 31<<10), Width: 640, Height: 480}}})}, `
  1  file_read a.png                                          1 image     3 ms
     image/png 640x480, 31.0 KiB
`},
		"of many images three are told": {
			[]session.Event{proposed("a", "probe", `{}`), returned("a", tool.Result{Output: tool.Text("four"),
				Images: slices.Repeat([]tool.Image{{Mime: "image/\x1b[31mgif", Data: []byte("GIF"), Width: 1, Height: 2}}, 5)})}, `
  1  probe                                                   5 images     3 ms
     image/<U+001B>[31mgif 1x2, 3 B
     image/<U+001B>[31mgif 1x2, 3 B
     image/<U+001B>[31mgif 1x2, 3 B
     … 2 more images
     │ four
`},
		"a search shows what it found": {
			[]session.Event{proposed("a", "grep", `{"pattern":"TODO","file_filter":"*.md","path":"doc"}`), gave("a", "notes.md:4: TODO")}, `
  1  grep "TODO" in *.md in doc                                1 line     3 ms
     │ notes.md:4: TODO
`},
		"a command that was stopped shows what it has written": {
			[]session.Event{bash, runs, event(session.TypeProgress, "a", tool.Progress{Output: "ok a\nok b\n"}), answered(nil, ""),
				returned("a", tool.Failed(tool.CodeCancelled, tool.InternalError, "bash was cancelled after 191577 units of fuel"))}, `
  1  bash  go test ./...                               you stopped it     3 ms
     │ ok a
     │ ok b
`},
		"that a question was about what it had changed is said": {
			[]session.Event{bash, runs, answered(&no, ""), returned("a", tool.Failed(tool.CodeCancelled, tool.InternalError, "bash was cancelled before its changes were made"))}, `
  1  bash  go test ./...                                      stopped     3 ms
     bash was cancelled before its changes were made
`},
		"a question that nobody waits for was answered by nobody": {
			[]session.Event{edit, answered(&no, ""), returned("a", tool.Failed(tool.CodeCancelled, tool.InternalError, "file_edit was cancelled before its changes were made"))}, `
  1  file_edit notes.md  "TODO" → "DONE", all                 stopped     3 ms
     file_edit was cancelled before its changes were made
`},
		"nobody who could be asked is named as such": {
			[]session.Event{edit, event(session.TypeDecision, "a", session.Decision{Answer: &no, AnsweredBy: "no terminal to ask on"}), returned("a", denied)}, `
  1  file_edit notes.md  "TODO" → "DONE", all                      not allowed
     not run: no terminal to ask on
`},
		"an empty result says so": {
			[]session.Event{proposed("a", "glob", `{"pattern":"*.c","path":"."}`), gave("a", "\n")}, `
  1  glob "*.c"                                                 empty     3 ms
`},
		"a task is a row, with its mark and how far the list is": {
			[]session.Event{proposed("a", "add_task", `{"content":"Test it"}`), returned("a", tool.Result{Output: json.RawMessage(`{"output":"[ ] task_3 Test \u001b[1mit\n    twice\n1 of 3 tasks completed","task_id":"task_3","completed":1,"total":3}`), Usage: tool.Usage{Duration: 3 * time.Millisecond}})}, `
  1  add_task [ ] task_3 Test <U+001B>[1mit               1 of 3 done     3 ms
`},
		"one that is not there is a failure": {
			[]session.Event{proposed("a", "update_task", `{"task_id":"task_9","status":"completed"}`), returned("a", tool.Failed("NOT_FOUND", tool.NotFound, "there is no task \"task_9\""))}, `
  1  update_task task_id=task_9 status=completed               failed     3 ms
     │ there is no task "task_9"
`},
		"an edit shows its difference": {
			[]session.Event{started, edit, event(session.TypeCallChanges, "a", edited), gave("a", "Replaced 2")}, `
  1  file_edit notes.md  "TODO" → "DONE", all                   +2 −2     3 ms
     │   4 - TODO: rope
     │   4 + DONE: rope
     │ 120 - old
     │      \ No newline at end of file
     │ 120 + new
`},
		"an edit of a file in another encoding says so": {
			[]session.Event{started, edit, event(session.TypeCallChanges, "a", session.Changes{Files: []session.Change{
				{Path: "/w/a", Kind: tool.Modified, Added: 1, Removed: 1, Diff: "--- a/a\n+++ b/a\n\\ it is in UTF-16\n@@ -4 +4 @@\n-x\n+y\n"}}}), gave("a", "Replaced 1")}, `
  1  file_edit notes.md  "TODO" → "DONE", all                   +1 −1     3 ms
     │    \ it is in UTF-16
     │ 4 - x
     │ 4 + y
`},
		"what was announced and came to nothing is not shown": {
			[]session.Event{edit, event(session.TypeCallChanges, "a", edited), returned("a", tool.Failed(tool.CodeNotKept, tool.IOError, "read-only file system"))}, `
  1  file_edit notes.md  "TODO" → "DONE", all                not kept     3 ms
     read-only file system
`},
		"what a person has seen in the question is not shown again": {
			[]session.Event{edit, event(session.TypeCallIntended, "a", session.Intent{Rehearsal: true}), answered(&yes, policy.ScopeSession), event(session.TypeCallChanges, "a", edited), gave("a", "Replaced 2")}, `
  1  file_edit notes.md  "TODO" → "DONE", all                   +2 −2     3 ms
`},
		"a no": {
			[]session.Event{edit, event(session.TypeCallIntended, "a", session.Intent{Rehearsal: true}), answered(&no, ""), returned("a", denied)}, `
  1  file_edit notes.md  "TODO" → "DONE", all                      you said no
`},
		"a command that changed nothing": {
			[]session.Event{bash, runs, exit(0, "ok\n")}, `
  1  bash  go test ./...                                       exit 0     3 ms
     │ ok
     changed nothing
`},
		"a command that fails, of which the end matters": {
			[]session.Event{bash, runs, exit(1, manyLines)}, `
  1  bash  go test ./...                                       exit 1     3 ms
     … 2 more lines, /show 1
     │ line
     │ line
     │ line
     │ line
     │ line
     │ line
     │ line
     │ a
     │ b
     │ c
     changed nothing
`},
		"a command with several lines and no output": {
			[]session.Event{proposed("a", "bash", `{"command":"cd x\nmake\nmake test"}`), runs, exit(0, "")}, `
  1  bash  cd x  (and 2 more lines)                 no output, exit 0     3 ms
     changed nothing
`},
		"what policy does not allow": {
			[]session.Event{proposed("a", "file_write", `{"path":".git/hooks/pre-commit","content":"x"}`), returned("a", denied)}, `
  1  file_write .git/hooks/pre-commit                              not allowed
     Git runs this file by itself.
`},
		"a tool of others, and its arguments": {
			[]session.Event{proposed("a", "weather_now", `{"city":"New York","days":3,"tags":["a"]}`), gave("a", "sun")}, `
  1  weather_now city="New York" days=3 tags=["a"]             1 line     3 ms
     │ sun
`},
		"many files": {
			[]session.Event{started, bash, runs, event(session.TypeCallChanges, "a", session.Changes{Files: []session.Change{
				{Path: "/w/package.json", Kind: tool.Modified, Added: 1}, {Path: "/else/x", From: "/w/y", Kind: tool.Renamed},
			}}), exit(0, "")}, `
  1  bash  go test ./...                            no output, exit 0     3 ms
     │ modified package.json  +1
     │ renamed y → /else/x
`},
		"a long difference, and more files than are listed": {
			[]session.Event{started, bash, runs, event(session.TypeCallChanges, "a", session.Changes{Files: append([]session.Change{
				{Path: "/w/a", Kind: tool.Created, Added: 42, Diff: "@@ -0,0 +1,42 @@\n" + strings.Repeat("+x\n", 42)},
			}, make([]session.Change, 9)...), More: 3}), exit(0, "")}, `
  1  bash  go test ./...                            no output, exit 0     3 ms
     │ created a  +42
` + numbered(40) + strings.Repeat("     │  \n", 7) + `     and 5 more changes, /show 1
     … 2 more lines, /show 1
`},
		"in short, as git says it": {
			[]session.Event{bash, runs, event(session.TypeCallChanges, "a", session.Changes{Summary: []string{"git: 1 commit on main"}, Files: make([]session.Change, 40)}), exit(0, "")}, `
  1  bash  go test ./...                            no output, exit 0     3 ms
     │ git: 1 commit on main
`},
		"a name that no tool can have": {
			[]session.Event{proposed("a", "ls\n  2  bash", `{}`), returned("a", tool.Failed(tool.CodeUnknownTool, tool.NotFound, "there is no such tool"))}, `
  1  "ls\n  2  bash"                                     no such tool     3 ms
     there is no such tool
`},
	} {
		t.Run(name, func(t *testing.T) {
			o := options(80)
			o.QuestionsShown = true
			got := shownBy(o, c.events...)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// numbered are so many rows of a difference.
func numbered(n int) (rows string) {
	for i := range n {
		rows += fmt.Sprintf("     │ %2d + x\n", i+1)
	}
	return rows
}

// TestCallsAreShownWithTheirResults, in the order of the calls, whatever the
// order in which they end, and whether they end.
func TestCallsAreShownWithTheirResults(t *testing.T) {
	probe := func(id string) session.Event { return proposed(id, "probe", `{"of":"`+id+`"}`) }
	warns := func(id string) session.Event {
		return event(session.TypeProgress, id, tool.Progress{Level: "warn", Message: id + " warns"})
	}
	deleted := session.Event{Header: session.Header{Type: session.TypeToolResult, Call: "a"}}
	for name, c := range map[string]struct {
		events []session.Event
		want   []string
	}{
		"in reverse": {[]session.Event{probe("a"), probe("b"), probe("c"), warns("c"), gave("c", "of c"), gave("b", "of b"), warns("a"), gave("a", "of a")},
			[]string{"1  probe of=a", "a warns", "│ of a", "2  probe of=b", "│ of b", "3  probe of=c", "c warns", "│ of c"}},
		"without results":  {[]session.Event{probe("a"), probe("b"), gave("b", "of b"), ended(2)}, []string{"1  probe of=a", "no result", "2  probe of=b", "│ of b"}},
		"a deleted result": {[]session.Event{probe("a"), probe("b"), gave("b", "of b"), deleted}, []string{"1  probe of=a", "deleted", "2  probe of=b", "│ of b"}},
		"a yes for longer, though what the call changed is not kept": {[]session.Event{probe("a"), event(session.TypeCallIntended, "a", session.Intent{Rehearsal: true}),
			event(session.TypeDecision, "a", session.Decision{Answer: new(true), Scope: policy.ScopeKeepBelow, AnsweredBy: "terminal"}),
			returned("a", tool.Failed(tool.CodeNotKept, tool.IOError, "read-only file system"))}, []string{"1  probe of=a", "not kept", "read-only", "allowed, in this directory, always"}},
		"of an older step": {[]session.Event{gave("x", "of x"), probe("a"), gave("a", "of a")}, []string{"?  probe", "│ of x", "1  probe of=a", "│ of a"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := shownBy(options(0), c.events...)
			rest := got
			for _, want := range c.want {
				_, after, ok := strings.Cut(rest, want)
				if !ok {
					t.Fatalf("%q does not come where it should:\n%s", want, got)
				}
				rest = after
			}
		})
	}
}

// TestATurnHasRoom: empty rows stand between the calls and the answer, and at the end
// what all of it took.
func TestATurnHasRoom(t *testing.T) {
	delta := func(text string) session.Event { return event(session.TypeDelta, "", session.Delta{Text: text}) }
	cost := 0.0042
	end := event(session.TypeTurnEnded, "", session.TurnEnded{Reason: session.EndAnswered, Calls: 4, Failed: 3, Denied: 1, Stopped: 1, DurationMS: 3400,
		Usage: llm.Usage{InputTokens: 2000, OutputTokens: 310}, Context: &session.ContextUse{Used: 2400, Limit: 20000}, Cost: &cost})
	cached := event(session.TypeTurnEnded, "", session.TurnEnded{Reason: session.EndAnswered, DurationMS: 3400,
		Usage: llm.Usage{InputTokens: 2000, OutputTokens: 310, CachedTokens: 1800}, Context: &session.ContextUse{Used: 2400, Limit: 20000}, Cost: &cost})
	changes := event(session.TypeCallChanges, "a", session.Changes{Files: []session.Change{{Path: "x", Kind: tool.Created}}})
	for name, c := range map[string]struct {
		events []session.Event
		want   string
	}{
		"with all that is known": {[]session.Event{delta("I "), delta("look."), proposed("a", "file_read", `{"path":"a"}`), changes, gave("a", "x"), delta("Done."), end},
			"\n{I }\n{look.}\n\n  1  file_read a                                              created     3 ms\n     │ created x\n\n{Done.}\n\n" +
				"  4 calls (1 failed, 1 not allowed, 1 stopped) · 1 change · 3.4 s ·\n    2,310 tokens (12 % of the context) · $0.0042\n"},
		"with tokens from the cache of the provider": {[]session.Event{delta("Hello."), cached}, "\n{Hello.}\n\n  3.4 s · 2,310 tokens, 1,800 cached (12 % of the context) · $0.0042\n"},
		"without calls and tokens":                   {[]session.Event{delta("Hello."), ended(0)}, "\n{Hello.}\n"},
		"without an answer":                          {[]session.Event{delta("I look."), proposed("a", "ls", `{"path":"a"}`), gave("a", "x"), ended(0)}, "\n{I look.}\n\n  1  ls a                                                      1 line     3 ms\n     │ x\n\n     the model has answered nothing; ask again, or in other words\n"},
		"a call that came as text": {[]session.Event{delta(`{"name":"ls"}`), event(session.TypeMessage, "", llm.BriefMessage(llm.CallAsText, "no call")), ended(0)},
			"\n{{\"name\":\"ls\"}}\n\n     the model has written a call as text, which is never run; it is told so\n\n     the model has answered nothing; ask again, or in other words\n"},
		"what a restart makes void": {[]session.Event{delta("Hel"), event(session.TypeRestart, "", session.Restart{Error: "openai answered 429: slow down", WaitMS: 38_000, Attempt: 2, Attempts: 4}), delta("Hello.")},
			"\n{Hel}\n(void)\n\n     the provider is busy (429); next try in 38 s, 2 of 4\n\n{Hello.}\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, shownBy(options(80), c.events...)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			live := options(80) // text on the screen becomes void there, too
			live.Live = true
			if diff := cmp.Diff(c.want, shownBy(live, c.events...)); diff != "" {
				t.Errorf("live (-want +got):\n%s", diff)
			}
		})
	}
}

// TestWordsStayWhole on a narrow terminal: those of a tool, and what a turn took.
func TestWordsStayWhole(t *testing.T) {
	end := ended(1)
	end.Body = tool.Marshal(session.TurnEnded{Reason: session.EndLimit, Calls: 1, DurationMS: 3400, Usage: llm.Usage{InputTokens: 15000, OutputTokens: 90}, Context: &session.ContextUse{Used: 13, Limit: 100}})
	got := shownBy(options(40), proposed("a", "grep", `{"pattern":"a*"}`), returned("a", tool.Result{Output: tool.Marshal(map[string]any{"output": "", "hint": "no line matches; pattern is a regular expression"})}), end)
	want := `
  1  grep "a*"          empty     3 ms
     │ no line matches; pattern is a
     │ regular expression

  1 call · 3.4 s ·
    15,090 tokens (13 % of the context)
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestOutputIsShownAsItComes where there is no live region, once somebody has waited, and
// not again at the end.
func TestOutputIsShownAsItComes(t *testing.T) {
	events := []session.Event{
		proposed("a", "bash", `{"command":"make"}`), event(session.TypeCallIntended, "a", session.Intent{Exec: true}),
		event(session.TypeProgress, "a", tool.Progress{Output: "one\n"}),
		at(1200, event(session.TypeProgress, "a", tool.Progress{Output: "two\n"})),
	}
	last := returned("a", tool.Result{Output: tool.Text("one\ntwo\nthree\n")})
	const first = "\n  1  bash  make\n     │ one\n     │ two\n"
	got := shownBy(options(80), events...)
	if got != first {
		t.Errorf("after a second it shows %q", got)
	}
	got = shownBy(options(80), append(events, last)...)
	if want := first + strings.Repeat(" ", 63) + "exit 0     3 ms\n     │ three\n"; got != want {
		t.Errorf("at the end it shows %q, want %q", got, want)
	}
	live := options(80)
	live.Live = true
	if got := shownBy(live, events...); got != "" {
		t.Errorf("beside a live region it shows %q", got)
	}
}

func written(number int, name, subject string, bytes int) session.Event {
	return event(session.TypeWriting, "", session.CallWriting{Number: number, Tool: name, Subject: subject, Bytes: bytes})
}

func TestWhatRunsIsLive(t *testing.T) {
	now := time.Unix(14, 0)
	started := event(session.TypeTurnStarted, "", session.TurnStarted{Prompt: "x"})
	bash := []session.Event{
		started, proposed("a", "bash", `{"command":"go test ./..."}`), event(session.TypeCallState, "a", session.CallState{State: "executing"}),
		event(session.TypeProgress, "a", tool.Progress{Output: "1\n2\n3\n4\n"}),
	}
	restart := at(4000, event(session.TypeRestart, "", session.Restart{Error: "openai answered 429: slow down", WaitMS: 38_000, Attempt: 2, Attempts: 4}))
	long := at(4000, event(session.TypeRestart, "", session.Restart{Error: "openai answered 502: a web page instead of an answer of the model", WaitMS: 38_000, Attempt: 2, Attempts: 4}))
	for name, c := range map[string]struct {
		events []session.Event
		most   int
		want   string
	}{
		"a retry after a long error": {[]session.Event{started, long}, 5, "  * the provider failed: openai a…; next try in 28 s, 2 of 4   Ctrl-C stops it"},
		"the model":                  {[]session.Event{started}, 5, "  * waiting for the model, 14 s   Ctrl-C stops it"},
		"a model that thinks":        {[]session.Event{started, at(4000, event(session.TypeReasoning, "", session.Reasoning{Bytes: 9})), at(9000, event(session.TypeReasoning, "", session.Reasoning{Bytes: 9}))}, 5, "  * the model thinks, 10 s   Ctrl-C stops it"},
		"a retry":                    {[]session.Event{started, restart}, 5, "  * the provider is busy (429); next try in 28 s, 2 of 4   Ctrl-C stops it"},
		"a command, with what it wrote last": {bash, 3, `
  1  bash  go test ./...                              * 14 s   Ctrl-C stops it
     │ 3
     │ 4`},
		"one that waits for an answer": {append(bash[:2:2], event(session.TypeCallState, "a", session.CallState{State: "awaiting_permission"})), 3, `
  1  bash  go test ./...                                 waits for your answer`},
		"several, of which one is done": {append(bash[:3:3], proposed("b", "ls", `{"path":"."}`), gave("b", "x")), 3, `
  1  bash  go test ./...                              * 14 s   Ctrl-C stops it
  2  ls .                                                      1 line     3 ms`},
		"more than there is room for": {append(bash[:4:4], proposed("b", "ls", `{}`), proposed("c", "ls", `{}`)), 2, `
  1  bash  go test ./...                              * 14 s   Ctrl-C stops it
     and 2 more calls`},
		"calls that are being written": {[]session.Event{
			started, written(1, "file_write", "", 0), written(1, "file_write", "src/a.go\n  1  bash", 4096), written(2, "bash", "go test ./...", 40), written(9, "x", "", 1), written(-1, "x", "", 1),
		}, 3, `
     file_write src/a.go\n  1…   * is being written, 4.0 KiB   Ctrl-C stops it
     bash go test ./...             * is being written, 40 B   Ctrl-C stops it`},
		"a written call that is made": {append([]session.Event{started, written(1, "bash", "go", 9), event(session.TypeStepEnded, "", session.StepEnded{})}, bash[1:3]...), 3, `
  1  bash  go test ./...                              * 14 s   Ctrl-C stops it`},
		"a written call that is void": {[]session.Event{started, written(1, "bash", "go", 9), restart}, 3, "  * the provider is busy (429); next try in 28 s, 2 of 4   Ctrl-C stops it"},
		"nothing":                     {append(bash[:2:2], gave("a", "x"), ended(1)), 5, ""},
	} {
		t.Run(name, func(t *testing.T) {
			o := options(80)
			o.Live = true
			tr := New(o)
			for _, e := range c.events {
				tr.Show(e)
			}
			got := strings.Join(tr.Running(now, "*", c.most), "\n")
			if diff := cmp.Diff(strings.TrimPrefix(c.want, "\n"), got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestWhatATurnShowsIsHarmless: whatever a tool, a file name or a model says moves nothing
// on the terminal, and what a tool says stands behind a bar.
func TestWhatATurnShowsIsHarmless(t *testing.T) {
	for _, v := range terminaltest.Vectors() {
		if !utf8.ValidString(v.Text) {
			continue // JSON brings none
		}
		t.Run(v.Name, func(t *testing.T) {
			failed := tool.Failed(tool.CodeFailed, tool.InternalError, "%s", v.Text)
			failed.Err.Stdout, failed.Err.Stderr, failed.Err.Hint = v.Text, v.Text, tool.Advise("%s", v.Text)
			refused := tool.Failed(tool.CodeDenied, tool.PermissionDenied, "%s", v.Text)
			args := string(tool.Marshal(map[string]string{"command": v.Text, "path": v.Text, "old_string": v.Text, "new_string": v.Text, v.Text: v.Text}))
			probe := proposed("c", "probe", `{}`)
			changed := func(c session.Changes) []session.Event {
				return []session.Event{probe, event(session.TypeCallChanges, "c", c), gave("c", "done")}
			}
			for what, events := range map[string][]session.Event{
				"output":      {probe, gave("c", v.Text)},
				"error":       {probe, returned("c", failed)},
				"denial":      {probe, returned("c", refused)},
				"note":        {probe, returned("c", tool.Result{Output: tool.Text("x"), Note: v.Text})},
				"tool":        {proposed("c", v.Text, `{}`), gave("c", "")},
				"arguments":   {proposed("c", "probe", args), gave("c", "")},
				"no JSON":     {proposed("c", "probe", v.Text), gave("c", "")},
				"command":     {proposed("c", "bash", args), gave("c", "")},
				"edit":        {proposed("c", "file_edit", args), gave("c", "")},
				"progress":    {probe, event(session.TypeProgress, "c", tool.Progress{Level: "warn", Message: v.Text}), gave("c", "")},
				"changes":     changed(session.Changes{Files: []session.Change{{Kind: tool.Created, Path: v.Text, From: v.Text}}}),
				"difference":  changed(session.Changes{Files: []session.Change{{Kind: tool.Created, Path: "a", Diff: "@@ -1 +1 @@\n+" + v.Text}}}),
				"no diff":     changed(session.Changes{Files: []session.Change{{Kind: tool.Created, Path: "a", Diff: v.Text}}}),
				"summary":     changed(session.Changes{Summary: []string{v.Text}}),
				"decision":    {probe, event(session.TypeDecision, "c", session.Decision{Tool: v.Text, Effect: "ask", Rule: v.Text, AnsweredBy: v.Text, Answer: new(bool)}), gave("c", "")},
				"restart":     {event(session.TypeRestart, "", session.Restart{Error: v.Text})},
				"prompt":      {event(session.TypeTurnStarted, "", session.TurnStarted{Prompt: v.Text, Model: v.Text, Workspace: v.Text})},
				"of the host": {event(session.TypeProgress, "", tool.Progress{Level: "warn", Message: v.Text})},
				"unreadable":  {event(session.TypeDecision, "c", v.Text)},
				"end":         {event(session.TypeTurnEnded, "", session.TurnEnded{Reason: session.EndProvider, Calls: 1, Error: v.Text})},
			} {
				o := options(60)
				o.Replay, o.Verbose, o.Color = true, true, true
				tr := New(o)
				var rows []string
				for _, e := range events {
					rows = append(rows, tr.Running(time.Unix(9, 0), "*", 9)...)
					for _, p := range tr.Show(e) {
						rows = append(rows, p.Rows...)
					}
				}
				card, err := Card(sequence(events), 0, o)
				if err == nil {
					rows = append(rows, card...)
				}
				errs := &terminaltest.Emulator{Columns: 60, Wide: true}
				fmt.Fprint(errs, strings.Join(rows, "\n"))
				if errs.Acts != nil {
					t.Errorf("%s: it did more than print: %q", what, errs.Acts)
				}
				seen := ""
				for i, row := range errs.Rows() {
					seen += row.Text
					if row.Wrapped {
						t.Errorf("%s: row %d began because the one before was full: %q", what, i, row.Text)
					}
					if before, _, ok := strings.Cut(row.Text, "EVIL"); ok && !strings.Contains(before, "│ ") && !strings.HasPrefix(row.Text, "  ") && !strings.HasPrefix(row.Text, ">") {
						t.Errorf("%s: a row looks like ours: %q", what, row.Text)
					}
				}
				if strings.Contains(v.Text, "EVIL") && len(v.Text) < 100 && what != "tool" && !strings.Contains(strings.NewReplacer(" ", "", "│", "").Replace(seen), "EVIL") {
					t.Errorf("%s: it does not show: %q", what, seen)
				}
			}
		})
	}
}

// TestNoBlanksPushAnArgumentAway to where it is said what came of a call.
func TestNoBlanksPushAnArgumentAway(t *testing.T) {
	got := shownBy(options(80), proposed("a", "ls", `{"path":"a            exit 0     2 ms"}`), gave("a", ""))
	if !strings.Contains(got, "a<12 blanks>exit 0<5 blanks>2 ms") {
		t.Error(got)
	}
}

// TestWhatCannotBeReadIsShown: what is in the log, of another version maybe, is not left
// out of what is shown of a session.
func TestWhatCannotBeReadIsShown(t *testing.T) {
	deep := returned("c", tool.Result{Output: json.RawMessage(`{"output":` + strings.Repeat("[", 9999) + strings.Repeat("]", 9999) + "}")})
	events := map[string]session.Event{"a result that nests too deep": deep}
	for _, typ := range []session.Type{
		session.TypeSessionStarted, session.TypeTurnStarted, session.TypeMessage, session.TypeToolCall, session.TypeDecision,
		session.TypeCallChanges, session.TypeToolResult, session.TypeTurnEnded,
	} {
		call := ""
		if strings.Contains(string(typ), "call") || typ == session.TypeToolResult {
			call = "c"
		}
		events["not what it should be: "+string(typ)] = event(typ, call, []string{"other"})
	}
	for name, e := range events {
		o := options(0)
		o.Replay = true
		got := shownBy(o, proposed("c", "probe", "{}"), e, ended(1))
		if !strings.Contains(got, string(e.Type)+", which cannot be read") || !strings.Contains(got, string(e.Body[:5])) {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestSecretsAreNotShown(t *testing.T) {
	o := options(80)
	o.Redactor = new(redact.Redactor)
	o.Redactor.Add("hunter2-hunter2")
	events := []session.Event{
		proposed("a", "bash", `{"command":"echo hunter2-hunter2"}`), event(session.TypeCallChanges, "a", session.Changes{Files: []session.Change{{Path: "x", Diff: "@@ -0,0 +1 @@\n+hunter2-hunter2"}}}),
		gave("a", "hunter2-hunter2"),
	}
	card, err := Card(sequence(events), 1, o)
	if err != nil {
		t.Fatal(err)
	}
	if got := shownBy(o, events...) + strings.Join(card, "\n"); strings.Contains(got, "hunter2") || !strings.Contains(got, "[redacted]") {
		t.Error(got)
	}
}

func sequence(events []session.Event) iter.Seq2[session.Event, error] {
	return func(yield func(session.Event, error) bool) {
		for _, e := range events {
			if !yield(e, nil) {
				return
			}
		}
	}
}
