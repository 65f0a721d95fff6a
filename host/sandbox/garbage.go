package sandbox

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// maxGarbage is the number of bytes of garbage that may gather, unless more memory is in use.
const maxGarbage = 64 << 20

// LimitGarbage sets GOGC to percent, and lowers it, down to 100, while so much memory is in
// use that more than maxGarbage could gather. Memory that the host allocates for a guest is
// soon garbage, but counts as in use if it is allocated during a collection. Without the limit
// a guest could make five times as much gather again and again. Call it once in a process.
func LimitGarbage(percent int) {
	debug.SetGCPercent(percent)
	now := percent
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	type cycle struct{ _ *cycle } // its finalizer runs after each collection
	var ended func(*cycle)
	ended = func(c *cycle) {
		metrics.Read(live)
		want := int(min(uint64(percent), max(100, maxGarbage*100/max(live[0].Value.Uint64(), 1))))
		if want != now {
			debug.SetGCPercent(want)
			now = want
		}
		runtime.SetFinalizer(c, ended)
	}
	runtime.SetFinalizer(new(cycle), ended)
}
