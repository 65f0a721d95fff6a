// Package command is the dialect of programs for WASI preview 1: modules that run once,
// from _start to their end, and know arguments, an environment, a standard input and
// two outputs.
//
// A command that was described, in its custom section, is run as its tool.Run says;
// what it prints is the result. Any other has to speak the protocol of ikigai's external
// tools: called with --schema it prints what it is, and otherwise it reads the arguments
// as JSON and prints the result as JSON.
package command

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/sys"

	"github.com/stockade-dev/stockade/host/policy/paths"
	"github.com/stockade-dev/stockade/host/sandbox/abi"
	"github.com/stockade-dev/stockade/host/sandbox/dialect"
	"github.com/stockade-dev/stockade/host/sandbox/wasi/preview1"
	"github.com/stockade-dev/stockade/host/tool"
	"github.com/stockade-dev/stockade/host/wasm"
)

// exportStart is the export that is the program.
const exportStart = "_start"

// Dialect is the [dialect.Dialect] of commands.
type Dialect struct{}

// ABI implements [dialect.Dialect].
func (Dialect) ABI() string { return tool.ABICommand }

// AllowsMissingWASI implements [dialect.Dialect]: programs were built for other runtimes too,
// and do without their sockets.
func (Dialect) AllowsMissingWASI() bool { return true }

// CheckExports implements [dialect.Dialect].
func (Dialect) CheckExports(m *wasm.Module) error {
	e, ok := m.Export(exportStart)
	if !ok {
		return fmt.Errorf("it does not export %s", exportStart)
	}
	return dialect.CheckCalledExport(m, e, abi.Signature{})
}

// ImportSignature implements [dialect.Dialect].
func (Dialect) ImportSignature(string, string) (abi.Signature, bool) { return abi.Signature{}, false }

// Provide implements [dialect.Dialect].
func (Dialect) Provide(context.Context, wazero.Runtime) error { return nil }

// Starts implements [dialect.Dialect]. See RATIONALE, "Why does a command begin before
// its beginning?"
func (Dialect) Starts(api.Module) []dialect.Start { return nil }

// CheckManifest implements [dialect.Dialect].
func (Dialect) CheckManifest(manifest tool.Manifest, _ *wasm.Module) error {
	if manifest.Config != nil {
		return errors.New("its manifest has a config, for which no command can ask; use the environment of a run")
	}
	for _, s := range manifest.Tools {
		c := s.Capabilities
		switch {
		case s.Run != nil && (s.Run.Function != "" || s.Run.Input != ""):
			return fmt.Errorf("its manifest runs %s with a function or an input, which are for plugins; a command has args, stdin and env", s.Name)
		case c.Exec != "", c.Network != tool.NetworkNone, len(c.Secrets) > 0:
			return fmt.Errorf("its manifest asks for more than files for %s, and a command can reach nothing else", s.Name)
		case s.Run == nil && len(manifest.Tools) > 1:
			return fmt.Errorf("its manifest has several tools, and does not say how %s is run", s.Name)
		}
	}
	return nil
}

