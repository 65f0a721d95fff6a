package dispatch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/session"
	"github.com/stockade-dev/stockade/host/tool"
)

// world is the surroundings of a call: a store in memory, an approver, a runner. It notes
// events in one list, in their order.
type world struct {
	t  testing.TB
	mu sync.Mutex

	trace   []string
	events  []session.Event
	faulted bool // the last state says that the host is at fault

	fail    map[session.Type]error // Append of this type fails
	answer  func(ctx context.Context, q policy.Question) (policy.Answer, error)
	run     func(ctx context.Context, g policy.Grant, mod *tool.Module, c tool.Call, report func(tool.Progress)) (tool.Result, error)
	policy  *policy.Policy
	options Options

	// What calls of file_write change, and what becomes of it.
	changes               []tool.Change
	changesErr, commitErr error
	dropErr               error
	atChanges, atCommit   func() // unless nil
}

var errDisk = errors.New("no space left on device")

func newWorld(t testing.TB, opts policy.Options) *world {
	t.Helper()
	if opts.Mounts == nil {
		opts.Mounts = []policy.Mount{{Host: "/work", Write: true}}
	}
	w := &world{t: t, fail: map[session.Type]error{}, policy: policy.New(opts), changes: []tool.Change{aFile("new.txt", "hello\n")}}
	log := session.NewLog(store{w: w}, "s", time.Now)
	log.Observe(func(e session.Event) {
		if e.Type == session.TypeCallState {
			var s session.CallState
			if err := json.Unmarshal(e.Body, &s); err != nil {
				t.Error(err)
			}
			w.note("state " + s.State)
			w.faulted = s.Fault
		}
	})
	w.options = Options{Catalog: catalog(t), Policy: w.policy, Approver: approver{w}, Runner: runner{w}, Log: log}
	return w
}

func (w *world) note(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.trace = append(w.trace, what)
}

func (w *world) did(what string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Contains(w.trace, what)
}

func (w *world) call(ctx context.Context, c tool.Call) (tool.Result, error) {
	return New(w.options).Call(ctx, c)
}

// body decodes the body of the last stored event of that type.
func body[T any](w *world, typ session.Type) T {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range slices.Backward(w.events) {
		if e.Type == typ {
			var v T
			if err := json.Unmarshal(e.Body, &v); err != nil {
				w.t.Fatal(err)
			}
			return v
		}
	}
	w.t.Fatalf("nothing of type %s was recorded: %v", typ, w.trace)
	panic("not reached")
}

// store keeps events in memory. It refuses to work under a context that has
// ended, as a database does.
type store struct {
	session.Store
	w *world
}

func (s store) Append(ctx context.Context, drafts ...session.Draft) ([]session.Event, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	for _, d := range drafts { // all or none
		if err := s.w.fail[d.Type]; err != nil {
			s.w.trace = append(s.w.trace, "lost "+string(d.Type))
			return nil, err
		}
	}
	var out []session.Event
	for _, d := range drafts {
		var prev [32]byte
		if n := len(s.w.events); n > 0 {
			prev = s.w.events[n-1].Hash
		}
		e := session.Seal(d, uint64(len(s.w.events)+1), time.Now(), prev, prev)
		s.w.events = append(s.w.events, e)
		s.w.trace = append(s.w.trace, "durable "+string(d.Type))
		out = append(out, e)
	}
	return out, nil
}

type approver struct{ w *world }

func (a approver) Approve(ctx context.Context, q policy.Question) func() (policy.Answer, error) {
	a.w.note("ask")
	return func() (policy.Answer, error) {
		if a.w.answer == nil {
			a.w.t.Errorf("asked about %s", q.Tool)
			return policy.Answer{}, nil
		}
		return a.w.answer(ctx, q)
	}
}

type runner struct{ w *world }

