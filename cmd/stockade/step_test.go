package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stockade-dev/stockade/guests/gueststest"
	"github.com/stockade-dev/stockade/host/dispatch"
	"github.com/stockade-dev/stockade/host/door"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/redact"
	"github.com/stockade-dev/stockade/host/registry"
	"github.com/stockade-dev/stockade/host/tool"
)

// testApp is the whole program in a home and a workspace of its own.
func testApp(t testing.TB) *app {
	t.Helper()
	gueststest.Need(t)
	env := map[string]string{"HOME": t.TempDir(), "PATH": os.Getenv("PATH"), "NO_COLOR": "1"}
	a := &app{s: &stdio{in: os.Stdin, out: io.Discard, err: io.Discard, env: func(k string) string { return env[k] }}, redactor: new(redact.Redactor)}
	a.flags.dir, a.flags.quiet = t.TempDir(), true
	if err := a.open(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.close)
	return a
}

// testSession returns a new session of a, in which every question is answered yes.
func testSession(t testing.TB, a *app) *dispatch.Dispatcher {
	t.Helper()
	fatal := func(err error) {
		if err != nil {
			t.Error(err)
			runtime.Goexit()
		}
	}
	catalog, err := registry.Builtin()
	fatal(err)
	mounts, err := a.workspaceMounts()
	fatal(err)
	grants, err := a.policyOptions(catalog, mounts)
	fatal(err)
	s, err := a.door().Open(t.Context(), door.SessionOptions{Workspace: a.Workspace, Catalog: catalog, Policy: grants, Approver: yes{}})
	fatal(err)
	return s.Tools
}

// yes answers every question, after looking at what it says.
type yes struct{}

func (yes) Approve(_ context.Context, q policy.Question) func() (policy.Answer, error) {
	return func() (policy.Answer, error) {
		if q.Command == "" && !strings.Contains(q.Changes.String(), "@@") && !strings.Contains(q.Changes.String(), "created") {
			return policy.Answer{}, fmt.Errorf("the question shows no change: %q", q.Changes)
		}
		return policy.Answer{Question: q.ID, Allow: true, Scope: policy.ScopeOnce, By: "soak"}, nil
	}
}

// BenchmarkFiveReads compares five calls of one step that only read with the
// slowest of them alone. "ratio" is the median of the one by the other.
func BenchmarkFiveReads(b *testing.B) {
	a := testApp(b)
	for i := range 2000 {
		if err := os.WriteFile(filepath.Join(a.Workspace, fmt.Sprintf("file%d.txt", i)), []byte(strings.Repeat("a line of text\n", 200)), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	read := tool.Call{Tool: "file_read", Args: json.RawMessage(`{"path":"file1.txt"}`)}
	grep := tool.Call{Tool: "grep", Args: json.RawMessage(`{"pattern":"lin[e] of nothing"}`)}
	d := testSession(b, a)
	id := 0
	carryOut := func(calls ...tool.Call) time.Duration {
		for i := range calls {
			id++
			calls[i].ID, calls[i].Caller, calls[i].Cwd = fmt.Sprintf("call_%d", id), tool.CallerAgent, a.Workspace
		}
		start := time.Now()
		results, err := d.CallAll(context.Background(), calls, "")
		took := time.Since(start)
		for _, r := range results {
			if err != nil || r.Err != nil {
				b.Fatalf("%s, %v", r.Envelope(), err)
			}
		}
		return took
	}
	for name, slowest := range map[string]tool.Call{"a search and four files": grep, "five files": read} {
		b.Run(name, func(b *testing.B) {
			carryOut(slowest, read, read, read, read)
			var ratios []float64
			for b.Loop() {
				alone := carryOut(slowest)
				ratios = append(ratios, float64(carryOut(slowest, read, read, read, read))/float64(alone))
			}
			slices.Sort(ratios)
			b.ReportMetric(ratios[len(ratios)/2], "ratio")
		})
	}
}
