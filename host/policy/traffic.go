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

// traffic counts the requests and bytes of a call. Copies of a grant share it.
type traffic struct {
	mu       sync.Mutex // guards the rest
	requests int
	sent     int64                    // bytes sent to all hosts
	byHost   map[string]*tool.Traffic // accounts, by [network.Decision.String]; nil: none yet
}

// account returns the account of a host; mu is held. At most 128 hosts have their own account,
// because a guest can name any number of hosts at no cost; the others share one.
func (t *traffic) account(host string) *tool.Traffic {
	const maxHosts = 128
	account := t.byHost[host]
	if account == nil {
		if len(t.byHost) >= maxHosts {
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

// TakeRequest counts one HTTP request to the host of d, and its bytes with URL and headers. It
// fails if the host is denied, or if the call would exceed its requests or bytes. Each
// redirect is a request of its own. Copies of the grant share the count.
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

// TakeSent counts further bytes that are sent on a connection that [Grant.TakeRequest] has
// allowed. It fails if the call would exceed its bytes.
func (g Grant) TakeSent(d network.Decision, bytes int64) error {
	if g.g == nil {
		return ErrNoGrant
	}
	t := &g.g.traffic
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.send(d, bytes, g.g.limits)
}

// send counts bytes that are sent, and fails if they exceed the limit; mu is held.
func (t *traffic) send(d network.Decision, bytes int64, limits Limits) error {
	if bytes < 0 || t.sent+bytes > int64(limits.HTTPSentBytes) {
		return fmt.Errorf("this call may send %d bytes in all its requests", limits.HTTPSentBytes)
	}
	t.sent += bytes
	t.account(d.String()).SentBytes += bytes
	return nil
}

// NoteReceived counts bytes that came from the host of d.
func (g Grant) NoteReceived(d network.Decision, bytes int64) {
	t := &g.terms().traffic
	t.mu.Lock()
	defer t.mu.Unlock()
	t.account(d.String()).ReceivedBytes += bytes
}

// NoteRefused counts a refused request to the host of d.
func (g Grant) NoteRefused(d network.Decision) {
	t := &g.terms().traffic
	t.mu.Lock()
	defer t.mu.Unlock()
	t.account(d.String()).Refused++
}

// Traffic returns the traffic of the call so far, one entry for each account, sorted by host.
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
