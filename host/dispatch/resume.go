package dispatch

import (
	"encoding/json"
	"iter"

	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/session"
	"github.com/stockade-dev/stockade/host/tool"
)

// Resume passes on the events of a session's log, and restores from them what the session has
// used before: the calls of each tool that have run and their fuel, a person's own calls too.
// It also restores which groups of tools were opened, what tools keep, and which contents of
// files the model has seen. The events have to be read to their end before the first call.
func (d *Dispatcher) Resume(events iter.Seq2[session.Event, error]) iter.Seq2[session.Event, error] {
	return func(yield func(session.Event, error) bool) {
		r := resumed{map[string]uint64{}, map[string]llm.FunctionData{}, map[string]session.Intent{}}
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

// resumed is what the events read so far say of a session.
type resumed struct {
	spent map[string]uint64           // fuel, by tool
	asked map[string]llm.FunctionData // by call, as the model has asked
	runs  map[string]session.Intent
}

func (d *Dispatcher) resume(e session.Event, r resumed) {
	d.kept.Fold(e)
	switch e.Type {
	case session.TypeToolCall:
		m, _ := e.Message()
		var data llm.CallData
		if json.Unmarshal(m.Data, &data) == nil {
			r.asked[e.Call] = data.Function
		}
	case session.TypeCallIntended:
		var intent session.Intent
		if json.Unmarshal(e.Body, &intent) == nil {
			r.runs[e.Call] = intent
			d.counts.take(intent.Tool)
			if entry, ok := d.catalog.Load().Find(intent.Tool); ok {
				d.openOf(entry)
			} else if intent.Tool == tool.ListTools {
				d.open(groupIn([]byte(r.asked[e.Call].Arguments)))
			}
		}
	case session.TypeToolResult:
		if intent, ran := r.runs[e.Call]; ran { // a denied one has a result, too
			r.spent[intent.Tool] += d.fold(intent, r.asked[e.Call], e)
		}
		delete(r.runs, e.Call)
		delete(r.asked, e.Call)
	}
}

// fold notes what the result of a call that ran says of files, and returns its fuel.
func (d *Dispatcher) fold(intent session.Intent, asked llm.FunctionData, e session.Event) (fuel uint64) {
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
		d.seen.note(tool.Call{Args: json.RawMessage(asked.Arguments), Cwd: intent.Cwd}, entry, tool.Result{Output: envelope.Result})
	}
	return envelope.Metadata.Fuel
}
