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

// Area is the part of the sandbox that an attack is aimed at.
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

// Areas lists the areas in the order of the output.
var Areas = []Area{Files, CPU, Memory, Compile, Output, HostCalls, State, Jail, Staging, Added}

// Attack is one attempt of a guest to do something forbidden.
type Attack struct {
	Name        string // letters, digits and dashes
	Area        Area
	Description string // one sentence

	// Kind is the kind of the modules that carry out the attack.
	Kind Kind

	// kinds lists the kinds of modules for which the attack is tried; nil is all.
	kinds []Kind
	// run carries out the attack and returns the mechanism of the refusal. An error
	// describes what the attack achieved, or why it could not be tried.
	run func(*trial) (mechanism string, err error)
	// slow attacks are started first.
	slow bool
}

// The lists of kinds for which attacks are tried.
var (
	native    = []Kind{machine.Native}
	command   = []Kind{machine.Command}
	plugin    = []Kind{machine.Plugin}
	reactors  = []Kind{machine.Native, machine.Plugin} // kinds that are initialised, and whose output is seen while they run
	nonNative = []Kind{machine.Command, machine.Plugin}
)

// forKinds returns the attack for these kinds only.
func (a Attack) forKinds(kinds []Kind) Attack { a.kinds = kinds; return a }

// dirName returns the name of the attack's directory.
func (a Attack) dirName() string { return a.Name + "-" + a.Kind.String() }

// Attacks lists every attack, area by area, once for each of its kinds of modules.
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

// Result is the outcome of an attack.
type Result struct {
	Attack
	// Pass reports whether the guest tried and nothing happened.
	Pass bool
	// Mechanism names what stopped the attack; empty unless Pass.
	Mechanism string
	// Detail is the reason why an attack did not pass, or a measured value.
	Detail   string
	Duration time.Duration
}

// Options selects the attacks, and the directory for them.
type Options struct {
	// Dir is an empty directory in which each attack gets its own; see [Scratch]. These
	// directories are not removed.
	Dir string
	// Areas to run; nil is all.
	Areas []Area
	// Patience is the time after which an attack is stopped from outside, which is a
	// failure. 0 is DefaultPatience.
	Patience time.Duration
	// Started is called for every attack, one at a time, with the number of attacks that have begun
	// and the number of all. It may be nil.
	Started func(a Attack, n, of int)
}

// DefaultPatience is the default of Options.Patience: enough for the slowest attack on a
// busy machine.
const DefaultPatience = 60 * time.Second

// workers is the number of attacks that run at the same time.
const workers = 2

// Scratch makes a directory for the attacks and their target among the temporary files of
// the system. The caller removes it.
func Scratch() (string, error) {
	dir, err := os.MkdirTemp("", "stockade-selftest-*")
	if err != nil {
		return "", fmt.Errorf("make a scratch directory: %w", err)
	}
	return filepath.EvalSymlinks(dir) // guests see directories under their real names
}

// Run carries out the attacks and returns their results, in the order of [Attacks]. It
// returns when all have ended, or ctx has.
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
		mu      sync.Mutex // of begun and the callback
		begun   int
		wg      sync.WaitGroup
	)
	for range workers {
		wg.Go(func() {
			for i := range next {
				mu.Lock()
				if begun++; opts.Started != nil {
					opts.Started(attacks[i], begun, len(attacks))
				}
				mu.Unlock()
				results[i] = carryOut(ctx, target, attacks[i], opts)
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

// untriedError is the error of an attack that could not be carried out.
type untriedError struct{ why string }

func (e *untriedError) Error() string { return "could not be tried: " + e.why }

func newUntried(format string, args ...any) error { return &untriedError{fmt.Sprintf(format, args...)} }
