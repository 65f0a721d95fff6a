package dispatch

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/tool"
)

// Commands that change nothing are not asked about, up to a number and a total time in a turn.
func TestCommandsRunAheadWithinBounds(t *testing.T) {
	staged := policy.Options{Tier: func() policy.Tier { return 3 }, WhyNotStaged: func([]policy.Mount) string { return "" }}
	for name, c := range map[string]struct {
		opts  policy.Options
		takes time.Duration
		calls int
		turn  func(i int) int
		auto  bool
		first int // the call that is asked about before it runs, from 1 on; 0: none
	}{
		"many":              {opts: staged, calls: maxRehearsedRuns + 1, first: maxRehearsedRuns + 1},
		"long ones":         {opts: staged, takes: maxRehearsedTime / 4, calls: 5, first: 5},
		"in other turns":    {opts: staged, takes: maxRehearsedTime / 4, calls: 5, turn: func(i int) int { return 1 + i/4 }},
		"of a person":       {opts: staged, takes: maxRehearsedTime, calls: 3, turn: func(int) int { return 0 }},
		"many, with auto":   {opts: staged, calls: maxRehearsedRuns + 1, auto: true},
		"nothing is staged": {opts: policy.Options{Tier: staged.Tier}, calls: 1, first: 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, c.opts)
			w.changes = nil
			w.run = func(context.Context, policy.Grant, *tool.Module, tool.Call, func(tool.Progress)) (tool.Result, error) {
				r := tool.Result{Output: tool.Text("done")}
				r.Usage.Duration = c.takes
				return r, nil
			}
			if c.auto {
				w.options.Policy.Freedom().Open("/work", policy.Provenance{})
			}
			d := New(w.options)
			asked, i := 0, 0
			w.answer = func(ctx context.Context, q policy.Question) (policy.Answer, error) {
				if asked == 0 && q.AskFirstReason != "" {
					asked = i
				}
				return no(ctx, q)
			}
			for i = 1; i <= c.calls; i++ {
				call := aCall("bash", fmt.Sprintf(`{"command":"ls %d"}`, i))
				if c.turn != nil {
					call.Turn = c.turn(i - 1)
				}
				if _, err := d.Call(t.Context(), call); err != nil {
					t.Fatal(err)
				}
			}
			if asked != c.first {
				t.Errorf("call %d was asked about first, want %d", asked, c.first)
			}
		})
	}
}

// A command that cannot be tried is asked about, and runs then.
func TestWhatCannotBeTriedIsAskedAbout(t *testing.T) {
	for answer, runs := range map[bool]int{false: 1, true: 2} {
		w := newWorld(t, policy.Options{Tier: func() policy.Tier { return 3 }, WhyNotStaged: func([]policy.Mount) string { return "" }})
		w.changes = nil
		ran := 0
		w.run = func(_ context.Context, grant policy.Grant, _ *tool.Module, _ tool.Call, _ func(tool.Progress)) (tool.Result, error) {
			if ran++; grant.Rehearsal() {
				return tool.Result{}, fmt.Errorf("%w: too large", policy.ErrAskFirst)
			}
			return tool.Result{Output: tool.Text("done")}, nil
		}
		asked := 0
		w.answer = func(ctx context.Context, q policy.Question) (policy.Answer, error) {
			if asked++; q.AskFirstReason == "" || q.Changes != nil {
				t.Errorf("the question is %+v", q)
			}
			if answer {
				return yes(policy.ScopeOnce)(ctx, q)
			}
			return no(ctx, q)
		}
		result, err := New(w.options).Call(t.Context(), aCall("bash", `{"command":"ls"}`))
		if err != nil || asked != 1 || ran != runs || answer != (result.Err == nil) {
			t.Errorf("answer %t: asked %d times, ran %d times, %+v, %v", answer, asked, ran, result.Err, err)
		}
	}
}
