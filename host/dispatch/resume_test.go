package dispatch

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/session"
	"github.com/stockade-dev/stockade/host/tool"
)

// past is what the log of a session yields.
func past(events ...session.Event) iter.Seq2[session.Event, error] {
	return func(yield func(session.Event, error) bool) {
		for _, e := range events {
			if !yield(e, nil) {
				return
			}
		}
	}
}

// readAll reads events to their end.
func readAll(events iter.Seq2[session.Event, error]) error {
	for _, err := range events {
		if err != nil {
			return err
		}
	}
	return nil
}

func event(turn int, typ session.Type, call string, body any) session.Event {
	data, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	return session.Seal(session.Draft{Type: typ, Turn: turn, Call: call, Body: data}, 1, time.Now(), [32]byte{}, [32]byte{})
}

func intended(turn int, call, name string) session.Event {
	return event(turn, session.TypeCallIntended, call, session.Intent{Tool: name})
}

func used(turn int, call string, units uint64) session.Event {
	return event(turn, session.TypeToolResult, call,
		llm.ResultMessage(call, "an alias", tool.Result{Output: tool.Text("ok"), Usage: tool.Usage{FuelUsed: units}}))
}

func deleted(e session.Event) session.Event {
	e.Body, e.Salt = nil, nil
	return e
}

func TestCallsDrawFromTheBudgetsOfTheirToolAndOfTheSession(t *testing.T) {
	w := newWorld(t, policy.Options{Limits: policy.Limits{ToolFuel: 1000, SessionFuel: 5000}})
	w.run = func(_ context.Context, g policy.Grant, _ *tool.Module, _ tool.Call, _ func(tool.Progress)) (tool.Result, error) {
		for _, b := range g.Budgets() {
			b.Take(100)
		}
		return tool.Result{Output: tool.Text("ok")}, nil
	}
	d := New(w.options)
	err := readAll(d.Resume(past(
		intended(1, "a", "file_read"), used(1, "a", 100),
		intended(1, "b", "file_write"), used(1, "b", 40),
		intended(0, "c", "file_read"), used(0, "c", 200),
		deleted(used(1, "a", 1000)),
	)))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if r, err := d.Call(t.Context(), aCall("file_read", `{}`)); err != nil || r.Err != nil {
			t.Fatalf("%+v, %v", r.Err, err)
		}
	}
	// A person's own calls outside of turns count too.
	want := []FuelUse{{"", 340 + 200, 5000}, {"file_read", 300 + 200, 1000}, {"file_write", 40, 1000}}
	if diff := cmp.Diff(want, d.Fuel()); diff != "" {
		t.Error(diff)
	}
}

// Calls at the same time do not exceed the limit of a session.
func TestASessionHasNoMoreCallsThanItMay(t *testing.T) {
	w := newWorld(t, policy.Options{Rules: []policy.Rule{{Effect: policy.Deny, Tool: "file_read", AfterCalls: 5}}})
	d := New(w.options)
	if err := readAll(d.Resume(past(intended(1, "a", "file_read"), used(1, "a", 1), intended(1, "b", "file_read"), intended(1, "c", "bash")))); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	ran := 0
	for range 20 {
		wg.Go(func() {
			if r, err := d.Call(t.Context(), tool.Call{ID: "c", Tool: "file_read", Args: []byte(`{"path":"a"}`), Cwd: "/work"}); err == nil && r.Err == nil {
				mu.Lock()
				ran++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if ran != 3 {
		t.Errorf("%d ran, beside the 2 of before", ran)
	}
}

func TestResumeTellsThatTheLogCannotBeRead(t *testing.T) {
	err := readAll(New(newWorld(t, policy.Options{}).options).Resume(func(yield func(session.Event, error) bool) { yield(session.Event{}, errDisk) }))
	if !errors.Is(err, errDisk) {
		t.Errorf("got %v", err)
	}
}
