package prompt

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/humanize"
	"github.com/stockade-dev/stockade/host/policy"
)

// Queue asks about one thing at a time, in the order in which questions arrive.
// Those that wait together are shown as a batch; what arrives after that is not
// part of it. A call that is cancelled leaves at once, also while it is shown. It
// implements dispatch.Approver and is safe for concurrent use.
type Queue struct {
	asker      Asker
	prepare    func(policy.Question) Question
	promptSlot chan struct{} // held by who shows a prompt; holds one

	mu           sync.Mutex
	waiting      []*pendingCall // in order of arrival, also while they are shown
	shown        []*pendingCall
	cancelPrompt context.CancelCauseFunc // of the prompt that shows them
}

// pendingCall is one call that waits for an answer.
type pendingCall struct {
	q            policy.Question
	individually bool // its batch is to be asked about one by one; guarded by Queue.mu

	answered chan struct{} // closed when what follows is set
	answer   policy.Answer
	err      error
}

// NewQueue returns a queue in front of whoever asks. prepare looks up what a question
// does not say, and takes secrets out.
func NewQueue(asker Asker, prepare func(policy.Question) Question) *Queue {
	return &Queue{asker: asker, prepare: prepare, promptSlot: make(chan struct{}, 1)}
}

// Approve implements dispatch.Approver. The prompts are shown by the calls that
// wait, whichever comes first.
func (u *Queue) Approve(ctx context.Context, q policy.Question) func() (policy.Answer, error) {
	a := &pendingCall{q: q, answered: make(chan struct{})}
	u.mu.Lock()
	u.waiting = append(u.waiting, a)
	u.mu.Unlock()
	return func() (policy.Answer, error) { return u.wait(ctx, a) }
}

// wait returns the answer, showing prompts until there is one.
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
		// Both may have happened while it waited for the prompt.
		select {
		case <-a.answered:
		case <-ctx.Done():
		default:
			u.show(ctx)
		}
		<-u.promptSlot
	}
}

// withdraw takes a call out of the queue, and ends the prompt that shows it.
func (u *Queue) withdraw(a *pendingCall, cause error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.waiting = slices.DeleteFunc(u.waiting, func(o *pendingCall) bool { return o == a })
	if slices.Contains(u.shown, a) {
		u.cancelPrompt(fmt.Errorf("the call of %s does not wait any more: %w", humanize.ToolName(a.q.Tool), cause))
	}
}

// show shows one prompt. Who calls it holds the prompt.
func (u *Queue) show(ctx context.Context) {
	batch, ctx, done := u.next(ctx)
	defer done()
	if len(batch) == 0 {
		return // the last one has just been cancelled
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
		u.mu.Lock()
		defer u.mu.Unlock()
		for _, a := range batch {
			a.individually = true
		}
		return
	}
	u.deliver(ctx, batch, choice.answer(), err)
}

// next is what is asked about next: the first that waits, and if nobody wants it
// asked by itself, all that wait behind it. The context ends with any of them.
func (u *Queue) next(ctx context.Context) ([]*pendingCall, context.Context, func()) {
	ctx, end := context.WithCancelCause(context.WithoutCancel(ctx)) // each call's own end is seen to by withdraw
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

// deliver gives everyone in a batch the answer. Where one of them was withdrawn
// meanwhile nobody has one: what was shown is not what would be answered.
func (u *Queue) deliver(ctx context.Context, batch []*pendingCall, answer policy.Answer, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	for _, a := range batch {
		a.answer, a.err = answer, err
		a.answer.Question = a.q.ID
		close(a.answered)
	}
	u.shown = nil
	u.waiting = slices.DeleteFunc(u.waiting, func(o *pendingCall) bool { return slices.Contains(batch, o) })
}
