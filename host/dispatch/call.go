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

// pending is one call that is being carried out. Until done is closed, only the goroutine of
// the call uses the fields after done.
type pending struct {
	d            *Dispatcher
	nextMayStart chan struct{} // closed once the call has put its question, is decided without one, or ends
	letNextStart func()        // closes nextMayStart; may be called more than once
	done         chan struct{} // closed when result and err are final

	state             state
	call              tool.Call
	hostTool          *tool.Entry    // undoEntry for a call of [Dispatcher.Undo]; nil: find looks up the tool
	artifact          *artifactArgs  // page of an artifact that the call reads; nil: it reads none
	textForModel      string         // text that the model gets if an undo is carried out; empty for other calls
	requestedName     string         // name of the tool in the call as written, maybe an alias
	seen              *seenFiles     // contents that the conversation has seen
	trial             *trial         // what was asked about the call before, see [Dispatcher.tryTogether]; nil: nothing
	allAsked          chan struct{}  // closed when all questions of a trial are put, before which nobody waits for an answer; nil: it is not tried
	callsAfter        int            // number of calls of its reply that begin after its end; 0 if it does not run alone
	noToRest          *policy.Answer // no to this or an earlier call that holds for the calls after it, too; nil: there is none
	limit             string         // LimitMessage of the result, in the last step that the agent allows; else empty
	blindWriteWarning string         // see warnOfBlindWrite
	usage             tool.Usage     // usage of the guest; zero until the guest has run
	sideEffects       sideEffects    // changes that the call has made
	movedLines        []int          // corrected line numbers in the arguments of the call; nil: none was corrected
	lineShiftNote     string         // note to the caller about movedLines; empty: none
	result            tool.Result
	err               error
	view              *toolstore.View // open store of the call's module; nil: none is open

	queuedDrafts []session.Draft // decisions, recorded with the next event of the call
	rehearsing   bool            // set while the call runs, or has run, before its decision
	held         []tool.Progress // progress reported while rehearsing; nil: none
	heldBytes    int             // bytes of all messages while rehearsing, dropped ones included
}

