package dispatch

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/session"
	"github.com/stockade-dev/stockade/host/tool"
)

func TestThePersonIsShownWhatACallChanges(t *testing.T) {
	w := newWorld(t, policy.Options{})
	var shown string
	w.answer = func(_ context.Context, q policy.Question) (policy.Answer, error) {
		shown = q.Changes.String()
		return policy.Answer{Question: q.ID, Allow: true, Scope: policy.ScopeOnce}, nil
	}
	if r, err := w.call(t.Context(), aCall("file_write", `{}`)); err != nil || r.Err != nil {
		t.Fatalf("got %+v, %v", r, err)
	}
	const want = "created new.txt (6 bytes)\n--- /dev/null\n+++ b/new.txt\n@@ -0,0 +1 @@\n+hello\n"
	if diff := cmp.Diff(want, shown); diff != "" {
		t.Error(diff)
	}
	recorded := session.Changes{Tool: "file_write", Files: []session.Change{{
		Path: "/work/new.txt", Kind: tool.Created, After: &session.Version{
			Bytes: 6, Mode: "-rw-r--r--", SHA256: "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03",
		},
		Diff: "--- /dev/null\n+++ b/new.txt\n@@ -0,0 +1 @@\n+hello\n", Added: 1,
	}}}
	if diff := cmp.Diff(recorded, body[session.Changes](w, session.TypeCallChanges)); diff != "" {
		t.Error(diff)
	}
}

// A call that asks only because it could change files asks no question if it changes
// none. It does if there is another reason to ask.
func TestACallThatChangesNothing(t *testing.T) {
	fails := func(context.Context, policy.Grant, *tool.Module, tool.Call, func(tool.Progress)) (tool.Result, error) {
		return tool.Failed(tool.CodeFailed, tool.NotFound, "no such file: what nobody may read yet"), nil
	}
	askRule := policy.Options{Rules: []policy.Rule{{Effect: policy.Ask, Tool: "file_write", Source: policy.SourceUser}}}
	for name, c := range map[string]struct {
		opts  policy.Options
		run   func(context.Context, policy.Grant, *tool.Module, tool.Call, func(tool.Progress)) (tool.Result, error)
		asked bool
	}{
		"nothing":                {},
		"it fails":               {run: fails},
		"and every call asks":    {opts: policy.Options{ConfirmAll: true}, asked: true},
		"fails, every call asks": {opts: policy.Options{ConfirmAll: true}, run: fails, asked: true},
		"and a rule asks":        {opts: askRule, asked: true},
		"it fails, a rule asks":  {opts: askRule, run: fails, asked: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, c.opts)
			w.changes, w.run = nil, c.run
			if c.asked {
				w.answer = no
			}
			r, err := w.call(t.Context(), aCall("file_write", `{}`))
			if err != nil || w.did("ask") != c.asked || w.did("commit") || w.did("durable call.changes") || !w.did("durable call.decision") {
				t.Fatalf("got %v: %v", err, w.trace)
			}
			if c.asked && (r.Err == nil || r.Err.Code != tool.CodeDenied || strings.Contains(string(r.Envelope()), "nobody may read")) {
				t.Errorf("after a no, the caller reads %s", r.Envelope())
			}
		})
	}
}

func TestWhatCannotBeCommittedIsTold(t *testing.T) {
	for name, c := range map[string]struct {
		changes, commit error
		code            tool.Code
	}{
		"changed before the question": {changes: fmt.Errorf("a.txt: %w", policy.ErrChanged), code: tool.CodeFilesChanged},
		"changed before the commit":   {commit: fmt.Errorf("a.txt: %w", policy.ErrChanged), code: tool.CodeFilesChanged},
		"a disk that fails":           {commit: errDisk, code: tool.CodeNotKept},
		"no space":                    {commit: fmt.Errorf("prepare a.txt: %w", syscall.ENOSPC), code: tool.CodeNoSpace},
		"no space of one's own":       {commit: fmt.Errorf("prepare a.txt: %w", syscall.EDQUOT), code: tool.CodeNoSpace},
		"no time to compare":          {changes: context.DeadlineExceeded, code: tool.CodeTimeout},
		"no time to commit":           {commit: fmt.Errorf("prepare a.txt: %w", context.DeadlineExceeded), code: tool.CodeTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, policy.Options{Rules: []policy.Rule{{Effect: policy.Allow, Tool: "file_write"}}})
			w.changesErr, w.commitErr = c.changes, c.commit
			r, err := w.call(t.Context(), aCall("file_write", `{}`))
			if err != nil || r.Err == nil || r.Err.Code != c.code || r.Err.Hint == nil || !w.did("drop") {
				t.Errorf("got %+v, %v: %v", r.Err, err, w.trace)
			}
			if c.changes != nil && w.did("commit") {
				t.Error("it was committed")
			}
		})
	}
}

