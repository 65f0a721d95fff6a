package egress

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/stockade-dev/stockade/host/policy/network"
	"github.com/stockade-dev/stockade/host/redact"
	"github.com/stockade-dev/stockade/host/services"
)

// resolver looks up the addresses of names. [net.Resolver] is one.
type resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// Options configures the way to the network. The zero value of each field is its default.
type Options struct {
	// Proxy is the URL of an HTTP proxy, http or https, for public addresses. Empty: they are
	// reached directly. Other addresses (this machine, granted private ones) are never sent to
	// the proxy.
	Proxy string
	// ProxyResolves sends all names but localhost to the proxy, for networks where only the
	// proxy can resolve them. The proxy then has to check their addresses. False: names are
	// resolved and checked here, and the proxy gets an address. Without Proxy it has no effect.
	ProxyResolves bool
	ProxyFrom     string // place where Proxy is set, for errors; empty: unknown
	// IgnoredProxyVariable is the name of an environment variable that is set to a proxy and
	// is not read, for errors; empty: there is none.
	IgnoredProxyVariable string
	Authorities          []Authorities // trusted in addition to the system's authorities

	// Redact takes secrets out of answers before a guest gets the answers, because a server
	// may repeat a secret of the request. Nil: answers are not changed.
	Redact *redact.Redactor
	Logger *slog.Logger // nil: nothing is logged

	// Only tests set the fields below. Zero or nil: the default, which follows the semicolon.
	resolveTimeout time.Duration // limit for resolving one name; 5s
	connectTimeout time.Duration // limit for connecting to one address; 5s
	tlsTimeout     time.Duration // limit for a handshake, and for the proxy's answer; 10s
	headerTimeout  time.Duration // limit from the end of a guest's or command's request to the answer's head; 20s
	resolver       resolver      // resolves names; net.DefaultResolver
	// connect opens the connection to a checked address; by TCP.
	connect func(ctx context.Context, addr netip.AddrPort) (net.Conn, error)
}

const (
	maxAddresses = 256 // addresses of a name; a name with more is refused
	maxAttempts  = 8   // addresses of a name that are tried, in turn; the others are not
)

// Egress is the way out to the network.
type Egress struct {
	opts  Options
	proxy *network.Origin                // nil: there is no proxy
	roots func() (*x509.CertPool, error) // returns the trusted certificate authorities; reads them at the first call
}

