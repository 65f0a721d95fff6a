package dispatch

import (
	"context"
	"encoding/json"
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

// stepOf are calls of one step, with these names.
func stepOf(names ...string) []tool.Call {
	args := map[string]string{"bash": `{"command":"ls %d"}`}
	var calls []tool.Call
	for i, name := range names {
		c := aCall(name, `{"path":"%d"}`)
		if args[name] != "" {
			c = aCall(name, args[name])
		}
		c.ID, c.Args = fmt.Sprintf("c%d", i+1), fmt.Appendf(nil, string(c.Args), i+1)
		calls = append(calls, c)
	}
	return calls
}

func TestACallThatMayChangeSomethingRunsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, policy.Options{})
		w.answer = yes(policy.ScopeOnce)
		begin := time.Now()
		var trace []string
		var mu sync.Mutex
		// Each takes a minute less than the one before it, so that of calls at the
		// same time the last ends first.
		w.run = func(_ context.Context, _ policy.Grant, _ *tool.Module, c tool.Call, _ func(tool.Progress)) (tool.Result, error) {
			from := time.Since(begin)
			var n int
			fmt.Sscanf(c.ID, "c%d", &n)
			time.Sleep(time.Duration(10-n) * time.Minute)
			mu.Lock()
			defer mu.Unlock()
			trace = append(trace, fmt.Sprintf("%s %s %v-%v", c.ID, c.Tool, from.Minutes(), time.Since(begin).Minutes()))
			return tool.Result{Output: tool.Text(c.ID)}, nil
		}
		results, err := New(w.options).CallAll(t.Context(), stepOf("file_read", "read_file", "file_write", "file_write", "bash", "file_read", "file_read"), "")
		if err != nil {
			t.Fatal(err)
		}
		want := []string{"c2 file_read 0-8", "c1 file_read 0-9", "c3 file_write 9-16", "c4 file_write 16-22", "c5 bash 22-27", "c7 file_read 27-30", "c6 file_read 27-31"}
		if !slices.Equal(trace, want) {
			t.Errorf("they ran as\n%s", strings.Join(trace, "\n"))
		}
		for i, r := range results {
			if want := fmt.Sprintf(`{"output":"c%d"}`, i+1); string(r.Output) != want {
				t.Errorf("result %d is %s", i+1, r.Output)
			}
		}
	})
}

func TestQuestionsAreInTheOrderOfTheCalls(t *testing.T) {
	w := newWorld(t, policy.Options{ConfirmAll: true})
	var mu sync.Mutex
	var asked []string
	all := make(chan struct{})
	w.options.Approver = questions(func(q policy.Question) func() (policy.Answer, error) {
		mu.Lock()
		defer mu.Unlock()
		if asked = append(asked, string(q.Call.Args)); len(asked) == 20 {
			close(all)
		}
		return func() (policy.Answer, error) {
			<-all // nobody is answered before all have asked
			return policy.Answer{Question: q.ID, Allow: true, Scope: policy.ScopeOnce}, nil
		}
	})
	calls := stepOf(slices.Repeat([]string{"file_read"}, 20)...)
	if _, err := New(w.options).CallAll(t.Context(), calls, ""); err != nil {
		t.Fatal(err)
	}
	for i, c := range calls {
		if asked[i] != string(c.Args) {
			t.Fatalf("question %d is about %s: %q", i+1, c.Args, asked)
		}
	}
}

type questions func(q policy.Question) func() (policy.Answer, error)

func (f questions) Approve(_ context.Context, q policy.Question) func() (policy.Answer, error) {
	return f(q)
}

func TestNothingBeginsAfterAFaultOfTheHostOrACancel(t *testing.T) {
	for name, fail := range map[string]func(w *world, cancel func()){
		"the log fails": func(w *world, _ func()) { w.fail[session.TypeToolResult] = errDisk },
		"cancelled":     func(_ *world, cancel func()) { cancel() },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, policy.Options{})
			ctx, cancel := context.WithCancel(t.Context())
			w.answer = yes(policy.ScopeOnce)
			w.run = func(_ context.Context, _ policy.Grant, _ *tool.Module, c tool.Call, _ func(tool.Progress)) (tool.Result, error) {
				if c.ID != "c1" {
					t.Errorf("%s runs", c.ID)
				}
				w.mu.Lock()
				defer w.mu.Unlock()
				fail(w, cancel)
				return tool.Result{Output: tool.Text("done")}, nil
			}
			results, err := New(w.options).CallAll(ctx, stepOf("file_read", "bash", "file_read"), "")
			if (err != nil) != (name == "the log fails") {
				t.Error(err)
			}
			for i, r := range results[1:] {
				if r.Err == nil {
					t.Errorf("result %d is a success", i+2)
				}
			}
		})
	}
}

