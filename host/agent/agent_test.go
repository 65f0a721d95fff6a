package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/redact"
	"github.com/stockade-dev/stockade/host/session"
	"github.com/stockade-dev/stockade/host/tool"
)

// memory is a store of one session that keeps nothing when the program ends.
type memory struct {
	session.Store
	mu     sync.Mutex
	events []session.Event
	fail   func(d session.Draft) error
}

func (s *memory) Append(ctx context.Context, drafts ...session.Draft) ([]session.Event, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []session.Event
	for _, d := range drafts {
		if s.fail != nil {
			if err := s.fail(d); err != nil {
				return nil, err
			}
		}
		var prev [32]byte
		if n := len(s.events) + len(out); n > 0 {
			prev = slices.Concat(s.events, out)[n-1].Hash
		}
		out = append(out, session.Seal(d, uint64(len(s.events)+len(out)+1), time.Now(), prev, prev))
	}
	s.events = append(s.events, out...)
	return out, nil
}

func (s *memory) all() iter.Seq2[session.Event, error] {
	return func(yield func(session.Event, error) bool) {
		s.mu.Lock()
		events := slices.Clone(s.events)
		s.mu.Unlock()
		for _, e := range events {
			if !yield(e, nil) {
				return
			}
		}
	}
}

// types lists what has been stored, without the session.
func (s *memory) types() []string {
	var out []string
	for e := range s.all() {
		out = append(out, string(e.Type))
	}
	return out
}

// reply is what the scripted model says in one step: deltas, then an error if there is one.
type reply struct {
	deltas []llm.Delta
	err    error
	before func(ctx context.Context) // runs before the first delta
	after  func(ctx context.Context) error
}

// script is a model with scripted replies, which stores the requests that it gets.
type script struct {
	t       testing.TB
	replies []reply
	mu      sync.Mutex
	asked   []llm.Request
}

func (s *script) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		s.mu.Lock()
		n := len(s.asked)
		s.asked = append(s.asked, llm.Request{Model: req.Model, Messages: slices.Clone(req.Messages), Tools: req.Tools, Schema: req.Schema})
		s.mu.Unlock()
		if ctx.Err() != nil {
			yield(llm.Delta{}, context.Cause(ctx))
			return
		}
		if n >= len(s.replies) {
			s.t.Errorf("request %d was not expected", n+1)
			yield(llm.Delta{}, errors.New("the script is over"))
			return
		}
		r := s.replies[n]
		if r.before != nil {
			r.before(ctx)
		}
		for _, d := range r.deltas {
			if !yield(d, nil) {
				return
			}
		}
		if r.after != nil {
			r.err = r.after(ctx)
		}
		if r.err != nil {
			yield(llm.Delta{}, r.err)
		}
	}
}

func text(s string) reply {
	half := len(s) / 2
	return reply{deltas: []llm.Delta{{Text: s[:half]}, {Text: s[half:]}, {Finish: llm.FinishStop, Usage: &llm.Usage{InputTokens: 10, OutputTokens: 2}}}}
}

// calls is a reply with calls, each "id name args".
func calls(list ...string) reply {
	d := llm.Delta{Finish: llm.FinishTools, Usage: &llm.Usage{InputTokens: 10, OutputTokens: 3}}
	for i, c := range list {
		id, rest, _ := strings.Cut(c, " ")
		name, args, _ := strings.Cut(rest, " ")
		d.Calls = append(d.Calls, llm.CallDelta{Index: i, ID: id, Name: name, Arguments: args})
	}
	return reply{deltas: []llm.Delta{d}}
}

// tools carries out calls with a function, and records them as the dispatcher does.
type tools struct {
	log *session.Log
	do  func(ctx context.Context, c tool.Call) (tool.Result, error)
	got []tool.Call

	expected []string
}

func (ts *tools) Preload(name string) { ts.expected = append(ts.expected, name) }

func (ts *tools) Definitions() []tool.Definition { return []tool.Definition{{Name: "ls"}} }

func (ts *tools) Repair(_ context.Context, name, args string) (string, string) {
	return strings.TrimPrefix(name, "functions."), args
}

func (ts *tools) CallAll(ctx context.Context, calls []tool.Call, limit string) ([]tool.Result, error) {
	ts.got = append(ts.got, calls...)
	results, errs := make([]tool.Result, len(calls)), make([]error, len(calls))
	var wg sync.WaitGroup
	for i, c := range calls {
		wg.Go(func() { results[i], errs[i] = ts.call(ctx, c, limit) })
	}
	wg.Wait()
	return results, errors.Join(errs...)
}

func (ts *tools) call(ctx context.Context, c tool.Call, limit string) (tool.Result, error) {
	r, err := tool.Result{Output: tool.Text(c.ID)}, error(nil)
	if ts.do != nil {
		r, err = ts.do(ctx, c)
	}
	r.LimitMessage = limit
	body, jsonErr := json.Marshal(llm.ResultMessage(c.ID, c.Tool, r))
	_, logErr := ts.log.Append(context.WithoutCancel(ctx), session.Draft{Type: session.TypeToolResult, Turn: c.Turn, Step: c.Step, Call: c.ID, Body: body})
	return r, errors.Join(err, jsonErr, logErr)
}

// bench is an agent with everything that it needs.
type bench struct {
	*Agent
	t     testing.TB
	store *memory
	model *script
	tools *tools
}

