//go:build bench

package main

import (
	"fmt"
	"io"
	"runtime"
	"text/tabwriter"
	"time"

	"github.com/stockade-dev/stockade/host/internal/peers/bench"
)

// targets limits the time of a fresh call, as a multiple of a peer's time.
var targets = map[string]float64{
	"small-" + reused:     1.10,
	"large-" + reused:     1.15,
	"small-" + native:     0.48,
	"large-" + native:     0.40,
	"small-" + extismPeer: 0.20,
	"large-" + extismPeer: 0.20,
	"small-" + wasmtime:   1.35,
	"large-" + wasmtime:   1.35,
}

// peerNames are the names of the peers in the figures.
var peerNames = map[string]string{
	noise:      "fresh call (noise)",
	reused:     "reused instance that leaks",
	native:     "fork and exec of a native program",
	extismPeer: "Extism",
	wasmtime:   "wasmtime, pooled, pre-initialised, with fuel",
}

// figures returns the measured numbers with their targets.
func (r *results) figures() []bench.Figure {
	var all []bench.Figure
	if e := r.Empty; e != nil {
		all = append(all,
			bench.Figure{Name: "isolation of an empty call", Measured: micros(e.Median), P10: new(micros(e.Lowest)), AtMost: 5, Unit: bench.Micros,
				Note: fmt.Sprintf("%.1f us fresh, %.1f us reused", micros(e.Fresh), micros(e.Reused))},
			bench.Figure{Name: "noise of an empty call", Measured: micros(e.Noise), NoTarget: true, Unit: bench.Micros})
	}
	for _, p := range r.Pairs {
		target, ok := targets[p.Job+"-"+p.Peer]
		all = append(all, bench.Figure{Name: p.Job + ", fresh call / " + peerNames[p.Peer], Measured: p.Ratio, P10: &p.P10,
			AtMost: target, NoTarget: !ok, Unit: bench.Ratio,
			Note: fmt.Sprintf("%.0f us / %.0f us", micros(p.FreshMedian), micros(p.OtherMedian))})
	}
	if t := r.Throughput; t != nil {
		all = append(all, bench.Figure{Name: "throughput, two goroutines / one", Measured: t.Ratio, P10: &t.P10, AtLeast: 1.8, Unit: bench.Ratio,
			Note: fmt.Sprintf("%.0f calls/s with one; noise %.3f; %d CPUs", bench.Median(t.One), t.Noise, runtime.NumCPU())})
	}
	if s := r.Starts; s != nil {
		all = append(all, s.figures()...)
	}
	if r.Memory != nil {
		for _, j := range jobs {
			all = append(all, r.Memory[j.name].figures(j.name)...)
		}
	}
	return all
}

func (s *startResults) figures() []bench.Figure {
	figure := func(name string, d difference, atMost float64, note string) bench.Figure {
		return bench.Figure{Name: name, Measured: bench.MS(d.Median), P10: new(bench.MS(d.P10)), AtMost: atMost, NoTarget: atMost == 0,
			Unit: bench.Millis, Note: note}
	}
	over := func(what string, d difference) string {
		return fmt.Sprintf("over %s, %.1f ms", what, bench.MS(d.BaseMedian))
	}
	return []bench.Figure{
		figure("warm load of a small tool", s.Load, 10, ""),
		figure("same, and its first call", s.Ready, 0, ""),
		figure("new process to first result", s.First, 12, over("a process that does nothing", s.First)),
		figure("stockade call", s.Call, 25, over("stockade version", s.Call)),
		figure("first stockade call in a new home", s.Home, 100, fmt.Sprintf("all of it; in a warm one %.1f ms", bench.MS(bench.Median(s.Call.Full)))),
		figure("noise of a new process", s.NothingNoise, 0, ""),
		// Tools cannot be installed yet.
		{Name: "start with 50 installed tools", Missing: true, AtMost: 5, Unit: bench.Millis,
			Note: "not measurable yet: there is no registry of installed tools"},
	}
}

func (m memoryResult) figures(job string) []bench.Figure {
	figure := func(name, key, note string) bench.Figure {
		value, ok := m.Private[key]
		return bench.Figure{Name: job + ", private memory " + name, Measured: float64(value), Missing: !ok, NoTarget: true, Unit: bench.KiB, Note: note}
	}
	calls := fmt.Sprintf("a guest begins with %d KiB and has %d at most", m.Image>>10, m.Peak>>10)
	waits := ""
	if m.Peak > m.Image {
		waits = "none does: a call makes its memory grow"
	}
	return []bench.Figure{
		figure("when it is loaded", "loaded", ""),
		figure("after a call", "called", calls),
		figure("of an instance that waits", "slot", waits),
	}
}

// print writes tables for people.
func (r *results) print(w io.Writer) {
	fmt.Fprintf(w, "%s, %d CPUs, load %s before and %s after\n\n", runtime.Version(), runtime.NumCPU(), r.LoadBefore, r.LoadAfter)
	if len(r.Pairs) > 0 {
		fmt.Fprintf(w, "Fresh calls and others, taking turns: medians of %d rounds of %d\n", r.Rounds, turns)
		t := bench.Table(w, tabwriter.AlignRight)
		fmt.Fprint(t, "\tfresh\tother\tratio\tp10\tp90\t\n")
		for _, p := range r.Pairs {
			fmt.Fprintf(t, "%s-%s\t%.0f us\t%.0f us\t%.3f\t%.3f\t%.3f\t\n", p.Job, p.Peer,
				micros(p.FreshMedian), micros(p.OtherMedian), p.Ratio, p.P10, p.P90)
		}
		t.Flush()
		fmt.Fprintln(w)
	}
	bench.PrintFigures(w, r.Targets)
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }
