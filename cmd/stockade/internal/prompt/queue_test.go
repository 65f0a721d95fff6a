package prompt

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/terminal"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/tool"
)

// person is a terminal with a person at it: prompts write to it, and each prompt waits
// for a line.
type person struct {
	mu    sync.Mutex
	shown strings.Builder
	typed chan string
	open  int // prompts that wait for a line
	most  int

	moment time.Time // of the last Discard
	before string    // text that was shown before the last Discard
}

func (p *person) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.shown.Write(text)
}

// sees returns the text that was shown since the last call of sees.
func (p *person) sees() string {
	synctest.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.shown.Reset()
	return p.shown.String()
}

// Discard records the text that was shown before the input was dropped.
func (p *person) Discard() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.before = p.shown.String()
	p.moment = time.Now()
	return p.moment
}

func (p *person) After(ctx context.Context, moment time.Time) (string, error) {
	p.mu.Lock()
	if p.moment.IsZero() || !moment.Equal(p.moment) {
		p.mu.Unlock()
		return "", errors.New("what was typed before counts")
	}
	p.open++
	p.most = max(p.most, p.open)
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.open--
	}()
	select {
	case line := <-p.typed:
		return line, nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// desk is a queue in front of a person.
func desk(p *person) *Queue {
	p.typed = make(chan string)
	return NewQueue(&Terminal{
		Lines: p, Out: p, Screen: new(terminal.Screen), Size: func() (int, int) { return 80, 100 },
	}, func(q policy.Question) Question { return Question{Question: q} })
}

// waiting is a call that waits for its answer.
type waiting struct {
	answer policy.Answer
	err    error
	done   bool
}

func question(name string) policy.Question {
	return policy.Question{
		ID: sha256.Sum256([]byte(name)), Call: tool.Call{Caller: tool.CallerAgent}, Tool: name, Risk: policy.RiskMedium, Reason: "it changes files", Changes: set(created(name+".txt", "")),
		Scopes: []policy.Scope{policy.ScopeOnce, policy.ScopeAlways}, Rules: map[policy.Scope]string{policy.ScopeAlways: "allow " + name},
	}
}

func asks(ctx context.Context, u *Queue, q policy.Question) *waiting {
	w := &waiting{}
	go func() {
		w.answer, w.err = u.Approve(ctx, q)()
		w.done = true
	}()
	synctest.Wait() // so that the order of arrival is known
	return w
}

func contains(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("it does not show %q but\n%s", part, text)
		}
	}
}

func TestOnePromptAtATimeInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &person{}
		u := desk(p)
		first := asks(t.Context(), u, question("one"))
		second := asks(t.Context(), u, question("two"))
		if shown := p.sees(); !strings.Contains(shown, "one  created one.txt") || strings.Contains(shown, "two") {
			t.Errorf("it shows\n%s", shown)
		}
		p.typed <- "y"
		contains(t, p.sees(), "two  created two.txt")
		if !first.done || !first.answer.Allow || first.answer.Scope != policy.ScopeOnce || second.done {
			t.Errorf("first %+v, second %+v", first, second)
		}
		p.typed <- "a"
		contains(t, p.sees(), "That is not an answer: type y, n or r; ? shows more.")
		p.typed <- "?" // which shows what it allows
		contains(t, p.sees(), "[a] every two, kept for all workspaces:", "     │ allow two\n")
		if second.done {
			t.Error("an answer is kept of which nobody has seen what it allows")
		}
		p.typed <- "a"
		synctest.Wait()
		if !second.done || !second.answer.Allow || second.answer.Scope != policy.ScopeAlways || p.most != 1 {
			t.Errorf("second %+v, %d prompts at once", second, p.most)
		}
	})
}

// batched are calls that wait together, behind one that has had its answer.
func batched(t *testing.T, u *Queue, p *person, qs ...policy.Question) (calls []*waiting, shown string) {
	t.Helper()
	asks(t.Context(), u, question("before"))
	for _, q := range qs {
		calls = append(calls, asks(t.Context(), u, q))
	}
	p.sees()
	p.typed <- "n"
	return calls, p.sees()
}