func newBench(t testing.TB, opts Options, replies ...reply) *bench {
	t.Helper()
	store := &memory{}
	log := session.NewLog(store, "s", time.Now)
	b := &bench{t: t, store: store, model: &script{t: t, replies: replies}, tools: &tools{log: log}}
	for limit, usual := range map[*int]int{&opts.MaxSteps: 50, &opts.MaxCallsPerStep: 15, &opts.RepeatedCalls: 4} {
		if *limit == 0 {
			*limit = usual
		}
	}
	opts.Model, opts.Tools, opts.Log, opts.Provider, opts.Cwd = b.model, b.tools, log, "script", "/work"
	b.Agent = New(opts)
	return b
}

// run runs a turn to its end and returns the events and the last one's body.
func (b *bench) run(ctx context.Context, prompt string) ([]session.Event, session.TurnEnded) {
	b.t.Helper()
	var events []session.Event
	for e, err := range b.Run(ctx, prompt) {
		if err != nil {
			b.t.Fatalf("after %d events: %v", len(events), err)
		}
		events = append(events, e)
	}
	last := events[len(events)-1]
	if last.Type != session.TypeTurnEnded {
		b.t.Fatalf("the last event is %s", last.Type)
	}
	return events, decode[session.TurnEnded](b.t, last.Body)
}

