//go:build bench

// Command jail measures the cost of a command in the jail, beside plain bash and bash in
// bubblewrap.
//
// Run it in host/internal/peers, on Linux, when the machine is otherwise idle,
// after make helper; it needs bubblewrap (bwrap) where namespaces are allowed:
//
//	go run -tags bench ./jail [-rounds N] [-only names] [-json FILE]
//
// The names are those of the workloads, such as empty or many-names-empty. The tier is
// the best available; tier 1 is measured where user namespaces are forbidden, as make
// bench-jail does in a user namespace of its own.
//
// All ways take turns, in another order each round, and a figure is the ratio of two ways
// in one round: its median. "cold" starts a helper for the command; for "waiting" it was
// started after the previous command, as for all commands of an agent but the first.
// "staged" is like "waiting", with changes that are staged, listed and then committed.
// Each way starts after a pause, in which the kernel finishes the work of the last way,
// and the helper for the next command starts. "noise" is plain bash once more:
// differences as small as that mean nothing.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"text/tabwriter"
	"time"

	"github.com/stockade-dev/stockade/host/internal/peers/bench"
)

// results is the outcome of a run of the benchmark.
type results struct {
	Tier                  string
	Rounds                int
	LoadBefore, LoadAfter string
	Loads                 []*loadResult
	Targets               []bench.Figure
}

// loadResult holds the measurements of one workload. Took has equally many times for each
// way.
type loadResult struct {
	Load workload
	Took map[string][]time.Duration
}

func main() {
	debug.SetGCPercent(400) // as the program does
	bench.Main("jail", 7, "empty,many-*", run)
}

func run(o bench.Options) (err error) {
	s, err := setUp()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	r := results{Tier: s.jail.Tiers().Tier.String(), Rounds: o.Rounds, LoadBefore: bench.Load()}
	for _, l := range workloads {
		if !o.IsSelected(l.Name) {
			continue
		}
		bench.Progress("%s", l.Name)
		m, err := s.measure(l, o.Rounds)
		if err != nil {
			return fmt.Errorf("%s: %w", l.Name, err)
		}
		r.Loads = append(r.Loads, m)
	}
	r.LoadAfter = bench.Load()
	r.Targets = r.figures()
	r.print(os.Stdout)
	return bench.WriteJSON(o.JSON, r)
}

// measure runs a command in all ways, round after round. The first round warms the
// caches.
func (s *setup) measure(l workload, rounds int) (*loadResult, error) {
	all := s.ways(l)
	m := &loadResult{Load: l, Took: map[string][]time.Duration{}}
	for round := range rounds + 1 {
		for i := range all {
			w := all[(round+i)%len(all)]
			if err := w.prepare(); err != nil {
				return nil, fmt.Errorf("%s: %w", w.name, err)
			}
			start := time.Now()
			err := w.run()
			took := time.Since(start)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", w.name, err)
			}
			if round > 0 {
				m.Took[w.name] = append(m.Took[w.name], took)
			}
		}
	}
	return m, nil
}

func (r *results) figures() []bench.Figure {
	var out []bench.Figure
	for _, m := range r.Loads {
		for _, c := range []struct {
			way, other string
			most       float64
		}{
			{cold, plain, m.Load.cold}, {waiting, plain, m.Load.waiting}, {waiting, cold, 0}, {bwrap, plain, 0}, {waiting, bwrap, 0}, {staged, waiting, m.Load.staged},
		} {
			if len(m.Took[c.way]) > 0 && len(m.Took[c.other]) > 0 {
				out = append(out, bench.Figure{Name: m.Load.Name + ", " + c.way + " / " + c.other, Measured: bench.PairedRatio(m.Took[c.way], m.Took[c.other]), AtMost: c.most, NoTarget: c.most == 0, Unit: bench.Ratio})
			}
		}
	}
	return out
}

func (r *results) print(w io.Writer) {
	fmt.Fprintf(w, "%s, %d rounds, load %s before and %s after; medians and least in ms\n\n", r.Tier, r.Rounds, r.LoadBefore, r.LoadAfter)
	t := bench.Table(w, tabwriter.AlignRight)
	fmt.Fprint(t, "\t")
	for _, name := range names {
		fmt.Fprintf(t, "%s\t\t", name)
	}
	fmt.Fprintln(t)
	for _, m := range r.Loads {
		fmt.Fprintf(t, "%s\t", m.Load.Name)
		for _, name := range names {
			if took := m.Took[name]; len(took) > 0 {
				fmt.Fprintf(t, "%.1f\t%.1f\t", bench.MS(bench.Median(took)), bench.MS(bench.Quantile(took, 0)))
			} else {
				fmt.Fprint(t, "-\t-\t")
			}
		}
		fmt.Fprintln(t)
	}
	t.Flush()
	fmt.Fprintln(w)
	bench.PrintFigures(w, r.Targets)
}
