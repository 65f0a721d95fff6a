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

// Options says what the sessions of a process share. The zero value of each field
// is its default.
type Options struct {
	// Program is the name and the version of the program, for the record. Empty:
	// those of the main module.
	Program string
	// Layers are what the administrator, the user, the project, the environment
	// and the flags permit, in all sessions. None: there is no ceiling.
	Layers []policy.Layer
	// Sandbox says how modules are compiled and run. Services, Config, Redact, StageDir
	// and Build are filled in, and so are Prebuilt, with the native code of the built-in
	// tools, and Logger, where they are nil. Without Spawn modules of others are not
	// compiled. jail.RunHelper can be it in a program whose main function hands over
	// to sandbox.CompileChild where its first argument is sandbox.ChildCommand.
	Sandbox sandbox.Options
	// Stages is a directory for what calls change before that is committed. Empty:
	// in memory, 64 MiB at most for each call.
	Stages string
	// Histories is a directory for what was found in the histories of repositories.
	// Empty: it is found again.
	Histories string
	// Sessions is the file with the log. It is made where it is missing, and its
	// locks are beside it. Empty: a temporary one, which is removed by Close.
	Sessions string
	// Egress makes the way out to the network, when it is first needed. Nil: no
	// proxy, and the authorities of the system.
	Egress func() (*egress.Egress, error)
	// Secrets is where secrets are kept. Nil: there are none.
	Secrets *secret.Vault
	// Services take the place of Egress and Secrets for the calls of tools, such as
	// recorded answers in a test. Exec is filled in: processes are for the jail. Nil
	// ones take nobody's place.
	Services services.Set
	// Config is what built-in modules are configured with, by the name of the module and
	// the names that it declares; a value has at most 8 KiB, and is no secret. What is not
	// there has the module's own default.
	Config map[string]map[string]string
	// SystemFacts names what the tool system_info tells of this machine, of [SystemFacts].
	// None: nothing.
	SystemFacts []string
	// Redact takes secrets out of whatever is recorded, shown or sent. Nil: that of
	// Secrets, or a new one.
	Redact *redact.Redactor
	// Jail says what the commands of tools have. Redact, Proxy and Histories are filled in.
	Jail jail.Options
	// Note tells a person of something that is no result. Nil: nobody is told.
	Note   func(format string, args ...any)
	Logger *slog.Logger // nil: silent
}

// Door is what the sessions of a process share. It is safe for concurrent use.
type Door struct {
	opts    Options // fixed at creation
	ceiling policy.Ceiling
	egress  func() (*egress.Egress, error)
	jail    *jail.Jail

	stageMu sync.Mutex
	stage   *stage.Area
	memory  *stage.Area // in memory; nil: none was needed

	mu          sync.Mutex // held also while something is opened
	box         *sandbox.Sandbox
	store       session.Store
	locks       string   // the directory of the locks, once the store is open
	hiddenPaths []string // what no tool is shown: our own files
	sessions    map[*Session]bool
	closers     []func() error
}

// New makes a door. It opens nothing, and reports nothing: options that cannot work
// are the error of what needs them.
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

// hide keeps files of the door out of the sight of tools.
func (d *Door) hide(names ...string) {
	for _, name := range names {
		if name != "" && !slices.Contains(d.hiddenPaths, name) {
			d.hiddenPaths = append(d.hiddenPaths, name)
		}
	}
}

func mainModule() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Path != "" {
		return info.Main.Path + " " + info.Main.Version
	}
	return "unknown"
}

// Close closes the sessions and whatever they share. No call may be running. The
// door can be used again, and opens what it needs anew.
func (d *Door) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	var errs []error
	for s := range d.sessions {
		errs = append(errs, s.end())
	}
	clear(d.sessions)
	errs = append(errs, d.jail.Close()) // it has changes in the area
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

// Sandbox is where modules run. It reads and compiles nothing yet.
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

// area is where changes of calls are kept until they are made.
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

// stageDir is the directory of that; empty: in memory.
func (d *Door) stageDir() string {
	if d.opts.Stages == "" {
		return ""
	}
	return d.area().Dir()
}

// areas are the places for what commands change, the best first.
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

// openMemory opens the area in memory. d.stages is held.
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

// SandboxOptions are those of [Door.Sandbox] but for StageDir, for a sandbox that
// is like it and on its own.
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

// build names this build of a program: its version and, because a developer builds
// many of one, the size and the time of its file.
func build(program string) string {
	if file, err := os.Executable(); err == nil {
		if st, err := os.Stat(file); err == nil {
			program += fmt.Sprintf(" %d %s", st.Size(), st.ModTime().UTC().Format(time.RFC3339Nano))
		}
	}
	return program
}

// Tier is how far the processes of tools are confined. It is found out when it is
// first asked for.
func (d *Door) Tier() policy.Tier { return d.jail.Tiers().Tier }

// Tiers is Tier, with why it is no higher.
func (d *Door) Tiers() jail.Tiers { return d.jail.Tiers() }

// WhyNotStaged says why commands with these mounts cannot run on a stage; empty: they can.
func (d *Door) WhyNotStaged(mounts []policy.Mount) string { return d.jail.WhyNotStaged(mounts) }

// Policy makes a policy under the layers of the door, which leaves out what the
// door itself keeps on disk.
func (d *Door) Policy(opts policy.Options) (*policy.Policy, error) {
	if opts.Layers != nil {
		return nil, errors.New("layers are those of the door: they hold for all of its sessions")
	}
	if opts.Tier != nil || opts.LikelyTier != nil {
		return nil, errors.New("the tier is that of the door, which starts the processes")
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

// logReserve is how many bytes of the disk are kept for the session log.
const logReserve = 64 << 20

// StoreDirError says that there is no place in which sessions could be kept.
type StoreDirError struct{ Err error }

func (e *StoreDirError) Error() string { return e.Err.Error() }

func (e *StoreDirError) Unwrap() error { return e.Err }

// Store is the log of all sessions, exported as the layers require. When it is
// opened, the calls that a crash has left open get a result that says so. The
// error may be a *PlaceError, an *export.Error or a *sqlite.OpenError.
func (d *Door) Store(ctx context.Context) (session.Store, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.store != nil {
		return d.store, nil
	}
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
		d.opts.Note("warning: the disk with the session log is full; the log has %d MiB left that it kept for that: make room", left>>20)
	})
	st, err := export.New(db, d.ceiling.AuditExports)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	d.closers = append(d.closers, st.Close)
	d.store = st
	return st, d.interruptOpenCalls(ctx, st)
}

// interruptOpenCalls gives each call that was intended and has no result one that says so,
// unless the process that runs it is still alive.
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
		d.opts.Note("a call of %s in session %s was interrupted; its result is recorded as such", c.Name, c.Session)
	}
	return nil
}

// minKeyBytes is how long the key of a provider is at least. What is shorter is a
// word for a local server, such as "ollama", and stands in ordinary text.
const minKeyBytes = 12

// AddSecret takes the key of a provider out of whatever is recorded, shown or sent.
func (d *Door) AddSecret(key string) {
	if len(key) >= minKeyBytes {
		d.opts.Redact.Add(key)
	}
}
