package dispatch

import (
	"context"
	"sync"
	"time"

	"github.com/stockade-dev/stockade/host/tool"
)

// rateLimits holds the start times of the calls of tools with a rate limit. A resumed session
// begins without any.
type rateLimits struct {
	mu     sync.Mutex
	starts map[string][]time.Time // by tool; those of the last minute, and of calls that wait for their start
}

// reserve stores and returns the time at which a call may begin: now, or a second after the
// start of the call before it. If perMinute calls have begun in the last minute, or wait to begin,
// it stores nothing, and wait is the time until a call may begin; else wait is 0.
func (r *rateLimits) reserve(name string, perMinute int, now time.Time) (at time.Time, wait time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.starts == nil {
		r.starts = map[string][]time.Time{}
	}
	starts := r.starts[name]
	for len(starts) > 0 && now.Sub(starts[0]) >= time.Minute {
		starts = starts[1:]
	}
	if len(starts) >= perMinute {
		return at, starts[0].Add(time.Minute).Sub(now)
	}
	at = now
	if n := len(starts); n > 0 && starts[n-1].Add(time.Second).After(now) {
		at = starts[n-1].Add(time.Second)
	}
	r.starts[name] = append(starts, at)
	return at, 0
}

// waitForRate waits until the rate limit of the tool lets the call begin. It refuses the
// call if the limit of the minute is reached.
func (p *pending) waitForRate(ctx context.Context, entry *tool.Entry) error {
	if entry.PerMinute == 0 {
		return nil
	}
	now := time.Now()
	at, wait := p.d.rateLimits.reserve(entry.Name, entry.PerMinute, now)
	if wait > 0 {
		seconds := int((wait + time.Second - 1) / time.Second)
		r := tool.Failed(tool.CodeRateLimited, tool.IOError, "%s has been called %d times in a minute, which is its limit", entry.Name, entry.PerMinute)
		r.Err.Hint = tool.Advise("call it again in %d seconds, and go on with something else until then", seconds)
		return &refusal{r}
	}
	timer := time.NewTimer(at.Sub(now))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return p.cancelledError()
	}
}
