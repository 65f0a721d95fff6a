package dispatch

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/tool"
)

// addTool makes a stranger's tool the only one in the catalog of a world.
func addTool(t *testing.T, w *world, asks tool.Capabilities, given tool.Allowance) *tool.Entry {
	t.Helper()
	mod := &tool.Module{Name: "weather", Prefix: "weather_", Digest: "d1", Origin: tool.OriginAdded}
	c, err := tool.NewCatalog(map[*tool.Module]tool.Manifest{mod: {Tools: []tool.Spec{{
		Capabilities: asks.Restrict(given),
		Definition:   tool.Definition{Name: "weather_now", Description: "x", Parameters: []byte(`{"type":"object"}`)},
	}}}})
	if err != nil {
		t.Fatal(err)
	}
	e, _ := c.Find("weather_now")
	e.Requested, e.Allowed = asks, &given
	w.options.Catalog = c
	return e
}

// realDir returns a temporary directory by its path without links.
func realDir(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// The paths in the arguments of an added tool are looked up in the directories that it
// was given, not in the workspace.
func TestAnAddedToolNamesFilesOfItsOwn(t *testing.T) {
	ws, docs := realDir(t), realDir(t)
	for _, dir := range []string{ws, docs} {
		if err := os.WriteFile(filepath.Join(dir, ".env"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w := newWorld(t, policy.Options{Mounts: []policy.Mount{{Host: ws, Write: true}}, Rules: []policy.Rule{{Effect: policy.Allow, Tool: "weather_now", Source: policy.SourceUser}}})
	e := addTool(t, w, tool.Capabilities{Files: tool.FilesRead}, tool.Allowance{Read: []string{docs}})
	for file, want := range map[string]policy.Effect{
		filepath.Join(ws, ".env"):   policy.Deny, // the workspace is none of its business
		filepath.Join(docs, ".env"): policy.Ask,  // it looks like a secret
		filepath.Join(docs, "x"):    policy.Allow,
	} {
		call := aCall("weather_now", `{"path":"`+filepath.ToSlash(file)+`"}`)
		if d := w.policy.Decide(call, e, policy.Facts{Files: NamedFiles(w.policy, call, e)}); d.Effect() != want {
			t.Errorf("%s: %s, %s", file, d.Effect(), d.Reason())
		}
	}
}

// A call is refused if a directory that the tool was given is gone, or something else is
// in its place. The session goes on.
func TestADirectoryThatWasGivenIsGone(t *testing.T) {
	for name, c := range map[string]struct {
		change func(dir string) error
		want   string
	}{
		"it is there": {func(string) error { return nil }, ""},
		"it is gone":  {os.Remove, "is not there any more"},
		"it is a file": {func(dir string) error {
			if err := os.Remove(dir); err != nil {
				return err
			}
			return os.WriteFile(dir, nil, 0o600)
		}, "no directory"},
		"it is a link": {func(dir string) error {
			if err := os.Remove(dir); err != nil {
				return err
			}
			return os.Symlink(filepath.Dir(filepath.Dir(dir)), dir)
		}, "is a link now"},
		"a link leads to it": {func(dir string) error {
			parent := filepath.Dir(dir)
			if err := os.Rename(parent, parent+".moved"); err != nil {
				return err
			}
			return os.Symlink(parent+".moved", parent)
		}, "is a link now"},
	} {
		for _, late := range []bool{false, true} { // while the question stands open
			dir := filepath.Join(realDir(t), "parent", "given")
			if err := os.MkdirAll(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			change := func() {
				if err := c.change(dir); err != nil {
					t.Error(err)
				}
			}
			w := newWorld(t, policy.Options{})
			w.answer = func(ctx context.Context, q policy.Question) (policy.Answer, error) {
				if late {
					change()
				}
				return yes(policy.ScopeOnce)(ctx, q)
			}
			addTool(t, w, tool.Capabilities{Files: tool.FilesRead}, tool.Allowance{Read: []string{dir}})
			if !late {
				change()
			}
			r, err := w.call(t.Context(), aCall("weather_now", `{}`))
			switch {
			case err != nil:
				t.Errorf("%s, late %v: %v", name, late, err)
			case c.want == "" && r.Err != nil, c.want != "" && (r.Err == nil || !strings.Contains(r.Err.Message, c.want) || w.did("run")):
				t.Errorf("%s, late %v: %+v", name, late, r.Err)
			}
		}
	}
}

// A failed result names the capabilities that the tool asks for and was not given.
func TestAFailureSaysWhatTheToolWasNotGiven(t *testing.T) {
	asks := tool.Capabilities{Files: tool.FilesRead, Network: tool.NetworkHTTP, Hosts: []string{"api.example"}}
	const more = "weather_now asks for more than it was given (files to read, hosts): the person can give it to the tool"
	dir := realDir(t)
	for name, c := range map[string]struct {
		given  tool.Allowance
		result tool.Result
		want   string
	}{
		"it fails":                    {tool.Allowance{}, tool.Failed(tool.CodeFailed, tool.InternalError, "no"), more},
		"it traps, and says more":     {tool.Allowance{}, tool.Result{Err: &tool.Error{Code: tool.CodeTrap, Hint: tool.Advise("mend it")}}, "mend it; " + more},
		"it was denied what it tried": {tool.Allowance{}, tool.Failed(tool.CodeDenied, tool.PermissionDenied, "no"), more},
		"it takes too long":           {tool.Allowance{}, tool.Failed(tool.CodeTimeout, tool.InternalError, "slow"), ""},
		"it does without":             {tool.Allowance{}, tool.Result{Output: []byte(`{}`)}, ""},
		"it fails with all it wants":  {tool.Allowance{Read: []string{dir}, Hosts: []string{"api.example"}}, tool.Failed(tool.CodeFailed, tool.InternalError, "no"), ""},
	} {
		w := newWorld(t, policy.Options{})
		w.answer = yes(policy.ScopeOnce)
		w.run = func(context.Context, policy.Grant, *tool.Module, tool.Call, func(tool.Progress)) (tool.Result, error) {
			return c.result, nil
		}
		addTool(t, w, asks, c.given)
		r, err := w.call(t.Context(), aCall("weather_now", `{}`))
		got := ""
		if r.Err != nil {
			got = r.Err.Hint.String()
		}
		if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
}

// A stranger's tool may have read something, so its result is told only after an answer,
// even if it has changed nothing or failed.
func TestATrialOfAnAddedToolTellsNothingWithoutAnAnswer(t *testing.T) {
	for name, result := range map[string]tool.Result{"it succeeds": {Output: []byte(`{"text":"canary"}`)}, "it fails": tool.Failed(tool.CodeFailed, tool.InternalError, "canary")} {
		for _, allow := range []bool{false, true} {
			w := newWorld(t, policy.Options{})
			w.answer = no
			if allow {
				w.answer = yes(policy.ScopeOnce)
			}
			w.run = func(context.Context, policy.Grant, *tool.Module, tool.Call, func(tool.Progress)) (tool.Result, error) {
				return result, nil
			}
			addTool(t, w, tool.Capabilities{Files: tool.FilesWrite}, tool.Allowance{Write: []string{realDir(t)}})
			r, err := w.call(t.Context(), aCall("weather_now", `{}`))
			told := strings.Contains(string(r.Output), "canary") || r.Err != nil && strings.Contains(r.Err.Message, "canary")
			if err != nil || !w.did("rehearse") || told != allow {
				t.Errorf("%s, answered %v: told %v, %+v, %v", name, allow, told, r, err)
			}
		}
	}
}
