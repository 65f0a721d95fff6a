package egress

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/policy/network"
	"github.com/stockade-dev/stockade/host/services"
)

const (
	maxConnections = 64 // connections of a command that are served at once; further ones wait
	// maxDrain limits the bytes that are read from a client after it was answered, and dropped:
	// closing the connection at once could destroy the answer.
	maxDrain = 256 << 10
)

// ServeProxy serves the HTTP proxy of one command, which reaches through it only the hosts of
// the grant's network. It accepts connections from l until ctx ends or l is closed; neither is
// an error. When it returns, l and all connections are closed.
//
// A client uses CONNECT for https. The tunnel must carry TLS with the decided host, as the
// name in its first message shows; the proxy cannot read requests within TLS. A rule for tcp
// allows CONNECT with any protocol inside. Plain http is served request by request, in
// absolute form or within a CONNECT: one request on each connection, without following
// redirects, and without switching protocols. A denied request is answered with status 403,
// with the reason in the status line and as text; TLS with another host, with a TLS alert.
//
// Connections and requests count against the grant's limits for requests and for sent bytes,
// with all bytes that are sent on them. All connections together may receive as much as that
// many requests could. A connection is closed if its request does not come, or no bytes move,
// within HTTPTimeout. A whole connection has no time limit other than the command's.
func (e *Egress) ServeProxy(ctx context.Context, l net.Listener, grant policy.Grant) error {
	defer l.Close()
	if grant.ExecNetwork() == nil {
		return fail(services.Denied, errors.New("the network is not granted to the process of this call"))
	}
	limits := grant.Limits()
	p := &commandProxy{e: e, grant: grant, patience: limits.HTTPTimeout, maxReceived: int64(limits.HTTPRequests) * int64(limits.HTTPResponseBytes)}
	p.receiveLeft.Store(p.maxReceived)

	var serving sync.WaitGroup
	defer serving.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	serving.Go(func() {
		<-ctx.Done()
		_ = l.Close() // ends Accept
	})
	slots := make(chan struct{}, maxConnections)
	for {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return nil
		}
		conn, err := l.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return nil
		case err != nil:
			return failf(services.Connect, "accept a connection to the proxy: %w", err)
		}
		serving.Go(func() {
			p.serve(ctx, conn)
			<-slots
		})
	}
}

// ProxyEnv returns environment variables, as NAME=VALUE, that make programs use the proxy at
// addr, HOST:PORT. Some programs read the upper-case names, some the lower-case ones, and node
// reads them only with NODE_USE_ENV_PROXY.
func ProxyEnv(addr string) []string {
	env := []string{"NO_PROXY=", "no_proxy=", "NODE_USE_ENV_PROXY=1"}
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"} {
		env = append(env, name+"=http://"+addr, strings.ToLower(name)+"=http://"+addr)
	}
	return env
}

// commandProxy is the state that the connections of a command share.
type commandProxy struct {
	e           *Egress
	grant       policy.Grant
	patience    time.Duration // time without any bytes after which a connection is closed
	maxReceived int64         // bytes from servers that all connections together may get; a read beyond fails
	receiveLeft atomic.Int64  // bytes that may still be received, of maxReceived
}

// relay is one connection of a command to the proxy, with its connection to a server. The end
// of its context closes both.
type relay struct {
	*commandProxy
	conn     net.Conn                // connection of the command
	r        *bufio.Reader           // reads conn
	cancel   context.CancelCauseFunc // ends the context
	idle     *time.Timer             // calls cancel when no bytes have moved for patience
	d        network.Decision        // newest decision about a host
	answered bool                    // no error can be reported, because a status line was sent; false while another one may be sent

	sent, received atomic.Int64 // bytes to and from the server
}

var errIdle = fail(services.Timeout, errors.New("the connection made no progress for too long"))

