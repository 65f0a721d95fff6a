package egress

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/policy/network"
	"github.com/stockade-dev/stockade/host/services"
	"github.com/stockade-dev/stockade/host/tool"
)

// nameServer is a real name server on loopback. zone returns the addresses of a name; it
// also gets the number of earlier queries of the same type for the name.
type nameServer struct {
	*net.Resolver
	zone func(name string, before int) []string

	mu      sync.Mutex
	asked   map[string]int // by type and name
	queries []string       // names, in order
}

func newNameServer(t testing.TB, zone func(name string, before int) []string) *nameServer {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &nameServer{zone: zone, asked: map[string]int{}}
	s.Resolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
	var done sync.WaitGroup
	done.Go(func() {
		buf := make([]byte, 4096)
		for {
			n, from, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			if answer := s.answer(buf[:n]); answer != nil {
				_, _ = conn.WriteTo(answer, from)
			}
		}
	})
	t.Cleanup(func() { conn.Close(); done.Wait() })
	return s
}

// names is a zone whose answers never change.
func names(zone map[string][]string) func(string, int) []string {
	return func(name string, _ int) []string { return zone[name] }
}

func (s *nameServer) answer(query []byte) []byte {
	var m dnsmessage.Message
	if m.Unpack(query) != nil || len(m.Questions) != 1 {
		return nil
	}
	q := m.Questions[0]
	name := strings.TrimSuffix(q.Name.String(), ".")
	s.mu.Lock()
	before := s.asked[q.Type.String()+" "+name]
	s.asked[q.Type.String()+" "+name]++
	s.queries = append(s.queries, name)
	s.mu.Unlock()
	addrs := s.zone(name, before)
	if len(addrs) == 1 && addrs[0] == "silence" {
		return nil
	}
	out := dnsmessage.Message{Header: dnsmessage.Header{ID: m.ID, Response: true, Authoritative: true, RecursionAvailable: true}, Questions: m.Questions}
	if addrs == nil {
		out.RCode = dnsmessage.RCodeNameError
	}
	for _, text := range addrs {
		a := netip.MustParseAddr(text)
		h := dnsmessage.ResourceHeader{Name: q.Name, Class: dnsmessage.ClassINET}
		switch {
		case a.Is4() && q.Type == dnsmessage.TypeA:
			h.Type = q.Type
			out.Answers = append(out.Answers, dnsmessage.Resource{Header: h, Body: &dnsmessage.AResource{A: a.As4()}})
		case a.Is6() && q.Type == dnsmessage.TypeAAAA:
			h.Type = q.Type
			out.Answers = append(out.Answers, dnsmessage.Resource{Header: h, Body: &dnsmessage.AAAAResource{AAAA: a.As16()}})
		}
	}
	packed, err := out.Pack()
	if err != nil {
		panic(err)
	}
	return packed
}

// count returns the number of queries for a name, or for all names if it is empty.
func (s *nameServer) count(name string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, q := range s.queries {
		if name == "" || q == name {
			n++
		}
	}
	return n
}

// trap listens on loopback and must never be reached.
type trap struct {
	net.Listener
	reached atomic.Int64
}

func newTrap(t testing.TB) *trap {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	tr := &trap{Listener: l}
	var done sync.WaitGroup
	done.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			tr.reached.Add(1)
			conn.Close()
		}
	})
	t.Cleanup(func() {
		l.Close()
		done.Wait()
		if n := tr.reached.Load(); n != 0 {
			t.Errorf("the trap was reached %d times", n)
		}
	})
	return tr
}

func (tr *trap) port() uint16 { return tr.Addr().(*net.TCPAddr).AddrPort().Port() }

// wires is the network of a test. Public addresses lead to servers on loopback, loopback
// addresses are real, and nothing else exists.
type wires struct {
	mu      sync.Mutex
	to      map[netip.AddrPort]string
	dialled []netip.AddrPort
}

// public is an address that is allowed to be reached.
const public = "93.184.216.34"

func newWires() *wires { return &wires{to: map[netip.AddrPort]string{}} }

func (w *wires) plug(addr string, server net.Addr) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.to[netip.MustParseAddrPort(addr)] = server.String()
}

