package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/humanize"
	"github.com/stockade-dev/stockade/cmd/stockade/internal/terminal"
	"github.com/stockade-dev/stockade/cmd/stockade/internal/transcript"
	"github.com/stockade-dev/stockade/host/door"
	"github.com/stockade-dev/stockade/host/egress"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/policy/network"
	"github.com/stockade-dev/stockade/host/registry"
	"github.com/stockade-dev/stockade/host/registry/author"
	"github.com/stockade-dev/stockade/host/registry/author/toolchain"
	"github.com/stockade-dev/stockade/host/sandbox"
	"github.com/stockade-dev/stockade/host/sandbox/admit"
	"github.com/stockade-dev/stockade/host/tool"
	"github.com/stockade-dev/stockade/wit"
)

func newAuthorCmds(a *app) []*cobra.Command {
	return []*cobra.Command{newToolNewCmd(a), newToolWITCmd(a), newToolBuildCmd(a), newToolTestCmd(a), newToolDescribeCmd(a), newToolPackCmd(a)}
}

func newToolNewCmd(a *app) *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use: "new NAME", Short: "Write a small project in Go that builds and passes its tests",
		Long: `Write the project of a new module of tools, in Go, with the SDK beside it: it
needs no network to build. NAME is lower-case letters and digits, with '-' or '_'
between them. No file is overwritten.`,
		Example: "  stockade tool new weather\n  stockade tool new weather --dir ~/src/weather-tools",
		Args:    cobra.ExactArgs(1),
		RunE:    func(_ *cobra.Command, args []string) error { return runToolNew(a, args[0], dir) },
	}
	cmd.Flags().StringVar(&dir, "dir", "", "the folder to write, missing or empty (default: NAME)")
	return cmd
}

func runToolNew(a *app, name, dir string) error {
	shown := cmp.Or(dir, name)
	if !filepath.IsAbs(shown) {
		shown = filepath.Join(a.Workspace, shown)
	}
	err := author.CreateProject(shown, name)
	if bad, ok := errors.AsType[*author.NameError](err); ok {
		return usageError("for example: stockade tool new weather", "%v", bad)
	}
	if errors.Is(err, author.ErrNotEmpty) {
		return usageError("name another folder with --dir", "%v", err)
	}
	if err != nil {
		return err
	}
	enter := a.relToWorkspace(shown)
	_, err = fmt.Fprintf(a.s.out, `%s is a project with one tool, count, in main.go. Next:

  cd %s
  stockade tool build
  stockade tool test
  stockade call ./%s.wasm text="one two three"
`, terminal.Line(enter), terminal.Line(enter), name)
	return err
}

func newToolWITCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "wit DIR", Short: "Write the interface of tools, for languages other than Go",
		Long: `Write the files of the WIT package that defines the interface of tools into a folder,
for wit-bindgen. No file is overwritten.`,
		Example: "  stockade tool wit wit",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			err := os.CopyFS(args[0], wit.Files)
			if errors.Is(err, fs.ErrExist) {
				return usageError("name another folder, or move that file away", "%v", err)
			}
			if err == nil {
				a.s.note("wrote the interface of tools into %s", args[0])
			}
			return err
		},
	}
}

func goFlag(cmd *cobra.Command, value *string) {
	cmd.Flags().StringVar(value, "go", "", "the go command to build with (default: where Go is usually installed)")
}

func newToolBuildCmd(a *app) *cobra.Command {
	var goCmd string
	cmd := &cobra.Command{
		Use: "build [DIR]", Short: "Build a tool in Go, and pack it",
		Long: `Build the Go package in a folder as a module, put its manifest into it, and write
it there as NAME.wasm, where NAME is the module's name in the code.

The Go toolchain of this machine runs as you and not in the sandbox, because the
code is yours. Nothing is fetched: modules that go.mod requires, other than the
SDK, have to be in the module cache (go mod download).`,
		Example: "  stockade tool build\n  stockade tool build ./weather --go ~/go1.26/bin/go",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir, err := a.projectDir(args)
			if err != nil {
				return err
			}
			built, err := a.build(cmd.Context(), dir, goCmd)
			if err != nil {
				return err
			}
			return showPacked(a.s, built)
		},
	}
	goFlag(cmd, &goCmd)
	return cmd
}

