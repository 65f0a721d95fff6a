package bench

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// Ours is the name of the way that is compared with the others, and Noise that of a
// second run of it: differences as small as those between the two mean nothing.
const (
	Ours  = "ours"
	Noise = "noise"
)

// Job is a task that is done in several ways.
type Job struct {
	Name    string
	Measure func() (*JobResult, error)
}

// JobResult holds the measurements of a job.
type JobResult struct {
	Name      string
	Note      string   `json:",omitempty"` // printed after the name
	Ways      []string // in the order of the output
	Took      map[string][]time.Duration
	FuelUsed  uint64 // of the last call of ours
	PeakBytes uint64
}

// Turns does a job in all ways, round after round. turn does the job once and returns its
// duration; round 0 warms the caches and does not count.
func (m *JobResult) Turns(rounds int, turn func(round int, way string) (time.Duration, error)) error {
	m.Took = map[string][]time.Duration{}
	for round := range rounds + 1 {
		Progress("round %d of %d: %s", round, rounds, m.Name)
		for _, way := range m.Ways {
			took, err := turn(round, way)
			if err != nil {
				return fmt.Errorf("%s: %w", way, err)
			}
			if round > 0 {
				m.Took[way] = append(m.Took[way], took)
			}
		}
	}
	return nil
}

// RatioTo returns the figure for the duration of one way as a multiple of another,
// without a target.
func (m *JobResult) RatioTo(way, other string) Figure {
	name := m.Name + " / " + other
	if way != Ours {
		name = m.Name + " " + way + " / " + other
	}
	return Figure{Name: name, Measured: PairedRatio(m.Took[way], m.Took[other]), NoTarget: true, Unit: Ratio}
}

// Compare measures the selected jobs, and prints their durations, after the text what,
// and the figures derived from them.
func (o Options) Compare(what string, jobs []Job, figures func(*JobResult) []Figure) error {
	r := struct {
		Rounds                int
		LoadBefore, LoadAfter string
		Jobs                  []*JobResult
		Figures               []Figure
	}{Rounds: o.Rounds, LoadBefore: Load()}
	for _, j := range jobs {
		if !o.IsSelected(j.Name) {
			continue
		}
		m, err := j.Measure()
		if err != nil {
			return fmt.Errorf("%s: %w", j.Name, err)
		}
		r.Jobs = append(r.Jobs, m)
		r.Figures = append(r.Figures, figures(m)...)
	}
	r.LoadAfter = Load()
	fmt.Printf("%s%d rounds, load %s before and %s after; medians in ms\n\n", what, r.Rounds, r.LoadBefore, r.LoadAfter)
	t := Table(os.Stdout, tabwriter.AlignRight)
	var ways []string
	for _, m := range r.Jobs {
		if !slices.Equal(m.Ways, ways) {
			ways = m.Ways
			fmt.Fprintf(t, "\t%s\tnoise ratio\tMfuel\tpeak MiB\t\n", strings.Join(ways, "\t"))
		}
		fmt.Fprintf(t, "%s%s\t", m.Name, m.Note)
		for _, way := range ways {
			fmt.Fprintf(t, "%.1f\t", MS(Median(m.Took[way])))
		}
		fmt.Fprintf(t, "%.3f\t%d\t%d\t\n", PairedRatio(m.Took[ways[0]], m.Took[Noise]), m.FuelUsed/1e6, m.PeakBytes>>20)
	}
	t.Flush()
	fmt.Println()
	PrintFigures(os.Stdout, r.Figures)
	return WriteJSON(o.JSON, r)
}
