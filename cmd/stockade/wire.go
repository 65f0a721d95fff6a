package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/prompt"
	"github.com/stockade-dev/stockade/cmd/stockade/internal/terminal"
	"github.com/stockade-dev/stockade/cmd/stockade/internal/tui"
	"github.com/stockade-dev/stockade/host/door"
	"github.com/stockade-dev/stockade/host/jail"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/policy/network"
	"github.com/stockade-dev/stockade/host/redact"
	"github.com/stockade-dev/stockade/host/secret"
	"github.com/stockade-dev/stockade/host/settings"
	"github.com/stockade-dev/stockade/host/tool"
)

// app holds the state that the commands share. Its parts are created on first use: `stockade
// version` opens nothing.
type app struct {
	s      *stdio
	stdout *output // destination of s.out, after redacting
	flags  globalFlags
	trust  trustMode

	settings.Settings // settings in force; until they are read, only Workspace and Dirs are set

	// cancelTurn cancels a turn, or what else a chat does; nil: nothing can be cancelled. An
	// interrupt first ends the turn, and only then the program.
	cancelTurn atomic.Pointer[context.CancelCauseFunc]
	// signals receives the signals to the program. On a redrawn terminal, a key for stopping is
	// sent as a signal if a turn does not stop after the first such key.
	signals chan<- os.Signal
	ui      *tui.UI      // the redrawn terminal; nil: there is none
	onTTY   prompt.Asker // asks on the controlling terminal; nil: it is not open
	// session is the session of the conversation, for other goroutines; nil: none is open.
	session atomic.Pointer[door.Session]

	redactor     *redact.Redactor // removes secrets from everything that leaves the process
	secrets      *secret.Vault
	noPassphrase atomic.Bool // from now on nobody is asked for a passphrase
	// compilingForReview hides the notes about compiling. It is set while a module is reviewed,
	// because then another note is shown, and by doctor.
	compilingForReview atomic.Bool
	rescanSystem       bool // files of the administrator's folder that were refused are reviewed again

	screen  terminal.Screen
	denyAll denyAll
	// unattended is set in a run with auto: a question that is still asked is answered no.
	unattended bool
	openDoor   *door.Door
	closers    []func() error
}

type globalFlags struct {
	dir      string
	mounts   []string
	allow    []string
	allowNet []string
	deny     []string
	quiet    bool
	verbose  bool
	json     bool
	ask      bool // with json, ask the program that reads stdout and writes stdin
	large    bool
	plain    bool
	tools    []string // value of --tools; nil: all tools
	try      []string // values of --tool: paths of modules to try without adding them
	locked   bool     // of the added modules, offer only those that stockade.lock names

	schema   string // file of --output-schema
	output   string // file of -o
	profile  string
	provider string
	model    string
	maxTurns string
	auto     string
	maxCost  string
}

// open finds the workspace and reads the configuration.
func (a *app) open(ctx context.Context) (err error) {
	if a.Dirs, err = settings.FindDirs(a.s.env); err != nil {
		return err
	}
	if a.Workspace, err = workspace(a.flags.dir); err != nil {
		return err
	}
	if err := a.checkVariables(os.Environ()); err != nil {
		return err
	}
	return a.loadConfig(ctx)
}

// workspace returns the directory of -C, or the current one.
func workspace(dir string) (string, error) {
	if dir == "" {
		dir = "."
	}
	abs, err := door.Directory(dir)
	if err != nil {
		return "", usageError("-C names the directory to work in", "workspace: %v", err)
	}
	return abs, nil
}

func (a *app) close() {
	a.closeDoor()
	for _, f := range slices.Backward(a.closers) {
		if err := f(); err != nil {
			a.s.note("close: %v", err)
		}
	}
	a.closers = nil
}

// door returns the door, through which all calls go, and opens it if necessary.
func (a *app) door() *door.Door {
	if a.openDoor == nil {
		a.openDoor = door.New(door.Options{
			Program: version(), Layers: a.Layers, Sandbox: a.sandboxOptions(), Stages: a.Dirs.Stages(), Histories: a.Dirs.GitHistories(), Sessions: a.Dirs.Sessions(),
			Jail:        jail.Options{Home: a.s.env("HOME"), LayersDir: a.Dirs.CacheLayers(), Caches: a.Config.Bash.Caches},
			SystemFacts: a.Config.Tools.SystemInfo,
			Egress:      a.egress, Secrets: a.vault(false), Redact: a.redactor, Note: a.s.note, Logger: a.logger(),
			Config: a.ModuleConfig(),
		})
	}
	return a.openDoor
}

// tier returns the confinement that processes of tools have on this machine.
func (a *app) tier() policy.Tier { return a.door().Tier() }

// closeDoor closes the door; the next call of [app.door] opens a new one.
func (a *app) closeDoor() {
	if a.openDoor == nil {
		return
	}
	if err := a.openDoor.Close(); err != nil {
		a.s.note("close: %v", err)
	}
	a.openDoor = nil
}

func (a *app) onClose(f func() error) { a.closers = append(a.closers, f) }

