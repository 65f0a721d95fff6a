package policy

import "sync/atomic"

// What the configuration calls the limits that several calls share.
const (
	ToolFuelKey    = "tool_fuel_total"
	SessionFuelKey = "session_fuel"
)

// Budget is fuel that several calls draw from: all calls of one tool in a
// session, or all calls of a session. It is safe for concurrent use.
type Budget struct {
	key   string
	limit uint64
	left  atomic.Uint64
}

// NewBudget returns a budget of limit units, of which spent are gone. The key
// is the configuration's name for the limit.
func NewBudget(key string, limit, spent uint64) *Budget {
	b := &Budget{key: key, limit: limit}
	b.left.Store(limit - min(spent, limit))
	return b
}

// Key is what the configuration calls the limit.
func (b *Budget) Key() string { return b.key }

// Limit is the size of the whole budget, in units of fuel.
func (b *Budget) Limit() uint64 { return b.limit }

// Left is what can still be taken.
func (b *Budget) Left() uint64 { return b.left.Load() }

// Take takes up to want units and returns how many it got.
func (b *Budget) Take(want uint64) uint64 {
	for {
		left := b.left.Load()
		got := min(want, left)
		if b.left.CompareAndSwap(left, left-got) {
			return got
		}
	}
}

// Give returns what was taken and not used.
func (b *Budget) Give(units uint64) { b.left.Add(units) }
