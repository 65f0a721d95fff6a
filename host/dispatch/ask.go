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

// ask puts the question and returns the answer; a no if no valid answer to exactly this
// question comes. A no of a person also counts for equal calls of the turn, and with
// [policy.Answer.RestOfStep] for the calls after it.
func (p *pending) ask(ctx context.Context, question policy.Question) policy.Answer {
	defer question.Changes.Close()
	question.Warn(p.blindWriteWarning)
	answer, answered := p.trial.answers(p.d.opts.SessionID, question)
	var err error
	if !answered {
		answer, err = p.putQuestion(ctx, question)
	}
	if err == nil && !answer.Allow {
		p.d.denials.add(p.call, answer)
		if answer.RestOfStep {
			p.noToRest = &answer
		}
	}
	return answer
}

// putQuestion puts a question and returns the answer. After an error the answer is a no,
// and its By holds the text of the error.
func (p *pending) putQuestion(ctx context.Context, question policy.Question) (policy.Answer, error) {
	p.enter(stateAwaitingPermission)
	question.CallsAfter = p.callsAfter
	question = question.Pose(p.d.opts.SessionID, time.Now())
	answer, err := p.await(ctx, question)
	answer.OutputOnly = answer.OutputOnly && !answer.Allow && question.Command != "" && question.Changes != nil
	if err == nil && (answer.Allow || answer.OutputOnly) {
		if err = question.CheckAnswer(answer, time.Now()); err != nil {
			err = fmt.Errorf("no yes that counts: %w", err)
		}
	}
	if err != nil {
		answer = policy.Answer{By: err.Error()}
	}
	answer.Question = question.ID
	return answer, err
}

var (
	errExpired    = fmt.Errorf("the question was not answered within %s", policy.AnswerExpires)
	errNoAnswer   = errors.New("the approver ended without an answer")
	errAskCrashed = errors.New("the approver crashed")
)

// patience limits the time that a call waits for its approver to return after the answer is
// not wanted any more. The call then goes on without the approver.
const patience = time.Second

// await waits for the answer to a question. It stops when the call is cancelled or the question
// expires, with an error; and when a person says no to an equal call, with that no. It stops
// even if the approver does not return.
func (p *pending) await(ctx context.Context, q policy.Question) (policy.Answer, error) {
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
		wait := p.d.opts.Approver.Approve(ctx, q)
		p.letNextStart()
		if p.allAsked != nil {
			<-p.allAsked
		}
		r.answer, r.err = wait()
	}()
	denied := p.d.denials.watch(p.call)
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
	if answer, ok := p.d.denials.find(p.call); ok && err == nil {
		return answer, nil
	}
	return policy.Answer{}, err
}

// conclude records the decision with its answer, and returns a grant or a refusal. No
// grant is used before its decision is durable: a decision with an answer is recorded at
// once, a decision without one together with the next event (the intent, the changes or
// the result). The answer counts only if the decision is to ask.
func (p *pending) conclude(ctx context.Context, decision policy.Decision, answer policy.Answer) (grant policy.Grant, err error) {
	p.letNextStart()
	var recorded session.Event
	if body := p.decisionRecord(decision, answer); decision.Effect() != policy.Ask {
		p.queuedDrafts = append(p.queuedDrafts, p.draft(session.TypeDecision, body))
	} else if recorded, err = p.record(ctx, session.TypeDecision, body); err != nil {
		return policy.Grant{}, err
	}
	switch {
	case ctx.Err() != nil:
		return policy.Grant{}, p.cancelledError()
	case decision.Effect() == policy.Allow:
		grant, err = decision.Grant()
	case decision.Effect() == policy.Ask && answer.Allow:
		if grant, err = decision.Approve(answer, recorded.Seq); err == nil {
			p.remember(decision, answer.Scope)
		}
	case decision.Effect() == policy.Ask && answer.OutputOnly:
		return policy.Grant{}, errOutputOnly
	default:
		return policy.Grant{}, &refusal{deniedResult(p.call.Tool, decision, answer)}
	}
	if err != nil {
		return policy.Grant{}, &refusal{tool.Failed(tool.CodeInvalidArgs, tool.ValidationFailed, "%v", err)}
	}
	return grant, nil
}

