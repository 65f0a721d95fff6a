//go:build bench

package main

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/stockade-dev/stockade/host/internal/peers/bench"
)

// The targets: how often as long as another our search may take.
const (
	ofRipgrep      = 1.5
	ofRipgrepSmall = 2.5
	ofNative       = 2.0
)

func (r *results) figures() []bench.Figure {
	var out []bench.Figure
	for _, m := range r.Searches {
		most := ofRipgrep
		if m.Search.Small {
			most = ofRipgrepSmall
		}
		out = append(out,
			bench.Figure{Name: m.Search.Name + " / ripgrep", Measured: bench.PairedRatio(m.Took[ours], m.Took[ripgrep]), AtMost: most, Unit: bench.Ratio},
			bench.Figure{Name: m.Search.Name + " / ripgrep, process", Measured: bench.PairedRatio(m.Took[process], m.Took[ripgrep]), NoTarget: true, Unit: bench.Ratio},
			bench.Figure{Name: m.Search.Name + " / native", Measured: bench.PairedRatio(m.Took[ours], m.Took[native]), AtMost: ofNative, Unit: bench.Ratio})
	}
	return out
}

func (r *results) print(w io.Writer) {
	fmt.Fprintf(w, "%d files, %d rounds, load %s before and %s after; medians in ms\n\n", files, r.Rounds, r.LoadBefore, r.LoadAfter)
	t := bench.Table(w, tabwriter.AlignRight)
	fmt.Fprint(t, "\thits\t")
	for _, way := range ways {
		fmt.Fprintf(t, "%s\t", way)
	}
	fmt.Fprint(t, "noise\tMfuel\tpeak MiB\t\n")
	for _, m := range r.Searches {
		fmt.Fprintf(t, "%s\t%d\t", m.Search.Name, m.Hits)
		for _, way := range ways {
			fmt.Fprintf(t, "%.1f\t", bench.MS(bench.Median(m.Took[way])))
		}
		fmt.Fprintf(t, "%.3f\t%d\t%d\t\n", bench.PairedRatio(m.Took[ours], m.Took[noise]), m.FuelUsed/1e6, m.PeakBytes>>20)
	}
	t.Flush()
	fmt.Fprintln(w)
	bench.PrintFigures(w, r.Targets)
}
