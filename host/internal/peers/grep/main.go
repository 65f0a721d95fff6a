//go:build bench

// Command grep measures a search in a source tree of 20,000 files, and in as many files
// of one KiB, with the built-in tool, in the sandbox and with a grant, beside ripgrep and
// the tool's own code as a native program on one core.
//
// Run it in host/internal/peers, on Linux, when the machine is otherwise idle,
// after make build; it needs ripgrep:
//
//	go run -tags bench ./grep [-rounds N] [-only names] [-json FILE]
//
// The names are those of the searches, such as literal or small-no-hit. The source tree
// is the source of Go, copied until there are enough files, with .gitignore files and
// files that they exclude, and the small files are pieces of the source; both trees are
// made once, in bin/peers. Everything is in the page cache when time is taken. All ways
// take turns, and a figure is the ratio of two searches that were made one after the
// other: its median. ripgrep and the native program are processes, and their start
// counts; ours is a call in a running process, as for an agent, and "process" is stockade
// call, with its record on the disk. In both a path is masked, as in every workspace.
// "noise" is our search against itself: differences as small as that mean nothing. All
// must find the same lines.
package main

import (
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/stockade-dev/stockade/host/internal/peers/bench"
	"github.com/stockade-dev/stockade/host/internal/peers/call/guest"
)

func main() {
	guest.RunCompileChild()
	debug.SetGCPercent(400) // as the program does
	bench.Main("grep", 7, "literal,no-*", run)
}

func run(o bench.Options) (err error) {
	s, err := setUp()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.box.Close()) }()
	small := map[string]bool{}
	var jobs []bench.Job
	for _, q := range searches {
		small[q.Name] = q.Small
		jobs = append(jobs, bench.Job{Name: q.Name, Measure: func() (*bench.JobResult, error) { return s.measure(q, o.Rounds) }})
	}
	return o.Compare(fmt.Sprintf("%d files, ", files), jobs, func(m *bench.JobResult) []bench.Figure {
		ofOther, ofOurs := m.RatioTo(bench.Ours, ripgrep), m.RatioTo(bench.Ours, native)
		ofOther.NoTarget, ofOther.AtMost = false, maxOfRipgrep
		if small[m.Name] {
			ofOther.AtMost = maxOfRipgrepSmall
		}
		ofOurs.NoTarget, ofOurs.AtMost = false, maxOfNative
		return []bench.Figure{ofOther, m.RatioTo(process, ripgrep), ofOurs}
	})
}

// The targets: the time of our search as a multiple of the other's.
const (
	maxOfRipgrep      = 1.5
	maxOfRipgrepSmall = 2.5
	maxOfNative       = 2.0
)

// measure makes a search in all ways, which must find the same lines.
func (s *setup) measure(q search, rounds int) (*bench.JobResult, error) {
	m := &bench.JobResult{Name: q.Name, Ways: []string{bench.Ours, ripgrep, native, process, bench.Noise}}
	all, err := s.ways(q, m)
	if err != nil {
		return nil, err
	}
	var want []string
	return m, m.Turns(rounds, func(round int, way string) (time.Duration, error) {
		start := time.Now()
		got, err := all[way]()
		took := time.Since(start)
		if round == 0 && way == bench.Ours {
			want, m.Note = got, fmt.Sprintf(", %d hits", len(got))
		}
		if err == nil && !slices.Equal(got, want) {
			err = fmt.Errorf("finds %d lines, and %s %d:\n%s", len(got), bench.Ours, len(want), diffLines(want, got))
		}
		return took, err
	})
}