func (r runner) Run(ctx context.Context, g policy.Grant, mod *tool.Module, c tool.Call, report func(tool.Progress)) (tool.Result, policy.Staged, error) {
	if err := g.Check(c, mod.Digest); err != nil {
		r.w.t.Errorf("run without a grant: %v", err)
	}
	if g.Rehearsal() {
		r.w.note("rehearse")
	} else {
		r.w.note("run")
	}
	result, err := tool.Result{Output: tool.Text("done")}, error(nil)
	if r.w.run != nil {
		result, err = r.w.run(ctx, g, mod, c, report)
	}
	if c.Tool != "file_write" || result.Err != nil || err != nil {
		return result, nil, err
	}
	return result, &stage{r.w, c, mod.Digest}, nil
}

// stage is what a call of file_write has changed.
type stage struct {
	w      *world
	call   tool.Call
	digest string
}

func (s *stage) Changes(context.Context) ([]tool.Change, error) {
	if s.w.atChanges != nil {
		s.w.atChanges()
	}
	return s.w.changes, s.w.changesErr
}

func (s *stage) Commit(_ context.Context, g policy.Grant) error {
	if err := g.Check(s.call, s.digest); err != nil || g.Rehearsal() {
		s.w.t.Errorf("a commit without a grant: %v", err)
	}
	s.w.note("commit")
	if s.w.atCommit != nil {
		s.w.atCommit()
	}
	return s.w.commitErr
}

func (s *stage) Drop() error {
	s.w.note("drop")
	return s.w.dropErr
}

func (*stage) Refresh(context.Context) bool { return false }
func (*stage) KeepCaches()                  {}
func (*stage) SawUnapproved() bool          { return false }

// aFile is a change that a call makes.
func aFile(name, content string) tool.Change {
	return tool.Change{Path: "/work/" + name, Kind: tool.Created, After: &tool.Version{
		Size: int64(len(content)), Mode: 0o644,
		Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(content)), nil },
	}}
}

