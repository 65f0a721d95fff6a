package hosttest

import "flag"

var whole = flag.Bool("whole", false, "run all of what make test runs a part of: make test-whole")

// Whole reports whether all of a test is to run that repeats itself. Without it one round
// of each kind does.
func Whole() bool { return *whole }
