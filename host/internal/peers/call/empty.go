//go:build bench

package main

import (
	"context"
	"errors"
	"time"

	"github.com/stockade-dev/stockade/host/internal/peers/bench"
	"github.com/stockade-dev/stockade/host/internal/peers/call/guest"
	"github.com/stockade-dev/stockade/host/sandbox"
	"github.com/stockade-dev/stockade/host/wasm/wasmtest"
)

// emptyTurns is the number of times that a round makes both calls.
const emptyTurns = 2000

// emptyResult holds the time that isolation adds to a call of a tool that does nothing.
type emptyResult struct {
	Fresh, Reused  time.Duration   // medians
	Differences    []time.Duration // of the medians, by round
	Median, Lowest time.Duration   // of the differences
	Noise          time.Duration   // the difference of fresh calls to other fresh calls, median
}

// measureEmpty takes turns as the pairs do, but subtracts the times.
func (s *setup) measureEmpty(rounds int) (_ *emptyResult, err error) {
	c, err := guest.New("probe", wasmtest.Tool(wasmtest.ToolOptions{Call: wasmtest.ReturnOK("{}")}), s.dir, "{}")
	if err != nil {
		return nil, err
	}
	ours := &freshWay{s.box, c}
	leaky, err := sandbox.NewLeaky(context.Background(), s.box, c.Module, c.Grant.Limits())
	if err != nil {
		return nil, err
	}
	theirs := &reusedWay{leaky, c}
	defer func() { err = errors.Join(err, theirs.close()) }()
	r := &emptyResult{}
	var fresh, reused, noise []time.Duration
	for round := range rounds {
		bench.Progress("round %d of %d: empty", round+1, rounds)
		var times [3][]time.Duration
		for range emptyTurns {
			for i, w := range []way{ours, theirs, ours} {
				d, err := timed(w)
				if err != nil {
					return nil, err
				}
				times[i] = append(times[i], d)
			}
		}
		// The first and the last follow each other: only the last is right after a reused
		// instance.
		f, l := bench.Median(times[2]), bench.Median(times[1])
		fresh, reused = append(fresh, f), append(reused, l)
		r.Differences = append(r.Differences, f-l)
		noise = append(noise, bench.Median(times[0])-f)
	}
	r.Fresh, r.Reused = bench.Median(fresh), bench.Median(reused)
	r.Median, r.Lowest, r.Noise = bench.Median(r.Differences), bench.Quantile(r.Differences, 0.1), bench.Median(noise)
	return r, nil
}
