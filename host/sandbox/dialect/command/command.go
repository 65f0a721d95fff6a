// Package command is the dialect of programs for WASI preview 1. Such a module runs once,
// from _start to its end, with arguments, an environment, a standard input and two outputs.
//
// A command with a description, in its custom section, runs as its tool.Run says; its output
// is the result. Other commands have to speak the protocol of ikigai's external tools: with
// --schema they print a description, otherwise they read the arguments as JSON and print the
// result as JSON.
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

const exportStart = "_start"

// Dialect is the [dialect.Dialect] of commands.
type Dialect struct{}

// ABI implements [dialect.Dialect].
func (Dialect) ABI() string { return tool.ABICommand }

// AllowsMissingWASI implements [dialect.Dialect]: programs are built for other runtimes as
// well, and work without sockets.
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

// Starts implements [dialect.Dialect]. See RATIONALE, "Why does a command begin before its
// beginning?"
func (Dialect) Starts(api.Module) []dialect.Start { return nil }

// CheckManifest implements [dialect.Dialect].
func (Dialect) CheckManifest(manifest tool.Manifest, _ *wasm.Module) error {
	if manifest.Config != nil {
		return errors.New("its manifest has a config, which commands cannot read; use the environment (env) of a run")
	}
	for _, s := range manifest.Tools {
		c := s.Capabilities
		switch {
		case s.Run != nil && (s.Run.Function != "" || s.Run.Input != ""):
			return fmt.Errorf("its manifest runs %s with a function or an input, which are for plugins; a command has args, stdin and env", s.Name)
		case c.Exec != "", c.Network != tool.NetworkNone, len(c.Secrets) > 0:
			return fmt.Errorf("its manifest asks for more than files for %s, but a command can use nothing else", s.Name)
		case s.Run == nil && len(manifest.Tools) > 1:
			return fmt.Errorf("its manifest has several tools, but does not say how %s is run", s.Name)
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
			expanded, err := run.Expand(call.Args, p.Cwd)
			if err != nil {
				return nil, &abi.ToolError{Case: abi.InvalidInput, Message: err.Error()}, nil
			}
			p.Args = append(p.Args, expanded.Args...)
			p.Stdin = expanded.Stdin
			for name, value := range expanded.Env {
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
		return nil, &abi.ToolError{Case: abi.Failed, Stdout: g.Printed, Message: fmt.Sprintf("%s printed more than %d KiB, which is too much for a result",
			call.Tool, out.stdout.limit>>10)}, nil
	}
	return &abi.Output{Structured: cmp.Or(out.stdout.buf.String(), " ")}, nil, nil // " " is not valid JSON either
}

type outcome struct {
	code           uint32 // exit code
	stdout, stderr *headBuffer
}

// run runs a command to its end. If it fails, g.Printed has the output until then.
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

// printed returns the result of a described command. It is always text, so that the model
// finds it in the same field.
func (o *outcome) printed(g *dialect.Guest) json.RawMessage {
	r := struct {
		Output    string `json:"output"`
		Stderr    string `json:"stderr,omitempty"`
		ExitCode  int    `json:"exit_code"`
		Truncated bool   `json:"truncated,omitempty"`
	}{}
	var whole bool
	r.Output, whole = o.stdout.text(g, 2*g.Limits.OutputBytes) // the result is cut to head and tail later
	r.Stderr, _ = o.stderr.text(g, g.Limits.LogBytes)
	if !whole {
		r.Truncated = true
		r.Output += "\n[output truncated: the command printed more than is kept; have it print less]"
	}
	return tool.Marshal(r)
}

// captureLimit returns the number of bytes to capture of an output that is cut to 2*limit.
// They suffice to see that there is more, and to recognise a secret at the cut.
func captureLimit(g *dialect.Guest, limit int) int { return 2*limit + g.Redact.Longest() + 1 }

// headBuffer stores the first limit bytes of its input. truncated is set if there were more.
type headBuffer struct {
	limit     int
	buf       bytes.Buffer
	truncated bool
}

func (h *headBuffer) Write(p []byte) (int, error) {
	n := min(len(p), h.limit-h.buf.Len())
	h.buf.Write(p[:n])
	h.truncated = h.truncated || n < len(p)
	return len(p), nil
}

// text returns the first limit bytes without secrets. whole: the output has no more.
func (h *headBuffer) text(g *dialect.Guest, limit int) (_ string, whole bool) {
	text, whole := g.Redact.Head(h.buf.Bytes(), limit)
	return strings.ToValidUTF8(string(text), "\uFFFD"), whole && !h.truncated
}