func (p *commandProxy) serve(ctx context.Context, conn net.Conn) {
	defer conn.Close()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	c := &relay{commandProxy: p, conn: conn, r: bufio.NewReaderSize(conn, maxRequestHead), cancel: cancel}
	c.idle = time.AfterFunc(p.patience, func() { cancel(errIdle) })
	defer c.idle.Stop()

	start := time.Now()
	err := c.run(ctx)
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if services.KindOf(err) == services.Denied {
		p.grant.NoteRefused(c.d)
	}
	if err != nil && !c.answered {
		c.refuse(err)
	}
	p.e.opts.Logger.InfoContext(ctx, "proxy connection", "to", c.d.String(), "sent", c.sent.Load(), "received", c.received.Load(),
		"dur", time.Since(start), "err", err)
	_ = closeWrite(conn)
	_, _ = io.CopyN(io.Discard, conn, maxDrain)
}

func (c *relay) run(ctx context.Context) error {
	h, err := readHead(c.r)
	if err != nil {
		return err
	}
	if h.method != http.MethodConnect {
		return c.forward(ctx, h, h.target)
	}
	o, err := connectTarget(h)
	if err != nil {
		return failf(services.Invalid, "CONNECT %q: %w", shorten(h.target, 200), err)
	}
	if err := c.decide(o, network.TCP, network.HTTPS, network.HTTP); err != nil {
		return err
	}
	if c.d.Protocol() != network.HTTP {
		return c.serveConnect(ctx)
	}
	// A rule for http allows no tunnel. Some clients use CONNECT for everything: their
	// request is served as if it had come in absolute form.
	if err := c.accept(); err != nil {
		return err
	}
	c.answered = false
	if h, err = readHead(c.r); err != nil {
		return err
	}
	o.Protocol = network.HTTP
	return c.forward(ctx, h, "http://"+target{Origin: o}.authority()+h.target)
}

// connectTarget parses the HOST:PORT of a CONNECT, and checks its header Host. The protocol of the
// result has no meaning.
func connectTarget(h *head) (network.Origin, error) {
	o, rest, err := network.ParseOrigin("https://" + h.target)
	if err == nil && (rest != "" || !strings.HasSuffix(h.target, ":"+strconv.Itoa(int(o.Port)))) {
		err = errors.New("it takes HOST:PORT")
	}
	if err == nil {
		err = h.checkHost(o.Host)
	}
	return o, err
}

// decide sets c.d to the decision for the first of the protocols that may reach the host. If
// none may, it returns a denial: that of https if it is among the protocols, else of the last
// one.
func (c *relay) decide(o network.Origin, protocols ...network.Protocol) error {
	for _, p := range protocols {
		d := c.grant.ExecNetwork().Decide(o.Host.String(), o.Port, p)
		if d.Err() == nil {
			c.d = d
			return nil
		}
		if c.d.Protocol() != network.HTTPS {
			c.d = d
		}
	}
	return fail(services.Denied, c.d.Err())
}

// open connects to the host of c.d, and counts the request on the grant's account.
func (c *relay) open(ctx context.Context) (net.Conn, error) {
	if err := c.grant.TakeRequest(c.d, 0); err != nil {
		return nil, fail(services.Denied, err)
	}
	conn, err := c.e.dial(ctx, c.d)
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, func() { _ = conn.Close() })
	return countingConn{conn, c}, nil
}

// serveConnect serves a tunnel until both sides have ended. For https, the client must first
// send a TLS message for the decided host: a rule for https allows no other protocol, and no
// other name at the same address.
func (c *relay) serveConnect(ctx context.Context) error {
	server, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer server.Close()
	if err := c.accept(); err != nil {
		return err
	}
	if c.d.Protocol() == network.HTTPS {
		hello, read, err := readHello(c.r)
		if len(read) == 0 {
			return err // the client has hung up
		}
		if err != nil {
			c.answered = false // a client without TLS reads a plain answer
			return failf(services.Denied, "what was sent to %s is not TLS, and the rule is for https", c.d.Host())
		}
		if err := checkHello(hello, c.d.Host()); err != nil {
			_, _ = c.conn.Write(accessDenied)
			return fail(services.Denied, err)
		}
		if _, err := server.Write(read); err != nil {
			return err
		}
	}
	var sending sync.WaitGroup
	sending.Go(func() { c.copy(server, c.r) })
	c.copy(c.conn, server)
	sending.Wait()
	return nil // serve reports why the context has ended, if it has
}

// accept answers a CONNECT with success.
func (c *relay) accept() error {
	c.answered = true
	_, err := io.WriteString(c.conn, "HTTP/1.1 200 Connection established\r\n\r\n")
	return err
}

