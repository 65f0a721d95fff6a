package agent

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/session"
	"github.com/stockade-dev/stockade/host/tool"
)

// burning are tools whose calls fail because the session has no fuel left.
type burning struct{ *tools }

func (burning) FuelIsSpent() bool { return true }

func TestALimitEndsATurn(t *testing.T) {
	price := &llm.Price{Input: 1, Output: 1}
	steps := func(n int) (out []reply) {
		for range n {
			out = append(out, calls("a ls", "b ls"))
		}
		return out
	}
	for name, c := range map[string]struct {
		opts    Options
		replies []reply
		want    string
		calls   int
	}{
		"calls":                       {Options{MaxCalls: 3}, steps(2), "turn_calls", 4},
		"tokens of a turn":            {Options{MaxTokens: 20}, steps(2), "turn_tokens", 4},
		"tokens of a session":         {Options{SessionTokens: 13}, steps(1), "session_tokens", 2},
		"money":                       {Options{MaxCost: 0.00002, Price: price}, steps(2), "max_cost", 4},
		"money without a price":       {Options{MaxCost: 1}, nil, "max_cost", 0},
		"a prompt that is too large":  {Options{HistoryChars: 1}, nil, "history_char_budget", 0},
		"a context that is too small": {Options{ContextTokens: 1}, nil, "context_tokens", 0},
	} {
		t.Run(name, func(t *testing.T) {
			c.opts.RepeatedCalls = 100
			b := newBench(t, c.opts, c.replies...)
			_, end := b.run(t.Context(), "go")
			if end.Reason != session.EndLimit || end.Limit != c.want || end.Calls != c.calls || len(b.model.asked) != len(c.replies) {
				t.Errorf("got %+v after %d requests", end, len(b.model.asked))
			}
			b.checkHistory()
		})
	}
}

func TestNoCallRunsBeyondTheLimitOfATurn(t *testing.T) {
	b := newBench(t, Options{MaxCalls: 3, RepeatedCalls: 100}, calls("a ls", "b ls"), calls("c ls", "d ls"))
	if _, end := b.run(t.Context(), "go"); end.Failed != 1 || len(b.tools.got) != 3 {
		t.Errorf("%d calls ran, %+v", len(b.tools.got), end)
	}
}

func TestATurnWithoutFuelEnds(t *testing.T) {
	b := newBench(t, Options{}, calls("a ls"))
	b.tools.do = func(context.Context, tool.Call) (tool.Result, error) {
		return tool.Failed(tool.CodeFuel, tool.InternalError, "no fuel"), nil
	}
	b.opts.Tools = burning{b.tools}
	if _, end := b.run(t.Context(), "go"); end.Reason != session.EndLimit || end.Limit != "session_fuel" {
		t.Errorf("got %+v", end)
	}
}

func TestATurnWithoutTimeEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Options{MaxTime: time.Minute}, calls("a ls"))
		b.tools.do = func(ctx context.Context, _ tool.Call) (tool.Result, error) {
			<-ctx.Done()
			return tool.Failed(tool.CodeCancelled, tool.InternalError, "stopped"), nil
		}
		if _, end := b.run(t.Context(), "go"); end.Reason != session.EndLimit || end.Limit != "turn_time" || end.Stopped != 1 {
			t.Errorf("got %+v", end)
		}
		b.checkHistory()
	})
}

// A prompt that was refused is not sent with a later one.
func TestARefusedPromptIsNotSentLater(t *testing.T) {
	b := newBench(t, Options{HistoryChars: 100, System: saying("s")}, text("done"))
	if _, end := b.run(t.Context(), strings.Repeat("too much ", 20)); end.Limit != "history_char_budget" {
		t.Fatalf("got %+v", end)
	}
	if _, end := b.run(t.Context(), "a little"); end.Reason != session.EndAnswered || len(b.model.asked[0].Messages) != 2 {
		t.Errorf("got %+v, asked %v", end, outline(t, b.model.asked[0].Messages))
	}
	b.checkHistory()
}

// A new version of a brief counts alone: the request does not hold the old one.
func TestALongBriefMayChange(t *testing.T) {
	says := "a"
	b := newBench(t, Options{HistoryChars: 10_000, NoSummaries: true, Briefs: func() []Brief { return []Brief{{"AGENTS.md", strings.Repeat(says, 6000)}} }}, text("one"), text("two"))
	b.run(t.Context(), "go")
	says = "b"
	if _, end := b.run(t.Context(), "on"); end.Reason != session.EndAnswered {
		t.Errorf("got %+v", end)
	}
	b.checkHistory()
}

