//go:build bench

// Command grep measures what it takes to search a source tree of 20,000 files,
// and as many files of one KiB, with the built-in tool, in the sandbox and with
// a grant, next to ripgrep and to the tool's own code as a native program on one
// core.
//
// Run it in host/internal/peers, on Linux, when the machine is otherwise idle,
// after make build; it needs ripgrep:
//
//	go run -tags bench ./grep [-rounds N] [-only names] [-json FILE]
//
// The names are those of the searches, such as literal or small-no-hit. The
// source tree is the source of Go, copied until there are enough files, with
// .gitignore files and files that they exclude, and the small files are pieces
// of it; both trees are made once, in bin/peers. Everything is in the page
// cache when time is taken. All ways take turns, and a figure is the ratio of
// two searches that were made one after the other: its median. ripgrep and the
// native program are processes, and their start counts; ours is a call in a
// process that runs, as it is for an agent, and "process" is stockade call,
// with its record on the disk. In both a path is masked, as in every workspace.
// "noise" is our search against itself: differences as small as that mean
// nothing. All have to find the same lines.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"time"

	"github.com/stockade-dev/stockade/host/internal/peers/bench"
	"github.com/stockade-dev/stockade/host/internal/peers/call/guest"
)

// results is what a run of the benchmark found out.
type results struct {
	Rounds                int
	LoadBefore, LoadAfter string
	Searches              []*measured
	Targets               []bench.Figure
}

// measured is what came of one search.
type measured struct {
	Search    search
	Hits      int
	Took      map[string][]time.Duration
	FuelUsed  uint64
	PeakBytes uint64
}

func main() {
	guest.Compile()
	debug.SetGCPercent(400) // as the program does
	rounds := flag.Int("rounds", 7, "how often each search is made")
	only := flag.String("only", "", "comma-separated patterns of what to search, such as 'literal,no-*'")
	file := flag.String("json", "", "also write everything that was measured to this `file`")
	flag.Parse()
	if err := run(*rounds, bench.Selection(*only), *file); err != nil {
		fmt.Fprintln(os.Stderr, "grep:", err)
		os.Exit(1)
	}
}

func run(rounds int, selected func(string) bool, file string) (err error) {
	if rounds < 1 {
		return errors.New("there has to be a round at least")
	}
	s, err := setUp()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.box.Close()) }()
	r := results{Rounds: rounds, LoadBefore: bench.Load()}
	for _, q := range searches {
		if !selected(q.Name) {
			continue
		}
		m, err := s.measure(q, rounds)
		if err != nil {
			return fmt.Errorf("%s: %w", q.Name, err)
		}
		r.Searches = append(r.Searches, m)
	}
	r.LoadAfter = bench.Load()
	r.Targets = r.figures()
	r.print(os.Stdout)
	return bench.WriteJSON(file, r)
}

// measure makes a search in all ways, round after round. What comes before the
// first one warms the caches and compares what is found.
func (s *setup) measure(q search, rounds int) (*measured, error) {
	all, err := s.ways(q)
	if err != nil {
		return nil, err
	}
	m := &measured{Search: q, Took: map[string][]time.Duration{}}
	var want []string
	for round := range rounds + 1 {
		if round > 0 {
			bench.Progress("round %d of %d: %s", round, rounds, q.Name)
		}
		for i, way := range ways {
			start := time.Now()
			got, err := all[way]()
			took := time.Since(start)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", way, err)
			}
			if round > 0 {
				m.Took[way] = append(m.Took[way], took)
				continue
			}
			if i == 0 {
				want, m.Hits = got, len(got)
			} else if !slices.Equal(got, want) {
				return nil, fmt.Errorf("%s finds %d lines, and %s %d:\n%s", way, len(got), ways[0], len(want), different(want, got))
			}
		}
	}
	m.FuelUsed, m.PeakBytes = used[q.Name].FuelUsed, used[q.Name].PeakMemoryBytes
	return m, nil
}
