package session

import (
	"encoding/json"
	"iter"

	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/tool"
)

// PastCall is a call in the log.
type PastCall struct {
	Call     tool.Call
	Decision *Decision // nil: nothing was decided, or the body was deleted
}

// ReadCalls returns the body of the session's first event, and its calls in order, without those
// whose own body was deleted. If the log lacks something else about a call, for example because
// it never ran, the most likely value is used: a call in a turn is the model's, any other call a
// person's, and its directory is that of the session. The error is that of events.
func ReadCalls(events iter.Seq2[Event, error]) (began Started, calls []*PastCall, _ error) {
	byID := map[string]*PastCall{}
	for e, err := range events {
		if err != nil {
			return began, nil, err
		}
		switch e.Type {
		case TypeSessionStarted:
			var s Started
			if json.Unmarshal(e.Body, &s) == nil {
				began = s
			}
		case TypeToolCall:
			m, ok := e.Message()
			var data llm.CallData
			if !ok || json.Unmarshal(m.Data, &data) != nil {
				continue // its body was deleted
			}
			p := &PastCall{Call: tool.Call{
				ID: e.Call, Tool: data.Function.Name, Args: json.RawMessage(data.Function.Arguments), Caller: tool.CallerAgent,
				Cwd: began.Workspace, Turn: e.Turn, Step: e.Step,
			}}
			if e.Turn == 0 {
				p.Call.Caller = tool.CallerPerson
			}
			calls, byID[e.Call] = append(calls, p), p
		case TypeDecision:
			var d Decision
			if p := byID[e.Call]; p != nil && json.Unmarshal(e.Body, &d) == nil && d.Histories == nil {
				p.Decision = &d
			}
		case TypeCallIntended:
			var i Intent
			if p := byID[e.Call]; p != nil && json.Unmarshal(e.Body, &i) == nil {
				p.Call.Cwd, p.Call.Caller = i.Cwd, tool.Caller(i.Caller)
			}
		}
	}
	return began, calls, nil
}
