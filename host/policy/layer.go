package policy

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stockade-dev/stockade/host/tool"
)

// Layer is one place that sets policy, such as the administrator's file: a ceiling, answers to
// questions, and a route to the network. Only the answers of the user and of flags count, and
// only the administrator's route.
type Layer struct {
	Source  Source
	Path    string // path of its file; empty if it has none
	Ceiling Ceiling
	Answers []Rule // rules that allow
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

func answers(layers []Layer) []Rule {
	var out []Rule
	for _, l := range layers {
		if l.Source.mayAllow() {
			out = append(out, l.Answers...)
		}
	}
	return out
}

// Keys of agent.toml for limits of a call. Messages about a limit name its key.
const (
	TimeoutKey = "tool_timeout"
	MemoryKey  = "tool_memory"
)

// MinTierKey is the key of agent.toml and policy.toml for the lowest tier in which a process
// may run.
const MinTierKey = "bash.min_tier"

// The keys of agent.toml that switch off all tools that ask for a capability.
const (
	ExecKey        = "tools.exec"
	FilesKey       = "tools.fs"
	NetworkKey     = "tools.web"
	StoreSwitchKey = "tools.store"
)

// OffKey is the key of agent.toml that switches off tools and modules by name.
const OffKey = "tools.off"

func isNamed(name string, e *tool.Entry) bool { return name == e.Name || name == e.Module.Name }

// switchedOff returns the use that a tool with the capabilities c makes of a capability that
// is switched off, as a clause of a reason. key names the switch, such as [ExecKey]. Empty:
// the tool does not use the capability. For an unknown key every tool is off.
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
	return "this version does not know that switch"
}

// SwitchedOff returns the key of the switch that forbids the tool, [OffKey] included. Empty:
// none does.
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

// bashTool stands for all processes: a rule that denies bash without conditions denies every
// tool with a process.
const bashTool = "bash"

// forbidsProcesses reports whether the rule denies every call of bash.
func (r *Rule) forbidsProcesses() bool {
	return r.Effect == Deny && (r.Tool == bashTool || r.Tool == AnyTool && !slices.Contains(r.Except, bashTool)) &&
		len(r.Where) == 0 && len(r.Risks) == 0 && len(r.Callers) == 0 && r.AfterCalls == 0 && r.Turn == 0 && r.Binding.Module == "" && r.Project == "" && r.HistoryDir == ""
}

// UnconfinedWarning returns a warning if the ceiling restricts files but also permits
// processes, which nothing confines to these files. Empty: there is nothing to warn of. tier
// is called only if needed.
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

// under returns the limits, each at most its cap in caps, if it has one.
func (l Limits) under(caps map[string]Limit) Limits {
	lower(&l.Timeout, caps, TimeoutKey)
	lower(&l.MemoryBytes, caps, MemoryKey)
	lower(&l.Fuel, caps, "tool_fuel")
	lower(&l.ToolFuel, caps, ToolFuelKey)
	lower(&l.SessionFuel, caps, SessionFuelKey)
	lower(&l.StoreBytes, caps, StoreKey)
	lower(&l.SessionStoreBytes, caps, SessionStoreKey)
	lower(&l.OutputBytes, caps, "max_output_size")
	lower(&l.ExecTimeoutMax, caps, "bash.timeout")
	lower(&l.ExecOutputBytes, caps, "bash.max_output")
	lower(&l.HTTPTimeout, caps, "network.timeout")
	lower(&l.HTTPRequests, caps, "network.max_requests")
	lower(&l.HTTPResponseBytes, caps, "network.max_response")
	l.ExecTimeout = min(l.ExecTimeout, l.ExecTimeoutMax)
	return l
}

func lower[T int | uint64 | time.Duration](v *T, caps map[string]Limit, key string) {
	if m, ok := caps[key]; ok {
		*v = min(*v, T(max(m.Value, 0)))
	}
}

// Tier is the degree to which the jail confines a process. 0: not at all. 1: files and system
// calls. 2: other processes and the network, too. 3: the process runs in namespaces of its own
// and sees only its mounts and the system's programs.
type Tier int

const (
	TierNone     Tier = 0 // no confinement
	TierConfined Tier = 2 // lowest tier in which a remembered rule for a command counts
	MaxTier      Tier = 3 // the highest tier
)

func (t Tier) String() string { return fmt.Sprintf("tier %d", int(t)) }
