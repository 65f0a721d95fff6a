package main

import (
	"fmt"
	"maps"
	"math"
	"runtime"
	"runtime/debug"
	"slices"
	"time"

	"github.com/tetratelabs/wazero"

	"github.com/stockade-dev/stockade/host/internal/peers/bench"
)

// program is a module that an engine has compiled in one way.
type program interface {
	run(arg string) (outcome, error)
	close() error
}

// The ways to run a workload.
const (
	plain         = "wazero"
	noiseRun      = "noise"
	fuelOnly      = "fuel"
	fuelAndDepth  = "fuel+depth"
	closeOnDone   = "closeOnDone"
	wasmtimePlain = "wasmtime"
	wasmtimeFuel  = "wasmtime fuel"
)

type pair struct {
	variant, base string
	maxRounds     int
}

// pairs lists the variants, each with the base it is compared with. Checking the context
// is so slow that two rounds are enough.
var pairs = []pair{
	{noiseRun, plain, math.MaxInt},
	{fuelOnly, plain, math.MaxInt},
	{fuelAndDepth, plain, math.MaxInt},
	{closeOnDone, plain, 2},
	{wasmtimeFuel, wasmtimePlain, math.MaxInt},
}

// compilers compile a module, by name of the way.
var compilers = map[string]func(code []byte) (program, error){
	plain:        func(code []byte) (program, error) { return compileWazero(code, wazeroConfig(), false) },
	noiseRun:     func(code []byte) (program, error) { return compileWazero(code, wazeroConfig(), false) },
	fuelOnly:     func(code []byte) (program, error) { return compileFuel(code, 0) },
	fuelAndDepth: func(code []byte) (program, error) { return compileFuel(code, depthLimit) },
	closeOnDone: func(code []byte) (program, error) {
		return compileWazero(code, wazeroConfig().WithCloseOnContextDone(true), false)
	},
	wasmtimePlain: func(code []byte) (program, error) { return compileWasmtime(code, false) },
	wasmtimeFuel:  func(code []byte) (program, error) { return compileWasmtime(code, true) },
}

func wazeroConfig() wazero.RuntimeConfig { return wazero.NewRuntimeConfigCompiler() }

func compileFuel(code []byte, depth int64) (*wazeroProgram, error) {
	instrumented, err := instrument(code, depth)
	if err != nil {
		return nil, err
	}
	return compileWazero(instrumented, wazeroConfig(), true)
}

// pairResults holds the ratios of all workloads.
type pairResults struct {
	Workloads []workloadResult
	Summary   map[string]summary // by variant
	// FuelDiffering counts the runs that used another amount of fuel than the first of
	// the same workload and variant.
	FuelDiffering, FuelRuns int
}

type workloadResult struct {
	Name    string
	CPU     map[string]time.Duration // of the base, median
	Ratio   map[string]float64       // by variant, median
	Fastest map[string]float64       // by variant: the fastest run divided by the fastest of the base
	Fuel    map[string]uint64        // by variant, in the first run
	Rounds  map[string][]pairRound   // by variant
}

type pairRound struct{ Base, Variant outcome }

type summary struct {
	Geomean, Median, Worst, Best float64
	WorstName, BestName          string
	// Fastest is the geometric mean of the fastest run of the variant divided by the
	// fastest of its base. A busy machine disturbs it in another way.
	Fastest float64
}

// measurePairs runs the workloads round after round, so that a change of the machine's
// speed does not hit a single workload.
func measurePairs(picked []workload, code map[string][]byte, rounds int) (*pairResults, error) {
	programs, err := compileAll(picked, code)
	if err != nil {
		return nil, err
	}
	defer func() {
		for _, byWay := range programs {
			for _, p := range byWay {
				_ = p.close()
			}
		}
	}()
	// Garbage is collected between the runs, not during them.
	defer debug.SetGCPercent(debug.SetGCPercent(-1))

	r := &pairResults{}
	var all []*series
	for _, w := range picked {
		all = append(all, &series{
			workload: w, programs: programs[w.module], total: r,
			result: workloadResult{Name: w.name, Fuel: map[string]uint64{}, Rounds: map[string][]pairRound{}},
		})
	}
	for round := range rounds {
		for _, s := range all {
			bench.Progress("round %d of %d: %s", round+1, rounds, s.workload.name)
			for i, pair := range pairs {
				if round >= pair.maxRounds {
					continue
				}
				if err := s.measure(pair, (round+i)%2 == 1); err != nil {
					return nil, err
				}
			}
		}
	}
	for _, s := range all {
		s.result.evaluate()
		r.Workloads = append(r.Workloads, s.result)
	}
	r.summarise()
	return r, nil
}

