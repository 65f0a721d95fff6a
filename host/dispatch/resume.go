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
// were opened, and has what tools keep. events are those of its log. It is called before the first call.
func (d *Dispatcher) Resume(events iter.Seq2[session.Event, error]) error {
	spent := map[string]uint64{}
	tools := map[string]string{} // by call
	lists := map[string]string{} // the groups that were asked for, by call
	for e, err := range events {
		if err != nil {
			return fmt.Errorf("read what the session has used: %w", err)
		}
		d.kept.Fold(e)
		switch e.Type {
		case session.TypeToolCall:
			if group := listedBy(e); group != "" {
				lists[e.Call] = group
			}
		case session.TypeCallIntended:
			var intent session.Intent
			if json.Unmarshal(e.Body, &intent) == nil {
				tools[e.Call] = intent.Tool
				d.counts.take(intent.Tool)
				if entry, ok := d.catalog.Load().Find(intent.Tool); ok {
					d.openOf(entry)
				} else if intent.Tool == tool.ListTools {
					d.open(lists[e.Call])
				}
			}
		case session.TypeToolResult:
			if name, ran := tools[e.Call]; ran { // a denied one has a result, too
				spent[name] += fuelUsed(e)
			}
			delete(tools, e.Call)
			delete(lists, e.Call)
		}
	}
	d.fuel = newFuel(d.opts.Policy.Limits(), spent)
	return nil
}

// listedBy is the group that a call asks for, if it is one of list_tools.
func listedBy(e session.Event) string {
	m, _ := e.Message()
	var data llm.CallData
	if json.Unmarshal(m.Data, &data) != nil || data.Function.Name != tool.ListTools {
		return ""
	}
	return groupIn([]byte(data.Function.Arguments))
}

// fuelUsed is what the result of a call says that it cost.
func fuelUsed(e session.Event) uint64 {
	m, _ := e.Message()
	var data llm.ResultData
	var envelope struct {
		Metadata struct {
			Fuel uint64 `json:"fuel_used"`
		} `json:"metadata"`
	}
	if json.Unmarshal(m.Data, &data) != nil || json.Unmarshal([]byte(data.Output), &envelope) != nil {
		return 0
	}
	return envelope.Metadata.Fuel
}
