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

// resolver looks up names; [net.Resolver] is one.
type resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// Options says how the network is reached. The zero value of each field is its
// default.
type Options struct {
	// Proxy is the URL of an HTTP proxy, http or https, through which the
	// internet is reached; empty is directly. What is not public (this machine,
	// granted private addresses) is never asked of a proxy.
	Proxy string
	// ProxyResolves sends names to the proxy, for networks where nobody else can
	// resolve them. Which address a name leads to is then the proxy's to check.
	// By default, names are resolved and checked here, and the proxy gets the
	// address.
	ProxyResolves bool
	// ProxyFrom is the place where Proxy is set, for errors; empty: not known.
	ProxyFrom string
	// IgnoredProxyVariable is a variable of the environment that names a proxy and is not read, for errors;
	// empty: there is none.
	IgnoredProxyVariable string
	// Authorities are trusted beside the system's. A file of which anything cannot
	// be read is an error.
	Authorities []Authorities

	// Redact takes out of answers, before a guest gets them, what was filled into
	// requests: a server may repeat it. Nil: nothing is.
	Redact *redact.Redactor

	Logger *slog.Logger // nil is silent

	// Only tests set the rest. Zero is the default that is named.
	resolveTimeout time.Duration // of one name; 5s
	connectTimeout time.Duration // to one address; 5s
	tlsTimeout     time.Duration // of a handshake, and of the proxy's answer; 10s
	headerTimeout  time.Duration // from a guest's request to the head of the answer; 20s
	resolver       resolver      // net.DefaultResolver
	// connect opens the connection to an address that has been checked; TCP.
	connect func(ctx context.Context, addr netip.AddrPort) (net.Conn, error)
}

// maxAddresses is how many addresses of a name are looked at; a name that has
// more is refused. maxAttempts of them are connected to, one after the other.
const (
	maxAddresses = 256
	maxAttempts  = 8
)

// Egress is the way out.
type Egress struct {
	opts  Options         // fixed at creation
	proxy *network.Origin // nil: none
	roots func() (*x509.CertPool, error)
}

// New checks the options. It connects to nothing.
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
	// Reading them takes milliseconds, which a run without the network saves.
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

// dial connects to what was decided on. The connection speaks no TLS yet.
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

// firstOf returns the first connection that there is to one of the addresses, or
// why there is none to the first of them.
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

// reach connects to one address, directly or through the proxy. It asks policy
// again: this is the last place before the connection.
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

// resolve returns the addresses of a host, all of them checked. One that may
// not be reached refuses the name: an honest name has none, and which of them
// would be dialled is for whoever answers to choose.
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

// lookup asks for the addresses of a name, once.
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
		// The resolver of package net tells no difference between an IPv4 address
		// and its mapped form, and a connection goes to the IPv4 address anyway.
		addrs = append(addrs, a.Unmap())
	}
	return addrs, nil
}

// fullyQualified keeps the resolver from trying a name below the domains of its own
// network: a rule for example.com is none for example.com.corp.internal. A name
// of one label is looked for there, as it is meant to be.
func fullyQualified(name string) string {
	if strings.Contains(name, ".") {
		return name + "."
	}
	return name
}
