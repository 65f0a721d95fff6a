package dispatch

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/session"
	"github.com/stockade-dev/stockade/host/tool"
	"github.com/stockade-dev/stockade/host/toolstore"
)

// pending is one call on its way. What follows done belongs to the goroutine of the
// call until that is closed.
type pending struct {
	d            *Dispatcher
	nextMayStart chan struct{} // closed by pass when the call has put its question, or has none to put before it runs
	letNextStart func()
	done         chan struct{} // closed when result and err are final

	state         state
	call          tool.Call
	hostTool      *tool.Entry // of a call of the host's own; nil: the catalog has it
	textForModel  string      // what the model is told if its changes are made
	requestedName string      // the tool's name as the caller wrote it, maybe an alias
	limit         string      // what the result says of the end of the loop
	usage         tool.Usage  // of the guest, once it has run
	sideEffects   sideEffects // on files
	movedLines    []int       // the numbers of lines in its arguments, if the host has moved them
	lineShiftNote string      // what its caller is told of that
	result        tool.Result
	err           error
	view          *toolstore.View // of the store of its module; nil: it has none

	queuedDrafts []session.Draft // decisions that are recorded with what comes next
	rehearsing   bool
	held         []tool.Progress // what a rehearsed call has said
	heldBytes    int
}

// carryOut is a call from its beginning to a result that is not recorded yet. It
// reads from top to bottom as the security story. What ends the call on its way
// is an error: a [refusal], or a fault of the host.
func (p *pending) carryOut(ctx context.Context) (tool.Result, error) {
	entry, err := p.check(ctx)
	if err != nil {
		return tool.Result{}, err
	}

	// Decide. A call that only changes files is rehearsed, and asks when it is
	// known what it changes; any other that needs an answer asks before it runs.
	p.enter(stateEvaluatingPolicy)
	facts := policy.Facts{EarlierCalls: p.d.counts.reserve(entry.Name), Files: NamedFiles(p.d.opts.Policy, p.call, entry)}
	decision := p.d.opts.Policy.Decide(p.call, entry, facts)
	exec, full := entry.Capabilities.Exec != "", p.d.rehearsedRuns.whyFull(p.call)
	var grant policy.Grant
	switch no, said := p.d.denials.find(p.call); {
	case decision.Effect() != policy.Ask:
		grant, err = p.conclude(ctx, decision, policy.Answer{})
	case said: // before in this turn
		grant, err = p.conclude(ctx, decision, no)
	case decision.CanRehearse() && !(exec && full != ""):
		grant, err = p.rehearse(decision)
	default:
		question := decision.Question()
		question.AskFirstReason = cmp.Or(question.AskFirstReason, full)
		grant, err = p.conclude(ctx, decision, p.ask(ctx, question))
	}
	if err != nil {
		p.d.counts.release(entry.Name)
		return tool.Result{}, err
	}

	// Record, then run. What cannot be rehearsed is asked about, and begins again.
	result, staged, err := p.run(ctx, grant, entry)
	if grant.Rehearsal() && errors.Is(err, policy.ErrAskFirst) {
		p.rehearsing = false
		question := decision.Question()
		question.AskFirstReason = err.Error()
		if grant, err = p.conclude(ctx, decision, p.ask(ctx, question)); err == nil {
			result, staged, err = p.run(ctx, grant, entry)
		}
	}
	if staged != nil {
		defer p.drop(staged)
	}
	if err != nil {
		return tool.Result{}, err
	}

	// Decide about what it has changed, on a stage and nowhere else yet, if that was
	// put off. Some changes are asked about each time.
	result, changes, dirs := p.collectChanges(ctx, grant, entry, result, staged)
	switch decision, differs := decision.DecideShownChanges(ctx, changes, dirs...); {
	case !grant.Rehearsal() && !differs: // that was decided before it ran
	case len(changes) == 0 && decision.AsksOnlyForChanges(): // nothing is left to be asked about
		p.queuedDrafts = append(p.queuedDrafts, p.draft(session.TypeDecision, p.unchangedRecord(decision)))
	case decision.Effect() != policy.Ask:
		grant, err = p.conclude(ctx, decision, policy.Answer{})
	case p.hostTool == undoEntry && decision.AsksOnlyForChanges():
		grant, err = p.conclude(ctx, decision, requesterApproval())
	default:
		shown := changes
		if result.Err != nil { // the changes of a call that failed are not kept
			shown = nil
		}
		decision = decision.WithDiff(ctx, shown, dirs...)
		grant, err = p.conclude(ctx, decision, p.ask(ctx, p.questionAbout(decision, result, staged, changes)))
	}
	if err != nil {
		return tool.Result{}, err
	}
	p.reportHeld()
	keepCaches(staged)

	// Record, then make the changes: all or none.
	if result.Err == nil && len(changes) > 0 {
		made, err := p.recordChanges(ctx, grant, changes, dirs)
		if err != nil {
			return tool.Result{}, err
		}
		if err := p.commit(ctx, grant, staged); err != nil {
			return tool.Result{}, err
		}
		p.sideEffects.hashes = hashChanges(p.call, made.Files)
	}
	if p.sideEffects.ranProcess = entry.Capabilities.Exec != ""; p.sideEffects.ranProcess && staged == nil {
		// Nobody knows what else that has changed, once.
		p.sideEffects.hashes = map[string][sha256.Size]byte{fmt.Sprintf("process %x", p.call.ArgsDigest()): {}}
	}
	p.d.seenFiles.note(p.call, entry, result)
	if result.Err == nil {
		result.Unsent = entry.Content.Unsent()
	}
	return result, nil
}

