package policy

import "github.com/stockade-dev/stockade/host/tool"

// Risk is the harm that a tool can do.
type Risk int

// The risks.
const (
	RiskSafe   Risk = iota // a tool that computes, or is built in and only reads mounted files
	RiskMedium             // one that changes mounted files, uses a secret, or reads and is not built in
	RiskHigh               // one that starts a process or reaches the network
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

// RiskOf returns the risk of a tool, by its capabilities and its origin.
func RiskOf(e *tool.Entry) Risk {
	c := e.Capabilities
	switch {
	case c.Exec != "", c.Network != tool.NetworkNone:
		return RiskHigh
	case len(c.Secrets) > 0:
	case c.Files == tool.FilesNone, c.Files == tool.FilesRead && !isThirdParty(e):
		return RiskSafe
	}
	return RiskMedium // also for capabilities that this version does not know
}

// isThirdParty reports whether the tool is not built in.
func isThirdParty(e *tool.Entry) bool { return e.Module.Origin != tool.OriginBuiltin }

// isThirdPartyReader reports whether a third-party tool reads files or starts a process, which
// is reason enough to ask about a call. It is false if a person runs the tool by the path of
// its file: then the person has chosen both the tool and the directories that it sees.
func (d Decision) isThirdPartyReader() bool {
	own := d.entry.Module.Origin == tool.OriginFile && d.call.Caller == tool.CallerPerson
	return isThirdParty(d.entry) && !own && (d.entry.Capabilities.Files != tool.FilesNone || d.entry.Capabilities.Exec != "")
}

// Effect is the result of a rule or a decision. Its zero value is Deny.
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

// Scope is the time for which an answer holds, or the calls that it covers.
type Scope string

// The scopes. Calls are calls of the same tool; if it runs commands, with the same words.
const (
	ScopeOnce    Scope = "once"    // this call
	ScopeTurn    Scope = "turn"    // calls in this turn of the session
	ScopeSession Scope = "session" // calls until this program ends
	ScopeProject Scope = "project" // remembered, for calls in this workspace
	ScopeAlways  Scope = "always"  // remembered, for calls in any workspace

	// For all calls of the tool that change nothing outside the directory of this call's
	// changes.
	ScopeBelow     Scope = "below"      // until this program ends
	ScopeKeepBelow Scope = "keep below" // remembered like ScopeAlways

	// For plain changes below the working directory by all built-in tools, until the chat ends:
	// see [Freedom].
	ScopeFree Scope = "free"
)
