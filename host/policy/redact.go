package policy

import (
	"slices"

	"github.com/stockade-dev/stockade/host/redact"
)

// Redacted returns the question without secrets, for showing it. If added content holds a
// secret, an answer can only be for this call. What runs, and what the answer is bound to, is
// the call of the original question.
func (q Question) Redacted(r *redact.Redactor) Question {
	q.Call.Args = r.JSON(q.Call.Args)
	for _, text := range []*string{&q.Reason, &q.Of, &q.First, &q.Command, &q.Dir, &q.Says, &q.Output, &q.Warning, &q.Opens, &q.Allow} {
		*text = r.Text(*text)
	}
	if q.Changes = q.Changes.Redacted(r.Text); len(q.Scopes) > 1 && q.Changes.Hides() {
		q.Scopes, q.Rules = []Scope{ScopeOnce}, nil
	}
	q.Paths, q.Network = slices.Clone(q.Paths), slices.Clone(q.Network)
	for _, texts := range [][]string{q.Paths, q.Network} {
		for i := range texts {
			texts[i] = r.Text(texts[i])
		}
	}
	q.Histories = slices.Clone(q.Histories)
	for i := range q.Histories {
		h := &q.Histories[i]
		h.Repository, h.Names = r.Text(h.Repository), each(h.Names, r.Text)
	}
	rules := map[Scope]string{}
	for scope, words := range q.Rules {
		rules[scope] = r.Text(words)
	}
	q.Rules = rules
	changed := slices.Clone(q.Changed)
	for i := range changed {
		c := &changed[i]
		for _, text := range []*string{
			&c.Rule, &c.Was.Said.Description, &c.Was.Said.Schema, &c.Was.Said.AsksFor,
			&c.Now.Said.Description, &c.Now.Said.Schema, &c.Now.Said.AsksFor,
		} {
			*text = r.Text(*text)
		}
	}
	q.Changed = changed
	return q
}
