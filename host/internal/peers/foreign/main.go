//go:build bench

// Command foreign measures the cost of a call of a module that was made for another host,
// beside that host: a command beside wazero's own WASI, a plugin beside Extism's SDK for
// Go.
//
// Run it in host/internal/peers, when the machine is otherwise idle, after make build:
//
//	go run -tags bench ./foreign [-rounds N] [-only names] [-plugins DIR] [-json FILE]
//
// Both sides have compiled the module before. Ours is the call that the program makes,
// with its fuel, its limits and its grant; theirs follows their documentation, with a
// fresh instance for each call and neither fuel nor a deadline. "warm" is an instance of
// theirs that is reused in the state of the last call, which ours never is. A ratio is
// that of two calls, one right after the other, and its median is shown. "noise" is our
// call against itself.
//
// The folder of -plugins has plugins with tools of their own, of mcp.run and hyper-mcp;
// the first call of the first tool is measured, as make try-plugins makes it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"text/tabwriter"
	"time"

	"github.com/stockade-dev/stockade/host/internal/foreign"
	"github.com/stockade-dev/stockade/host/internal/peers/bench"
)

// result holds the measurements of a pair.
type result struct {
	Name         string
	Ours, Theirs []time.Duration
	Ratio        float64 // of theirs to ours, median: how many times faster ours is
	P10, P90     float64
	AtLeast      float64 `json:",omitempty"` // the target
}

func main() {
	foreign.RunCompileChild()
	plugins := flag.String("plugins", "", "a folder of plugins that list their tools")
	bench.Main("foreign", 5, "extism*,start*", func(o bench.Options) error { return run(o, *plugins) })
}

func run(o bench.Options, plugins string) (err error) {
	ctx := context.Background()
	s, err := setUp()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	pairs, err := s.pairs(ctx, o.IsSelected, plugins)
	if err != nil {
		return err
	}
	loaded := bench.Load()
	var all []*result
	for _, p := range pairs {
		all = append(all, &result{Name: p.name, AtLeast: p.atLeast})
	}
	// Garbage is collected between the rounds of a pair, not during a call.
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	for round := range o.Rounds {
		for i, p := range pairs {
			bench.Progress("round %d of %d: %s", round+1, o.Rounds, p.name)
			runtime.GC()
			if err := p.round(ctx, all[i]); err != nil {
				return fmt.Errorf("%s: %w", p.name, err)
			}
		}
	}
	fmt.Printf("%s, %d CPUs, load %s before and %s after\n\n", runtime.Version(), runtime.NumCPU(), loaded, bench.Load())
	t := bench.Table(os.Stdout, tabwriter.AlignRight)
	fmt.Fprint(t, "\tours\ttheirs\ttheirs / ours\tp10\tp90\ttarget\t\n")
	for _, r := range all {
		r.print(t)
	}
	t.Flush()
	return bench.WriteJSON(o.JSON, all)
}

func (r *result) print(t *tabwriter.Writer) {
	var ratios []float64
	for i := range r.Ours {
		ratios = append(ratios, float64(r.Theirs[i])/float64(r.Ours[i]))
	}
	r.Ratio, r.P10, r.P90 = bench.Median(ratios), bench.Quantile(ratios, 0.1), bench.Quantile(ratios, 0.9)
	target := ""
	if r.AtLeast > 0 {
		target = fmt.Sprintf(">= %.0f", r.AtLeast)
	}
	us := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }
	fmt.Fprintf(t, "%s\t%.0f us\t%.0f us\t%.2f\t%.2f\t%.2f\t%s\t\n", r.Name, us(bench.Median(r.Ours)), us(bench.Median(r.Theirs)), r.Ratio, r.P10, r.P90, target)
}

// A round ends after this many turns, or this time.
const (
	turns     = 25
	roundTime = 4 * time.Second
)

// round takes turns. The first turn, in which the caches are cold, does not count.
func (p *pair) round(ctx context.Context, r *result) error {
	for i, began := 0, time.Now(); i <= turns && (i < 3 || time.Since(began) < roundTime); i++ {
		var took [2]time.Duration
		for j, call := range []func(context.Context) error{p.ours, p.theirs} {
			start := time.Now()
			if err := call(ctx); err != nil {
				return fmt.Errorf("%s: %w", []string{"ours", "theirs"}[j], err)
			}
			took[j] = time.Since(start)
		}
		if i > 0 {
			r.Ours, r.Theirs = append(r.Ours, took[0]), append(r.Theirs, took[1])
		}
	}
	return nil
}
