package main

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/terminal"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/session"
	"github.com/stockade-dev/stockade/host/tool"
)

// programAsker asks the program that started this one: it shows each question as an event, and
// reads the answer from standard input, one question after the other in the order of Approve. It
// implements dispatch.Approver and is safe for concurrent use.
type programAsker struct {
	a     *app
	emit  func(session.Draft) // shows an event; set before the first question
	lines *terminal.Lines     // standard input

	mu     sync.Mutex
	newest chan struct{} // closed when no question waits any more; nil: there was none
}

// addAskFlag adds --ask.
func addAskFlag(cmd *cobra.Command, a *app) {
	cmd.Flags().BoolVar(&a.flags.ask, "ask", false, "with --json, print each question as an event, and read its answer from standard input, see stockade help output")
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		switch {
		case a.flags.ask && !a.flags.json:
			return usageError("a person at a terminal is asked without it", "--ask needs --json")
		case a.flags.ask && (len(args) == 0 || args[len(args)-1] == "-"):
			return usageError("give the prompt as an argument", "with --ask, standard input holds the answers and no prompt")
		}
		return run(cmd, args)
	}
}

// maxAnswerLine limits a line of standard input, in bytes; a longer one is no answer.
const maxAnswerLine = 4 << 10

// Approve implements dispatch.Approver. At the end of standard input nobody can be asked.
func (p *programAsker) Approve(ctx context.Context, q policy.Question) func() (policy.Answer, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	before, done := p.newest, make(chan struct{})
	p.newest = done
	return func() (policy.Answer, error) {
		defer close(done)
		if before != nil {
			<-before // that question ends with its own context, at the latest
		}
		if ctx.Err() != nil {
			return policy.Answer{}, context.Cause(ctx)
		}
		shown := p.shown(q)
		p.emit(session.Draft{Type: session.TypeQuestion, Turn: q.Call.Turn, Step: q.Call.Step, Call: q.Call.ID, Body: tool.Marshal(shown)})
		line, err := p.lines.Next(ctx)
		switch {
		case ctx.Err() != nil:
			return policy.Answer{}, context.Cause(ctx)
		case err != nil:
			return p.a.denyAll.Approve(ctx, q)()
		}
		return answerTo(ctx, q, shown, line), nil
	}
}

// shown returns the event of a question.
func (p *programAsker) shown(q policy.Question) session.Question {
	change := q.Changes.Digest()
	out := session.Question{ID: hex.EncodeToString(q.ID[:]), Change: hex.EncodeToString(change[:]), Expires: q.AskedAt.Add(policy.AnswerExpires).UTC().Format(time.RFC3339)}
	q = q.Redacted(p.a.redactor)
	out.Tool, out.Risk, out.Reason, out.Warning = q.Tool, q.Risk.String(), q.Reason, q.Warning
	out.Command, out.Dir, out.Paths, out.Network, out.OpensHost = q.Command, q.Dir, q.Paths, q.Network, q.OpensHost
	out.Secrets, out.AskFirst, out.Failed, out.Output, out.Changes = tool.SecretNames(q.Secrets), q.AskFirstReason, q.Failed, q.Output, q.Changes.String()
	for _, h := range q.Histories {
		out.Histories, out.Names = append(out.Histories, h.Repository), append(out.Names, h.Names...)
	}
	return out
}

// answerTo returns the answer that a line gives to a question, for this call only. A line that
// is not exactly an answer to it is a no.
func answerTo(ctx context.Context, q policy.Question, shown session.Question, line string) policy.Answer {
	form, err := tool.CompileSchema(fmt.Appendf(nil, `{"type":"object","required":["question","change","allow"],"additionalProperties":false,
		"properties":{"question":{"const":%q},"change":{"const":%q},"allow":{"type":"boolean"}}}`, shown.ID, shown.Change))
	var given struct{ Allow bool }
	if len(line) > maxAnswerLine || err != nil || form.Validate(ctx, []byte(line)) != nil || json.Unmarshal([]byte(line), &given) != nil {
		return policy.Answer{By: "standard input, with a line that is no answer to the question"}
	}
	return policy.Answer{Question: q.ID, Allow: given.Allow, Scope: policy.ScopeOnce, By: "standard input"}
}