func catalog(t testing.TB) *tool.Catalog {
	t.Helper()
	spec := func(name, props string, caps tool.Capabilities) tool.Spec {
		return tool.Spec{Capabilities: caps, Definition: tool.Definition{Name: name, Description: name,
			Parameters: json.RawMessage(`{"type":"object","properties":{` + props + `},"additionalProperties":false}`)}}
	}
	m := tool.Manifest{Name: "m", Tools: []tool.Spec{
		spec("file_read", `"path":{"type":"string"}`, tool.Capabilities{Files: tool.FilesRead}),
		spec("file_write", `"path":{"type":"string"}`, tool.Capabilities{Files: tool.FilesWrite}),
		spec("bash", `"command":{"type":"string"},"timeout_seconds":{"type":"number"}`, tool.Capabilities{Exec: "command", ExecTimeout: "timeout_seconds"}),
	}}
	c, err := tool.NewCatalog(map[*tool.Module]tool.Manifest{{Name: "m", Digest: "d1", Origin: tool.OriginBuiltin}: m})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func aCall(name, args string) tool.Call {
	return tool.Call{ID: "c1", Tool: name, Args: json.RawMessage(args), Caller: tool.CallerAgent, Cwd: "/work", Turn: 2, Step: 3}
}

func yes(scope policy.Scope) func(context.Context, policy.Question) (policy.Answer, error) {
	return func(_ context.Context, q policy.Question) (policy.Answer, error) {
		return policy.Answer{Question: q.ID, Allow: true, Scope: scope, By: "terminal"}, nil
	}
}

func no(context.Context, policy.Question) (policy.Answer, error) {
	return policy.Answer{By: "terminal"}, nil
}

var (
	allowedTrace = []string{
		"state evaluating_policy", "durable call.decision", "durable call.intended", "state executing", "run",
		"durable tool_result", "state completed",
	}
	askedTrace = slices.Concat([]string{"state evaluating_policy", "state awaiting_permission", "ask"}, allowedTrace[1:])
	// A call that changes files runs first, and is asked about with what it changes.
	triedTrace = []string{"state evaluating_policy", "durable call.intended", "state executing", "rehearse"}
	keptTrace  = slices.Concat(triedTrace, []string{"state awaiting_permission", "ask", "durable call.decision",
		"state executing", "durable call.changes", "commit", "drop", "durable tool_result", "state completed"})
	droppedTrace = slices.Concat(triedTrace, []string{"state awaiting_permission", "ask", "durable call.decision",
		"drop", "durable tool_result", "state completed"})
)

func TestEachPathHasItsOrder(t *testing.T) {
	denyWrite := policy.Options{Rules: []policy.Rule{{Effect: policy.Deny, Tool: "file_write"}}}
	for name, c := range map[string]struct {
		opts   policy.Options
		call   tool.Call
		answer func(context.Context, policy.Question) (policy.Answer, error)
		want   []string
		code   tool.Code
	}{
		"allowed":           {call: aCall("file_read", `{"path":"a"}`), want: allowedTrace},
		"by an alias":       {call: aCall("read_file", `{"path":"a"}`), want: allowedTrace},
		"asked and allowed": {call: aCall("file_write", `{}`), answer: yes(policy.ScopeOnce), want: keptTrace},
		"allowed to write": {opts: policy.Options{Rules: []policy.Rule{{Effect: policy.Allow, Tool: "file_write"}}}, call: aCall("file_write", `{}`),
			want: []string{"state evaluating_policy", "durable call.decision", "durable call.intended", "state executing", "run",
				"durable call.changes", "commit", "drop", "durable tool_result", "state completed"}},
		"a command":         {call: aCall("bash", `{"command":"ls"}`), answer: yes(policy.ScopeOnce), want: askedTrace},
		"asked and refused": {call: aCall("file_write", `{}`), answer: no, want: droppedTrace, code: tool.CodeDenied},
		"an approver's error": {call: aCall("file_write", `{}`), answer: func(context.Context, policy.Question) (policy.Answer, error) {
			return policy.Answer{Allow: true}, errors.New("no terminal")
		}, want: droppedTrace, code: tool.CodeDenied},
		"denied":               {opts: denyWrite, call: aCall("file_write", `{}`), want: []string{"state evaluating_policy", "durable call.decision", "durable tool_result", "state completed"}, code: tool.CodeDenied},
		"an unknown tool":      {call: aCall("file_raed", `{}`), want: []string{"durable tool_result", "state completed"}, code: tool.CodeUnknownTool},
		"no tool":              {call: aCall("", `{}`), want: []string{"durable tool_result", "state completed"}, code: tool.CodeUnknownTool},
		"wrong arguments":      {call: aCall("file_read", `{"path":7}`), want: []string{"durable tool_result", "state completed"}, code: tool.CodeInvalidArgs},
		"a key twice":          {call: aCall("bash", `{"command":"ls","command":"rm"}`), want: []string{"durable tool_result", "state completed"}, code: tool.CodeInvalidArgs},
		"arguments cut off":    {call: aCall("bash", `{"command":"rm -rf /tmp/x`), want: []string{"durable tool_result", "state completed"}, code: tool.CodeInvalidArgs},
		"a command of nothing": {call: aCall("bash", `{}`), answer: yes(policy.ScopeOnce), want: []string{"state evaluating_policy", "state awaiting_permission", "ask", "durable call.decision", "durable tool_result", "state completed"}, code: tool.CodeInvalidArgs},
		"a time limit below 0": {call: aCall("bash", `{"command":"ls","timeout_seconds":-1}`), answer: yes(policy.ScopeOnce), want: []string{"state evaluating_policy", "state awaiting_permission", "ask", "durable call.decision", "durable tool_result", "state completed"}, code: tool.CodeInvalidArgs},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, c.opts)
			w.answer = c.answer
			r, err := w.call(t.Context(), c.call)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, w.trace); diff != "" {
				t.Error(diff)
			}
			if c.code == "" && r.Err != nil || c.code != "" && (r.Err == nil || r.Err.Code != c.code || r.Err.Hint == nil && c.code != tool.CodeInvalidArgs) {
				t.Errorf("got %+v", r.Err)
			}
			for _, e := range w.events {
				if e.Turn != 2 || e.Step != 3 || e.Call != "c1" || e.Session != "s" {
					t.Errorf("%s stands at turn %d, step %d, call %q", e.Type, e.Turn, e.Step, e.Call)
				}
			}
			// What is recorded is what the caller got.
			m := body[llm.Message](w, session.TypeToolResult)
			var data llm.ResultData
			if err := json.Unmarshal(m.Data, &data); err != nil {
				t.Fatal(err)
			}
			want := llm.ResultData{CallID: "c1", Name: c.call.Tool, Output: string(r.Envelope()), Success: r.Err == nil}
			if diff := cmp.Diff(want, data); diff != "" || m.Kind != llm.ToolResult {
				t.Errorf("%s: %s", m.Kind, diff)
			}
		})
	}
}