func decode[T any](t testing.TB, data []byte) T {
	t.Helper()
	var v T
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// results lists the results in a conversation as "id output".
func results(t testing.TB, messages []llm.Message) []string {
	t.Helper()
	var out []string
	for _, m := range messages {
		if m.Kind != llm.ToolResult {
			continue
		}
		data := decode[llm.ResultData](t, m.Data)
		e := decode[struct {
			Result struct{ Output string }
			Code   string `json:"error_code"`
			Limit  string `json:"limit_message"`
		}](t, []byte(data.Output))
		out = append(out, strings.TrimSpace(strings.Join([]string{data.CallID, e.Result.Output, e.Code, e.Limit}, " ")))
	}
	return out
}

// checkHistory compares the agent's conversation with the one that the log gives: a
// resumed session must go on where it stopped.
func (b *bench) checkHistory() {
	b.t.Helper()
	past, err := ReadConversation(b.store.all())
	if err != nil {
		b.t.Fatal(err)
	}
	if diff := cmp.Diff(b.conversation.messages, past.messages); diff != "" {
		b.t.Errorf("the log gives another conversation than the agent had: %s", diff)
	}
	if past.turn != b.conversation.turn {
		b.t.Errorf("the log stands at turn %d, the agent at %d", past.turn, b.conversation.turn)
	}
	if _, err := session.VerifyStore(b.store.all()); err != nil {
		b.t.Error(err)
	}
	checkPairs(b.t, b.conversation.messages)
}

// checkPairs: each call has exactly one result, behind it and before anything
// that is no result, and each result has its call.
func checkPairs(t testing.TB, messages []llm.Message) {
	t.Helper()
	var open []string
	for i, m := range messages {
		switch m.Kind {
		case llm.ToolCall:
			open = append(open, decode[llm.CallData](t, m.Data).ID)
		case llm.ToolResult:
			id := decode[llm.ResultData](t, m.Data).CallID
			if len(open) == 0 || open[0] != id {
				t.Fatalf("message %d is the result of %s; open are %v", i, id, open)
			}
			open = open[1:]
		case llm.Assistant: // a text between the calls of a step
			if len(open) > 0 && messages[i+1].Kind != llm.ToolCall {
				t.Fatalf("message %d is a text while %v have no result", i, open)
			}
		default:
			if len(open) > 0 {
				t.Fatalf("message %d (%s) comes while %v have no result", i, m.Kind, open)
			}
		}
	}
	if len(open) > 0 {
		t.Fatalf("%v have no result", open)
	}
}

func saying(text string) func() string { return func() string { return text } }

// The reasoning of a model, and the data that its provider wants back, are sent again in
// their order, also in a resumed session, as checkHistory checks.
func TestReasoningIsSentAgain(t *testing.T) {
	kept := llm.ProviderData{Provider: "p", Model: "m", Data: json.RawMessage(`"signed"`)}
	b := newBench(t, Options{ModelName: "m"}, reply{deltas: []llm.Delta{
		{Reasoning: "I need a l"}, {Reasoning: "ist"}, {ProviderData: &llm.ProviderDataDelta{PartType: llm.ReasoningPart, ProviderData: kept}},
		{Text: "I look."}, {Calls: []llm.CallDelta{{ID: "a", Name: "ls", ProviderData: &kept}}},
		{Reasoning: "and again"}, {Text: "Once more."}, {Calls: []llm.CallDelta{{Index: 1, ID: "b", Name: "ls"}}}, {Finish: llm.FinishTools},
	}}, text("done"))
	events, _ := b.run(t.Context(), "hi")
	bytes := 0
	for _, e := range events {
		if e.Type == session.TypeReasoning {
			bytes += decode[session.Reasoning](t, e.Body).Bytes
		}
	}
	if bytes != len("I need a list"+"and again") {
		t.Errorf("%d bytes of reasoning were told of", bytes)
	}
	asked := b.model.asked[1].Messages
	want := []llm.Message{
		{Kind: llm.User, Content: "hi"},
		{Kind: llm.Assistant, Content: "I look.", Parts: []llm.Part{{Type: llm.ReasoningPart, Text: "I need a list", ProviderData: &kept}}},
		{Kind: llm.ToolCall, Content: "ls()", Data: asked[2].Data, Parts: []llm.Part{{Type: llm.CallPart, ProviderData: &kept}}},
		{Kind: llm.Assistant, Content: "Once more.", Parts: []llm.Part{{Type: llm.ReasoningPart, Text: "and again"}}},
		{Kind: llm.ToolCall, Content: "ls()", Data: asked[4].Data},
	}
	if diff := cmp.Diff(want, asked[:5]); diff != "" {
		t.Errorf("asked again with (-want +got):\n%s", diff)
	}
	b.checkHistory()
}

func TestATurnWithoutTools(t *testing.T) {
	b := newBench(t, Options{System: saying("be brief"), ModelName: "m1"}, text("hello there"))
	events, end := b.run(t.Context(), "hi")
	var types []string
	for _, e := range events {
		types = append(types, string(e.Type))
		if stored := e.Seq != 0; stored == (e.Type == session.TypeDelta) {
			t.Errorf("%s has number %d", e.Type, e.Seq)
		}
	}
	want := []string{"message", "turn.started", "message", "delta", "delta", "message", "step.ended", "turn.ended"}
	if diff := cmp.Diff(want, types); diff != "" {
		t.Error(diff)
	}
	if end.Reason != session.EndAnswered || end.Steps != 1 || end.Calls != 0 || end.Usage != (llm.Usage{InputTokens: 10, OutputTokens: 2}) {
		t.Errorf("got %+v", end)
	}
	wantMessages := []llm.Message{{Kind: llm.System, Content: "be brief"}, {Kind: llm.User, Content: "hi"}, {Kind: llm.Assistant, Content: "hello there"}}
	if diff := cmp.Diff(wantMessages, b.conversation.messages); diff != "" {
		t.Error(diff)
	}
	asked := b.model.asked[0]
	if asked.Model != "m1" || len(asked.Tools) != 1 || len(asked.Messages) != 2 {
		t.Errorf("asked %+v", asked)
	}
	started := decode[session.TurnStarted](t, events[1].Body)
	if started != (session.TurnStarted{Prompt: "hi", Provider: "script", Model: "m1", Workspace: "/work"}) {
		t.Errorf("started %+v", started)
	}
	b.checkHistory()
}

func TestResultsStandInTheOrderOfTheirCalls(t *testing.T) {
	b := newBench(t, Options{}, calls("a ls {}", "b ls {}", "c ls {}"), text("done"))
	// Each waits for the one behind it, so they are recorded in reverse.
	ended := map[string]chan struct{}{"a": make(chan struct{}), "b": make(chan struct{}), "c": make(chan struct{}), "": make(chan struct{})}
	close(ended[""])
	behind := map[string]string{"a": "b", "b": "c", "c": ""}
	b.tools.do = func(_ context.Context, c tool.Call) (tool.Result, error) {
		<-ended[behind[c.ID]]
		defer close(ended[c.ID])
		return tool.Result{Output: tool.Text("of " + c.ID)}, nil
	}
	_, end := b.run(t.Context(), "go")
	want := []string{"a of a", "b of b", "c of c"}
	if diff := cmp.Diff(want, results(t, b.model.asked[1].Messages)); diff != "" {
		t.Error(diff)
	}
	if end.Calls != 3 || end.Failed != 0 || end.Steps != 2 || end.Usage.InputTokens != 20 {
		t.Errorf("got %+v", end)
	}
	for _, c := range b.tools.got {
		if c.Tool != "ls" || string(c.Args) != "{}" || c.Cwd != "/work" || c.Turn != 1 || c.Step != 1 || c.Caller != tool.CallerAgent {
			t.Errorf("called %+v", c)
		}
	}
	b.checkHistory()
}

func TestACallWithTooLargeArgumentsIsToldSo(t *testing.T) {
	large := fmt.Sprintf("b ls {%q:%q}", "path", strings.Repeat("x", llm.MaxArgumentBytes))
	b := newBench(t, Options{}, calls("a ls {}", large, "c ls {}"), text("done"))
	_, end := b.run(t.Context(), "go")
	if end.Reason != session.EndAnswered || end.Calls != 3 || end.Failed != 1 {
		t.Errorf("got %+v", end)
	}
	if diff := cmp.Diff([]string{"a a", "b  INVALID_ARGUMENTS", "c c"}, results(t, b.model.asked[1].Messages)); diff != "" {
		t.Error(diff)
	}
	if len(b.tools.got) != 2 {
		t.Errorf("%d calls were carried out", len(b.tools.got))
	}
	b.checkHistory()
}

func TestCallsBeyondTheLimitOfAStepAreToldSo(t *testing.T) {
	b := newBench(t, Options{MaxCallsPerStep: 2, MaxSteps: 2}, calls("a ls {}", "b ls {}", "c ls {}", "d ls {}"), calls("e ls {}", "f ls {}", "g ls {}"), text("done"))
	_, end := b.run(t.Context(), "go")
	want := []string{"a a", "b b", "c  LIMIT_REACHED", "d  LIMIT_REACHED"}
	if diff := cmp.Diff(want, results(t, b.model.asked[1].Messages)); diff != "" {
		t.Error(diff)
	}
	// In the last step there is no next reply to call again in.
	for _, m := range b.conversation.messages {
		if m.Kind == llm.ToolResult {
			data := decode[llm.ResultData](t, m.Data)
			if data.CallID == "g" && (strings.Contains(data.Output, "next reply") || !strings.Contains(data.Output, `"limit_reached":true`)) {
				t.Errorf("the last step says %s", data.Output)
			}
		}
	}
	for e := range b.store.all() {
		m, _ := e.Message()
		if m.Kind != llm.ToolResult || !strings.Contains(string(m.Data), "LIMIT_REACHED") {
			continue
		}
		envelope := decode[struct{ Metadata struct{ Timestamp int64 } }](t, []byte(decode[llm.ResultData](t, m.Data).Output))
		if off := e.Time.Sub(time.UnixMilli(envelope.Metadata.Timestamp)); off < -time.Second || off > time.Minute {
			t.Errorf("the result of %s is recorded at %v, and says %v", e.Call, e.Time, envelope.Metadata.Timestamp)
		}
	}
	for _, c := range b.tools.got {
		if slices.Contains([]string{"c", "d", "g"}, c.ID) {
			t.Errorf("%s was carried out", c.ID)
		}
	}
	if end.Calls != 7 || end.Failed != 3 || end.Denied != 0 {
		t.Errorf("got %+v", end)
	}
	b.checkHistory()
}

func TestTheLastStepHasNoToolsAndEndsTheTurn(t *testing.T) {
	last := calls("z ls {}")
	last.deltas = append([]llm.Delta{{Text: "I stop here"}}, last.deltas...)
	for name, c := range map[string]struct {
		last reply
		text string
	}{"when it answers": {text("so far"), "so far"}, "when it calls all the same": {last, "I stop here"}, "when it only calls": {calls("z ls {}"), ""}} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, Options{MaxSteps: 2}, calls("a ls {}"), calls("b ls {}"), c.last)
			_, end := b.run(t.Context(), "go")
			if end.Reason != session.EndLimit || end.Limit != "max_tool_turns" || end.Steps != 3 {
				t.Errorf("got %+v", end)
			}
			if len(b.model.asked) != 3 || len(b.model.asked[1].Tools) == 0 || len(b.model.asked[2].Tools) != 0 {
				t.Error("the tools are not taken away at the end, or earlier")
			}
			want := []string{"a a", "b b  Tool call limit reached (2). Answer now with what you have."}
			if diff := cmp.Diff(want, results(t, b.model.asked[2].Messages)); diff != "" {
				t.Error(diff)
			}
			if len(b.tools.got) != 2 {
				t.Errorf("%d calls were carried out", len(b.tools.got))
			}
			if got := b.conversation.messages[len(b.conversation.messages)-1]; c.text != "" && got.Content != c.text {
				t.Errorf("it ends with %+v", got)
			}
			b.checkHistory()
		})
	}
}

