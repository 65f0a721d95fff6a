package dispatch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/session"
	"github.com/stockade-dev/stockade/host/tool"
)

// disk runs calls of file_write whose path is NAME=CONTENT, on files in memory.
type disk struct {
	w     *world
	mu    sync.Mutex
	files map[string]string
	tries int
}

// overlay holds the changes that calls have staged over a disk, in the order of the calls.
type overlay struct {
	d      *disk
	call   tool.Call
	digest string
	base   map[string]string
	files  map[string]string
}

func (d *disk) Run(_ context.Context, g policy.Grant, mod *tool.Module, c tool.Call, _ func(tool.Progress)) (tool.Result, policy.Staged, error) {
	return d.stage(g, mod, c, nil)
}

func (d *disk) Try(_ context.Context, g policy.Grant, mod *tool.Module, c tool.Call, on policy.Staged) (tool.Result, policy.Staged, error) {
	if !g.Rehearsal() {
		d.w.t.Error("a trial that is no rehearsal")
	}
	d.tries++
	earlier, _ := on.(*overlay)
	return d.stage(g, mod, c, earlier)
}

func (d *disk) stage(g policy.Grant, mod *tool.Module, c tool.Call, earlier *overlay) (tool.Result, policy.Staged, error) {
	if err := g.Check(c, mod.Digest); err != nil {
		d.w.t.Errorf("run without a grant: %v", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	var args struct{ Path string }
	if err := json.Unmarshal(c.Args, &args); err != nil {
		return tool.Result{}, nil, err
	}
	name, content, ok := strings.Cut(args.Path, "=")
	if !ok {
		return tool.Failed(tool.CodeFailed, tool.NotFound, "no content"), nil, nil
	}
	o := &overlay{d: d, call: c, digest: mod.Digest, base: maps.Clone(d.files), files: maps.Clone(d.files)}
	if earlier != nil {
		o.base, o.files = earlier.base, maps.Clone(earlier.files)
	}
	if content == "BIG" {
		content = strings.Repeat("x", maxTriedBytes+1)
	}
	o.files[name] = content
	return tool.Result{Output: tool.Text("wrote " + name)}, o, nil
}

func (o *overlay) Changes(context.Context) (changes []tool.Change, err error) {
	version := func(content string) *tool.Version {
		return &tool.Version{Size: int64(len(content)), Mode: 0o644, Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(content)), nil }}
	}
	for _, name := range slices.Sorted(maps.Keys(o.files)) {
		c := tool.Change{Path: "/work/" + name, Kind: tool.Created, After: version(o.files[name])}
		if was, there := o.base[name]; there {
			if was == o.files[name] {
				continue
			}
			c.Kind, c.Before = tool.Modified, version(was)
		}
		changes = append(changes, c)
	}
	return changes, nil
}

func (o *overlay) Commit(_ context.Context, g policy.Grant) error {
	if err := g.Check(o.call, o.digest); err != nil || g.Rehearsal() {
		o.d.w.t.Errorf("a commit without a grant: %v", err)
	}
	o.d.mu.Lock()
	defer o.d.mu.Unlock()
	o.d.w.note("commit " + o.call.ID)
	o.d.files = o.files
	return nil
}

func (o *overlay) Drop() error                  { return nil }
func (o *overlay) Refresh(context.Context) bool { return false }
func (o *overlay) KeepCaches()                  {}
func (o *overlay) SawUnapproved() bool          { return false }

