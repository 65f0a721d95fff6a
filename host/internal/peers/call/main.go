//go:build bench

// Command call measures the cost of a tool's call in a fresh instance, beside others: an
// instance that is reused in the state of the last call, a separate process, Extism, and
// wasmtime.
//
// Run it in host/internal/peers, on Linux, when the machine is otherwise idle,
// after make build:
//
//	go run -tags bench ./call [-rounds N] [-only names] [-json FILE]
//
// The names are those of the jobs and the peers, such as 'small-*' or
// large-wasmtime, and empty, throughput, starts and memory.
//
// Two jobs are done in all ways, each from one source (workloads/call): small reads a
// file of 2.1 kB and parses it, large contains an interpreter and runs a script. A figure
// is the ratio of two calls made one right after the other: its median, and its 10th
// percentile. The garbage of this process is not collected while calls are timed, which
// helps Extism most: it makes megabytes with each call. "noise" is our call against
// itself: differences as small as that mean nothing.
package main

import (
	"errors"
	"os"

	"github.com/stockade-dev/stockade/host/internal/peers/bench"
	"github.com/stockade-dev/stockade/host/internal/peers/call/guest"
)

// results is the outcome of a run of the benchmark.
type results struct {
	Rounds int
	// The load of the machine. After a while this run is a part of it.
	LoadBefore, LoadAfter string
	Targets               []bench.Figure
	Pairs                 []*pairResult           `json:",omitempty"`
	Empty                 *emptyResult            `json:",omitempty"`
	Throughput            *throughputResult       `json:",omitempty"`
	Starts                *startResults           `json:",omitempty"`
	Memory                map[string]memoryResult `json:",omitempty"` // by job
}

func main() {
	guest.RunCompileChild()
	bench.Main("call", 5, "small-*,empty", run)
}

func run(o bench.Options) (err error) {
	s, err := setUp(o.IsSelected)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	r := results{Rounds: o.Rounds, LoadBefore: bench.Load()}
	if o.IsSelected("empty") {
		if r.Empty, err = s.measureEmpty(o.Rounds); err != nil {
			return err
		}
	}
	if r.Pairs, err = s.measurePairs(o.Rounds); err != nil {
		return err
	}
	if o.IsSelected("throughput") {
		if r.Throughput, err = s.measureThroughput(o.Rounds); err != nil {
			return err
		}
	}
	if o.IsSelected("starts") {
		if r.Starts, err = s.measureStarts(o.Rounds); err != nil {
			return err
		}
	}
	if o.IsSelected("memory") {
		if r.Memory, err = s.measureMemory(); err != nil {
			return err
		}
	}
	r.LoadAfter = bench.Load()
	r.Targets = r.figures()
	r.print(os.Stdout)
	return bench.WriteJSON(o.JSON, r)
}
