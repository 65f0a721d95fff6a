package egress

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/textproto"
	"slices"
	"strings"
	"time"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/policy/network"
	"github.com/stockade-dev/stockade/host/services"
)

const (
	maxRedirects      = 5        // redirects of one request; one more is an error
	maxResponseHead   = 64 << 10 // bytes of all headers of an answer; more are an error
	maxResponseFields = 256      // headers of an answer to a guest or a command; more are an error
)

// Fetch implements [services.HTTP]. All its errors are [*services.Error] values.
func (e *Egress) Fetch(ctx context.Context, grant policy.Grant, req services.Request) (*services.Response, error) {
	x := &fetch{e: e, grant: grant, method: req.Method, body: req.Body, maxBody: grant.Limits().HTTPResponseBytes}
	if grant.Network() == nil {
		return nil, fail(services.Denied, errors.New("the network is not granted to this call"))
	}
	if err := checkMethod(req.Method); err != nil {
		return nil, fail(services.Invalid, err)
	}
	var err error
	if x.headers, err = headers(req.Headers); err != nil {
		return nil, fail(services.Invalid, err)
	}
	if x.headers.Get("User-Agent") == "" {
		x.headers.Set("User-Agent", userAgent)
	}
	if x.target, err = parseTarget(req.URL); err != nil {
		return nil, fail(services.Invalid, err)
	}
	if req.Fill != nil {
		if err := x.fill(req.Fill); err != nil {
			return nil, fail(services.Denied, err)
		}
	}
	if len(x.headers.Values("Authorization")) > 0 {
		return nil, fail(services.Invalid, errors.New(`header "Authorization": only the host may set it`))
	}
	if req.MaxBytes > 0 && req.MaxBytes <= x.maxBody {
		x.maxBody, x.truncates = req.MaxBytes, true
	}
	timeout := grant.Limits().HTTPTimeout
	if req.Timeout > 0 {
		timeout = min(timeout, req.Timeout)
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return x.run(ctx)
}

// Lazy returns the egress, which it makes when a call first needs the network. If it returns
// an error, the request of the call is denied.
type Lazy func() (*Egress, error)

// ServeProxy is [Egress.ServeProxy].
func (l Lazy) ServeProxy(ctx context.Context, listener net.Listener, grant policy.Grant) error {
	e, err := l()
	if err != nil {
		_ = listener.Close() // nobody will serve it
		return failf(services.Denied, "the network is not configured: %w", err)
	}
	return e.ServeProxy(ctx, listener, grant)
}

// Fetch implements [services.HTTP].
func (l Lazy) Fetch(ctx context.Context, grant policy.Grant, req services.Request) (*services.Response, error) {
	e, err := l()
	if err != nil {
		return nil, failf(services.Denied, "the network is not configured: %w", err)
	}
	return e.Fetch(ctx, grant, req)
}

// fetch is one request of a guest, followed by the requests of its redirects.
type fetch struct {
	e            *Egress
	grant        policy.Grant
	target       target
	method       string
	headers      http.Header
	firstHeaders http.Header // headers of the first request, filled in; nil: not filled in, or it was answered
	filled       bool        // set if a secret was put into a header
	unfilledSize int64       // bytes of the first request without secrets, as of size
	body         []byte      // nil: none
	maxBody      int         // limit for the body of the answer, in bytes
	truncates    bool        // set if a longer body is cut; otherwise it is an error
}

func (x *fetch) run(ctx context.Context) (*services.Response, error) {
	from := "" // host of the last redirect
	for range maxRedirects + 1 {
		resp, location, err := x.exchange(ctx)
		if _, denied := errors.AsType[*network.Denial](err); denied && from != "" { // the guest learns the target, and can request it itself
			return nil, failf(services.Denied, "%s redirects to %.200s: %w", from, x.e.opts.Redact.Text(x.target.url.String()), err)
		}
		if err != nil || location == "" {
			return resp, err
		}
		from = x.target.url.Host
		if err := x.follow(resp.Status, location); err != nil {
			x.grant.NoteRefused(x.decide()) // counts for the redirecting server
			return nil, err
		}
	}
	return nil, failf(services.Protocol, "more than %d redirects", maxRedirects)
}

// fill makes firstHeaders, with the secrets, and removes the headers with secrets from
// headers, which redirects get.
func (x *fetch) fill(fill services.Fill) error {
	filled, err := fill(x.target.url, x.headers.Clone(), x.body)
	if err != nil {
		return err
	}
	x.firstHeaders, x.unfilledSize = filled, size(x.target, x.headers, x.body)
	for name, values := range x.headers {
		if slices.Equal(values, filled[name]) {
			continue
		}
		if len(values) > 1 { // each server chooses by itself which value counts
			return fmt.Errorf("header %q: the host fills in a secret, so the header may be sent only once", name)
		}
		delete(x.headers, name)
		x.filled = true
	}
	if !x.filled {
		return nil
	}
	for _, name := range rangeHeaders {
		if len(filled[textproto.CanonicalMIMEHeaderKey(name)]) > 0 {
			return fmt.Errorf("header %q: a part of the answer cannot be requested together with a secret", name)
		}
	}
	return nil
}

// rangeHeaders lists the headers that ask for a part of an answer. A request with secrets must
// not have them: a part of a secret is not recognized when a server repeats it.
var rangeHeaders = []string{"if-range", "range", "request-range"}

// bodyHeaders lists the headers that describe the body as the server sent the body. If a secret
// was sent or taken out, a guest does not get them: they would reveal the secret's length, or
// whether a guess is right.
var bodyHeaders = []string{"Content-Digest", "Content-Length", "Content-Md5", "Content-Range", "Digest", "Repr-Digest"}

func (x *fetch) decide() network.Decision {
	return x.grant.Network().Decide(x.target.Host.String(), x.target.Port, x.target.Protocol)
}

// follow turns x into the request for a redirect to location, or refuses it. status is that of
// the answer with the redirect.
func (x *fetch) follow(status int, location string) error {
	x.firstHeaders = nil
	if x.e.opts.Redact.Text(location) != location {
		return failf(services.Denied, "the redirect of %s is refused: it holds a secret", x.target.url.Host)
	}
	next, err := x.target.redirect(location)
	if err != nil {
		return failf(services.Denied, "the redirect of %s is refused: %w", x.target.url.Host, err)
	}
	keepsMethod := status == http.StatusTemporaryRedirect || status == http.StatusPermanentRedirect
	if !keepsMethod && x.method != http.MethodHead && (x.method == http.MethodPost || status == http.StatusSeeOther) {
		x.method, x.body = http.MethodGet, nil
		x.headers.Del("Content-Type")
	}
	if x.target.Origin != next.Origin {
		if x.body != nil {
			return failf(services.Denied, "the redirect of %s is refused: the body was not meant for %s", x.target.url.Host, next.url.Host)
		}
		x.headers = crossOriginHeaders(x.headers)
	}
	x.target = next
	return nil
}

// exchange makes one request, on a new connection: no connection is used again under another
// decision. location is the target of a redirect, and resp then has only a status; empty: the
// answer is no redirect.
func (x *fetch) exchange(ctx context.Context) (resp *services.Response, location string, err error) {
	d := x.decide()
	start := time.Now()
	var received counter
	defer func() {
		err = x.e.redactError(err)
		x.log(ctx, d, start, received, resp, err)
	}()
	if err := d.Err(); err != nil {
		return nil, "", fail(services.Denied, err)
	}
	sent := x.unfilledSize // without the secrets, or a guest could measure their length
	if x.firstHeaders == nil {
		sent = size(x.target, x.headers, x.body)
	}
	if err := x.grant.TakeRequest(d, sent); err != nil {
		return nil, "", fail(services.Denied, err)
	}
	conn, err := x.e.open(ctx, d, nil)
	if err != nil {
		return nil, "", err
	}
	defer conn.Close()

	wire, err := x.send(ctx, conn)
	if err != nil {
		return nil, "", err
	}
	defer wire.Body.Close()
	if err := checkHead(wire); err != nil {
		return nil, "", err
	}
	if location, err = redirects(wire); err != nil {
		return nil, "", err
	}
	if location != "" {
		return &services.Response{Status: wire.StatusCode}, location, nil
	}
	resp = &services.Response{Status: wire.StatusCode, URL: x.e.opts.Redact.Text(x.target.url.String())}
	redacted := false
	resp.Body, resp.Truncated, redacted, err = x.read(wire, &received)
	if err != nil {
		return nil, "", err
	}
	if redacted || x.filled { // also for a body that was not read to its end, or has no bytes
		for _, name := range bodyHeaders {
			wire.Header.Del(name)
		}
	}
	resp.Headers = x.e.pairs(wire.Header)
	return resp, "", nil
}

// open connects to the host of a decision, and authenticates the server if the protocol is
// https. protocols are then offered by ALPN; nil: none.
func (e *Egress) open(ctx context.Context, d network.Decision, protocols []string) (net.Conn, error) {
	conn, err := e.dial(ctx, d)
	if err == nil && d.Protocol() == network.HTTPS {
		conn, err = e.handshake(ctx, conn, d.Host(), protocols)
	}
	f, ok := errors.AsType[*services.Error](err)
	addr := d.Host().Addr()
	private := d.Host().Name() == "localhost" || addr.IsValid() && !network.Public(addr) // needs no proxy
	switch {
	case !ok || private || f.Hint != "" || f.Kind == services.Denied:
	case e.proxy == nil && e.opts.IgnoredProxyVariable != "":
		f.Hint = IgnoredProxyHint(e.opts.IgnoredProxyVariable)
	case e.proxy != nil && f.Kind == services.DNS:
		f.Hint = "if only the proxy can look names up, set network.proxy_resolves = true in your own agent.toml"
	}
	return conn, err
}

// IgnoredProxyHint returns a hint about an environment variable with a proxy that is not read.
func IgnoredProxyHint(variable string) string {
	return variable + " is set, and is not read: to go through a proxy, set network.proxy = \"http://HOST:PORT\" in your own agent.toml"
}

// send writes the request to a connection and reads the head of the answer.
func (x *fetch) send(ctx context.Context, conn net.Conn) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, x.method, x.target.url.String(), bytes.NewReader(x.body))
	if err != nil {
		return nil, fail(services.Invalid, err)
	}
	if x.body == nil {
		req.Body, req.GetBody, req.ContentLength = nil, nil, 0
	}
	req.Header = x.headers.Clone()
	if x.firstHeaders != nil {
		req.Header = x.firstHeaders.Clone()
	}
	req.Header.Set("Accept-Encoding", "gzip") // otherwise the transport would add it, and decompress without our limit
	return x.e.roundTrip(conn, req)
}

