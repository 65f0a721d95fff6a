package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"sync"
	"time"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/redact"
	"github.com/stockade-dev/stockade/host/sandbox/meter"
	"github.com/stockade-dev/stockade/host/services"
	"github.com/stockade-dev/stockade/host/stage"
	"github.com/stockade-dev/stockade/host/tool"
)

// Options configures a sandbox. With its zero value host functions have no services behind
// them, no compiled code is cached, and only built-in modules are compiled.
type Options struct {
	// CacheDir is the directory of the cache of compiled code. Its files are run as native
	// code, so the directory and its files must belong to the user, be writable by nobody
	// else, and be no symbolic links; no file may have a second name, and nobody else may be
	// able to replace the directory. Otherwise modules are not loaded. If the directory cannot
	// be made or written to, new code is not cached, with a warning. Empty: no cache.
	CacheDir string
	// Build names the build of the program. Code that another build has cached is not used:
	// that build may have admitted modules that this one refuses.
	Build string
	// Prebuilt returns the files that [Sandbox.Pack] has written for the module with a digest,
	// or nil. They are trusted as much as this program. Nil: no module is prebuilt.
	Prebuilt func(digest string) fs.FS
	// Spawn starts this program again as the process that compiles a module. Compiling a
	// stranger's module can take minutes and gigabytes, and only the end of its process stops
	// it. The first argument is [ChildCommand]. The process runs in dir, without the user's
	// environment and with an empty input. When ctx ends, Spawn kills the process and all
	// that it has started. Spawn returns when the process has ended, with at least the first
	// kilobytes of its output; an error means that it was not started. jail.RunHelper does
	// this. Nil: only built-in modules are compiled, in this process.
	Spawn func(ctx context.Context, dir string, args ...string) (services.CommandResult, error)
	// Permit returns an error if the module may not be compiled or run at all, not even for
	// its manifest. It is called before each use that loads or runs the module's code, except
	// for [Sandbox.Preload]. Nil: every module is permitted.
	Permit func(*tool.Module) error
	// AllowLarge is set if a person has consented to compiling large modules, and modules with
	// large functions. tool.Module.AllowLarge is the same for one module.
	AllowLarge bool
	// Services do the work of host functions. A function whose service is missing refuses.
	Services services.Set
	// Config returns the value that a built-in module gets for a name that it declares, in
	// place of its default; false: the default stays. It is called when the module asks for
	// the value; name then includes lines that the module has appended. Nil: all defaults stay.
	Config func(module, name string) (string, bool)
	// Redact removes secrets from results and output of calls, before either is cut to its
	// limit. Nil: nothing is removed.
	Redact *redact.Redactor
	// StageDir returns the absolute path of an existing directory, owned by the user, in which
	// the changes of calls are stored until they are committed. Its disk needs room for them.
	// It is called for each call that may write files or start a process. Nil, or "": changes
	// are stored in memory, at most 64 MiB for each call.
	StageDir func() string
	// MemoryBytes limits the linear memories of all running calls together; guests get no
	// more. 0: DefaultMemoryBytes.
	MemoryBytes uint64
	// Interpreter runs guests without a compiler. A guest is ready ten times sooner and runs
	// twenty times slower. It is meant for a module that is asked one thing once.
	Interpreter bool
	// VerifyReset compares each instance that is to be reused with the snapshot after every
	// call, which reads all of its memory. A difference is an error of the call that left it.
	VerifyReset bool
	// OnCompile is called before a module is compiled, which can take seconds, but not for
	// cached or prebuilt code. OnCompiled is called afterwards, with the time that it took and
	// its error. Nil: nothing is called.
	OnCompile  func(*tool.Module)
	OnCompiled func(*tool.Module, time.Duration, error)
	Logger     *slog.Logger // nil: silent
}

// Sandbox compiles modules and runs calls. It is safe for concurrent use.
type Sandbox struct {
	opts         Options
	memoryBudget *policy.Budget // limits the linear memories of all calls together, in bytes
	turns        *meter.Turns   // decides which running call goes on
	stageBudget  *stage.Budget  // limits the uncommitted changes of all calls together, in bytes

	job           func(bytes, workers int) childJob // returns the job of a child; tests change it
	initTimeout   time.Duration                     // time limit of an initialisation; tests change it
	missingLimits string                            // limits of a child that this system lacks, in words; "": none
	sayMissing    sync.Once                         // for the warning about missingLimits

	admitting chan struct{} // semaphore: one module is admitted at a time

	ctx  context.Context    // ends with Close; initialisations for snapshots run under it
	stop context.CancelFunc // ends ctx

	mu        sync.Mutex              // guards trimmer, modules and moduleEntry.waiting
	trimmer   *time.Timer             // next run of trim; nil: none is planned
	modules   map[string]*moduleEntry // entries of modules by digest; nil once the sandbox is closed
	compiling sync.WaitGroup          // running finishLoad calls
}

// DefaultMemoryBytes limits the linear memories of all running calls together if
// Options.MemoryBytes is 0. It suffices for eight calls at their limit.
const DefaultMemoryBytes = 2 << 30

