// Package extism is the dialect of Extism plugins: of generic ones, whose exports read
// an input and leave an output, and of those that list tools of their own, which are
// servlets of mcp.run and plugins of hyper-mcp.
//
// The functions that plugins import are ours. They act on the [plugin] that travels in
// the context of a call: its memory, its variables, the answer to its last request.
// While a module initialises there is no call, and they give nothing and keep nothing.
// See RATIONALE, "Why is Extism hosted by us, and not by its own library?"
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
	// Kind is wasm.Extism, wasm.HyperMCPv1 or wasm.HyperMCPv2.
	Kind wasm.ShapeKind
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

// What initialises a plugin: a reactor that a linker has made, the constructors of C
// by themselves, or Haskell's runtime, behind the reactor's.
const (
	constructors = "__wasm_call_ctors"
	haskell      = "hs_init"
)

// initializers are the types of these exports.
var initializers = map[string]abi.Signature{
	abi.ExportInitialize: {},
	constructors:         {},
	haskell:              parseSig("ww"), // argc and argv, of which there are none
}

// Starts implements [dialect.Dialect].
func (Dialect) Starts(mod api.Module) []dialect.Start {
	if mod.ExportedFunction(abi.ExportInitialize) == nil && mod.ExportedFunction(haskell) == nil {
		return []dialect.Start{{Export: constructors}}
	}
	return []dialect.Start{{Export: abi.ExportInitialize}, {Export: haskell, Params: []uint64{0, 0}}}
}

// exportStart is what a command exports. Of a plugin it is called only if it is the tool.
const exportStart = "_start"

// callable reports whether a plugin can be called by an export: it takes nothing, and
// returns nothing or a code.
func callable(m *wasm.Module, e wasm.Export) bool {
	sig, ok := m.ExportedFunc(e.Name)
	_, starts := initializers[e.Name]
	return ok && !starts && int64(e.Index) >= int64(m.ImportedFuncs()) && (dialect.SameSignature(sig, parseSig("")) || dialect.SameSignature(sig, parseSig(":w")))
}

// checkCallable says what is wrong with a function that a tool is to be.
func checkCallable(m *wasm.Module, name string) error {
	e, ok := m.Export(name)
	switch {
	case !ok || e.Kind != wasm.KindFunc:
		return fmt.Errorf("it does not export the function %.80q", name)
	case !callable(m, e):
		return fmt.Errorf("its function %.80q cannot be called: such a function takes nothing and returns nothing or an i32", name)
	case name == exportStart && initializes(m):
		return errors.New("it is initialised already by what it exports, which _start would do again")
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
			return fmt.Errorf("it exports %s, which takes nothing and returns an i32 in such a plugin, as something else", name)
		}
	}
	return nil
}

// toolExports are what lists the tools of a plugin, and what calls one.
func (d Dialect) toolExports() []string {
	if d.Kind == wasm.HyperMCPv1 {
		return []string{"describe", "call"}
	}
	return []string{"list_tools", "call_tool"}
}

// maxMissing is how many functions a message names.
const maxMissing = 5

// unknownImports lists the imports that neither Extism nor WASI has.
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
// for: a person who has described it may give it less than it could use, and what is
// not granted is refused when it is used.
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
			continue // it lists and calls its tools itself
		}
		if err := checkCallable(m, function); err != nil {
			return fmt.Errorf("%s: %w", s.Name, err)
		}
	}
	return nil
}

// Call implements [dialect.Dialect].
func (d Dialect) Call(ctx context.Context, g *dialect.Guest, call tool.Call) (*abi.Output, *abi.ToolError, error) {
	defer g.Account.ReleaseTurn() // wherever it ends
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

// runOf is how a tool is run by the manifest; nil: it says nothing of that.
func runOf(about *tool.Manifest, name string) *tool.Run {
	if about == nil {
		return nil
	}
	i := slices.IndexFunc(about.Tools, func(s tool.Spec) bool { return s.Name == name })
	switch {
	case i < 0:
		return nil
	case about.Tools[i].Run == nil && about.ABI == tool.ABIExtism:
		return &tool.Run{} // an export of that name, which reads the arguments
	}
	return about.Tools[i].Run
}

// inputRun is how a function is run that nobody has described: it reads a text.
func inputRun(function string) *tool.Run { return &tool.Run{Function: function, Input: "{input}"} }

// outputOf makes a result of what a plugin has put out: an object of JSON is one, any
// other text is a text, and what is no text is only named.
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

// toolFunctions are the exports that are the tools of a plugin which says nothing about
// itself: those that return a code; or else those that return nothing, as Haskell's do;
// or else _start, if the module is nothing but a command.
func toolFunctions(m *wasm.Module) (names []string) {
	var silent []string
	command, more := false, false
	for _, e := range m.Exports {
		sig, ok := m.ExportedFunc(e.Name)
		_, starts := initializers[e.Name]
		switch {
		case !ok || starts || slices.Contains(compilerExports, e.Name) || strings.HasPrefix(e.Name, "asyncify_"):
		case e.Name == exportStart:
			command = callable(m, e) && !initializes(m)
		case !callable(m, e):
			more = true
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
	case command && !more:
		return []string{exportStart}
	}
	return nil
}

// compilerExports are exports that compilers add for hosts which reach into a module's memory.
var compilerExports = []string{"malloc", "free", "calloc", "realloc", "__wasm_call_dtors", "hs_exit"}
