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
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stockade-dev/stockade/host/internal/peers/bench"
)

// program is one of the compared programs.
type program struct {
	name     string
	argv     []string // command line of the start
	version  []string
	turn     []string // arguments before the prompt; nil: only its version is measured
	env      []string // in addition to HOME and PATH
	settings map[string]string

	dir string // parent of its home and its workspace
}

// outcome is the result of a process.
type outcome struct {
	stdout    string
	took, cpu time.Duration
	memoryKiB int64
}

// deadline ends a program that hangs.
const deadline = 2 * time.Minute

// listPrograms lists the programs, ours first, up to the one that is not installed, which is an error.
func listPrograms(installed, dir, server string) ([]*program, error) {
	ours, err := filepath.Abs("../../../bin/stockade")
	if err != nil {
		return nil, err
	}
	installed, err = filepath.Abs(filepath.Join(installed, "node_modules"))
	if err != nil {
		return nil, err
	}
	node, err := exec.LookPath("node")
	if err != nil {
		return nil, err
	}
	arch, triple := "x64", "x86_64"
	if runtime.GOARCH == "arm64" {
		arch, triple = "arm64", "aarch64"
	}
	stockade := program{
		name: bench.Ours, argv: []string{ours}, version: []string{"version"},
		turn: []string{"run", "--provider", "openai", "--model", "scripted"},
		env:  []string{"OPENAI_BASE_URL=" + server + "/v1", "OPENAI_API_KEY=none"},
	}
	noise := stockade
	noise.name = bench.Noise
	codex := program{
		version: []string{"--version"}, turn: []string{"exec", "--skip-git-repo-check"},
		settings: map[string]string{".codex/config.toml": `model = "scripted"
model_provider = "scripted"
check_for_update_on_startup = false
[analytics]
enabled = false
[model_providers.scripted]
name = "scripted"
base_url = "` + server + `/v1"
wire_api = "responses"
`},
	}
	native, byNPM := codex, codex
	native.name, native.argv = "codex", []string{filepath.Join(installed, "@openai/codex-linux-"+arch, "vendor", triple+"-unknown-linux-musl", "bin", "codex")}
	byNPM.name, byNPM.argv = "codex by npm", []string{node, filepath.Join(installed, "@openai/codex/bin/codex.js")}
	programs := []*program{&stockade, &native, &byNPM, {
		name: "opencode", argv: []string{filepath.Join(installed, "opencode-linux-"+arch, "bin", "opencode")},
		version: []string{"--version"}, turn: []string{"run"},
		env: []string{"OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_MODELS_FETCH=1"},
		settings: map[string]string{".config/opencode/opencode.json": `{
"model": "scripted/scripted", "autoupdate": false, "share": "disabled",
"provider": {"scripted": {"npm": "@ai-sdk/openai-compatible", "name": "scripted",
  "options": {"baseURL": "` + server + `/v1", "apiKey": "none"}, "models": {"scripted": {"name": "scripted"}}}}
}`},
	}, {
		name: "gemini-cli", argv: []string{node, filepath.Join(installed, "@google/gemini-cli/bundle/gemini.js")},
		version: []string{"--version"}, turn: []string{"-m", "gemini-2.5-flash", "-p"},
		env: []string{"GEMINI_API_KEY=none", "GOOGLE_GEMINI_BASE_URL=" + server, "GEMINI_CLI_TRUST_WORKSPACE=true"},
		settings: map[string]string{".gemini/settings.json": `{
"general": {"enableAutoUpdate": false, "enableAutoUpdateNotification": false}, "privacy": {"usageStatisticsEnabled": false},
"telemetry": {"enabled": false}, "security": {"auth": {"selectedType": "gemini-api-key"}}
}`},
	}, &noise}
	for _, p := range programs {
		p.dir = filepath.Join(dir, p.name)
		for _, file := range p.argv {
			if _, err := os.Stat(file); err != nil {
				return programs, fmt.Errorf("%w: run make bench-agents, which installs it", err)
			}
		}
	}
	return programs, nil
}

func (p *program) home() string { return filepath.Join(p.dir, "home") }
func (p *program) work() string { return filepath.Join(p.dir, "work") }

// resetHome makes a home with only the settings, and a workspace with only the file.
func (p *program) resetHome() error {
	if err := os.RemoveAll(p.dir); err != nil {
		return err
	}
	files := map[string]string{filepath.Join(p.work(), fileName): fileText}
	for file, text := range p.settings {
		files[filepath.Join(p.home(), file)] = text
	}
	for file, text := range files {
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(text), 0o600)); err != nil {
			return err
		}
	}
	return os.MkdirAll(p.home(), 0o700)
}

// run starts the program with a prompt, or with an empty one for its version, and waits
// for its end.
func (p *program) run(prompt string) (*outcome, error) {
	args := p.version
	if prompt != "" {
		args = append(slices.Clone(p.turn), prompt)
	}
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	cmd := exec.CommandContext(ctx, p.argv[0], append(slices.Clone(p.argv[1:]), args...)...)
	cmd.Dir = p.work()
	cmd.Env = append([]string{"HOME=" + p.home(), "PATH=" + os.Getenv("PATH"), "TERM=dumb", "LANG=C.UTF-8"}, p.env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	start := time.Now()
	err := cmd.Run()
	took := time.Since(start)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w\n%s%s", p.name, strings.Join(args, " "), err, &stdout, &stderr)
	}
	usage := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	return &outcome{stdout.String(), took, cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), usage.Maxrss}, nil
}

// loopback brings up the loopback interface, which is down in a new network namespace.
func loopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	if err := unix.IoctlIfreq(fd, unix.SIOCGIFFLAGS, lo); err != nil {
		return fmt.Errorf("read the flags of lo: %w", err)
	}
	if lo.Uint16()&unix.IFF_UP != 0 {
		return nil
	}
	lo.SetUint16(lo.Uint16() | unix.IFF_UP)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo); err != nil {
		return fmt.Errorf("bring lo up: %w", err)
	}
	return nil
}