// TestEditsOfOneReplyAreAskedAboutTogether: what is put to the person, how it is answered, and
// what is made.
func TestEditsOfOneReplyAreAskedAboutTogether(t *testing.T) {
	no, yes := policy.Answer{}, policy.Answer{Allow: true, Scope: policy.ScopeOnce}
	for name, c := range map[string]struct {
		paths  []string // of the calls; "run" is a command
		rules  []policy.Rule
		answer func(d *disk, q policy.Question) (policy.Answer, error)
		asked  string // what is asked about, together up to a bar
		want   map[string]string
	}{
		"all of them": {[]string{"a=1", "b=2", "a=3"}, nil,
			func(*disk, policy.Question) (policy.Answer, error) { return yes, nil },
			"a=1 b=2 a=3", map[string]string{"a": "3", "b": "2"}},
		"none of them": {[]string{"a=1", "b=2", "a=3"}, nil,
			func(*disk, policy.Question) (policy.Answer, error) { return no, nil },
			"a=1 b=2 a=3", map[string]string{}},
		"each by itself": {[]string{"a=1", "b=2"}, nil,
			func(_ *disk, q policy.Question) (policy.Answer, error) {
				if q.Tried {
					return no, errors.New("each by itself")
				}
				return yes, nil
			}, "a=1 b=2 | a=1 | b=2", map[string]string{"a": "1", "b": "2"}},
		"what the second would change is not what was shown, because of others": {[]string{"a=1", "b=2"}, nil,
			func(d *disk, q policy.Question) (policy.Answer, error) {
				if q.Tried && q.Call.ID == "c2" {
					d.files["b"] = "theirs"
				}
				return policy.Answer{Allow: q.Tried, Scope: policy.ScopeOnce}, nil
			}, "a=1 b=2 | b=2", map[string]string{"a": "1", "b": "theirs"}},
		"a no to the first changes what the third would do": {[]string{"a=1", "b=2", "a=3"}, nil,
			func(_ *disk, q policy.Question) (policy.Answer, error) {
				return policy.Answer{Allow: q.Tried && q.Call.ID != "c1", Scope: policy.ScopeOnce}, nil
			}, "a=1 b=2 a=3 | a=3", map[string]string{"b": "2"}},
		"a failure ends it": {[]string{"a=1", "b=2", "fails", "c=3"}, nil,
			func(*disk, policy.Question) (policy.Answer, error) { return yes, nil },
			"a=1 b=2 | c=3", map[string]string{"a": "1", "b": "2", "c": "3"}},
		"a command ends it": {[]string{"a=1", "b=2", "run", "c=3", "d=4"}, nil,
			func(*disk, policy.Question) (policy.Answer, error) { return yes, nil },
			"a=1 b=2 | run | c=3 d=4", map[string]string{"a": "1", "b": "2", "c": "3", "d": "4"}},
		"a special path is asked about by itself": {[]string{"a=1", "b=2", ".envrc=3"}, nil,
			func(*disk, policy.Question) (policy.Answer, error) { return yes, nil },
			"a=1 b=2 | .envrc=3", map[string]string{"a": "1", "b": "2", ".envrc": "3"}},
		"one alone is asked about as ever": {[]string{"a=1"}, nil,
			func(*disk, policy.Question) (policy.Answer, error) { return yes, nil },
			"a=1", map[string]string{"a": "1"}},
		"what changes nothing": {[]string{"a=1", "a=1"}, nil,
			func(*disk, policy.Question) (policy.Answer, error) { return yes, nil },
			"a=1", map[string]string{"a": "1"}},
		"what is too large to be held": {[]string{"a=BIG", "b=2"}, nil,
			func(*disk, policy.Question) (policy.Answer, error) { return no, nil },
			"a=BIG | b=2", map[string]string{}},
		"what a rule allows": {[]string{"a=1", "b=2"}, []policy.Rule{{Effect: policy.Allow, Tool: "file_write"}},
			nil, "", map[string]string{"a": "1", "b": "2"}},
		"all changes from now on": {[]string{"a=1", "b=2", "a=3", "run", "c=4", "d=5"}, nil,
			func(_ *disk, q policy.Question) (policy.Answer, error) {
				return policy.Answer{Allow: true, Scope: q.Scopes[len(q.Scopes)-1]}, nil
			}, "a=1 b=2 a=3 | run", map[string]string{"a": "3", "b": "2", "c": "4", "d": "5"}},
		"an approver that panics": {[]string{"a=1", "b=2"}, nil,
			func(_ *disk, q policy.Question) (policy.Answer, error) {
				if q.Tried {
					panic("boom")
				}
				return yes, nil
			}, "a=1 b=2 | a=1 | b=2", map[string]string{"a": "1", "b": "2"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, policy.Options{Rules: c.rules})
			d := &disk{w: w, files: map[string]string{}}
			w.options.Runner = d
			var mu sync.Mutex
			var asked []string
			waiting := 0
			w.options.Approver = questions(func(q policy.Question) func() (policy.Answer, error) {
				mu.Lock()
				defer mu.Unlock()
				if waiting == 0 && len(asked) > 0 {
					asked = append(asked, "|")
				}
				waiting++
				what := "run"
				if q.Command == "" {
					var args struct{ Path string }
					if err := json.Unmarshal(q.Call.Args, &args); err != nil {
						t.Error(err)
					}
					what = args.Path[:min(len(args.Path), len(".envrc=3"))]
				}
				asked = append(asked, what)
				return func() (policy.Answer, error) {
					mu.Lock()
					defer mu.Unlock()
					if d.w.did("commit " + q.Call.ID) {
						t.Error("something was made before its answer")
					}
					waiting--
					answer, err := c.answer(d, q)
					answer.Question, answer.By = q.ID, "a test"
					return answer, err
				}
			})
			var calls []tool.Call
			for i, path := range c.paths {
				call := aCall("file_write", string(tool.Marshal(map[string]string{"path": path})))
				if path == "run" {
					call = aCall("bash", `{"command":"ls"}`)
				}
				call.ID, call.Turn, call.Step = fmt.Sprintf("c%d", i+1), 1, 1
				calls = append(calls, call)
			}
			dispatcher := New(w.options)
			results, err := dispatcher.CallAll(t.Context(), calls, "")
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(asked, " "); got != c.asked {
				t.Errorf("it asked about %s, want %s", got, c.asked)
			}
			if !maps.Equal(d.files, c.want) {
				t.Errorf("the files are %v, want %v", d.files, c.want)
			}
			if n := dispatcher.counts.reserve("file_write"); n > len(calls) {
				t.Errorf("%d calls are counted", n)
			}
			if len(c.paths) == 1 && d.tries > 0 {
				t.Error("a single call was tried")
			}
			for i, r := range results {
				if r.Err != nil && r.Err.Code == tool.CodeHost {
					t.Errorf("call %d: %v", i+1, r.Err.Message)
				}
			}
		})
	}
}

