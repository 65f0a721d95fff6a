package stats

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/session"
	"github.com/stockade-dev/stockade/host/tool"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// at returns events of a session, one for each second from the given time on.
func at(second int, drafts ...session.Draft) (events []session.Event) {
	for i, d := range drafts {
		events = append(events, session.Seal(d, uint64(second+i+1), start.Add(time.Duration(second+i)*time.Second), [32]byte{}, [32]byte{}))
	}
	return events
}

func began(provider, model string) session.Draft {
	return session.NewDraft(session.TypeTurnStarted, 1, 0, "", session.TurnStarted{Provider: provider, Model: model})
}

func step(in, out int, ms int64, cost *float64) session.Draft {
	return session.NewDraft(session.TypeStepEnded, 1, 1, "", session.StepEnded{Usage: llm.Usage{InputTokens: in, OutputTokens: out}, DurationMS: ms, Cost: cost})
}

func ended(reason session.EndReason, in, out int, cost *float64) session.Draft {
	return session.NewDraft(session.TypeTurnEnded, 1, 0, "", session.TurnEnded{Reason: reason, Usage: llm.Usage{InputTokens: in, OutputTokens: out}, DurationMS: 1000, Cost: cost})
}

// called returns the events of a call under a name. own is the tool's own name.
func called(id, name, own string, ran bool, r tool.Result) []session.Draft {
	out := []session.Draft{session.NewDraft(session.TypeToolCall, 1, 1, id, llm.CallMessage(llm.NewCall(id, name, "{}")))}
	if own != "" {
		out = append(out, session.NewDraft(session.TypeDecision, 1, 1, id, session.Decision{Tool: own}))
	}
	if ran {
		out = append(out, session.NewDraft(session.TypeCallIntended, 1, 1, id, session.Intent{Tool: own}))
	}
	return append(out, session.NewDraft(session.TypeToolResult, 1, 1, id, llm.ResultMessage(id, name, r)))
}

func ok(ms time.Duration, fuel uint64) tool.Result {
	return tool.Result{Output: tool.Text("x"), Usage: tool.Usage{Duration: ms * time.Millisecond, FuelUsed: fuel}}
}

func dollars(d float64) *float64 { return &d }

// flat returns the totals, with durations as text.
func flat(s Stats) map[string]string {
	calls := func(c Calls) string {
		return fmt.Sprintf("%d calls, %d ok, %d denied, %d stopped, %d failed, fuel %d, %d ran, median %v, slowest %v",
			c.Number, c.Succeeded, c.Denied, c.Stopped, c.Failed(), c.Fuel, c.Durations.Number(), c.Durations.Median(), c.Durations.Slowest())
	}
	spent := func(s ModelUse) string {
		cost := "unknown"
		if s.Cost != nil {
			cost = fmt.Sprint(*s.Cost)
		}
		return fmt.Sprintf("%d requests, %d restarts, %d failed, %d in, %d cached, %d out, cost %s, median %v, slowest %v",
			s.Requests, s.Restarts, s.Failed, s.Usage.InputTokens, s.Usage.CachedTokens, s.Usage.OutputTokens, cost, s.Durations.Median(), s.Durations.Slowest())
	}
	out := map[string]string{
		"":       fmt.Sprintf("%d sessions, %d events, %d deleted, %d turns, ended %v, %v", s.Sessions, s.Events, s.Deleted, s.Turns, s.Ended, s.Duration),
		"calls":  calls(s.Calls),
		"models": spent(s.ModelUse),
	}
	for _, t := range s.Tools {
		out["tool "+t.Name] = calls(t.Calls)
	}
	for _, m := range s.Models {
		out["model "+m.Provider+" "+m.Name] = spent(m.ModelUse)
	}
	return out
}

