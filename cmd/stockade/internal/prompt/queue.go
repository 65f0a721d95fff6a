package prompt

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/humanize"
	"github.com/stockade-dev/stockade/host/policy"
)

// Queue asks about calls in the order in which they arrive, with one prompt at a time. Calls
// that wait together are shown as a batch; a call that arrives later waits for the next
// prompt. A cancelled call leaves the queue at once, even while its prompt is shown. Queue
// implements dispatch.Approver and is safe for concurrent use.
type Queue struct {
	asker      Asker
	prepare    func(policy.Question) Question
	promptSlot chan struct{} // channel of size 1: full while a goroutine shows a prompt

	mu           sync.Mutex
	waiting      []*pendingCall // calls without an answer, in order of arrival, including shown
	shown        []*pendingCall
	cancelPrompt context.CancelCauseFunc // ends the prompt about shown; nil: no prompt is open
}

// pendingCall is a call that waits for an answer.
type pendingCall struct {
	q            policy.Question
	individually bool // the calls of this call's batch are asked about one by one; guarded by Queue.mu

	answered chan struct{} // closed once answer and err are set, which nobody reads before
	answer   policy.Answer
	err      error
}

// NewQueue returns a queue that shows its prompts through asker. prepare adds facts to a
// question and removes secrets from it.
func NewQueue(asker Asker, prepare func(policy.Question) Question) *Queue {
	return &Queue{asker: asker, prepare: prepare, promptSlot: make(chan struct{}, 1)}
}

// Approve implements dispatch.Approver. The goroutines that wait for the returned function's
// result show the prompts, whichever comes first.
func (u *Queue) Approve(ctx context.Context, q policy.Question) func() (policy.Answer, error) {
	a := &pendingCall{q: q, answered: make(chan struct{})}
	u.mu.Lock()
	u.waiting = append(u.waiting, a)
	u.mu.Unlock()
	return func() (policy.Answer, error) { return u.wait(ctx, a) }
}

// wait returns the answer to the call a. Until then it shows prompts, also about other calls.
func (u *Queue) wait(ctx context.Context, a *pendingCall) (policy.Answer, error) {
	defer context.AfterFunc(ctx, func() { u.withdraw(a, context.Cause(ctx)) })()
	defer func() { u.withdraw(a, context.Cause(ctx)) }()
	for {
		select {
		case <-a.answered:
			return a.answer, a.err
		case <-ctx.Done():
			return policy.Answer{}, context.Cause(ctx)
		case u.promptSlot <- struct{}{}:
		}
		// The answer or the end may have come while wait waited for promptSlot.
		select {
		case <-a.answered:
		case <-ctx.Done():
		default:
			u.show(ctx)
		}
		<-u.promptSlot
	}
}

var errSeparately = errors.New("each call is asked about by itself")

// withdraw removes a call from the queue. If a prompt shows the call, withdraw cancels the
// prompt with cause.
func (u *Queue) withdraw(a *pendingCall, cause error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.waiting = slices.DeleteFunc(u.waiting, func(o *pendingCall) bool { return o == a })
	if slices.Contains(u.shown, a) {
		u.cancelPrompt(fmt.Errorf("the call of %s does not wait any more: %w", humanize.ToolName(a.q.Tool), cause))
	}
}

// show shows the prompt about the next batch. The caller holds promptSlot.
func (u *Queue) show(ctx context.Context) {
	batch, ctx, done := u.next(ctx)
	defer done()
	if len(batch) == 0 {
		return // the last waiting call was just cancelled
	}
	questions := make([]Question, len(batch))
	for i, a := range batch {
		questions[i] = u.prepare(a.q)
	}
	p := forCalls(questions)
	if len(batch) == 1 {
		p = ForCall(questions[0])
	}
	choice, err := u.asker.Ask(ctx, p)
	if err == nil && choice.Letter == keyOneByOne {
		if !p.separable {
			u.mu.Lock()
			defer u.mu.Unlock()
			for _, a := range batch {
				a.individually = true
			}
			return
		}
		err = errSeparately
	}
	u.deliver(ctx, batch, choice.Policy(), err)
}

// next returns the next batch: the first waiting call and, unless it is asked about
// individually, all calls behind it. The returned context ends when one of these calls is
// withdrawn. The caller calls the returned function after the prompt.
func (u *Queue) next(ctx context.Context) ([]*pendingCall, context.Context, func()) {
	ctx, end := context.WithCancelCause(context.WithoutCancel(ctx)) // withdraw handles the end of each call
	u.mu.Lock()
	defer u.mu.Unlock()
	batch := slices.Clone(u.waiting)
	if len(batch) > 1 && batch[0].individually {
		batch = batch[:1]
	}
	u.shown, u.cancelPrompt = batch, end
	return batch, ctx, func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		u.shown, u.cancelPrompt = nil, nil
		end(nil)
	}
}

// deliver gives an answer to each call of a batch. If one of the calls was withdrawn
// meanwhile, none gets the answer, because the person saw another batch.
func (u *Queue) deliver(ctx context.Context, batch []*pendingCall, answer policy.Answer, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	for _, a := range batch {
		a.answer, a.err = answer, err
		a.answer.Question = a.q.ID
		answer.Because = "" // the model gets it once
		close(a.answered)
	}
	u.shown = nil
	u.waiting = slices.DeleteFunc(u.waiting, func(o *pendingCall) bool { return slices.Contains(batch, o) })
}
