package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/terminal"
	"github.com/stockade-dev/stockade/guests"
	"github.com/stockade-dev/stockade/host/agent"
	"github.com/stockade-dev/stockade/host/config"
	"github.com/stockade-dev/stockade/host/dispatch"
	"github.com/stockade-dev/stockade/host/egress"
	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/policy/network"
	"github.com/stockade-dev/stockade/host/redact"
	"github.com/stockade-dev/stockade/host/sandbox"
	"github.com/stockade-dev/stockade/host/sandbox/admit"
	"github.com/stockade-dev/stockade/host/secret"
	"github.com/stockade-dev/stockade/host/session"
	"github.com/stockade-dev/stockade/host/tool"
)

// app is what the commands share. Everything in it is made when it is first
// needed: `stockade version` opens nothing.
type app struct {
	s     *stdio
	flags globalFlags
	cfg   config.Config
	dirs  dirs
	work  string // absolute path of the workspace

	trust   trustMode
	waiting []config.Warning // what the workspace's file is not trusted to set

	layers  []policy.Layer
	ceiling policy.Ceiling // of all of them

	// turn cancels the turn of a chat that is under way: an interrupt ends that
	// before it ends the program.
	turn atomic.Pointer[context.CancelCauseFunc]

	known   *redact.Redactor // takes secrets out of whatever leaves the process
	secrets *secret.Vault
	asked   atomic.Bool // no passphrase is asked for any more

	screen   terminal.Screen
	unasked  unasked
	box      *sandbox.Sandbox
	out      *egress.Egress
	sessions session.Store
	closers  []func() error
}

// globalFlags are the flags of every command.
type globalFlags struct {
	dir      string
	mounts   []string
	allow    []string
	allowNet []string
	deny     []string
	quiet    bool
	verbose  bool
	json     bool
	large    bool

	provider string
	model    string
	maxTurns string
}

// open finds the workspace and reads the configuration.
func (a *app) open(ctx context.Context) (err error) {
	if a.dirs, err = findDirs(a.s.env); err != nil {
		return err
	}
	if a.work, err = workspace(a.flags.dir); err != nil {
		return err
	}
	return a.loadConfig(ctx)
}

// workspace is the directory of -C, or the current one.
func workspace(dir string) (string, error) {
	if dir == "" {
		dir = "."
	}
	abs, err := directory(dir)
	if err != nil {
		return "", usageError("-C names the directory to work in", "workspace: %v", err)
	}
	return abs, nil
}

// directory is the name of a directory without symbolic links: the one under
// which guests see it.
func directory(name string) (string, error) {
	abs, err := filepath.Abs(name)
	if err == nil {
		abs, err = filepath.EvalSymlinks(abs)
	}
	if err != nil {
		return "", err
	}
	if st, err := os.Stat(abs); err != nil || !st.IsDir() {
		return "", fmt.Errorf("%s is not a directory", abs)
	}
	return abs, nil
}

func (a *app) close() {
	for _, f := range slices.Backward(a.closers) {
		if err := f(); err != nil {
			a.s.note("close: %v", err)
		}
	}
	a.closers = nil
}

func (a *app) onClose(f func() error) { a.closers = append(a.closers, f) }

// builtins lists the modules that are compiled into the program, from the
// index that the build made, without touching WebAssembly.
func builtins() (map[*tool.Module]tool.Manifest, error) {
	index, err := guests.Index()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &exitErr{code: exitError, message: "this stockade was built without its tools", hint: "build it with `make build`"}
	}
	if err != nil {
		return nil, fmt.Errorf("built-in tools: %w", err)
	}
	out := map[*tool.Module]tool.Manifest{}
	for _, g := range index {
		var m tool.Manifest // checked when it was packed
		if err := json.Unmarshal(g.Manifest, &m); err != nil {
			return nil, fmt.Errorf("built-in tools: %s: %w", g.File, err)
		}
		out[&tool.Module{Name: m.Name, Digest: g.Digest, Bytes: g.Bytes, Origin: tool.OriginBuiltin, Read: g.Read}] = m
	}
	return out, nil
}