// policyOptions returns the options of this run's policy: mounts, remembered answers, and
// answers given by flags.
func (a *app) policyOptions(catalog *tool.Catalog, mounts []policy.Mount) (policy.Options, error) {
	if _, err := a.checkRuleNames(catalog); err != nil {
		return policy.Options{}, err
	}
	if err := a.checkToolsOff(catalog); err != nil {
		return policy.Options{}, err
	}
	rules, err := a.Dirs.RememberedRules()
	if err != nil {
		return policy.Options{}, err
	}
	for _, text := range a.flags.allow {
		r, err := policy.ParseAnswer(text, catalog, a.tier)
		if err != nil {
			return policy.Options{}, err
		}
		rules = append(rules, r)
	}
	home := cmp.Or(a.s.env("HOME"), settings.AccountHome())
	if real, err := filepath.EvalSymlinks(home); err == nil {
		home = real
	}
	limits, set := a.Limits()
	hosts, err := a.NetRules(a.flags.allowNet)
	return policy.Options{
		Mounts: mounts, Masked: a.Masked(), Rules: rules, Limits: limits, LimitOrigins: set, Network: network.New(hosts), ConfirmAll: a.Config.RequireConfirmation,
		Changes: policy.ChangesMode(a.Config.Bash.Changes), AskFirst: a.Config.Bash.Ask == "always",
		Project: a.Workspace, Home: home,
	}, err
}

// newPolicy returns a policy like that of this run, for showing the decisions that it makes if
// a person can be asked.
func (a *app) newPolicy(catalog *tool.Catalog, mounts []policy.Mount) (*policy.Policy, error) {
	opts, err := a.policyOptions(catalog, mounts)
	if err != nil {
		return nil, err
	}
	opts.CanAsk = true // this policy reports the decisions for the case that a person is there
	return a.door().Policy(opts)
}

// flagMounts returns the mounts of --mount. A wrong one is a usage error.
func (a *app) flagMounts() ([]policy.Mount, error) {
	var out []policy.Mount
	for _, spec := range a.flags.mounts {
		m, err := door.ParseMount(spec)
		if err != nil {
			what := fmt.Sprintf("--mount %s: %v", spec, err)
			if errors.Is(err, door.ErrNoDirectory) {
				what = fmt.Sprintf("--mount %q %v", spec, err)
			}
			return nil, usageError("a mount is DIR or DIR:rw, or DIR:ro to keep it from being changed", "%s", what)
		}
		m.Origin = "--mount " + spec
		out = append(out, m)
	}
	return out, nil
}

// warnMounts prints warnings about mounts that the ceiling removes or makes read-only, and
// about a mount of /. It returns all of mounts, unchanged.
func (a *app) warnMounts(mounts []policy.Mount) []policy.Mount {
	for _, m := range policy.MergeMounts(mounts) {
		switch kept, ok, from := a.Ceiling.PermitsMount(m); {
		case !ok:
			a.s.note("warning: tools are not shown %s: %s", m.Host, from)
			continue
		case kept != m:
			a.s.note("warning: tools can only read %s: %s", m.Host, from)
		}
		if m.Host == "/" && m.Host != a.Workspace {
			a.s.note("warning: / is mounted; every tool can read all that you can, except /proc, /sys and /dev")
			a.s.hint("mount the directories that tools need")
		}
	}
	return mounts
}

// workspaceMounts returns the mounts of the workspace, of the settings, and of --mount.
func (a *app) workspaceMounts() ([]policy.Mount, error) {
	if a.Workspace == a.s.env("HOME") || a.Workspace == "/" {
		a.s.note("warning: the workspace is %s; every tool can read all of it", a.Workspace)
		a.s.hint("run stockade in the directory of a project, or name one with -C")
	}
	mounts := []policy.Mount{{Host: a.Workspace, Write: true}}
	for _, m := range a.Config.Mounts {
		if rest, ok := strings.CutPrefix(m.Path, "~"); ok {
			m.Path = filepath.Join(a.s.env("HOME"), rest)
		}
		dir, err := door.Directory(m.Path)
		if err != nil {
			return nil, usageError("mend mounts in "+a.Config.Source("mounts"), "mount %s: %v", m.Path, err)
		}
		mounts = append(mounts, policy.Mount{Host: dir, Write: !m.ReadOnly, Origin: "mounts in " + a.Config.Source("mounts")})
	}
	flagged, err := a.flagMounts()
	return a.warnMounts(append(mounts, flagged...)), err
}

// openSession opens a session for calls in the workspace. Rules may name any tool of catalog,
// even if opts has fewer tools.
func (a *app) openSession(ctx context.Context, catalog *tool.Catalog, mounts []policy.Mount, lines *terminal.Lines, opts door.SessionOptions) (*door.Session, error) {
	grants, err := a.policyOptions(catalog, mounts)
	if err != nil {
		return nil, err
	}
	if opts.Catalog == nil {
		opts.Catalog = catalog
	}
	opts.Workspace, opts.Remember, opts.Approver = a.Workspace, a.remember, a.approver(lines)
	_, nobody := opts.Approver.(*denyAll)
	grants.CanAsk = !nobody
	opts.Policy = grants
	d := a.door()
	a.redactKeys(d) // also if no model is asked
	s, err := d.Open(ctx, opts)
	a.noPassphrase.Store(true)
	if asker, ok := opts.Approver.(*programAsker); ok && err == nil {
		asker.emit = s.Log.Emit
	}
	return s, wrapChainError(opts.ID, err)
}
