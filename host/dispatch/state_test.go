package dispatch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/session"
	"github.com/stockade-dev/stockade/host/tool"
)

var states = []state{stateIdle, stateEvaluatingPolicy, stateAwaitingPermission, stateExecuting, stateCompleted}

// Of the 25 pairs of states exactly the listed ones are transitions. Every other one
// stops the call before it does anything in the next state.
func TestEveryTransition(t *testing.T) {
	ways := []string{
		"idle evaluating_policy", "idle completed",
		"evaluating_policy awaiting_permission", "evaluating_policy executing", "evaluating_policy completed",
		"awaiting_permission executing", "awaiting_permission completed",
		"executing awaiting_permission", "executing completed",
	}
	for _, from := range states {
		for _, to := range states {
			t.Run(fmt.Sprintf("%s %s", from, to), func(t *testing.T) {
				w := newWorld(t, policy.Options{})
				c := &pending{d: New(w.options), state: from}
				_, err := contain(func() (tool.Result, error) { c.enter(to); return tool.Result{}, nil })
				known := slices.Contains(ways, fmt.Sprintf("%s %s", from, to))
				if known != (err == nil) || known != w.did("state "+string(to)) {
					t.Errorf("%v, shown: %v", err, w.trace)
				}
				if want := map[bool]state{true: to, false: from}[known]; c.state != want {
					t.Errorf("it is %s", c.state)
				}
			})
		}
	}
}

// TestWhereACallIs: the state that is shown of a call is the one that it is in,
// also while it waits, and its caller need not wait with it.
func TestWhereACallIs(t *testing.T) {
	w := newWorld(t, policy.Options{})
	asked, answer := make(chan policy.Question), make(chan policy.Answer)
	w.options.Approver = approverFunc(func(_ context.Context, q policy.Question) (policy.Answer, error) {
		asked <- q
		return <-answer, nil
	})
	running, end := make(chan bool), make(chan bool)
	w.run = func(context.Context, policy.Grant, *tool.Module, tool.Call, func(tool.Progress)) (tool.Result, error) {
		running <- true
		<-end
		return tool.Result{Output: tool.Text("done")}, nil
	}
	c := New(w.options).start(t.Context(), aCall("bash", `{"command":"ls"}`))
	q := <-asked
	if !w.did("state awaiting_permission") || w.did("state executing") {
		t.Errorf("while it is asked about it did %v", w.trace)
	}
	answer <- policy.Answer{Question: q.ID, Allow: true}
	<-running
	if !w.did("state executing") || w.did("state completed") {
		t.Errorf("while it runs it did %v", w.trace)
	}
	close(end)
	if r, err := c.wait(); err != nil || r.Err != nil || c.state != stateCompleted {
		t.Errorf("%+v, %v, %s", r, err, c.state)
	}
}

type approverFunc func(context.Context, policy.Question) (policy.Answer, error)

func (f approverFunc) Approve(ctx context.Context, q policy.Question) func() (policy.Answer, error) {
	return func() (policy.Answer, error) { return f(ctx, q) }
}

// at has something happen in a state of a call, as soon as it is shown.
func at(w *world, state state, do func()) {
	var once sync.Once
	w.options.Log.(*session.Log).Observe(func(e session.Event) {
		if e.Type == session.TypeCallState && strings.Contains(string(e.Body), `"`+string(state)+`"`) {
			once.Do(do)
		}
	})
}

