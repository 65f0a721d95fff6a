package main

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"path"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/bytecodealliance/wasmtime-go/v37"
	"github.com/tetratelabs/wazero"

	"github.com/stockade-dev/stockade/host/internal/peers/bench"
)

// Guests that do not end by themselves. Each has a function run, and some have a function
// prepare, which touches their memory first.
//
//go:embed workloads/stall/*.wat
var spinners embed.FS

type cancelResult struct {
	Median, Max time.Duration
	Count       int
}

// stallResult holds the durations of runtime.GC() beside a guest, which can only be
// stopped where it asks for more fuel.
type stallResult struct {
	Guest        string
	Longest      time.Duration
	Median       time.Duration
	Count        int     // number of collections
	NanosPerUnit float64 // CPU time of the guest while nothing is collected
	// FreshMemory is set if the guest touches memory for the first time, so that the
	// kernel takes the time.
	FreshMemory bool `json:",omitempty"`
}

const (
	noGuest    = "no guest"
	freshGuest = "fill, first touch"

	stallWindow  = 1500 * time.Millisecond
	cancelRounds = 50
	cancelAfter  = 50 * time.Millisecond
)

func compileSpinner(name string) (*wazeroProgram, error) {
	text, err := spinners.ReadFile(path.Join("workloads/stall", name+".wat"))
	if err != nil {
		return nil, err
	}
	code, err := wasmtime.Wat2Wasm(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return compileFuel(code, depthLimit)
}

// newSpinner returns an instance that is ready to spin.
func newSpinner(ctx context.Context, p *wazeroProgram) (*instance, error) {
	inst, err := p.instantiate(ctx, wazero.NewModuleConfig())
	if err != nil {
		return nil, err
	}
	if inst.ExportedFunction("prepare") != nil {
		if err := inst.call("prepare"); err != nil {
			return nil, errors.Join(err, inst.Close(context.Background()))
		}
	}
	return inst, nil
}

// spin runs a guest until the context ends.
func spin(inst *instance) error {
	err := inst.call("run")
	if !errors.Is(err, context.Canceled) {
		return fmt.Errorf("the guest was not stopped but ended with: %v", err)
	}
	return nil
}

// whileSpinning calls f while a guest spins, then stops the guest and waits for its end.
func whileSpinning(p *wazeroProgram, f func()) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	inst, err := newSpinner(ctx, p)
	if err != nil {
		return err
	}
	defer inst.Close(context.Background())
	done := make(chan error, 1)
	go func() { done <- spin(inst) }()
	f()
	cancel()
	return <-done
}

// measureCancel measures the time from the end of the context to the return.
func measureCancel() (*cancelResult, error) {
	bench.Progress("cancel a guest %d times", cancelRounds)
	p, err := compileSpinner("loop")
	if err != nil {
		return nil, err
	}
	defer p.close()
	var times []time.Duration
	for range cancelRounds {
		var start time.Time
		err := whileSpinning(p, func() {
			time.Sleep(cancelAfter)
			start = time.Now()
		})
		if err != nil {
			return nil, err
		}
		times = append(times, time.Since(start))
	}
	return &cancelResult{Median: bench.Median(times), Max: slices.Max(times), Count: len(times)}, nil
}

func measureStalls() ([]stallResult, error) {
	bench.Progress("collect garbage beside %s", noGuest)
	all := []stallResult{measureGC(noGuest)}
	files, err := spinners.ReadDir("workloads/stall")
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		name := strings.TrimSuffix(f.Name(), ".wat")
		bench.Progress("collect garbage beside %s", name)
		r, err := stallBeside(name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, r)
	}
	bench.Progress("collect garbage beside %s", freshGuest)
	r, err := stallBesideFresh()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", freshGuest, err)
	}
	return append(all, r), nil
}

func stallBeside(name string) (r stallResult, err error) {
	p, err := compileSpinner(name)
	if err != nil {
		return r, err
	}
	defer p.close()
	if err := whileSpinning(p, func() { r = measureGC(name) }); err != nil {
		return r, err
	}
	r.NanosPerUnit, err = nanosPerUnit(p)
	return r, err
}

// nanosPerUnit returns the CPU time in which a guest uses a unit of fuel.
func nanosPerUnit(p *wazeroProgram) (float64, error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	inst, err := newSpinner(ctx, p)
	if err != nil {
		return 0, err
	}
	defer inst.Close(context.Background())
	time.AfterFunc(300*time.Millisecond, cancel)
	before := inst.account.Used()
	cpu, err := cpuTime(func() error { return spin(inst) })
	return float64(cpu) / float64(inst.account.Used()-before), err
}

// stallBesideFresh collects garbage while instance after instance fills fresh memory.
func stallBesideFresh() (stallResult, error) {
	p, err := compileSpinner("fill")
	if err != nil {
		return stallResult{}, err
	}
	defer p.close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	done := make(chan error, 1)
	go func() {
		for ctx.Err() == nil {
			inst, err := p.instantiate(ctx, wazero.NewModuleConfig())
			if err == nil {
				err = inst.call("prepare")
				_ = inst.Close(context.Background())
			}
			if err != nil && ctx.Err() == nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	r := measureGC(freshGuest)
	r.FreshMemory = true
	cancel()
	return r, <-done
}

func measureGC(guest string) stallResult {
	var times []time.Duration
	for end := time.Now().Add(stallWindow); time.Now().Before(end); {
		start := time.Now()
		runtime.GC()
		times = append(times, time.Since(start))
		time.Sleep(time.Millisecond)
	}
	return stallResult{Guest: guest, Longest: slices.Max(times), Median: bench.Median(times), Count: len(times)}
}
