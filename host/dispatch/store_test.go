package dispatch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/redact"
	"github.com/stockade-dev/stockade/host/session"
	"github.com/stockade-dev/stockade/host/tool"
)

// keeping makes the tools of a world keep things: a call appends its path to the key
// "list", and then does what then says.
func keeping(t *testing.T, w *world, then func(c tool.Call) (tool.Result, error)) {
	t.Helper()
	for _, e := range w.options.Catalog.Entries() {
		e.Capabilities.Store = true
	}
	w.run = func(_ context.Context, g policy.Grant, _ *tool.Module, c tool.Call, _ func(tool.Progress)) (tool.Result, error) {
		var args struct{ Path, Command string }
		if err := json.Unmarshal(c.Args, &args); err != nil {
			return tool.Result{}, err
		}
		list, _ := g.Store().Get("list")
		if err := g.Store().Set("list", fmt.Append(list, args.Path+args.Command+";"), nil); err != nil {
			return tool.Result{}, err
		}
		return then(c)
	}
}

func done(tool.Call) (tool.Result, error) { return tool.Result{Output: tool.Text("done")}, nil }

// list is what a session keeps.
func list(d *Dispatcher) string {
	var out []string
	for _, c := range d.StoreContents() {
		for _, e := range c.Entries {
			out = append(out, fmt.Sprintf("%s %s=%s", c.Owner, e.Key, e.Value))
		}
	}
	return strings.Join(out, " ")
}

func TestWhatACallKeepsIsRecordedWithItsResult(t *testing.T) {
	for name, c := range map[string]struct {
		call   tool.Call
		answer func(context.Context, policy.Question) (policy.Answer, error)
		then   func(tool.Call) (tool.Result, error)
		fail   session.Type
		kept   bool
	}{
		"a call that succeeds":           {call: aCall("file_read", `{"path":"x"}`), kept: true},
		"a call that fails":              {call: aCall("file_read", `{"path":"x"}`), then: func(tool.Call) (tool.Result, error) { return tool.Failed(tool.CodeFailed, "", "no"), nil }},
		"a fault of the host":            {call: aCall("file_read", `{"path":"x"}`), then: func(tool.Call) (tool.Result, error) { return tool.Result{}, errDisk }},
		"a crash of the host":            {call: aCall("file_read", `{"path":"x"}`), then: func(tool.Call) (tool.Result, error) { panic("oh") }},
		"a rehearsed call, and yes":      {call: aCall("file_write", `{"path":"x"}`), answer: yes(policy.ScopeOnce), kept: true},
		"a rehearsed call, and no":       {call: aCall("file_write", `{"path":"x"}`), answer: no},
		"a call that is denied":          {call: aCall("bash", `{"command":"x"}`), answer: no},
		"changes that cannot be made":    {call: aCall("file_write", `{"path":"x"}`), answer: yes(policy.ScopeOnce), fail: session.TypeCallChanges},
		"a disk that is full, at once":   {call: aCall("file_read", `{"path":"x"}`), fail: session.TypeToolStoreChanges},
		"a disk that is full, by result": {call: aCall("file_read", `{"path":"x"}`), fail: session.TypeToolResult},
		"a call that is asked about first, as it could not be tried": {call: aCall("file_write", `{"path":"x"}`), answer: yes(policy.ScopeOnce), kept: true,
			then: func() func(tool.Call) (tool.Result, error) {
				tries := 0
				return func(c tool.Call) (tool.Result, error) {
					if tries++; tries == 1 {
						return tool.Result{}, policy.ErrAskFirst
					}
					return done(c)
				}
			}()},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, policy.Options{})
			w.answer = c.answer
			if c.then == nil {
				c.then = done
			}
			keeping(t, w, c.then)
			if c.fail != "" {
				w.fail[c.fail] = errDisk
			}
			d := New(w.options)
			result, err := d.Call(t.Context(), c.call)
			if c.kept && (err != nil || result.Err != nil) {
				t.Fatalf("%v, %v", result.Err, err)
			}
			want := ""
			if c.kept {
				want = "builtin:m list=x;"
				if n := len(w.events); w.events[n-2].Type != session.TypeToolStoreChanges || w.events[n-1].Type != session.TypeToolResult || w.events[n-2].Call != "c1" {
					t.Errorf("the log is %v", w.trace)
				}
			} else if w.did("durable call.kept") {
				t.Errorf("the log is %v", w.trace)
			}
			if got := list(d); got != want {
				t.Errorf("it keeps %q, want %q", got, want)
			}
			clear(w.fail)
			w.answer = yes(policy.ScopeOnce)
			keeping(t, w, done)
			again := c.call
			again.ID, again.Turn = "c2", 3
			if r, err := d.Call(t.Context(), again); err != nil || r.Err != nil {
				t.Fatalf("the next call: %v, %v", r.Err, err)
			}
			// What the log says is what is kept.
			resumed := New(w.options)
			if err := readAll(resumed.Resume(past(w.events...))); err != nil {
				t.Fatal(err)
			}
			if got, want := list(resumed), list(d); got != want || !strings.HasSuffix(got, "x;") {
				t.Errorf("resumed it keeps %q, before %q", got, want)
			}
		})
	}
}

func TestCallsThatKeepSomethingRunOneAfterAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, policy.Options{})
		keeping(t, w, func(c tool.Call) (tool.Result, error) {
			time.Sleep(time.Minute)
			return done(c)
		})
		d := New(w.options)
		results, err := d.CallAll(t.Context(), stepOf("file_read", "file_read", "file_read"), "")
		if err != nil || slices.ContainsFunc(results, func(r tool.Result) bool { return r.Err != nil }) {
			t.Fatal(results, err)
		}
		if got := list(d); got != "builtin:m list=1;2;3;" {
			t.Errorf("a step keeps %q", got)
		}
		// Callers beside the loop wait, too, as long as they want to.
		ctx, cancel := context.WithCancelCause(t.Context())
		first, second := aCall("file_read", `{"path":"4"}`), aCall("file_read", `{"path":"5"}`)
		first.ID, second.ID = "c4", "c5"
		running := d.start(t.Context(), first)
		synctest.Wait()
		waits := d.start(ctx, second)
		synctest.Wait()
		cancel(errors.New("enough"))
		r, err := waits.wait()
		if err != nil || r.Err == nil || r.Err.Code != tool.CodeCancelled {
			t.Errorf("whoever gave up got %v, %v", r.Err, err)
		}
		if r, err := running.wait(); err != nil || r.Err != nil {
			t.Errorf("%v, %v", r.Err, err)
		}
		if got := list(d); got != "builtin:m list=1;2;3;4;" {
			t.Errorf("it keeps %q", got)
		}
	})
}

// Neither the record nor the store has secrets that are known by the time of the record.
func TestWhatIsKeptHasNoSecrets(t *testing.T) {
	w := newWorld(t, policy.Options{})
	known := new(redact.Redactor)
	w.options.Redact = known
	w.options.Log.(*session.Log).SetRedactor(known)
	keeping(t, w, func(c tool.Call) (tool.Result, error) {
		known.Add("hunter2-hunter2")
		return done(c)
	})
	d := New(w.options)
	if r, err := d.Call(t.Context(), aCall("file_read", `{"path":"hunter2-hunter2"}`)); err != nil || r.Err != nil {
		t.Fatal(r.Err, err)
	}
	kept := body[session.ToolStoreChanges](w, session.TypeToolStoreChanges)
	if got := list(d); strings.Contains(got, "hunter2") || !strings.HasSuffix(got, kept.Set[0].Text) {
		t.Errorf("it keeps %q, and has recorded %v", got, kept)
	}
}