func TestWhyATurnEnds(t *testing.T) {
	provider := &llm.ProviderError{Provider: "script", Status: 401, Message: "bad key", Hint: "set a key"}
	passing := &llm.ProviderError{Provider: "script", Message: "the stream ended early", Retryable: true}
	for name, c := range map[string]struct {
		reply reply
		want  session.TurnEnded
		kept  string // of the answer
	}{
		"the provider fails":                {reply{err: provider}, session.TurnEnded{Reason: session.EndProvider, Error: "script answered 401: bad key", Hint: "set a key"}, ""},
		"the provider fails half way":       {reply{deltas: []llm.Delta{{Text: "half an"}}, err: provider}, session.TurnEnded{Reason: session.EndProvider, Error: "script answered 401: bad key", Hint: "set a key"}, "half an"},
		"the provider fails in a call":      {reply{deltas: []llm.Delta{{Calls: []llm.CallDelta{{ID: "a", Name: "ls", Arguments: `{"path":"/`}}}}, err: provider}, session.TurnEnded{Reason: session.EndProvider, Error: "script answered 401: bad key", Hint: "set a key"}, ""},
		"it fails in a way that may pass":   {reply{deltas: []llm.Delta{{Text: "half an"}}, err: passing}, session.TurnEnded{Reason: session.EndProvider, Error: "script: the stream ended early", Hint: "try again later; the results of the turn so far are kept"}, "half an"},
		"something else fails":              {reply{err: errors.New("odd")}, session.TurnEnded{Reason: session.EndError, Error: "odd"}, ""},
		"the answer is cut":                 {reply{deltas: []llm.Delta{{Text: "long"}, {Finish: llm.FinishLength}}}, session.TurnEnded{Reason: session.EndCut, Limit: "length"}, "long"},
		"a cut answer holds calls":          {reply{deltas: []llm.Delta{{Text: "long"}, {Calls: []llm.CallDelta{{ID: "a", Name: "ls"}}}, {Finish: llm.FinishLength}}}, session.TurnEnded{Reason: session.EndCut, Limit: "length"}, "long"},
		"a filter stops it":                 {reply{deltas: []llm.Delta{{Text: "x"}, {Finish: llm.FinishFilter}}}, session.TurnEnded{Reason: session.EndCut, Limit: "content_filter"}, "x"},
		"the answer is too long to be kept": {reply{deltas: []llm.Delta{{Text: "x"}, {Text: strings.Repeat("x", llm.MaxTextBytes)}}}, session.TurnEnded{Reason: session.EndProvider, Error: fmt.Sprintf("script: it sent a text of more than %d bytes", llm.MaxTextBytes)}, "x"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, Options{}, c.reply)
			_, end := b.run(t.Context(), "go")
			end.DurationMS, c.want.Steps = 0, 1
			if diff := cmp.Diff(c.want, end); diff != "" {
				t.Error(diff)
			}
			got := ""
			if last := b.conversation.messages[len(b.conversation.messages)-1]; last.Kind == llm.Assistant {
				got = last.Content
				if partial := string(last.Data) == `{"partial":true}`; partial != (end.Reason != session.EndCut) {
					t.Errorf("partial: %v", partial)
				}
			}
			if got != c.kept || len(b.tools.got) != 0 {
				t.Errorf("kept %q, %d calls", got, len(b.tools.got))
			}
			b.checkHistory()
		})
	}
}