// Call implements [dialect.Dialect].
func (Dialect) Call(ctx context.Context, g *dialect.Guest, call tool.Call) (*abi.Output, *abi.ToolError, error) {
	p := preview1.Process{Args: []string{call.Tool}, Stdin: string(call.Args), Cwd: paths.Guest(call.Cwd)}
	described := false
	if g.Manifest != nil {
		p.Args[0] = g.Manifest.Name
		i := slices.IndexFunc(g.Manifest.Tools, func(s tool.Spec) bool { return s.Name == call.Tool })
		if i < 0 {
			return nil, &abi.ToolError{Case: abi.UnknownTool, Message: fmt.Sprintf("the command has no tool %q", call.Tool)}, nil
		}
		if run := g.Manifest.Tools[i].Run; run != nil {
			described = true
			with, err := run.Expand(call.Args, p.Cwd)
			if err != nil {
				return nil, &abi.ToolError{Case: abi.InvalidInput, Message: err.Error()}, nil
			}
			p.Args = append(p.Args, with.Args...)
			p.Stdin = with.Stdin
			for name, value := range with.Env {
				p.Env = append(p.Env, name+"="+value)
			}
			slices.Sort(p.Env)
		}
	}
	out, err := run(ctx, g, p)
	if err != nil {
		return nil, nil, err
	}
	if out.code != 0 {
		code := int(out.code)
		e := &abi.ToolError{Case: abi.Failed, Message: fmt.Sprintf("%s exited with code %d", call.Tool, code), ExitCode: &code}
		e.Stdout, _ = out.stdout.text(g, g.Limits.OutputBytes)
		e.Stderr, _ = out.stderr.text(g, g.Limits.LogBytes)
		return nil, e, nil
	}
	if described {
		return &abi.Output{Structured: string(out.printed(g))}, nil, nil
	}
	g.Printed, _ = out.stdout.text(g, g.Limits.OutputBytes)
	if out.stdout.truncated {
		return nil, &abi.ToolError{Case: abi.Failed, Stdout: g.Printed, Message: fmt.Sprintf("%s printed more than %d KiB, of which nobody can read the result",
			call.Tool, out.stdout.limit>>10)}, nil
	}
	return &abi.Output{Structured: cmp.Or(out.stdout.kept.String(), " ")}, nil, nil // which is not JSON either
}

// outcome is what a command has left when it has ended by itself.
type outcome struct {
	code           uint32
	stdout, stderr *headBuffer
}

// run runs a command to its end.
func run(ctx context.Context, g *dialect.Guest, p preview1.Process) (*outcome, error) {
	out := &outcome{stdout: &headBuffer{limit: captureLimit(g, g.Limits.OutputBytes)}, stderr: &headBuffer{limit: captureLimit(g, g.Limits.LogBytes)}}
	p.Stdout, p.Stderr = out.stdout, io.MultiWriter(out.stderr, g.Log)
	g.WASI.SetProcess(p)
	_, err := g.Invoke(ctx, exportStart)
	var exit *sys.ExitError
	if errors.As(err, &exit) {
		out.code = exit.ExitCode()
		err = g.Account.Settle()
	}
	if err != nil {
		g.Printed, _ = out.stdout.text(g, g.Limits.OutputBytes)
	}
	return out, err
}

// printed is the result of a command that was described: what it has printed, as text
// whatever it is, so that a model finds it in the same place always.
func (o *outcome) printed(g *dialect.Guest) json.RawMessage {
	r := struct {
		Output    string `json:"output"`
		Stderr    string `json:"stderr,omitempty"`
		ExitCode  int    `json:"exit_code"`
		Truncated bool   `json:"truncated,omitempty"`
	}{}
	var whole bool
	r.Output, whole = o.stdout.text(g, 2*g.Limits.OutputBytes) // of which the head and the tail are left later
	r.Stderr, _ = o.stderr.text(g, g.Limits.LogBytes)
	if !whole {
		r.Truncated = true
		r.Output += "\n[output truncated: the command printed more than is kept; have it print less]"
	}
	return tool.Marshal(r)
}

// captureLimit is how much is kept of an output of which twice so much is looked at: enough to
// see that there is more, and what a secret would be that is cut.
func captureLimit(g *dialect.Guest, limit int) int { return 2*limit + g.Redact.Longest() + 1 }

// headBuffer keeps the beginning of what is written to it.
type headBuffer struct {
	limit     int
	kept      bytes.Buffer
	truncated bool
}

func (h *headBuffer) Write(p []byte) (int, error) {
	n := min(len(p), h.limit-h.kept.Len())
	h.kept.Write(p[:n])
	h.truncated = h.truncated || n < len(p)
	return len(p), nil
}

// text is the beginning without secrets, and whether that is all.
func (h *headBuffer) text(g *dialect.Guest, limit int) (_ string, whole bool) {
	text, whole := g.Redact.Head(h.kept.Bytes(), limit)
	return strings.ToValidUTF8(string(text), "\uFFFD"), whole && !h.truncated
}
