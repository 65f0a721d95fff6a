// Package stats counts what sessions have used, by what their logs say: calls by tool,
// requests, tokens and costs by model.
//
// A [Counter] reads events one after the other and keeps none of them. What it takes does
// not grow with a session: names beyond [MaxNames] share a row, and times are kept as
// counts in classes. An old event lacks what later versions record, and one whose body was
// deleted says nothing any more; both are counted as far as they go.
// See RATIONALE, "Why are statistics read from the log, and not kept?"
package stats

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/session"
	"github.com/stockade-dev/stockade/host/tool"
)

// MaxNames is how many tools, and how many models, have rows of their own: those that
// come first. The others share the row [Others].
const MaxNames = 200

// Names of rows that are those of no tool and no model.
const (
	Others  = "(others)"
	Unknown = "(no such tool)" // calls of names that no tool has
)

// Stats is what sessions have used.
type Stats struct {
	Sessions int
	Events   int
	Deleted  int       // of Events: without a body any more
	From, To time.Time // of the first event and the last; zero: there is none

	Turns    int // that were begun
	Ended    map[session.EndReason]int
	Duration time.Duration // of the turns that have ended

	Tools    []Tool // most calls first
	Models   []Model
	Calls    Calls    // of all tools
	ModelUse ModelUse // of all models
}

// Calls counts calls, those of the person too. One that neither succeeded nor was
// denied or stopped has failed.
type Calls struct {
	Number, Succeeded, Denied, Stopped int

	Fuel      uint64
	Durations Histogram // of those that ran, without the time in which a person was asked
}

// Failed is how many calls have failed.
func (c Calls) Failed() int { return c.Number - c.Succeeded - c.Denied - c.Stopped }

// Tool is what the calls of a tool were.
type Tool struct {
	Name string
	Calls
}

// Model is what a model was asked, and by whom it was offered.
type Model struct {
	Provider, Name string
	ModelUse
}

// ModelUse is what was asked of models.
type ModelUse struct {
	Requests  int // that were answered
	Restarts  int // how often one was sent again
	Failed    int // turns that ended because the provider failed
	Usage     llm.Usage
	Cost      *float64  // US dollars, of the requests whose price was known; nil: of none
	Durations Histogram // of the requests that were answered, with their restarts
}

// Counter counts the events of sessions, one session after the other. The zero value is
// ready.
type Counter struct {
	// Since leaves out what is older. The session's older events are read all the same:
	// they say which model has the turn that was going on.
	Since time.Time

	stats  Stats
	tools  map[string]*Calls
	models map[[2]string]*ModelUse

	counted bool            // something of this session
	turn    turn            // the one that goes on
	open    map[string]call // calls without a result, by their ids
}

// turn is one whose end has not come.
type turn struct {
	model [2]string // provider and name
	usage llm.Usage // of its steps
	cost  *float64
}

type call struct {
	tool string
	ran  bool
}

// maxOpen is how many calls without a result are known at a time. There are never more
// than those of one step, but for what a crash has left.
const maxOpen = 1000

// BeginSession says that the events of another session follow.
func (c *Counter) BeginSession() { c.counted, c.turn, c.open = false, turn{}, nil }

// Add counts an event.
func (c *Counter) Add(e session.Event) {
	counts := !e.Time.Before(c.Since)
	if counts {
		c.count(e)
	}
	switch e.Type {
	case session.TypeTurnStarted:
		var s session.TurnStarted
		_ = json.Unmarshal(e.Body, &s) // deleted: it has no name
		c.turn = turn{model: [2]string{s.Provider, s.Model}}
		if counts {
			c.stats.Turns++
		}
	case session.TypeToolCall, session.TypeDecision, session.TypeCallIntended:
		c.noteCall(e)
	case session.TypeToolResult:
		if counts {
			c.result(e)
		}
		delete(c.open, e.Call)
	case session.TypeStepEnded:
		var s session.StepEnded
		if json.Unmarshal(e.Body, &s) == nil {
			c.step(s, counts)
		}
	case session.TypeTurnEnded:
		var s session.TurnEnded
		if json.Unmarshal(e.Body, &s) == nil && counts {
			c.end(s)
		}
		c.turn.usage, c.turn.cost = llm.Usage{}, nil
	}
}

func (c *Counter) count(e session.Event) {
	if !c.counted {
		c.counted = true
		c.stats.Sessions++
	}
	c.stats.Events++
	if e.Body == nil {
		c.stats.Deleted++
	}
	if c.stats.From.IsZero() || e.Time.Before(c.stats.From) {
		c.stats.From = e.Time
	}
	if e.Time.After(c.stats.To) {
		c.stats.To = e.Time
	}
}

// noteCall notes which tool a call is one of, and whether it runs. The name that a tool is
// called by may be another than its own.
func (c *Counter) noteCall(e session.Event) {
	if c.open == nil {
		c.open = map[string]call{}
	}
	known, ok := c.open[e.Call]
	if !ok && len(c.open) >= maxOpen {
		return
	}
	switch e.Type {
	case session.TypeToolCall:
		var data llm.CallData
		if m, ok := e.Message(); ok && json.Unmarshal(m.Data, &data) == nil {
			known.tool = data.Function.Name
		}
	default:
		var says struct {
			Tool string `json:"tool"`
		}
		if json.Unmarshal(e.Body, &says) == nil {
			known.tool = cmp.Or(says.Tool, known.tool)
		}
		known.ran = known.ran || e.Type == session.TypeCallIntended
	}
	c.open[e.Call] = known
}

