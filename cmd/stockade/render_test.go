package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/terminal/terminaltest"
	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/session"
	"github.com/stockade-dev/stockade/host/tool"
)

func event(t *testing.T, typ session.Type, body any) session.Event {
	t.Helper()
	data, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	return session.Event{Header: session.Header{Session: "s", Type: typ, Call: "c", Time: time.Unix(0, 0)}, Body: data}
}

// returned is the event of a result.
func returned(t *testing.T, r tool.Result) session.Event {
	t.Helper()
	data, err := json.Marshal(llm.ResultData{CallID: "c", Name: "probe", Output: string(r.Envelope())})
	if err != nil {
		t.Fatal(err)
	}
	return event(t, session.TypeToolResult, llm.Message{Kind: llm.ToolResult, Data: data})
}

// TestChangesAreShownWhenTheyAreMade: what was announced and came to nothing is
// not said to have happened.
func TestChangesAreShownWhenTheyAreMade(t *testing.T) {
	announced := event(t, session.TypeCallChanges, session.Changes{Files: []session.Change{{Kind: tool.Created, Path: "/w/a.txt"}}})
	for name, c := range map[string]struct {
		result tool.Result
		shows  bool
	}{
		"made":     {tool.Result{Output: tool.Text("done")}, true},
		"not kept": {tool.Failed(tool.CodeNotKept, tool.IOError, "read-only file system"), false},
	} {
		t.Run(name, func(t *testing.T) {
			var out, errs bytes.Buffer
			r := newRenderer(&stdio{out: &out, err: &errs}, false, false)
			r.show(announced)
			if strings.Contains(errs.String(), "created") {
				t.Errorf("it is shown before it is made: %s", &errs)
			}
			r.show(returned(t, c.result))
			if got := strings.Contains(errs.String(), "created /w/a.txt"); got != c.shows {
				t.Errorf("shown: %v\n%s", got, &errs)
			}
		})
	}
}

// TestWhatATurnShowsIsHarmless: whatever a tool, a file name or a model says
// moves nothing on the terminal, and what a tool says stands behind a mark.
func TestWhatATurnShowsIsHarmless(t *testing.T) {
	for _, v := range terminaltest.Vectors() {
		if !utf8.ValidString(v.Text) {
			continue // JSON brings none
		}
		t.Run(v.Name, func(t *testing.T) {
			failed := tool.Failed(tool.CodeFailed, tool.InternalError, "%s", v.Text)
			failed.Err.Stdout, failed.Err.Stderr, failed.Err.Hint = v.Text, v.Text, tool.Advise("%s", v.Text)
			for what, e := range map[string]session.Event{
				"output":   returned(t, tool.Result{Output: tool.Text(v.Text)}),
				"error":    returned(t, failed),
				"call":     event(t, session.TypeToolCall, llm.Message{Kind: llm.ToolCall, Content: v.Text}),
				"progress": event(t, session.TypeProgress, tool.Progress{Level: "warn", Message: v.Text}),
				"changes":  event(t, session.TypeCallChanges, session.Changes{Files: []session.Change{{Kind: tool.Created, Path: v.Text}}}),
				"decision": event(t, session.TypeDecision, session.Decision{Tool: v.Text, Effect: "ask", Rule: v.Text}),
				"restart":  event(t, session.TypeRestart, session.Restart{Error: v.Text}),
			} {
				out, errs := &terminaltest.Emulator{Columns: 60}, &terminaltest.Emulator{Columns: 60, Wide: true}
				r := newRenderer(&stdio{out: out, err: errs, outTTY: true, color: true, columns: func() int { return 60 }}, false, true)
				r.show(e)
				if what == "changes" {
					r.show(returned(t, tool.Result{Output: tool.Text("done")}))
				}
				if errs.Acts != nil {
					t.Errorf("%s: it did more than print: %q", what, errs.Acts)
				}
				seen := ""
				for i, row := range errs.Rows() {
					seen += row.Text
					if row.Wrapped {
						t.Errorf("%s: row %d began because the one before was full: %q", what, i, row.Text)
					}
					if i > 0 && strings.Contains(row.Text, "EVIL") && !strings.HasPrefix(row.Text, "   ") {
						t.Errorf("%s: a row looks like ours: %q", what, row.Text)
					}
				}
				if strings.Contains(v.Text, "EVIL") && len(v.Text) < 100 && !strings.Contains(strings.NewReplacer(" ", "", "|", "", ":", "").Replace(seen), "EVIL") {
					t.Errorf("%s: it does not show: %q", what, seen)
				}
			}
			// The answer of the model, in pieces.
			out := &terminaltest.Emulator{Columns: 60}
			r := newRenderer(&stdio{out: out, err: out, outTTY: true}, false, false)
			for _, c := range v.Text {
				r.show(event(t, session.TypeDelta, session.Delta{Text: string(c)}))
			}
			if out.Acts != nil {
				t.Errorf("the answer did more than print: %q", out.Acts)
			}
		})
	}
}

