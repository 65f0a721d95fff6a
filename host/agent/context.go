package agent

import (
	"encoding/json"
	"strings"

	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/session"
)

// ContextReport holds the sizes of the next request, and the usage of the session so far. The
// sizes are in characters, like [Options.HistoryChars], as only the provider knows the tokens.
type ContextReport struct {
	System, Prompts, Answers, Calls, Results int // sizes of these parts; System with the briefs

	ByTool  map[string]int // sizes of calls and results, by the name of the tool
	Tools   int            // size of the definitions of the tools, to which Budget does not apply
	Budget  int            // limit for the conversation, which is all parts but Tools
	LeftOut LeftOut        // parts that were left out

	Limit int // size of the model's context, in tokens; 0: unknown
	Spent Spent
}

// LeftOut counts the parts of the conversation that a request leaves out to fit.
type LeftOut struct {
	Turns     int // number of turns that are left out as a whole, from the oldest on
	Shortened int // number of calls without their arguments, and of results without their output
	Images    int // number of images
	Chars     int // characters of everything that is left out
}

func (l LeftOut) plus(m LeftOut) LeftOut {
	return LeftOut{l.Turns + m.Turns, l.Shortened + m.Shortened, l.Images + m.Images, l.Chars + m.Chars}
}

// Spent is the usage of a session, including its earlier turns from the log. A request
// without a reported usage adds nothing.
type Spent struct {
	Turns int       // number of turns that have ended
	Usage llm.Usage // usage of these turns together
	Last  llm.Usage // usage of the newest request
	Cost  *float64  // US dollars, of the turns with a known cost; nil: none has one
}

// add counts the usage in an event.
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

// ContextReport returns the sizes of the next request. It may be called between turns only.
func (a *Agent) ContextReport() ContextReport {
	conversation := a.conversation
	conversation.makeRoom() // as the next request does
	messages := conversation.messages
	c := ContextReport{ByTool: map[string]int{}, Budget: a.opts.HistoryChars, LeftOut: conversation.leftOut, Limit: a.opts.ContextTokens, Spent: a.conversation.spent}
	if len(messages) == 0 { // the first turn begins with these messages
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

// contextUse returns the context that the newest request and its answer use; nil: unknown.
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
