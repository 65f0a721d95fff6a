//go:build !linux

package wasi

// openRoot opens a directory; links in its name are followed, once.
func openRoot(name string) (root, error) { return openOSRoot(name) }
