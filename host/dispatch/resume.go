package dispatch

import (
	"encoding/json"
	"fmt"
	"iter"

	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/session"
	"github.com/stockade-dev/stockade/host/tool"
)

// Resume counts what a session has used before: the calls of each tool that have
// run and their fuel, a person's own calls too. It opens the groups of tools that
// were opened, and has what tools keep and which content of files the model has seen.
// events are those of its log. It is called before the first call.
func (d *Dispatcher) Resume(events iter.Seq2[session.Event, error]) error {
	spent := map[string]uint64{}
	asked := map[string]llm.FunctionData{} // by call, as those that run
	runs := map[string]session.Intent{}
	for e, err := range events {
		if err != nil {
			return fmt.Errorf("read what the session has used: %w", err)
		}
		d.kept.Fold(e)
		switch e.Type {
		case session.TypeToolCall:
			m, _ := e.Message()
			var data llm.CallData
			if json.Unmarshal(m.Data, &data) == nil {
				asked[e.Call] = data.Function
			}
		case session.TypeCallIntended:
			var intent session.Intent
			if json.Unmarshal(e.Body, &intent) == nil {
				runs[e.Call] = intent
				d.counts.take(intent.Tool)
				if entry, ok := d.catalog.Load().Find(intent.Tool); ok {
					d.openOf(entry)
				} else if intent.Tool == tool.ListTools {
					d.open(groupIn([]byte(asked[e.Call].Arguments)))
				}
			}
		case session.TypeToolResult:
			if intent, ran := runs[e.Call]; ran { // a denied one has a result, too
				spent[intent.Tool] += d.fold(intent, asked[e.Call], e)
			}
			delete(runs, e.Call)
			delete(asked, e.Call)
		}
	}
	d.fuel = newFuel(d.opts.Policy.Limits(), spent)
	return nil
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