func (w *wires) connect(ctx context.Context, addr netip.AddrPort) (net.Conn, error) {
	w.mu.Lock()
	w.dialled = append(w.dialled, addr)
	to := w.to[addr]
	w.mu.Unlock()
	switch {
	case to != "":
		return new(net.Dialer).DialContext(ctx, "tcp", to)
	case addr.Addr().Unmap().IsLoopback() || addr.Addr().IsUnspecified():
		return connectTCP(ctx, addr)
	}
	return nil, &net.OpError{Op: "dial", Net: "tcp", Err: errNowhere}
}

var errNowhere = &net.AddrError{Err: "nothing is plugged in there"}

func (w *wires) all() []netip.AddrPort {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]netip.AddrPort(nil), w.dialled...)
}

// world is what most tests need.
type world struct {
	*Egress
	dns   *nameServer
	wires *wires
}

func newWorld(t testing.TB, zone func(string, int) []string, change ...func(*Options)) *world {
	t.Helper()
	w := &world{dns: newNameServer(t, zone), wires: newWires()}
	opts := Options{resolver: w.dns.Resolver, connect: w.wires.connect, Authorities: []Authorities{{"ca.pem", ca().pem}}}
	for _, f := range change {
		f(&opts)
	}
	var err error
	if w.Egress, err = New(opts); err != nil {
		t.Fatal(err)
	}
	return w
}

func reaching(t testing.TB, texts ...string) *network.Network {
	t.Helper()
	return network.New(rules(t, texts...))
}

func rules(t testing.TB, texts ...string) (out []network.Rule) {
	t.Helper()
	for _, text := range texts {
		parse := network.ParseRule
		if rest, ok := strings.CutPrefix(text, "not "); ok {
			parse, text = network.ParseDenial, rest
		}
		r, err := parse(text)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, r)
	}
	return out
}

// denialOf returns the denial that an error wraps, or nil.
func denialOf(err error) *network.Denial {
	denial, _ := errors.AsType[*network.Denial](err)
	return denial
}

// granted is the grant of a tool that may talk to these hosts.
func granted(t testing.TB, limits policy.Limits, texts ...string) policy.Grant {
	t.Helper()
	schema, err := tool.CompileSchema(json.RawMessage(`{"type":"object"}`))
	if err != nil {
		t.Fatal(err)
	}
	e := &tool.Entry{
		Spec:   tool.Spec{Definition: tool.Definition{Name: "get"}, Capabilities: tool.Capabilities{Network: tool.NetworkHTTP, Exec: "command", ExecNetwork: "network"}},
		Schema: schema, Module: &tool.Module{Name: "m", Digest: "d", Origin: tool.OriginBuiltin},
	}
	p := policy.New(policy.Options{Network: reaching(t, texts...), Limits: limits})
	g, err := p.Decide(tool.Call{ID: "c", Tool: "get", Args: json.RawMessage(`{"command":"true","network":true}`)}, e, policy.Facts{}).Approve(policy.Answer{Allow: true}, 1)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func get(url string) services.Request { return services.Request{Method: "GET", URL: url} }

// authority issues the certificates of the tests.
type authority struct {
	pem  []byte
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

var ca = sync.OnceValue(func() *authority { return newAuthority("authority of the tests") })

func newAuthority(name string) *authority {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: time.Unix(0, 0), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		panic(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		panic(err)
	}
	return &authority{pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), cert, key}
}

func (a *authority) issue(t testing.TB, until time.Time, hosts ...string) tls.Certificate {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: hosts[0]}, NotBefore: time.Unix(0, 0), NotAfter: until,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, h := range hosts {
		if ip := net.ParseIP(h); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, h)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &a.key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: a.key}
}

// secure starts a server with a certificate for these hosts.
func secure(t testing.TB, h http.HandlerFunc, hosts ...string) *httptest.Server {
	t.Helper()
	return secureWith(t, h, &tls.Config{Certificates: []tls.Certificate{ca().issue(t, time.Now().Add(time.Hour), hosts...)}})
}

func secureWith(t testing.TB, h http.HandlerFunc, config *tls.Config) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.TLS = config
	s.Config.ErrorLog = quiet
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

// plain starts a server without TLS.
func plain(t testing.TB, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

// raw starts a server that sends bytes, whatever it is asked, until f returns.
func raw(t testing.TB, f func(conn net.Conn)) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var done sync.WaitGroup
	done.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			done.Go(func() {
				defer conn.Close()
				buf := make([]byte, 64<<10)
				if _, err := conn.Read(buf); err == nil {
					f(conn)
				}
			})
		}
	})
	t.Cleanup(func() { l.Close(); done.Wait() })
	return l
}