// TestACallThatIsWrittenAsText is told to the model once, and never run.
func TestACallThatIsWrittenAsText(t *testing.T) {
	const call = `{"name":"ls","arguments":{"path":"/"}}`
	cut := text(call)
	cut.deltas[2].Finish = llm.FinishLength
	for name, c := range map[string]struct {
		replies      []reply
		want         session.TurnEnded
		told, called int
	}{
		"and then as a call":         {[]reply{text(call), calls("a ls {}"), text("done")}, session.TurnEnded{Reason: session.EndAnswered, Steps: 3, Calls: 1}, 1, 1},
		"and then as an answer":      {[]reply{text(call), text("That is what a call looks like:\n```\n" + call + "\n```")}, session.TurnEnded{Reason: session.EndAnswered, Steps: 2}, 1, 0},
		"again":                      {[]reply{text(call), text("<tool_call>" + call + "</tool_call>")}, session.TurnEnded{Reason: session.EndLimit, Limit: llm.CallAsText, Steps: 2}, 1, 0},
		"again, behind a call":       {[]reply{text(call), calls("a ls {}"), text(call)}, session.TurnEnded{Reason: session.EndLimit, Limit: llm.CallAsText, Steps: 3, Calls: 1}, 1, 1},
		"in reasoning":               {[]reply{{deltas: []llm.Delta{{Reasoning: "Hm.\n" + call}, {Finish: llm.FinishStop}}}, text("done")}, session.TurnEnded{Reason: session.EndAnswered, Steps: 2}, 1, 0},
		"in the last step for calls": {[]reply{calls("a ls {}"), calls("b ls {}"), text(call)}, session.TurnEnded{Reason: session.EndLimit, Limit: llm.CallAsText, Steps: 3, Calls: 2}, 0, 2},
		"in an answer that is cut":   {[]reply{cut}, session.TurnEnded{Reason: session.EndCut, Limit: "length", Steps: 1}, 0, 0},
		"of another tool":            {[]reply{text(`{"name":"rm","arguments":{}}`)}, session.TurnEnded{Reason: session.EndAnswered, Steps: 1}, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, Options{MaxSteps: 3}, c.replies...)
			_, end := b.run(t.Context(), "go")
			end.DurationMS, end.Usage = 0, llm.Usage{}
			if diff := cmp.Diff(c.want, end); diff != "" {
				t.Error(diff)
			}
			told := 0
			for _, m := range b.conversation.messages {
				if name, _ := m.Brief(); name == llm.CallAsText && strings.Contains(m.Content, "a call of ls") {
					told++
				}
			}
			if told != c.told || len(b.tools.got) != c.called || len(b.model.asked) != len(c.replies) {
				t.Errorf("it was told %d times, %d calls were made, in %d requests", told, len(b.tools.got), len(b.model.asked))
			}
			if last := b.model.asked[1%len(c.replies)].Messages; c.told > 0 && !strings.HasPrefix(last[len(last)-1].Content, "[Your last reply") {
				t.Errorf("the second request ends with %+v", last[len(last)-1])
			}
			b.checkHistory()
		})
	}
}

// TestWhatBreaksOffIsPaid: the usage that a provider reports counts for a failed attempt
// and for a step that breaks off, too.
func TestWhatBreaksOffIsPaid(t *testing.T) {
	again := &llm.Restart{Err: &llm.ProviderError{Provider: "script", Message: "overloaded", Retryable: true}, Attempt: 2, Attempts: 4}
	b := newBench(t, Options{Price: &llm.Price{Input: 1, Output: 10}},
		reply{deltas: []llm.Delta{{Usage: &llm.Usage{InputTokens: 1000}}, {Text: "wr"}, {Restart: again}, {Calls: []llm.CallDelta{{ID: "a", Name: "ls"}}},
			{Finish: llm.FinishTools, Usage: &llm.Usage{InputTokens: 2000, OutputTokens: 100}}}},
		reply{deltas: []llm.Delta{{Usage: &llm.Usage{InputTokens: 3000}}, {Text: "half"}}, err: &llm.ProviderError{Provider: "script", Message: "gone"}})
	_, end := b.run(t.Context(), "go")
	if want := (llm.Usage{InputTokens: 6000, OutputTokens: 100}); end.Usage != want || end.Cost == nil || *end.Cost != 0.007 || end.Reason != session.EndProvider {
		t.Errorf("got %+v", end)
	}
	var steps []session.StepEnded
	for e := range b.store.all() {
		if e.Type == session.TypeStepEnded {
			steps = append(steps, decode[session.StepEnded](t, e.Body))
		}
	}
	if len(steps) != 1 || steps[0].Restarts != 1 || steps[0].Usage.InputTokens != 2000 || *steps[0].Cost != 0.003 {
		t.Errorf("got %+v", steps)
	}
}

func TestWhatCameBeforeARestartIsVoid(t *testing.T) {
	again := &llm.Restart{Err: &llm.ProviderError{Provider: "script", Message: "overloaded", Retryable: true}, Wait: 38 * time.Second, Attempt: 2, Attempts: 4}
	b := newBench(t, Options{}, reply{deltas: []llm.Delta{
		{Text: "wrong"}, {Calls: []llm.CallDelta{{ID: "a", Name: "ls"}}}, {Restart: again}, {Text: "right"}, {Finish: llm.FinishStop},
	}})
	events, end := b.run(t.Context(), "go")
	if end.Reason != session.EndAnswered || b.conversation.messages[1].Content != "right" || len(b.tools.got) != 0 {
		t.Errorf("got %+v, %+v", end, b.conversation.messages)
	}
	if !slices.ContainsFunc(events, func(e session.Event) bool {
		return e.Type == session.TypeRestart && string(e.Body) == `{"error":"script: overloaded","wait_ms":38000,"attempt":2,"attempts":4}`
	}) {
		t.Error("the restart is not shown, with its wait")
	}
	b.checkHistory()
}

