//go:build !wasip1

package exec

// hostRun is the host's function. Natively there is no host; tests of this package set
// their own.
var hostRun = func(argvPtr, argvLen, hasDir, dirPtr, dirLen, timeoutMillis, maxOutput, mergeStderr, ret uint32) {
	panic("exec: no host: the program does not run as a Stockade module")
}
