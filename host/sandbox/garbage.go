package sandbox

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// mostGarbage is how much garbage piles up beside what is in use, in bytes, unless more
// than that is in use.
const mostGarbage = 64 << 20

// LimitGarbage sets GOGC to a percentage as long as that comes to mostGarbage at most.
// Where more is in use it is lowered, down to 100: what the host makes for a guest is
// garbage soon, and what is made while garbage is collected counts as in use then, so that
// a guest could have five times as much pile up again and again. It is called once in a
// process.
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
