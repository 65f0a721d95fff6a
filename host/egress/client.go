package egress

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/stockade-dev/stockade/host/policy/network"
	"github.com/stockade-dev/stockade/host/services"
)

// Client returns a client for the provider of the model. It reaches only the hosts of a
// network, follows no redirects, and reuses connections. Its user has to limit time and size.
func (e *Egress) Client(to *network.Network) *http.Client {
	return &http.Client{
		Transport:     e.newTransport(to),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

func (e *Egress) newTransport(to *network.Network) *decidingTransport {
	c := &decidingTransport{network: to}
	open := func(ctx context.Context, protocols []string) (net.Conn, error) {
		// The decision about the request for which the transport dials. A connection is used
		// again only for the same host, port and protocol.
		d, ok := ctx.Value(decisionKey{}).(network.Decision)
		if !ok {
			return nil, fail(services.Denied, errors.New("nothing was decided about this connection"))
		}
		return e.open(ctx, d, protocols)
	}
	c.next = &http.Transport{
		Proxy:          nil,
		DialContext:    func(ctx context.Context, _, _ string) (net.Conn, error) { return open(ctx, nil) },
		DialTLSContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return open(ctx, []string{"h2", "http/1.1"}) },

		ForceAttemptHTTP2:      true,
		MaxIdleConns:           4,
		IdleConnTimeout:        90 * time.Second,
		MaxResponseHeaderBytes: maxResponseHead,
	}
	return c
}

type decisionKey struct{}

// decidingTransport decides about each request before it passes the request on.
type decidingTransport struct {
	network *network.Network
	next    *http.Transport
}

// RoundTrip implements http.RoundTripper.
func (c *decidingTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	t, d, err := c.decide(req.URL.String())
	if err != nil {
		if req.Body != nil {
			_ = req.Body.Close() // required of a RoundTripper
		}
		return nil, err
	}
	req = req.Clone(context.WithValue(req.Context(), decisionKey{}, d))
	req.URL.Host = t.url.Host // normalized, or the transport would normalize it in its own way
	return c.next.RoundTrip(req)
}

func (c *decidingTransport) decide(url string) (t target, d network.Decision, err error) {
	if t, err = parseTarget(url); err != nil {
		return t, d, fail(services.Invalid, err)
	}
	d = c.network.Decide(t.Host.String(), t.Port, t.Protocol)
	if err = d.Err(); err != nil {
		return t, d, fail(services.Denied, err)
	}
	return t, d, nil
}

// CloseIdleConnections is called by http.Client.CloseIdleConnections.
func (c *decidingTransport) CloseIdleConnections() { c.next.CloseIdleConnections() }

// ProviderNetwork is [network.ForProvider] for a base URL; an invalid one is an error.
func ProviderNetwork(base string, rules []network.Rule) (*network.Network, error) {
	t, err := parseTarget(base)
	if err != nil {
		return nil, err
	}
	return network.ForProvider(t.Host, t.Port, t.Protocol, rules), nil
}
