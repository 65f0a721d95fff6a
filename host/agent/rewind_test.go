package agent

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/session"
	"github.com/stockade-dev/stockade/host/tool"
)

// wordsIn lists the user messages of a request that a person has written.
func wordsIn(messages []llm.Message) (texts []string) {
	for _, m := range messages {
		if _, brief := m.Brief(); m.Kind == llm.User && !brief {
			texts = append(texts, m.Content)
		}
	}
	return texts
}

// TestTurnsToGoBackToShareTheirMessages: a session that is twice as long needs about twice the memory,
// although old results are shortened from time to time.
func TestTurnsToGoBackToShareTheirMessages(t *testing.T) {
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	memory := func(turns int) float64 {
		before, c := heap(), &Conversation{}
		for turn := 1; turn <= turns; turn++ {
			id := fmt.Sprint("c", turn)
			for _, e := range []session.Event{event(turn, session.TypeTurnStarted, "", session.TurnStarted{}), said(turn, llm.User, "go"), called(turn, id), returned(turn, id)} {
				c.add(e)
			}
			if turn%5 == 0 {
				c.add(event(turn, session.TypeContextReduced, "", session.ContextReduced{Parts: []session.ContextReduction{{Part: session.PartResult, Message: c.numbered + 1, Head: 1}}}))
			}
		}
		used := float64(heap() - before)
		runtime.KeepAlive(c)
		return used
	}
	if short, long := memory(1000), memory(2000); long > 2.6*short {
		t.Errorf("1,000 turns need %.0f bytes, and 2,000 turns %.0f", short, long)
	}
}

// TestWhatIsSaidDuringATurn reaches the next request after the results, as the person's words,
// and is in the log. What comes when no request follows is left to the caller.
func TestWhatIsSaidDuringATurn(t *testing.T) {
	var waiting [][]string
	steer := func() []string {
		next := waiting[0]
		waiting = waiting[1:]
		return next
	}
	b := newBench(t, Options{Steer: steer}, calls("a ls {}", "b ls {}"), calls("c ls {}"), text("done"))
	waiting = [][]string{{"use tabs", "and no blanks"}, nil, {"too late"}}
	b.tools.do = func(_ context.Context, c tool.Call) (tool.Result, error) {
		r := tool.Result{Output: tool.Text(c.ID)}
		if c.ID == "b" {
			r = tool.Failed(tool.CodeDenied, tool.PermissionDenied, "no")
			r.PersonSays = "not b"
		}
		return r, nil
	}
	b.run(t.Context(), "go")
	if len(waiting) != 1 {
		t.Errorf("%d times nobody was asked for more", len(waiting))
	}
	second := b.model.asked[1].Messages
	if diff := cmp.Diff([]string{"go", "not b", "use tabs", "and no blanks"}, wordsIn(second)); diff != "" {
		t.Error(diff)
	}
	for i, m := range second[len(second)-3:] {
		if !m.IsDuringTurn() {
			t.Errorf("message %d from the end is %+v", 3-i, m)
		}
	}
	if diff := cmp.Diff(wordsIn(second), wordsIn(b.model.asked[2].Messages)); diff != "" {
		t.Error(diff)
	}
	b.checkHistory()
}

func TestATurnThatEndsTakesNothingMore(t *testing.T) {
	b := newBench(t, Options{RepeatedCalls: 2, Steer: func() []string { t.Error("somebody is asked"); return nil }}, calls("a ls {}"))
	b.tools.do = func(context.Context, tool.Call) (tool.Result, error) {
		return tool.Result{Output: tool.Text("same"), Repeats: 2}, nil
	}
	if _, end := b.run(t.Context(), "go"); end.Limit != "repeated_calls" {
		t.Errorf("it ended by %+v", end)
	}
}

// TestRewind: the next request knows nothing of the turns that were taken back, nor does one
// of a resumed session, and the log keeps their events.
func TestRewind(t *testing.T) {
	b := newBench(t, Options{System: saying("sys")}, text("one"), calls("a ls {}"), text("two"), text("three"), text("four"), text("five"))
	b.run(t.Context(), "first")
	b.run(t.Context(), "second")
	b.run(t.Context(), "third")
	before := len(b.store.types())
	if err := b.Rewind(t.Context(), 2, []string{"/ws/a"}); err != nil {
		t.Fatal(err)
	}
	b.checkHistory()
	b.run(t.Context(), "fourth")
	asked := b.model.asked[4].Messages
	if diff := cmp.Diff([]string{"first", "fourth"}, wordsIn(asked)); diff != "" {
		t.Error(diff)
	}
	if !slices.ContainsFunc(asked, func(m llm.Message) bool {
		name, _ := m.Brief()
		return name == "rewind" && strings.Contains(m.Content, "/ws/a")
	}) {
		t.Error("the model is not told what has changed")
	}
	b.checkHistory()
	if got := b.store.types()[before:]; got[0] != string(session.TypeRewound) {
		t.Errorf("what is recorded is %v", got)
	}
	for _, turn := range []int{0, 2, 3, 9, -1} {
		if b.Rewind(t.Context(), turn, nil) == nil {
			t.Errorf("it went back to before turn %d", turn)
		}
	}
	if err := b.Rewind(t.Context(), 1, nil); err != nil {
		t.Fatal(err)
	}
	b.run(t.Context(), "fifth")
	if diff := cmp.Diff([]string{"fifth"}, wordsIn(b.model.asked[5].Messages)); diff != "" {
		t.Error(diff)
	}
	if m := b.model.asked[5].Messages[0]; m.Kind != llm.System || m.Content != "sys" {
		t.Errorf("the first message is %+v", m)
	}
	b.checkHistory()
}