func newToolPackCmd(a *app) *cobra.Command {
	var out, describe string
	cmd := &cobra.Command{
		Use: "pack FILE.wasm", Short: "Put a module's manifest into it, and check it",
		Long: `Ask a module for its manifest, in the sandbox and with nothing granted, and put that
into it as the custom section stockade-tool, which is read without running anything.
A module that imports more than its tools ask for is refused: http, secrets, exec
and search. Imports do not show which files a module uses; a module that does not
ask for files sees none.

` + "`tool build`" + ` packs what it builds. A packed module stays as it is.

With --describe FILE.toml it packs a command of WASI, or a plugin of Extism: the
description becomes part of the module. Anybody can then add, sign and push it.`,
		Example: "  stockade tool pack target/wasm32-unknown-unknown/release/greet.wasm -o greet.wasm\n" +
			"  stockade tool pack php.wasm --describe php.toml -o php-tool.wasm",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runToolPack(cmd.Context(), a, args[0], cmp.Or(out, args[0]), describe)
		},
	}
	cmd.Flags().StringVarP(&out, "output", "o", "", "where to write the module (default: FILE.wasm itself)")
	cmd.Flags().StringVar(&describe, "describe", "", "a TOML file that describes its tools")
	cmd.Flags().BoolVar(&a.flags.large, "large", false, "also pack a module that is large or has large functions")
	return cmd
}

func runToolPack(ctx context.Context, a *app, file, out, describe string) error {
	add, err := a.loadDescriber(describe)
	if err != nil {
		return err
	}
	mod, err := registry.ReadModule(file)
	if err != nil {
		return usageError("", "%v", err)
	}
	plain := mod
	if add != nil {
		if mod, err = add(ctx, mod); err != nil {
			return err
		}
	}
	packed, err := author.Pack(ctx, a.door().Sandbox(), mod)
	if errors.Is(err, author.ErrForeign) {
		return usageError("stockade tool pack "+file+" --describe FILE.toml; `stockade help plugins` has examples", "%s is not packed: %v, so a person has to describe its tools and their needs", file, err)
	}
	if err != nil {
		return importsHint(err)
	}
	if out != file || packed.Module.Digest != plain.Digest {
		if err := author.WriteModule(out, packed.Code); err != nil {
			return err
		}
	}
	packed.Module.Path = out
	return showPacked(a.s, packed)
}

// importsHint adds a hint to the error of a module that was refused because it imports
// something that none of its tools asks for. It returns other errors unchanged.
func importsHint(err error) error {
	refused, ok := errors.AsType[*admit.RefusedError](err)
	if !ok || !strings.Contains(refused.Why, "none of its tools asks for") {
		return err
	}
	return &exitErr{code: exitError, message: refused.Error(),
		hint: "let the tool that uses it ask for it (in Go tool.UsesNetwork, tool.UsesSecret, tool.RunsCommand, tool.ReadsFiles), or leave it out"}
}

func showPacked(s *stdio, p author.PackedModule) error {
	name := p.Manifest.Name
	if p.Manifest.Version != "" {
		name += " " + p.Manifest.Version
	}
	fmt.Fprintf(s.out, "%s: %s, %s\nsha256:%s\n", terminal.Line(p.Module.Path), terminal.Line(name), humanize.Bytes(p.Module.Bytes), p.Module.Digest)
	var err error
	for _, t := range p.Manifest.Tools {
		_, err = fmt.Fprintf(s.out, "  %s asks for %s\n", terminal.Line(t.Name), terminal.Line(capabilitiesText(t.Capabilities)))
	}
	s.warnOptionArgs(p.Manifest)
	return err
}

// projectDir returns the folder of a project: the argument, or the workspace if there is none.
func (a *app) projectDir(args []string) (string, error) {
	if len(args) == 0 {
		return a.Workspace, nil
	}
	dir, err := door.Directory(args[0])
	if err != nil {
		return "", usageError("name the folder of a project; `stockade tool new NAME` makes one", "%v", err)
	}
	return dir, nil
}