func TestNothingRunsWhenTheRecordFails(t *testing.T) {
	for typ, name := range map[session.Type]string{session.TypeDecision: "file_read", session.TypeCallIntended: "file_read"} {
		for _, asked := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, asked %v", typ, asked), func(t *testing.T) {
				w := newWorld(t, policy.Options{ConfirmAll: asked})
				w.answer, w.fail[typ] = yes(policy.ScopeAlways), errDisk
				remembered := 0
				w.options.Remember = func(policy.Rule) error { remembered++; return nil }
				_, err := w.call(t.Context(), aCall(name, `{}`))
				if !errors.Is(err, errDisk) {
					t.Errorf("got %v", err)
				}
				if w.did("run") || w.did("state executing") || !w.did("durable tool_result") {
					t.Errorf("it went on, or its end is not recorded: %v", w.trace)
				}
				if typ == session.TypeDecision && remembered != 0 {
					t.Error("an answer that is not in the record was remembered")
				}
			})
		}
	}
}

func TestAResultThatCannotBeRecordedIsAnError(t *testing.T) {
	w := newWorld(t, policy.Options{})
	w.fail[session.TypeToolResult] = errDisk
	r, err := w.call(t.Context(), aCall("file_read", `{}`))
	if !errors.Is(err, errDisk) || !w.faulted || r.Output == nil {
		t.Errorf("got %+v, %v: %v", r, err, w.trace)
	}
	errHost := errors.New("cannot compile")
	w.run = func(context.Context, policy.Grant, *tool.Module, tool.Call, func(tool.Progress)) (tool.Result, error) {
		return tool.Result{}, errHost
	}
	if _, err := w.call(t.Context(), aCall("file_read", `{}`)); !errors.Is(err, errDisk) || !errors.Is(err, errHost) {
		t.Errorf("of two errors, %v is told", err)
	}
}

func TestACallThatIsCancelledWhileItWaitsDoesNotRun(t *testing.T) {
	for name, answer := range map[string]func(cancel func()) (policy.Answer, error){
		"and the approver gives up": func(cancel func()) (policy.Answer, error) { cancel(); return policy.Answer{}, context.Canceled },
		"and the answer comes anyway": func(cancel func()) (policy.Answer, error) {
			cancel()
			return policy.Answer{Allow: true, Scope: policy.ScopeAlways}, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, policy.Options{})
			ctx, cancel := context.WithCancel(t.Context())
			w.answer = func(context.Context, policy.Question) (policy.Answer, error) { return answer(cancel) }
			r, err := w.call(ctx, aCall("file_write", `{}`))
			if err != nil || r.Err == nil || r.Err.Code != tool.CodeCancelled {
				t.Fatalf("got %+v, %v", r, err)
			}
			if w.did("run") || w.did("commit") || !w.did("drop") || !w.did("durable call.decision") || !w.did("durable tool_result") {
				t.Errorf("got %v", w.trace)
			}
			if d := w.policy.Decide(aCall("file_write", `{}`), find(t, w, "file_write"), policy.Facts{}); d.Effect() != policy.Ask {
				t.Error("the answer made a rule")
			}
		})
	}
}

