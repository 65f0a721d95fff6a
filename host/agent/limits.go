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
	switch {
	case t.end.Calls >= o.MaxCalls:
		return &limitError{"turn_calls"}
	case t.end.Usage.Total() >= o.MaxTokens:
		return &limitError{"turn_tokens"}
	case spent.Usage.Total()+t.end.Usage.Total() >= o.SessionTokens:
		return &limitError{"session_tokens"}
	case o.MaxCost > 0 && (t.model().Price == nil || cost != nil && *cost >= o.MaxCost):
		return &limitError{"max_cost"}
	}
	return nil
}

// fuelIsSpent reports whether a call has failed because the calls of the session have no fuel left.
func (t *turn) fuelIsSpent(results []tool.Result) bool {
	tools, can := t.a.opts.Tools.(interface{ FuelIsSpent() bool })
	return can && slices.ContainsFunc(results, func(r tool.Result) bool { return r.Err != nil && r.Err.Code == tool.CodeFuel }) && tools.FuelIsSpent()
}
