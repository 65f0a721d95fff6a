package door

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/stockade-dev/stockade/guests"
	"github.com/stockade-dev/stockade/host/agent"
	"github.com/stockade-dev/stockade/host/egress"
	"github.com/stockade-dev/stockade/host/githistory"
	"github.com/stockade-dev/stockade/host/jail"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/redact"
	"github.com/stockade-dev/stockade/host/sandbox"
	"github.com/stockade-dev/stockade/host/secret"
	"github.com/stockade-dev/stockade/host/services"
	"github.com/stockade-dev/stockade/host/session"
	"github.com/stockade-dev/stockade/host/session/export"
	"github.com/stockade-dev/stockade/host/session/sqlite"
	"github.com/stockade-dev/stockade/host/stage"
)

// Options configures the things that the sessions of a process share. The zero value of each
// field is its default.
type Options struct {
	Program string         // name and version of the program, as in the log; empty: those of the main module
	Layers  []policy.Layer // limits for all sessions; empty: there are none
	// Sandbox configures how modules are compiled and run. The door sets Services, Config,
	// Redact, StageDir, Permit and Build; it sets Prebuilt (the native code of the built-in
	// tools) and Logger if they are nil. Without Spawn, modules of others are not compiled. A
	// program can use jail.RunHelper as Spawn if its main function calls sandbox.CompileChild
	// when its first argument is sandbox.ChildCommand.
	Sandbox sandbox.Options
	// Stages is the directory for changes of calls that are not committed yet. Empty: they are
	// kept in memory, at most 64 MiB for each call.
	Stages    string
	Histories string // directory for the findings in git histories; empty: each process searches anew
	// Sessions is the file of the log, created if missing, with its locks beside it. Empty: a
	// temporary file, which Close removes.
	Sessions string
	// Egress makes the way out to the network when it is first needed. Nil: it uses no proxy
	// and the certificate authorities of the system.
	Egress  func() (*egress.Egress, error)
	Secrets *secret.Vault // named secrets; nil: there are none
	// Services replaces Egress and Secrets for the calls of tools, for example with recorded
	// answers in a test. A nil field replaces nothing. Exec is ignored: it is always the jail.
	Services services.Set
	// Config is the configuration of built-in modules, by the name of the module and the name
	// that it declares. A value has at most 8 KiB, and is no secret. A module uses its own
	// default for a missing value.
	Config map[string]map[string]string
	// SystemFacts names the facts, out of [SystemFacts], that the tool system_info reports
	// about this machine. Nil: none.
	SystemFacts []string
	// Redact takes secrets out of everything that is recorded, shown or sent. Nil: the
	// redactor of Secrets, or a new one.
	Redact *redact.Redactor
	Jail   jail.Options // configures the processes of tools; the door sets Redact, Proxy, Histories and Areas
	// Note tells a person something that is not the result of a call. Nil: nobody is told.
	Note   func(format string, args ...any)
	Logger *slog.Logger // nil: nothing is logged
}

// Door holds the things that the sessions of a process share. It is safe for concurrent use.
type Door struct {
	opts    Options
	ceiling policy.Ceiling                 // limits of all layers together
	egress  func() (*egress.Egress, error) // makes the egress at its first call
	jail    *jail.Jail

	stageMu sync.Mutex  // guards stage and memory
	stage   *stage.Area // in the directory Stages; nil: not opened yet
	memory  *stage.Area // in memory; nil: not needed yet

	mu          sync.Mutex // guards the fields below; also held while something is opened
	box         *sandbox.Sandbox
	store       session.Store
	interrupted bool     // interruptOpenCalls has succeeded
	locks       string   // directory of the session locks; set once the store is open
	hiddenPaths []string // files and directories of the door, which no tool sees
	sessions    map[*Session]bool
	closers     []func() error // called by Close, in reverse order
}

// New returns a door. It opens nothing: an option that cannot work fails at its first use.
func New(opts Options) *Door {
	opts.Program = cmp.Or(opts.Program, mainModule())
	switch {
	case opts.Redact != nil:
	case opts.Secrets != nil:
		opts.Redact = opts.Secrets.Redactor()
	default:
		opts.Redact = new(redact.Redactor)
	}
	if opts.Note == nil {
		opts.Note = func(string, ...any) {}
	}
	d := &Door{opts: opts, ceiling: policy.Combine(opts.Layers), sessions: map[*Session]bool{}}
	if opts.Egress == nil {
		opts.Egress = func() (*egress.Egress, error) {
			return egress.New(egress.Options{Redact: opts.Redact, Logger: opts.Logger})
		}
	}
	d.egress = sync.OnceValues(opts.Egress)
	opts.Jail.Redact, opts.Jail.Proxy = opts.Redact, egress.Lazy(d.egress)
	if opts.Stages != "" {
		opts.Jail.Areas = d.areas
		d.hide(memoryStages)
	}
	opts.Jail.Histories = githistory.New(opts.Histories)
	d.jail = jail.New(opts.Jail)
	d.hide(opts.Histories, opts.Stages, opts.Sandbox.CacheDir, opts.Jail.LayersDir)
	return d
}

