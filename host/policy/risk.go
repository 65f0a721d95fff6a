package policy

import "github.com/stockade-dev/stockade/host/tool"

// Risk says how much a call can do.
type Risk int

// The risks.
const (
	RiskSafe   Risk = iota // computes, or is a built-in tool that reads what is mounted
	RiskMedium             // changes files in what is mounted, uses a secret, or reads what is mounted and is not built in
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

// RiskOf derives the risk of a tool from what it may have, and from whether it is ours.
func RiskOf(e *tool.Entry) Risk {
	c := e.Capabilities
	switch {
	case c.Exec != "", c.Network != tool.NetworkNone:
		return RiskHigh
	case len(c.Secrets) > 0:
	case c.Files == tool.FilesNone, c.Files == tool.FilesRead && !isThirdParty(e):
		return RiskSafe
	}
	return RiskMedium // or it asks for something that this version does not know
}

// isThirdParty reports whether others wrote the tool, as far as is known.
func isThirdParty(e *tool.Entry) bool { return e.Module.Origin != tool.OriginBuiltin }

// isThirdPartyReader reports whether others wrote the tool and it reads files, so that
// this alone is asked about. A person who calls a file by its path, and says what it
// is shown, has named both.
func (d Decision) isThirdPartyReader() bool {
	own := d.entry.Module.Origin == tool.OriginFile && d.call.Caller == tool.CallerPerson
	return isThirdParty(d.entry) && !own && (d.entry.Capabilities.Files != tool.FilesNone || d.entry.Capabilities.Exec != "")
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