// roundTrip makes the only request on a connection, and reads the head of the answer.
func (e *Egress) roundTrip(conn net.Conn, req *http.Request) (*http.Response, error) {
	dialled := false
	give := func(context.Context, string, string) (net.Conn, error) {
		if dialled {
			return nil, errors.New("the connection is used up")
		}
		dialled = true
		return conn, nil
	}
	transport := &http.Transport{
		Proxy: nil, DialContext: give, DialTLSContext: give,
		DisableKeepAlives: true, DisableCompression: true,
		ResponseHeaderTimeout: e.opts.headerTimeout, MaxResponseHeaderBytes: maxResponseHead,
	}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return nil, phaseError(services.Protocol, "request to "+req.URL.Host, err)
	}
	return resp, nil
}

// checkHead refuses an answer with too many headers, or one that switches protocols.
func checkHead(resp *http.Response) error {
	n := 0
	for _, values := range resp.Header {
		n += len(values)
	}
	switch {
	case n > maxResponseFields:
		return failf(services.Protocol, "the answer has %d headers, more than %d", n, maxResponseFields)
	case resp.StatusCode == http.StatusSwitchingProtocols:
		return failf(services.Protocol, "the server wants to speak another protocol")
	}
	return nil
}

// redirects returns the header Location of a redirect; empty: the answer is no redirect, or lacks
// the header. Two such headers are an error.
func redirects(resp *http.Response) (string, error) {
	switch resp.StatusCode {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther,
		http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
	default:
		return "", nil
	}
	all := resp.Header.Values("Location")
	if len(all) > 1 {
		return "", failf(services.Protocol, "the answer redirects to %d places", len(all))
	}
	return resp.Header.Get("Location"), nil
}

// pairs returns headers in the form for a guest: sorted by name, names in lower case, values
// in valid UTF-8, and without secrets.
func (e *Egress) pairs(h http.Header) [][2]string {
	out := [][2]string{}
	for _, name := range slices.Sorted(maps.Keys(h)) {
		shown := e.opts.Redact.Text(strings.ToLower(name))
		for _, v := range h[name] {
			out = append(out, [2]string{shown, e.opts.Redact.Text(strings.ToValidUTF8(v, "\uFFFD"))})
		}
	}
	return out
}

// log logs the request, and counts the received bytes of the body and a refusal on the grant's
// account.
func (x *fetch) log(ctx context.Context, d network.Decision, start time.Time, received counter, resp *services.Response, err error) {
	x.grant.NoteReceived(d, received.n)
	status := 0
	if resp != nil {
		status = resp.Status
	}
	if services.KindOf(err) == services.Denied {
		x.grant.NoteRefused(d)
	}
	x.e.opts.Logger.InfoContext(ctx, "http request", "to", d.String(), "method", x.method, "status", status,
		"bytes", received.n, "dur", time.Since(start), "err", err)
}

// counter counts the bytes that are read from r.
type counter struct {
	r io.Reader
	n int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}
