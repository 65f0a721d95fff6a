//go:build !wasip1

package config

// hostGet is the host's function. Natively there is no host, and nothing is
// configured; tests of this package set their own.
var hostGet = func(namePtr, nameLen, ret uint32) {}
