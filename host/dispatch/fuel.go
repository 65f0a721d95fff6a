package dispatch

import (
	"sync"

	"github.com/stockade-dev/stockade/host/policy"
)

// fuel keeps the budgets that the calls of a session share.
type fuel struct {
	limits  policy.Limits
	spent   map[string]uint64 // by tool, before this dispatcher
	session *policy.Budget

	mu    sync.Mutex
	tools map[string]*policy.Budget
}

func newFuel(limits policy.Limits, spent map[string]uint64) *fuel {
	var total uint64
	for _, units := range spent {
		total += units
	}
	return &fuel{
		limits: limits, spent: spent, tools: map[string]*policy.Budget{},
		session: policy.NewBudget(policy.SessionFuelKey, limits.SessionFuel, total),
	}
}

// budgets returns what a call of the tool draws from.
func (f *fuel) budgets(tool string) []*policy.Budget {
	f.mu.Lock()
	defer f.mu.Unlock()
	b, ok := f.tools[tool]
	if !ok {
		b = policy.NewBudget(policy.ToolFuelKey, f.limits.ToolFuel, f.spent[tool])
		f.tools[tool] = b
	}
	return []*policy.Budget{b, f.session}
}