// TestAnAnswerToATrialIsForWhatWasShown: a yes holds for an equal question only, a no always.
func TestAnAnswerToATrialIsForWhatWasShown(t *testing.T) {
	shown := policy.Question{Tool: "file_write", Call: aCall("file_write", `{}`), Reason: "it changes files"}
	for name, c := range map[string]struct {
		change func(q *policy.Question)
		counts bool
	}{
		"the same":         {func(*policy.Question) {}, true},
		"another reason":   {func(q *policy.Question) { q.Reason = "it changes a special path" }, false},
		"a warning":        {func(q *policy.Question) { q.Warning = "look" }, false},
		"other arguments":  {func(q *policy.Question) { q.Call.Args = json.RawMessage(`{"path":"x"}`) }, false},
		"a failure":        {func(q *policy.Question) { q.Failed = true }, false},
		"another call":     {func(q *policy.Question) { q.Call.ID = "other" }, false},
		"another host now": {func(q *policy.Question) { q.OpensHost = "a.example" }, false},
	} {
		now := shown
		c.change(&now)
		for _, allow := range []bool{true, false} {
			tr := &trial{question: shown.Pose("s", time.Now()), answer: policy.Answer{Allow: allow}}
			if _, counts := tr.answers("s", now); counts != (c.counts || !allow) {
				t.Errorf("%s, allowed %v: it counts: %v", name, allow, counts)
			}
			if _, counts := tr.answers("another session", now); counts && allow {
				t.Errorf("%s: it counts in another session", name)
			}
			if tr.err = errors.New("each by itself"); !c.counts {
				continue
			}
			if _, counts := tr.answers("s", now); counts {
				t.Errorf("%s: there is no answer, and it counts", name)
			}
		}
	}
}

// TestATrialIsRecorded: each run of a guest has its intent, and a decision with its answer is
// durable before anything is made.
func TestATrialIsRecorded(t *testing.T) {
	w := newWorld(t, policy.Options{})
	d := &disk{w: w, files: map[string]string{}}
	w.options.Runner, w.answer = d, yes(policy.ScopeOnce)
	calls := []tool.Call{aCall("file_write", `{"path":"a=1"}`), aCall("file_write", `{"path":"a=2"}`)}
	calls[0].ID, calls[1].ID = "c1", "c2"
	if _, err := New(w.options).CallAll(t.Context(), calls, ""); err != nil {
		t.Fatal(err)
	}
	var trace []string
	for _, did := range w.trace {
		if strings.HasPrefix(did, "durable") || strings.HasPrefix(did, "commit") || did == "ask" {
			trace = append(trace, strings.TrimPrefix(did, "durable "))
		}
	}
	want := "call.intended call.intended ask ask " +
		"call.intended call.decision call.changes commit c1 tool_result call.intended call.decision call.changes commit c2 tool_result"
	if got := strings.Join(trace, " "); got != want {
		t.Errorf("it did\n%s, want\n%s", got, want)
	}
	if got := body[session.Decision](w, session.TypeDecision); got.Answer == nil || !*got.Answer || got.QuestionID == "" {
		t.Errorf("the decision is %+v", got)
	}
}