func TestATurnIsCancelledWhileTheModelSpeaks(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	b := newBench(t, Options{}, reply{deltas: []llm.Delta{{Text: "half"}}, after: func(ctx context.Context) error {
		cancel(errors.New("interrupted by the user"))
		<-ctx.Done()
		return context.Cause(ctx)
	}})
	_, end := b.run(ctx, "go")
	if end.Reason != session.EndCancelled || end.Error != "interrupted by the user" {
		t.Errorf("got %+v", end)
	}
	if last := b.conversation.messages[len(b.conversation.messages)-1]; last.Content != "half" || string(last.Data) != `{"partial":true}` {
		t.Errorf("kept %+v", last)
	}
	b.checkHistory()
}

func TestATurnIsCancelledWhileCallsRun(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	b := newBench(t, Options{}, calls("a ls {}", "b ls {}"))
	var both sync.WaitGroup
	both.Add(2)
	b.tools.do = func(ctx context.Context, c tool.Call) (tool.Result, error) {
		both.Done()
		both.Wait()
		cancel()
		<-ctx.Done()
		return tool.Failed(tool.CodeCancelled, tool.InternalError, "cancelled"), nil
	}
	_, end := b.run(ctx, "go")
	if end.Reason != session.EndCancelled || end.Calls != 2 || end.Failed != 2 || end.Stopped != 2 {
		t.Errorf("got %+v", end)
	}
	if diff := cmp.Diff([]string{"a  TOOL_CANCELLED", "b  TOOL_CANCELLED"}, results(t, b.conversation.messages)); diff != "" {
		t.Error(diff)
	}
	b.checkHistory()
}

func TestATurnThatWasCancelledBeforeIsRecorded(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	b := newBench(t, Options{})
	_, end := b.run(ctx, "go")
	if end.Reason != session.EndCancelled || len(b.tools.got) != 0 {
		t.Errorf("got %+v", end)
	}
	b.checkHistory()
}

func TestAConsumerThatStopsEarlyCancelsTheTurn(t *testing.T) {
	for _, at := range []session.Type{session.TypeTurnStarted, session.TypeDelta, session.TypeToolCall, session.TypeToolResult, session.TypeStepEnded} {
		t.Run(string(at), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // fails when a goroutine stays behind
				first := calls("a ls {}")
				first.deltas = append([]llm.Delta{{Text: "let me look"}}, first.deltas...)
				first.after = func(ctx context.Context) error {
					if at == session.TypeTurnStarted || at == session.TypeDelta {
						<-ctx.Done()
						return context.Cause(ctx)
					}
					return nil
				}
				b := newBench(t, Options{}, first, reply{after: func(ctx context.Context) error {
					<-ctx.Done()
					return context.Cause(ctx)
				}})
				b.tools.do = func(ctx context.Context, c tool.Call) (tool.Result, error) {
					if at == session.TypeToolCall || at == session.TypeStepEnded {
						<-ctx.Done()
						return tool.Failed(tool.CodeCancelled, tool.InternalError, "cancelled"), nil
					}
					return tool.Result{Output: tool.Text("x")}, nil
				}
				for e, err := range b.Run(t.Context(), "go") {
					if err != nil {
						t.Fatal(err)
					}
					if e.Type == at {
						break
					}
				}
				types := b.store.types()
				if types[len(types)-1] != "turn.ended" {
					t.Fatalf("it ends with %v", types)
				}
				end := decode[session.TurnEnded](t, b.store.events[len(types)-1].Body)
				if end.Reason != session.EndCancelled {
					t.Errorf("got %+v", end)
				}
				b.checkHistory()
				// The next turn works, and sees its own events only.
				b.model.replies = append(b.model.replies[:len(b.model.asked)], text("again"))
				events, end := b.run(t.Context(), "and now")
				if end.Reason != session.EndAnswered || events[0].Turn != 2 {
					t.Errorf("the next turn: %+v", end)
				}
			})
		})
	}
}

func TestIDsThatRepeatAreMadeUnique(t *testing.T) {
	b := newBench(t, Options{}, calls("call_1 ls {}", "call_1_1_2 ls {}"), calls("call_1 ls {}", "call_2 ls {}"), text("one"), calls("call_1 ls {}"), text("two"))
	b.run(t.Context(), "first")
	b.run(t.Context(), "second")
	seen := map[string]bool{}
	for _, c := range b.tools.got {
		if seen[c.ID] {
			t.Errorf("%s was used twice", c.ID)
		}
		seen[c.ID] = true
	}
	if len(seen) != 5 || !seen["call_1"] || !seen["call_2"] {
		t.Errorf("got %v", seen)
	}
	b.checkHistory()

	// A session that is resumed goes on with that, also for calls whose text
	// has been deleted and for a person's own.
	for i := range b.store.events {
		b.store.events[i].Body, b.store.events[i].Salt = nil, nil
	}
	b.tools.log.Append(t.Context(), session.Draft{Type: session.TypeToolResult, Call: "call_9", Body: json.RawMessage(`{}`)})
	past, err := ReadConversation(b.store.all())
	if err != nil || len(past.messages) != 0 || past.turn != 2 {
		t.Fatalf("got %+v, %v", past, err)
	}
	b2 := newBench(t, Options{Conversation: past}, calls("call_1 ls {}", "call_9 ls {}"), text("three"))
	b2.run(t.Context(), "third")
	for _, c := range b2.tools.got {
		if seen[c.ID] || c.ID == "call_9" {
			t.Errorf("%s was used twice", c.ID)
		}
		if c.Turn != 3 {
			t.Errorf("%s is of turn %d", c.ID, c.Turn)
		}
	}
}

