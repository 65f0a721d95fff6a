package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
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
	// Secrets are the names of the secrets that the rule allows too, sorted and
	// separated by commas. A rule that allows says nothing of a tool that asks
	// for another one: an answer never covers more than was asked.
	Secrets string
	// Module narrows the rule to one module: "builtin", or the digest of a
	// file. Empty: any.
	Module string
	Source Source
}

// String gives the form that [ParseRule] reads.
func (r Rule) String() string {
	text := r.Tool
	if r.Arg != "" {
		text = fmt.Sprintf("%s(%s=%s)", r.Tool, r.Arg, r.Value)
	}
	if r.Secrets != "" {
		text += with + r.Secrets
	}
	return text
}

// with stands between a rule and the secrets that it allows.
const with = " with "

// ParseRule reads TOOL or TOOL(ARGUMENT=VALUE), either with " with NAME,NAME"
// behind it for the secrets that are allowed too. The value is taken to the
// letter: no pattern, no quoting, up to the last parenthesis.
func ParseRule(s string) (Rule, error) {
	// A value ends with a parenthesis, which no name of a secret holds.
	if i := strings.LastIndex(s, with); i >= 0 && !strings.HasSuffix(s, ")") {
		r, err := ParseRule(s[:i])
		if err != nil || r.Secrets != "" {
			return Rule{}, errors.Join(err, fmt.Errorf("rule %q: want 'TOOL with SECRET,SECRET'", s))
		}
		names := strings.Split(s[i+len(with):], ",")
		if !slices.IsSorted(names) || len(slices.Compact(slices.Clone(names))) != len(names) {
			return Rule{}, fmt.Errorf("rule %q: the secrets are named once each, in the order of the alphabet", s)
		}
		for _, name := range names {
			if !tool.ValidSecretName(name) {
				return Rule{}, fmt.Errorf("rule %q: %q cannot be the name of a secret; want 'TOOL with SECRET,SECRET'", s, name)
			}
		}
		r.Secrets = strings.Join(names, ",")
		return r, nil
	}
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
	if r.Effect == Allow && !r.allowsSecrets(e.Capabilities.Secrets) {
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

// allowsSecrets reports whether the rule names every secret that a tool asks for.
func (r *Rule) allowsSecrets(asked []tool.Secret) bool {
	if len(asked) == 0 {
		return true
	}
	allowed := strings.Split(r.Secrets, ",")
	return !slices.ContainsFunc(asked, func(s tool.Secret) bool { return !slices.Contains(allowed, s.Name) })
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