func TestWhatWaitsTogetherIsABatch(t *testing.T) {
	for answer, allow := range map[string]bool{"y": true, "yes": true, "1": true, "n": false, "no": false, "3": false} {
		synctest.Test(t, func(t *testing.T) {
			p := &person{}
			u := desk(p)
			calls, shown := batched(t, u, p, question("one"), question("two"))
			contains(t, shown, "2 calls wait", "1. one  created one.txt", "2. two  created two.txt",
				"[y]1 yes to all 2, shown in full above", "[e]2 one by one", "[n]3 no to all")
			if strings.Contains(shown, "session") {
				t.Error("a batch offers to remember")
			}
			// It is not part of what is shown.
			late := asks(t.Context(), u, question("late"))
			for _, nothing := range []string{"", "a", "s", "always", "x", "4"} {
				p.typed <- nothing
				synctest.Wait()
			}
			p.typed <- answer
			contains(t, p.sees(), "late  created late.txt")
			for i, c := range calls {
				if !c.done || c.err != nil || c.answer.Allow != allow || c.answer.Scope == policy.ScopeAlways || c.answer.Question != question([]string{"one", "two"}[i]).ID {
					t.Errorf("call %d: %+v", i, c)
				}
			}
			if late.done {
				t.Errorf("what came late was answered: %+v", late)
			}
			p.typed <- "n"
			synctest.Wait()
			if !late.done || late.answer.Allow {
				t.Errorf("late: %+v", late)
			}
		})
	}
}

func TestABatchOneByOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &person{}
		u := desk(p)
		calls, _ := batched(t, u, p, question("one"), question("two"), question("three"))
		late := asks(t.Context(), u, question("late"))
		for i, answer := range []string{"e", "y", "n", "?"} {
			p.sees()
			p.typed <- answer
			if i < 3 {
				contains(t, p.sees(), []string{"one", "two", "three"}[i]+"  created ")
			}
		}
		p.typed <- "a"
		p.typed <- "n"
		synctest.Wait()
		for i, want := range []policy.Answer{{Allow: true, Scope: policy.ScopeOnce, By: answeredBy}, {By: answeredBy}, {Allow: true, Scope: policy.ScopeAlways, By: answeredBy}} {
			want.Question = question([]string{"one", "two", "three"}[i]).ID
			if !calls[i].done || calls[i].answer != want {
				t.Errorf("call %d: %+v", i, calls[i])
			}
		}
		if !late.done || late.answer.Allow || p.most != 1 {
			t.Errorf("late: %+v, %d prompts at once", late, p.most)
		}
	})
}

func TestNoYesToAllForWhatIsNotOnTheScreen(t *testing.T) {
	long := question("long")
	numbers := func(n int) (text string) {
		for i := range n {
			text += fmt.Sprintf("%d\n", i)
		}
		return text
	}
	long.Changes = set(created("long.txt", numbers(40)))
	tall := question("tall")
	tall.Changes = set(created("tall.txt", numbers(20)))
	bash := policy.Question{Tool: "bash", Risk: policy.RiskHigh, Command: strings.Repeat("x", 10_000), Warning: policy.UnconfinedWarning, Scopes: []policy.Scope{policy.ScopeOnce}}
	another := question("two") // than was allowed for good
	another.BindingChanges = []policy.BindingChange{change("old", "new")}
	for name, qs := range map[string][]policy.Question{
		"a long diff":      {question("one"), long},
		"more than a page": {tall, tall, tall, tall, tall},
		"a long command":   {question("one"), bash},
		"another tool":     {question("one"), another},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := &person{}
			u := desk(p)
			calls, shown := batched(t, u, p, qs...)
			if strings.Contains(shown, "[y]") {
				t.Errorf("%s: a yes to all is offered", name)
			}
			p.typed <- "y"
			p.typed <- "yes"
			synctest.Wait()
			if calls[0].done || calls[1].done {
				t.Errorf("%s: a yes to all counts", name)
			}
			p.typed <- "n"
			synctest.Wait()
		})
	}
}