func TestTurnsOfOneSessionShareTheConversation(t *testing.T) {
	b := newBench(t, Options{System: saying("sys")}, text("one"), calls("a ls {}"), text("two"))
	b.run(t.Context(), "first")
	_, end := b.run(t.Context(), "second")
	if end.Steps != 2 || end.Usage.InputTokens != 20 {
		t.Errorf("the second turn counts the first one: %+v", end)
	}
	var kinds []string
	for _, m := range b.model.asked[2].Messages {
		kinds = append(kinds, string(m.Kind))
	}
	if diff := cmp.Diff([]string{"system", "user", "assistant", "user", "tool_call", "tool_result"}, kinds); diff != "" {
		t.Error(diff)
	}
	b.checkHistory()
}

// A brief is sent before a prompt, and again only when it has changed, also in a resumed
// session.
func TestBriefsAreToldWhenTheyAreNew(t *testing.T) {
	date, file := "It is Monday.", "Use tabs."
	b := newBench(t, Options{System: saying("be brief. It is Monday."), Briefs: func() []Brief {
		briefs := []Brief{{"date", date}}
		if file != "" {
			briefs = append(briefs, Brief{"AGENTS.md", file})
		}
		return briefs
	}}, text("a"), text("b"), text("c"), text("d"), text("e"))
	b.run(t.Context(), "one")
	b.run(t.Context(), "two")
	date = "It is Tuesday."
	b.run(t.Context(), "three")
	past, err := ReadConversation(of(b.store.events...))
	if err != nil {
		t.Fatal(err)
	}
	b.conversation, file = past, "Use blanks."
	b.run(t.Context(), "four")
	file, date = "", "It is Monday."
	b.run(t.Context(), "five")
	want := "user:Use tabs. user:one assistant:a user:two assistant:b user:It is Tuesday. user:three assistant:c user:Use blanks. user:four assistant:d user:It is Monday. user:five"
	if got := strings.Join(outline(t, b.model.asked[4].Messages[1:]), " "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	b.checkHistory()
}

// The model reads the log: if a text was changed when it was recorded, the model reads
// the changed text.
func TestTheModelReadsWhatIsRecorded(t *testing.T) {
	b := newBench(t, Options{System: saying("no hunter2")}, calls("a ls {\"key\":\"hunter2\"}"), text("it is hunter2"), text("yes"))
	secrets := new(redact.Redactor)
	secrets.Add("hunter2")
	b.opts.Log.SetRedactor(secrets)
	b.tools.do = func(_ context.Context, c tool.Call) (tool.Result, error) {
		return tool.Result{Output: c.Args}, nil
	}
	b.run(t.Context(), "what is hunter2?")
	b.run(t.Context(), "sure?")
	b.checkHistory()
	asked := b.model.asked[2].Messages
	for _, m := range asked {
		if strings.Contains(m.Content+string(m.Data), "hunter2") {
			t.Errorf("the model reads %+v", m)
		}
	}
	if want := "user:what is [redacted]? call:a result:a assistant:it is [redacted] user:sure?"; strings.Join(outline(t, asked[1:]), " ") != want {
		t.Errorf("the model reads %s", outline(t, asked))
	}
	if string(b.tools.got[0].Args) != `{"key":"hunter2"}` {
		t.Errorf("the tool gets %s", b.tools.got[0].Args)
	}
}

func TestACallThatFailedInTheHostEndsTheTurnAndIsNoSuccess(t *testing.T) {
	errDisk := errors.New("no space left on device")
	b := newBench(t, Options{}, calls("a ls {}", "b ls {}"), text("next turn"))
	b.tools.do = func(_ context.Context, c tool.Call) (tool.Result, error) {
		if c.ID == "a" {
			return tool.Failed(tool.CodeHost, tool.InternalError, "the host has a problem"), errDisk
		}
		return tool.Result{Output: tool.Text("fine")}, nil
	}
	_, end := b.run(t.Context(), "go")
	if end.Reason != session.EndError || !strings.Contains(end.Error, errDisk.Error()) || end.Failed != 1 {
		t.Errorf("got %+v", end)
	}
	if diff := cmp.Diff([]string{"a  HOST_FAULT", "b fine"}, results(t, b.conversation.messages)); diff != "" {
		t.Error(diff)
	}
	b.checkHistory()
}

func TestATurnThatCannotBeRecordedIsAnError(t *testing.T) {
	errDisk := errors.New("no space left on device")
	for _, typ := range []session.Type{session.TypeTurnStarted, session.TypeToolCall, session.TypeTurnEnded} {
		t.Run(string(typ), func(t *testing.T) {
			b := newBench(t, Options{}, calls("a ls {}"), text("x"))
			b.store.fail = func(d session.Draft) error {
				if d.Type == typ || d.Type == session.TypeTurnEnded {
					return errDisk
				}
				return nil
			}
			var last error
			for _, err := range b.Run(t.Context(), "go") {
				last = err
			}
			if !errors.Is(last, errDisk) {
				t.Errorf("got %v", last)
			}
			if len(b.tools.got) != 0 && typ != session.TypeTurnEnded {
				t.Error("a call ran that is not in the record")
			}
		})
	}
}

// TestIDsAreNoPlaceForText: a call's ID is in the headers of the log, which are never deleted.
func TestIDsAreNoPlaceForText(t *testing.T) {
	deltas := []llm.Delta{{Finish: llm.FinishTools}}
	for i, id := range []string{"my password is hunter2", "\x1b[31m", "a\x00b", strings.Repeat("x", 65), "good_1"} {
		deltas[0].Calls = append(deltas[0].Calls, llm.CallDelta{Index: i, ID: id, Name: "ls", Arguments: "{}"})
	}
	b := newBench(t, Options{}, reply{deltas: deltas}, text("done"))
	b.run(t.Context(), "go")
	var got []string
	for _, c := range b.tools.got {
		got = append(got, c.ID)
	}
	if !slices.Contains(got, "good_1") || len(got) != 5 {
		t.Errorf("ids %q", got)
	}
	for _, id := range got {
		if !tool.ValidName(id) {
			t.Errorf("the id %q went into the log", id)
		}
	}
	b.checkHistory()
}

// TestATurnThatGoesRoundInACircleEnds: the same calls have the same results, and no call
// has a new one.
func TestATurnThatGoesRoundInACircleEnds(t *testing.T) {
	// A tool fails, or not, as its name says; "new" comes to another result each time.
	for _, c := range []struct {
		name  string
		steps []string // calls of a step, by name; the last is repeated for ever
		ends  int      // in this step; 0: it does not
	}{
		{"one call", []string{"same"}, 4},
		{"three calls at once", []string{"same fails other"}, 4},
		{"the same call three times at once", []string{"same same same"}, 4},
		{"two calls in turn", []string{"same", "other", "same", "other", "same", "other", "same", "other", "new"}, 7},
		{"after something else", []string{"other", "new", "same"}, 6},
		{"results differ", []string{"new"}, 0},
		{"a test that fails again beside an edit", []string{"new fails"}, 0},
		{"a test that fails again after an edit", []string{"fails", "new", "fails", "new", "fails", "new", "fails", "new", "fails", "new"}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			var replies []reply
			for i := range 12 {
				var lines []string
				for n, name := range strings.Fields(c.steps[min(i, len(c.steps)-1)]) {
					lines = append(lines, fmt.Sprintf("c%d_%d %s {}", i, n, name))
				}
				replies = append(replies, calls(lines...))
			}
			b := newBench(t, Options{}, append(replies, text("done"))...)
			times, counted := map[string]int{}, map[string]int{}
			var mu sync.Mutex
			b.tools.do = func(_ context.Context, c tool.Call) (tool.Result, error) {
				mu.Lock()
				defer mu.Unlock()
				r := tool.Result{Output: tool.Text(c.Tool), Repeats: 1}
				if c.Tool == "fails" {
					r = tool.Failed(tool.CodeFailed, tool.InternalError, "no")
				}
				if counted[c.Tool] != c.Step && c.Tool != "new" {
					counted[c.Tool] = c.Step
					times[c.Tool]++
				}
				r.Repeats = max(times[c.Tool], 1)
				return r, nil
			}
			_, end := b.run(t.Context(), "go")
			if c.ends == 0 && end.Reason != session.EndAnswered || c.ends > 0 && (end.Limit != "repeated_calls" || end.Steps != c.ends) {
				t.Errorf("got %+v", end)
			}
			b.checkHistory()
		})
	}
}