// TestACancelledCallIsCompleted in whatever state it is: it changes nothing
// from then on, and its end is recorded.
func TestACancelledCallIsCompleted(t *testing.T) {
	for _, name := range []string{"bash", "file_write"} {
		for _, state := range []state{stateEvaluatingPolicy, stateAwaitingPermission, stateExecuting} {
			t.Run(name+" "+string(state), func(t *testing.T) {
				w := newWorld(t, policy.Options{})
				ctx, cancel := context.WithCancel(t.Context())
				w.answer = func(ctx context.Context, q policy.Question) (policy.Answer, error) {
					if state == stateAwaitingPermission {
						<-ctx.Done()
					}
					return policy.Answer{Question: q.ID, Allow: true}, nil
				}
				w.run = func(ctx context.Context, _ policy.Grant, _ *tool.Module, _ tool.Call, _ func(tool.Progress)) (tool.Result, error) {
					if ctx.Err() != nil {
						return tool.Failed(tool.CodeCancelled, tool.InternalError, "cancelled"), nil
					}
					return tool.Result{Output: tool.Text("done")}, nil
				}
				at(w, state, cancel)
				args := map[string]string{"bash": `{"command":"ls"}`, "file_write": `{}`}[name]
				c := New(w.options).start(ctx, aCall(name, args))
				r, err := c.wait()
				if err != nil || r.Err == nil || r.Err.Code != tool.CodeCancelled || c.state != stateCompleted {
					t.Errorf("%+v, %v, %s", r.Err, err, c.state)
				}
				if w.did("commit") || !w.did("durable tool_result") || w.trace[len(w.trace)-1] != "state completed" {
					t.Errorf("%v", w.trace)
				}
				if state != stateExecuting && w.did("run") {
					t.Errorf("it ran: %v", w.trace)
				}
			})
		}
	}
	t.Run("idle", func(t *testing.T) {
		w := newWorld(t, policy.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if r, err := w.call(ctx, aCall("file_read", `{}`)); err != nil || r.Err.Code != tool.CodeCancelled || w.did("run") {
			t.Errorf("%+v, %v: %v", r.Err, err, w.trace)
		}
	})
}

// TestACrashEndsOnlyTheCall: whatever part of the host panics in whatever
// state, the call is completed, what is staged is dropped, the failure is
// recorded, its caller gets an error and the next call runs.
func TestACrashEndsOnlyTheCall(t *testing.T) {
	boom := func() { panic("boom /home/u") }
	for name, prepare := range map[string]func(w *world){
		"idle":                func(w *world) { w.options.Catalog = nil },
		"evaluating_policy":   func(w *world) { w.options.Policy = nil },
		"awaiting_permission": func(w *world) { at(w, stateAwaitingPermission, boom) },
		"executing":           func(w *world) { at(w, stateExecuting, boom) },
		"completed":           func(w *world) { at(w, stateCompleted, boom) },
		"the runner": func(w *world) {
			w.run = func(context.Context, policy.Grant, *tool.Module, tool.Call, func(tool.Progress)) (tool.Result, error) {
				panic("boom /home/u")
			}
		},
		"its changes": func(w *world) { w.atChanges = boom },
		"the commit":  func(w *world) { w.atCommit = boom },
		"the log":     func(w *world) { w.options.Log = crashing{w.options.Log} },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, policy.Options{})
			w.answer = yes(policy.ScopeOnce)
			d := New(w.options)
			prepare(w)
			d.opts = w.options
			d.catalog.Store(w.options.Catalog)
			c := d.start(t.Context(), aCall("file_write", `{}`))
			r, err := c.wait()
			if !errors.Is(err, errCrash) || c.state != stateCompleted {
				t.Errorf("%v, %s", err, c.state)
			}
			if name == "completed" { // it was, but for telling so
				return
			}
			if r.Err == nil || r.Err.Code != tool.CodeHost || strings.Contains(string(r.Envelope()), "/home/u") {
				t.Errorf("its result is %s", r.Envelope())
			}
			if (w.did("commit") && name != "the commit" && name != "the log") || slices.Contains(w.trace, "rehearse") && name != "the runner" && !w.did("drop") {
				t.Errorf("%v", w.trace)
			}
			if name != "the log" {
				if m := body[llm.Message](w, session.TypeToolResult); !w.faulted || strings.Contains(string(m.Data), "/home/u") {
					t.Errorf("recorded: %s, fault: %v", m.Data, w.faulted)
				}
			}
		})
	}
}

// crashing is a log that panics when it is given a result.
type crashing struct{ Recorder }

func (c crashing) Append(ctx context.Context, drafts ...session.Draft) ([]session.Event, error) {
	for _, d := range drafts {
		if d.Type == session.TypeToolResult {
			panic("boom /home/u")
		}
	}
	return c.Recorder.Append(ctx, drafts...)
}

