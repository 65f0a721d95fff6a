//go:build bench

package main

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/stockade-dev/stockade/host/internal/peers/bench"
)

// turns is the number of times that a round makes both calls of a pair.
const turns = 25

// pair is a way beside a fresh call of the same job.
type pair struct {
	fresh, variant way
	result         *pairResult
}

// pairResult holds the times of fresh calls, and of the other calls made right after
// them.
type pairResult struct {
	Job, Peer    string
	Fresh, Other []time.Duration
	Ratio        float64 // of a fresh call to the other, median
	P10, P90     float64
	FreshMedian  time.Duration
	OtherMedian  time.Duration
}

// addPairs makes the pairs of a job, and runs each once.
func (s *setup) addPairs(j job, picked []string) error {
	var want []byte
	for _, name := range picked {
		bench.Progress("prepare %s-%s", j.name, name)
		p := &pair{result: &pairResult{Job: j.name, Peer: name}}
		var err error
		if p.fresh, err = s.newWay(fresh, j); err != nil {
			return err
		}
		if p.variant, err = s.newWay(name, j); err != nil {
			return fmt.Errorf("prepare %s-%s: %w", j.name, name, err)
		}
		s.pairs = append(s.pairs, p)
		for _, w := range []way{p.fresh, p.variant} {
			got, err := w.call(context.Background())
			if err != nil {
				return fmt.Errorf("%s-%s: %w", j.name, name, err)
			}
			if want == nil {
				want = got
			}
			if !sameJSON(got, want) {
				return fmt.Errorf("%s-%s says %s, and another way %s", j.name, name, got, want)
			}
		}
	}
	return nil
}

// measurePairs goes through all pairs round after round, so that a change of the
// machine's speed does not hit a single pair.
func (s *setup) measurePairs(rounds int) ([]*pairResult, error) {
	// Garbage is collected between the rounds of a pair, not during a call.
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	var all []*pairResult
	for round := range rounds {
		for _, p := range s.pairs {
			bench.Progress("round %d of %d: %s-%s", round+1, rounds, p.result.Job, p.result.Peer)
			runtime.GC()
			if err := p.round(); err != nil {
				return nil, fmt.Errorf("%s-%s: %w", p.result.Job, p.result.Peer, err)
			}
		}
	}
	for _, p := range s.pairs {
		p.result.evaluate()
		all = append(all, p.result)
	}
	return all, nil
}

// round takes turns. The first turn, in which the caches are cold, does not count.
func (p *pair) round() error {
	for i := range turns + 1 {
		ours, err := timed(p.fresh)
		if err != nil {
			return err
		}
		other, err := timed(p.variant)
		if err != nil {
			return err
		}
		if i > 0 {
			p.result.Fresh = append(p.result.Fresh, ours)
			p.result.Other = append(p.result.Other, other)
		}
	}
	return nil
}

func timed(w way) (time.Duration, error) {
	start := time.Now()
	_, err := w.call(context.Background())
	return time.Since(start), err
}

func (r *pairResult) evaluate() {
	ratios := make([]float64, len(r.Fresh))
	for i := range ratios {
		ratios[i] = float64(r.Fresh[i]) / float64(r.Other[i])
	}
	r.Ratio, r.P10, r.P90 = bench.Median(ratios), bench.Quantile(ratios, 0.1), bench.Quantile(ratios, 0.9)
	r.FreshMedian, r.OtherMedian = bench.Median(r.Fresh), bench.Median(r.Other)
}
