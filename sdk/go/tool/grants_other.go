//go:build !wasip1

package tool

// outsideGrants is about errors that only WASI has.
func outsideGrants(error) bool { return false }
