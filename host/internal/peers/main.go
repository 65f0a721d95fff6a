// Command peers measures the cost of fuel metering, beside others: plain wazero, wazero
// that checks the context in every loop, and wasmtime with and without its own fuel.
//
// Run it in its folder, on Linux, when the machine is otherwise idle:
//
//	go run . [-rounds N] [-only names] [-variants names] [-json FILE]
//
// It needs clang and lld with wasi-libc and the compiler runtime for wasm32
// (in Debian: clang lld wasi-libc libclang-rt-dev-wasm32), a C compiler for
// cgo, and some 100 MB for wasmtime, which comes as a Go module. That is why
// this is a module of its own. The programs it runs are in workloads and are
// built into bin/peers of the repository.
//
// The figure is a ratio: the CPU time of the guest's _start in a variant, divided by the
// time in its base right before or after. A workload's figure is the median over the
// rounds. The column "noise" is plain wazero against itself: differences as small as that
// mean nothing.
package main

import (
	"flag"
	"os"
	"slices"

	"github.com/stockade-dev/stockade/host/internal/peers/bench"
)

// results is the outcome of a run of the benchmark.
type results struct {
	Rounds int
	// The load of the machine. After a while this run is a part of it.
	LoadBefore, LoadAfter string
	Targets               []bench.Figure
	Pairs                 *pairResults   `json:",omitempty"`
	Modules               []moduleResult `json:",omitempty"`
	Cancel                *cancelResult  `json:",omitempty"`
	Stalls                []stallResult  `json:",omitempty"`
}

func main() {
	variants := flag.String("variants", "", "comma-separated patterns: the columns to measure, such as 'noise,fuel*'")
	bench.Main("peers", 5, "c-fib,go-*,modules,cancel,gc", func(o bench.Options) error { return run(o, bench.Selection(*variants)) })
}

func run(o bench.Options, variant func(string) bool) error {
	pairs = slices.DeleteFunc(pairs, func(p pair) bool { return !variant(p.variant) })
	var picked []workload
	for _, w := range workloads {
		if o.IsSelected(w.name) {
			picked = append(picked, w)
		}
	}
	code, err := build()
	if err != nil {
		return err
	}
	r := results{Rounds: o.Rounds, LoadBefore: bench.Load()}
	// The stalls come first: the collector has little to do yet.
	if o.IsSelected("gc") {
		if r.Stalls, err = measureStalls(); err != nil {
			return err
		}
	}
	if o.IsSelected("cancel") {
		if r.Cancel, err = measureCancel(); err != nil {
			return err
		}
	}
	if o.IsSelected("modules") {
		if r.Modules, err = measureModules(code); err != nil {
			return err
		}
	}
	if len(picked) > 0 && len(pairs) > 0 {
		if r.Pairs, err = measurePairs(picked, code, o.Rounds); err != nil {
			return err
		}
	}
	r.LoadAfter = bench.Load()
	r.Targets = r.figures()
	r.print(os.Stdout)
	return bench.WriteJSON(o.JSON, r)
}
