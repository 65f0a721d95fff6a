package agent

import (
	"slices"

	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/tool"
)

// limitError ends a turn because of the limit with this key in agent.toml.
type limitError struct{ key string }

func (e *limitError) Error() string { return e.key + " is reached" }

// checkLimits returns a *limitError if the turn may ask the model no more. The cost of a model
// without a price may be anything.
func (t *turn) checkLimits() error {
	o, spent := t.a.opts, t.a.conversation.spent
	cost := llm.AddCosts(spent.Cost, t.end.Cost)
	for _, limit := range []struct {
		key     string
		reached bool
	}{
		{"turn_calls", t.end.Calls >= o.MaxCalls},
		{"turn_tokens", t.end.Usage.Total() >= o.MaxTokens},
		{"session_tokens", spent.Usage.Total()+t.end.Usage.Total() >= o.SessionTokens},
		{"max_cost", o.MaxCost > 0 && (t.model().Price == nil || cost != nil && *cost >= o.MaxCost)},
	} {
		if limit.reached {
			return &limitError{limit.key}
		}
	}
	return nil
}

// fuelIsSpent reports whether a call has failed because the calls of the session have no fuel left.
func (t *turn) fuelIsSpent(results []tool.Result) bool {
	tools, can := t.a.opts.Tools.(interface{ FuelIsSpent() bool })
	return can && slices.ContainsFunc(results, func(r tool.Result) bool { return r.Err != nil && r.Err.Code == tool.CodeFuel }) && tools.FuelIsSpent()
}
