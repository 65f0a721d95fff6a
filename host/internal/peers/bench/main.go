package bench

import (
	"errors"
	"flag"
	"fmt"
	"os"
)

// Options holds the command line of a benchmark.
type Options struct {
	Rounds     int                    // at least 1
	IsSelected func(name string) bool // reports whether to measure a name
	JSON       string                 // file for all measurements; empty: none
}

// Main is the body of a main function: it reads -rounds, -only and -json, in addition to
// flags that were declared before, and runs the benchmark. rounds is the default, and
// such has examples of names for -only.
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