func TestACallThatWasCancelledBeforeDoesNotRun(t *testing.T) {
	w := newWorld(t, policy.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r, err := w.call(ctx, aCall("file_read", `{}`))
	if err != nil || r.Err == nil || r.Err.Code != tool.CodeCancelled || w.did("run") || !w.did("durable tool_result") {
		t.Errorf("got %+v, %v: %v", r, err, w.trace)
	}
}

func find(t testing.TB, w *world, name string) *tool.Entry {
	t.Helper()
	e, ok := w.options.Catalog.Find(name)
	if !ok {
		t.Fatalf("no tool %s", name)
	}
	return e
}

func TestAResultIsRecordedWhateverBecomesOfTheRun(t *testing.T) {
	errHost := errors.New("read /home/u/.cache/stockade: input/output error")
	for name, c := range map[string]struct {
		run  func(ctx context.Context, cancel func()) (tool.Result, error)
		err  error
		code tool.Code
	}{
		"cancelled while it ran": {func(ctx context.Context, cancel func()) (tool.Result, error) {
			cancel()
			<-ctx.Done()
			return tool.Failed(tool.CodeCancelled, tool.InternalError, "cancelled"), nil
		}, nil, tool.CodeCancelled},
		"cancelled, and it ended well": {func(ctx context.Context, cancel func()) (tool.Result, error) {
			cancel()
			return tool.Result{Output: tool.Text("done")}, nil
		}, nil, ""},
		"a fault of the guest": {func(context.Context, func()) (tool.Result, error) {
			return tool.Failed(tool.CodeTrap, tool.InternalError, "trap"), nil
		}, nil, tool.CodeTrap},
		"a fault of the host": {func(context.Context, func()) (tool.Result, error) {
			return tool.Result{Output: tool.Text("half")}, errHost
		}, errHost, tool.CodeHost},
		"a fault of the host after the end": {func(_ context.Context, cancel func()) (tool.Result, error) {
			cancel()
			return tool.Result{}, errHost
		}, errHost, tool.CodeHost},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, policy.Options{})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			w.run = func(ctx context.Context, _ policy.Grant, _ *tool.Module, _ tool.Call, _ func(tool.Progress)) (tool.Result, error) {
				return c.run(ctx, cancel)
			}
			r, err := w.call(ctx, aCall("file_read", `{}`))
			if !errors.Is(err, c.err) || (err != nil) != (c.err != nil) {
				t.Errorf("got the error %v, want %v", err, c.err)
			}
			if c.code == "" && r.Err != nil || c.code != "" && (r.Err == nil || r.Err.Code != c.code) {
				t.Errorf("got %+v", r)
			}
			m := body[llm.Message](w, session.TypeToolResult)
			if strings.Contains(string(m.Data), "/home/u") {
				t.Errorf("the model reads about the host: %s", m.Data)
			}
			if w.trace[len(w.trace)-1] != "state completed" {
				t.Errorf("got %v", w.trace)
			}
		})
	}
}