// New returns an Egress. It returns an error for an invalid proxy, and for a file of
// authorities that has no certificate or an unreadable part. It connects to nothing.
func New(opts Options) (*Egress, error) {
	opts.resolveTimeout = cmp.Or(opts.resolveTimeout, 5*time.Second)
	opts.connectTimeout = cmp.Or(opts.connectTimeout, 5*time.Second)
	opts.tlsTimeout = cmp.Or(opts.tlsTimeout, 10*time.Second)
	opts.headerTimeout = cmp.Or(opts.headerTimeout, 20*time.Second)
	if opts.resolver == nil {
		opts.resolver = net.DefaultResolver
	}
	if opts.connect == nil {
		opts.connect = connectTCP
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	e := &Egress{opts: opts}
	var err error
	if e.proxy, err = parseProxy(opts.Proxy); err != nil {
		return nil, err
	}
	var authorities []*x509.Certificate
	for _, file := range opts.Authorities {
		certs, err := file.parse()
		if err != nil {
			return nil, err
		}
		authorities = append(authorities, certs...)
	}
	// Reading the authorities takes milliseconds, which a run without the network saves.
	e.roots = sync.OnceValues(func() (*x509.CertPool, error) {
		pool, err := systemRoots()
		if err != nil {
			return nil, fmt.Errorf("read the system's certificate authorities: %w", err)
		}
		for _, cert := range authorities {
			pool.AddCert(cert)
		}
		return pool, nil
	})
	return e, nil
}

// dial connects to the host that the decision allows. The connection speaks no TLS yet.
func (e *Egress) dial(ctx context.Context, d network.Decision) (net.Conn, error) {
	if err := d.Err(); err != nil {
		return nil, fail(services.Denied, err)
	}
	if e.proxy != nil && e.opts.ProxyResolves && d.Addresses() == nil {
		return e.tunnel(ctx, d.Host().String(), d.Port())
	}
	addrs, err := e.resolve(ctx, d)
	if err != nil {
		return nil, err
	}
	return firstOf(ctx, "connect to "+d.String(), addrs, func(a netip.Addr) (net.Conn, error) { return e.reach(ctx, d, a) })
}

// firstOf calls reach for up to maxAttempts addresses in turn, and returns the first
// connection. If all fail, it returns the error for the first address. what is for the error
// if ctx ends before the first attempt.
func firstOf(ctx context.Context, what string, addrs []netip.Addr, reach func(netip.Addr) (net.Conn, error)) (net.Conn, error) {
	var first error
	for _, a := range addrs[:min(len(addrs), maxAttempts)] {
		if ctx.Err() != nil {
			break
		}
		conn, err := reach(a)
		if err == nil {
			return conn, nil
		}
		first = cmp.Or(first, err)
	}
	if first == nil {
		first = phaseError(services.Connect, what, context.Cause(ctx))
	}
	return nil, first
}

// reach connects to one address, directly or through the proxy. It checks the address against
// policy again: this is the final place before the connection.
func (e *Egress) reach(ctx context.Context, d network.Decision, a netip.Addr) (net.Conn, error) {
	if err := d.CheckAddr(a); err != nil {
		return nil, fail(services.Denied, err)
	}
	if e.proxy != nil && network.Public(a) {
		return e.tunnel(ctx, a.String(), d.Port())
	}
	return e.connect(ctx, "connect to "+d.String(), netip.AddrPortFrom(a, d.Port()))
}

func (e *Egress) connect(ctx context.Context, what string, addr netip.AddrPort) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, e.opts.connectTimeout)
	defer cancel()
	conn, err := e.opts.connect(ctx, addr)
	if err != nil {
		return nil, phaseError(services.Connect, what, err)
	}
	return conn, nil
}

// resolve returns the addresses of a host, all of them checked. One address that may not be
// reached refuses the whole name: an honest name has no such address, and the name server
// could otherwise choose which one is dialled.
func (e *Egress) resolve(ctx context.Context, d network.Decision) ([]netip.Addr, error) {
	if addrs := d.Addresses(); addrs != nil {
		return addrs, nil
	}
	addrs, err := e.lookup(ctx, d.Host().Name())
	if err != nil {
		return nil, err
	}
	for _, a := range addrs {
		if err := d.CheckAddr(a); err != nil {
			return nil, fail(services.Denied, err)
		}
	}
	return addrs, nil
}

// lookup asks the resolver once for the addresses of a name. None is an error.
func (e *Egress) lookup(ctx context.Context, name string) ([]netip.Addr, error) {
	ctx, cancel := context.WithTimeout(ctx, e.opts.resolveTimeout)
	defer cancel()
	found, err := e.opts.resolver.LookupNetIP(ctx, "ip", fullyQualified(name))
	if err == nil && len(found) == 0 {
		err = errors.New("it has no address")
	}
	if err == nil && len(found) > maxAddresses {
		err = fmt.Errorf("it has %d addresses, more than %d", len(found), maxAddresses)
	}
	if err != nil {
		return nil, phaseError(services.DNS, "resolve "+name, err)
	}
	var addrs []netip.Addr
	for _, a := range found {
		// The resolver of package net tells no difference between an IPv4 address and its
		// mapped form, and a connection goes to the IPv4 address anyway.
		addrs = append(addrs, a.Unmap())
	}
	return addrs, nil
}

// fullyQualified adds a final dot to a name, so that the resolver does not try it below the
// domains of its own network: a rule for example.com must not allow example.com.corp.internal.
// A name of one label stays as it is, since it is meant to be looked up there.
func fullyQualified(name string) string {
	if strings.Contains(name, ".") {
		return name + "."
	}
	return name
}