// Changes that were made are reported as made, even if something else went wrong.
func TestACommitThatIsNotTidiedUpIsMade(t *testing.T) {
	w := newWorld(t, policy.Options{Rules: []policy.Rule{{Effect: policy.Allow, Tool: "file_write"}}})
	ctx, cancel := context.WithCancel(t.Context())
	w.atCommit = cancel
	w.commitErr = fmt.Errorf("%w: %w: /work/.stockade-1.tmp", policy.ErrUntidy, policy.ErrChanged)
	var said string
	w.options.Log.(*session.Log).Observe(func(e session.Event) {
		if e.Type == session.TypeProgress {
			said += string(e.Body)
		}
	})
	r, err := w.call(ctx, aCall("file_write", `{}`))
	if err != nil || r.Err != nil {
		t.Errorf("got %+v, %v: %v", r.Err, err, w.trace)
	}
	if !strings.Contains(said, "/work/.stockade-1.tmp") || !strings.Contains(said, "warn") {
		t.Errorf("it is told %q", said)
	}
}

// If a call is cancelled while its changes are listed, its result does not blame somebody
// else.
func TestTheListOfChangesIsCancelled(t *testing.T) {
	w := newWorld(t, policy.Options{Rules: []policy.Rule{{Effect: policy.Allow, Tool: "file_write"}}})
	ctx, cancel := context.WithCancel(t.Context())
	w.atChanges, w.changesErr = cancel, context.Canceled
	r, err := w.call(ctx, aCall("file_write", `{}`))
	if err != nil || r.Err == nil || r.Err.Code != tool.CodeCancelled || w.did("commit") {
		t.Errorf("got %+v, %v: %v", r.Err, err, w.trace)
	}
}

func TestNothingIsChangedThatIsNotRecorded(t *testing.T) {
	for _, typ := range []session.Type{session.TypeDecision, session.TypeCallChanges} {
		w := newWorld(t, policy.Options{})
		w.answer, w.fail[typ] = yes(policy.ScopeOnce), errDisk
		if _, err := w.call(t.Context(), aCall("file_write", `{}`)); !errors.Is(err, errDisk) || w.did("commit") || !w.did("drop") {
			t.Errorf("%s: got %v: %v", typ, err, w.trace)
		}
	}
}

// Progress of a rehearsed call is shown after the answer, and never after a no.
func TestWhatARehearsedCallSaysWaitsForTheAnswer(t *testing.T) {
	for name, answer := range map[string]func(context.Context, policy.Question) (policy.Answer, error){
		"yes": yes(policy.ScopeOnce), "no": no,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, policy.Options{ConfirmAll: true})
			w.run = func(_ context.Context, _ policy.Grant, _ *tool.Module, _ tool.Call, report func(tool.Progress)) (tool.Result, error) {
				for range 1000 {
					report(tool.Progress{Level: "warn", Message: "the secret is 42" + strings.Repeat(".", 1000)})
				}
				return tool.Result{Output: tool.Text("done")}, nil
			}
			told := 0
			w.options.Log.(*session.Log).Observe(func(e session.Event) {
				if e.Type == session.TypeProgress {
					told++
				}
			})
			w.answer = func(ctx context.Context, q policy.Question) (policy.Answer, error) {
				if told != 0 {
					t.Errorf("before the answer, %d messages are told", told)
				}
				return answer(ctx, q)
			}
			if _, err := w.call(t.Context(), aCall("file_write", `{}`)); err != nil {
				t.Fatal(err)
			}
			if name == "no" && told != 0 || name == "yes" && (told == 0 || told > maxHeldBytes/1000) {
				t.Errorf("%d messages are told", told)
			}
		})
	}
}