func TestACancelledCallLeavesAtOnce(t *testing.T) {
	gone := errors.New("the turn is over")
	synctest.Test(t, func(t *testing.T) {
		p := &person{}
		u := desk(p)
		ctx, cancel := context.WithCancelCause(t.Context())
		shown := asks(ctx, u, question("one"))
		waits := asks(ctx, u, question("two"))
		stays := asks(t.Context(), u, question("three"))
		p.sees()
		cancel(gone)
		contains(t, p.sees(), "withdrawn: the call of one does not wait any more: the turn is over", "three  created three.txt")
		for _, w := range []*waiting{shown, waits} {
			if !w.done || !errors.Is(w.err, gone) || w.answer.Allow {
				t.Errorf("it was cancelled: %+v", w)
			}
		}
		p.typed <- "y"
		synctest.Wait()
		if !stays.done || !stays.answer.Allow {
			t.Errorf("the one that stays: %+v", stays)
		}
	})
}

func TestACallThatLeavesABatchEndsItsPrompt(t *testing.T) {
	// Whoever shows the batch, and whoever leaves it.
	for leaves := range 3 {
		synctest.Test(t, func(t *testing.T) {
			p := &person{}
			u := desk(p)
			asks(t.Context(), u, question("before"))
			var calls []*waiting
			var cancels []context.CancelFunc
			for _, name := range []string{"one", "two", "three"} {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				cancels = append(cancels, cancel)
				calls = append(calls, asks(ctx, u, question(name)))
			}
			p.typed <- "n"
			contains(t, p.sees(), "3 calls wait")
			cancels[leaves]()
			after := p.sees()
			contains(t, after, "withdrawn: ", "2 calls wait")
			p.typed <- "y"
			synctest.Wait()
			for i, c := range calls {
				if !c.done || c.answer.Allow == (i == leaves) {
					t.Errorf("%d leaves; call %d: %+v", leaves, i, c)
				}
			}
		})
	}
}

func TestWhatWasTypedBeforeTheQuestionIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &person{}
		w := asks(t.Context(), desk(p), question("one"))
		p.sees()
		if !strings.Contains(p.before, "created one.txt") || strings.Contains(p.before, "Keep") {
			t.Errorf("when it was dropped, this was on the screen: %q", p.before)
		}
		p.typed <- "?" // input before the person has seen the new rows is dropped, too
		p.sees()
		if !strings.Contains(p.before, "[a] every one, kept for all workspaces:") {
			t.Errorf("when it was dropped for the second time, this was on the screen: %q", p.before)
		}
		p.typed <- "n"
		synctest.Wait()
		if !w.done || w.err != nil {
			t.Errorf("%+v", w)
		}
	})
}

// broken is a terminal that cannot be written to.
type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestWhatCannotBeShownIsNotAllowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &person{}
		u := desk(p)
		u.asker.(*Terminal).Out = broken{}
		w := asks(t.Context(), u, question("one"))
		if !w.done || w.err == nil || w.answer.Allow {
			t.Errorf("%+v", w)
		}
	})
}

func TestManyCallsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &person{}
		u := desk(p)
		var wg sync.WaitGroup
		answers := make([]policy.Answer, 50)
		for i := range answers {
			wg.Go(func() {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if i%5 == 0 {
					go cancel()
				}
				answers[i], _ = u.Approve(ctx, question("probe"))()
			})
		}
		done := make(chan struct{})
		go func() { wg.Wait(); close(done) }()
		for i := 0; ; i++ {
			select {
			case <-done:
				if p.most > 1 {
					t.Errorf("%d prompts at once", p.most)
				}
				if slices.ContainsFunc(u.waiting, func(*pendingCall) bool { return true }) || u.shown != nil {
					t.Error("somebody is left in the queue")
				}
				return
			case p.typed <- []string{"y", "e", "n"}[i%3]:
			}
		}
	})
}
