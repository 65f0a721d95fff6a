package egress

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/stockade-dev/stockade/host/policy/network"
	"github.com/stockade-dev/stockade/host/services"
)

// parseProxy parses the URL of a proxy, http[s]://HOST[:PORT]; empty: nil. A user name or a
// path is an error.
func parseProxy(s string) (*network.Origin, error) {
	if s == "" {
		return nil, nil
	}
	t, err := parseTarget(s)
	if err != nil {
		// The text of the URL stays out: it may hold a password.
		return nil, errors.New("proxy: it is not a URL such as http://proxy.example:3128")
	}
	if t.url.Path != "" && t.url.Path != "/" || t.url.RawQuery != "" {
		return nil, errors.New("proxy: its URL has a path")
	}
	return &t.Origin, nil
}

// maxProxyHead limits the head of a proxy's answer, in bytes; more are an error.
const maxProxyHead = 16 << 10

// tunnel asks the proxy for a connection to a host. It uses CONNECT for every protocol: with a
// plain request, the proxy would resolve the name in the request.
func (e *Egress) tunnel(ctx context.Context, host string, port uint16) (_ net.Conn, err error) {
	conn, err := e.dialProxy(ctx)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = conn.Close() // it is of no use
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, e.opts.tlsTimeout)
	defer cancel()
	// The end of the context ends the reading.
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()

	target := net.JoinHostPort(host, strconv.Itoa(int(port)))
	if _, err := fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: %s\r\n\r\n", target, target, userAgent); err != nil {
		return nil, phaseError(services.Connect, "ask the proxy for "+target, err)
	}
	status, err := connectAnswer(conn)
	switch {
	case err != nil:
		return nil, e.addProxyHint(phaseError(services.Connect, "ask the proxy for "+target, err), errors.Is(err, errNotHTTP), "check that network.proxy names an HTTP proxy")
	case status == http.StatusProxyAuthRequired:
		return nil, e.addProxyHint(failf(services.Connect, "the proxy wants a password for %s (status 407), which is not supported", target), true,
			"name a proxy without a password in network.proxy, such as one on this machine that logs in to this one")
	case status != http.StatusOK:
		hint := "the administrator of the proxy decides which hosts it lets through"
		if !e.opts.ProxyResolves {
			hint += "; if its rules are for names, network.proxy_resolves = true sends it the name"
		}
		again := status == http.StatusRequestTimeout || status == http.StatusTooManyRequests || status >= 500 && status <= 504 && status != http.StatusNotImplemented
		return nil, e.addProxyHint(failf(services.Connect, "the proxy refuses %s with status %d", target, status), !again, hint)
	case !stop():
		return nil, phaseError(services.Connect, "ask the proxy for "+target, context.Cause(ctx))
	}
	return conn, nil
}

// dialProxy connects to the proxy. If the proxy speaks TLS, its certificate is checked. The
// addresses of the proxy are not checked: the configuration names the proxy, and it usually is in
// a private network.
func (e *Egress) dialProxy(ctx context.Context) (net.Conn, error) {
	const up = "check that network.proxy is right, and that the proxy runs"
	addrs := []netip.Addr{e.proxy.Host.Addr()}
	if !e.proxy.Host.IsAddr() {
		var err error
		if addrs, err = e.lookup(ctx, e.proxy.Host.Name()); err != nil {
			return nil, e.addProxyHint(err, false, up)
		}
	}
	what := "connect to the proxy " + e.proxy.Host.String()
	conn, err := firstOf(ctx, what, addrs, func(a netip.Addr) (net.Conn, error) {
		return e.connect(ctx, what, netip.AddrPortFrom(a, e.proxy.Port))
	})
	if err == nil && e.proxy.Protocol == network.HTTPS {
		conn, err = e.handshake(ctx, conn, e.proxy.Host, nil)
		_, notTLS := errors.AsType[tls.RecordHeaderError](err)
		return conn, e.addProxyHint(err, notTLS, "network.proxy may need http:// instead of https://")
	}
	return conn, e.addProxyHint(err, e.proxy.Host.Addr().IsLoopback() && errors.Is(err, syscall.ECONNREFUSED), up)
}

// addProxyHint returns err, an error of the proxy or nil, with a hint if it has none. final is set
// if the same request would fail again.
func (e *Egress) addProxyHint(err error, final bool, hint string) error {
	if f, ok := errors.AsType[*services.Error](err); ok {
		f.Final, f.Hint = f.Final || final, cmp.Or(f.Hint, hint)
		if e.opts.ProxyFrom != "" {
			f.Hint += "; network.proxy is set by " + e.opts.ProxyFrom
		}
	}
	return err
}

var errNotHTTP = errors.New("its answer is not HTTP")

// connectAnswer reads the head of the proxy's answer only: further bytes belong to the tunnel.
func connectAnswer(r io.Reader) (status int, err error) {
	var head []byte
	for b := make([]byte, 1); !bytes.HasSuffix(head, []byte("\r\n\r\n")); head = append(head, b[0]) {
		if len(head) == maxProxyHead {
			return 0, fmt.Errorf("its answer has a head of more than %d bytes", maxProxyHead)
		}
		if _, err := io.ReadFull(r, b); err != nil {
			return 0, err
		}
	}
	resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(head)), &http.Request{Method: http.MethodConnect})
	if err != nil {
		return 0, errNotHTTP
	}
	_ = resp.Body.Close() // a tunnel has no body
	return resp.StatusCode, nil
}

// handshake starts TLS on a connection, and checks the certificate of the host. protocols are
// offered by ALPN; nil: none. If it fails, the connection is closed.
func (e *Egress) handshake(ctx context.Context, conn net.Conn, host network.Host, protocols []string) (net.Conn, error) {
	roots, err := e.roots()
	if err != nil {
		_ = conn.Close() // it is of no use
		return nil, fail(services.TLS, err)
	}
	ctx, cancel := context.WithTimeout(ctx, e.opts.tlsTimeout)
	defer cancel()
	secured := tls.Client(conn, &tls.Config{
		ServerName: host.String(), RootCAs: roots, MinVersion: tls.VersionTLS12, NextProtos: protocols,
	})
	if err := secured.HandshakeContext(ctx); err != nil {
		_ = conn.Close() // it is of no use
		return nil, phaseError(services.TLS, "authenticate "+host.String(), err)
	}
	return secured, nil
}

// shorten cuts a text to at most maxBytes bytes, and marks a cut with "…" behind them.
func shorten(s string, maxBytes int) string {
	if len(s) <= maxBytes {
		return s
	}
	return strings.ToValidUTF8(s[:maxBytes], "") + "…"
}
