package agent

import (
	"encoding/json"
	"strings"

	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/session"
)

// ContextReport is what the next request would hold, and what the session has used. Of
// text it counts characters, as [Options.HistoryChars] does: what a provider makes
// of them is known only once it has answered.
type ContextReport struct {
	System, Prompts, Answers, Calls, Results int

	ByTool  map[string]int // calls and results, by the name of the tool
	Tools   int            // the definitions of the tools, for which Budget has no say
	Budget  int            // the most that the conversation may hold
	LeftOut LeftOut

	Limit int // tokens of the model's context; 0: not known
	Spent Spent
}

// LeftOut is what a request lacks of the conversation, so that it fits.
type LeftOut struct {
	Turns     int // the oldest
	Shortened int // calls without their arguments, results without their output
	Images    int
	Chars     int // in all
}

func (l LeftOut) plus(m LeftOut) LeftOut {
	return LeftOut{l.Turns + m.Turns, l.Shortened + m.Shortened, l.Images + m.Images, l.Chars + m.Chars}
}

// Spent is what a session has used, also of what is in its log from before. A
// request whose usage the provider did not report counts for nothing.
type Spent struct {
	Turns int
	Usage llm.Usage
	Last  llm.Usage // of the last request
	Cost  *float64  // US dollars, of the turns of which it is known; nil: of none
}

// add counts an event.
func (s *Spent) add(e session.Event) {
	switch e.Type {
	case session.TypeStepEnded:
		var step session.StepEnded
		if json.Unmarshal(e.Body, &step) == nil {
			s.Last = step.Usage
		}
	case session.TypeTurnEnded:
		var end session.TurnEnded
		if json.Unmarshal(e.Body, &end) != nil {
			return
		}
		s.Turns++
		s.Usage = s.Usage.Plus(end.Usage)
		s.Cost = llm.AddCosts(s.Cost, end.Cost)
	}
}

// ContextReport looks at the agent between two turns.
func (a *Agent) ContextReport() ContextReport {
	past := a.conversation
	past.makeRoom() // as the next request does
	messages := past.messages
	c := ContextReport{ByTool: map[string]int{}, Budget: a.opts.HistoryChars, LeftOut: past.leftOut, Limit: a.opts.ContextTokens, Spent: a.conversation.spent}
	if len(messages) == 0 { // the first turn begins with that
		system := ""
		if a.opts.System != nil {
			system = a.opts.System()
		}
		c.System = len(system)
		if a.opts.Briefs != nil {
			for _, b := range a.opts.Briefs() {
				if !strings.Contains(system, b.Text) {
					c.System += len(b.Text)
				}
			}
		}
	}
	for _, d := range a.opts.Tools.Definitions() {
		c.Tools += len(d.Name) + len(d.Description) + len(d.Parameters)
	}
	for _, m := range messages {
		n := size(m)
		_, brief := m.Brief()
		switch {
		case m.Kind == llm.System, brief:
			c.System += n
		case m.Kind == llm.User:
			c.Prompts += n
		case m.Kind == llm.Assistant:
			c.Answers += n
		case m.Kind == llm.ToolCall:
			c.Calls += n
			var call llm.CallData
			if json.Unmarshal(m.Data, &call) == nil {
				c.ByTool[call.Function.Name] += n
			}
		case m.Kind == llm.ToolResult:
			c.Results += n
			var result llm.ResultData
			if json.Unmarshal(m.Data, &result) == nil {
				c.ByTool[result.Name] += n
			}
		}
	}
	return c
}

// contextUse is how full the context was with the last request and its answer; nil where that
// is not known.
func (t *turn) contextUse() *session.ContextUse {
	limit := t.a.opts.ContextTokens
	if t.fallback != nil {
		limit = t.fallback.ContextTokens
	}
	if limit <= 0 || t.lastUsage.Total() <= 0 {
		return nil
	}
	return &session.ContextUse{Used: int64(t.lastUsage.Total()), Limit: int64(limit)}
}
