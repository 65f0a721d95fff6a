package policy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/stockade-dev/stockade/host/tool"
)

// Source says where a rule comes from.
type Source string

// The sources.
const (
	SourceDefault  Source = "default"  // the risk of the tool decides
	SourceFlag     Source = "flag"     // --allow
	SourceSession  Source = "session"  // answered "session" at a prompt
	SourceUser     Source = "user"     // answered "always" at a prompt, or written by the user
	SourceSettings Source = "settings" // agent.toml
)

// Rule answers a question before it is asked.
type Rule struct {
	Effect Effect
	Tool   string
	// Arg and Value narrow the rule to calls whose argument Arg is exactly
	// Value. Arg empty: any arguments.
	Arg, Value string
	// Module narrows the rule to one module: "builtin", or the digest of a
	// file. Empty: any.
	Module string
	Source Source
}

// String gives the form that [ParseRule] reads.
func (r Rule) String() string {
	if r.Arg == "" {
		return r.Tool
	}
	return fmt.Sprintf("%s(%s=%s)", r.Tool, r.Arg, r.Value)
}

// ParseRule reads TOOL or TOOL(ARGUMENT=VALUE). The value is taken to the
// letter: no pattern, no quoting, up to the last parenthesis.
func ParseRule(s string) (Rule, error) {
	name, rest, narrowed := strings.Cut(s, "(")
	r := Rule{Effect: Allow, Tool: name}
	if !tool.ValidName(name) {
		return Rule{}, fmt.Errorf("rule %q: want TOOL or 'TOOL(ARGUMENT=VALUE)', for example 'bash(command=make test)'", s)
	}
	if !narrowed {
		return r, nil
	}
	inner, ok := strings.CutSuffix(rest, ")")
	if ok {
		r.Arg, r.Value, ok = strings.Cut(inner, "=")
	}
	if !ok || r.Arg == "" {
		return Rule{}, fmt.Errorf("rule %q: want 'TOOL(ARGUMENT=VALUE)', for example 'bash(command=make test)'", s)
	}
	return r, nil
}

// matches reports whether the rule speaks of this call.
func (r Rule) matches(call tool.Call, e *tool.Entry) bool {
	if r.Tool != e.Name || r.Module != "" && r.Module != ModuleID(e.Module) {
		return false
	}
	if r.Arg == "" {
		// Whoever allows a tool that starts processes has to say which command:
		// nothing confines the process yet.
		return e.Capabilities.Exec == "" || r.Effect == Deny
	}
	if exec := e.Capabilities.Exec; exec != "" && exec != r.Arg && r.Effect != Deny {
		return false
	}
	value, ok := argument(call.Args, r.Arg)
	return ok && value == r.Value
}

// ModuleID is what a rule is bound to: "builtin", or the digest of a module
// that came from elsewhere.
func ModuleID(m *tool.Module) string {
	if m.Origin == tool.OriginBuiltin {
		return string(tool.OriginBuiltin)
	}
	return "sha256:" + m.Digest
}

// argument returns an argument as text: a string as it is, anything else as JSON.
func argument(args json.RawMessage, name string) (string, bool) {
	var all map[string]json.RawMessage
	if json.Unmarshal(args, &all) != nil {
		return "", false
	}
	raw, ok := all[name]
	if !ok {
		return "", false
	}
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s, true
	}
	return string(bytes.TrimSpace(raw)), true
}
