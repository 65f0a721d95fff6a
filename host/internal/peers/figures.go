package main

import (
	"fmt"
	"time"

	"github.com/stockade-dev/stockade/host/internal/peers/bench"
)

// figures returns the measured numbers with their targets.
func (r *results) figures() []bench.Figure {
	var all []bench.Figure
	if r.Pairs != nil {
		all = append(all, r.Pairs.figures()...)
	}
	for _, m := range r.Modules {
		size := 1.25
		if m.Name != "go" {
			size = 1.10
		}
		all = append(all,
			bench.Figure{Name: "rewriting, " + m.Name, Measured: m.RewriteMillisPerMB, AtMost: 15, Unit: "ms/MB"},
			bench.Figure{Name: "allocation when rewriting, " + m.Name, Measured: m.AllocPerByte, AtMost: 8, Unit: "x input"},
			bench.Figure{Name: "size, " + m.Name, Measured: m.SizeRatio, AtMost: size, Unit: bench.Ratio,
				Note: fmt.Sprintf("the code section alone, %.0f kB: %.3f", float64(m.CodeBytes)/1000, m.CodeRatio)},
			bench.Figure{Name: "time to compile, " + m.Name, Measured: m.CompileRatio, AtMost: 1.25, Unit: bench.Ratio,
				Note: fmt.Sprintf("%s without", m.Compile.Round(time.Millisecond))},
		)
	}
	if r.Cancel != nil {
		all = append(all,
			bench.Figure{Name: "cancel to return, longest", Measured: bench.MS(r.Cancel.Max), AtMost: 20, Unit: bench.Millis},
			bench.Figure{Name: "cancel to return, median", Measured: bench.MS(r.Cancel.Median), NoTarget: true, Unit: bench.Millis},
		)
	}
	if len(r.Stalls) > 0 {
		var longest, fresh, idle stallResult
		for _, s := range r.Stalls {
			switch {
			case s.FreshMemory:
				fresh = s
			case s.Guest == noGuest:
				idle = s
			case s.Longest > longest.Longest:
				longest = s
			}
		}
		all = append(all,
			bench.Figure{Name: "runtime.GC() beside a guest, longest", Measured: bench.MS(longest.Longest), AtMost: 30, Unit: bench.Millis,
				Note: fmt.Sprintf("%s; %.1f ms without a guest", longest.Guest, bench.MS(idle.Longest))},
			bench.Figure{Name: "same, fresh memory being touched", Measured: bench.MS(fresh.Longest), NoTarget: true, Unit: bench.Millis},
		)
	}
	return all
}

func (r *pairResults) figures() []bench.Figure {
	var all []bench.Figure
	if fuel, ok := r.Summary[fuelOnly]; ok {
		all = append(all,
			bench.Figure{Name: "fuel, geomean", Measured: fuel.Geomean, AtMost: 1.11, Unit: bench.Ratio,
				Note: fmt.Sprintf("best %.3f %s", fuel.Best, fuel.BestName)},
			bench.Figure{Name: "fuel, median", Measured: fuel.Median, AtMost: 1.12, Unit: bench.Ratio},
			bench.Figure{Name: "fuel, worst", Measured: fuel.Worst, AtMost: 1.30, Unit: bench.Ratio, Note: fuel.WorstName})
	}
	if peer, ok := r.Summary[wasmtimeFuel]; ok {
		for _, variant := range []string{fuelOnly, fuelAndDepth} {
			if s, ok := r.Summary[variant]; ok {
				all = append(all, bench.Figure{Name: variant + ", geomean, against wasmtime's fuel", Measured: s.Geomean,
					AtMost: bench.Round(peer.Geomean), Unit: bench.Ratio})
			}
		}
	}
	if noise, ok := r.Summary[noiseRun]; ok {
		all = append(all, bench.Figure{Name: "noise, geomean", Measured: noise.Geomean, NoTarget: true, Unit: bench.Ratio,
			Note: fmt.Sprintf("from %.3f %s to %.3f %s", noise.Best, noise.BestName, noise.Worst, noise.WorstName)})
	}
	return append(all, bench.Figure{Name: "runs with another fuel count", Measured: float64(r.FuelDiffering), AtMost: 0, Unit: bench.Runs,
		Note: fmt.Sprintf("of %d", r.FuelRuns)})
}