func TestWhatIsRecordedSaysWhatWasDecidedAndWhatWillRun(t *testing.T) {
	w := newWorld(t, policy.Options{Mounts: []policy.Mount{{Host: "/work", Write: true}}})
	w.answer = yes(policy.ScopeOnce)
	var question string
	once := w.answer
	w.answer = func(ctx context.Context, q policy.Question) (policy.Answer, error) {
		question = fmt.Sprintf("%x", q.ID)
		return once(ctx, q)
	}
	if _, err := w.call(t.Context(), aCall("write_file", ` {"path": "a"}`)); err != nil {
		t.Fatal(err)
	}
	allowed := true
	wantDecision := session.Decision{
		Tool: "file_write", Effect: "ask", Risk: "medium", Rule: "risk medium", Source: "default", Reason: "it changes files",
		Answer: &allowed, Scope: policy.ScopeOnce, AnsweredBy: "terminal", QuestionID: question,
	}
	if diff := cmp.Diff(wantDecision, body[session.Decision](w, session.TypeDecision)); diff != "" {
		t.Error(diff)
	}
	limits := policy.DefaultLimits()
	canonical := tool.Call{Args: json.RawMessage(`{"path":"a"}`)}
	wantIntent := session.Intent{
		Tool: "file_write", Caller: "agent", Module: "m", Digest: "d1", ArgsDigest: fmt.Sprintf("%x", canonical.ArgsDigest()), Cwd: "/work",
		Mounts: []string{"/work:rw"}, TimeoutMS: limits.Timeout.Milliseconds(), MemoryBytes: limits.MemoryBytes,
		Fuel: limits.Fuel, Rehearsal: true,
	}
	if diff := cmp.Diff(wantIntent, body[session.Intent](w, session.TypeCallIntended)); diff != "" {
		t.Error(diff)
	}
}

// The log has the tier of a process together with its mounts; its tool alone sees no files.
func TestTheTierOfAProcessIsRecorded(t *testing.T) {
	w := newWorld(t, policy.Options{Tier: func() policy.Tier { return 2 }})
	w.answer = func(_ context.Context, q policy.Question) (policy.Answer, error) {
		return policy.Answer{Question: q.ID, Allow: true, Scope: policy.ScopeOnce, By: "terminal"}, nil
	}
	if _, err := w.call(t.Context(), aCall("bash", `{"command":"make test"}`)); err != nil {
		t.Fatal(err)
	}
	intent := body[session.Intent](w, session.TypeCallIntended)
	for event, tier := range map[string]*policy.Tier{"decision": body[session.Decision](w, session.TypeDecision).Tier, "intent": intent.Tier} {
		if tier == nil || *tier != 2 {
			t.Errorf("the %s says tier %v, want 2", event, tier)
		}
	}
	if !slices.Equal(intent.Mounts, []string{"/work:rw"}) {
		t.Errorf("the process sees %q", intent.Mounts)
	}
}

func TestWhoSaidNoIsRecordedAndTold(t *testing.T) {
	w := newWorld(t, policy.Options{})
	w.answer = func(context.Context, policy.Question) (policy.Answer, error) {
		return policy.Answer{Allow: true, Scope: policy.ScopeAlways, By: "nobody"}, errors.New("no terminal to ask on")
	}
	r, err := w.call(t.Context(), aCall("bash", `{"command":"make test"}`))
	if err != nil {
		t.Fatal(err)
	}
	d := body[session.Decision](w, session.TypeDecision)
	if d.Answer == nil || *d.Answer || d.AnsweredBy != "no terminal to ask on" || d.Scope != "" {
		t.Errorf("recorded: %+v", d)
	}
	if r.Err.Rule != "risk high" || r.Err.Allow != "bash(command=make test)" || !strings.Contains(r.Err.Message, "no terminal to ask on") {
		t.Errorf("told: %+v", r.Err)
	}
}

func TestTheGuestGetsTheCanonicalArguments(t *testing.T) {
	w := newWorld(t, policy.Options{})
	w.run = func(_ context.Context, _ policy.Grant, _ *tool.Module, c tool.Call, _ func(tool.Progress)) (tool.Result, error) {
		if string(c.Args) != `{"path":"a"}` || c.Tool != "file_read" {
			t.Errorf("it gets %s of %s", c.Args, c.Tool)
		}
		return tool.Result{Output: tool.Text("")}, nil
	}
	if _, err := w.call(t.Context(), aCall("read_file", `{ "p\u0061th" : "a" }`)); err != nil {
		t.Fatal(err)
	}
}

