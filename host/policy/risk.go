package policy

import "github.com/stockade-dev/stockade/host/tool"

// Risk says how much a call can do.
type Risk int

// The risks.
const (
	RiskSafe   Risk = iota // computes, or reads what is mounted
	RiskMedium             // changes files in what is mounted, or uses a secret
	RiskHigh               // starts a process, or reaches the network
)

func (r Risk) String() string {
	switch r {
	case RiskSafe:
		return "safe"
	case RiskMedium:
		return "medium"
	}
	return "high"
}

// RiskOf derives the risk of a tool from what it asks for.
func RiskOf(c tool.Capabilities) Risk {
	switch {
	case c.Exec != "", c.Network != tool.NetworkNone:
		return RiskHigh
	case (c.Files == tool.FilesNone || c.Files == tool.FilesRead) && len(c.Secrets) == 0:
		return RiskSafe
	}
	return RiskMedium // writes, uses a secret, or asks for something that this version does not know
}

// Effect is what a rule or a decision says. Its zero value denies.
type Effect int

// The effects.
const (
	Deny Effect = iota
	Ask
	Allow
)

func (e Effect) String() string {
	switch e {
	case Allow:
		return "allow"
	case Ask:
		return "ask"
	}
	return "deny"
}

// Scope says for how long an answer holds.
type Scope string

// The scopes.
const (
	ScopeOnce    Scope = "once"
	ScopeTurn    Scope = "turn"
	ScopeSession Scope = "session" // until this program ends
	ScopeProject Scope = "project" // remembered, for one workspace
	ScopeAlways  Scope = "always"  // remembered in a file that the user can read

	// For whatever changes nothing but what is in the directory in which this call
	// does: like session, and like always.
	ScopeBelow     Scope = "below"
	ScopeKeepBelow Scope = "keep below"
)