func TestTheModelIsToldThatItRepeatsACall(t *testing.T) {
	w := newWorld(t, policy.Options{})
	w.answer = no
	output := "same"
	w.run = func(context.Context, policy.Grant, *tool.Module, tool.Call, func(tool.Progress)) (tool.Result, error) {
		return tool.Result{Output: tool.Text(output), Note: "cut"}, nil
	}
	d := New(w.options)
	told := func(turn, step int, output_, name string, caller tool.Caller) (int, bool) {
		t.Helper()
		output = output_
		c := aCall(name, `{"path":"a"}`)
		if name == "bash" {
			c = aCall(name, `{"command":"ls"}`)
		}
		c.Turn, c.Step, c.Caller = turn, step, caller
		r, err := d.Call(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		var data llm.ResultData
		if err := json.Unmarshal(body[llm.Message](w, session.TypeToolResult).Data, &data); err != nil {
			t.Fatal(err)
		}
		return r.Repeats, strings.Contains(data.Output, "come to this result")
	}
	for i, c := range []struct {
		turn, step   int
		output, tool string
		caller       tool.Caller
		times        int
	}{
		{1, 1, "same", "file_read", tool.CallerAgent, 1},
		{1, 1, "same", "file_read", tool.CallerAgent, 1}, // beside it
		{1, 2, "same", "file_read", tool.CallerAgent, 2},
		{1, 3, "other", "file_read", tool.CallerAgent, 1},
		{1, 4, "same", "file_read", tool.CallerAgent, 1},
		{1, 5, "", "bash", tool.CallerAgent, 1}, // denied, by an answer
		{1, 6, "", "bash", tool.CallerAgent, 2}, // denied, since it was before
		{1, 7, "same", "file_read", tool.CallerAgent, 2},
		{1, 8, "same", "file_read", tool.CallerPerson, 0},
		{2, 1, "same", "file_read", tool.CallerAgent, 1},
	} {
		times, said := told(c.turn, c.step, c.output, c.tool, c.caller)
		if times != c.times || said != (c.times > 1) {
			t.Errorf("call %d: %d times, told %v", i+1, times, said)
		}
	}
}

// TestWhatChangesBetweenMakesAnotherCall of one that looks or runs something, unless it
// comes back to what there was before.
func TestWhatChangesBetweenMakesAnotherCall(t *testing.T) {
	w := newWorld(t, policy.Options{})
	w.answer = yes(policy.ScopeOnce)
	d := New(w.options)
	step := 0
	do := func(name, args, makes string) int {
		t.Helper()
		step++
		w.changes = nil
		if makes != "" {
			w.changes = []tool.Change{aFile("a.txt", makes)}
		}
		c := aCall(name, args)
		c.Turn, c.Step = 1, step
		r, err := d.Call(t.Context(), c)
		if err != nil || r.Err != nil {
			t.Fatal(r.Err, err)
		}
		return r.Repeats
	}
	for i, c := range []struct {
		tool, args, makes string
		times             int
	}{
		{"bash", `{"command":"test"}`, "", 1},
		{"bash", `{"command":"test"}`, "", 2},
		{"file_write", `{"path":"one"}`, "one", 1},
		{"bash", `{"command":"test"}`, "", 1},
		{"file_read", `{"path":"x"}`, "", 1},
		{"file_write", `{"path":"two"}`, "two", 1},
		{"bash", `{"command":"test"}`, "", 1},
		{"file_read", `{"path":"x"}`, "", 1},
		{"file_read", `{"path":"x"}`, "", 2},
		// To and fro.
		{"file_write", `{"path":"one"}`, "one", 2},
		{"bash", `{"command":"test"}`, "", 2},
		{"file_write", `{"path":"two"}`, "two", 2},
		{"bash", `{"command":"test"}`, "", 2},
		// A command of which nobody knows what it changes may change something once.
		{"bash", `{"command":"sed"}`, "", 1},
		{"bash", `{"command":"test"}`, "", 1},
		{"bash", `{"command":"sed"}`, "", 2},
		{"bash", `{"command":"test"}`, "", 2},
		// Nothing is changed.
		{"file_write", `{"path":"none"}`, "", 1},
		{"bash", `{"command":"test"}`, "", 3},
		{"bash", `{"command":"test"}`, "", 4},
	} {
		if times := do(c.tool, c.args, c.makes); times != c.times {
			t.Errorf("call %d, %s %s: %d times, want %d", i+1, c.tool, c.args, times, c.times)
		}
	}
}
