package prompt

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/words"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/secret"
	"github.com/stockade-dev/stockade/host/tool"
)

// details returns all else that is known about a question.
func details(v View, q Question) []string {
	p := page{v: v, all: true}
	about := words.ToolName(q.Tool) + ", risk " + q.Risk.String()
	if q.Module != "" {
		about += fmt.Sprintf(", module sha256 %.16s", q.Module)
	}
	p.titled("tool", about)
	p.titled("of", q.Of)
	p.titled("asks", q.Reason)
	p.titled("not run yet", q.First)
	p.titled("it says", q.Says)
	if q.Command != "" {
		p.titled("in", q.Dir)
	}
	for _, path := range q.Paths {
		p.titled("file", path)
		p.titled("leads to", q.LeadsTo[path])
	}
	p.titled("may reach", strings.Join(q.Network, "\n"))
	if q.Opens != "" {
		p.titled("for good", "network.allow of agent.toml opens a host")
	}
	for _, s := range q.Secrets {
		p.titled("secret", secretWords(s))
	}
	p.titled("has written", q.Output)
	var changed []string
	for _, c := range q.Changed {
		changed = append(changed, c.InWords()...)
	}
	p.titled("not as it was", strings.Join(changed, "\n"))
	if text := q.Command + q.Changes.String(); text != "" {
		p.titled("its text", fmt.Sprintf("%d bytes, sha256 %.16x", len(text), sha256.Sum256([]byte(text))))
	}
	prompt := One(q)
	for _, c := range append(prompt.choices, prompt.behind...) {
		if rule := q.Rules[c.scope]; rule != "" {
			p.ours("", "  ", fmt.Sprintf("[%c] %s:", c.Letter, c.Words))
			p.text(rule, 0)
		}
	}
	keys := "more keys  [d] the whole text"
	if prompt.arguments != nil {
		keys += "  [j] arguments"
	}
	p.ours("", "  ", keys)
	if slices.ContainsFunc(prompt.behind, func(c Choice) bool { return keeps(c.scope) }) {
		p.ours("", "  ", "what is kept ends with `stockade policy revoke`")
	}
	p.warnings(q)
	p.findings()
	return p.out
}

// keeps reports whether an answer outlasts the program.
func keeps(s policy.Scope) bool {
	return s == policy.ScopeProject || s == policy.ScopeAlways || s == policy.ScopeKeepBelow
}

// secretWords names a secret, the header that has its value, and the hosts that get it.
func secretWords(s tool.Secret) string {
	header, hosts := s.Header, strings.Join(s.Hosts, ", ")
	if header == "" {
		header = "the header that it is bound to, or " + secret.DefaultHeader
	}
	if hosts == "" {
		hosts = "the hosts that it is bound to"
	}
	return fmt.Sprintf("%s, as a placeholder; the value goes to %s, in %s", s.Name, hosts, header)
}
