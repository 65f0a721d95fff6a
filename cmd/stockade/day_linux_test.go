package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/transcript"
	"github.com/stockade-dev/stockade/guests/gueststest"
	"github.com/stockade-dev/stockade/host/agent"
	"github.com/stockade-dev/stockade/host/config/policyfile"
	"github.com/stockade-dev/stockade/host/door"
	"github.com/stockade-dev/stockade/host/llm/offline"
	"github.com/stockade-dev/stockade/host/llm/provider"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/redact"
	"github.com/stockade-dev/stockade/host/registry"
	"github.com/stockade-dev/stockade/host/session"
	"github.com/stockade-dev/stockade/host/tool"
)

var wholeDay = flag.Bool("day", false, "work in all three repositories: make test-day")

// firstRow holds the scopes of the answers on the first row of a question, the widest first.
var firstRow = []policy.Scope{policy.ScopeFree, policy.ScopeSession, policy.ScopeOnce}

// widestYes gives the widest answer of the first row to each question, and notes the question. It
// lets nothing reach the network.
type widestYes struct {
	asked []string
	free  int // number of answers for all changes below the directory
}

func (c *widestYes) Approve(_ context.Context, q policy.Question) func() (policy.Answer, error) {
	if q.Tried { // the answer for all changes comes with the first
		return func() (policy.Answer, error) { return policy.Answer{}, errors.New("each by itself") }
	}
	scope := firstRow[slices.IndexFunc(firstRow, func(s policy.Scope) bool { return slices.Contains(q.Scopes, s) })]
	allow := q.Network == nil
	if scope == policy.ScopeFree {
		c.free++
	}
	c.asked = append(c.asked, fmt.Sprintf("%s %s: %s -> %s, %t", q.Tool, q.Command, q.Reason, scope, allow))
	return func() (policy.Answer, error) {
		return policy.Answer{Question: q.ID, Allow: allow, Scope: scope, By: "the widest"}, nil
	}
}

// day is the script of one repository: its directory, its prompts, and the state of its chat.
type day struct {
	dir     string
	prompts []string // each with the reason for the end of its turn before it
	goal    string   // the first prompt
	script  *offline.Script
	guarded []string // parts of the commands that are asked about or denied, also after a wide answer
	check   string   // commands that succeed after the day
}

