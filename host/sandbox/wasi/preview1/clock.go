package preview1

import (
	"time"

	"github.com/stockade-dev/stockade/host/sandbox/wasi"
)

// The clocks. The specification has two more, of processor time; guests get neither.
const (
	clockRealtime = iota
	clockMonotonic
)

func clockResGet(g guest) wasi.Errno {
	if g.u32(0) > clockMonotonic {
		return wasi.EINVAL
	}
	out, errno := g.result(1, 8)
	if errno != 0 {
		return errno
	}
	le.PutUint64(out, uint64(resolution))
	return 0
}

func clockTimeGet(g guest) wasi.Errno {
	now, errno := g.w.clock(g.u32(0))
	if errno != 0 {
		return errno
	}
	out, errno := g.result(2, 8)
	if errno != 0 {
		return errno
	}
	le.PutUint64(out, now)
	return 0
}

// resolution is the resolution of the clocks, in nanoseconds. It is too coarse to time
// the effect of a guest on the caches of the processor.
const resolution = int64(time.Millisecond)

// clock returns the time of the clock id in nanoseconds; EINVAL: there is no such clock.
func (w *World) clock(id uint32) (uint64, wasi.Errno) {
	switch id {
	case clockRealtime:
		return w.realtime(), 0
	case clockMonotonic:
		return w.coarsen(int64(w.opts.Monotonic()), &w.lastMono), 0
	}
	return 0, wasi.EINVAL
}

func (w *World) realtime() uint64 { return w.coarsen(w.opts.Wall().UnixNano(), &w.lastWall) }

// coarsen rounds now down to the resolution. The result is never below last, the previous
// result, which it replaces.
func (w *World) coarsen(now int64, last *uint64) uint64 {
	now = max(now, 0)
	*last = max(*last, uint64(now-now%resolution))
	return *last
}
