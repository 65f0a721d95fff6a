//go:build !wasip1

package tool

// outsideGrants is false: only WASI has such errors.
func outsideGrants(error) bool { return false }