// readDay reads a file of testdata/day, and makes its repository. Each request must hold the goal.
func readDay(t *testing.T, name string) day {
	file, err := txtar.ParseFile(filepath.Join("testdata", "day", name+".txtar"))
	if err != nil {
		t.Fatal(err)
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	d := day{dir: dir}
	var model strings.Builder
	for _, f := range file.Files {
		text := string(f.Data)
		switch f.Name {
		case "prompts":
			d.prompts = strings.Split(strings.TrimSpace(text), "\n")
			_, d.goal, _ = strings.Cut(d.prompts[0], " ")
		case "guarded":
			d.guarded = strings.Split(strings.TrimSpace(text), "\n")
		case "check.sh":
			d.check = text
		case "model.jsonl":
			for line := range strings.Lines(text) {
				var step map[string]any
				if err := json.Unmarshal([]byte(line), &step); err != nil {
					t.Fatalf("%v in %s", err, line)
				}
				expect, _ := step["expect"].([]any)
				step["expect"] = append(expect, d.goal)
				model.Write(append(tool.Marshal(step), '\n'))
			}
		default:
			path := filepath.Join(dir, strings.TrimPrefix(f.Name, "repo/"))
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, f.Data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	if d.script, err = offline.ParseScript(name, strings.NewReader(model.String())); err != nil {
		t.Fatal(err)
	}
	d.run(t, "git init -q -b main . && git config user.name Ada && git config user.email ada@example.com && git add . && git commit -qm first")
	return d
}

// run runs commands in the repository, without stockade.
func (d day) run(t *testing.T, commands string) {
	t.Helper()
	cmd := exec.Command("bash", "-ec", commands)
	cmd.Dir = d.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%s: %v\n%s", commands, err, out)
	}
}

// A day's work in small repositories, with a scripted model: searches, several edits of one file in
// one reply, tests that fail, 200 KB of output, a mistake, a loop, a correction, a commit. The goal
// of the first prompt is in every request, and few questions are asked.
func TestADay(t *testing.T) {
	gueststest.Need(t)
	repositories := []string{"go"}
	if *wholeDay {
		repositories = []string{"go", "python", "typescript"}
	}
	for _, name := range repositories {
		t.Run(name, func(t *testing.T) {
			if name == "typescript" {
				if _, err := exec.LookPath("node"); err != nil {
					t.Fatal("the day in TypeScript needs node: install it")
				}
			}
			workADay(t, readDay(t, name))
		})
	}
}

func workADay(t *testing.T, d day) {
	requests, largest := 0, 0
	model := offline.NewServer(d.script, "")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests, largest = requests+1, max(largest, int(r.ContentLength))
		model.ServeHTTP(w, r)
	}))
	defer server.Close()
	own := t.TempDir()
	adminPolicyPlace = func() policyfile.Place {
		return policyfile.Place{Path: filepath.Join(own, "policy.toml"), Root: own, Owner: os.Getuid()}
	}
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"HOME": home, "PATH": os.Getenv("PATH")}
	for _, name := range []string{"CONFIG", "DATA", "STATE", "CACHE"} {
		env["XDG_"+name+"_HOME"] = filepath.Join(own, name)
	}
	a := &app{s: &stdio{in: os.Stdin, out: io.Discard, err: io.Discard, env: func(k string) string { return env[k] }}, redactor: new(redact.Redactor)}
	a.flags.dir, a.flags.quiet = d.dir, true
	if err := a.open(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer a.close()
	catalog, err := registry.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	mounts, err := a.workspaceMounts()
	if err != nil {
		t.Fatal(err)
	}
	grants, err := a.policyOptions(catalog, mounts)
	if err != nil {
		t.Fatal(err)
	}
	grants.CanAsk = true
	answers := new(widestYes)
	s, err := a.door().Open(t.Context(), door.SessionOptions{
		Workspace: d.dir, Catalog: catalog, Policy: grants, Approver: answers,
		Provider: &door.Provider{Name: door.ProviderOpenAI, Client: provider.Options{BaseURL: server.URL + "/v1", APIKey: "none", Model: "scripted"}},
		Agent:    agent.Options{MaxSteps: a.Config.MaxToolTurns, MaxCallsPerStep: a.Config.MaxToolCallsPerTurn, RepeatedCalls: a.Config.RepeatedCalls, HistoryChars: a.Config.HistoryCharBudget},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	began, calls, failed := time.Now(), 0, 0
	summaries, denied := map[string]string{}, []string(nil) // of the calls, by ID; of those that were denied
	for _, line := range d.prompts {
		reason, prompt, _ := strings.Cut(line, " ")
		var end session.TurnEnded
		for e, err := range s.Run(t.Context(), prompt) {
			if err != nil {
				t.Fatal(err)
			}
			switch m, _ := e.Message(); e.Type {
			case session.TypeToolCall:
				summaries[e.Call] = m.Content
			case session.TypeToolResult:
				if _, env, _ := transcript.EnvelopeOf(m); env.Code == tool.CodeDenied {
					denied = append(denied, summaries[e.Call])
				}
				t.Logf("%.60s: %.160s", summaries[e.Call], m.Content)
			}
			if e.Type == session.TypeTurnEnded && json.Unmarshal(e.Body, &end) != nil {
				t.Fatalf("%s", e.Body)
			}
		}
		if calls, failed = calls+end.Calls, failed+end.Failed; string(end.Reason) != reason {
			t.Fatalf("the turn %q ended: %s %s %s", prompt, end.Reason, end.Limit, end.Error)
		}
	}
	if left := d.script.Remaining(); left != 0 {
		t.Errorf("%d answers of the model were not used", left)
	}
	d.run(t, d.check)
	for _, part := range d.guarded {
		if !slices.ContainsFunc(slices.Concat(answers.asked, denied), func(q string) bool { return strings.Contains(q, part) }) {
			t.Errorf("%s ran without a question", part)
		}
	}
	if n := len(answers.asked); n > 1+len(d.guarded) || answers.free > 1 {
		t.Errorf("%d questions, %d of them answered for all changes", n, answers.free)
	}
	t.Logf("%d requests, the largest of %d bytes; %d calls, %d failed; %.1f s; %d denied; %d questions:\n  %s",
		requests, largest, calls, failed, time.Since(began).Seconds(), len(denied), len(answers.asked), strings.Join(answers.asked, "\n  "))
}
