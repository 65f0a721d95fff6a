//go:build unix

package toolchain

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// program writes a shell script that stands for a go command.
func program(t *testing.T, file, script string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("#!/bin/sh\n"+script), 0o700); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestFind(t *testing.T) {
	before := goPaths
	t.Cleanup(func() { goPaths = before })
	home := t.TempDir()
	goPaths = []string{filepath.Join(home, "usr", "go")}
	t.Setenv("PATH", filepath.Join(home, "path")) // which is not asked
	t.Setenv("GOROOT", filepath.Join(home, "path"))
	program(t, filepath.Join(home, "path", "go"), "")
	for _, h := range []string{home, "", "relative"} {
		if found, err := Find(h); !errors.Is(err, ErrNoGo) {
			t.Errorf("in %q it finds %q, %v", h, found, err)
		}
	}
	for _, c := range []struct{ made, found string }{
		{"sdk/go1.9.7/bin/go", "sdk/go1.9.7/bin/go"},
		{"sdk/go1.26.1/bin/go", "sdk/go1.26.1/bin/go"},
		{"sdk/go1.26rc1/bin/go", "sdk/go1.26.1/bin/go"},
		{"usr/go", "usr/go"},
	} {
		program(t, filepath.Join(home, c.made), "")
		if found, err := Find(home); err != nil || found != filepath.Join(home, c.found) {
			t.Errorf("with %s it finds %q, %v", c.made, found, err)
		}
	}
	if err := os.Chmod(filepath.Join(home, "usr", "go"), 0o600); err != nil {
		t.Fatal(err)
	}
	if found, err := Find(home); err != nil || found != filepath.Join(home, "sdk/go1.26.1/bin/go") {
		t.Errorf("where the first is no program it finds %q, %v", found, err)
	}
}

func TestRun(t *testing.T) {
	dir := t.TempDir()
	env := map[string]string{"HOME": "/home/me", "GOFLAGS": "-toolexec=evil", "GOPROXY": "https://evil.test", "GOTOOLCHAIN": "go9.9", "GOROOT": "/evil", "PATH": "/evil", "GOCACHE": "/cache", "CC": "evil"}
	b := Build{Dir: dir, Out: filepath.Join(dir, "out.wasm"), Env: func(name string) string { return env[name] }}

	b.Go = program(t, filepath.Join(dir, "bin", "go"), `echo "$@" > args; /usr/bin/env > env; pwd > dir`)
	if err := b.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	read := func(name string) string {
		content, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(content)
	}
	got := "\n" + read("env")
	for _, want := range []string{"GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0", "GOPROXY=off", "GOTOOLCHAIN=local", "GOFLAGS=", "GOENV=off", "HOME=/home/me", "GOCACHE=/cache"} {
		if !strings.Contains(got, "\n"+want+"\n") {
			t.Errorf("%s is not in its environment:\n%s", want, got)
		}
	}
	if strings.Contains(got, "evil") || strings.Contains(got, "go9.9") || strings.Contains(got, "GOROOT") {
		t.Errorf("what changes the build is in its environment:\n%s", got)
	}
	if args := read("args"); !strings.HasPrefix(args, "build -buildmode=c-shared -trimpath") || !strings.HasSuffix(args, "-o "+b.Out+" .\n") {
		t.Errorf("it gets %s", args)
	}

	b.Go = program(t, filepath.Join(dir, "bin", "fails"), "echo wrong; i=0; while [ $i -lt 2500 ]; do echo 0123456789012345678901234567890123456789 >&2; i=$((i+1)); done; exit 1")
	failed, ok := errors.AsType[*Error](b.Run(t.Context()))
	if !ok || len(failed.Output) < maxOutput-1 || !strings.HasPrefix(failed.Output, "wrong\n0123") || len(failed.Output) > maxOutput {
		t.Errorf("a build that fails is %v, with %d bytes: %.100q", failed, len(failed.Output), failed.Output)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	gave := errors.New("gave up")
	cancel(gave)
	if err := b.Run(ctx); !errors.Is(err, gave) {
		t.Errorf("a build that nobody waits for is %v", err)
	}
	b.Go = filepath.Join(dir, "nowhere")
	if err := b.Run(t.Context()); err == nil {
		t.Error("a program that is not there has built something")
	}
}
