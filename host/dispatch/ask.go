package dispatch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/session"
	"github.com/stockade-dev/stockade/host/tool"
)

// decide turns a decision into a grant or a refusal, asking if it must. A call
// that only changes files gets a grant to be rehearsed, and asks with what it
// has changed.
func (c *Call) decide(ctx context.Context, decision policy.Decision) (policy.Grant, *tool.Result, error) {
	if decision.Effect() != policy.Ask {
		c.pass()
		return c.conclude(ctx, decision, policy.Question{}, policy.Answer{})
	}
	if answer, ok := c.d.denials.find(c.call); ok {
		return c.conclude(ctx, decision, policy.Question{}, answer)
	}
	if decision.CanRehearse() {
		return c.rehearse(decision)
	}
	return c.ask(ctx, decision, decision.Question())
}

// ask puts the question and takes the answer.
func (c *Call) ask(ctx context.Context, decision policy.Decision, question policy.Question) (policy.Grant, *tool.Result, error) {
	c.enter(StateAwaitingPermission)
	question = question.Put(c.d.opts.Session, time.Now())
	answer, err := c.await(ctx, question)
	if err == nil && answer.Allow {
		err = question.Settles(answer, time.Now())
	}
	switch {
	case err != nil:
		answer = policy.Answer{By: err.Error()}
	case !answer.Allow:
		c.d.denials.add(c.call, answer)
	}
	return c.conclude(ctx, decision, question, answer)
}

var (
	errExpired    = fmt.Errorf("the question was not answered within %s", policy.AnswerExpires)
	errNoAnswer   = errors.New("whoever was to ask ended without an answer")
	errAskCrashed = errors.New("whoever was to ask crashed")
)

// patience is how long an approver may take to notice that its answer is not
// wanted any more. A prompt that goes away needs none of it.
const patience = time.Second

// await waits for the answer, and no longer than the call lives or the question
// can be answered, nor when a person has said no to the same call meanwhile. It
// does not depend on the approver for that.
func (c *Call) await(ctx context.Context, q policy.Question) (policy.Answer, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, policy.AnswerExpires, errExpired)
	defer cancel()
	type reply struct {
		answer policy.Answer
		err    error
	}
	replies := make(chan reply, 1)
	go func() {
		r := reply{err: errNoAnswer}
		defer func() {
			if p := recover(); p != nil {
				r = reply{err: fmt.Errorf("%w: %v", errAskCrashed, p)}
			}
			replies <- r
		}()
		wait := c.d.opts.Approver.Approve(ctx, q)
		c.pass()
		r.answer, r.err = wait()
	}()
	denied := c.d.denials.watch(c.call)
	select {
	case r := <-replies:
		return r.answer, r.err
	case <-ctx.Done():
	case <-denied:
	}
	err := context.Cause(ctx)
	cancel()
	select {
	case <-replies:
	case <-time.After(patience):
	}
	if answer, ok := c.d.denials.find(c.call); ok && err == nil {
		return answer, nil
	}
	return policy.Answer{}, err
}

// conclude records what was decided and what was answered, and gives a grant or
// a refusal. There is no grant that is not durable before.
func (c *Call) conclude(ctx context.Context, decision policy.Decision, question policy.Question, answer policy.Answer) (grant policy.Grant, refusal *tool.Result, err error) {
	body := c.decision(decision)
	if decision.Effect() == policy.Ask {
		body.Answer, body.Scope, body.By = &answer.Allow, answer.Scope, answer.By
		if question.ID != [32]byte{} {
			body.Question = fmt.Sprintf("%x", question.ID)
		}
	}
	recorded, err := c.record(ctx, session.TypeDecision, body)
	if err != nil {
		return policy.Grant{}, nil, err
	}
	switch {
	case ctx.Err() != nil:
		r := c.cancelled()
		return policy.Grant{}, &r, nil
	case decision.Effect() == policy.Allow:
		grant, err = decision.Grant()
	case decision.Effect() == policy.Ask && answer.Allow:
		if grant, err = decision.Approve(answer, recorded.Seq); err == nil {
			c.remember(decision, answer.Scope)
		}
	default:
		r := denied(c.call.Tool, decision, answer)
		return policy.Grant{}, &r, nil
	}
	if err != nil {
		r := tool.Failed(tool.CodeInvalidArgs, tool.ValidationFailed, "%v", err)
		return policy.Grant{}, &r, nil
	}
	return grant, nil, nil
}

func (c *Call) decision(d policy.Decision) session.Decision {
	return session.Decision{
		Tool: c.call.Tool, Effect: d.Effect().String(), Risk: d.Risk().String(),
		Rule: d.Rule(), Source: string(d.Source()), Origin: d.Origin(), Reason: d.Reason(),
	}
}

func denied(name string, decision policy.Decision, answer policy.Answer) tool.Result {
	r := tool.Failed(tool.CodeDenied, tool.PermissionDenied, "%s was denied: %s", name, decision.Reason())
	if decision.Effect() == policy.Ask {
		r.Err.Message = fmt.Sprintf("%s was denied: %s, and the answer was no (%s)", name, decision.Reason(), answer.By)
	}
	x := decision.Explain()
	r.Err.Rule, r.Err.Allow = x.Rule, x.Allow
	if data, err := json.Marshal(x); err == nil {
		r.Err.Denial = data
	}
	if decision.Effect() == policy.Deny {
		r.Err.Message += "; " + x.Change
	}
	r.Err.Hint = "do not try again in another way; say what you wanted to do and let the person decide"
	if decision.Rule() == policy.MountsRule {
		r.Err.Hint = "name a path that tools are shown, or say what you wanted to do and let the person decide"
	}
	return r
}

// remember makes the rule of an answer hold. A rule that cannot be kept on
// disk holds for the session, and that is said.
func (c *Call) remember(decision policy.Decision, scope policy.Scope) {
	rule, err := decision.RuleFor(scope)
	if err != nil {
		return // once, or a scope that the question did not offer: holds once
	}
	if (scope == policy.ScopeAlways || scope == policy.ScopeProject) && c.d.opts.Remember != nil {
		if err := c.d.opts.Remember(rule); err != nil {
			c.report(tool.Progress{Level: "warn", Message: fmt.Sprintf("the answer holds for this session only: %v", err)})
		}
	}
	c.d.opts.Policy.Add(rule)
}