// build compiles and packs the Go project in a folder, and writes the module there. A project
// in another language is a usage error. goCmd is the path of the command go; empty: it is
// searched for.
func (a *app) build(ctx context.Context, dir, goCmd string) (author.PackedModule, error) {
	switch language := author.Language(dir); language {
	case "Go":
	case "":
		return author.PackedModule{}, usageError("`stockade tool new NAME` makes a project; a module that is built already: `stockade tool pack FILE.wasm`",
			"there is no go.mod in %s", dir)
	default:
		return author.PackedModule{}, usageError("build it with its own toolchain, then `stockade tool pack FILE.wasm`", "%s is a project in %s; only Go is built", dir, language)
	}
	if goCmd == "" {
		var err error
		if goCmd, err = toolchain.Find(a.s.env("HOME")); err != nil {
			return author.PackedModule{}, &exitErr{code: exitError, message: err.Error(),
				hint: "install Go from https://go.dev/dl, or name the command: --go /path/to/go"}
		}
	}
	goCmd, err := filepath.Abs(goCmd)
	if err != nil {
		return author.PackedModule{}, err
	}
	if err := a.Ceiling.PermitsRun(&tool.Module{Name: filepath.Base(dir), Origin: tool.OriginFile}); err != nil {
		return author.PackedModule{}, err
	}
	if !a.flags.quiet {
		a.s.note("building %s with %s ...", filepath.Base(dir), goCmd)
	}
	start := time.Now()
	// The module runs once, before it is packed: compiling it would take longer than
	// everything else here, and no call could use the result.
	box := sandbox.New(sandbox.Options{Interpreter: true, Permit: a.Ceiling.PermitsRun})
	defer box.Close()
	packed, file, err := author.Build(ctx, box, toolchain.Build{Go: goCmd, Dir: dir, Env: a.s.env})
	if failed, ok := errors.AsType[*toolchain.Error](err); ok {
		fmt.Fprintln(a.s.err, terminal.Visible(failed.Output))
		return packed, &exitErr{code: exitError, message: "the code does not build", hint: buildHint(failed.Output)}
	}
	if err != nil {
		return packed, importsHint(err)
	}
	if !a.flags.quiet {
		a.s.note("built in %.1f s", time.Since(start).Seconds())
	}
	packed.Module.Path = a.relToWorkspace(file)
	return packed, nil
}

// relToWorkspace returns a path relative to the workspace, or unchanged if it is outside.
func (a *app) relToWorkspace(path string) string { return transcript.Relative(path, a.Workspace) }

// buildHint returns a hint for a build that has failed for another reason than a mistake in
// the code. It recognizes the reason by the output of the toolchain. Empty: no hint is known.
func buildHint(output string) string {
	switch {
	case strings.Contains(output, "go.mod requires go >="):
		return "this Go is too old: install a newer one from https://go.dev/dl, or name it: --go /path/to/go"
	case strings.Contains(output, "GOPROXY=off"), strings.Contains(output, "missing go.sum entry"):
		return "`stockade tool build` fetches nothing: run `go mod tidy` in the folder first"
	}
	return ""
}

func newToolTestCmd(a *app) *cobra.Command {
	var goCmd string
	var update bool
	cmd := &cobra.Command{
		Use: "test [DIR | FILE.wasm]", Short: "Run a module's tests: call in, result out",
		Long: `Run the files tests/*.txt of a project against its module, in the sandbox, under the
limits and the policy of an agent's calls. A project in Go is built first. FILE.wasm
is tested as it is, with the tests in its folder. No test reaches the network, the
person's secrets or files, and none runs a command.

` + "`stockade help author` describes these files.",
		Example: "  stockade tool test\n  stockade tool test --update\n  stockade tool test ./greet.wasm",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runToolTest(cmd.Context(), a, args, goCmd, update)
		},
	}
	goFlag(cmd, &goCmd)
	cmd.Flags().BoolVar(&update, "update", false, "replace the expected results in the files by the actual ones")
	return cmd
}

// moduleUnderTest returns the module to test, and the folder that holds its directory tests.
func (a *app) moduleUnderTest(ctx context.Context, args []string, goCmd string) (mod *tool.Module, dir string, err error) {
	if len(args) == 1 && strings.HasSuffix(args[0], ".wasm") {
		if mod, err = registry.ReadModule(args[0]); err != nil {
			return nil, "", usageError("", "%v", err)
		}
		return mod, filepath.Dir(args[0]), nil
	}
	if dir, err = a.projectDir(args); err != nil {
		return nil, "", err
	}
	if author.Language(dir) == "Go" {
		built, err := a.build(ctx, dir, goCmd)
		return built.Module, dir, err
	}
	return nil, "", usageError("name the module: stockade tool test ./FILE.wasm", "there is no go.mod in %s", dir)
}

