package agent

import (
	"encoding/json"
	"errors"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/session"
	"github.com/stockade-dev/stockade/host/tool"
)

func event(turn int, typ session.Type, call string, body any) session.Event {
	data, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	return session.Seal(session.Draft{Type: typ, Turn: turn, Step: 1, Call: call, Body: data}, 1, time.Now(), [32]byte{}, [32]byte{})
}

func said(turn int, kind llm.Kind, text string) session.Event {
	return event(turn, session.TypeMessage, "", llm.Message{Kind: kind, Content: text})
}

func called(turn int, id string) session.Event {
	return event(turn, session.TypeToolCall, id, llm.CallMessage(llm.NewCall(id, "ls", "{}")))
}

func returned(turn int, id string) session.Event {
	return event(turn, session.TypeToolResult, id, llm.ResultMessage(id, "ls", tool.Result{Output: tool.Text("of " + id)}))
}

func deleted(e session.Event) session.Event {
	e.Body, e.Salt = nil, nil
	return e
}

func of(events ...session.Event) iter.Seq2[session.Event, error] {
	return func(yield func(session.Event, error) bool) {
		for _, e := range events {
			if !yield(e, nil) {
				return
			}
		}
	}
}

// outline returns one word for each message of a conversation.
func outline(t testing.TB, messages []llm.Message) []string {
	var out []string
	for _, m := range messages {
		switch m.Kind {
		case llm.ToolCall:
			out = append(out, "call:"+decode[llm.CallData](t, m.Data).ID)
		case llm.ToolResult:
			data := decode[llm.ResultData](t, m.Data)
			word := "result:"
			if strings.Contains(data.Output, string(tool.CodeInterrupted)) {
				word = "interrupted:"
			}
			out = append(out, word+data.CallID)
		default:
			out = append(out, string(m.Kind)+":"+m.Content)
		}
	}
	return out
}

