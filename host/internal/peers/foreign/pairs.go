//go:build bench

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
	"github.com/tetratelabs/wazero/sys"

	"github.com/stockade-dev/stockade/host/internal/foreign"
	"github.com/stockade-dev/stockade/host/internal/peers/bench"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/sandbox"
	"github.com/stockade-dev/stockade/host/tool"
)

// pair is a call here and the same call on the other host.
type pair struct {
	name         string
	ours, theirs func(context.Context) error
	atLeast      float64 // target: how many times faster ours should be; 0: none
}

// setup holds everything that the pairs share.
type setup struct {
	dir     string // directory that the modules see
	files   *foreign.Fetcher
	box     *sandbox.Sandbox
	closers []func() error
}

func setUp() (*setup, error) {
	kept, err := foreign.DefaultDir()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "foreign-")
	if err != nil {
		return nil, err
	}
	s := &setup{dir: dir, files: &foreign.Fetcher{Dir: kept}, box: foreign.NewSandbox(filepath.Join(kept, "compiled"), "")}
	s.closers = append(s.closers, s.box.Close, func() error { return os.RemoveAll(dir) })
	return s, foreign.Workspace(dir)
}

func (s *setup) close() error {
	var errs []error
	for _, end := range s.closers {
		errs = append(errs, end())
	}
	return errors.Join(errs...)
}

// modulePairs lists the pairs of modules of the table.
var modulePairs = []struct {
	name, module string
	input        string // instead of the table's
	warm         bool   // their instance is reused
	atLeast      float64
}{
	{name: "extism-small", module: "count_vowels", input: "hello world", atLeast: 5},
	{name: "extism-small-warm", module: "count_vowels", input: "hello world", warm: true},
	{name: "extism-1MiB", module: "count_vowels", input: strings.Repeat("hello world ", 1<<20/12)},
	{name: "extism-hello", module: "hello", atLeast: 5},
	{name: "extism-TinyGo", module: "replace", atLeast: 5},
	{name: "extism-Go", module: "std_command"},
	{name: "extism-Haskell", module: "hello_haskell"},
	{name: "command-Rust", module: "cat (cargo-wasi)"},
	{name: "command-TinyGo", module: "cat (TinyGo)"},
	{name: "command-C", module: "cat (zig cc)"},
	{name: "command-Go", module: "gosh"},
	{name: "command-QuickJS", module: "QuickJS"},
	{name: "command-CPython 3.12", module: "CPython 3.12"},
	{name: "command-PHP", module: "PHP 8.2"},
}

func (s *setup) pairs(ctx context.Context, selected func(string) bool, plugins string) (all []*pair, _ error) {
	for _, m := range modulePairs {
		if !selected(m.name) {
			continue
		}
		bench.Progress("prepare %s", m.name)
		i := slices.IndexFunc(foreign.Modules, func(f foreign.Module) bool { return f.Name == m.module })
		module := foreign.Modules[i]
		if m.input != "" {
			module.Input = m.input
		}
		code, err := s.files.File(ctx, module.Source, module.File)
		if err != nil {
			return nil, err
		}
		s.files.Forget(module.Source)
		p := &pair{name: m.name, atLeast: m.atLeast}
		if p.ours, err = s.ourCall(ctx, module, code); err != nil {
			return nil, fmt.Errorf("%s: %w", m.name, err)
		}
		if strings.HasPrefix(m.name, "extism-") {
			p.theirs, err = s.extism(ctx, module, code, m.warm)
		} else {
			p.theirs, err = s.wazero(ctx, module, code)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.name, err)
		}
		all = append(all, p)
	}
	if selected("noise") {
		all = append(all, s.noise(all)...)
	}
	listed, err := s.pluginPairs(ctx, plugins)
	if err != nil {
		return nil, err
	}
	all = append(all, listed...)
	starts, err := s.starts(ctx, selected)
	return append(all, starts...), err
}

// noise returns a pair of the first call with itself.
func (s *setup) noise(all []*pair) []*pair {
	if len(all) == 0 {
		return nil
	}
	return []*pair{{name: "noise", ours: all[0].ours, theirs: all[0].ours}}
}

// ourCall makes the call of a module's tool.
func (s *setup) ourCall(ctx context.Context, m foreign.Module, code []byte) (func(context.Context) error, error) {
	r, err := foreign.Prepare(ctx, s.box, m.Name, code, m.Run.TOML(), s.dir)
	if err != nil {
		return nil, err
	}
	args := []byte(`{}`)
	if m.Input != "" {
		args = tool.Marshal(map[string]string{"input": m.Input})
	}
	call, grant, err := r.Grant(m.Tool, args, policy.Limits{OutputBytes: 4 << 20})
	return func(ctx context.Context) error {
		result, _, err := s.box.Run(ctx, grant, r.Module, call, nil)
		if err == nil && result.Err != nil {
			err = result.Err
		}
		return err
	}, err
}