// carryOut takes a call from its beginning to a result that is not recorded yet. It reads from
// top to bottom as the security story. An error is a [refusal], or a fault of the host.
func (p *pending) carryOut(ctx context.Context) (tool.Result, error) {
	entry, err := p.check(ctx)
	if err != nil {
		return tool.Result{}, err
	}

	if p.noToRest != nil {
		r := tool.Failed(tool.CodeDenied, tool.PermissionDenied, "%s was not run: the answer to an earlier call of this reply was no to all calls after it, too (%s)", p.call.Tool, p.noToRest.By)
		r.Err.Hint = tool.Advise("say what you wanted to do and let the person decide")
		return r, nil
	}

	// Decide. A call that only changes files is rehearsed first: its question can then
	// show the changes. Every other call that needs an answer asks before it runs.
	p.enter(stateEvaluatingPolicy)
	facts := policy.Facts{EarlierCalls: p.d.counts.reserve(entry.Name), Files: NamedFiles(p.d.opts.Policy, p.call, entry)}
	decision := p.d.opts.Policy.Decide(p.call, entry, facts)
	p.blindWriteWarning = p.warnOfBlindWrite(entry, facts.Files)
	exec, full := entry.Capabilities.Exec != "", p.d.rehearsedRuns.whyFull(p.call)
	if p.d.opts.Policy.Freedom().Mode() == policy.ModeAuto {
		full = ""
	}
	var grant policy.Grant
	switch no, denied := p.d.denials.find(p.call); {
	case decision.Effect() != policy.Ask:
		grant, err = p.conclude(ctx, decision, policy.Answer{})
	case denied: // earlier in this turn
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

	// Record, then run. A call that turns out to need its answer first is asked about,
	// and runs again from its beginning.
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

	// Decide about its changes, which are on a stage and nowhere else yet, if that was
	// put off. Some changes are asked about every time.
	result, changes, dirs := p.collectChanges(ctx, grant, entry, result, staged)
	switch decision, differs := decision.DecideShownChanges(ctx, changes, dirs...); {
	case !grant.Rehearsal() && !differs: // decided before it ran
	case len(changes) == 0 && decision.AsksOnlyForChanges(): // no question is left
		p.queuedDrafts = append(p.queuedDrafts, p.draft(session.TypeDecision, p.unchangedRecord(decision)))
	case decision.Effect() != policy.Ask:
		grant, err = p.conclude(ctx, decision, policy.Answer{})
	case p.hostTool == undoEntry && decision.AsksOnlyForChanges():
		grant, err = p.conclude(ctx, decision, policy.Answer{Allow: true, Scope: policy.ScopeOnce, By: "who asked for it"})
	default:
		shown := changes
		if result.Err != nil { // a failed call makes no changes
			shown = nil
		}
		decision = decision.WithDiff(ctx, shown, dirs...)
		grant, err = p.conclude(ctx, decision, p.ask(ctx, p.questionAbout(decision, result, staged, changes)))
	}
	if errors.Is(err, errOutputOnly) { // the stage is dropped
		p.sideEffects.ranProcess = true
		result.AddNote("no file was changed: the person has dropped all changes of this command, and kept this output")
		return result, nil
	}
	if err != nil {
		return tool.Result{}, err
	}
	p.reportHeld()
	if staged != nil {
		staged.KeepCaches()
	}

	// Record, then make the changes: all or none.
	if result.Err == nil && len(changes) > 0 {
		made, err := p.recordChanges(ctx, grant, staged, changes, dirs)
		if err != nil {
			return tool.Result{}, err
		}
		if err := p.commit(ctx, grant, staged); err != nil {
			return tool.Result{}, err
		}
		p.sideEffects.hashes = hashChanges(p.call, made.Files)
		p.noteMade(made.Files)
	}
	if p.sideEffects.ranProcess = entry.Capabilities.Exec != ""; p.sideEffects.ranProcess && staged == nil {
		// The process may have changed anything, but the same command changes it only once.
		p.sideEffects.hashes = map[string][sha256.Size]byte{fmt.Sprintf("process %x", p.call.ArgsDigest()): {}}
	}
	p.seen.note(p.call, entry, result)
	if result.Err == nil {
		result.Unsent = entry.Content.Unsent()
	}
	return result, nil
}

// run records that the call begins, and runs it.
func (p *pending) run(ctx context.Context, grant policy.Grant, entry *tool.Entry) (tool.Result, policy.Staged, error) {
	if err := p.checkAllowedDirs(entry); err != nil { // once more: an answer can take long
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
	switch { // the host answers these itself
	case entry.Module == listModule:
		return p.d.callListTools(p.call), nil, nil
	case entry == undoEntry:
		result, staged, textForModel, err := p.d.opts.Undo.Undo(ctx, grant, p.call)
		p.textForModel = textForModel
		return result, staged, err
	}
	p.d.openGroupOf(entry)
	if p.artifact != nil {
		return p.readArtifact(ctx), nil, nil
	}
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

// mayLackGrant reports whether a failure with this code may come from a missing grant: a failure
// that the guest reports, a denial, or a crash of the guest.
func mayLackGrant(code tool.Code) bool {
	return !code.FromHost() || code == tool.CodeTrap || code == tool.CodeDenied
}

// refusal is an error that ends a call with a failed result for its caller.
type refusal struct{ result tool.Result }

func (r *refusal) Error() string { return r.result.Err.Message }

// errCrash is wrapped by the error of a call during which a part of the host has panicked. A
// panic of the approver is only a no.
var errCrash = errors.New("the host crashed")

// drive takes the call to stateCompleted in every case. An error or a panic ends only this call:
// the process and the calls beside it go on.
func (p *pending) drive(ctx context.Context) {
	defer close(p.done)
	defer p.letNextStart()
	defer p.closeStore()
	p.result, p.err = hostFault(p.call.Tool), errCrash // unless what follows replaces them
	result, err := contain(func() (tool.Result, error) { return p.carryOut(ctx) })
	if refused, ok := errors.AsType[*refusal](err); ok {
		result, err = refused.result, nil
		result.Usage = p.usage // it may have run before it was refused
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

// contain runs f and turns a panic into an error that wraps errCrash.
func contain[T any](f func() (T, error)) (result T, err error) {
	defer func() {
		if v := recover(); v != nil {
			result, err = *new(T), fmt.Errorf("%w: %v\n%s", errCrash, v, debug.Stack())
		}
	}()
	return f()
}

func (p *pending) wait() (tool.Result, error) {
	<-p.done
	return p.result, p.err
}