// hide adds files of the door to the paths that no tool sees. Empty names are ignored.
func (d *Door) hide(names ...string) {
	for _, name := range names {
		if name != "" && !slices.Contains(d.hiddenPaths, name) {
			d.hiddenPaths = append(d.hiddenPaths, name)
		}
	}
}

// mainModule returns the path and the version of the main module; "unknown" without them.
func mainModule() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Path != "" {
		return info.Main.Path + " " + info.Main.Version
	}
	return "unknown"
}

// Close closes the sessions and everything that they share. No call may be running. A door
// that is used again opens things anew.
func (d *Door) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	var errs []error
	for s := range d.sessions {
		errs = append(errs, s.end())
	}
	clear(d.sessions)
	errs = append(errs, d.jail.Close()) // before the areas, which hold its changes
	for _, f := range slices.Backward(d.closers) {
		errs = append(errs, f())
	}
	d.stageMu.Lock()
	for _, area := range []**stage.Area{&d.stage, &d.memory} {
		if *area != nil {
			errs = append(errs, (*area).Close())
			*area = nil
		}
	}
	d.stageMu.Unlock()
	d.closers, d.box, d.store = nil, nil, nil
	return errors.Join(errs...)
}

// Sandbox returns the sandbox in which modules run. The first call makes it, and compiles
// nothing.
func (d *Door) Sandbox() *sandbox.Sandbox {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.box != nil {
		return d.box
	}
	opts := d.SandboxOptions()
	if d.opts.Stages != "" {
		opts.StageDir = d.area().Dir
	}
	d.box = sandbox.New(opts)
	d.closers = append(d.closers, d.box.Close)
	return d.box
}

// area returns the stage area in the directory Stages, for changes of calls that are not
// committed yet. It opens the area at the first call.
func (d *Door) area() *stage.Area {
	d.stageMu.Lock()
	defer d.stageMu.Unlock()
	if d.stage == nil {
		d.stage = stage.NewArea(d.opts.Stages, d.opts.Note)
		if _, err := os.Lstat(memoryStages); err == nil { // maybe a killed process has left something there
			_ = d.openMemory()
		}
	}
	return d.stage
}

// stageDir returns the directory of the stage area; empty: changes are kept in memory.
func (d *Door) stageDir() string {
	if d.opts.Stages == "" {
		return ""
	}
	return d.area().Dir()
}

// areas yields the stage areas for the changes of commands: first the one on disk, then the
// one in memory, if it can be opened.
func (d *Door) areas(yield func(*stage.Area) bool) {
	if !yield(d.area()) {
		return
	}
	d.stageMu.Lock()
	err := d.openMemory()
	area := d.memory
	d.stageMu.Unlock()
	if err == nil {
		yield(area)
	}
}

// openMemory opens the stage area in memory. d.stageMu is held.
func (d *Door) openMemory() error {
	if d.memory != nil {
		return nil
	}
	if err := makePrivateDir(memoryStages); err != nil {
		return err
	}
	d.memory = stage.NewArea(memoryStages, d.opts.Note)
	return nil
}

// SandboxOptions returns the options of [Door.Sandbox] without StageDir, for another like it.
func (d *Door) SandboxOptions() sandbox.Options {
	opts := d.opts.Sandbox
	opts.Build, opts.Redact, opts.Config = build(d.opts.Program), d.opts.Redact, d.config
	opts.Permit = d.ceiling.PermitsRun
	opts.Services = services.Set{Exec: d.jail, HTTP: egress.Lazy(d.egress)}
	if d.opts.Secrets != nil {
		opts.Services.Secrets = d.opts.Secrets
	}
	if s := d.opts.Services.HTTP; s != nil {
		opts.Services.HTTP = s
	}
	if s := d.opts.Services.Secrets; s != nil {
		opts.Services.Secrets = s
	}
	if opts.Prebuilt == nil {
		opts.Prebuilt = guests.Native
	}
	if opts.Logger == nil {
		opts.Logger = d.opts.Logger
	}
	return opts
}

// build returns a text that identifies this build of a program: its version, and the size and
// the time of its file, because a developer builds one version many times.
func build(program string) string {
	if file, err := os.Executable(); err == nil {
		if st, err := os.Stat(file); err == nil {
			program += fmt.Sprintf(" %d %s", st.Size(), st.ModTime().UTC().Format(time.RFC3339Nano))
		}
	}
	return program
}

// Tier returns how far processes of tools are confined. The first call starts processes to
// find this out.
func (d *Door) Tier() policy.Tier { return d.jail.Tiers().Tier }

