package session_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/session"
	"github.com/stockade-dev/stockade/host/tool"
)

func TestCallsOfASession(t *testing.T) {
	var events []session.Event
	add := func(typ session.Type, turn int, call string, body any) {
		data, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, session.Event{Header: session.Header{Type: typ, Turn: turn, Call: call}, Body: data})
	}
	proposed := func(turn int, id, name string) {
		data, err := json.Marshal(llm.CallData{ID: id, Function: llm.FunctionData{Name: name, Arguments: `{}`}})
		if err != nil {
			t.Fatal(err)
		}
		add(session.TypeToolCall, turn, id, llm.Message{Kind: llm.ToolCall, Data: data})
	}
	add(session.TypeSessionStarted, 0, "", session.Started{Workspace: "/work", Mounts: []string{"/work:rw"}})
	proposed(0, "typed", "ls")
	proposed(1, "refused", "none")
	proposed(1, "served", "grep")
	add(session.TypeDecision, 1, "served", session.Decision{Effect: "allow"})
	add(session.TypeCallIntended, 1, "served", session.Intent{Tool: "grep", Cwd: "/else", Caller: "mcp"})
	proposed(1, "deleted", "ls")
	events[len(events)-1].Body = nil

	began, calls, err := session.ReadCalls(func(yield func(session.Event, error) bool) {
		for e := range slices.Values(events) {
			if !yield(e, nil) {
				return
			}
		}
	})
	if err != nil || began.Workspace != "/work" {
		t.Errorf("it began with %+v, %v", began, err)
	}
	call := func(turn int, id, name, cwd string, caller tool.Caller) *session.PastCall {
		return &session.PastCall{Call: tool.Call{ID: id, Tool: name, Args: json.RawMessage(`{}`), Caller: caller, Cwd: cwd, Turn: turn}}
	}
	want := []*session.PastCall{
		call(0, "typed", "ls", "/work", tool.CallerPerson), call(1, "refused", "none", "/work", tool.CallerAgent), call(1, "served", "grep", "/else", tool.CallerMCP),
	}
	want[2].Decision = &session.Decision{Effect: "allow"}
	if diff := cmp.Diff(want, calls); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