func TestARefusedRequestIsSentOnceMoreWithASummary(t *testing.T) {
	tooLong := reply{err: &llm.ProviderError{Provider: "p", Code: llm.ContextExceeded, Message: "too long"}}
	long := calls("a ls " + `{"x":"` + strings.Repeat("y", 5000) + `"}`)
	for name, c := range map[string]struct {
		summary reply
		says    string
	}{
		"with the words of the model": {text("It was tried."), "> It was tried."},
		"without them":                {reply{err: errors.New("no")}, "There is no summary"},
		"cut by a filter":             {reply{deltas: []llm.Delta{{Text: "It was", Finish: llm.FinishFilter}}}, "There is no summary"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, Options{}, long, calls("b ls"), tooLong, c.summary, text("done"))
			_, end := b.run(t.Context(), "go")
			last := b.model.asked[len(b.model.asked)-1].Messages
			if end.Reason != session.EndAnswered || len(last) != 4 || !strings.Contains(last[1].Content, c.says) || last[0].Content != "go" {
				t.Errorf("got %+v; asked %v", end, outline(t, last))
			}
			b.checkHistory()
		})
	}
	b := newBench(t, Options{}, long, calls("b ls"), tooLong, text("It was tried."), tooLong)
	if _, end := b.run(t.Context(), "go"); end.Reason != session.EndProvider || len(b.model.asked) != 5 {
		t.Errorf("a request that is refused again: %+v, %d requests", end, len(b.model.asked))
	}
}

// A fallback with a smaller context gets no request above that context.
func TestASmallerModelStandsIn(t *testing.T) {
	down := reply{err: &llm.ProviderError{Status: 503, Retryable: true}}
	big := calls(`a ls {"x":"` + strings.Repeat("y", 30_000) + `"}`)
	small := &script{t: t, replies: []reply{text("done")}}
	b := newBench(t, Options{NoSummaries: true}, big, down, down)
	b.opts.Model = llm.Failover(b.model, []llm.Alternative{{Name: "small", Model: small, ContextTokens: 4000}})
	_, end := b.run(t.Context(), "go")
	if end.Reason != session.EndAnswered || len(small.asked) != 1 {
		t.Fatalf("got %+v; the small model was asked %d times", end, len(small.asked))
	}
	chars := 0
	for _, m := range small.asked[0].Messages {
		chars += size(m)
	}
	if chars > 12_000 || small.asked[0].Messages[0].Content != "go" {
		t.Errorf("the small model got %d characters: %v", chars, outline(t, small.asked[0].Messages))
	}
	b.checkHistory()
}

// A summary that another model writes is asked for there, and paid as there.
func TestAnotherModelSummarizes(t *testing.T) {
	other := &script{t: t, replies: []reply{text("It was tried.")}}
	b := newBench(t, Options{Summarizer: &llm.Alternative{Provider: "q", Name: "small", Model: other, Price: &llm.Price{Input: 1e6}}}, calls("a ls "+`{"x":"`+strings.Repeat("y", 5000)+`"}`), text("done"))
	b.run(t.Context(), "go")
	var body session.ContextCompacted
	for e, err := range b.Compact(t.Context(), "the door") {
		if err != nil {
			t.Fatal(err)
		}
		body = decode[session.ContextCompacted](t, e.Body)
	}
	if body.Summary != "It was tried." || body.Model != "small" || body.Cost == nil || *body.Cost != 10 || !strings.Contains(other.asked[0].Messages[1].Content, "the door") {
		t.Errorf("got %+v", body)
	}
	if spent := b.ContextReport(t.Context()).Spent; spent.Cost == nil || *spent.Cost != 10 {
		t.Errorf("spent %+v", spent)
	}
	b.checkHistory()
	for range b.Compact(t.Context(), "") {
		t.Error("a conversation without work is summarized")
	}
}

func TestReadArtifact(t *testing.T) {
	denied := tool.Failed(tool.CodeDenied, tool.PermissionDenied, "no")
	events := of(said(1, llm.User, "the words"), called(1, "a"), returned(1, "a"), called(1, "b"), event(1, session.TypeToolResult, "b", llm.ResultMessage("b", "ls", denied)),
		called(0, "p"), returned(0, "p"), event(2, session.TypeMessage, "", llm.BriefMessage("date", "Monday")))
	for name, want := range map[string]string{"a": "of a\n", TurnArtifact(1): "the words", "b": "", "p": "", "c": "", TurnArtifact(2): "", "": ""} {
		text, err := ReadArtifact(events, name)
		if text != want && want != "" || (err != nil) != (want == "") {
			t.Errorf("%q: %q, %v", name, text, err)
		}
	}
	large := event(1, session.TypeToolResult, "x", llm.ResultMessage("x", "ls", tool.Result{Output: tool.Text(strings.Repeat("x", maxArtifactsBytes/2))}))
	if _, err := ReadArtifact(of(returned(1, "a"), large, large), "a"); !errors.Is(err, ErrNoArtifact) {
		t.Errorf("an artifact that had to make room: %v", err)
	}
}