func compileAll(picked []workload, code map[string][]byte) (map[string]map[string]program, error) {
	programs := map[string]map[string]program{}
	for _, w := range picked {
		if programs[w.module] != nil {
			continue
		}
		programs[w.module] = map[string]program{}
		for _, way := range ways() {
			bench.Progress("compile %s for %s", w.module, way)
			p, err := compilers[way](code[w.module])
			if err != nil {
				return nil, fmt.Errorf("compile %s for %s: %w", w.module, way, err)
			}
			programs[w.module][way] = p
		}
	}
	return programs, nil
}

// ways returns the ways that the pairs need.
func ways() []string {
	set := map[string]bool{}
	for _, pair := range pairs {
		set[pair.base], set[pair.variant] = true, true
	}
	return slices.Sorted(maps.Keys(set))
}

// series holds the runs of one workload, which are compared with each other.
type series struct {
	workload workload
	programs map[string]program
	output   string // of the first run
	result   workloadResult
	total    *pairResults
}

// measure runs a pair once; with swapped, the variant goes first.
func (s *series) measure(p pair, swapped bool) (err error) {
	runtime.GC()
	var r pairRound
	if swapped {
		r.Variant, err = s.run(p.variant)
	}
	if err == nil {
		r.Base, err = s.run(p.base)
	}
	if err == nil && !swapped {
		r.Variant, err = s.run(p.variant)
	}
	s.result.Rounds[p.variant] = append(s.result.Rounds[p.variant], r)
	return err
}

func (s *series) run(way string) (outcome, error) {
	o, err := s.programs[way].run(s.workload.arg)
	if err != nil {
		return o, fmt.Errorf("%s with %s: %w", s.workload.name, way, err)
	}
	if s.output == "" {
		s.output = o.output
	}
	if o.output == "" || o.output != s.output {
		return o, fmt.Errorf("%s with %s wrote %q, and in the first run %q", s.workload.name, way, o.output, s.output)
	}
	if o.Fuel > 0 {
		s.compareFuel(way, o.Fuel)
	}
	return o, nil
}

func (s *series) compareFuel(way string, fuel uint64) {
	first, ok := s.result.Fuel[way]
	if !ok {
		first = fuel
		s.result.Fuel[way] = fuel
	}
	// wasmtime uses the real clock, so its counts differ.
	if way == wasmtimeFuel {
		return
	}
	s.total.FuelRuns++
	if fuel != first {
		s.total.FuelDiffering++
		bench.Progress("%s with %s used %d units, and %d in the first run", s.workload.name, way, fuel, first)
	}
}

func (w *workloadResult) evaluate() {
	w.CPU, w.Ratio, w.Fastest = map[string]time.Duration{}, map[string]float64{}, map[string]float64{}
	base := map[string][]time.Duration{}
	for _, pair := range pairs {
		var ratios []float64
		fastest := w.Rounds[pair.variant][0]
		for _, r := range w.Rounds[pair.variant] {
			fastest.Base.CPU = min(fastest.Base.CPU, r.Base.CPU)
			fastest.Variant.CPU = min(fastest.Variant.CPU, r.Variant.CPU)
			ratios = append(ratios, float64(r.Variant.CPU)/float64(r.Base.CPU))
			base[pair.base] = append(base[pair.base], r.Base.CPU)
		}
		w.Ratio[pair.variant] = bench.Median(ratios)
		w.Fastest[pair.variant] = float64(fastest.Variant.CPU) / float64(fastest.Base.CPU)
	}
	for name, times := range base {
		w.CPU[name] = bench.Median(times)
	}
}

func (r *pairResults) summarise() {
	r.Summary = map[string]summary{}
	for _, pair := range pairs {
		s := summary{Best: math.Inf(1)}
		var ratios, fastest []float64
		for _, w := range r.Workloads {
			ratio := w.Ratio[pair.variant]
			ratios = append(ratios, ratio)
			fastest = append(fastest, w.Fastest[pair.variant])
			if ratio > s.Worst {
				s.Worst, s.WorstName = ratio, w.Name
			}
			if ratio < s.Best {
				s.Best, s.BestName = ratio, w.Name
			}
		}
		s.Geomean, s.Median, s.Fastest = bench.Geomean(ratios), bench.Median(ratios), bench.Geomean(fastest)
		r.Summary[pair.variant] = s
	}
}
