package policy

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Statement describes one rule or bound of a layer for a person.
type Statement struct {
	Source Source `json:"source"`
	Origin string `json:"origin,omitempty"` // place where it is written
	Effect string `json:"effect,omitempty"` // allow, ask or deny; empty for a bound
	Rule   string `json:"rule,omitempty"`   // text of the rule; empty for a bound
	Words  string `json:"words"`            // the meaning
}

// Describe returns the statements of the layer, its rules last.
func (l Layer) Describe() []Statement {
	var out []Statement
	c := l.Ceiling
	say := func(f Provenance, format string, args ...any) {
		out = append(out, Statement{Source: f.Source, Origin: f.Origin, Words: fmt.Sprintf(format, args...)})
	}
	lists := func(noun string, lists []List) {
		for _, l := range lists {
			if len(l.Values) == 0 {
				say(l.From, "no %s", noun)
			} else {
				say(l.From, "no %s but %s", noun, quoted(l.Values))
			}
		}
	}
	for _, l := range c.Confirm {
		say(l.From, "every call asks first")
	}
	lists("directory", c.Directories)
	for _, l := range c.Hidden {
		say(l.From, "no tool sees %s", l.Value)
	}
	for _, l := range c.DisabledCapabilities {
		say(l.From, "no tool that %s = false switches off", l.Value)
	}
	for _, l := range c.DisabledNames {
		say(l.From, "no tool and no module of the name %s", l.Value)
	}
	lists("host", c.Hosts)
	if p := l.Route.Proxy; p != nil {
		names := ""
		if p.Resolves {
			names = ", which gets names"
		}
		say(p.From, "the internet is reached through the proxy %q%s, and no other way", p.URL, names)
	}
	for _, f := range l.Route.CAFiles {
		say(f.From, "the certificate authorities in %q are trusted", f.Value)
	}
	lists("provider", c.Providers)
	lists("address of a provider", c.BaseURLs)
	for _, l := range c.SignedOnly {
		say(l.From, "no module without a verified signature")
	}
	for _, l := range c.ModulesClosed {
		say(l.From, "no module is added, or run by its path")
	}
	lists("registry of modules", c.Registries)
	for _, l := range c.Modules {
		say(l.From, "no module but the built-in ones, of digest %s, signed by %s, in the namespace %s",
			quoted(l.Digests), quoted(l.Signers), quoted(l.Namespaces))
	}
	if m := c.MinTier; m != nil {
		say(m.From, "no process below tier %d", m.Value)
	}
	if m := c.Changes; m != nil {
		say(m.From, "%s is %s, or narrower", ChangesKey, m)
	}
	for _, l := range c.AskFirst {
		say(l.From, "a command that has to be asked about is asked about before it runs")
	}
	for _, l := range c.NoAuto {
		say(l.From, "changes are never made without a question that would be asked")
	}
	for _, l := range c.AuditExports {
		say(l.From, "every session is exported to %q", l.Value)
	}
	for _, key := range slices.Sorted(maps.Keys(c.Limits)) {
		say(c.Limits[key].From, "%s is at most %s", key, c.Limits[key])
	}
	for _, r := range slices.Concat(c.Rules, l.Answers) {
		out = append(out, r.Describe())
	}
	return out
}

// Describe describes the rule.
func (r Rule) Describe() Statement {
	return Statement{Source: r.Source, Origin: r.Origin, Effect: r.Effect.String(), Rule: r.String(), Words: r.InWords()}
}

func quoted(values []string) string {
	if len(values) == 0 {
		return "none"
	}
	return strings.Join(each(values, strconv.Quote), ", ")
}
