package policy

import (
	"slices"

	"github.com/stockade-dev/stockade/host/redact"
)

// Redacted returns the question without secrets, to be shown. If it hides a secret in a line
// that the call adds, an answer can hold for this call only. The original question still
// defines the call that runs and the ID that the answer names.
func (q Question) Redacted(r *redact.Redactor) Question {
	q.Call.Args = r.JSON(q.Call.Args)
	for _, text := range []*string{&q.Reason, &q.ModuleText, &q.AskFirstReason, &q.Command, &q.Dir, &q.CallerDescription, &q.Output, &q.Warning, &q.OpensHost, &q.AllowRule} {
		*text = r.Text(*text)
	}
	if q.Changes = q.Changes.Redacted(r.Text); len(q.Scopes) > 1 && q.Changes.HidesSecrets() {
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
	changed := slices.Clone(q.BindingChanges)
	for i := range changed {
		c := &changed[i]
		for _, text := range []*string{
			&c.Rule, &c.Was.Texts.Description, &c.Was.Texts.Schema, &c.Was.Texts.AsksFor,
			&c.Now.Texts.Description, &c.Now.Texts.Schema, &c.Now.Texts.AsksFor,
		} {
			*text = r.Text(*text)
		}
	}
	q.BindingChanges = changed
	return q
}
