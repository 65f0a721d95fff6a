//go:build !wasip1

package log

// hostLog is the host's function. Natively there is no host and messages go
// nowhere; tests of this package put their own here.
var hostLog = func(level, messagePtr, messageLen uint32) {}
