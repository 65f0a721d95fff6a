package linear

import "slices"

// Methods yields the ways to reset that work here, the fastest first.
func Methods() []Method { return slices.Collect(workingMethods) }
