// Package extism is the dialect of Extism plugins. Generic plugins export functions that read
// an input and leave an output; servlets of mcp.run and plugins of hyper-mcp list tools of
// their own.
//
// The functions that plugins import are ours. They act on the [plugin] in the context of a
// call: its memory, its variables, the response to its last request. While a module
// initialises there is no call, so they return nothing and keep nothing. See RATIONALE, "Why
// is Extism hosted by us, and not by its own library?"
package extism

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/stockade-dev/stockade/host/sandbox/abi"
	"github.com/stockade-dev/stockade/host/sandbox/dialect"
	"github.com/stockade-dev/stockade/host/sandbox/wasi/preview1"
	"github.com/stockade-dev/stockade/host/tool"
	"github.com/stockade-dev/stockade/host/wasm"
)

// Dialect is the [dialect.Dialect] of one kind of plugin.
type Dialect struct {
	Kind wasm.ShapeKind // wasm.Extism, wasm.HyperMCPv1 or wasm.HyperMCPv2
}

var abis = map[wasm.ShapeKind]string{
	wasm.Extism:     tool.ABIExtism,
	wasm.HyperMCPv1: tool.ABIServlet,
	wasm.HyperMCPv2: tool.ABIHyperMCP,
}

// ABI implements [dialect.Dialect].
func (d Dialect) ABI() string { return abis[d.Kind] }

// AllowsMissingWASI implements [dialect.Dialect].
func (Dialect) AllowsMissingWASI() bool { return true }

// ImportSignature implements [dialect.Dialect].
func (Dialect) ImportSignature(module, name string) (abi.Signature, bool) {
	f, ok := lookup(module, name)
	return f.Signature, ok
}

// Provide implements [dialect.Dialect].
func (Dialect) Provide(ctx context.Context, rt wazero.Runtime) error { return instantiate(ctx, rt) }

// Exports that initialise a plugin. If there is no _initialize, which linkers make for
// reactors, constructors calls the constructors of C. haskell starts Haskell's runtime, after
// either.
const (
	constructors = "__wasm_call_ctors"
	haskell      = "hs_init"
)

// initializers maps the exports that initialise a plugin to their types.
var initializers = map[string]abi.Signature{
	abi.ExportInitialize: {},
	constructors:         {},
	haskell:              parseSig("ww"), // argc and argv: 0 and 0
}

// Starts implements [dialect.Dialect].
func (Dialect) Starts(mod api.Module) []dialect.Start {
	if mod.ExportedFunction(abi.ExportInitialize) == nil && mod.ExportedFunction(haskell) == nil {
		return []dialect.Start{{Export: constructors}}
	}
	return []dialect.Start{{Export: abi.ExportInitialize}, {Export: haskell, Params: []uint64{0, 0}}}
}

// exportStart is the entry point of a command. The host calls it only if it is the tool of
// the plugin.
const exportStart = "_start"

// callable reports whether an export can be called as a tool: it takes no parameters, and
// returns nothing or an exit code.
func callable(m *wasm.Module, e wasm.Export) bool {
	sig, ok := m.ExportedFunc(e.Name)
	_, starts := initializers[e.Name]
	return ok && !starts && int64(e.Index) >= int64(m.ImportedFuncs()) && (dialect.SameSignature(sig, parseSig("")) || dialect.SameSignature(sig, parseSig(":w")))
}

// checkCallable returns an error if the module has no callable function of this name.
func checkCallable(m *wasm.Module, name string) error {
	e, ok := m.Export(name)
	switch {
	case !ok || e.Kind != wasm.KindFunc:
		return fmt.Errorf("it does not export the function %.80q", name)
	case !callable(m, e):
		return fmt.Errorf("its function %.80q cannot be called: such a function takes nothing and returns nothing or an i32", name)
	case name == exportStart && initializes(m):
		return errors.New("its exports initialise it already, and _start would do so again")
	}
	return nil
}

func initializes(m *wasm.Module) bool {
	for name := range initializers {
		if _, ok := m.Export(name); ok {
			return true
		}
	}
	return false
}

// CheckExports implements [dialect.Dialect].
func (d Dialect) CheckExports(m *wasm.Module) error {
	if missing := unknownImports(m); len(missing) > 0 {
		return fmt.Errorf("it was made for one host, and needs functions of that: %s", strings.Join(missing, ", "))
	}
	for _, e := range m.Exports {
		if want, ok := initializers[e.Name]; ok {
			if err := dialect.CheckCalledExport(m, e, want); err != nil {
				return err
			}
		}
	}
	switch d.Kind {
	case wasm.Extism:
		if len(toolFunctions(m)) == 0 {
			return errors.New("it exports no function that can be called: such a function takes nothing and returns nothing or an i32; " +
				"perhaps it is a library for other plugins")
		}
		return nil
	}
	for _, name := range d.toolExports() {
		if e, ok := m.Export(name); !ok || !callable(m, e) {
			return fmt.Errorf("it exports %s with another signature: in such a plugin it takes nothing and returns an i32", name)
		}
	}
	return nil
}

// toolExports returns the names of the exports that list the plugin's tools and that call a
// tool.
func (d Dialect) toolExports() []string {
	if d.Kind == wasm.HyperMCPv1 {
		return []string{"describe", "call"}
	}
	return []string{"list_tools", "call_tool"}
}

