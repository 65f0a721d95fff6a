//go:build bench

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/stockade-dev/stockade/host/internal/peers/bench"
	"github.com/stockade-dev/stockade/host/internal/peers/call/guest"
)

// startTurns is the number of times that a round makes each start.
const startTurns = 5

// startResults holds start times: until something is ready that was not in this process
// before, or not in any.
type startResults struct {
	Load  difference // loading the small tool's code from the cache
	Ready difference // loading the tool, and preparing the state for its calls
	First difference // a process that makes a call, minus one that does nothing
	Call  difference // stockade call, minus stockade version
	Home  difference // stockade call in a home without compiled code; not a difference
	// NothingNoise is a process that does nothing, minus another one.
	NothingNoise difference
}

// difference is the time of a start minus that of its base, which ran right before.
type difference struct {
	Base, Full  []time.Duration
	Median, P10 time.Duration
	BaseMedian  time.Duration
}

// measure runs both once; a nil base counts as zero.
func (d *difference) measure(base, full func() error) error {
	var took [2]time.Duration
	for i, f := range []func() error{base, full} {
		if f == nil {
			continue
		}
		start := time.Now()
		if err := f(); err != nil {
			return err
		}
		took[i] = time.Since(start)
	}
	d.Base, d.Full = append(d.Base, took[0]), append(d.Full, took[1])
	return nil
}

func (d *difference) evaluate() {
	all := make([]time.Duration, len(d.Full))
	for i := range all {
		all[i] = d.Full[i] - d.Base[i]
	}
	d.Median, d.P10, d.BaseMedian = bench.Median(all), bench.Quantile(all, 0.1), bench.Median(d.Base)
}

func (s *setup) measureStarts(rounds int) (*startResults, error) {
	probe, err := buildProbe()
	if err != nil {
		return nil, err
	}
	stockade, err := s.stockade(filepath.Join(s.dir, "home"))
	if err != nil {
		return nil, err
	}
	if err := stockade("call", "ls")(); err != nil {
		return nil, err
	}
	home := filepath.Join(s.dir, "new")
	c := s.calls["small"]
	inNewHome, err := s.stockade(home)
	if err != nil {
		return nil, err
	}
	nothing := command(probe, "nothing")
	first := command(probe, "first", s.cache, s.files["small"], c.Module.Digest, s.dir, string(c.Call.Args))
	r := &startResults{}
	for round := range rounds {
		bench.Progress("round %d of %d: starts", round+1, rounds)
		for range startTurns {
			for _, m := range []struct {
				d          *difference
				base, full func() error
			}{
				{&r.Load, nil, nil},
				{&r.First, nothing, first},
				{&r.NothingNoise, nothing, nothing},
				{&r.Call, stockade("version"), stockade("call", "ls")},
				{&r.Home, nil, inNewHome("call", "ls")},
			} {
				switch m.d {
				case &r.Load:
					err = s.measureLoad(r)
				case &r.Home:
					err = emptyHome(home)
				}
				if err == nil && m.full != nil {
					err = m.d.measure(m.base, m.full)
				}
				if err != nil {
					return nil, err
				}
			}
		}
	}
	for _, d := range []*difference{&r.Load, &r.Ready, &r.First, &r.NothingNoise, &r.Call, &r.Home} {
		d.evaluate()
	}
	return r, nil
}

// measureLoad loads the small tool in a new sandbox.
func (s *setup) measureLoad(r *startResults) error {
	ctx := context.Background()
	c := s.calls["small"]
	box := guest.NewSandbox(s.cache)
	defer box.Close()
	start := time.Now()
	if err := box.Compile(ctx, c.Module); err != nil {
		return err
	}
	loaded := time.Since(start)
	if _, err := c.Run(ctx, box); err != nil {
		return err
	}
	ready := time.Since(start)
	r.Load.Base, r.Load.Full = append(r.Load.Base, 0), append(r.Load.Full, loaded)
	r.Ready.Base, r.Ready.Full = append(r.Ready.Base, 0), append(r.Ready.Full, ready)
	return nil
}

// stockade returns functions that run the program with the given home.
func (s *setup) stockade(home string) (func(args ...string) func() error, error) {
	file, err := filepath.Abs("../../../bin/stockade")
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(file); err != nil {
		return nil, fmt.Errorf("%w: run make build", err)
	}
	return func(args ...string) func() error {
		return func() error {
			cmd := exec.Command(file, append([]string{"-C", workOf(home)}, args...)...)
			cmd.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH")}
			return runCommand(cmd)
		}
	}, emptyHome(home)
}

func workOf(home string) string { return filepath.Join(home, "work") }

// emptyHome makes an empty home, without the files of an earlier one.
func emptyHome(home string) error {
	if err := os.RemoveAll(home); err != nil {
		return err
	}
	return os.MkdirAll(workOf(home), 0o700)
}

func command(name string, args ...string) func() error {
	return func() error { return runCommand(exec.Command(name, args...)) }
}

func runCommand(cmd *exec.Cmd) error {
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", cmd, err, output)
	}
	return nil
}
