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

// FollowingClient returns a client for modules and their signatures, which a person fetches
// from registries and web servers. It differs from [Egress.Client] in three ways. It follows
// at most 5 redirects, each decided like any request. Once one leads to another host, port or
// protocol than the first request's, no credentials are sent, and a request with a body fails.
// None may lead from https to http. It decompresses nothing. It gives up on a server that takes or
// sends nothing for the time idle (0: 30 seconds), with a [services.Timeout]. Its user has to
// limit the total time and the size.
func (e *Egress) FollowingClient(to *network.Network, idle time.Duration) *http.Client {
	c := e.newTransport(to)
	c.next.DisableCompression = true
	return &http.Client{Transport: &idleTransport{next: c, idle: cmp.Or(idle, 30*time.Second)}, CheckRedirect: checkRedirect}
}

// ClientFactory returns a function that makes a [Egress.FollowingClient] for the server at a
// base URL. The client reaches the hosts of [FetchNetwork] that the administrator's ceiling
// allows. byPerson is as in FetchNetwork. An invalid URL is an error.
func (e *Egress) ClientFactory(rules []network.Rule, ceiling policy.Ceiling, byPerson bool) func(base string) (*http.Client, error) {
	return func(base string) (*http.Client, error) {
		to, err := FetchNetwork(base, rules, byPerson)
		if err != nil {
			return nil, err
		}
		return e.FollowingClient(ceiling.RestrictNetwork(to), 0), nil
	}
}

// FetchNetwork returns the network of a [Egress.FollowingClient] for the server at a URL: its
// host, only at the URL's port and protocol; this machine there, if the host is localhost; and
// the hosts that the user's rules allow, all without the hosts that they deny. A name that leads
// to a private network needs a rule for the address. byPerson is set if a person has named the
// URL. Otherwise it comes from a file of a project, which must not point the user at addresses
// that only the user can reach: then also an address that is not public, and this machine, need a
// rule. An administrator's list is applied afterwards, with [network.Network.Restrict].
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

// checkRedirect refuses some redirects, and removes headers from the requests of others.
// net/http calls it before each redirect; the transport then decides about the new request.
func checkRedirect(req *http.Request, via []*http.Request) error {
	from := via[len(via)-1].URL.Host
	if len(via) > maxRedirects {
		return failf(services.Protocol, "more than %d redirects", maxRedirects)
	}
	// net/http has parsed this URL, so it is parsed once more by our strict rules.
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
	// net/http copies the headers of the first request to each redirect. So they are also
	// removed when a later redirect returns to the first server.
	req.Header = crossOriginHeaders(req.Header)
	return nil
}

// idleTransport gives up on servers that send and take nothing for the time idle.
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

// CloseIdleConnections closes the idle connections of next. http.Client calls it.
func (p *idleTransport) CloseIdleConnections() { p.next.CloseIdleConnections() }

// watch cancels a request of idleTransport if no bytes have moved for the time idle.
type watch struct {
	ctx    context.Context         // context of the request
	cancel context.CancelCauseFunc // ends ctx
	idle   time.Duration
	timer  *time.Timer // calls cancel after idle
}

// stallError returns the timeout if the watch has ended the request, otherwise err.
func (w *watch) stallError(err error) error {
	if stall, ok := errors.AsType[*services.Error](context.Cause(w.ctx)); ok {
		return stall
	}
	return err
}

// sentBody is the body of a request. Each read restarts the watch: the server has taken bytes.
type sentBody struct {
	io.ReadCloser
	watch *watch
}

func (s *sentBody) Read(p []byte) (int, error) {
	s.watch.timer.Reset(s.watch.idle)
	return s.ReadCloser.Read(p)
}

// receivedBody is the body of an answer. The watch runs only during a read.
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