func TestAnApproverThatFailsIsANo(t *testing.T) {
	for name, c := range map[string]struct {
		approve approverFunc
		says    string
	}{
		"it crashes":   {func(context.Context, policy.Question) (policy.Answer, error) { panic("boom") }, "crashed"},
		"it has no ID": {func(context.Context, policy.Question) (policy.Answer, error) { return policy.Answer{Allow: true}, nil }, "another question"},
		"it fails and says": {func(_ context.Context, q policy.Question) (policy.Answer, error) {
			return policy.Answer{Question: q.ID, Allow: true}, errDisk
		}, "no space"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, policy.Options{})
			w.options.Approver = c.approve
			r, err := w.call(t.Context(), aCall("bash", `{"command":"ls"}`))
			if err != nil || r.Err == nil || r.Err.Code != tool.CodeDenied || !strings.Contains(r.Err.Message, c.says) || w.did("run") {
				t.Errorf("%v, %v: %v", r.Err, err, w.trace)
			}
		})
	}
}

// TestAnAnswerHoldsForItsQuestionOnly (E10): an answer that was given before,
// to the same call of another session, to another call, or to the same call
// with other arguments, allows nothing.
func TestAnAnswerHoldsForItsQuestionOnly(t *testing.T) {
	ask := func(session string, call tool.Call) (first policy.Question) {
		w := newWorld(t, policy.Options{})
		w.options.SessionID = session
		w.answer = func(_ context.Context, q policy.Question) (policy.Answer, error) {
			first = q
			return policy.Answer{}, nil
		}
		if _, err := w.call(t.Context(), call); err != nil {
			t.Fatal(err)
		}
		return first
	}
	same := aCall("bash", `{"command":"ls"}`)
	other := same
	other.ID = "c2"
	for name, before := range map[string]policy.Question{
		"the same, before":    ask("s", same),
		"of another session":  ask("t", same),
		"to another call":     ask("s", other),
		"for other arguments": ask("s", aCall("bash", `{"command":"ls -l"}`)),
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, policy.Options{})
			w.options.SessionID = "s"
			w.answer = func(_ context.Context, q policy.Question) (policy.Answer, error) {
				return policy.Answer{Question: before.ID, Allow: true, Scope: policy.ScopeSession}, nil
			}
			r, err := w.call(t.Context(), same)
			if err != nil || r.Err == nil || r.Err.Code != tool.CodeDenied || w.did("run") || len(w.policy.Rules()) != 0 {
				t.Errorf("%v, %v: %v", r.Err, err, w.trace)
			}
		})
	}
}

// TestAQuestionExpires, and neither that nor a cancelled call depends on an
// approver that comes back.
func TestAQuestionExpires(t *testing.T) {
	for name, c := range map[string]struct {
		approve approverFunc
		cancel  time.Duration
		took    time.Duration
		code    tool.Code
	}{
		"a late answer": {func(_ context.Context, q policy.Question) (policy.Answer, error) {
			time.Sleep(policy.AnswerExpires + time.Millisecond)
			return policy.Answer{Question: q.ID, Allow: true}, nil
		}, 0, policy.AnswerExpires, tool.CodeDenied},
		"an answer in time": {func(_ context.Context, q policy.Question) (policy.Answer, error) {
			time.Sleep(policy.AnswerExpires - time.Second)
			return policy.Answer{Question: q.ID, Allow: true}, nil
		}, 0, policy.AnswerExpires - time.Second, ""},
		"a stuck approver":        {stuck, 0, policy.AnswerExpires, tool.CodeDenied},
		"a stuck one, cancelled":  {stuck, time.Minute, time.Minute, tool.CodeCancelled},
		"an attentive, cancelled": {attentive, time.Minute, time.Minute, tool.CodeCancelled},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, policy.Options{})
				w.options.Approver = c.approve
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if c.cancel > 0 {
					time.AfterFunc(c.cancel, cancel)
				}
				began := time.Now()
				r, err := w.call(ctx, aCall("bash", `{"command":"ls"}`))
				if took := time.Since(began); took < c.took || took > c.took+patience {
					t.Errorf("it took %s", took)
				}
				if err != nil || w.did("run") != (c.code == "") || c.code != "" && (r.Err == nil || r.Err.Code != c.code) {
					t.Errorf("%v, %v: %v", r.Err, err, w.trace)
				}
				time.Sleep(24 * time.Hour) // until the last approver is back
			})
		})
	}
}