func TestWhatATurnShowsKeepsItsMarks(t *testing.T) {
	const text = "Vie\u0323\u0302t \u26a0\ufe0f"
	var out bytes.Buffer
	r := newRenderer(&stdio{out: &out, err: &out, outTTY: true}, false, false)
	for _, c := range text {
		r.show(event(t, session.TypeDelta, session.Delta{Text: string(c)}))
	}
	if out.String() != text {
		t.Errorf("in pieces it is %q", out.String())
	}
}

// TestWhatCannotBeReadIsShown: what is in the log, of another version maybe, is
// not left out of what is shown of a session.
func TestWhatCannotBeReadIsShown(t *testing.T) {
	deep := returned(t, tool.Result{Output: json.RawMessage(`{"output":` + strings.Repeat("[", 9999) + strings.Repeat("]", 9999) + "}")})
	events := map[string]session.Event{"a result that nests too deep": deep}
	for _, typ := range []session.Type{
		session.TypeSessionStarted, session.TypeTurnStarted, session.TypeMessage, session.TypeToolCall, session.TypeDecision,
		session.TypeCallChanges, session.TypeToolResult, session.TypeTurnEnded,
	} {
		events["not what it should be: "+string(typ)] = event(t, typ, []string{"other"})
	}
	for name, e := range events {
		var out bytes.Buffer
		r := newRenderer(&stdio{out: &out, err: &out}, false, false)
		r.past = true
		showPast(r, e)
		if got := out.String(); !strings.Contains(got, string(e.Type)+", which cannot be read") || !strings.Contains(got, string(e.Body[:5])) {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// TestCallsAreShownWithTheirResults, in the order of the calls, whatever the
// order in which they end, and whether they end.
func TestCallsAreShownWithTheirResults(t *testing.T) {
	of := func(e session.Event, call string) session.Event {
		e.Call = call
		return e
	}
	proposed := func(call string) session.Event {
		return of(event(t, session.TypeToolCall, llm.Message{Kind: llm.ToolCall, Content: "probe " + call}), call)
	}
	result := func(call string) session.Event {
		return of(returned(t, tool.Result{Output: tool.Text("of " + call)}), call)
	}
	warns := func(call string) session.Event {
		return of(event(t, session.TypeProgress, tool.Progress{Level: "warn", Message: call + " warns"}), call)
	}
	ended := of(event(t, session.TypeTurnEnded, session.TurnEnded{Reason: session.EndCancelled}), "")
	deleted := session.Event{Header: session.Header{Type: session.TypeToolResult, Call: "a"}}
	for name, c := range map[string]struct {
		events []session.Event
		want   []string
	}{
		"in reverse":       {[]session.Event{proposed("a"), proposed("b"), proposed("c"), warns("c"), result("c"), result("b"), warns("a"), result("a")}, []string{"-> probe a", "a warns", "of a", "-> probe b", "of b", "-> probe c", "c warns", "of c"}},
		"without results":  {[]session.Event{proposed("a"), proposed("b"), result("b"), ended}, []string{"-> probe a", "-> probe b", "of b"}},
		"a deleted result": {[]session.Event{proposed("a"), proposed("b"), result("b"), deleted}, []string{"-> probe a", "deleted", "-> probe b", "of b"}},
		"of an older step": {[]session.Event{result("x"), proposed("a"), result("a")}, []string{"of x", "-> probe a", "of a"}},
	} {
		t.Run(name, func(t *testing.T) {
			var errs bytes.Buffer
			r := newRenderer(&stdio{out: &errs, err: &errs}, false, false)
			for _, e := range c.events {
				r.show(e)
			}
			rest := errs.String()
			for _, want := range c.want {
				_, after, ok := strings.Cut(rest, want)
				if !ok {
					t.Fatalf("%q does not come where it should:\n%s", want, &errs)
				}
				rest = after
			}
		})
	}
}
