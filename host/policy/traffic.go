package policy

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/stockade-dev/stockade/host/policy/network"
	"github.com/stockade-dev/stockade/host/tool"
)

// traffic is what a call has sent and received. Copies of a grant share it.
type traffic struct {
	mu       sync.Mutex // guards the rest
	requests int
	sent     int64
	byHost   map[string]*tool.Traffic
}

// account returns the account of a host; mu is held. A host that was never allowed
// costs the guest nothing, so there is a bound on them.
func (t *traffic) account(host string) *tool.Traffic {
	const most = 128
	account := t.byHost[host]
	if account == nil {
		if len(t.byHost) >= most {
			host = "others"
		}
		if t.byHost == nil {
			t.byHost = map[string]*tool.Traffic{}
		}
		if account = t.byHost[host]; account == nil {
			account = &tool.Traffic{Host: host}
			t.byHost[host] = account
		}
	}
	return account
}

// TakeRequest allows one HTTP request of so many bytes, its URL and headers
// among them, to a host that was decided on. Each redirect is a request. The
// account holds for the call, so copies of the grant share it.
func (g Grant) TakeRequest(d network.Decision, bytes int64) error {
	switch {
	case g.g == nil:
		return ErrNoGrant
	case g.g.network == nil && g.g.exec.Network == nil:
		return errors.New("this call may not use the network")
	case d.Err() != nil:
		return d.Err()
	}
	t, limits := &g.g.traffic, g.g.limits
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.requests >= limits.HTTPRequests {
		return fmt.Errorf("this call has made its %d requests", limits.HTTPRequests)
	}
	if err := t.send(d, bytes, limits); err != nil {
		return err
	}
	t.requests++
	t.account(d.String()).Requests++
	return nil
}

// TakeSent allows so many bytes more to be sent on a connection that
// [Grant.TakeRequest] has allowed.
func (g Grant) TakeSent(d network.Decision, bytes int64) error {
	if g.g == nil {
		return ErrNoGrant
	}
	t := &g.g.traffic
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.send(d, bytes, g.g.limits)
}

// send counts what is sent; mu is held.
func (t *traffic) send(d network.Decision, bytes int64, limits Limits) error {
	if bytes < 0 || t.sent+bytes > int64(limits.HTTPSentBytes) {
		return fmt.Errorf("this call may send %d bytes in all its requests", limits.HTTPSentBytes)
	}
	t.sent += bytes
	t.account(d.String()).SentBytes += bytes
	return nil
}

// NoteReceived counts what came back.
func (g Grant) NoteReceived(d network.Decision, bytes int64) {
	t := &g.terms().traffic
	t.mu.Lock()
	defer t.mu.Unlock()
	t.account(d.String()).ReceivedBytes += bytes
}

// NoteRefused counts a host that was asked for in vain.
func (g Grant) NoteRefused(d network.Decision) {
	t := &g.terms().traffic
	t.mu.Lock()
	defer t.mu.Unlock()
	t.account(d.String()).Refused++
}

// Traffic lists what the call has sent and received so far, sorted by host.
func (g Grant) Traffic() []tool.Traffic {
	t := &g.terms().traffic
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []tool.Traffic
	for _, account := range slices.SortedFunc(maps.Values(t.byHost), func(a, b *tool.Traffic) int { return strings.Compare(a.Host, b.Host) }) {
		out = append(out, *account)
	}
	return out
}
