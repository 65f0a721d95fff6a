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

// Options configures a sandbox. Its zero value is the most closed one: no
// service behind any host function, and no code kept on disk.
type Options struct {
	// CacheDir keeps compiled code. It is trusted code: the directory has to
	// be the user's own, writable by nobody else and without links, or nothing
	// runs. One that cannot be written to is done without. Empty: no cache.
	CacheDir string
	// Build names the build of the program. What another build has compiled is
	// not used: that may have admitted what this one refuses.
	Build string
	// Prebuilt returns what [Sandbox.Pack] has made of the module with a digest,
	// nil if there is nothing. It is trusted code, as trusted as this program.
	// Nil: nothing was made of any.
	Prebuilt func(digest string) fs.FS
	// Spawn starts this program again, as the process that compiles a module: to
	// compile what a stranger wrote can take minutes and gigabytes, and nothing but
	// the end of its process stops it. The first argument is [ChildCommand]. The
	// process runs in dir, with nothing of the user's environment and nothing to
	// read. When ctx ends it is killed, with all that it has started. At least the
	// first kilobytes of what it writes are kept. Spawn returns when it has ended;
	// an error means that it was not started. jail.RunHelper does this. Nil: only
	// built-in modules are compiled, in this process.
	Spawn func(ctx context.Context, dir string, args ...string) (services.CommandResult, error)
	// Permit returns an error if no part of a module may be compiled or run, not even to ask
	// for its manifest. It is called each time, before anything of the module is loaded. Nil:
	// every module may.
	Permit func(*tool.Module) error
	// AllowLarge says that a person has asked for large modules, and those with large functions,
	// to be compiled. That of a tool.Module says so of one.
	AllowLarge bool
	Services   services.Set
	// Config returns what a built-in module is configured with under a name that it
	// declares, in place of its default; false: there is nothing. It is asked when the
	// module asks. Nil: there is nothing for any.
	Config func(module, name string) (string, bool)
	// Redact takes secrets out of what calls return and say, before any of that
	// is cut.
	Redact *redact.Redactor
	// StageDir returns an existing directory of the user's own in which what
	// calls change is kept until it is committed. It has to be on a disk with
	// room for that. It is asked by each call that may write. Nil, or "": in
	// memory, 64 MiB at most for each call.
	StageDir func() string
	// MemoryBytes is what the linear memories of all calls that run at the same
	// time may have together. 0: DefaultMemoryBytes.
	MemoryBytes uint64
	// Interpreter runs guests without compiling them: ready ten times sooner
	// and twenty times slower. For a module that is asked one thing once.
	Interpreter bool
	// VerifyReset compares each instance that is used again with what a new one
	// would be, after every call. It costs a look at all of its memory. A
	// difference is an error of the call that left it.
	VerifyReset bool
	// OnCompile is called when a module is compiled that was not in the cache,
	// which can take seconds, and Compiled when that has ended.
	OnCompile  func(*tool.Module)
	OnCompiled func(*tool.Module, time.Duration, error)
	Logger     *slog.Logger // nil: silent
}

// Sandbox compiles modules and runs calls. It is safe for concurrent use.
type Sandbox struct {
	opts         Options
	memoryBudget *policy.Budget // of all calls together, in bytes
	turns        *meter.Turns   // of all calls
	stageBudget  *stage.Budget  // of what all calls together have changed

	job           func(bytes, workers int) childJob
	initTimeout   time.Duration // what a module gets for it: initTimeout
	missingLimits string        // limits that children do without
	sayMissing    sync.Once

	admitting chan struct{} // holds one: whoever admits a module

	ctx  context.Context // until Close: of what is initialised for all calls
	stop context.CancelFunc

	mu        sync.Mutex
	trimmer   *time.Timer             // fires when slots may have waited long; nil: none does
	modules   map[string]*moduleEntry // by digest; nil once closed
	compiling sync.WaitGroup
}

// DefaultMemoryBytes is how much memory all calls together may use when
// nobody says otherwise: eight calls at their limit.
const DefaultMemoryBytes = 2 << 30

// New returns a sandbox. It reads and compiles nothing yet.
func New(opts Options) *Sandbox {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	life, stop := context.WithCancel(context.Background())
	return &Sandbox{
		ctx: life, stop: stop,
		opts: opts, modules: map[string]*moduleEntry{}, job: newChildJob, initTimeout: initTimeout, missingLimits: missingLimits,
		memoryBudget: policy.NewBudget("tool_memory_total", cmp.Or(opts.MemoryBytes, DefaultMemoryBytes), 0),
		turns:        meter.NewTurns(0),
		stageBudget:  stage.NewBudget(stagedMemoryBytes, stagedDiskBytes),
		admitting:    make(chan struct{}, 1),
	}
}

var errClosed = errors.New("the sandbox is closed")

// Close frees the compiled modules, after stopping what is being compiled. No
// call may be running; later ones fail.
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

// watchIdle has slots trimmed that wait for a call, from one that begins to
// wait until none does.
func (s *Sandbox) watchIdle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.trimmer == nil && s.modules != nil {
		s.trimmer = time.AfterFunc(trimAfter, func() { s.trim(time.Now()) })
	}
}

// trim gives back the memory of slots that have waited long.
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

// Run carries out one call. What the guest does wrong, or runs out of, is a
// failed Result; an error means that the host is at fault or that there is no
// grant for this call.
//
// A call that may write changes nothing on the host: if it succeeds, its changes come back
// staged, for the caller to end. The changes of a call that fails are dropped; if it may start
// a process, an empty stage comes back, for what the process has written to caches. Nothing is
// staged if the process of a call changes files directly, see [policy.ChangesDirect].
func (s *Sandbox) Run(ctx context.Context, grant policy.Grant, mod *tool.Module, call tool.Call, report func(tool.Progress)) (tool.Result, policy.Staged, error) {
	if err := grant.Check(call, mod.Digest); err != nil {
		return tool.Result{}, nil, fmt.Errorf("run %s: %w", call.Tool, err)
	}
	exec, starts := grant.Exec()
	if grant.Rehearsal() && (starts && exec.Changes == policy.ChangesDirect || grant.Network() != nil || exec.Network != nil) {
		return tool.Result{}, nil, fmt.Errorf("run %s: a process cannot be rehearsed, and neither can a request", call.Tool)
	}
	c, err := s.load(ctx, mod)
	if err != nil {
		result, err := loadErrorResult(ctx, call.Tool, err)
		return result, nil, err
	}
	set, err := s.newStage(grant)
	if err != nil {
		return tool.Result{}, nil, fmt.Errorf("run %s: %w", call.Tool, err)
	}
	result, err := s.call(ctx, c, mod, grant, set, call, report)
	if set == nil {
		return result, nil, err
	}
	if failed := set.Failure(); errors.Is(failed, policy.ErrAskFirst) { // whatever the guest makes of it
		err = errors.Join(err, failed)
	}
	if err != nil || result.Err != nil && !starts {
		return result, nil, errors.Join(err, set.Drop())
	}
	if result.Err != nil { // a process may have written to caches all the same
		set.Forget()
	}
	return result, &stagedChanges{set, call, mod.Digest, grant.Limits().Timeout}, nil
}
