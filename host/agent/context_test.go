package agent

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/session"
	"github.com/stockade-dev/stockade/host/tool"
)

func TestATurnTellsWhatItUsed(t *testing.T) {
	tests := []struct {
		name    string
		opts    Options
		usage   []*llm.Usage // of each step
		context *session.ContextUse
		cost    float64 // 0: not known
	}{
		{"of the last request the context, of all the cost", Options{ContextTokens: 1000, Price: &llm.Price{Input: 1, Output: 10}}, []*llm.Usage{{InputTokens: 100, OutputTokens: 20}, {InputTokens: 150, OutputTokens: 5}},
			&session.ContextUse{Used: 155, Limit: 1000}, 0.0005},
		{"a provider that says nothing", Options{ContextTokens: 1000, Price: &llm.Price{Input: 1, Output: 10}}, []*llm.Usage{nil, nil}, nil, 0},
		{"a price that is not known", Options{}, []*llm.Usage{{InputTokens: 100, OutputTokens: 20}, {InputTokens: 150, OutputTokens: 5}}, nil, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t, tt.opts,
				reply{deltas: []llm.Delta{{Calls: []llm.CallDelta{{ID: "a", Name: "ls"}}}, {Finish: llm.FinishTools, Usage: tt.usage[0]}}},
				reply{deltas: []llm.Delta{{Text: "done"}, {Finish: llm.FinishStop, Usage: tt.usage[1]}}})
			_, end := b.run(t.Context(), "go")
			if diff := cmp.Diff(tt.context, end.Context); diff != "" {
				t.Errorf("context (-want +got):\n%s", diff)
			}
			if (end.Cost == nil) != (tt.cost == 0) || end.Cost != nil && *end.Cost != tt.cost {
				t.Errorf("it cost %v, want %v", end.Cost, tt.cost)
			}
			// The log says the same as the agent itself.
			past, err := ReadConversation(b.store.all())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(b.ContextReport(t.Context()).Spent, past.spent); diff != "" || past.spent.Turns != 1 {
				t.Errorf("spent by the agent, and by the log:\n%s", diff)
			}
		})
	}
}

func TestWhatFillsTheContext(t *testing.T) {
	call := llm.CallMessage(llm.NewCall("a", "ls", "{}"))
	result := llm.ResultMessage("a", "ls", tool.Result{Output: tool.Text("a file")})
	var past Conversation
	for i, m := range []llm.Message{
		{Kind: llm.System, Content: "12345"}, {Kind: llm.User, Content: "first"}, {Kind: llm.Assistant, Content: "one"},
		{Kind: llm.User, Content: "second"}, call, result, {Kind: llm.Assistant, Content: "both"},
	} {
		past.append(m, []string{4: "a", 5: "a", 6: ""}[i])
	}
	b := newBench(t, Options{Conversation: past, HistoryChars: 500, ContextTokens: 1000})
	want := ContextReport{
		System: 5, Prompts: 11, Answers: 7, Calls: size(call), Results: size(result), ByTool: map[string]int{"ls": size(call) + size(result)},
		Tools: 2, Budget: 500, Limit: 1000,
	}
	want.Tokens = (want.System + want.Prompts + want.Answers + want.Calls + want.Results + want.Tools + 2) / 3
	if diff := cmp.Diff(want, b.ContextReport(t.Context())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWhatGoesWithAPromptIsReadAndNotTyped(t *testing.T) {
	b := newBench(t, Options{}, reply{deltas: []llm.Delta{{Text: "done"}, {Finish: llm.FinishStop}}})
	var started session.TurnStarted
	for e, err := range b.Run(t.Context(), "go", Attachment{Text: "a file"}, Attachment{"an image", []tool.Image{{Mime: "image/png", Data: []byte("png")}}}) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Type == session.TypeTurnStarted {
			started = decode[session.TurnStarted](t, e.Body)
		}
	}
	if got, want := b.conversation.messages[0].Content, "go\n\n"+llm.AttachmentsHeading+"\n\na file\n\nan image"; got != want || started.Prompt != "go" || !cmp.Equal(b.conversation.messages[0].Parts, []llm.Part{{Type: llm.ImagePart, Mime: "image/png", Data: []byte("png")}}) {
		t.Errorf("the model reads %q, and the record of the turn has %q", got, started.Prompt)
	}
}

func TestCallsOfAPersonAreAsidesUntilTheNextTurn(t *testing.T) {
	call := func(turn int, id string) []session.Event {
		result := llm.ResultMessage(id, "bash", tool.Result{Output: tool.Text(id)})
		return []session.Event{
			{Header: session.Header{Type: session.TypeToolCall, Turn: turn, Call: id}, Body: tool.Marshal(llm.CallMessage(llm.NewCall(id, "bash", "{}")))},
			{Header: session.Header{Type: session.TypeToolResult, Turn: turn, Call: id}, Body: tool.Marshal(result)},
		}
	}
	var past Conversation
	add := func(events ...session.Event) {
		for _, e := range events {
			past.add(e)
		}
	}
	names := func() (out []string) {
		for _, a := range past.PersonCalls() {
			out = append(out, a.Call.ID)
		}
		return out
	}
	add(call(0, "old")...)
	add(session.Event{Header: session.Header{Type: session.TypeTurnStarted, Turn: 1}, Body: []byte(`{}`)})
	add(call(1, "the model's")...)
	if got := names(); got != nil {
		t.Errorf("in a turn there are %q", got)
	}
	for i := range maxPersonCalls {
		add(call(0, fmt.Sprint(i))...)
	}
	add(call(0, "without a result")[0])
	if got := names(); len(got) != maxPersonCalls-1 || got[0] != "1" {
		t.Errorf("after a turn there are %q", got)
	}
}
