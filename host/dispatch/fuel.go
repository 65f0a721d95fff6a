package dispatch

import (
	"maps"
	"slices"
	"sync"

	"github.com/stockade-dev/stockade/host/policy"
)

// fuel keeps the budgets that the calls of a session share.
type fuel struct {
	limits  policy.Limits
	session *policy.Budget

	mu    sync.Mutex
	tools map[string]*policy.Budget
}

func newFuel(limits policy.Limits, spent map[string]uint64) *fuel {
	f := &fuel{limits: limits, tools: map[string]*policy.Budget{}}
	var total uint64
	for tool, units := range spent {
		total += units
		f.add(tool, units)
	}
	f.session = policy.NewBudget(policy.SessionFuelKey, limits.SessionFuel, total)
	return f
}

// add makes the budget of a tool, of which so much is spent.
func (f *fuel) add(tool string, spent uint64) {
	f.tools[tool] = policy.NewBudget(policy.ToolFuelKey, f.limits.ToolFuel, spent)
}

// budgets returns what a call of the tool draws from.
func (f *fuel) budgets(tool string) []*policy.Budget {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.tools[tool] == nil {
		f.add(tool, 0)
	}
	return []*policy.Budget{f.tools[tool], f.session}
}

// FuelUse says how far a budget is used up.
type FuelUse struct {
	Tool        string // empty for the session
	Used, Limit uint64 // units
}

// Fuel returns what the session has used, first all together, then each tool
// that has been called, by name. Calls that run have what they hold counted.
func (d *Dispatcher) Fuel() []FuelUse {
	f := d.fuel
	f.mu.Lock()
	defer f.mu.Unlock()
	use := func(tool string, b *policy.Budget) FuelUse { return FuelUse{tool, b.Limit() - b.Left(), b.Limit()} }
	out := []FuelUse{use("", f.session)}
	for _, name := range slices.Sorted(maps.Keys(f.tools)) {
		out = append(out, use(name, f.tools[name]))
	}
	return out
}