// errOutputOnly is the error of a decision with an answer that gives out the output of a command
// and nothing else, see [policy.Answer.OutputOnly].
var errOutputOnly = errors.New("only its output was kept")

// unchangedRecord returns the record of a decision to ask about changes, for a call that has
// made no changes: the effect is Allow, and there is no answer. The record gives no grant.
func (p *pending) unchangedRecord(d policy.Decision) session.Decision {
	body := p.decisionRecord(d, policy.Answer{})
	body.Answer, body.Scope, body.AnsweredBy = nil, "", ""
	body.SkippedQuestion, body.Effect, body.Rule, body.Reason = body.Reason, policy.Allow.String(), policy.UnchangedRule, "it ran on a stage, and has changed nothing to be asked about"
	return body
}

// decisionRecord returns the record of a decision, with the answer if the decision asks.
func (p *pending) decisionRecord(d policy.Decision, answer policy.Answer) session.Decision {
	body := session.Decision{
		Tool: p.call.Tool, Effect: d.Effect().String(), Risk: d.Risk().String(),
		Rule: d.Rule(), Source: string(d.Source()), Origin: d.Origin(), Reason: d.Reason(), Tier: d.Tier(),
	}
	if d.Effect() == policy.Deny {
		body.AllowHint = d.Explain().Hint
	}
	if d.Effect() == policy.Ask {
		body.Answer, body.Scope, body.AnsweredBy = &answer.Allow, answer.Scope, answer.By
		body.OutputOnly, body.RestOfStep = answer.OutputOnly, answer.RestOfStep && !answer.Allow
		if answer.Question != [32]byte{} {
			body.QuestionID = fmt.Sprintf("%x", answer.Question)
		}
	}
	return body
}

func deniedResult(name string, decision policy.Decision, answer policy.Answer) tool.Result {
	r := tool.Failed(tool.CodeDenied, tool.PermissionDenied, "%s was denied: %s", name, decision.Reason())
	if decision.Effect() == policy.Ask {
		r.Err.Message = fmt.Sprintf("%s was denied: %s, and the answer was no (%s)", name, decision.Reason(), answer.By)
	}
	x := decision.Explain()
	r.Err.Rule, r.Err.Allow = x.Rule, x.AllowRule
	if data, err := json.Marshal(x); err == nil {
		r.Err.Denial = data
	}
	if decision.Effect() == policy.Deny {
		r.Err.AllowHint = x.Hint
	}
	r.Err.Hint = tool.Advise("do not try again in another way; say what you wanted to do and let the person decide")
	if decision.Rule() == policy.MountsRule {
		r.Err.Hint = tool.Advise("name a path that tools are shown, or say what you wanted to do and let the person decide")
	}
	if r.PersonSays = answer.Because; r.PersonSays != "" {
		r.Err.Hint = tool.Advise("the person says why in the next message: do that instead")
	}
	return r
}

// remember adds the rule of an answer to the policy. An answer for one call makes no rule.
func (p *pending) remember(decision policy.Decision, scope policy.Scope) {
	decision.NoteAnswer(scope)
	rule, err := decision.RuleFor(scope)
	if err != nil {
		return // the answer holds for this call only: so it said, or its scope was not offered
	}
	p.addRule(rule)
}

// addRule adds a rule to the policy, and saves it if it outlasts the session. A rule that
// cannot be saved holds for the session, and a warning says so.
func (p *pending) addRule(rule policy.Rule) {
	if rule.Source == policy.SourceUser && p.d.opts.Remember != nil {
		if err := p.d.opts.Remember(rule); err != nil {
			p.report(tool.Progress{Level: "warn", Message: fmt.Sprintf("the answer holds for this session only: %v", err)})
		}
	}
	p.d.opts.Policy.Add(rule)
}