// extism makes the same call on Extism's SDK.
func (s *setup) extism(ctx context.Context, m foreign.Module, code []byte, warm bool) (func(context.Context) error, error) {
	o, err := foreign.NewOracle(ctx, code, m.Run, s.dir)
	if err != nil {
		return nil, err
	}
	s.closers = append(s.closers, func() error { return o.Close(context.Background()) })
	r, err := foreign.Prepare(ctx, s.box, m.Name, code, "", s.dir) // for the name of the function
	if err != nil {
		return nil, err
	}
	function, input := r.Manifest.Tools[0].Name, []byte(m.Input)
	if !warm {
		return func(ctx context.Context) error {
			a, err := o.Call(ctx, function, input)
			return errors.Join(err, a.Failure())
		}, nil
	}
	p, err := o.Instance(ctx)
	return func(ctx context.Context) error {
		_, _, err := p.CallWithContext(ctx, function, input)
		return err
	}, err
}

// wazero makes the same call on wazero's own WASI: with compiled code, in a fresh
// instance.
func (s *setup) wazero(ctx context.Context, m foreign.Module, code []byte) (func(context.Context) error, error) {
	rt := wazero.NewRuntime(ctx)
	s.closers = append(s.closers, func() error { return rt.Close(context.Background()) })
	if _, err := wasi_snapshot_preview1.Instantiate(ctx, rt); err != nil {
		return nil, err
	}
	compiled, err := rt.CompileModule(ctx, code)
	args := append([]string{m.Name}, m.Run.Arguments(m.Input, s.dir)...)
	return func(ctx context.Context) error {
		var out bytes.Buffer
		config := wazero.NewModuleConfig().WithName("").WithArgs(args...).WithStdout(&out).WithStderr(&out).
			WithSysWalltime().WithSysNanotime().WithFSConfig(wazero.NewFSConfig().WithReadOnlyDirMount(s.dir, s.dir))
		instance, err := rt.InstantiateModule(ctx, compiled, config)
		var exit *sys.ExitError
		if errors.As(err, &exit) && exit.ExitCode() == 0 {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%w: %s", err, &out)
		}
		return instance.Close(ctx)
	}, err
}

// pluginPairs returns a pair for each plugin of a folder that lists its tools: calls of
// its first tool.
func (s *setup) pluginPairs(ctx context.Context, dir string) (all []*pair, _ error) {
	if dir == "" {
		return nil, nil
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.wasm"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		p, err := s.pluginPair(ctx, file)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		if p != nil {
			all = append(all, p)
		}
	}
	return all, nil
}

func (s *setup) pluginPair(ctx context.Context, file string) (*pair, error) {
	bench.Progress("prepare %s", file)
	code, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	calls, err := foreign.Calls(file)
	if err != nil {
		return nil, err
	}
	name := strings.TrimSuffix(filepath.Base(file), ".wasm")
	r, err := foreign.Prepare(ctx, s.box, name, code, "", s.dir)
	if err != nil {
		return nil, err
	}
	first := r.Manifest.Tools[0].Name
	args := calls(first)[0]
	function, input := "call", fmt.Sprintf(`{"method":"tools/call","params":{"name":%q,"arguments":%s}}`, first, args)
	switch r.Manifest.ABI {
	case tool.ABIServlet:
	case tool.ABIHyperMCP:
		function, input = "call_tool", fmt.Sprintf(`{"request":{"name":%q,"arguments":%s},"context":{"id":"1","_meta":{}}}`, first, args)
	default:
		return nil, nil
	}
	call, grant, err := r.Grant(first, args, policy.Limits{})
	if err != nil {
		return nil, err
	}
	o, err := foreign.NewOracle(ctx, code, foreign.Run{}, s.dir)
	if err != nil {
		return nil, err
	}
	s.closers = append(s.closers, func() error { return o.Close(context.Background()) })
	return &pair{
		name: first + " of " + name, atLeast: 5,
		ours: func(ctx context.Context) error {
			result, _, err := s.box.Run(ctx, grant, r.Module, call, nil)
			if err == nil && result.Err != nil {
				err = result.Err
			}
			return err
		},
		theirs: func(ctx context.Context) error {
			a, err := o.Call(ctx, function, []byte(input))
			return errors.Join(err, a.Failure())
		},
	}, nil
}

func runCommand(cmd *exec.Cmd) error {
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", cmd, err, output)
	}
	return nil
}
