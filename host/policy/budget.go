package policy

import "sync/atomic"

// The keys of agent.toml for the limits on fuel that several calls share.
const (
	ToolFuelKey    = "tool_fuel_total"
	SessionFuelKey = "session_fuel"
)

// Budget is an amount that several calls share, such as the fuel of all calls of one tool in a
// session, or of all calls in a session. It is safe for concurrent use.
type Budget struct {
	key   string
	limit uint64
	left  atomic.Uint64 // remaining units
}

// NewBudget returns a budget of limit units, with spent units already used up. The unit is
// fuel or bytes. key is the key of the limit in agent.toml.
func NewBudget(key string, limit, spent uint64) *Budget {
	b := &Budget{key: key, limit: limit}
	b.left.Store(limit - min(spent, limit))
	return b
}

// Key returns the key of the limit in agent.toml.
func (b *Budget) Key() string { return b.key }

// Limit returns the size of the whole budget, in units.
func (b *Budget) Limit() uint64 { return b.limit }

// Left returns the number of remaining units.
func (b *Budget) Left() uint64 { return b.left.Load() }

// Take takes up to want units, fewer if fewer remain, and returns the number taken.
func (b *Budget) Take(want uint64) uint64 {
	for {
		left := b.left.Load()
		got := min(want, left)
		if b.left.CompareAndSwap(left, left-got) {
			return got
		}
	}
}

// Give puts back units that were taken and not used.
func (b *Budget) Give(units uint64) { b.left.Add(units) }