// fileModule reads a module by its path. The bytes that are hashed here are
// the bytes that run: the file is not read again.
func fileModule(name string) (*tool.Module, error) {
	if st, err := os.Stat(name); err == nil && !st.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", name) // before the open, which could wait for ever
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !st.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a regular file", name)
	case st.Size() > admit.MaxBytes:
		return nil, fmt.Errorf("%s has %d bytes, more than the limit of %d", name, st.Size(), admit.MaxBytes)
	}
	code := make([]byte, st.Size())
	if _, err := f.ReadAt(code, 0); err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return tool.ModuleOf(strings.TrimSuffix(filepath.Base(name), ".wasm"), tool.OriginFile, name, code), nil
}

// catalog lists the built-in tools. What a switch forbids is the policy's.
func (a *app) catalog() (*tool.Catalog, error) {
	modules, err := builtins()
	if err != nil {
		return nil, err
	}
	return tool.NewCatalog(modules)
}

// policy makes the policy of this run: the mounts, what was remembered and
// what the flags answer.
func (a *app) policy(catalog *tool.Catalog, mounts []policy.Mount) (*policy.Policy, error) {
	if _, err := a.checkNames(catalog); err != nil {
		return nil, err
	}
	rules, err := a.remembered()
	if err != nil {
		return nil, err
	}
	for _, text := range a.flags.allow {
		r, err := policy.ParseRule(text)
		if err != nil {
			return nil, usageError("", "--allow: %v", err)
		}
		entry, ok := catalog.Find(r.Tool)
		if !ok {
			return nil, usageError("`stockade tool list` shows the tools", "--allow: there is no tool %q", r.Tool)
		}
		r.Tool, r.Source = entry.Name, policy.SourceFlag
		names := false
		for _, c := range r.Where {
			arg, _, _ := strings.Cut(strings.TrimPrefix(c.Arg(), "/"), "/")
			if !entry.Schema.HasProperty(arg) {
				return nil, usageError(fmt.Sprintf("`stockade tool info %s` shows its arguments", r.Tool), "--allow: %s has no argument %q", r.Tool, arg)
			}
			names = names || c.Arg() == entry.Capabilities.Exec
		}
		if exec := entry.Capabilities.Exec; exec != "" && !names {
			return nil, usageError(fmt.Sprintf("name the command: --allow '%s(%s=COMMAND)'", r.Tool, exec),
				"--allow: %s cannot be allowed as a whole: %s", r.Tool, policy.Unconfined)
		}
		if doubt := inWords(r.Doubt(policy.TierNone, catalog)); doubt != "" {
			return nil, usageError("`stockade help policy` shows the conditions", "--allow %s: %s", text, doubt)
		}
		if names := tool.SecretNames(entry.Capabilities.Secrets); strings.Join(names, ",") != r.Secrets {
			if len(names) == 0 {
				return nil, usageError("", "--allow: %s uses no secrets", r.Tool)
			}
			r.Secrets = strings.Join(names, ",")
			return nil, usageError(fmt.Sprintf("to allow it with them: --allow '%s'", r),
				"--allow: %s uses these secrets: %s", r.Tool, strings.Join(names, ", "))
		}
		rules = append(rules, r)
	}
	limits := policy.Limits{
		Timeout: a.cfg.ToolTimeout, MemoryBytes: uint64(a.cfg.ToolMemory), OutputBytes: a.cfg.MaxOutputSize,
		Fuel: uint64(a.cfg.ToolFuel), ToolFuel: uint64(a.cfg.ToolFuelTotal), SessionFuel: uint64(a.cfg.SessionFuel),
		ExecTimeout: a.cfg.Bash.Timeout, ExecOutputBytes: a.cfg.Bash.MaxOutput,
		HTTPTimeout: a.cfg.Network.Timeout, HTTPRequests: a.cfg.Network.MaxRequests, HTTPResponseBytes: a.cfg.Network.MaxResponse,
	}
	set := map[string]string{}
	for _, key := range config.LimitKeys() {
		if from := a.cfg.Source(key); from != "default" {
			set[key] = from
		}
	}
	hosts, err := a.netRules()
	if err != nil {
		return nil, err
	}
	return policy.New(policy.Options{
		Mounts: mounts, Masked: a.ours(), Rules: rules, Limits: limits, Set: set, Network: network.New(hosts), ConfirmAll: a.cfg.RequireConfirmation,
		Layers: a.layers, Project: a.work,
	}), nil
}

