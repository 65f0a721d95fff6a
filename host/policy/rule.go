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
	SourceAdmin    Source = "administrator"
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
func (r *Rule) matches(args *arguments, e *tool.Entry) bool {
	if r.Tool != e.Name || r.Module != "" && r.Module != ModuleID(e.Module) {
		return false
	}
	if r.Arg == "" {
		// Whoever allows a tool that starts processes has to say which command:
		// nothing confines the process yet.
		return e.Capabilities.Exec == "" || r.Effect == Deny
	}
	if exec := e.Capabilities.Exec; exec != "" && r.Effect == Allow && r.Source != SourceFlag {
		return false // a remembered answer never starts a process, however it came into the file
	}
	if exec := e.Capabilities.Exec; exec != "" && exec != r.Arg && r.Effect != Deny {
		return false
	}
	value, ok := args.text(r.Arg)
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

// arguments are those of one call, decoded when the first is asked for: many
// rules may look at them, most calls meet none that does.
type arguments struct {
	raw     json.RawMessage
	decoded bool
	all     map[string]json.RawMessage

	// The argument that text returned last: rules come in runs on the same one.
	name, value string
	there       bool
}

// get returns an argument as it was sent.
func (a *arguments) get(name string) (json.RawMessage, bool) {
	if !a.decoded {
		a.decoded = true
		if json.Unmarshal(a.raw, &a.all) != nil {
			a.all = nil
		}
	}
	raw, ok := a.all[name]
	return bytes.TrimSpace(raw), ok
}

// text returns an argument as rules write it: a string as it is, anything else
// as JSON.
func (a *arguments) text(name string) (string, bool) {
	if a.decoded && name == a.name {
		return a.value, a.there
	}
	raw, there := a.get(name)
	s, ok := str(raw)
	if !ok {
		s = string(raw)
	}
	a.name, a.value, a.there = name, s, there
	return s, there
}

// str returns an argument that is a string, and nothing else.
func (a *arguments) str(name string) (string, bool) {
	raw, ok := a.get(name)
	if !ok {
		return "", false
	}
	return str(raw)
}

func str(raw json.RawMessage) (s string, ok bool) {
	// null decodes into a string too, as the empty one.
	if len(raw) == 0 || raw[0] != '"' || json.Unmarshal(raw, &s) != nil {
		return "", false
	}
	return s, true
}
