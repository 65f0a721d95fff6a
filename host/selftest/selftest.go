package selftest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/stockade-dev/stockade/host/selftest/machine"
)

// Area is what an attack is after.
type Area string

// The areas.
const (
	Files     Area = "files"
	CPU       Area = "cpu"
	Memory    Area = "memory"
	Compile   Area = "compile"
	Output    Area = "output"
	HostCalls Area = "host-calls"
	State     Area = "state"
	Jail      Area = "jail"
	Staging   Area = "staging"
	Added     Area = "added"
)

// Areas lists the areas in the order in which they are shown.
var Areas = []Area{Files, CPU, Memory, Compile, Output, HostCalls, State, Jail, Staging, Added}

// Attack is one attempt of a guest to do what it must not.
type Attack struct {
	Name        string // letters, digits and dashes
	Area        Area
	Description string // one sentence

	// Kind is that of the modules that carry it out.
	Kind Kind

	// kinds are those for which it is tried; nil is all.
	kinds []Kind
	// run carries the attack out and returns what stopped it. An error says
	// what it got, or why it could not be tried.
	run func(*trial) (mechanism string, err error)
	// slow attacks are begun first.
	slow bool
}

// The kinds for which attacks are tried.
var (
	native    = []Kind{machine.Native}
	command   = []Kind{machine.Command}
	plugin    = []Kind{machine.Plugin}
	reactors  = []Kind{machine.Native, machine.Plugin} // what is initialised, and heard while it runs
	nonNative = []Kind{machine.Command, machine.Plugin}
)

// forKinds is an attack that is tried for these kinds only.
func (a Attack) forKinds(kinds []Kind) Attack { a.kinds = kinds; return a }

// dirName is the name of its directory.
func (a Attack) dirName() string { return a.Name + "-" + a.Kind.String() }

// Attacks lists every attack, area by area, and for each kind of module after the other.
func Attacks() []Attack {
	var all []Attack
	for i, list := range [][]Attack{ // in the order of Areas
		fileAttacks(), cpuAttacks(), memoryAttacks(), compileAttacks(), outputAttacks(), hostCallAttacks(), stateAttacks(), jailAttacks(), stagingAttacks(), addedAttacks(),
	} {
		for _, a := range list {
			a.Area = Areas[i]
			for _, a.Kind = range machine.Kinds {
				if a.kinds == nil || slices.Contains(a.kinds, a.Kind) {
					all = append(all, a)
				}
			}
		}
	}
	return all
}

// Result is how an attack ended.
type Result struct {
	Attack
	// Pass says that the guest tried and that nothing happened.
	Pass bool
	// Mechanism is what stopped the attack; empty unless Pass.
	Mechanism string
	// Detail says why an attack did not pass, or what was measured.
	Detail   string
	Duration time.Duration
}

// Options says what to run, and where.
type Options struct {
	// Dir is an empty directory in which each attack gets one of its own; see
	// [Scratch]. They are left there.
	Dir string
	// Areas to run; nil is all.
	Areas []Area
	// Patience is what an attack may take before it is stopped from outside,
	// which is a failure. 0 is DefaultPatience.
	Patience time.Duration
	// Started and Ended are told of every attack, one at a time. May be nil.
	Started func(Attack)
	Ended   func(Result)
}

// DefaultPatience is the patience when nobody says otherwise: what the slowest
// attack may take on a machine that is busy with other things.
const DefaultPatience = 60 * time.Second

// workers is how many attacks run at the same time.
const workers = 2

// Scratch makes a directory for the attacks and their target among the
// temporary files of the system. The caller removes it.
func Scratch() (string, error) {
	dir, err := os.MkdirTemp("", "stockade-selftest-*")
	if err != nil {
		return "", fmt.Errorf("make a scratch directory: %w", err)
	}
	return filepath.EvalSymlinks(dir) // guests see directories under their real names
}

// Run carries out the attacks and returns how they ended, in the order of
// [Attacks]. It returns when all have ended, or ctx has.
func Run(ctx context.Context, target Target, opts Options) ([]Result, error) {
	if opts.Patience == 0 {
		opts.Patience = DefaultPatience
	}
	var attacks []Attack
	for _, a := range Attacks() {
		if opts.Areas == nil || slices.Contains(opts.Areas, a.Area) {
			attacks = append(attacks, a)
		}
	}
	return run(ctx, target, opts, attacks)
}

func run(ctx context.Context, target Target, opts Options, attacks []Attack) ([]Result, error) {
	next := make(chan int)
	go func() {
		defer close(next)
		for _, slow := range []bool{true, false} { // the slow ones first
			for i, a := range attacks {
				if a.slow != slow {
					continue
				}
				select {
				case next <- i:
				case <-ctx.Done():
					return
				}
			}
		}
	}()
	var (
		results = make([]Result, len(attacks))
		mu      sync.Mutex // of the callbacks
		wg      sync.WaitGroup
	)
	for range workers {
		wg.Go(func() {
			for i := range next {
				if opts.Started != nil {
					mu.Lock()
					opts.Started(attacks[i])
					mu.Unlock()
				}
				results[i] = carryOut(ctx, target, attacks[i], opts)
				if opts.Ended != nil {
					mu.Lock()
					opts.Ended(results[i])
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return results, nil
}

// carryOut carries out one attack in a directory of its own.
func carryOut(ctx context.Context, target Target, a Attack, opts Options) Result {
	start := time.Now()
	ctx, cancel := context.WithTimeoutCause(ctx, opts.Patience, errPatience)
	defer cancel()
	t, err := newTrial(ctx, target, a.Kind, filepath.Join(opts.Dir, a.dirName()))
	r := Result{Attack: a}
	if err != nil {
		err = newUntried("%v", err)
	} else {
		r.Mechanism, err = a.run(t)
		err = errors.Join(err, t.checkUnchanged())
		r.Detail = t.detail
	}
	r.Pass = err == nil
	if err != nil {
		r.Mechanism, r.Detail = "", err.Error()
	}
	r.Duration = time.Since(start)
	return r
}

var errPatience = errors.New("it had to be stopped from outside")

// untriedError is why an attack could not be carried out.
type untriedError struct{ why string }

func (e *untriedError) Error() string { return "could not be tried: " + e.why }

func newUntried(format string, args ...any) error { return &untriedError{fmt.Sprintf(format, args...)} }
