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
	return []*policy.Budget{f.budget(tool), f.session}
}

// budget returns the one of a tool; mu is held.
func (f *fuel) budget(tool string) *policy.Budget {
	b, ok := f.tools[tool]
	if !ok {
		b = policy.NewBudget(policy.ToolFuelKey, f.limits.ToolFuel, f.spent[tool])
		f.tools[tool] = b
	}
	return b
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
	names := map[string]bool{}
	for name := range f.tools {
		names[name] = true
	}
	for name := range f.spent {
		names[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		out = append(out, use(name, f.budget(name)))
	}
	return out
}
