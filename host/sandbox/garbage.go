package sandbox

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// mostGarbage is the number of bytes of garbage that may pile up, unless more bytes than
// that are in use.
const mostGarbage = 64 << 20

// LimitGarbage sets GOGC to a percentage as long as that allows at most mostGarbage. It lowers
// GOGC, down to 100, if more memory is in use: what the host allocates for a guest is soon
// garbage, and what is allocated during a collection counts as in use, so that a guest could
// have five times as much pile up again and again. Call it once in a process.
func LimitGarbage(percent int) {
	debug.SetGCPercent(percent)
	now := percent
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	type cycle struct{ _ *cycle } // dies with each collection
	var ended func(*cycle)
	ended = func(c *cycle) {
		metrics.Read(live)
		want := int(min(uint64(percent), max(100, mostGarbage*100/max(live[0].Value.Uint64(), 1))))
		if want != now {
			debug.SetGCPercent(want)
			now = want
		}
		runtime.SetFinalizer(c, ended)
	}
	runtime.SetFinalizer(new(cycle), ended)
}