// TestANoToTheRestOfAStep: nothing of the reply runs any more, and the next reply does.
func TestANoToTheRestOfAStep(t *testing.T) {
	w := newWorld(t, policy.Options{})
	n := 0
	w.answer = func(_ context.Context, q policy.Question) (policy.Answer, error) {
		if n++; q.CallsAfter != 3 {
			t.Errorf("%d calls come after it", q.CallsAfter)
		}
		return policy.Answer{Question: q.ID, RestOfStep: true, Because: "not this way", By: "a test"}, nil
	}
	calls := stepOf("bash", "file_read", "file_write", "file_read")
	results, err := New(w.options).CallAll(t.Context(), calls, "")
	if err != nil || n != 1 {
		t.Fatalf("%v, %d questions", err, n)
	}
	for i, r := range results {
		if r.Err == nil || r.Err.Code != tool.CodeDenied {
			t.Errorf("result %d is %+v", i+1, r)
		}
	}
	if results[0].PersonSays != "not this way" || results[1].PersonSays != "" {
		t.Errorf("the person says %q and %q", results[0].PersonSays, results[1].PersonSays)
	}
	if !body[session.Decision](w, session.TypeDecision).RestOfStep || w.did("run") {
		t.Errorf("%v", w.trace)
	}
	calls = stepOf("file_read")
	calls[0].Step = 2
	if results, err := New(w.options).CallAll(t.Context(), calls, ""); err != nil || results[0].Err != nil {
		t.Errorf("the next step: %v, %+v", err, results)
	}

	// A program can say it about a call beside which those after it may run, too.
	w = newWorld(t, policy.Options{ConfirmAll: true})
	n = 0
	w.answer = func(_ context.Context, q policy.Question) (policy.Answer, error) {
		n++
		return policy.Answer{Question: q.ID, RestOfStep: q.Tool == "file_read", Allow: q.Tool != "file_read", Scope: policy.ScopeOnce, By: "a test"}, nil
	}
	if _, err := New(w.options).CallAll(t.Context(), stepOf("file_read", "bash", "file_write"), ""); err != nil || n != 1 || w.did("run") {
		t.Errorf("%v, %d questions: %v", err, n, w.trace)
	}

	// It is not offered for a call beside which those after it run.
	w = newWorld(t, policy.Options{ConfirmAll: true})
	w.answer = func(_ context.Context, q policy.Question) (policy.Answer, error) {
		if (q.CallsAfter > 0) != (q.Tool == "bash") {
			t.Errorf("%s: %d calls come after it", q.Tool, q.CallsAfter)
		}
		return policy.Answer{Question: q.ID, By: "a test"}, nil
	}
	if _, err := New(w.options).CallAll(t.Context(), stepOf("file_read", "file_read", "bash", "file_read"), ""); err != nil {
		t.Error(err)
	}
}

// TestOnlyTheOutputOfACommand: its changes are dropped, its output is given out, and an equal
// call is asked about again.
func TestOnlyTheOutputOfACommand(t *testing.T) {
	w := newWorld(t, policy.Options{Tier: func() policy.Tier { return 3 }, WhyNotStaged: func([]policy.Mount) string { return "" }})
	w.options.Runner = &commands{disk{w: w}}
	n := 0
	w.answer = func(_ context.Context, q policy.Question) (policy.Answer, error) {
		if n++; q.Changes == nil {
			return policy.Answer{}, errors.New("it has not run")
		}
		return policy.Answer{Question: q.ID, OutputOnly: true, By: "a test"}, nil
	}
	dispatcher := New(w.options)
	for range 2 {
		result, err := dispatcher.Call(t.Context(), aCall("bash", `{"command":"make"}`))
		if err != nil || result.Err != nil || !strings.Contains(string(result.Output), "made") || !strings.Contains(result.Note, "no file was changed") {
			t.Fatalf("%v, %+v", err, result)
		}
	}
	got := body[session.Decision](w, session.TypeDecision)
	if n != 2 || !got.OutputOnly || got.Answer == nil || *got.Answer || w.did("durable call.changes") || w.did("commit") || !w.did("drop") {
		t.Errorf("%d questions, %+v, %v", n, got, w.trace)
	}

	// It is a no where nothing has run on a stage.
	w = newWorld(t, policy.Options{})
	w.answer = func(_ context.Context, q policy.Question) (policy.Answer, error) {
		return policy.Answer{Question: q.ID, OutputOnly: true, By: "a test"}, nil
	}
	if result, err := w.call(t.Context(), aCall("bash", `{"command":"make"}`)); err != nil || result.Err == nil || result.Err.Code != tool.CodeDenied || w.did("run") {
		t.Errorf("%v, %+v, %v", err, result, w.trace)
	}
}

// commands runs commands that have made a file on a stage.
type commands struct{ disk }

func (c *commands) Run(_ context.Context, g policy.Grant, mod *tool.Module, call tool.Call, _ func(tool.Progress)) (tool.Result, policy.Staged, error) {
	return tool.Result{Output: tool.Text("made")}, &stage{c.w, call, mod.Digest}, nil
}
