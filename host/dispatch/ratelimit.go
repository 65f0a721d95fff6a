package dispatch

import (
	"context"
	"sync"
	"time"

	"github.com/stockade-dev/stockade/host/tool"
)

// rateLimits is when calls of tools began that may not begin at any pace. A session that
// goes on in another process begins anew.
type rateLimits struct {
	mu     sync.Mutex
	starts map[string][]time.Time // of the last minute, by tool; some are still to come
}

// reserve returns when a call may begin; or how long it would have to wait for that,
// because as many as may have begun in the last minute.
func (p *rateLimits) reserve(name string, perMinute int, now time.Time) (at time.Time, wait time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.starts == nil {
		p.starts = map[string][]time.Time{}
	}
	starts := p.starts[name]
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
	p.starts[name] = append(starts, at)
	return at, 0
}

// waitForRate waits until a call may begin, or refuses it.
func (p *pending) waitForRate(ctx context.Context, entry *tool.Entry) error {
	if entry.PerMinute == 0 {
		return nil
	}
	now := time.Now()
	at, wait := p.d.rateLimits.reserve(entry.Name, entry.PerMinute, now)
	if wait > 0 {
		seconds := int((wait + time.Second - 1) / time.Second)
		r := tool.Failed(tool.CodeRateLimited, tool.IOError, "%s has been called %d times in a minute, which is as often as it may be", entry.Name, entry.PerMinute)
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
