//go:build bench

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/stockade-dev/stockade/host/internal/foreign"
	"github.com/stockade-dev/stockade/host/internal/peers/bench"
	"github.com/stockade-dev/stockade/host/tool"
)

// interpreters run a script of one line, each call in a process of its own: the program
// with the tool added, and wazero's command, which caches compiled code too.
var interpreters = []string{"QuickJS", "CPython 3.12"}

func (s *setup) starts(ctx context.Context, selected func(string) bool) (all []*pair, _ error) {
	home, err := os.MkdirTemp("", "home-")
	if err != nil {
		return nil, err
	}
	s.closers = append(s.closers, func() error { return os.RemoveAll(home) })
	ours := func(args ...string) error {
		cmd := exec.Command(filepath.Join("..", "..", "..", "bin", "stockade"), append([]string{"-C", s.dir}, args...)...)
		cmd.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH")}
		return runCommand(cmd)
	}
	for _, name := range interpreters {
		if !selected("start-" + name) {
			continue
		}
		bench.Progress("prepare start-%s", name)
		m := foreign.Modules[slices.IndexFunc(foreign.Modules, func(m foreign.Module) bool { return m.Name == name })]
		code, err := s.files.File(ctx, m.Source, m.File)
		if err != nil {
			return nil, err
		}
		s.files.Forget(m.Source)
		file := filepath.Join(home, tool.NameOf(name))
		if err := errors.Join(os.WriteFile(file+".wasm", code, 0o600), os.WriteFile(file+".toml", []byte(m.Run.TOML()), 0o600)); err != nil {
			return nil, err
		}
		as := filepath.Base(file)
		if err := ours("tool", "add", "--yes", "--large", "--sha256", tool.SHA256(code), "--as", as, "--describe", file+".toml", file+".wasm"); err != nil {
			return nil, err
		}
		wazero, err := s.wazeroCommand()
		if err != nil {
			return nil, err
		}
		all = append(all, &pair{
			name: "start-" + name,
			ours: func(context.Context) error { return ours("call", as+"_run", "input="+m.Input) },
			theirs: func(context.Context) error {
				args := append([]string{"run", "-cachedir", filepath.Join(home, "wazero"), file + ".wasm"}, m.Run.Arguments(m.Input, s.dir)...)
				return runCommand(exec.Command(wazero, args...))
			},
		})
		for _, warm := range []func(context.Context) error{all[len(all)-1].ours, all[len(all)-1].theirs} {
			if err := warm(ctx); err != nil { // compiles it
				return nil, fmt.Errorf("start-%s: %w", name, err)
			}
		}
	}
	return all, nil
}

// wazeroCommand builds wazero's own command.
func (s *setup) wazeroCommand() (string, error) {
	file := filepath.Join(s.dir, "wazero-command")
	return file, runCommand(exec.Command("go", "build", "-o", file, "github.com/tetratelabs/wazero/cmd/wazero"))
}