// Tiers is Tier with the reasons why the tier is not higher.
func (d *Door) Tiers() jail.Tiers { return d.jail.Tiers() }

// WhyNotStaged returns the reason why commands with these mounts cannot run on a stage; empty:
// they can.
func (d *Door) WhyNotStaged(mounts []policy.Mount) string { return d.jail.WhyNotStaged(mounts) }

// Policy returns a policy under the layers of the door. It hides the files of the door from
// tools, those of the log only if Store has opened it before. The error is that Layers, Tier or
// LikelyTier of opts is set.
func (d *Door) Policy(opts policy.Options) (*policy.Policy, error) {
	if opts.Layers != nil {
		return nil, errors.New("a session cannot set layers: those of the door hold for all its sessions")
	}
	if opts.Tier != nil || opts.LikelyTier != nil {
		return nil, errors.New("a session cannot set the tier: the door starts the processes")
	}
	opts.Layers, opts.Tier, opts.LikelyTier, opts.WhyNotStaged = d.opts.Layers, d.Tier, d.jail.LikelyTier, d.WhyNotStaged
	opts.Masked = slices.Clone(opts.Masked)
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, own := range d.hiddenPaths {
		if !slices.Contains(opts.Masked, own) {
			opts.Masked = append(opts.Masked, own)
		}
	}
	return policy.New(opts), nil
}

// logReserve is the disk space that is reserved for the log once the disk is full, in bytes.
const logReserve = 64 << 20

// StoreDirError is the error of [Door.Store] if a directory for the log cannot be made.
type StoreDirError struct{ Err error }

func (e *StoreDirError) Error() string { return e.Err.Error() }

func (e *StoreDirError) Unwrap() error { return e.Err }

// Store returns the log of all sessions, exported as the layers require. When it opens the
// log, it records a failed result for each call that a crash has left without one. The error
// may be a *StoreDirError, an *export.Error or a *sqlite.OpenError.
func (d *Door) Store(ctx context.Context) (session.Store, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.store == nil {
		st, err := d.openStore(ctx)
		if err != nil {
			return nil, err
		}
		d.store, d.interrupted = st, false
	}
	if !d.interrupted {
		if err := d.interruptOpenCalls(ctx, d.store); err != nil {
			return nil, err
		}
		d.interrupted = true
	}
	return d.store, nil
}

func (d *Door) openStore(ctx context.Context) (session.Store, error) {
	name := d.opts.Sessions
	if name == "" {
		dir, err := os.MkdirTemp("", "stockade-sessions-")
		if err != nil {
			return nil, &StoreDirError{err}
		}
		d.closers = append(d.closers, func() error { return os.RemoveAll(dir) })
		name = filepath.Join(dir, "sessions.db")
	}
	d.locks = filepath.Join(filepath.Dir(name), "locks") // beside what they guard
	d.hide(name, name+"-wal", name+"-shm", name+"-settled", name+"-reserve", d.locks)
	if err := os.MkdirAll(d.locks, 0o700); err != nil {
		return nil, &StoreDirError{err}
	}
	db, err := sqlite.Open(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("sessions: %w", err)
	}
	db.KeepReserve(logReserve, func(left int64) {
		d.opts.Note("warning: the disk with the session log is full; the log has %d MiB left of its reserve: make room", left>>20)
	})
	st, err := export.New(db, d.ceiling.AuditExports)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	d.closers = append(d.closers, st.Close)
	return st, nil
}

// interruptOpenCalls records a failed result for each call that has begun and has no result,
// unless a process still holds the lock of its session.
func (d *Door) interruptOpenCalls(ctx context.Context, st session.Store) error {
	open, err := st.OpenCalls(ctx)
	if err != nil || len(open) == 0 {
		return err
	}
	dead := map[string]bool{} // sessions whose process is gone
	for _, c := range open {
		if _, ok := dead[c.Session]; !ok {
			unlock, err := session.Lock(d.locks, c.Session)
			if err != nil && !errors.Is(err, session.ErrInUse) {
				return err
			}
			if dead[c.Session] = err == nil; dead[c.Session] {
				defer func() { _ = unlock() }()
			}
		}
		if !dead[c.Session] {
			continue
		}
		if err := agent.RecordInterrupted(ctx, st, c); err != nil {
			return err
		}
		d.opts.Note("a call of %s in session %s was interrupted, and is recorded as interrupted", c.Name, c.Session)
	}
	return nil
}

// minKeyBytes is the minimum length of a provider's key that is redacted, in bytes. A shorter
// key is a word for a local server, such as "ollama", which is also part of ordinary text.
const minKeyBytes = 12

// AddSecret makes the redactor take a key of a provider out of everything that is recorded,
// shown or sent. A key under 12 bytes is ignored.
func (d *Door) AddSecret(key string) {
	if len(key) >= minKeyBytes {
		d.opts.Redact.Add(key)
	}
}