// stuck is deaf for its context for half a day.
func stuck(_ context.Context, q policy.Question) (policy.Answer, error) {
	time.Sleep(12 * time.Hour)
	return policy.Answer{Question: q.ID, Allow: true}, nil
}

func attentive(ctx context.Context, _ policy.Question) (policy.Answer, error) {
	<-ctx.Done()
	return policy.Answer{}, ctx.Err()
}

// TestANoHoldsForTheTurn: the same call is not asked about again, and does not
// run either; other arguments, other turns and calls of a person are.
func TestANoHoldsForTheTurn(t *testing.T) {
	for _, name := range []string{"bash", "file_write"} {
		args, others := `{"command":"ls"}`, `{"command":"ls -l"}`
		if name == "file_write" {
			args, others = `{"path":"a"}`, `{"path":"b"}`
		}
		call := func(args string, turn int) tool.Call {
			c := aCall(name, args)
			c.Turn = turn
			return c
		}
		for what, c := range map[string]struct {
			then  tool.Call
			asked bool
		}{
			"the same":        {call(args, 2), false},
			"written apart":   {call(strings.Replace(args, ":", " : ", 1), 2), false},
			"other arguments": {call(others, 2), true},
			"another turn":    {call(args, 3), true},
			"an older turn":   {call(args, 1), true},
		} {
			t.Run(name+" "+what, func(t *testing.T) {
				w := newWorld(t, policy.Options{})
				d := New(w.options)
				w.answer = no
				if r, err := d.Call(t.Context(), call(args, 2)); err != nil || r.Err.Code != tool.CodeDenied {
					t.Fatalf("%v, %v", r.Err, err)
				}
				w.trace, w.answer = nil, no
				r, err := d.Call(t.Context(), c.then)
				if err != nil || r.Err == nil || r.Err.Code != tool.CodeDenied || w.did("ask") != c.asked {
					t.Errorf("%v, %v: %v", r.Err, err, w.trace)
				}
				if !c.asked && (w.did("rehearse") || w.did("run") || !strings.Contains(r.Err.Message, "before in this turn")) {
					t.Errorf("%v: %v", r.Err, w.trace)
				}
			})
		}
	}
	t.Run("a person's", func(t *testing.T) {
		w := newWorld(t, policy.Options{})
		w.answer = no
		d, c := New(w.options), aCall("bash", `{"command":"ls"}`)
		c.Turn = 0
		for range 2 {
			w.trace = nil
			if _, err := d.Call(t.Context(), c); err != nil || !w.did("ask") {
				t.Errorf("%v: %v", err, w.trace)
			}
		}
	})
}

// TestANoAnswersTheSameCallThatWaits: of fifteen equal calls of one reply the
// person is asked about those in line, says no once, and all are denied.
func TestANoAnswersTheSameCallThatWaits(t *testing.T) {
	w := newWorld(t, policy.Options{})
	const n = 15
	waiting := make(chan bool, n)
	release := make(chan bool)
	w.options.Approver = approverFunc(func(ctx context.Context, _ policy.Question) (policy.Answer, error) {
		waiting <- true
		select {
		case <-release: // one of them
			return policy.Answer{By: "terminal"}, nil
		case <-ctx.Done():
			return policy.Answer{}, ctx.Err()
		}
	})
	d := New(w.options)
	var calls []*pending
	for i := range n {
		c := aCall("bash", `{"command":"ls"}`)
		c.ID = fmt.Sprint("c", i)
		calls = append(calls, d.start(t.Context(), c))
	}
	for range n {
		<-waiting
	}
	release <- true
	for _, c := range calls {
		if r, err := c.wait(); err != nil || r.Err == nil || r.Err.Code != tool.CodeDenied || !strings.Contains(r.Err.Message, "terminal") {
			t.Errorf("%v, %v", r.Err, err)
		}
	}
	if w.did("run") {
		t.Error(w.trace)
	}
}