func TestAnAnswerHoldsAsLongAsItSays(t *testing.T) {
	for name, c := range map[string]struct {
		tool, args string
		scope      policy.Scope
		remember   error
		again      policy.Effect
		remembered int
		warned     bool
	}{
		"once":                         {"file_write", `{}`, policy.ScopeOnce, nil, policy.Ask, 0, false},
		"no scope":                     {"file_write", `{}`, "", nil, policy.Ask, 0, false},
		"session":                      {"file_write", `{}`, policy.ScopeSession, nil, policy.Allow, 0, false},
		"always":                       {"file_write", `{}`, policy.ScopeAlways, nil, policy.Allow, 1, false},
		"always, and the disk is full": {"file_write", `{}`, policy.ScopeAlways, errDisk, policy.Allow, 1, true},
		"a command for the session":    {"bash", `{"command":"ls"}`, policy.ScopeSession, nil, policy.Ask, 0, false},
		"a command always":             {"bash", `{"command":"ls"}`, policy.ScopeAlways, nil, policy.Ask, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, policy.Options{})
			w.answer = yes(c.scope)
			var remembered []policy.Rule
			w.options.Remember = func(r policy.Rule) error { remembered = append(remembered, r); return c.remember }
			warned := false
			w.options.Log.(*session.Log).Observe(func(e session.Event) {
				warned = warned || e.Type == session.TypeProgress && strings.Contains(string(e.Body), errDisk.Error())
			})
			if r, err := w.call(t.Context(), aCall(c.tool, c.args)); err != nil || r.Err != nil || !w.did("run") && !w.did("commit") {
				t.Fatalf("got %+v, %v", r, err)
			}
			if d := w.policy.Decide(aCall(c.tool, c.args), find(t, w, c.tool), policy.Facts{}); d.Effect() != c.again {
				t.Errorf("the next call: %s", d.Effect())
			}
			if len(remembered) != c.remembered || c.remembered == 1 && (remembered[0].Tool != c.tool || remembered[0].Binding.Module != "builtin") {
				t.Errorf("remembered %+v", remembered)
			}
			if warned != c.warned {
				t.Errorf("warned: %v", warned)
			}
		})
	}
}

func TestAnAnswerAlwaysHoldsForTheSessionWhereNothingKeepsIt(t *testing.T) {
	w := newWorld(t, policy.Options{})
	w.answer = yes(policy.ScopeAlways)
	if _, err := w.call(t.Context(), aCall("file_write", `{}`)); err != nil {
		t.Fatal(err)
	}
	if d := w.policy.Decide(aCall("file_write", `{}`), find(t, w, "file_write"), policy.Facts{}); d.Effect() != policy.Allow {
		t.Errorf("the next call: %s", d.Effect())
	}
}

func TestTheLimitReachesTheEnvelopeOfEveryResult(t *testing.T) {
	for _, name := range []string{"file_read", "unknown", "bash"} {
		w := newWorld(t, policy.Options{})
		w.answer = no
		const limit = "Tool call limit reached (50)."
		results, err := New(w.options).CallAll(t.Context(), []tool.Call{aCall(name, `{}`)}, limit)
		if err != nil {
			t.Fatal(err)
		}
		var e struct {
			Reached bool   `json:"limit_reached"`
			Message string `json:"limit_message"`
		}
		if err := json.Unmarshal(results[0].Envelope(), &e); err != nil || !e.Reached || e.Message != limit {
			t.Errorf("%s: %+v, %v", name, e, err)
		}
		m := body[llm.Message](w, session.TypeToolResult)
		if !strings.Contains(string(m.Data), limit) {
			t.Errorf("%s: it is not in the record: %s", name, m.Data)
		}
	}
}

func TestProgressIsShownAndNotStored(t *testing.T) {
	w := newWorld(t, policy.Options{})
	w.run = func(_ context.Context, _ policy.Grant, _ *tool.Module, _ tool.Call, report func(tool.Progress)) (tool.Result, error) {
		report(tool.Progress{Level: "info", Message: "half"})
		return tool.Result{Output: tool.Text("")}, nil
	}
	var shown []string
	w.options.Log.(*session.Log).Observe(func(e session.Event) {
		if e.Type == session.TypeProgress {
			shown = append(shown, e.Call+string(e.Body))
		}
	})
	if _, err := w.call(t.Context(), aCall("file_read", `{}`)); err != nil {
		t.Fatal(err)
	}
	if len(shown) != 1 || shown[0] != `c1{"level":"info","message":"half"}` || w.did("durable progress") {
		t.Errorf("got %q: %v", shown, w.trace)
	}
}

