//go:build !wasip1

package progress

// The host's functions. Natively there is no host: nobody listens and nobody
// gives up. Tests of this package set their own.
var (
	hostReport    = func(done uint64, hasTotal uint32, total uint64, notePtr, noteLen uint32) {}
	hostCancelled = func() uint32 { return 0 }
)