// envelope is what is read of the envelope of a result.
type envelope struct {
	Code     tool.Code `json:"error_code"`
	Metadata struct {
		MS   int64  `json:"execution_time_ms"`
		Fuel uint64 `json:"fuel_used"`
	} `json:"metadata"`
}

// parseEnvelope reads an envelope. The metadata are its last field, behind all that the tool has
// returned: of a success nothing else is read, which is most of what a log holds.
func parseEnvelope(output string, success bool) (e envelope) {
	if i := strings.LastIndex(output, `"metadata":`); i >= 0 && success && json.Unmarshal([]byte("{"+output[i:]), &e) == nil {
		return e
	}
	_ = json.Unmarshal([]byte(output), &e) // what it lacks is not known
	return e
}

func (c *Counter) result(e session.Event) {
	var m struct {
		Data llm.ResultData `json:"data_json"`
	}
	if json.Unmarshal(e.Body, &m) != nil || m.Data.CallID == "" {
		return // its body was deleted
	}
	data, envelope := m.Data, parseEnvelope(m.Data.Output, m.Data.Success)
	known := c.open[e.Call]
	name := cmp.Or(known.tool, data.Name)
	if envelope.Code == tool.CodeUnknownTool {
		name = Unknown
	}
	for _, calls := range []*Calls{row(&c.tools, name, Others), &c.stats.Calls} {
		calls.Number++
		switch {
		case data.Success:
			calls.Succeeded++
		case envelope.Code == tool.CodeDenied:
			calls.Denied++
		case envelope.Code == tool.CodeCancelled:
			calls.Stopped++
		}
		if known.ran {
			calls.Durations.add(envelope.Metadata.MS)
		}
		if sum := calls.Fuel + envelope.Metadata.Fuel; sum >= calls.Fuel {
			calls.Fuel = sum
		}
	}
}

// modelRows are the rows in which a model counts.
func (c *Counter) modelRows(model [2]string) []*ModelUse {
	return []*ModelUse{row(&c.models, model, [2]string{"", Others}), &c.stats.ModelUse}
}

// row is the row of a name, or that of others if there are too many.
func row[K comparable, V any](rows *map[K]*V, name, others K) *V {
	if *rows == nil {
		*rows = map[K]*V{}
	}
	if (*rows)[name] == nil && len(*rows) >= MaxNames {
		name = others
	}
	r := (*rows)[name]
	if r == nil {
		r = new(V)
		(*rows)[name] = r
	}
	return r
}

func (c *Counter) step(s session.StepEnded, counts bool) {
	c.turn.usage = c.turn.usage.Plus(s.Usage)
	c.turn.cost = llm.AddCosts(c.turn.cost, s.Cost)
	if !counts {
		return
	}
	model := c.turn.model
	if s.Provider != "" { // which has answered in its place
		model = [2]string{s.Provider, s.Model}
	}
	for _, of := range c.modelRows(model) {
		of.Requests++
		of.Restarts += s.Restarts
		of.Usage = of.Usage.Plus(s.Usage)
		of.Cost = llm.AddCosts(of.Cost, s.Cost)
		of.Durations.add(s.DurationMS)
	}
}

// end counts what only the end of a turn says: what requests without an answer have
// used, and of an old turn what it cost.
func (c *Counter) end(s session.TurnEnded) {
	c.stats.Duration += time.Duration(s.DurationMS) * time.Millisecond
	if c.stats.Ended == nil {
		c.stats.Ended = map[session.EndReason]int{}
	}
	c.stats.Ended[s.Reason]++
	rest := s.Cost
	if rest != nil && c.turn.cost != nil {
		more := max(*rest-*c.turn.cost, 0)
		rest = &more
	}
	for _, of := range c.modelRows(c.turn.model) {
		of.Usage = of.Usage.Plus(subtractUsage(s.Usage, c.turn.usage))
		of.Cost = llm.AddCosts(of.Cost, rest)
		if s.Reason == session.EndProvider {
			of.Failed++
		}
	}
}

// subtractUsage is what u has more than v.
func subtractUsage(u, v llm.Usage) llm.Usage {
	more := func(a, b int) int { return max(a-b, 0) }
	return llm.Usage{
		InputTokens: more(u.InputTokens, v.InputTokens), OutputTokens: more(u.OutputTokens, v.OutputTokens),
		CachedTokens: more(u.CachedTokens, v.CachedTokens), CacheWriteTokens: more(u.CacheWriteTokens, v.CacheWriteTokens),
		ReasoningTokens: more(u.ReasoningTokens, v.ReasoningTokens),
	}
}

// Stats is what was counted.
func (c *Counter) Stats() Stats {
	s := c.stats
	s.Ended = maps.Clone(s.Ended)
	for name, calls := range c.tools {
		s.Tools = append(s.Tools, Tool{name, *calls})
	}
	slices.SortFunc(s.Tools, func(a, b Tool) int {
		return cmp.Or(b.Number-a.Number, cmp.Compare(a.Name, b.Name))
	})
	for name, spent := range c.models {
		s.Models = append(s.Models, Model{name[0], name[1], *spent})
	}
	slices.SortFunc(s.Models, func(a, b Model) int {
		return cmp.Or(b.Requests-a.Requests, cmp.Compare(a.Provider, b.Provider), cmp.Compare(a.Name, b.Name))
	})
	return s
}