// flagMounts are the directories of --mount: DIR, DIR:rw or DIR:ro.
func (a *app) flagMounts() ([]policy.Mount, error) {
	var out []policy.Mount
	for _, spec := range a.flags.mounts {
		host, readOnly := strings.CutSuffix(spec, ":ro")
		if !readOnly {
			host = strings.TrimSuffix(host, ":rw")
		}
		if host == "" {
			return nil, usageError("a mount is DIR or DIR:rw, or DIR:ro to keep it from being changed", "--mount %q names no directory", spec)
		}
		dir, err := directory(host)
		if err != nil {
			return nil, usageError("a mount is DIR or DIR:rw, or DIR:ro to keep it from being changed", "--mount %s: %v", spec, err)
		}
		out = addMount(out, policy.Mount{Host: dir, Write: !readOnly, Named: "--mount " + spec})
	}
	return out, nil
}

// addMount adds a mount. Of one that is named twice the narrower form holds.
func addMount(mounts []policy.Mount, m policy.Mount) []policy.Mount {
	if i := slices.IndexFunc(mounts, func(o policy.Mount) bool { return o.Host == m.Host }); i >= 0 {
		if mounts[i].Write {
			mounts[i] = m
		}
		return mounts
	}
	return append(mounts, m)
}

// workspaceMounts are the workspace and whatever else the user mounts.
func (a *app) workspaceMounts() ([]policy.Mount, error) {
	if a.work == a.s.env("HOME") || a.work == "/" {
		a.s.note("warning: the workspace is %s; every tool can read all of it", a.work)
		a.s.hint("run stockade in the directory of a project, or name one with -C")
	}
	mounts := []policy.Mount{{Host: a.work, Write: true}}
	for _, m := range a.cfg.Mounts {
		if rest, ok := strings.CutPrefix(m.Path, "~"); ok {
			m.Path = filepath.Join(a.s.env("HOME"), rest)
		}
		dir, err := directory(m.Path)
		if err != nil {
			return nil, usageError("mend mounts in "+a.cfg.Source("mounts"), "mount %s: %v", m.Path, err)
		}
		mounts = addMount(mounts, policy.Mount{Host: dir, Write: !m.ReadOnly, Named: "mounts in " + a.cfg.Source("mounts")})
	}
	flagged, err := a.flagMounts()
	for _, m := range flagged {
		mounts = addMount(mounts, m)
	}
	return a.permitMounts(mounts), err
}

// dispatcher puts the one door together.
func (a *app) dispatcher(catalog *tool.Catalog, mounts []policy.Mount, log *session.Log, approver dispatch.Approver) (*dispatch.Dispatcher, error) {
	p, err := a.policy(catalog, mounts)
	if err != nil {
		return nil, err
	}
	return dispatch.New(dispatch.Options{
		Catalog: catalog, Policy: p, Approver: approver, Runner: a.sandbox(), Log: log, Session: log.ID(), Remember: a.remember,
		Redact: a.known,
	}), nil
}

// started records the first event of a new session, and what comes right after
// it: each record takes a write to the disk.
func (a *app) started(ctx context.Context, log *session.Log, catalog *tool.Catalog, mounts []policy.Mount, next ...session.Draft) (session.Event, error) {
	body := session.Started{Program: version(), Workspace: a.work, Mounts: []string{}, Tools: catalog.Names()}
	for _, m := range mounts {
		body.Mounts = append(body.Mounts, m.String())
	}
	data, err := json.Marshal(body)
	if err != nil {
		return session.Event{}, err
	}
	events, err := log.Append(ctx, append([]session.Draft{{Type: session.TypeSessionStarted, Body: data}}, next...)...)
	if err != nil {
		return session.Event{}, err
	}
	return events[0], nil
}

// newAgent wires the loop.
func (a *app) newAgent(m llm.Model, provider string, tools agent.Tools, log *session.Log, past agent.Past) *agent.Agent {
	return agent.New(agent.Options{
		Model: m, Provider: provider, Name: a.cfg.Model.Name, Tools: tools, Log: log, Past: past,
		System: systemPrompt(a.work, a.cfg.SystemPrompt), Cwd: a.work,
		MaxSteps: a.cfg.MaxToolTurns, MaxCallsPerStep: a.cfg.MaxToolCallsPerTurn, RepeatedCalls: a.cfg.RepeatedCalls, HistoryChars: a.cfg.HistoryCharBudget,
	})
}