// copy copies until src ends, and then closes dst for writing. An error ends the relay.
func (c *relay) copy(dst net.Conn, src io.Reader) {
	_, err := io.Copy(dst, src)
	if err == nil {
		err = closeWrite(dst)
	}
	if err != nil {
		c.cancel(err)
	}
}

// closeWrite closes a connection for writing, or altogether if it cannot be half closed.
func closeWrite(conn net.Conn) error {
	if half, ok := conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return conn.Close()
}

// forward serves one request of plain http. url is its absolute URL.
func (c *relay) forward(ctx context.Context, h *head, url string) error {
	t, err := parseTarget(url)
	if err == nil && t.Protocol != network.HTTP {
		err = errors.New("https is asked for with CONNECT")
	}
	if err == nil {
		err = checkMethod(h.method)
	}
	if err == nil {
		err = h.checkHost(t.Host)
	}
	if err != nil {
		return fail(services.Invalid, err)
	}
	if err := c.decide(t.Origin, network.HTTP); err != nil {
		return err
	}
	if h.upgrades() {
		return failf(services.Denied, "this proxy does not change from http to another protocol (Upgrade)")
	}
	server, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer server.Close()
	req, err := h.request(ctx, t, c.r)
	if err != nil {
		return err
	}
	if strings.EqualFold(h.header.Get("Expect"), "100-continue") {
		if _, err := io.WriteString(c.conn, "HTTP/1.1 100 Continue\r\n\r\n"); err != nil {
			return err
		}
	}
	resp, err := c.e.roundTrip(server, req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if err := checkHead(resp); err != nil {
		return err
	}
	deleteHopHeaders(resp.Header)
	resp.ProtoMajor, resp.ProtoMinor, resp.Close, resp.Trailer, resp.TransferEncoding = 1, 1, true, nil, nil
	if resp.ContentLength < 0 && !h.http10 {
		resp.TransferEncoding = []string{"chunked"} // so that the client notices a broken-off body
	}
	c.answered = true
	return resp.Write(c.conn)
}

// refuse answers with err as text and in the status line: many programs show only the status
// line of a failed CONNECT.
func (c *relay) refuse(err error) {
	status := map[services.Kind]int{services.Denied: http.StatusForbidden, services.Invalid: http.StatusBadRequest, services.Timeout: http.StatusGatewayTimeout}[services.KindOf(err)]
	if status == 0 {
		status = http.StatusBadGateway
	}
	reason := strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, advice(err))
	fmt.Fprintf(c.conn, "HTTP/1.1 %d %.300s\r\nContent-Type: text/plain\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s\n",
		status, reason, len(reason)+1, reason)
}

// advice returns the text of an error, with the flag, if there is one, that would allow a denied
// request.
func advice(err error) string {
	denial, ok := errors.AsType[*network.Denial](err)
	if !ok || denial.AllowRule == nil {
		return err.Error()
	}
	plain := *denial
	plain.AllowRule = nil
	return fmt.Sprintf("%s; --allow-net %s would allow it", plain.Error(), denial.AllowRule)
}

// countingConn is the connection of a relay to a server. It counts its bytes on the grant's
// account, and fails once a limit of the grant is exceeded.
type countingConn struct {
	net.Conn
	c *relay
}

func (s countingConn) Read(p []byte) (int, error) {
	n, err := s.Conn.Read(p)
	s.c.idle.Reset(s.c.patience)
	s.c.received.Add(int64(n))
	s.c.grant.NoteReceived(s.c.d, int64(n))
	if s.c.receiveLeft.Add(-int64(n)) < 0 {
		return 0, failf(services.Denied, "this command may receive %d bytes", s.c.maxReceived)
	}
	return n, err
}

func (s countingConn) Write(p []byte) (int, error) {
	if err := s.c.grant.TakeSent(s.c.d, int64(len(p))); err != nil {
		return 0, fail(services.Denied, err)
	}
	s.c.idle.Reset(s.c.patience)
	s.c.sent.Add(int64(len(p)))
	return s.Conn.Write(p)
}

// CloseWrite closes the connection for writing.
func (s countingConn) CloseWrite() error { return closeWrite(s.Conn) }
