package bench

import (
	"errors"
	"flag"
	"fmt"
	"os"
)

// Options are what a benchmark is told on its command line.
type Options struct {
	Rounds     int                    // 1 at least
	IsSelected func(name string) bool // what to measure
	JSON       string                 // a file for everything that was measured; empty: none
}

// Main is the rest of a main function: it reads -rounds, -only and -json, besides the
// flags that were declared before, and runs the benchmark. such are names that one may
// select.
func Main(name string, rounds int, such string, run func(Options) error) {
	var o Options
	flag.IntVar(&o.Rounds, "rounds", rounds, "how often everything is done")
	only := flag.String("only", "", "comma-separated patterns of what to measure, such as '"+such+"'")
	flag.StringVar(&o.JSON, "json", "", "also write everything that was measured to this `file`")
	flag.Parse()
	o.IsSelected = Selection(*only)
	err := errors.New("there has to be a round at least")
	if o.Rounds > 0 {
		err = run(o)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}