// A yes to changes that cannot be shown holds for this call only, whoever gives it and
// whatever its scope.
func TestAnAnswerAboutWhatIsNotShownHoldsOnce(t *testing.T) {
	many := func(n int, c tool.Change) (out []tool.Change) {
		for i := range n {
			c.Path = fmt.Sprintf("/work/%d", i)
			out = append(out, c)
		}
		return out
	}
	large := aFile("x", "")
	large.After.Size = 64<<20 + 1 // so it says
	gone := aFile("x", "\x00")
	gone.Kind, gone.Before, gone.After = tool.Removed, gone.After, nil
	for name, c := range map[string]struct {
		changes []tool.Change
		holds   bool
		then    []tool.Change // of the second call, if they differ
		flag    bool          // the command line of this run allows it
	}{
		"text":                                 {changes: many(30, aFile("x", "hello\n")), holds: true},
		"no text":                              {changes: append(many(30, aFile("x", "hello\n")), aFile("y", "\x00"))},
		"no text, which goes":                  {changes: []tool.Change{gone}, holds: true},
		"too much":                             {changes: []tool.Change{large}},
		"too many":                             {changes: many(10_001, aFile("x", "hello\n"))},
		"text, and then no text":               {changes: many(1, aFile("x", "hello\n")), then: many(1, aFile("x", "\x00"))},
		"text, and then another one":           {changes: many(1, aFile("x", "hello\n")), then: many(1, aFile("y", "bye\n")), holds: true},
		"no text, allowed on the command line": {changes: many(1, aFile("x", "\x00")), flag: true},
	} {
		for _, scope := range []policy.Scope{policy.ScopeTurn, policy.ScopeSession, policy.ScopeProject, policy.ScopeAlways, policy.ScopeBelow, policy.ScopeKeepBelow} {
			if c.holds && (scope == policy.ScopeProject || scope == policy.ScopeBelow || scope == policy.ScopeKeepBelow) || len(c.changes) > 1000 && scope != policy.ScopeSession {
				continue // it is not offered here; or slow
			}
			opts, want := policy.Options{}, map[bool]int{true: 1, false: 2}[c.holds]
			if c.flag {
				opts.Rules, want = []policy.Rule{{Effect: policy.Allow, Tool: "file_write", Source: policy.SourceUser}, {Effect: policy.Allow, Tool: "file_write", Source: policy.SourceFlag}}, 0
			}
			w := newWorld(t, opts)
			w.changes = c.changes
			asked, offered := 0, false
			w.answer = func(_ context.Context, q policy.Question) (policy.Answer, error) {
				asked++
				offered = len(q.Scopes) > 1 || len(q.Rules) > 0
				return policy.Answer{Question: q.ID, Allow: true, Scope: scope}, nil
			}
			for i := range 2 {
				call := aCall("file_write", `{}`)
				call.ID = fmt.Sprint(i)
				if r, err := w.call(t.Context(), call); err != nil || r.Err != nil {
					t.Fatalf("%s: %+v, %v", name, r, err)
				}
				if c.then != nil {
					w.changes = c.then
				}
			}
			if asked != want || offered != c.holds {
				t.Errorf("%s, %s: %d questions, more than once is offered: %t", name, scope, asked, offered)
			}
		}
	}
}

// The log lists all changes, but hashes contents only within limits.
func TestTheLogHashesSoMuch(t *testing.T) {
	w := newWorld(t, policy.Options{Rules: []policy.Rule{{Effect: policy.Allow, Tool: "file_write"}}})
	const files = 2 * maxHashedTotal / maxHashed
	w.changes = nil
	for i := range files {
		c := aFile(fmt.Sprint(i), "")
		c.After.Size = maxHashed // so it says
		w.changes = append(w.changes, c)
	}
	if _, err := w.call(t.Context(), aCall("file_write", `{}`)); err != nil {
		t.Fatal(err)
	}
	hashed, listed := 0, body[session.Changes](w, session.TypeCallChanges).Files
	for _, f := range listed {
		if f.After.SHA256 != "" {
			hashed++
		}
	}
	if len(listed) != files || hashed != maxHashedTotal/maxHashed {
		t.Errorf("%d of %d files are listed, %d with a hash", len(listed), files, hashed)
	}
}

