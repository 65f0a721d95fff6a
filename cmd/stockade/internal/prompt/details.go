package prompt

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/humanize"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/secret"
)

// details returns rows with everything about a question that its first rows do not show.
func details(v View, q Question) []string {
	p := rowBuilder{v: v, all: true}
	about := humanize.ToolName(q.Tool) + ", risk " + q.Risk.String()
	if q.Module != "" {
		about += fmt.Sprintf(", module sha256 %.16s", q.Module)
	}
	p.titled("tool", about)
	p.titled("of", q.ModuleText)
	p.titled("asks", q.Reason)
	p.titled("not run yet", q.AskFirstReason)
	p.titled("it says", q.CallerDescription)
	if q.Command != "" {
		p.titled("in", q.Dir)
	}
	for _, path := range q.Paths {
		p.titled("file", path)
		p.titled("leads to", q.LeadsTo[path])
	}
	p.titled("may reach", strings.Join(q.Network, "\n"))
	if q.OpensHost != "" {
		p.titled("for good", "network.allow of agent.toml opens a host")
	}
	for _, s := range q.Secrets {
		p.titled("secret", fmt.Sprintf("%s, as a placeholder; the value goes to %s, in %s", s.Name,
			cmp.Or(strings.Join(s.Hosts, ", "), "the hosts that it is bound to"), cmp.Or(s.Header, "the header that it is bound to, or "+secret.DefaultHeader)))
	}
	p.titled("has written", q.Output)
	var changed []string
	for _, c := range q.BindingChanges {
		changed = append(changed, c.InWords()...)
	}
	p.titled("has changed", strings.Join(changed, "\n"))
	if text := q.Command + q.Changes.String(); text != "" {
		p.titled("its text", fmt.Sprintf("%d bytes, sha256 %.16x", len(text), sha256.Sum256([]byte(text))))
	}
	prompt := ForCall(q)
	for _, c := range append(prompt.choices, prompt.moreChoices...) {
		if rule := q.Rules[c.scope]; rule != "" {
			p.own("", "  ", fmt.Sprintf("[%c] %s:", c.Letter, c.Label))
			p.text(rule, 0)
		}
	}
	for _, c := range prompt.sideChoices {
		p.own("", "  ", fmt.Sprintf("[%c] %s: %s", c.Letter, c.Label, c.details))
	}
	keys := "more keys  [d] the whole text"
	if prompt.arguments != nil {
		keys += "  [j] arguments"
	}
	p.own("", "  ", keys)
	permanent := []policy.Scope{policy.ScopeProject, policy.ScopeAlways, policy.ScopeKeepBelow}
	if slices.ContainsFunc(prompt.moreChoices, func(c Choice) bool { return slices.Contains(permanent, c.scope) }) {
		p.own("", "  ", "`stockade policy revoke` removes kept answers")
	}
	p.warnings(q)
	p.findings()
	return p.out
}
