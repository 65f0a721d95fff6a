package agent

import (
	"cmp"
	"context"
	"encoding/json"

	"github.com/stockade-dev/stockade/host/llm"
)

// ContextReport holds the sizes of the next request, and the usage of the session so far. The
// sizes are in characters, like [Options.HistoryChars], as only the provider knows the tokens.
type ContextReport struct {
	System, Prompts, Answers, Calls, Results int // sizes of these parts; System with the briefs

	ByTool  map[string]int // sizes of calls and results, by the name of the tool
	Tools   int            // size of the definitions of the tools, to which Budget does not apply
	Budget  int            // limit for the conversation, which is all parts but Tools; 0: only Limit counts
	LeftOut LeftOut        // parts that were left out

	Tokens  int  // tokens of the next request, as far as the provider has reported them and else estimated
	Limit   int  // size of the model's context, in tokens
	Assumed bool // Limit is not known, and is [AssumedContextTokens]
	Spent   Spent

	Summary string // text that the model has in place of earlier messages; empty: it has all of them
}

// LeftOut counts the parts of the conversation that requests leave out to fit.
type LeftOut struct {
	Parts int // number of results, arguments, thoughts, images and prompts of which something is left out
	Chars int // characters of everything that is left out
}

// Spent is the usage of a session, including its earlier turns from the log. A request
// without a reported usage adds nothing.
type Spent struct {
	Turns int       // number of turns that have ended
	Usage llm.Usage // usage of these turns together
	Last  llm.Usage // usage of the newest request
	Cost  *float64  // US dollars, of the turns with a known cost; nil: none has one
}

func (s *Spent) add(u llm.Usage, cost *float64) {
	s.Usage, s.Cost = s.Usage.Plus(u), llm.AddCosts(s.Cost, cost)
}

// ContextReport returns the sizes of the next request. It may be called between turns only, and
// asks the server for the size of the model's context, if that is not known.
func (a *Agent) ContextReport(ctx context.Context) ContextReport {
	limit := a.contextTokens(ctx, (&turn{a: a}).model(), true)
	messages := a.conversation.messages
	if len(messages) == 0 {
		messages = a.opening() // the first turn begins with them
	}
	c := ContextReport{ByTool: map[string]int{}, Budget: a.opts.HistoryChars, LeftOut: a.conversation.leftOut, Limit: cmp.Or(limit, AssumedContextTokens), Assumed: limit <= 0, Spent: a.conversation.spent}
	a.tools = a.opts.Tools.Definitions()
	c.Tools = a.toolChars()
	for _, m := range messages {
		n := size(m)
		name, brief := m.Brief()
		if name == summaryBrief {
			c.Summary = m.Content
		}
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
	c.Tokens = a.conversation.reported.tokensFor(c.System+c.Prompts+c.Answers+c.Calls+c.Results, c.Tools)
	return c
}