// TestACallIsExpectedWhileItIsWritten: the tools get a name before the reply is complete,
// even if the reply fails.
func TestACallIsExpectedWhileItIsWritten(t *testing.T) {
	b := newBench(t, Options{}, reply{
		deltas: []llm.Delta{{Text: "I look."}, {Calls: []llm.CallDelta{{ID: "a", Name: "ls"}}}, {Calls: []llm.CallDelta{{Arguments: "{"}}}},
		err:    &llm.ProviderError{Provider: "script", Message: "gone"},
	})
	_, end := b.run(t.Context(), "go")
	if diff := cmp.Diff([]string{"ls"}, b.tools.expected); diff != "" || len(b.tools.got) != 0 || end.Reason != session.EndProvider {
		t.Errorf("%s: %d calls were made, and the tools expected (-want +got):\n%s", end.Reason, len(b.tools.got), diff)
	}
}

// The log has a call as it was sent and as it was meant, and the conversation only the latter.
func TestACallIsRecordedAsItIsMeantAndAsItWasSent(t *testing.T) {
	b := newBench(t, Options{}, calls(`a functions.ls {}`, `b functions.ls {"path":"a",}`, `c ls {}`), text("done"))
	b.run(t.Context(), "go")
	var sent []string
	for e := range b.store.all() {
		if m, ok := e.Message(); ok && m.Kind == llm.ToolCall {
			call := decode[llm.CallData](t, m.Data).Function
			got := call.Name + call.Arguments
			if call.Original != nil {
				got += " for " + call.Original.Name + call.Original.Arguments
			}
			sent = append(sent, got)
		}
	}
	if want := []string{`ls{} for functions.ls{}`, `ls{"path":"a"} for functions.ls{"path":"a",}`, `ls{}`}; !slices.Equal(sent, want) {
		t.Errorf("the log has %q, want %q", sent, want)
	}
	for _, c := range b.tools.got {
		if c.Tool != "ls" || strings.Contains(string(c.Args), ",") {
			t.Errorf("it called %s %s", c.Tool, c.Args)
		}
	}
	for _, m := range b.model.asked[1].Messages {
		if strings.Contains(string(m.Data), "functions.") {
			t.Errorf("the model is sent %s", m.Data)
		}
	}
	b.checkHistory()
}