func TestCallsAtTheSameTime(t *testing.T) {
	w := newWorld(t, policy.Options{})
	w.answer = yes(policy.ScopeSession)
	const n = 16
	running := make(chan struct{})
	all := make(chan struct{})
	w.run = func(_ context.Context, _ policy.Grant, _ *tool.Module, c tool.Call, _ func(tool.Progress)) (tool.Result, error) {
		running <- struct{}{}
		<-all
		return tool.Result{Output: tool.Text(c.ID)}, nil
	}
	d := New(w.options)
	results := make([]tool.Result, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			c := aCall([]string{"file_read", "file_write"}[i%2], `{}`)
			c.ID = fmt.Sprintf("c%d", i)
			var err error
			if results[i], err = d.Call(context.Background(), c); err != nil {
				t.Error(err)
			}
		})
	}
	for range n {
		<-running // all of them run before one ends
	}
	close(all)
	wg.Wait()
	for i, r := range results {
		if want := fmt.Sprintf(`{"output":"c%d"}`, i); string(r.Output) != want {
			t.Errorf("call %d: %s", i, r.Output)
		}
	}
	seen := map[string][]session.Type{}
	for _, e := range w.events {
		seen[e.Call] = append(seen[e.Call], e.Type)
	}
	for id, types := range seen {
		want := []session.Type{session.TypeDecision, session.TypeCallIntended, session.TypeToolResult}
		if slices.Contains(types, session.TypeCallChanges) { // a call of file_write
			want = []session.Type{session.TypeCallIntended, session.TypeDecision, session.TypeCallChanges, session.TypeToolResult}
		}
		if !slices.Equal(types, want) {
			t.Errorf("%s: %v", id, types)
		}
	}
	if len(seen) != n {
		t.Errorf("%d calls are recorded", len(seen))
	}
	if _, err := session.VerifyStore(func(yield func(session.Event, error) bool) {
		for _, e := range w.events {
			if !yield(e, nil) {
				return
			}
		}
	}); err != nil {
		t.Error(err)
	}
}

func TestDefinitionsAreThoseOfTheCatalog(t *testing.T) {
	w := newWorld(t, policy.Options{})
	var want []tool.Definition
	for _, e := range w.options.Catalog.Entries() {
		want = append(want, e.Definition)
	}
	if diff := cmp.Diff(want, New(w.options).Definitions()); diff != "" {
		t.Error(diff)
	}
}

// The log is written twice for a call without a question: its decision is durable with
// its intent, before the guest runs. A denial is durable with its result.
func TestACallThatNobodyIsAskedAboutIsWrittenTwice(t *testing.T) {
	for name, c := range map[string]struct {
		rules []policy.Rule
		want  []string
	}{
		"allowed": {nil, []string{"call.decision call.intended", "tool_result"}},
		"denied":  {[]policy.Rule{{Effect: policy.Deny, Tool: "file_read"}}, []string{"call.decision tool_result"}},
	} {
		w := newWorld(t, policy.Options{Rules: c.rules})
		writes := &writes{Recorder: w.options.Log}
		w.options.Log = writes
		if _, err := w.call(t.Context(), aCall("file_read", `{}`)); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, writes.types); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// writes is a log that tells what was written at once.
type writes struct {
	Recorder
	types []string
}

func (l *writes) Append(ctx context.Context, drafts ...session.Draft) ([]session.Event, error) {
	var types []string
	for _, d := range drafts {
		types = append(types, string(d.Type))
	}
	l.types = append(l.types, strings.Join(types, " "))
	return l.Recorder.Append(ctx, drafts...)
}
