//go:build !wasip1

package config

// hostGet is the host's function. Natively there is no host, and nothing is
// configured; tests of this package put their own here.
var hostGet = func(namePtr, nameLen, ret uint32) {}
