package selftest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stockade-dev/stockade/host/door"
	"github.com/stockade-dev/stockade/host/jail"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/redact"
	"github.com/stockade-dev/stockade/host/sandbox"
	"github.com/stockade-dev/stockade/host/selftest/machine"
	"github.com/stockade-dev/stockade/host/session"
	"github.com/stockade-dev/stockade/host/tool"
)

// makes returns a script that makes a file in the workspace.
func makes(kind Kind, dir string) *script {
	s := &script{}
	made := s.place(guestName(dir) + "/made")
	if kind == machine.Command { // a command has its working directory before the root
		made.dir = rootFD + 1
	}
	f := s.open(made, oCreate, rightsRead|rightsWrite, 0)
	s.writeText(f.fd, "made\n")
	s.add("fd_close", f.fd)
	return s
}

// ends ends a script with a text as its result.
func (s *script) ends(kind Kind, text string) {
	switch kind {
	case machine.Native:
		t := s.text(text)
		leaveText(t.at, t.n)(s)
	case machine.Command:
		s.printText(`{"output":"`+text+`"}`, 1)
	case machine.Plugin:
		s.answer(text)
	}
}

// TestACallIsHeldToTheSameWhateverItsKind runs calls of each kind of module through the
// door: the questions, records, changes and omissions must be the same.
func TestACallIsHeldToTheSameWhateverItsKind(t *testing.T) {
	const known = "a-secret-that-is-known"
	const (
		ran  = "session.started tool_call call.intended call.decision tool_result"
		made = "session.started tool_call call.intended call.decision call.changes tool_result"
		diff = "created made (5 bytes)\n--- /dev/null\n+++ b/made\n@@ -0,0 +1 @@\n+made\n"
	)
	fails := func(code tool.Code) map[Kind]tool.Code {
		return map[Kind]tool.Code{machine.Native: code, machine.Command: code, machine.Plugin: code}
	}
	cache := filepath.Join(t.TempDir(), "compiled")
	exits := fails(tool.CodeTrap)
	exits[machine.Command] = tool.CodeFailed // a command may fail on purpose
	for name, c := range map[string]struct {
		script func(kind Kind, dir string) *script
		no     bool   // the answer
		diff   string // shown with the question
		events string
		fails  map[Kind]tool.Code // nil: none fails
		says   string             // text beside the secret
	}{
		"what it changes is shown, and made after a yes": {
			script: func(kind Kind, dir string) *script { return makes(kind, dir) }, diff: diff, events: made,
		},
		"nothing is made after a no": {
			script: func(kind Kind, dir string) *script { return makes(kind, dir) }, no: true, diff: diff, events: ran, fails: fails(tool.CodeDenied),
		},
		"nobody is asked about what a crash would have changed": {
			script: func(kind Kind, dir string) *script { s := makes(kind, dir); s.add("trap"); return s }, events: ran, fails: fails(tool.CodeTrap),
		},
		"nor about what would have changed before it failed": {
			script: func(kind Kind, dir string) *script { s := makes(kind, dir); s.add("proc_exit", 3); return s }, events: ran, fails: exits,
		},
		"a secret is taken out of its result": {
			script: func(kind Kind, _ string) *script { s := &script{}; s.ends(kind, "it is "+known); return s }, events: ran, says: "it is ",
		},
		"a secret is taken out of what it wrote before it crashed": {
			script: func(Kind, string) *script { s := &script{}; s.writeText(2, "it is "+known); s.add("trap"); return s }, events: ran, fails: fails(tool.CodeTrap), says: "it is ",
		},
		"a secret is taken out of what it wrote before it failed": {
			script: func(Kind, string) *script {
				s := &script{}
				s.writeText(2, "it is "+known)
				s.add("proc_exit", 3)
				return s
			}, events: ran, fails: exits, says: "it is ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, kind := range machine.Kinds {
				t.Run(kind.String(), func(t *testing.T) {
					dir, err := filepath.EvalSymlinks(t.TempDir())
					if err != nil {
						t.Fatal(err)
					}
					redactor := new(redact.Redactor)
					redactor.Add(known)
					d := door.New(door.Options{Redact: redactor, Sandbox: sandbox.Options{Spawn: jail.RunHelper, CacheDir: cache}})
					t.Cleanup(func() {
						if err := d.Close(); err != nil {
							t.Error(err)
						}
					})
					g := Guest{Kind: kind, Code: machine.PlainModule(kind), Files: tool.FilesWrite}.withScript(c.script(kind, dir))
					catalog, _, err := g.catalog()
					if err != nil {
						t.Fatal(err)
					}
					shown := ""
					s, err := d.Open(t.Context(), door.SessionOptions{
						Workspace: dir, Catalog: catalog, Policy: policy.Options{Mounts: []policy.Mount{{Host: dir, Write: true}}},
						Approver: door.ApproverFunc(func(_ context.Context, q policy.Question) (policy.Answer, error) {
							shown = q.Changes.String()
							return policy.Answer{Allow: !c.no, Scope: policy.ScopeOnce}, nil
						}),
					})
					if err != nil {
						t.Fatal(err)
					}
					r, err := s.Call(t.Context(), tool.Call{ID: "1", Tool: toolName, Args: g.Args, Caller: tool.CallerPerson, Cwd: dir})
					if err != nil {
						t.Fatal(err)
					}
					var code tool.Code
					if r.Err != nil {
						code = r.Err.Code
					}
					if code != c.fails[kind] || shown != c.diff || r.Usage.FuelUsed == 0 {
						t.Errorf("it ends with %q and used %d: %s; shown was %q", code, r.Usage.FuelUsed, r.Summary(), shown)
					}
					if _, err := os.Stat(filepath.Join(dir, "made")); (err == nil) != (c.events == made) {
						t.Errorf("the file is made: %v", err == nil)
					}
					store, err := d.Store(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					var types []string
					for e, err := range store.Events(t.Context(), s.Log.ID(), 0) {
						if err != nil {
							t.Fatal(err)
						}
						types = append(types, string(e.Type))
						switch body := string(e.Body); {
						case strings.Contains(body, known):
							t.Errorf("%s holds the secret", e.Type)
						case e.Type == session.TypeToolResult && (!strings.Contains(body, c.says) || !strings.Contains(body, fmt.Sprintf(`\"fuel_used\":%d`, r.Usage.FuelUsed))):
							t.Errorf("the result does not tell the fuel, or %q: %s", c.says, body)
						}
					}
					if diff := cmp.Diff(c.events, strings.Join(types, " ")); diff != "" {
						t.Error(diff)
					}
				})
			}
		})
	}
}
