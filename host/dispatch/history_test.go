package dispatch

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/session"
	"github.com/stockade-dev/stockade/host/tool"
)

// TestHistoryIsKnownBeforeACommandRuns: the host has a guest search the history of a
// repository, and asks once what commands may read of it. A no does not deny the command.
func TestHistoryIsKnownBeforeACommandRuns(t *testing.T) {
	for name, c := range map[string]struct {
		held   bool
		answer func(context.Context, policy.Question) (policy.Answer, error)
		kept   string
		want   policy.Effect
	}{
		"clean": {answer: no, want: policy.Ask},
		"a no":  {held: true, answer: no, want: policy.Deny},
		"once":  {held: true, answer: yes(policy.ScopeOnce), want: policy.Allow},
		"kept":  {held: true, answer: yes(policy.ScopeProject), kept: "bash history /work", want: policy.Allow},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, policy.Options{
				CanAsk: true, Project: "/work", Tier: func() policy.Tier { return 3 }, WhyNotStaged: func([]policy.Mount) string { return "" },
				Rules: []policy.Rule{{Effect: policy.Allow, Tool: "bash", Source: policy.SourceFlag}},
			})
			w.changes = nil
			w.options.HistoryTool = tool.NewEntry(tool.Spec{Definition: tool.Definition{Name: "git"}, Capabilities: tool.Capabilities{Files: tool.FilesRead}}, &tool.Module{Name: "git", Origin: tool.OriginBuiltin, Digest: "g"}, "")
			kept := ""
			w.options.Remember = func(r policy.Rule) error { kept = r.String(); return nil }
			learned, searched, ran, asked := "", 0, 0, 0
			var last policy.Effect
			w.run = func(_ context.Context, grant policy.Grant, mod *tool.Module, call tool.Call, _ func(tool.Progress)) (tool.Result, error) {
				if call.Tool == "git" {
					searched++
					if err := grant.Check(call, mod.Digest); err != nil || grant.MayExec() || !strings.Contains(string(call.Args), `"/work/.git"`) {
						t.Errorf("it looks with %+v: %v", call, err)
					}
					return tool.Result{Output: tool.Marshal(map[string]string{"output": "found"})}, nil
				}
				if learned == "" {
					return tool.Result{}, &policy.HistoryError{Unknown: []policy.History{{Repository: "/work/.git"}}, Learn: func(_ policy.History, found []byte) error { learned = string(found); return nil }}
				}
				exec, _ := grant.Exec()
				if last = exec.History("/work/.git"); c.held && last == policy.Ask {
					return tool.Result{}, &policy.HistoryError{AskAbout: []policy.History{{Repository: "/work/.git", Names: []string{".env"}}}}
				}
				ran++
				return tool.Result{Output: tool.Text("done")}, nil
			}
			w.answer = func(ctx context.Context, q policy.Question) (policy.Answer, error) {
				if asked++; q.Histories == nil {
					t.Errorf("it asks %+v", q)
				}
				return c.answer(ctx, q)
			}
			d := New(w.options)
			for range 2 {
				if result, err := d.Call(t.Context(), aCall("bash", `{"command":"ls"}`)); err != nil || result.Err != nil {
					t.Fatalf("%+v, %v", result.Err, err)
				}
			}
			if want := map[bool]int{true: 1}[c.held]; learned != "found" || searched != 1 || ran != 2 || asked != want || last != c.want || kept != c.kept {
				t.Errorf("learned %q in %d searches, ran %d times, asked %d times, %s, kept %q", learned, searched, ran, asked, last, kept)
			}
			decisions := 0
			for _, e := range w.events {
				if e.Type == session.TypeDecision && strings.Contains(string(e.Body), `"rule":"history"`) && strings.Contains(string(e.Body), `"histories":["/work/.git"]`) {
					decisions++
				}
			}
			if want := 1 + asked; decisions != want {
				t.Errorf("%d decisions are recorded, want %d", decisions, want)
			}
		})
	}
}

// A history is not clean if its search fails, and a command is not tried forever.
func TestHistoryThatNobodyCanKnow(t *testing.T) {
	w := newWorld(t, policy.Options{Tier: func() policy.Tier { return 3 }, Rules: []policy.Rule{{Effect: policy.Allow, Tool: "bash", Source: policy.SourceFlag}}})
	w.changes = nil
	var learned [][]byte
	w.run = func(context.Context, policy.Grant, *tool.Module, tool.Call, func(tool.Progress)) (tool.Result, error) {
		return tool.Result{}, &policy.HistoryError{Unknown: []policy.History{{Repository: "/work/.git"}}, Learn: func(_ policy.History, found []byte) error { learned = append(learned, found); return nil }}
	}
	result, err := New(w.options).Call(t.Context(), aCall("bash", `{"command":"ls"}`))
	if err != nil || result.Err == nil || result.Err.Code != tool.CodeDenied || len(learned) != maxHistorySearches || slices.ContainsFunc(learned, func(f []byte) bool { return f != nil }) {
		t.Errorf("%+v, %v, learned %q", result.Err, err, learned)
	}
}
