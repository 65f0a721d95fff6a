package dispatch

import (
	"encoding/json"
	"iter"

	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/session"
	"github.com/stockade-dev/stockade/host/tool"
)

// Resume passes on the events of a session's log, and restores the state of the session from
// them: the number of calls that have begun to run and their fuel, by tool, including a
// person's own calls; the open tool groups; the stores of tools; and the hashes of file
// contents that the model has seen. The caller has to read the events to their end before the
// first call.
func (d *Dispatcher) Resume(events iter.Seq2[session.Event, error]) iter.Seq2[session.Event, error] {
	return func(yield func(session.Event, error) bool) {
		r := resumeState{map[string]uint64{}, map[string]llm.FunctionData{}, map[string]session.Intent{}}
		for e, err := range events {
			if err == nil {
				d.resume(e, r)
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
		d.fuel = newFuel(d.opts.Policy.Limits(), r.spent)
	}
}

// resumeState holds the values from earlier events that resume needs.
type resumeState struct {
	spent    map[string]uint64           // fuel used, by tool
	requests map[string]llm.FunctionData // the model's calls that have no result yet, by call ID
	intents  map[string]session.Intent   // calls that have begun and have no result yet, by call ID
}

func (d *Dispatcher) resume(e session.Event, r resumeState) {
	d.stores.Fold(e)
	switch e.Type {
	case session.TypeRewound:
		d.ForgetFiles()
	case session.TypeToolCall:
		m, _ := e.Message()
		var data llm.CallData
		if json.Unmarshal(m.Data, &data) == nil {
			r.requests[e.Call] = data.Function
		}
	case session.TypeCallIntended:
		var intent session.Intent
		if json.Unmarshal(e.Body, &intent) == nil {
			if _, again := r.intents[e.Call]; !again { // a call that was asked about begins twice
				d.counts.reserve(intent.Tool)
			}
			r.intents[e.Call] = intent
			if entry, ok := d.catalog.Load().Find(intent.Tool); ok {
				d.openGroupOf(entry)
			} else if intent.Tool == tool.ListTools {
				d.openGroup(groupIn([]byte(r.requests[e.Call].Arguments)))
			}
		}
	case session.TypeToolResult:
		if intent, ran := r.intents[e.Call]; ran { // a denied call has a result, too
			r.spent[intent.Tool] += d.fold(intent, r.requests[e.Call], e)
		}
		delete(r.intents, e.Call)
		delete(r.requests, e.Call)
	}
}

// fold notes the file contents that the result e of a call reports, and returns the units of
// fuel that the call has used.
func (d *Dispatcher) fold(intent session.Intent, request llm.FunctionData, e session.Event) (fuel uint64) {
	m, _ := e.Message()
	var data llm.ResultData
	var envelope struct {
		Result   json.RawMessage `json:"result"`
		Metadata struct {
			Fuel uint64 `json:"fuel_used"`
		} `json:"metadata"`
	}
	if json.Unmarshal(m.Data, &data) != nil || json.Unmarshal([]byte(data.Output), &envelope) != nil {
		return 0
	}
	if entry, ok := d.catalog.Load().Find(intent.Tool); ok && data.Success {
		d.seenFiles.note(tool.Call{Args: json.RawMessage(request.Arguments), Cwd: intent.Cwd}, entry, tool.Result{Output: envelope.Result})
	}
	return envelope.Metadata.Fuel
}