func TestHistory(t *testing.T) {
	for name, c := range map[string]struct {
		events []session.Event
		want   string
		turn   int
	}{
		"an empty session": {nil, "", 0},
		"results come in the order of the calls": {[]session.Event{
			said(1, llm.User, "q"), called(1, "a"), called(1, "b"), returned(1, "b"), returned(1, "a"), said(1, llm.Assistant, "x"),
		}, "user:q call:a call:b result:a result:b assistant:x", 1},
		"a step without text behind another": {[]session.Event{
			said(1, llm.User, "q"), called(1, "a"), called(1, "b"), returned(1, "b"), returned(1, "a"), called(1, "c"), called(1, "d"), returned(1, "d"), returned(1, "c"),
		}, "user:q call:a call:b result:a result:b call:c call:d result:c result:d", 1},
		"a crash during a call": {[]session.Event{
			said(1, llm.User, "q"), called(1, "a"), called(1, "b"), returned(1, "b"),
		}, "user:q call:a call:b interrupted:a result:b", 1},
		"and the session goes on": {[]session.Event{
			said(1, llm.User, "q"), called(1, "a"), said(2, llm.User, "r"), said(2, llm.Assistant, "x"),
		}, "user:q call:a interrupted:a user:r assistant:x", 2},
		"a result that was found to be missing later": {[]session.Event{
			said(1, llm.User, "q"), called(1, "a"), event(1, session.TypeToolResult, "a", llm.ResultMessage("a", "ls", interruptedResult("ls"))), said(2, llm.User, "r"),
		}, "user:q call:a interrupted:a user:r", 2},
		"a call whose text is deleted": {[]session.Event{
			said(1, llm.User, "q"), deleted(called(1, "a")), called(1, "b"), returned(1, "a"), returned(1, "b"), said(1, llm.Assistant, "x"),
		}, "user:q call:b result:b assistant:x", 1},
		"a result whose text is deleted": {[]session.Event{
			said(1, llm.User, "q"), called(1, "a"), deleted(returned(1, "a")), said(1, llm.Assistant, "x"),
		}, "user:q call:a interrupted:a assistant:x", 1},
		"everything deleted": {[]session.Event{
			deleted(said(1, llm.System, "s")), deleted(said(1, llm.User, "q")), deleted(called(3, "a")), deleted(returned(3, "a")),
		}, "", 3},
		"a person's own calls": {[]session.Event{
			called(0, "p"), returned(0, "p"), said(1, llm.User, "q"), called(0, "p2"), returned(0, "p2"), said(1, llm.Assistant, "x"),
			called(0, "p3"), returned(0, "p3"), event(0, session.TypeMessage, "", llm.BriefMessage("undo", "told of p3")), said(2, llm.User, "r"),
		}, "user:q assistant:x user:told of p3 user:r", 2},
		"a result that no call asked for": {[]session.Event{
			said(1, llm.User, "q"), returned(1, "ghost"), said(1, llm.Assistant, "x"),
		}, "user:q assistant:x", 1},
		"what a command wrote where a terminal shows something else": {[]session.Event{
			said(1, llm.User, "q"), called(1, "a"),
			event(1, session.TypeToolResult, "a", llm.ResultMessage("a", "ls", tool.Result{Output: tool.Text("100%"), RawOutput: "99%\r100%"})),
		}, "user:q call:a result:a", 1},
		"events that are no messages": {[]session.Event{
			event(1, session.TypeTurnStarted, "", session.TurnStarted{Prompt: "q"}), said(1, llm.User, "q"), called(1, "a"),
			event(1, session.TypeDecision, "a", session.Decision{}), event(1, session.TypeCallIntended, "a", session.Intent{}), returned(1, "a"),
			event(1, session.TypeStepEnded, "", session.StepEnded{}), event(1, session.TypeTurnEnded, "", session.TurnEnded{}),
		}, "user:q call:a result:a", 1},
	} {
		t.Run(name, func(t *testing.T) {
			past, err := ReadConversation(of(c.events...))
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(outline(t, past.messages), " "); got != c.want || past.turn != c.turn {
				t.Errorf("got  %s, turn %d\nwant %s, turn %d", got, past.turn, c.want, c.turn)
			}
			if m := past.messages; len(m) > 0 && strings.Contains(string(m[len(m)-1].Data), "99%") {
				t.Errorf("it has what is never sent: %s", m[len(m)-1].Data)
			}
			checkPairs(t, past.messages)
		})
	}
}

func TestHistoryTellsThatTheLogCannotBeRead(t *testing.T) {
	bad := errors.New("disk I/O error")
	_, err := ReadConversation(func(yield func(session.Event, error) bool) {
		_ = yield(said(1, llm.User, "q"), nil) && yield(session.Event{}, bad)
	})
	if !errors.Is(err, bad) {
		t.Errorf("got %v", err)
	}
}

func TestInterruptRecordsAResultForACallWithoutOne(t *testing.T) {
	s := &memory{}
	open := session.OpenCall{Session: "s", Turn: 1, Step: 2, Call: "a", Time: time.UnixMilli(1705680000000), Name: "bash"}
	if err := RecordInterrupted(t.Context(), s, open); err != nil {
		t.Fatal(err)
	}
	e := s.events[0]
	m, ok := e.Message()
	if !ok || e.Call != "a" || e.Turn != 1 || e.Step != 2 || e.Session != "s" || e.Type != session.TypeToolResult {
		t.Errorf("got %+v", e)
	}
	if data := decode[llm.ResultData](t, m.Data); data.Success || data.Name != "bash" || !strings.Contains(data.Output, "whether it had any effect is not known") ||
		!strings.Contains(data.Output, `"timestamp":1705680000000,`) {
		t.Errorf("got %+v", data)
	}
}

func total(messages []llm.Message) (n int) {
	for _, m := range messages {
		n += size(m)
	}
	return n
}
