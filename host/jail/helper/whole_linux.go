//go:build !mutants

package main

// isOmitted reports whether a layer of the confinement is omitted: never, except with the
// build tag mutants, with which tests of the jail omit some.
func isOmitted(string) bool { return false }