// run records that the call begins, and runs it.
func (p *pending) run(ctx context.Context, grant policy.Grant, entry *tool.Entry) (tool.Result, policy.Staged, error) {
	if err := p.checkAllowedDirs(entry); err != nil { // again: an answer can take long
		return tool.Result{}, nil, err
	}
	grant, err := p.openStore(ctx, grant, entry)
	if err != nil {
		return tool.Result{}, nil, err
	}
	if err := p.waitForRate(ctx, entry); err != nil {
		return tool.Result{}, nil, err
	}
	if err := p.intend(ctx, grant, entry); err != nil {
		return tool.Result{}, nil, err
	}
	p.enter(stateExecuting)
	switch { // no guest has these
	case entry.Module == listModule:
		return p.d.callListTools(p.call), nil, nil
	case entry == undoEntry:
		result, staged, told, err := p.d.opts.Undo.Undo(ctx, grant, p.call)
		p.textForModel = told
		return result, staged, err
	}
	p.d.openGroupOf(entry)
	result, staged, err := p.runWithHistory(ctx, grant, entry)
	p.usage = result.Usage
	if missing := entry.MissingHint(); missing != nil && result.Err != nil && mayLackGrant(result.Err.Code) {
		failed := *result.Err
		if failed.Hint != nil {
			missing = tool.Advise("; ").And(missing)
		}
		failed.Hint = failed.Hint.And(missing)
		result.Err = &failed
	}
	if err == nil && entry.Capabilities.Exec != "" && grant.Rehearsal() {
		p.d.rehearsedRuns.add(p.call, result.Usage.Duration)
	}
	return result, staged, err
}

// mayLackGrant reports whether a tool may have failed with this code for what it was not
// given: not with what the host says about the call, but for a refusal and a crash.
func mayLackGrant(code tool.Code) bool {
	return !code.FromHost() || code == tool.CodeTrap || code == tool.CodeDenied
}

// refusal ends a call on its way with a result, which its caller reads like any
// other.
type refusal struct{ result tool.Result }

func (r *refusal) Error() string { return r.result.Err.Message }

// errCrash is wrapped by the error of a call in which a part of the host has
// crashed.
var errCrash = errors.New("the host crashed")

// drive brings the call to its last state, whatever happens: what fails or
// crashes here ends this call, and neither the process nor the calls beside it.
func (p *pending) drive(ctx context.Context) {
	defer close(p.done)
	defer p.letNextStart()
	defer p.closeStore()
	p.result, p.err = hostFault(p.call.Tool), errCrash // until more is known
	result, err := contain(func() (tool.Result, error) { return p.carryOut(ctx) })
	if refused, ok := errors.AsType[*refusal](err); ok {
		result, err = refused.result, nil
		result.Usage = p.usage // it may have run all the same
	}
	if err != nil {
		result = hostFault(p.call.Tool)
	}
	recorded, recordErr := contain(func() (tool.Result, error) { return p.finish(ctx, result) })
	if errors.Is(recordErr, errCrash) {
		recorded = hostFault(p.call.Tool)
	}
	p.result, p.err = recorded, errors.Join(err, recordErr)
	_, err = contain(func() (tool.Result, error) { p.enter(stateCompleted); return tool.Result{}, nil })
	p.err = errors.Join(p.err, err)
}

// contain makes an error of a panic.
func contain(f func() (tool.Result, error)) (result tool.Result, err error) {
	defer func() {
		if v := recover(); v != nil {
			result, err = tool.Result{}, fmt.Errorf("%w: %v\n%s", errCrash, v, debug.Stack())
		}
	}()
	return f()
}

// wait returns what has come of the call, once it is completed.
func (p *pending) wait() (tool.Result, error) {
	<-p.done
	return p.result, p.err
}