// New returns a sandbox. It reads and compiles nothing yet.
func New(opts Options) *Sandbox {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	ctx, stop := context.WithCancel(context.Background())
	return &Sandbox{
		ctx: ctx, stop: stop,
		opts: opts, modules: map[string]*moduleEntry{}, job: newChildJob, initTimeout: initTimeout, missingLimits: missingLimits,
		memoryBudget: policy.NewBudget("tool_memory_total", cmp.Or(opts.MemoryBytes, DefaultMemoryBytes), 0),
		turns:        meter.NewTurns(0),
		stageBudget:  stage.NewBudget(stagedMemoryBytes, stagedDiskBytes),
		admitting:    make(chan struct{}, 1),
	}
}

var errClosed = errors.New("the sandbox is closed")

// Close stops compilations and frees the modules. No call may be running; later calls fail.
func (s *Sandbox) Close() error {
	s.mu.Lock()
	compiled := s.modules
	s.modules = nil
	if s.trimmer != nil {
		s.trimmer.Stop()
	}
	s.mu.Unlock()
	s.stop()
	for _, e := range compiled {
		e.stop(errClosed)
	}
	s.compiling.Wait()
	var errs []error
	for _, e := range compiled {
		if e.c != nil {
			errs = append(errs, e.c.close())
		}
	}
	return errors.Join(errs...)
}

// watchIdle starts the timer for trim, unless it runs already or s is closed. The timer ends
// when no slot waits for a call.
func (s *Sandbox) watchIdle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.trimmer == nil && s.modules != nil {
		s.trimmer = time.AfterFunc(trimAfter, func() { s.trim(time.Now()) })
	}
}

// trim frees memory of the slots of all modules that have waited long.
func (s *Sandbox) trim(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	more := false
	for _, e := range s.modules {
		select {
		case <-e.done:
			if e.c != nil && e.c.pool.trim(now) {
				more = true
			}
		default:
		}
	}
	switch {
	case s.trimmer == nil || s.modules == nil:
	case more:
		s.trimmer.Reset(trimAfter)
	default:
		s.trimmer = nil
	}
}

// Run carries out one call. If the guest misbehaves or reaches a limit, or if the call was
// cancelled, the Result is a failure. An error is not the guest's fault: for example the host
// failed, the grant is not for this call, or the call has to be asked about first
// ([policy.ErrAskFirst]). report receives the progress of the call; nil: nobody listens.
//
// A call that may write changes nothing on the host. If it succeeds, Run returns its staged
// changes, which the caller has to commit or drop. The changes of a failed call are dropped;
// if the call may start a process, an empty stage is returned for what the process has
// written to caches. Nothing is staged, and the policy.Staged is nil, if the call may neither
// write nor start a process, or if its process changes files directly, see
// [policy.ChangesDirect].
func (s *Sandbox) Run(ctx context.Context, grant policy.Grant, mod *tool.Module, call tool.Call, report func(tool.Progress)) (tool.Result, policy.Staged, error) {
	return s.run(ctx, nil, false, grant, mod, call, report)
}

// Try implements dispatch.Trier.
func (s *Sandbox) Try(ctx context.Context, grant policy.Grant, mod *tool.Module, call tool.Call, on policy.Staged) (tool.Result, policy.Staged, error) {
	var set *stage.Set
	if earlier, ok := on.(*stage.Staged); ok && earlier.Trial {
		set = earlier.Set
	}
	return s.run(ctx, set, true, grant, mod, call, nil)
}

// run carries out a call on a stage; nil: on a new one, if it needs one. trial is as in
// [stage.Staged]. After a failure the stage has ended.
func (s *Sandbox) run(ctx context.Context, set *stage.Set, trial bool, grant policy.Grant, mod *tool.Module, call tool.Call, report func(tool.Progress)) (result tool.Result, _ policy.Staged, err error) {
	exec, starts := grant.Exec()
	err = grant.Check(call, mod.Digest)
	switch {
	case err != nil:
	case trial && !grant.Rehearsal():
		err = errors.New("only a rehearsed call can be tried")
	case grant.Rehearsal() && (starts && (trial || exec.Changes == policy.ChangesDirect) || grant.Network() != nil || exec.Network != nil):
		err = errors.New("a call that may start a process or make requests cannot be rehearsed")
	case set == nil:
		set, err = s.newStage(grant)
	}
	if err != nil {
		err = fmt.Errorf("run %s: %w", call.Tool, err)
	} else if c, loadErr := s.load(ctx, mod); loadErr != nil {
		result, err = loadErrorResult(ctx, call.Tool, loadErr)
	} else {
		result, err = s.call(ctx, c, mod, grant, set, call, report)
	}
	if set == nil {
		return result, nil, err
	}
	if failed := set.Failure(); errors.Is(failed, policy.ErrAskFirst) { // whether or not the guest took it for a failure
		err = errors.Join(err, failed)
	}
	if err != nil || result.Err != nil && !starts {
		return result, nil, errors.Join(err, set.Drop())
	}
	if result.Err != nil { // its process may have written to caches
		set.Forget()
	}
	return result, &stage.Staged{Set: set, Call: call, Digest: mod.Digest, Timeout: grant.Limits().Timeout, Trial: trial}, nil
}
