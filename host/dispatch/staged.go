package dispatch

import (
	"context"
	"errors"
	"fmt"

	"github.com/stockade-dev/stockade/host/diff"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/session"
	"github.com/stockade-dev/stockade/host/tool"
)

// rehearse gives a grant to run the call before it is decided: nothing of what
// it changes is made, and nothing of what it says is told, before settle has
// decided.
func (c *Call) rehearse(decision policy.Decision) (policy.Grant, *tool.Result, error) {
	grant, err := decision.Rehearse()
	if err != nil {
		r := tool.Failed(tool.CodeInvalidArgs, tool.ValidationFailed, "%v", err)
		return grant, &r, nil
	}
	c.rehearsing = true
	return grant, nil, nil
}

// What a call may say while it is rehearsed; the rest is lost.
const (
	maxHeld      = 256
	maxHeldBytes = 64 << 10
)

// hold keeps what a rehearsed call says.
func (c *Call) hold(p tool.Progress) {
	if c.heldBytes += len(p.Message); len(c.held) < maxHeld && c.heldBytes <= maxHeldBytes {
		c.held = append(c.held, p)
	}
}

// tell shows what was held.
func (c *Call) tell() {
	c.rehearsing = false
	for _, p := range c.held {
		c.report(p)
	}
	c.held = nil
}

// settle makes what a call has changed, all or none, after asking about it if
// that was put off. The result is the call's, unless it comes to nothing.
func (c *Call) settle(ctx context.Context, decision policy.Decision, grant policy.Grant, result tool.Result, staged policy.Staged) (tool.Result, error) {
	var changes []tool.Change
	if staged != nil {
		var err error
		if changes, err = staged.Changes(ctx); err != nil {
			staged, result = nil, c.unmade(ctx, grant, result, err)
		}
	}
	// Also of a call that was allowed: some changes are asked about each time.
	decision, differs := decision.After(changes)
	if grant.Rehearsal() || differs {
		var refusal *tool.Result
		var err error
		if grant, refusal, err = c.decideTried(ctx, decision, result, changes); err != nil {
			return tool.Result{}, err
		}
		if refusal != nil {
			c.rehearsing, c.held = false, nil
			refusal.Usage = result.Usage // it has run all the same
			return *refusal, nil
		}
		c.tell()
	}
	if result.Err != nil || len(changes) == 0 {
		return result, nil
	}
	if c.State() == StateAwaitingPermission {
		c.enter(StateExecuting) // what it has been given permission for
	}
	body, err := c.changes(ctx, changes)
	if err != nil {
		return c.unmade(ctx, grant, result, err), nil
	}
	if _, err := c.record(ctx, session.TypeCallChanges, body); err != nil {
		return tool.Result{}, err
	}
	err = staged.Commit(ctx, grant)
	switch {
	case err == nil:
		return result, nil
	case errors.Is(err, policy.ErrUntidy): // also if it was cancelled since
		c.report(tool.Progress{Level: "warn", Message: err.Error()})
		return result, nil
	}
	return c.unmade(ctx, grant, result, err), nil
}

// unmade is the result of a call whose changes are not made, and why.
func (c *Call) unmade(ctx context.Context, grant policy.Grant, result tool.Result, err error) tool.Result {
	var r tool.Result
	switch {
	case errors.Is(err, policy.ErrChanged):
		r = tool.Failed(tool.CodeChanged, tool.ValidationFailed, "%s has changed nothing: %v", c.call.Tool, err)
		r.Err.Hint = "somebody else changed files during the call; look at them again, then repeat the call"
	case ctx.Err() != nil:
		r = tool.Failed(tool.CodeCancelled, tool.InternalError, "%s was cancelled before its changes were made", c.call.Tool)
	case errors.Is(err, context.DeadlineExceeded):
		r = tool.Failed(tool.CodeTimeout, tool.InternalError, "%s timed out while its changes were compared or written: %v", c.call.Tool, err)
		r.Err.Hint = "nothing of what the call changed is kept, unless the error names what is left behind; change less in one call" +
			grant.Raise(policy.TimeoutKey, uint64(grant.Limits().Timeout))
	default:
		r = tool.Failed(tool.CodeNotKept, tool.IOError, "%s: its changes could not be made: %v", c.call.Tool, err)
		r.Err.Hint = "nothing of what the call changed is kept, unless the error names what is left behind"
	}
	r.Usage = result.Usage
	return r
}

// drop ends what was staged. Whatever became of the call is decided by now: what
// cannot be tidied up is the person's to know, and does not change the result.
func (c *Call) drop(staged policy.Staged) {
	if err := staged.Drop(); err != nil {
		c.rehearsing = false
		c.report(tool.Progress{Level: "warn", Message: fmt.Sprintf("what the call had staged could not be removed: %v", err)})
	}
}

// decideTried decides about a call that has run on a stage. One that asks only
// because it could change files, and has changed none, needs no answer: the
// grant is the zero one then.
func (c *Call) decideTried(ctx context.Context, decision policy.Decision, result tool.Result, changes []tool.Change) (policy.Grant, *tool.Result, error) {
	if len(changes) == 0 && decision.OnlyChanges() {
		_, err := c.record(ctx, session.TypeDecision, c.decision(decision))
		return policy.Grant{}, nil, err
	}
	if decision.Effect() != policy.Ask {
		return c.conclude(ctx, decision, policy.Question{}, policy.Answer{})
	}
	question := decision.Question()
	var all bool
	question.Changes, all = diff.Unified(ctx, changes, c.call.Cwd)
	switch {
	case result.Err != nil:
		question.Changes = "nothing: the call has failed"
	case len(changes) == 0:
		question.Changes = "nothing"
	case !all:
		question.Warn("there are more changes than are shown, and a yes is for all of them")
	}
	return c.ask(ctx, decision, question)
}

const (
	maxListed = 10_000   // changes in the log
	maxHashed = 16 << 20 // bytes of a file whose content is hashed for the log
	maxAll    = 1 << 30  // bytes that are hashed of all files
)

// changes is what the log says of what is about to be changed. It fails if
// that is not possible any more.
func (c *Call) changes(ctx context.Context, changes []tool.Change) (session.Changes, error) {
	body := session.Changes{Tool: c.call.Tool, More: max(len(changes)-maxListed, 0)}
	left := int64(maxAll)
	for _, change := range changes[:min(len(changes), maxListed)] {
		if err := ctx.Err(); err != nil {
			return body, err
		}
		before, err := logged(change.Before, &left)
		if err != nil { // the host's file is another one by now
			return body, fmt.Errorf("%s: %w: %w", change.Path, policy.ErrChanged, err)
		}
		after, err := logged(change.After, &left)
		if err != nil {
			return body, fmt.Errorf("%s: %w", change.Path, err)
		}
		body.Files = append(body.Files, session.Change{
			Path: change.Path, From: change.From, Kind: change.Kind, Before: before, After: after,
		})
	}
	return body, nil
}

// logged hashes the content if it is small and left has room for it.
func logged(v *tool.Version, left *int64) (*session.Version, error) {
	if v == nil {
		return nil, nil
	}
	out := &session.Version{Bytes: v.Size, Mode: v.Mode.String()}
	if v.Mode.IsRegular() && v.Size <= min(maxHashed, *left) {
		*left -= v.Size
		sum, err := v.SHA256()
		if err != nil {
			return nil, err
		}
		out.SHA256 = fmt.Sprintf("%x", sum)
	}
	return out, nil
}