// A stage that cannot be removed does not turn a success into a failure.
func TestAStageThatStaysDoesNotChangeTheResult(t *testing.T) {
	for name, answer := range map[string]func(context.Context, policy.Question) (policy.Answer, error){
		"yes": yes(policy.ScopeOnce), "no": no,
	} {
		w := newWorld(t, policy.Options{})
		w.answer, w.dropErr = answer, errDisk
		warned := false
		w.options.Log.(*session.Log).Observe(func(e session.Event) {
			warned = warned || e.Type == session.TypeProgress && strings.Contains(string(e.Body), errDisk.Error())
		})
		r, err := w.call(t.Context(), aCall("file_write", `{}`))
		if err != nil || !warned || (r.Err == nil) != (name == "yes") || r.Err != nil && r.Err.Code != tool.CodeDenied {
			t.Errorf("%s: got %+v, %v; warned: %v", name, r.Err, err, warned)
		}
	}
}

// cachingRunner runs processes that write to caches.
type cachingRunner struct {
	runner
	unasked bool
}

type cachingStage struct {
	policy.Staged
	r cachingRunner
}

func (s cachingStage) KeepCaches()         { s.r.w.note("keep") }
func (s cachingStage) SawUnapproved() bool { return s.r.unasked }

func (r cachingRunner) Run(ctx context.Context, g policy.Grant, mod *tool.Module, c tool.Call, report func(tool.Progress)) (tool.Result, policy.Staged, error) {
	result, staged, err := r.runner.Run(ctx, g, mod, c, report)
	if staged == nil {
		staged = &stage{r.w, c, mod.Digest}
	}
	return result, cachingStage{staged, r}, err
}

// A process's writes to caches are kept once its call is allowed. The question warns of
// programs that were built with a cache of unapproved commands.
func TestWhatIsWrittenToCaches(t *testing.T) {
	built := aFile("program", "\x7fELF...")
	built.After.Mode = 0o755
	script := aFile("script", "#!/bin/sh\n")
	script.After.Mode = 0o755
	failed := func(context.Context, policy.Grant, *tool.Module, tool.Call, func(tool.Progress)) (tool.Result, error) {
		return tool.Failed(tool.CodeTimeout, tool.InternalError, "it took too long"), nil
	}
	asks := policy.Options{Rules: []policy.Rule{{Effect: policy.Ask, Tool: "file_write", Source: policy.SourceUser}}}
	allows := policy.Options{Rules: []policy.Rule{{Effect: policy.Allow, Tool: "file_write", Source: policy.SourceUser}}}
	for name, c := range map[string]struct {
		opts    policy.Options
		answer  func(context.Context, policy.Question) (policy.Answer, error)
		run     func(context.Context, policy.Grant, *tool.Module, tool.Call, func(tool.Progress)) (tool.Result, error)
		changes []tool.Change
		unasked bool
		kept    bool
		warns   bool
	}{
		"yes":                       {answer: yes(policy.ScopeOnce), changes: []tool.Change{script, built}, kept: true},
		"a program of a cache":      {answer: yes(policy.ScopeOnce), changes: []tool.Change{script, built}, unasked: true, kept: true, warns: true},
		"no program":                {answer: yes(policy.ScopeOnce), changes: []tool.Change{script, aFile("data", "\x7fELF")}, unasked: true, kept: true},
		"no":                        {answer: no, changes: []tool.Change{built}, unasked: true, warns: true},
		"nothing is changed":        {kept: true},
		"it fails":                  {run: failed, kept: true},
		"it fails, and a rule asks": {opts: asks, answer: no, run: failed},
		"a rule allows it":          {opts: allows, changes: []tool.Change{built}, kept: true},
		"allowed, and then asked":   {opts: allows, answer: no, changes: []tool.Change{aFile(".vscode/tasks.json", "{}")}},
		"allowed, and then denied":  {opts: allows, changes: []tool.Change{aFile("agent.toml", "")}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, c.opts)
			w.changes, w.run = c.changes, c.run
			w.options.Runner = cachingRunner{runner{w}, c.unasked}
			warning := ""
			if c.answer != nil {
				w.answer = func(ctx context.Context, q policy.Question) (policy.Answer, error) {
					warning = q.Warning
					return c.answer(ctx, q)
				}
			}
			if _, err := w.call(t.Context(), aCall("file_write", `{}`)); err != nil {
				t.Fatal(err)
			}
			if w.did("keep") != c.kept || !w.did("drop") {
				t.Errorf("kept is %t: %v", !c.kept, w.trace)
			}
			if strings.Contains(warning, `"/work/program" is a program, and parts of it may come from a cache`) != c.warns {
				t.Errorf("the warning is %q", warning)
			}
		})
	}
}
