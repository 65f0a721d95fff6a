package sandbox_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stockade-dev/stockade/host/jail"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/policy/network"
	"github.com/stockade-dev/stockade/host/sandbox"
	"github.com/stockade-dev/stockade/host/tool"
	"github.com/stockade-dev/stockade/host/wasm/wasmtest"
)

// module returns a module of bytes that need not be WebAssembly.
func module(code []byte) *tool.Module {
	sum := sha256.Sum256(code)
	return &tool.Module{
		Name: "probe", Digest: hex.EncodeToString(sum[:]), Bytes: int64(len(code)),
		Origin: tool.OriginFile, Path: "probe.wasm", Read: func() ([]byte, error) { return code, nil },
	}
}

func probe(o wasmtest.ToolOptions) *tool.Module { return module(wasmtest.Tool(o)) }

// job is a granted call.
type job struct {
	mod   *tool.Module
	call  tool.Call
	grant policy.Grant
}

// ask describes a call of "probe", by default with no arguments and no grants.
type ask struct {
	id, tool, args string
	caps           tool.Capabilities
	mounts         []policy.Mount
	limits         policy.Limits
	cwd            string
	rehearsal      bool
	network        []network.Rule
}

// quick are limits for guests that would never end by themselves.
var quick = policy.Limits{Timeout: 30 * time.Millisecond, MemoryBytes: 16 << 20, HostCalls: 10_000}

// granted returns a call and its grant, made as dispatch does.
func granted(tb testing.TB, mod *tool.Module, a ask) job {
	tb.Helper()
	if a.id == "" {
		a.id = "call-1"
	}
	if a.tool == "" {
		a.tool = "probe"
	}
	if a.args == "" {
		a.args = "{}"
	}
	if a.cwd == "" {
		a.cwd = tb.TempDir()
	}
	schema, err := tool.CompileSchema(json.RawMessage(`{"type":"object"}`))
	if err != nil {
		tb.Fatal(err)
	}
	entry := &tool.Entry{
		Spec:   tool.Spec{Definition: tool.Definition{Name: a.tool}, Capabilities: a.caps},
		Schema: schema, Module: mod,
	}
	call := tool.Call{ID: a.id, Tool: a.tool, Args: json.RawMessage(a.args), Cwd: a.cwd}
	p := policy.New(policy.Options{Mounts: a.mounts, Limits: a.limits, Network: network.New(a.network)})
	d := p.Decide(call, entry, policy.Facts{})
	var grant policy.Grant
	if a.rehearsal {
		grant, err = d.Rehearse()
	} else if d.Effect() == policy.Ask {
		grant, err = d.Approve(policy.Answer{Allow: true, Scope: policy.ScopeOnce, By: "test"}, 1)
	} else {
		grant, err = d.Grant()
	}
	if err != nil {
		tb.Fatal(err)
	}
	return job{mod, call, grant}
}

func (j job) run(ctx context.Context, box *sandbox.Sandbox) (tool.Result, error) {
	return j.runTelling(ctx, box, nil)
}

// runTelling is run with a receiver of the progress, which may be nil. The changes of the
// call are committed.
func (j job) runTelling(ctx context.Context, box *sandbox.Sandbox, report func(tool.Progress)) (tool.Result, error) {
	r, staged, err := box.Run(ctx, j.grant, j.mod, j.call, report)
	if staged != nil {
		err = errors.Join(staged.Commit(ctx, j.grant), staged.Drop())
	}
	return r, err
}

// mustRun fails the test when the host is at fault.
func (j job) mustRun(tb testing.TB, box *sandbox.Sandbox) tool.Result {
	tb.Helper()
	r, err := j.run(tb.Context(), box)
	if err != nil {
		tb.Fatalf("the host is blamed: %v", err)
	}
	return r
}

// newBox returns a sandbox that compiles in real children, unless the test says otherwise.
func newBox(tb testing.TB, opts sandbox.Options) *sandbox.Sandbox {
	tb.Helper()
	if opts.Spawn == nil {
		opts.Spawn = jail.RunHelper
	}
	box := sandbox.New(opts)
	tb.Cleanup(func() {
		if err := box.Close(); err != nil {
			tb.Errorf("close: %v", err)
		}
	})
	return box
}

// output returns the text of a result that must be a success.
func output(tb testing.TB, r tool.Result) string {
	tb.Helper()
	if r.Err != nil {
		tb.Fatalf("the call failed: %s: %s (%s)", r.Err.Code, r.Err.Message, r.Err.Stderr)
	}
	var out struct {
		Output string `json:"output"`
	}
	if err := json.Unmarshal(r.Output, &out); err != nil {
		tb.Fatalf("%v in %s", err, r.Output)
	}
	return out.Output
}

// failure checks a failed result and its message.
func failure(tb testing.TB, r tool.Result, code tool.Code, typ tool.ErrorType, says string) {
	tb.Helper()
	if r.Err == nil {
		tb.Fatalf("the call succeeded: %.200s", r.Output)
	}
	if r.Err.Code != code || r.Err.Type != typ {
		tb.Errorf("code %s, type %s; want %s, %s: %s", r.Err.Code, r.Err.Type, code, typ, r.Err.Message)
	}
	if all := r.Err.Message + "; " + r.Err.Hint.String(); !strings.Contains(all, says) {
		tb.Errorf("the failure does not say %q: %s", says, all)
	}
	ours := []tool.Code{tool.CodeTrap, tool.CodeTimeout, tool.CodeMemory, tool.CodeBadABI, tool.CodeNotAdmitted}
	if r.Err.Hint == nil && slices.Contains(ours, code) { // the tool's own errors say it themselves
		tb.Errorf("the failure does not say what to do: %s", r.Err.Message)
	}
}

// logBuffer collects what an operator would read.
func logBuffer() (*slog.Logger, *strings.Builder) {
	var b strings.Builder
	return slog.New(slog.NewTextHandler(&b, nil)), &b
}

func mustWrite(tb testing.TB, path, content string) {
	tb.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		tb.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		tb.Fatal(err)
	}
}

func missing(tb testing.TB, path string) {
	tb.Helper()
	if _, err := os.Lstat(path); !os.IsNotExist(err) {
		tb.Errorf("%s exists (%v): something ran that must not", path, err)
	}
}
