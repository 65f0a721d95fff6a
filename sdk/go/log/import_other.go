//go:build !wasip1

package log

// hostLog is the host's function. Natively there is no host and messages go
// nowhere; tests of this package set their own.
var hostLog = func(level, messagePtr, messageLen uint32) {}
