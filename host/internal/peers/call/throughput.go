//go:build bench

package main

import (
	"context"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/stockade-dev/stockade/host/internal/peers/bench"
	"github.com/stockade-dev/stockade/host/internal/peers/call/guest"
	"github.com/stockade-dev/stockade/host/sandbox"
	"golang.org/x/sync/errgroup"
)

// window is the time for which calls are counted at once.
const window = 500 * time.Millisecond

// throughputResult holds the numbers of fresh calls per second made at the same time.
type throughputResult struct {
	One, Two []float64 // by round: with one goroutine, and with two
	Ratio    float64   // median
	P10      float64
	Noise    float64 // ratio of two measurements with one goroutine, median
}

// measureThroughput collects garbage as usual: that is part of the work.
func (s *setup) measureThroughput(rounds int) (*throughputResult, error) {
	r := &throughputResult{}
	var ratios, noise []float64
	for round := range rounds {
		bench.Progress("round %d of %d: throughput", round+1, rounds)
		runtime.GC()
		var rate [4]float64
		for i, n := range []int{1, 2, 2, 1} {
			var err error
			if rate[i], err = throughput(s.box, s.calls["small"], n); err != nil {
				return nil, err
			}
		}
		one, two := (rate[0]+rate[3])/2, (rate[1]+rate[2])/2
		r.One, r.Two = append(r.One, one), append(r.Two, two)
		ratios, noise = append(ratios, two/one), append(noise, rate[3]/rate[0])
	}
	r.Ratio, r.P10, r.Noise = bench.Median(ratios), bench.Quantile(ratios, 0.1), bench.Median(noise)
	return r, nil
}

func throughput(box *sandbox.Sandbox, c *guest.Call, goroutines int) (perSecond float64, err error) {
	var calls atomic.Int64
	start := time.Now()
	group, ctx := errgroup.WithContext(context.Background())
	for range goroutines {
		group.Go(func() error {
			for time.Since(start) < window {
				if _, err := c.Run(ctx, box); err != nil {
					return err
				}
				calls.Add(1)
			}
			return nil
		})
	}
	err = group.Wait()
	return float64(calls.Load()) / time.Since(start).Seconds(), err
}
