package policy

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stockade-dev/stockade/host/tool"
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

// Combine returns the ceiling of all layers together.
func Combine(layers []Layer) Ceiling {
	all := make([]Ceiling, len(layers))
	for i, l := range layers {
		all[i] = l.Ceiling
	}
	return Narrow(all...)
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

// Keys of agent.toml that bound a call. Messages about a limit name its key.
const (
	TimeoutKey = "tool_timeout"
	MemoryKey  = "tool_memory"
)

// MinTierKey is the key, of agent.toml and of policy.toml, for the least tier in
// which a process may be started.
const MinTierKey = "bash.min_tier"

// The keys of agent.toml that switch off whatever asks for a capability.
const (
	ExecKey        = "tools.exec"
	FilesKey       = "tools.fs"
	NetworkKey     = "tools.web"
	StoreSwitchKey = "tools.store"
)

// OffKey is the key of agent.toml that switches off tools and modules by their names.
const OffKey = "tools.off"

// isNamed reports whether a name is that of the tool or of its module.
func isNamed(name string, e *tool.Entry) bool { return name == e.Name || name == e.Module.Name }

// switchedOff says what a tool does that a switch forbids; empty if nothing. A
// switch that is not known forbids everything.
func switchedOff(key string, c tool.Capabilities) string {
	switch {
	case key == ExecKey && c.Exec == "", key == FilesKey && c.Files == tool.FilesNone, key == NetworkKey && c.Network == tool.NetworkNone, key == StoreSwitchKey && !c.Store:
		return ""
	case key == ExecKey:
		return "it starts a process"
	case key == FilesKey:
		return "it reaches files"
	case key == NetworkKey:
		return "it reaches the network"
	case key == StoreSwitchKey:
		return "it keeps things in a session"
	}
	return "what that forbids is not known"
}

// SwitchedOff is the key of the switch that forbids a tool; empty: none does.
func (c Ceiling) SwitchedOff(e *tool.Entry) string {
	for _, off := range c.DisabledCapabilities {
		if switchedOff(off.Value, e.Capabilities) != "" {
			return off.Value
		}
	}
	if slices.ContainsFunc(c.DisabledNames, func(l Setting) bool { return isNamed(l.Value, e) }) {
		return OffKey
	}
	return ""
}

// bashTool is the tool whose name stands for starting processes: whoever
// forbids it without conditions forbids every tool that may start one.
const bashTool = "bash"

// forbidsProcesses reports whether no call of a tool that starts processes gets
// past the rule.
func (r *Rule) forbidsProcesses() bool {
	return r.Effect == Deny && (r.Tool == bashTool || r.Tool == AnyTool && !slices.Contains(r.Except, bashTool)) &&
		len(r.Where) == 0 && len(r.Risks) == 0 && len(r.Callers) == 0 && r.AfterCalls == 0 && r.Turn == 0 && r.Binding.Module == "" && r.Project == "" && r.HistoryDir == ""
}

// UnconfinedWarning says that what the ceiling permits of files does not bind processes,
// where it permits them in this tier, which is asked for where it matters; empty if there is nothing to say.
func (c Ceiling) UnconfinedWarning(tier func() Tier) string {
	if len(c.Directories)+len(c.Hidden) == 0 || tier() > TierNone || c.MinTier != nil && c.MinTier.Value > int64(tier()) ||
		slices.ContainsFunc(c.DisabledCapabilities, func(l Setting) bool { return l.Value == ExecKey }) ||
		slices.ContainsFunc(c.Rules, func(r Rule) bool { return r.forbidsProcesses() }) {
		return ""
	}
	var keys []string
	if len(c.Directories) > 0 {
		keys = append(keys, "files.directories")
	}
	if len(c.Hidden) > 0 {
		keys = append(keys, "files.hidden")
	}
	return fmt.Sprintf("%s: bash is not bound by this, because nothing confines processes here: a command that is allowed reaches every file of the user's; "+
		"to refuse commands where that is so, write [bash] with min_tier = 1", strings.Join(keys, ", "))
}

// under returns the limits as far as a ceiling lets them reach.
func (l Limits) under(most map[string]Limit) Limits {
	lower(&l.Timeout, most, TimeoutKey)
	lower(&l.MemoryBytes, most, MemoryKey)
	lower(&l.Fuel, most, "tool_fuel")
	lower(&l.ToolFuel, most, ToolFuelKey)
	lower(&l.SessionFuel, most, SessionFuelKey)
	lower(&l.StoreBytes, most, StoreKey)
	lower(&l.SessionStoreBytes, most, SessionStoreKey)
	lower(&l.OutputBytes, most, "max_output_size")
	lower(&l.ExecTimeoutMax, most, "bash.timeout")
	lower(&l.ExecOutputBytes, most, "bash.max_output")
	lower(&l.HTTPTimeout, most, "network.timeout")
	lower(&l.HTTPRequests, most, "network.max_requests")
	lower(&l.HTTPResponseBytes, most, "network.max_response")
	l.ExecTimeout = min(l.ExecTimeout, l.ExecTimeoutMax)
	return l
}

func lower[T int | uint64 | time.Duration](v *T, most map[string]Limit, key string) {
	if m, ok := most[key]; ok {
		*v = min(*v, T(max(m.Value, 0)))
	}
}

// Tier says how far the jail confines a process: 0 not at all, 1 its files and
// system calls, 2 its processes and its network too, 3 in a world of its own.
type Tier int

const (
	TierNone     Tier = 0 // confines nothing
	TierConfined Tier = 2 // the least in which rules over commands count like others
	MaxTier      Tier = 3 // the highest there is
)

func (t Tier) String() string { return fmt.Sprintf("tier %d", int(t)) }