// maxMissing limits the unknown imports that a message names; the others are left out.
const maxMissing = 5

// unknownImports returns at most maxMissing imports that neither Extism nor WASI has.
func unknownImports(m *wasm.Module) (names []string) {
	for _, i := range m.Imports {
		if _, ok := lookup(i.Module, i.Name); ok || preview1.Offers(i.Module) || i.Kind != wasm.KindFunc {
			continue
		}
		if len(names) == maxMissing {
			return append(names, "...")
		}
		names = append(names, fmt.Sprintf("%.100q", i.Module+"."+i.Name))
	}
	return names
}

// CheckManifest implements [dialect.Dialect]. A plugin may import more than its manifest asks
// for: the person who described it may give it less than it could use, and the rest is
// refused when it is used.
func (d Dialect) CheckManifest(manifest tool.Manifest, m *wasm.Module) error {
	for _, s := range manifest.Tools {
		if s.Capabilities.Exec != "" {
			return fmt.Errorf("%s: capability exec: a plugin starts no process", s.Name)
		}
		function := s.Name
		if s.Run != nil {
			if len(s.Run.Args)+len(s.Run.Env) > 0 || s.Run.Stdin != "" {
				return fmt.Errorf("%s: run: a plugin has no arguments, environment or standard input; say input", s.Name)
			}
			if s.Run.Function != "" {
				function = s.Run.Function
			}
		} else if d.Kind != wasm.Extism {
			continue // the plugin lists and calls its tools itself
		}
		if err := checkCallable(m, function); err != nil {
			return fmt.Errorf("%s: %w", s.Name, err)
		}
	}
	return nil
}

// Call implements [dialect.Dialect].
func (d Dialect) Call(ctx context.Context, g *dialect.Guest, call tool.Call) (*abi.Output, *abi.ToolError, error) {
	defer g.Account.ReleaseTurn() // on every way out
	p, err := newPlugin(ctx, g)
	if err != nil {
		return nil, nil, err
	}
	defer p.end()
	run := runOf(g.Manifest, call.Tool)
	if run == nil && d.Kind != wasm.Extism {
		return p.callTool(d.Kind, call)
	}
	if run == nil {
		run = inputRun(call.Tool)
	}
	filled, err := run.Expand(call.Args, call.Cwd)
	if err != nil {
		return nil, &abi.ToolError{Case: abi.InvalidInput, Message: err.Error()}, nil
	}
	out, toolErr, err := p.run(cmp.Or(run.Function, call.Tool), []byte(filled.Input))
	if toolErr != nil || err != nil {
		return nil, toolErr, err
	}
	return outputOf(out), nil, nil
}

// runOf returns the manifest's instructions for running a tool; nil: it has none.
func runOf(manifest *tool.Manifest, name string) *tool.Run {
	if manifest == nil {
		return nil
	}
	i := slices.IndexFunc(manifest.Tools, func(s tool.Spec) bool { return s.Name == name })
	switch {
	case i < 0:
		return nil
	case manifest.Tools[i].Run == nil && manifest.ABI == tool.ABIExtism:
		return &tool.Run{} // the export with the name of the tool reads the arguments
	}
	return manifest.Tools[i].Run
}

// inputRun returns the instructions for a function without a description: its input is a text.
func inputRun(function string) *tool.Run { return &tool.Run{Function: function, Input: "{input}"} }

// outputOf returns a plugin's output as a result: a JSON object is structured, other text is a
// text, and binary data is only mentioned.
func outputOf(out []byte) *abi.Output {
	if !utf8.Valid(out) {
		return textOutput(fmt.Sprintf("%d bytes that are not text", len(out)))
	}
	if bytes.HasPrefix(bytes.TrimLeft(out, " \t\r\n"), []byte("{")) && json.Valid(out) {
		return &abi.Output{Structured: string(out)}
	}
	return textOutput(string(out))
}

func textOutput(text string) *abi.Output {
	return &abi.Output{Content: []abi.Content{{Kind: abi.ContentText, Text: text}}}
}

// toolFunctions returns the exports that are the tools of a plugin without a description.
// These are the functions that return an exit code; if there are none, those that return
// nothing, as in Haskell; if there are none either, _start, provided that the module is just
// a command.
func toolFunctions(m *wasm.Module) (names []string) {
	var silent []string
	command, others := false, false
	for _, e := range m.Exports {
		sig, ok := m.ExportedFunc(e.Name)
		_, starts := initializers[e.Name]
		switch {
		case !ok || starts || slices.Contains(compilerExports, e.Name) || strings.HasPrefix(e.Name, "asyncify_"):
		case e.Name == exportStart:
			command = callable(m, e) && !initializes(m)
		case !callable(m, e):
			others = true
		case dialect.SameSignature(sig, parseSig(":w")):
			names = append(names, e.Name)
		default:
			silent = append(silent, e.Name)
		}
	}
	switch {
	case len(names) > 0:
		return names
	case len(silent) > 0:
		return silent
	case command && !others:
		return []string{exportStart}
	}
	return nil
}

// compilerExports are exports that compilers add for hosts that access a module's memory.
var compilerExports = []string{"malloc", "free", "calloc", "realloc", "__wasm_call_dtors", "hs_exit"}
