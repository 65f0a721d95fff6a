package main

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

// figure is one of the numbers that there is a target for.
type figure struct {
	Name     string
	Measured float64
	AtMost   float64 // the target
	NoTarget bool    `json:",omitempty"`
	Unit     string
	Note     string `json:",omitempty"`
}

func (f figure) verdict() string {
	switch {
	case f.NoTarget:
		return ""
	case f.Measured <= f.AtMost:
		return "PASS"
	}
	return "over"
}

const (
	ratio  = "x"
	millis = "ms"
)

// figures are the measured numbers next to what was set out to reach.
func (r *results) figures() []figure {
	var all []figure
	if r.Pairs != nil {
		all = append(all, r.Pairs.figures()...)
	}
	for _, m := range r.Modules {
		size := 1.25
		if m.Name != "go" {
			size = 1.10
		}
		all = append(all,
			figure{Name: "rewriting, " + m.Name, Measured: m.RewriteMillisPerMB, AtMost: 15, Unit: "ms/MB"},
			figure{Name: "allocation when rewriting, " + m.Name, Measured: m.AllocPerByte, AtMost: 8, Unit: "x input"},
			figure{Name: "size, " + m.Name, Measured: m.SizeRatio, AtMost: size, Unit: ratio,
				Note: fmt.Sprintf("the code section alone, %.0f kB: %.3f", float64(m.CodeBytes)/1000, m.CodeRatio)},
			figure{Name: "time to compile, " + m.Name, Measured: m.CompileRatio, AtMost: 1.25, Unit: ratio,
				Note: fmt.Sprintf("%s without", m.Compile.Round(time.Millisecond))},
		)
	}
	if r.Cancel != nil {
		all = append(all,
			figure{Name: "cancel to return, longest", Measured: ms(r.Cancel.Max), AtMost: 20, Unit: millis},
			figure{Name: "cancel to return, median", Measured: ms(r.Cancel.Median), NoTarget: true, Unit: millis},
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
			figure{Name: "runtime.GC() beside a guest, longest", Measured: ms(longest.Longest), AtMost: 30, Unit: millis,
				Note: fmt.Sprintf("%s; %.1f ms without a guest", longest.Guest, ms(idle.Longest))},
			figure{Name: "same, fresh memory being touched", Measured: ms(fresh.Longest), NoTarget: true, Unit: millis},
		)
	}
	return all
}

func (r *pairResults) figures() []figure {
	var all []figure
	if fuel, ok := r.Summary[fuelOnly]; ok {
		all = append(all,
			figure{Name: "fuel, geomean", Measured: fuel.Geomean, AtMost: 1.11, Unit: ratio,
				Note: fmt.Sprintf("best %.3f %s", fuel.Best, fuel.BestName)},
			figure{Name: "fuel, median", Measured: fuel.Median, AtMost: 1.12, Unit: ratio},
			figure{Name: "fuel, worst", Measured: fuel.Worst, AtMost: 1.30, Unit: ratio, Note: fuel.WorstName})
	}
	if peer, ok := r.Summary[wasmtimeFuel]; ok {
		for _, variant := range []string{fuelOnly, fuelAndDepth} {
			if s, ok := r.Summary[variant]; ok {
				all = append(all, figure{Name: variant + ", geomean, against wasmtime's fuel", Measured: s.Geomean,
					AtMost: round(peer.Geomean), Unit: ratio})
			}
		}
	}
	if noise, ok := r.Summary[again]; ok {
		all = append(all, figure{Name: "noise, geomean", Measured: noise.Geomean, NoTarget: true, Unit: ratio,
			Note: fmt.Sprintf("from %.3f %s to %.3f %s", noise.Best, noise.BestName, noise.Worst, noise.WorstName)})
	}
	return append(all, figure{Name: "runs with another fuel count", Measured: float64(r.FuelDiffering), AtMost: 0, Unit: "runs",
		Note: fmt.Sprintf("of %d", r.FuelRuns)})
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func round(x float64) float64 { return math.Round(x*1000) / 1000 }

// digits are enough to compare with the target by.
func digits(x float64, unit string) string {
	switch unit {
	case ratio:
		return strconv.FormatFloat(x, 'f', 3, 64)
	case "runs":
		return strconv.FormatFloat(x, 'f', 0, 64)
	}
	return strconv.FormatFloat(x, 'f', 1, 64)
}