func TestWhatIsCounted(t *testing.T) {
	denied := tool.Failed(tool.CodeDenied, tool.PermissionDenied, "no")
	cached := session.NewDraft(session.TypeStepEnded, 1, 1, "", session.StepEnded{Usage: llm.Usage{InputTokens: 90, CachedTokens: 80, OutputTokens: 1}, DurationMS: 70, Restarts: 2})
	instead := session.NewDraft(session.TypeStepEnded, 1, 1, "", session.StepEnded{
		Usage: llm.Usage{InputTokens: 20, OutputTokens: 2}, DurationMS: 30, Restarts: 1, Cost: dollars(0.3), Provider: "anthropic", Model: "n"})
	join := func(all ...[]session.Draft) (out []session.Draft) {
		for _, d := range all {
			out = append(out, d...)
		}
		return out
	}
	for name, c := range map[string]struct {
		drafts []session.Draft
		since  int // seconds
		want   map[string]string
	}{
		"the calls of a turn, by tool": {drafts: join(
			[]session.Draft{began("openai", "m")},
			called("a", "ls", "ls", true, ok(10, 5)), called("b", "ls", "ls", true, ok(30, 5)), called("c", "ls", "ls", true, ok(20, 5)),
			called("d", "grep", "grep", false, denied), called("e", "grep", "grep", true, tool.Failed(tool.CodeCancelled, tool.InternalError, "stopped")),
			called("f", "grep", "grep", false, tool.Failed(tool.CodeInvalidArgs, tool.ValidationFailed, "wrong")),
			[]session.Draft{step(100, 10, 50, nil), ended(session.EndAnswered, 100, 10, nil)},
		), want: map[string]string{
			"":               "1 sessions, 25 events, 0 deleted, 1 turns, ended map[answered:1], 1s",
			"calls":          "6 calls, 3 ok, 1 denied, 1 stopped, 1 failed, fuel 15, 4 ran, median 10ms, slowest 30ms",
			"tool ls":        "3 calls, 3 ok, 0 denied, 0 stopped, 0 failed, fuel 15, 3 ran, median 20ms, slowest 30ms",
			"tool grep":      "3 calls, 0 ok, 1 denied, 1 stopped, 1 failed, fuel 0, 1 ran, median 0s, slowest 0s",
			"models":         "1 requests, 0 restarts, 0 failed, 100 in, 0 cached, 10 out, cost unknown, median 50ms, slowest 50ms",
			"model openai m": "1 requests, 0 restarts, 0 failed, 100 in, 0 cached, 10 out, cost unknown, median 50ms, slowest 50ms",
		}},
		"a tool has its own name, whatever it was called by, and no name is no tool": {drafts: join(
			called("a", "cat", "file_read", true, ok(1, 2)), called("b", "file_read", "file_read", true, ok(1, 2)),
			called("c", "nothing", "", false, tool.Failed(tool.CodeUnknownTool, tool.NotFound, "none")), called("d", "nowhere", "", false, tool.Failed(tool.CodeUnknownTool, tool.NotFound, "none")),
		), want: map[string]string{
			"":                    "1 sessions, 12 events, 0 deleted, 0 turns, ended map[], 0s",
			"calls":               "4 calls, 2 ok, 0 denied, 0 stopped, 2 failed, fuel 4, 2 ran, median 1ms, slowest 1ms",
			"tool file_read":      "2 calls, 2 ok, 0 denied, 0 stopped, 0 failed, fuel 4, 2 ran, median 1ms, slowest 1ms",
			"tool (no such tool)": "2 calls, 0 ok, 0 denied, 0 stopped, 2 failed, fuel 0, 0 ran, median 0s, slowest 0s",
			"models":              "0 requests, 0 restarts, 0 failed, 0 in, 0 cached, 0 out, cost unknown, median 0s, slowest 0s",
		}},
		"each turn has its model, and each step its cost": {drafts: []session.Draft{
			began("openai", "m"), step(10, 1, 10, dollars(0.1)), step(20, 2, 30, dollars(0.2)), ended(session.EndAnswered, 30, 3, dollars(0.3)),
			began("anthropic", "n"), cached, ended(session.EndAnswered, 90, 1, nil),
		}, want: map[string]string{
			"":                  "1 sessions, 7 events, 0 deleted, 2 turns, ended map[answered:2], 2s",
			"calls":             "0 calls, 0 ok, 0 denied, 0 stopped, 0 failed, fuel 0, 0 ran, median 0s, slowest 0s",
			"models":            "3 requests, 2 restarts, 0 failed, 120 in, 80 cached, 4 out, cost 0.3, median 30ms, slowest 70ms",
			"model openai m":    "2 requests, 0 restarts, 0 failed, 30 in, 0 cached, 3 out, cost 0.3, median 10ms, slowest 30ms",
			"model anthropic n": "1 requests, 2 restarts, 0 failed, 90 in, 80 cached, 1 out, cost unknown, median 70ms, slowest 70ms",
		}},
		"what broke off is in the turn alone": {drafts: []session.Draft{
			began("openai", "m"), step(10, 1, 10, dollars(0.1)), ended(session.EndProvider, 50, 5, dollars(0.5)),
		}, want: map[string]string{
			"":               "1 sessions, 3 events, 0 deleted, 1 turns, ended map[provider:1], 1s",
			"calls":          "0 calls, 0 ok, 0 denied, 0 stopped, 0 failed, fuel 0, 0 ran, median 0s, slowest 0s",
			"models":         "1 requests, 0 restarts, 1 failed, 50 in, 0 cached, 5 out, cost 0.5, median 10ms, slowest 10ms",
			"model openai m": "1 requests, 0 restarts, 1 failed, 50 in, 0 cached, 5 out, cost 0.5, median 10ms, slowest 10ms",
		}},
		"one that has answered in the place of another has its own row": {drafts: []session.Draft{
			began("openai", "m"), step(10, 1, 10, dollars(0.1)), instead, ended(session.EndAnswered, 40, 4, dollars(0.5)),
		}, want: map[string]string{
			"":                  "1 sessions, 4 events, 0 deleted, 1 turns, ended map[answered:1], 1s",
			"calls":             "0 calls, 0 ok, 0 denied, 0 stopped, 0 failed, fuel 0, 0 ran, median 0s, slowest 0s",
			"models":            "2 requests, 1 restarts, 0 failed, 40 in, 0 cached, 4 out, cost 0.5, median 10ms, slowest 30ms",
			"model openai m":    "1 requests, 0 restarts, 0 failed, 20 in, 0 cached, 2 out, cost 0.2, median 10ms, slowest 10ms",
			"model anthropic n": "1 requests, 1 restarts, 0 failed, 20 in, 0 cached, 2 out, cost 0.3, median 30ms, slowest 30ms",
		}},
		"an old turn says what it cost at its end, and one that was killed nothing": {drafts: []session.Draft{
			began("openai", "m"), step(10, 1, 10, nil), step(20, 2, 30, nil), ended(session.EndAnswered, 30, 3, dollars(0.3)),
			began("openai", "m"), step(7, 1, 10, nil),
		}, want: map[string]string{
			"":               "1 sessions, 6 events, 0 deleted, 2 turns, ended map[answered:1], 1s",
			"calls":          "0 calls, 0 ok, 0 denied, 0 stopped, 0 failed, fuel 0, 0 ran, median 0s, slowest 0s",
			"models":         "3 requests, 0 restarts, 0 failed, 37 in, 0 cached, 4 out, cost 0.3, median 10ms, slowest 30ms",
			"model openai m": "3 requests, 0 restarts, 0 failed, 37 in, 0 cached, 4 out, cost 0.3, median 10ms, slowest 30ms",
		}},
		"what is older is left out, but for which model has the turn": {since: 2, drafts: []session.Draft{
			began("openai", "m"), step(10, 1, 10, dollars(0.1)), step(20, 2, 30, dollars(0.2)), ended(session.EndAnswered, 30, 3, dollars(0.3)),
		}, want: map[string]string{
			"":               "1 sessions, 2 events, 0 deleted, 0 turns, ended map[answered:1], 1s",
			"calls":          "0 calls, 0 ok, 0 denied, 0 stopped, 0 failed, fuel 0, 0 ran, median 0s, slowest 0s",
			"models":         "1 requests, 0 restarts, 0 failed, 20 in, 0 cached, 2 out, cost 0.2, median 30ms, slowest 30ms",
			"model openai m": "1 requests, 0 restarts, 0 failed, 20 in, 0 cached, 2 out, cost 0.2, median 30ms, slowest 30ms",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			count := Counter{Since: start.Add(time.Duration(c.since) * time.Second)}
			count.BeginSession()
			for _, e := range at(0, c.drafts...) {
				count.Add(e)
			}
			if diff := cmp.Diff(c.want, flat(count.Stats())); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestNoBodyIsTrusted checks that a deleted or malformed body counts only as an event.
func TestNoBodyIsTrusted(t *testing.T) {
	drafts := append(called("a", "ls", "ls", true, ok(1, 2)), began("openai", "m"), step(1, 2, 3, dollars(1)), ended(session.EndAnswered, 1, 2, dollars(1)))
	for name, body := range map[string]json.RawMessage{
		"deleted": nil, "null": json.RawMessage("null"), "a list": json.RawMessage("[]"), "cut": json.RawMessage(`{"kind":`),
		"other types": json.RawMessage(`{"kind":1,"data_json":"x","usage":7,"tool":[],"provider":{}}`),
	} {
		var c Counter
		for _, e := range at(0, drafts...) {
			e.Body = body
			c.Add(e)
		}
		s := c.Stats()
		if s.Sessions != 1 || s.Events != len(drafts) || s.Calls.Number != 0 || s.ModelUse.Usage.Total() != 0 || s.ModelUse.Cost != nil || (s.Deleted > 0) != (body == nil) {
			t.Errorf("%s: got %v", name, flat(s))
		}
	}
}

func TestManyNamesShareARow(t *testing.T) {
	var c Counter
	for i := range 3 * MaxNames {
		for _, d := range called("a", fmt.Sprint("t", i), fmt.Sprint("t", i), true, ok(1, 2)) {
			c.Add(at(0, d)[0])
		}
		c.Add(at(0, began("openai", fmt.Sprint("m", i)))[0])
		c.Add(at(0, step(1, 1, 1, nil))[0])
	}
	s := c.Stats()
	if len(s.Tools) != MaxNames+1 || s.Tools[0].Name != Others || s.Tools[0].Number != 2*MaxNames || s.Calls.Number != 3*MaxNames {
		t.Errorf("%d tools, first %+v", len(s.Tools), s.Tools[0])
	}
	if len(s.Models) != MaxNames+1 || s.Models[0].Name != Others || s.Models[0].Requests != 2*MaxNames || len(c.open) != 0 {
		t.Errorf("%d models, first %+v, %d open calls", len(s.Models), s.Models[0], len(c.open))
	}
}

func TestWhatIsReadOfAnEnvelope(t *testing.T) {
	usage := tool.Usage{Duration: 3 * time.Millisecond, FuelUsed: 7}
	for name, c := range map[string]struct {
		output  string
		success bool
		want    string
	}{
		"of a success":                      {string(tool.Result{Output: tool.Text("x"), Usage: usage}.Envelope()), true, " 3 7"},
		"whose tool speaks of metadata":     {string(tool.Result{Output: json.RawMessage(`{"output":"\"metadata\":{\"fuel_used\":1}","metadata":{"fuel_used":2}}`), Usage: usage}.Envelope()), true, " 3 7"},
		"with a limit":                      {string(tool.Result{Output: tool.Text("x"), LimitMessage: "no more", Usage: usage}.Envelope()), true, " 3 7"},
		"of a failure":                      {string(tool.Result{Err: &tool.Error{Code: tool.CodeDenied, Message: `"metadata":`}, Usage: usage}.Envelope()), false, "DENIED 3 7"},
		"in another order":                  {`{"metadata":{"fuel_used":5},"result":{"a":"\"metadata\":"}}`, true, " 0 5"},
		"that is no JSON":                   {`"metadata":{`, true, " 0 0"},
		"without metadata":                  {`{"tool_success":true}`, true, " 0 0"},
		"with metadata that are no numbers": {`{"metadata":[]}`, true, " 0 0"},
	} {
		e := parseEnvelope(c.output, c.success)
		if got := fmt.Sprint(e.Code, " ", e.Metadata.MS, " ", e.Metadata.Fuel); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

// BenchmarkAdd counts a step with a call that reads a file of 4 KB: 5 events.
func BenchmarkAdd(b *testing.B) {
	r := tool.Result{Output: tool.Text(strings.Repeat("1: a line of \"text\"\n", 200)), Usage: tool.Usage{Duration: 3 * time.Millisecond, FuelUsed: 1000}}
	events := at(0, append(called("a", "file_read", "file_read", true, r), step(100, 10, 1000, nil))...)
	for b.Loop() {
		var c Counter
		for _, e := range events {
			c.Add(e)
		}
	}
}

func TestCopiesCountInTheirOwnSession(t *testing.T) {
	drafts := []session.Draft{
		session.NewDraft(session.TypeSessionStarted, 0, 0, "", session.Started{}),
		session.NewDraft(session.TypeForked, 0, 0, "", session.Forked{Events: 3}),
		began("p", "m"), step(1000, 1, 5, dollars(1)), ended(session.EndAnswered, 1000, 1, dollars(1)),
		began("p", "m"), step(10, 1, 5, dollars(0.5)), ended(session.EndAnswered, 10, 1, dollars(0.5)),
	}
	c := &Counter{}
	c.BeginSession()
	for _, e := range at(0, drafts...) {
		c.Add(e)
	}
	got := c.Stats()
	if got.Turns != 1 || got.Events != 5 || got.ModelUse.Requests != 1 || *got.ModelUse.Cost != 0.5 {
		t.Errorf("got %+v, %+v", flat(got), got.ModelUse)
	}
}
