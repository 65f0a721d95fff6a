package policy

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/stockade-dev/stockade/host/policy/match"
	"github.com/stockade-dev/stockade/host/policy/paths"
	"github.com/stockade-dev/stockade/host/tool"
)

// History holds the findings of searches in the history of a git repository.
type History struct {
	Repository string   // git directory of the repository
	Names      []string // some of the files in the history that look like secrets
	Whole      bool     // set if everything that references lead to was searched
	Commits    int      // number of commits that were searched
	Tips       []string // hashes of commits that a later search can leave out, with their ancestors
	At         string   // identifies the state of the repository at the time of the search
}

// Clean reports whether the whole history was searched and nothing in it looks like a secret.
func (h History) Clean() bool { return h.Whole && len(h.Names) == 0 }

// HistoryError is the error of a command that was not run, because the histories of some
// repositories have to be searched or asked about first.
type HistoryError struct {
	Unknown  []History // repositories that were not searched in their present state
	AskAbout []History // repositories that a person can be asked about
	// Learn stores the result of the built-in tool's search in a repository of Unknown. found
	// is the result of that tool; nil: it failed, and the history counts as not searched
	// completely.
	Learn func(as History, found []byte) error
}

func (e *HistoryError) Error() string { return "it is not known what it may read of a repository" }

// history decides whether commands of a tool may read a history that seems to hold secrets. If
// no rule decides it, the result is Ask, or Deny if nobody can be asked. A denial wins, but
// one of this session only over the rules before it.
func (p *Policy) history(entry *tool.Entry, repository string) Effect {
	p.mu.RLock()
	defer p.mu.RUnlock()
	effect := Ask
	for _, i := range p.historyRules {
		r := &p.rules[i]
		if r.Tool != entry.Name || r.Project != "" && r.Project != p.project || !paths.In(repository, paths.Absolute(r.HistoryDir, p.project)) ||
			!p.holds(&r.Binding, entry) || r.Effect == Allow && !r.Source.mayAllow() {
			continue
		}
		if effect = r.Effect; effect == Deny && r.Source != SourceSession {
			return Deny
		}
	}
	if effect == Ask && !p.canAsk {
		return Deny
	}
	return effect
}

// AskHistory returns the decision to ask about the histories of repositories, before the first
// command that could read them. call is that command. The answer holds for all commands of the
// tool, and does not answer the call.
func (p *Policy) AskHistory(call tool.Call, entry *tool.Entry, held []History) Decision {
	d := p.ofHistory(call, entry, Ask, "the history of a repository holds what looks like a secret")
	d.histories = held
	return d
}

func (p *Policy) ofHistory(call tool.Call, entry *tool.Entry, effect Effect, reason string) Decision {
	d := Decision{policy: p, call: call, entry: entry, access: p.accessOf(entry), work: match.NewWork(), risk: RiskOf(entry)}
	d.setOutcome(effect, byDefault("history"), reason)
	return d
}

// HistoryRules returns the rules that the answer to a question about histories creates. A rule
// covers the whole workspace if the repository is inside, so that nobody is asked twice. A no
// holds for the session.
func (d Decision) HistoryRules(allow bool, scope Scope) (out []Rule) {
	for _, h := range d.histories {
		r := Rule{Effect: Deny, Tool: d.entry.Name, HistoryDir: h.Repository, Source: SourceSession}
		if project := d.policy.project; project != "" && paths.In(h.Repository, project) {
			r.HistoryDir = project
		}
		if allow {
			r.Effect, r.Binding = Allow, bind(d.entry)
		}
		if again, err := ParseRule(r.String()); allow && scope == ScopeProject && d.policy.project != "" && err == nil && again.HistoryDir == r.HistoryDir {
			r.Project, r.Source = d.policy.project, SourceUser
		}
		if !slices.ContainsFunc(out, func(o Rule) bool { return o.HistoryDir == r.HistoryDir }) {
			out = append(out, r)
		}
	}
	return out
}

// historyQuestion turns a question about the call into one about histories.
func (d Decision) historyQuestion(q Question) Question {
	q.Command, q.AskFirstReason, q.Paths, q.Network, q.Histories = "", "", nil, nil, d.histories
	q.Warning, q.Scopes, q.Rules = "", []Scope{ScopeSession}, map[Scope]string{}
	if d.policy.project != "" {
		q.Scopes = append(q.Scopes, ScopeProject)
	}
	for _, scope := range q.Scopes {
		q.Rules[scope] = strings.Join(each(d.HistoryRules(true, scope), Rule.InWords), "\n")
	}
	return q
}

func (r Rule) checkHistory() error {
	switch {
	case r.Tool == AnyTool || r.Effect == Ask || len(r.Where)+len(r.Reads)+len(r.Except)+len(r.Risks)+len(r.Callers)+r.AfterCalls > 0 || r.Secrets+r.Below+r.OpensHost+string(r.Changes) != "":
		return errors.New("a rule about a history names a tool and a directory, and nothing else, and allows or denies: 'bash history DIR'")
	case !r.holdsPath(r.HistoryDir):
		return fmt.Errorf("rule %s: %q cannot stand for a directory there", r, r.HistoryDir)
	}
	return nil
}

// historyTexts returns the repositories and file names that a question about histories shows.
func historyTexts(histories []History) (out []string) {
	for _, h := range histories {
		out = append(append(out, h.Repository), h.Names...)
	}
	return out
}

// DecideHistorySearch decides about a call that the host makes itself: before a command can
// read the history of a repository, a built-in tool that only reads searches the history. No
// rule applies, because only names of files are passed on. A tool that is not [RiskSafe] is
// denied.
func (p *Policy) DecideHistorySearch(call tool.Call, entry *tool.Entry) Decision {
	if RiskOf(entry) != RiskSafe {
		return p.ofHistory(call, entry, Deny, "it could do more than to read what is mounted")
	}
	return p.ofHistory(call, entry, Allow, "the host looks for what looks like a secret in the history of a repository")
}
