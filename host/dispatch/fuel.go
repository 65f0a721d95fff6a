package dispatch

import (
	"maps"
	"slices"
	"sync"

	"github.com/stockade-dev/stockade/host/policy"
)

// fuel holds the fuel budgets that the calls of a session share.
type fuel struct {
	limits  policy.Limits
	session *policy.Budget // budget of all tools together

	mu    sync.Mutex
	tools map[string]*policy.Budget // budgets of the tools that were called
}

// newFuel returns the budgets of a session. spent is the fuel that its earlier calls have
// used, by tool; nil: none.
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

// add gives a tool its budget, of which spent units are used. f.mu is held, or f is new.
func (f *fuel) add(tool string, spent uint64) {
	f.tools[tool] = policy.NewBudget(policy.ToolFuelKey, f.limits.ToolFuel, spent)
}

// budgets returns the budgets that a call of the tool draws from: the tool's and the
// session's.
func (f *fuel) budgets(tool string) []*policy.Budget {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.tools[tool] == nil {
		f.add(tool, 0)
	}
	return []*policy.Budget{f.tools[tool], f.session}
}

// FuelIsSpent reports whether the session has no fuel left for any call.
func (d *Dispatcher) FuelIsSpent() bool { return d.fuel.session.Left() == 0 }

// FuelUse holds the use and the limit of one budget.
type FuelUse struct {
	Tool        string // name; empty: the whole session
	Used, Limit uint64 // units of fuel
}

// Fuel returns the fuel use of the session, first of all tools together, then of each
// tool that was called, by name. Fuel that running calls have reserved counts as used.
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
