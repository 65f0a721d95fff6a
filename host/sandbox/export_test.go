package sandbox

import (
	"cmp"
	"context"
	"time"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/sandbox/admit"
	"github.com/stockade-dev/stockade/host/sandbox/codecache"
	"github.com/stockade-dev/stockade/host/sandbox/hostmod"
	"github.com/stockade-dev/stockade/host/sandbox/meter"
	"github.com/stockade-dev/stockade/host/tool"
	"github.com/stockade-dev/stockade/host/wasm"
)

// Steps of a call, for the benchmarks.

func Load(s *Sandbox, mod *tool.Module) error {
	_, err := s.load(context.Background(), mod)
	return err
}

// OpenOnce makes the guest of a call that does nothing.
func OpenOnce(ctx context.Context, s *Sandbox, mod *tool.Module) error {
	c, err := s.load(ctx, mod)
	if err != nil {
		return err
	}
	inst, err := s.open(ctx, c, policy.Grant{}, policy.DefaultLimits(), nil)
	if err != nil {
		return err
	}
	inst.returned = true
	return inst.end(&c.pool, false)
}

// Trim trims slots as if the given time had passed.
func Trim(s *Sandbox, passed time.Duration) { s.trim(time.Now().Add(passed)) }

// Judge returns the result of a call that ended with an error.
func Judge(err error) (tool.Result, error) {
	ctx := context.Background()
	inst := New(Options{}).newInstance(ctx, policy.Grant{}, policy.Limits{})
	return judge(callOutcome{ctx: ctx, inst: inst, host: &hostmod.World{}, err: err})
}

// SetGuests changes how many guests have a turn at the same time.
func SetGuests(s *Sandbox, n int) { s.turns = meter.NewTurns(n) }

// MemoryInUse returns the memory of all calls together, in bytes.
func MemoryInUse(s *Sandbox) uint64 { return s.memoryBudget.Limit() - s.memoryBudget.Left() }

// CompiledModules returns the number of modules that the sandbox holds.
func CompiledModules(s *Sandbox) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.modules)
}

// Steps of compiling, with modules that were not admitted.

// Build compiles bytes in a child, which need not be a tool, and loads the result.
func Build(ctx context.Context, s *Sandbox, mod *tool.Module, code []byte) error {
	c, err := s.build(ctx, mod, code, traits{Kind: wasm.Native}, nil)
	if err != nil {
		return err
	}
	return c.close()
}

// Link loads native code from a directory.
func Link(dir string, code []byte) error {
	c, err := loadNative(dir, &codecache.Contents{Code: code}, traits{Kind: wasm.Native}, "")
	if err != nil {
		return err
	}
	return c.close()
}

// Limits returns the limits of the child that compiles a number of bytes.
func Limits(bytes int) (cpu time.Duration, memory, file uint64) {
	j := newChildJob(bytes, 2)
	return j.cpu / raceFactor, j.memory / raceFactor, j.file
}

// SetLimits sets the limits of all children. 0 leaves a limit unchanged.
func SetLimits(s *Sandbox, cpu time.Duration, memory, file uint64) {
	s.job = func(bytes, workers int) childJob {
		j := newChildJob(bytes, workers)
		j.wall += wallPerCPU * max(cpu-j.cpu, 0)
		j.cpu, j.memory, j.file = cmp.Or(cpu, j.cpu), cmp.Or(memory, j.memory), cmp.Or(file, j.file)
		return j
	}
}

// SetInitTimeout sets the time limit of initialisations.
func SetInitTimeout(s *Sandbox, d time.Duration) { s.initTimeout = d }

// SetWall sets the time after which children are killed.
func SetWall(s *Sandbox, wall time.Duration) {
	s.job = func(bytes, workers int) childJob {
		j := newChildJob(bytes, workers)
		j.wall = wall
		return j
	}
}

// Slow is the factor of the limits under the race detector.
const Slow = raceFactor

// Rewritten returns the module as it is compiled.
func Rewritten(mod *tool.Module) ([]byte, error) {
	a, err := admit.Check(mod, dialects)
	if err != nil {
		return nil, err
	}
	return a.Code, nil
}

// Dialects holds the dialects of modules that run.
var Dialects = dialects

// Sweep removes stale entries from a cache, as if it were a given time.
func Sweep(dir string, now time.Time) error {
	c, err := codecache.Open(dir, cacheKey("", ""))
	if err == nil {
		defer c.Close()
		c.Sweep(now)
	}
	return err
}

var CacheKey = cacheKey

// Waiting returns the number of callers that wait for a module.
func Waiting(s *Sandbox, mod *tool.Module) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.modules[mod.Digest]; e != nil {
		return e.waiting
	}
	return 0
}

// SetMissingLimits sets the limits that this system lacks.
func SetMissingLimits(s *Sandbox, missing string) { s.missingLimits = missing }

// Idle returns the number of instances of a module that wait for a call.
func Idle(s *Sandbox, mod *tool.Module) int {
	c, err := s.load(context.Background(), mod)
	if err != nil {
		return -1
	}
	c.pool.mu.Lock()
	defer c.pool.mu.Unlock()
	return len(c.pool.idle)
}

var MostIdle = maxIdle

// WithoutOurFiles makes native code stay in the files of the engine, until the returned
// function is called.
func WithoutOurFiles() (again func()) {
	before := mapsNative
	mapsNative = false
	return func() { mapsNative = before }
}

// LinkAfter loads a module from its directory in a cache. happens may change files after
// their check.
func LinkAfter(dir string, happens func() error) error {
	found, err := codecache.Inspect(dir, true)
	if err != nil {
		return err
	}
	defer found.Close()
	state, err := parseState(found)
	if err != nil {
		return err
	}
	if err := happens(); err != nil {
		return err
	}
	c, err := loadNative(dir, found, state.traits, state.Native)
	if err != nil {
		return err
	}
	return c.close()
}
