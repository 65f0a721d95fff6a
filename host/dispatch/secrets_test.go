package dispatch

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/redact"
	"github.com/stockade-dev/stockade/host/session"
	"github.com/stockade-dev/stockade/host/tool"
)

// No result holds a secret for the model or the log, in whatever way the call ends.
func TestNoResultHoldsASecret(t *testing.T) {
	const value = "hunter2-hunter2"
	everywhere := tool.Error{Message: "a " + value, Hint: tool.Advise("b %s", value), AllowHint: tool.Advise("h ").And(tool.ActionHint(tool.HintUndeny, value)), Stdout: "c " + value, Stderr: "d " + value, Rule: "e " + value, Allow: "f " + value, Denial: json.RawMessage(`{"reason":"g ` + value + `"}`), Code: tool.CodeFailed}
	for what, c := range map[string]struct {
		call    tool.Call
		result  tool.Result
		changes error
	}{
		"an output":          {call: aCall("file_read", `{"path":"a"}`), result: tool.Result{Output: tool.Text("it is " + value)}},
		"an error":           {call: aCall("file_read", `{"path":"a"}`), result: tool.Result{Err: &everywhere}},
		"no tool":            {call: aCall(value, `{}`)},
		"wrong arguments":    {call: aCall("file_read", `{"`+value+`":1}`)},
		"a denial":           {call: aCall("bash", `{"command":"`+value+`"}`)},
		"what was not kept":  {call: aCall("file_write", `{}`), result: tool.Result{Output: tool.Text("done")}, changes: errors.New("cannot use " + value)},
		"an output of trash": {call: aCall("file_read", `{"path":"a"}`), result: tool.Result{Output: json.RawMessage(value)}},
	} {
		t.Run(what, func(t *testing.T) {
			w := newWorld(t, policy.Options{})
			w.answer, w.changesErr = no, c.changes
			if c.changes != nil {
				w.answer = yes(policy.ScopeOnce)
			}
			w.options.Redact = new(redact.Redactor)
			w.options.Redact.Add(value)
			w.run = func(context.Context, policy.Grant, *tool.Module, tool.Call, func(tool.Progress)) (tool.Result, error) {
				return c.result, nil
			}
			r, err := w.call(t.Context(), c.call)
			if err != nil {
				t.Fatal(err)
			}
			if text := string(r.Envelope()) + r.Summary(); strings.Contains(text, value) || what != "what was not kept" && !strings.Contains(text, "[redacted]") && what != "a denial" {
				t.Errorf("the model gets %s", text)
			}
			for _, e := range w.events {
				body := strings.ReplaceAll(string(e.Body), `"name":"`+value, "") // the caller's word for the tool, which the log itself redacts
				if e.Type == session.TypeToolResult && strings.Contains(body, value) {
					t.Errorf("the log keeps %s", e.Body)
				}
			}
		})
	}
	if everywhere.Message != "a "+value {
		t.Error("the runner's own error was changed")
	}
}

func TestTheIntentNamesTheSecrets(t *testing.T) {
	spec := tool.Spec{Definition: tool.Definition{Name: "fetch", Description: "d", Parameters: json.RawMessage(`{"type":"object"}`)},
		Capabilities: tool.Capabilities{Files: tool.FilesWrite, Secrets: []tool.Secret{{Name: "B"}, {Name: "A"}}}}
	c, err := tool.NewCatalog(map[*tool.Module]tool.Manifest{{Name: "m", Digest: "d1", Origin: tool.OriginBuiltin}: {Name: "m", Tools: []tool.Spec{spec}}})
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, policy.Options{})
	w.options.Catalog, w.answer = c, yes(policy.ScopeOnce)
	if r, err := w.call(t.Context(), aCall("fetch", `{}`)); err != nil || r.Err != nil {
		t.Fatal(r.Summary(), err)
	}
	if got := body[session.Intent](w, session.TypeCallIntended).Secrets; !slices.Equal(got, []string{"A", "B"}) {
		t.Errorf("it names %v", got)
	}
	// It does not run before the answer, though it changes files.
	if slices.Index(w.trace, "ask") > slices.Index(w.trace, "run") || w.did("rehearse") {
		t.Errorf("it ran before the answer: %v", w.trace)
	}
}