func runToolTest(ctx context.Context, a *app, args []string, goCmd string, update bool) error {
	mod, dir, err := a.moduleUnderTest(ctx, args, goCmd)
	if err != nil {
		return err
	}
	if err := a.Ceiling.PermitsRun(mod); err != nil {
		return err
	}
	catalog, err := registry.Catalog(ctx, a.door().Sandbox(), mod)
	if err != nil {
		return importsHint(err)
	}
	scripts, err := author.ReadScripts(dir, a.relToWorkspace) // all files are read before any of them runs
	if syntax, ok := errors.AsType[*author.SyntaxError](err); ok {
		return usageError("`stockade help author` describes such a file", "%v", syntax)
	}
	if err != nil {
		return err
	}
	if len(scripts) == 0 {
		return usageError("`stockade help author` describes these files", "there are no tests: no files tests/*.txt in %s", dir)
	}
	calls, failed := 0, 0
	for _, s := range scripts {
		if update {
			if err := a.runScript(ctx, s, catalog, func(author.Outcome) {}); err != nil {
				return err
			}
			changed := false
			if s, changed, err = s.Save(); err != nil {
				return err
			}
			if changed {
				a.s.note("updated %s", terminal.Line(s.Name))
			}
		}
		fmt.Fprintln(a.s.out, terminal.Line(s.Name))
		err := a.runScript(ctx, s, catalog, func(o author.Outcome) {
			if o.Tool != "" {
				calls++
			}
			if len(o.Problems) > 0 {
				failed++
			}
			showOutcome(a.s.out, s.Name, o)
		})
		if err != nil {
			return err
		}
	}
	if failed > 0 {
		return &exitErr{code: exitError, message: fmt.Sprintf("%s in %s", humanize.Plural(failed, "failure"), humanize.Plural(calls, "call")),
			hint: "--update writes the actual results into the files; look at the difference then"}
	}
	_, err = fmt.Fprintf(a.s.out, "%s, all as expected\n", humanize.Plural(calls, "call"))
	return err
}

// runScript runs a file of tests through a door of its own, with the policy layers, limits and
// compiled modules of this program.
func (a *app) runScript(ctx context.Context, s *author.Script, catalog *tool.Catalog, report func(author.Outcome)) (err error) {
	var d *door.Door
	defer func() {
		if d != nil {
			err = errors.Join(err, d.Close())
		}
	}()
	return s.Run(ctx, func(w author.Environment) (author.Session, error) {
		d = door.New(door.Options{
			Program: version(), Layers: a.Layers, Sandbox: a.sandboxOptions(), Services: w.Services, Note: a.s.note, Logger: a.logger(),
			Egress: func() (*egress.Egress, error) { return nil, errors.New("tests reach no network") },
		})
		limits, set := a.Limits()
		return d.Open(ctx, door.SessionOptions{
			Workspace: w.Dir, Catalog: catalog,
			Policy: policy.Options{Mounts: w.Mounts, Network: network.New(w.Network), Limits: limits, LimitOrigins: set, Masked: a.Masked(), Project: w.Dir},
			Approver: door.ApproverFunc(func(_ context.Context, q policy.Question) (policy.Answer, error) {
				e, ok := catalog.Find(q.Tool)
				return policy.Answer{Allow: ok && w.Allows(e.Capabilities), By: "file of tests"}, nil
			}),
		})
	}, report)
}

// showOutcome prints the outcome of a call in a test, and its differences from the
// expected one.
func showOutcome(out io.Writer, file string, o author.Outcome) {
	what := terminal.Line(humanize.Clip(o.Tool+" "+o.Args, 60))
	switch {
	case o.Tool == "":
		fmt.Fprintf(out, "  FAIL  %s:%d\n", terminal.Line(file), o.Line)
	case len(o.Problems) > 0:
		fmt.Fprintf(out, "  FAIL  %s (%s:%d)\n", what, terminal.Line(file), o.Line)
	default:
		fmt.Fprintf(out, "  ok    %s (%.1f ms, %s fuel)\n", what, float64(o.Usage.Duration.Microseconds())/1000, humanize.Count(o.Usage.FuelUsed))
	}
	for _, p := range o.Problems {
		for line := range strings.SplitSeq(p, "\n") {
			fmt.Fprintf(out, "        %s\n", terminal.Line(line))
		}
	}
}
