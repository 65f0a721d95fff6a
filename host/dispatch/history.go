package dispatch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/session"
	"github.com/stockade-dev/stockade/host/tool"
)

// maxHistorySearches limits how often one command is put off because histories of repositories
// were not searched or asked about. Then it is denied: some references keep changing.
const maxHistorySearches = 5

// runWithHistory runs a call. Before a command starts, the histories of the repositories in
// its reach are searched for secrets, and the person is asked whether it may read those with
// some. After a no, the command runs without these histories.
func (p *pending) runWithHistory(ctx context.Context, grant policy.Grant, entry *tool.Entry) (tool.Result, policy.Staged, error) {
	for try := 0; ; try++ {
		result, staged, err := p.d.opts.Runner.Run(ctx, grant.WithBudgets(p.d.fuel.budgets(entry.Name)...), entry.Module, p.call, p.report)
		h, unknown := errors.AsType[*policy.HistoryError](err)
		if !unknown {
			return result, staged, err
		}
		if try == maxHistorySearches {
			r := tool.Failed(tool.CodeDenied, tool.PermissionDenied, "%s did not run: the references of a repository kept changing while its history was searched", p.call.Tool)
			r.Err.Hint = tool.Advise("wait until the program that changes them has finished, then try again")
			return tool.Result{}, nil, &refusal{r}
		}
		for _, u := range h.Unknown {
			if err := p.search(ctx, u, h.Learn); err != nil {
				return tool.Result{}, nil, err
			}
		}
		if len(h.Unknown) == 0 {
			if err := p.askHistory(ctx, entry, h.AskAbout); err != nil {
				return tool.Result{}, nil, err
			}
		}
	}
}

// search lets a guest search the history of a repository for secrets, and passes the findings
// to learn. If the search fails, it passes nil: the whole history counts as unsearched.
func (p *pending) search(ctx context.Context, u policy.History, learn func(policy.History, []byte) error) error {
	var found []byte
	if searcher := p.d.opts.HistoryTool; searcher != nil {
		call := p.call
		call.Tool, call.Args = searcher.Name, tool.Marshal(map[string]string{"operation": "secrets", "path": u.Repository, "revision": strings.Join(u.Tips, " ")})
		decision := p.d.opts.Policy.DecideHistorySearch(call, searcher)
		body := p.decisionRecord(decision, policy.Answer{})
		body.Histories = []string{u.Repository}
		if _, err := p.record(ctx, session.TypeDecision, body); err != nil {
			return err
		}
		if grant, err := decision.Grant(); err == nil {
			result, _, err := p.d.opts.Runner.Run(ctx, grant, searcher.Module, call, func(tool.Progress) {})
			var output struct{ Output string }
			if err == nil && result.Err == nil && json.Unmarshal(result.Output, &output) == nil {
				found = []byte(output.Output)
			}
		}
	}
	if ctx.Err() != nil {
		return p.cancelledError()
	}
	if err := learn(u, found); err != nil {
		p.report(tool.Progress{Level: "warn", Message: fmt.Sprintf("the findings in a git history could not be saved for later runs: %v", err)})
	}
	return nil
}

// askHistory asks in one question whether commands may read the contents of the held
// histories, and adds rules for the answer. A no does not deny the call: its command runs
// without them.
func (p *pending) askHistory(ctx context.Context, entry *tool.Entry, held []policy.History) error {
	decision := p.d.opts.Policy.AskHistory(p.call, entry, held)
	answer, _ := p.putQuestion(ctx, decision.Question())
	body := p.decisionRecord(decision, answer)
	for _, h := range held {
		body.Histories = append(body.Histories, h.Repository)
	}
	if _, err := p.record(ctx, session.TypeDecision, body); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return p.cancelledError()
	}
	for _, rule := range decision.HistoryRules(answer.Allow, answer.Scope) {
		p.addRule(rule)
	}
	p.enter(stateExecuting)
	return nil
}
