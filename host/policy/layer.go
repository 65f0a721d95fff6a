package policy

import (
	"fmt"
	"time"
)

// Layer is what one place says: what it permits at most, the questions that it
// answers, and how the network is reached. Only the user's and the flags' answer
// any, and only the administrator's binds anybody to a route.
type Layer struct {
	Source  Source
	Path    string // of its file, if it is one
	Ceiling Ceiling
	Answers []Rule // that allow
	Route   Route
}

// Meet returns the ceiling of all layers together.
func Meet(layers []Layer) Ceiling {
	all := make([]Ceiling, len(layers))
	for i, l := range layers {
		all[i] = l.Ceiling
	}
	return meet(all...)
}

// answers are the rules that allow, of the layers that may.
func answers(layers []Layer) []Rule {
	var out []Rule
	for _, l := range layers {
		if l.Source.mayAllow() {
			out = append(out, l.Answers...)
		}
	}
	return out
}

// The keys of agent.toml that bound a call.
const (
	TimeoutKey     = "tool_timeout"
	MemoryKey      = "tool_memory"
	FuelKey        = "tool_fuel"
	OutputKey      = "max_output_size"
	BashTimeoutKey = "bash.timeout"
	BashOutputKey  = "bash.max_output"

	NetworkTimeoutKey  = "network.timeout"
	NetworkRequestsKey = "network.max_requests"
	NetworkResponseKey = "network.max_response"
)

// under returns the limits as far as a ceiling lets them reach.
func (l Limits) under(most map[string]Most) Limits {
	lower(&l.Timeout, most, TimeoutKey)
	lower(&l.MemoryBytes, most, MemoryKey)
	lower(&l.Fuel, most, FuelKey)
	lower(&l.ToolFuel, most, ToolFuelKey)
	lower(&l.SessionFuel, most, SessionFuelKey)
	lower(&l.OutputBytes, most, OutputKey)
	lower(&l.ExecTimeoutMax, most, BashTimeoutKey)
	lower(&l.ExecOutputBytes, most, BashOutputKey)
	lower(&l.HTTPTimeout, most, NetworkTimeoutKey)
	lower(&l.HTTPRequests, most, NetworkRequestsKey)
	lower(&l.HTTPResponseBytes, most, NetworkResponseKey)
	l.ExecTimeout = min(l.ExecTimeout, l.ExecTimeoutMax)
	return l
}

func lower[T int | uint64 | time.Duration](v *T, most map[string]Most, key string) {
	if m, ok := most[key]; ok {
		*v = min(*v, T(max(m.Value, 0)))
	}
}

// Tier says how far the jail confines a process: 0 not at all, 1 its files and
// system calls, 2 its processes and its network too, 3 in a world of its own.
type Tier int

// TierNone confines nothing.
const TierNone Tier = 0

// MaxTier is the highest there is.
const MaxTier Tier = 3

func (t Tier) String() string { return fmt.Sprintf("tier %d", int(t)) }
