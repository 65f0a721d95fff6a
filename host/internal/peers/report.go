package main

import (
	"fmt"
	"io"
	"runtime"
	"text/tabwriter"
	"time"

	"github.com/stockade-dev/stockade/host/internal/peers/bench"
	"github.com/stockade-dev/stockade/host/sandbox/meter"
)

// print writes tables for people.
func (r *results) print(w io.Writer) {
	fmt.Fprintf(w, "%s, %d CPUs, load %s before and %s after\n\n", runtime.Version(), runtime.NumCPU(), r.LoadBefore, r.LoadAfter)
	if r.Pairs != nil {
		r.Pairs.print(w, r.Rounds)
	}
	if len(r.Stalls) > 0 {
		fmt.Fprintln(w, "runtime.GC() beside a guest, and the CPU time in which it uses up a slice of fuel")
		t := bench.Table(w, tabwriter.AlignRight)
		fmt.Fprint(t, "\tlongest\tmedian\tcount\tslice\t\n")
		for _, s := range r.Stalls {
			slice := ""
			if s.NanosPerUnit > 0 {
				slice = fmt.Sprintf("%.1f ms", s.NanosPerUnit*meter.DefaultSlice/1e6)
			}
			fmt.Fprintf(t, "%s\t%.1f ms\t%.1f ms\t%d\t%s\t\n", s.Guest, bench.MS(s.Longest), bench.MS(s.Median), s.Count, slice)
		}
		t.Flush()
		fmt.Fprintln(w)
	}
	bench.PrintFigures(w, r.Targets)
}

func (r *pairResults) print(w io.Writer, rounds int) {
	fmt.Fprintf(w, "CPU time of _start, and as a multiple of the same engine's without (median of %d rounds, of no more than 2 for %s)\n",
		rounds, closeOnDone)
	t := bench.Table(w, tabwriter.AlignRight)
	fmt.Fprint(t, "\t")
	for i, pair := range pairs {
		if newBase(i) {
			fmt.Fprint(t, pair.base, "\t")
		}
		fmt.Fprint(t, pair.variant, "\t")
	}
	fmt.Fprintln(t)
	for _, l := range r.Workloads {
		row(t, l.Name, func(base string) string { return l.CPU[base].Round(time.Millisecond).String() },
			func(variant string) float64 { return l.Ratio[variant] })
	}
	none := func(string) string { return "" }
	row(t, "geomean", none, func(variant string) float64 { return r.Summary[variant].Geomean })
	row(t, "median", none, func(variant string) float64 { return r.Summary[variant].Median })
	row(t, "worst", none, func(variant string) float64 { return r.Summary[variant].Worst })
	row(t, "best", none, func(variant string) float64 { return r.Summary[variant].Best })
	row(t, "geomean of fastest runs", none, func(variant string) float64 { return r.Summary[variant].Fastest })
	t.Flush()
	fmt.Fprintln(w)
}

// newBase reports whether pair i has another base than the pair before.
func newBase(i int) bool { return i == 0 || pairs[i].base != pairs[i-1].base }

// row writes one row of the table: before the ratios to a base, the time of the base.
func row(w io.Writer, name string, base func(string) string, ratio func(string) float64) {
	fmt.Fprint(w, name, "\t")
	for i, pair := range pairs {
		if newBase(i) {
			fmt.Fprint(w, base(pair.base), "\t")
		}
		fmt.Fprintf(w, "%.3f\t", ratio(pair.variant))
	}
	fmt.Fprintln(w)
}
