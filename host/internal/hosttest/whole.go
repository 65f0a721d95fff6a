package hosttest

import "flag"

var whole = flag.Bool("whole", false, "run all of what make test runs a part of: make test-whole")

// Whole reports whether tests that repeat themselves run all their rounds. Otherwise they run
// one round of each kind.
func Whole() bool { return *whole }
