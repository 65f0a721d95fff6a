//go:build !linux

package githistory

// born is not known.
func born(string) int64 { return 0 }
