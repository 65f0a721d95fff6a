// Package stats counts from the logs what sessions have used: calls by tool, and requests, tokens
// and costs by model.
//
// A [Counter] reads events one after the other and keeps none. Its memory does not grow with the
// sessions: names beyond [MaxNames] share a row, and durations are counted in classes. Old events
// lack fields of later versions, and deleted bodies lack everything. Both are counted as far as
// possible. See RATIONALE, "Why are statistics read from the log, and not kept?"
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

// MaxNames limits the number of tools, and of models, that have a row of their own. All others
// share the row [Others].
const MaxNames = 200

// Names of rows that stand for several tools or models.
const (
	Others  = "(others)"
	Unknown = "(no such tool)" // calls of tools that do not exist
)

// Stats holds the totals of sessions.
type Stats struct {
	Sessions int
	Events   int
	Deleted  int       // part of Events: their bodies were deleted
	From, To time.Time // times of the earliest and of the latest event; zero: there are no events

	Turns    int                       // number of turns that were begun
	Ended    map[session.EndReason]int // number of turns, by the reason of their end
	Duration time.Duration             // sum of the turns that have ended

	Tools    []Tool   // each tool; the most calls first
	Models   []Model  // each model; the most requests first
	Calls    Calls    // calls of all tools
	ModelUse ModelUse // use of all models
}

// Calls counts calls, including those of a person.
type Calls struct {
	Number, Succeeded, Denied, Stopped int // all calls, and parts of them; Stopped: cancelled by the caller

	Fuel      uint64
	Durations Histogram // durations of calls that ran, without the time for questions to a person
}

// Failed returns the number of calls that neither succeeded nor were denied or stopped.
func (c Calls) Failed() int { return c.Number - c.Succeeded - c.Denied - c.Stopped }

// Tool holds the calls of one tool.
type Tool struct {
	Name string
	Calls
}

// Model holds the use of one model of a provider.
type Model struct {
	Provider, Name string
	ModelUse
}

// ModelUse holds the use of models.
type ModelUse struct {
	Requests  int // number of answered requests
	Restarts  int // number of times that a request was sent again
	Failed    int // number of turns that ended because the provider failed
	Usage     llm.Usage
	Cost      *float64  // US dollars of the requests with a known price; nil: there are none
	Durations Histogram // durations of answered requests, including their restarts
}

// Counter counts the events of sessions, one session after the other. The zero value is ready.
type Counter struct {
	// Since excludes events before it. Such events of a session must still be added, because they
	// name the model of a turn that continues.
	Since time.Time

	stats  Stats
	tools  map[string]*Calls
	models map[[2]string]*ModelUse

	copied  int             // number of the next events that are copies of another session's
	counted bool            // an event of the current session was counted
	turn    turn            // the current turn
	open    map[string]call // calls without a result, by id
}

// turn is a turn that has not ended yet.
type turn struct {
	model [2]string // provider and name
	usage llm.Usage // sum of its steps so far
	cost  *float64  // sum of its steps so far, in US dollars; nil: not known
}

type call struct {
	tool string
	ran  bool
}

// maxOpen limits the calls without a result that are remembered; of others the tool is taken from
// the result. There are never more than the calls of one step, except after crashes.
const maxOpen = 1000

// BeginSession begins another session, whose events are added next.
func (c *Counter) BeginSession() { c.copied, c.counted, c.turn, c.open = 0, false, turn{}, nil }

// Add counts an event of the current session. Copies of another session's events count there.
func (c *Counter) Add(e session.Event) {
	if c.copied > 0 {
		c.copied--
		return
	}
	if e.Type == session.TypeForked {
		var f session.Forked
		_ = json.Unmarshal(e.Body, &f) // without its body, the copies have none either
		c.copied = f.Events
	}
	counts := !e.Time.Before(c.Since)
	if counts {
		c.count(e)
	}
	switch e.Type {
	case session.TypeTurnStarted:
		var s session.TurnStarted
		_ = json.Unmarshal(e.Body, &s) // a deleted body has no names
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
	case session.TypeContextCompacted:
		var s session.ContextCompacted
		if json.Unmarshal(e.Body, &s) == nil && s.Summary != "" {
			c.step(session.StepEnded{Provider: s.Provider, Model: s.Model, Usage: s.Usage, Cost: s.Cost, DurationMS: s.DurationMS}, counts)
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

// noteCall records the tool of a call, and whether the call runs. A tool may be called by another
// name than its own.
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
		var body struct {
			Tool string `json:"tool"`
		}
		if json.Unmarshal(e.Body, &body) == nil {
			known.tool = cmp.Or(body.Tool, known.tool)
		}
		known.ran = known.ran || e.Type == session.TypeCallIntended
	}
	c.open[e.Call] = known
}

// envelope holds the fields of a result's envelope that are read.
type envelope struct {
	Code     tool.Code `json:"error_code"`
	Metadata struct {
		MS   int64  `json:"execution_time_ms"`
		Fuel uint64 `json:"fuel_used"`
	} `json:"metadata"`
}

// parseEnvelope parses the envelope of a result. The metadata are its last field. Of a success
// only they are parsed, because the output of tools is most of a log.
func parseEnvelope(output string, success bool) (e envelope) {
	if i := strings.LastIndex(output, `"metadata":`); i >= 0 && success && json.Unmarshal([]byte("{"+output[i:]), &e) == nil {
		return e
	}
	_ = json.Unmarshal([]byte(output), &e) // missing fields stay empty
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

// modelRows returns the rows in which a model is counted: its own and that of all models.
func (c *Counter) modelRows(model [2]string) []*ModelUse {
	return []*ModelUse{row(&c.models, model, [2]string{"", Others}), &c.stats.ModelUse}
}

// row returns the row of a name, or the row of others if MaxNames names have rows.
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
	if s.Provider != "" { // another model has answered
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

// end counts what is recorded only at the end of a turn: the usage of requests without an answer,
// and for old turns their cost.
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

// subtractUsage returns u - v, with 0 instead of negative numbers.
func subtractUsage(u, v llm.Usage) llm.Usage {
	more := func(a, b int) int { return max(a-b, 0) }
	return llm.Usage{
		InputTokens: more(u.InputTokens, v.InputTokens), OutputTokens: more(u.OutputTokens, v.OutputTokens),
		CachedTokens: more(u.CachedTokens, v.CachedTokens), CacheWriteTokens: more(u.CacheWriteTokens, v.CacheWriteTokens),
		ReasoningTokens: more(u.ReasoningTokens, v.ReasoningTokens),
	}
}

// Stats returns the totals so far.
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
