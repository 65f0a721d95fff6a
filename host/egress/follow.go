package egress

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"net/netip"
	"time"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/policy/network"
	"github.com/stockade-dev/stockade/host/services"
)

// FollowingClient returns a client for what a person fetches: modules and their
// signatures, from registries and web servers. It is [Egress.Client] but for three
// things. It follows redirects, at most 5, of which each is decided like any
// request; one that leaves the host, the port or the protocol of the first request
// takes no credentials and no body along, and none leads from https to http. Nothing
// is decompressed. A server that takes or sends nothing for so long as idle (0: 30
// seconds) is given up, with an [services.Timeout]; the time of the whole and the size
// are for the client's user to bound.
func (e *Egress) FollowingClient(to *network.Network, idle time.Duration) *http.Client {
	c := e.newTransport(to)
	c.next.DisableCompression = true
	return &http.Client{Transport: &idleTransport{next: c, idle: cmp.Or(idle, 30*time.Second)}, CheckRedirect: checkRedirect}
}

// ClientFactory makes such clients: for the server at a URL, which the person has named, or
// a file of somebody else's, and for whoever else the person's rules allow, all of it
// under the ceiling.
func (e *Egress) ClientFactory(rules []network.Rule, ceiling policy.Ceiling, byPerson bool) func(base string) (*http.Client, error) {
	return func(base string) (*http.Client, error) {
		to, err := FetchNetwork(base, rules, byPerson)
		if err != nil {
			return nil, err
		}
		return e.FollowingClient(ceiling.RestrictNetwork(to), 0), nil
	}
}

// FetchNetwork is the network of a [Egress.FollowingClient] for the server that a
// person has named by a URL: that host, this machine at that port if the host is
// localhost, and what the user's rules allow, all but what they deny. A name that
// leads to a private network needs a rule for the address. If not a person has named
// the server but a file that came with a project, so does an address that is not
// public, and this machine: nobody else points it at what only it can reach. An
// administrator's list goes on top of it, with [network.Network.Restrict].
func FetchNetwork(base string, rules []network.Rule, byPerson bool) (*network.Network, error) {
	t, err := parseTarget(base)
	if err != nil {
		return nil, err
	}
	own := network.Rule{Allow: true, Name: t.Host.Name(), Port: t.Port, Protocol: t.Protocol}
	if t.Host.IsAddr() {
		own.Prefix = netip.PrefixFrom(t.Host.Addr(), t.Host.Addr().BitLen())
	}
	if t.Host.IsAddr() && !byPerson && !network.Public(t.Host.Addr()) {
		return network.New(rules), nil
	}
	all := append([]network.Rule{own}, rules...)
	if own.Name == "localhost" && byPerson {
		for _, p := range []string{"127.0.0.0/8", "::1/128"} {
			all = append(all, network.Rule{Allow: true, Prefix: netip.MustParsePrefix(p), Port: t.Port, Protocol: t.Protocol})
		}
	}
	return network.New(all), nil
}

// checkRedirect is asked before each redirect; the transport then decides on it.
func checkRedirect(req *http.Request, via []*http.Request) error {
	from := via[len(via)-1].URL.Host
	if len(via) > maxRedirects {
		return failf(services.Protocol, "more than %d redirects", maxRedirects)
	}
	// The URL that net/http has made of the answer is read again as all are.
	next, err := parseTarget(req.URL.String())
	if err != nil {
		return failf(services.Denied, "the redirect of %s is refused: %w", from, err)
	}
	left := false
	for _, r := range via {
		before, err := parseTarget(r.URL.String())
		if err != nil {
			return fail(services.Invalid, err)
		}
		if before.Protocol == network.HTTPS && next.Protocol != network.HTTPS {
			return failf(services.Denied, "the redirect of %s is refused: it leads from https to http", from)
		}
		left = left || before.Origin != next.Origin
	}
	if !left {
		return nil
	}
	if req.Body != nil && req.Body != http.NoBody {
		return failf(services.Denied, "the redirect of %s is refused: the body was not meant for %s", from, next.url.Host)
	}
	// net/http makes the headers of each redirect out of those of the first request,
	// so they are taken out again on the way back, too.
	req.Header = crossOriginHeaders(req.Header)
	return nil
}

// idleTransport gives up on servers that stand still.
type idleTransport struct {
	next *decidingTransport
	idle time.Duration
}

// RoundTrip implements http.RoundTripper.
func (p *idleTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(req.Context())
	stall := failf(services.Timeout, "%s has not answered or taken anything for %s", req.URL.Host, p.idle)
	w := &watch{ctx: ctx, cancel: cancel, idle: p.idle}
	w.timer = time.AfterFunc(p.idle, func() { cancel(stall) })
	out := req.Clone(ctx)
	if req.Body != nil && req.Body != http.NoBody {
		out.Body = &sentBody{ReadCloser: req.Body, watch: w}
	}
	resp, err := p.next.RoundTrip(out)
	w.timer.Stop()
	if err != nil {
		err = w.stallError(err)
		cancel(nil)
		return nil, err
	}
	resp.Body = &receivedBody{ReadCloser: resp.Body, watch: w}
	return resp, nil
}

// CloseIdleConnections is what http.Client.CloseIdleConnections calls.
func (p *idleTransport) CloseIdleConnections() { p.next.CloseIdleConnections() }

// watch ends a request when nothing has moved for a while.
type watch struct {
	ctx    context.Context // of this request
	cancel context.CancelCauseFunc
	idle   time.Duration
	timer  *time.Timer
}

// stallError says that the server stood still, where that is why a request has failed.
func (w *watch) stallError(err error) error {
	if stall, ok := errors.AsType[*services.Error](context.Cause(w.ctx)); ok {
		return stall
	}
	return err
}

// sentBody is the body of a request; what is read of it has been taken.
type sentBody struct {
	io.ReadCloser
	watch *watch
}

func (s *sentBody) Read(p []byte) (int, error) {
	s.watch.timer.Reset(s.watch.idle)
	return s.ReadCloser.Read(p)
}

// receivedBody is the body of an answer. Only waiting counts, and not what its reader
// does meanwhile.
type receivedBody struct {
	io.ReadCloser
	watch *watch
}

func (a *receivedBody) Read(p []byte) (int, error) {
	a.watch.timer.Reset(a.watch.idle)
	n, err := a.ReadCloser.Read(p)
	a.watch.timer.Stop()
	if err != nil && err != io.EOF {
		err = a.watch.stallError(err)
	}
	return n, err
}

func (a *receivedBody) Close() error {
	a.watch.timer.Stop()
	a.watch.cancel(nil)
	return a.ReadCloser.Close()
}
