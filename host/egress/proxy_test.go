package egress

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/policy/network"
	"github.com/stockade-dev/stockade/host/services"
)

// tunnels is a proxy that connects to the address that the test gives.
type tunnels struct {
	net.Listener
	mu    sync.Mutex
	asked []string
}

func newTunnels(t *testing.T, to map[string]net.Addr, config *tls.Config) *tunnels {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if config != nil {
		l = tls.NewListener(l, config)
	}
	p := &tunnels{Listener: l}
	var done sync.WaitGroup
	serve := func(conn net.Conn) {
		defer conn.Close()
		r := bufio.NewReader(conn)
		req, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		p.mu.Lock()
		p.asked = append(p.asked, req.Method+" "+req.RequestURI)
		p.mu.Unlock()
		target := to[req.RequestURI]
		if req.Method != http.MethodConnect || target == nil {
			fmt.Fprint(conn, "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
			return
		}
		out, err := net.Dial("tcp", target.String())
		if err != nil {
			return
		}
		defer out.Close()
		fmt.Fprint(conn, "HTTP/1.1 200 Connection established\r\n\r\n")
		var both sync.WaitGroup
		both.Go(func() { _, _ = io.Copy(out, r); out.Close() })
		both.Go(func() { _, _ = io.Copy(conn, out); conn.Close() })
		both.Wait()
	}
	done.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			done.Go(func() { serve(conn) })
		}
	})
	t.Cleanup(func() { l.Close(); done.Wait() })
	return p
}

func (p *tunnels) all() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.asked)
}

func TestTheProxy(t *testing.T) {
	hello := func(rw http.ResponseWriter, _ *http.Request) { fmt.Fprint(rw, "through") }
	site, open := secure(t, hello, "a.example"), plain(t, hello)
	here := plain(t, func(rw http.ResponseWriter, _ *http.Request) { fmt.Fprint(rw, "here") })
	zone := names(map[string][]string{"a.example": {public}, "private.example": {"127.0.0.1"}, "proxy.example": {"10.9.9.9"}})
	for _, secured := range []bool{false, true} {
		for _, resolves := range []bool{false, true} {
			t.Run(fmt.Sprintf("secure %v, resolves %v", secured, resolves), func(t *testing.T) {
				url, name := "http://proxy.example:3128", public
				var config *tls.Config
				if secured {
					url = "https://proxy.example:3128"
					config = &tls.Config{Certificates: []tls.Certificate{ca().issue(t, time.Now().Add(time.Hour), "proxy.example")}}
				}
				if resolves {
					name = "a.example"
				}
				proxy := newTunnels(t, map[string]net.Addr{name + ":443": site.Listener.Addr(), name + ":80": open.Listener.Addr()}, config)
				w := newWorld(t, zone, func(o *Options) { o.Proxy, o.ProxyResolves = url, resolves })
				w.wires.plug("10.9.9.9:3128", proxy.Addr())
				grant := granted(t, policy.Limits{}, "a.example", "http://a.example", "private.example", "http://"+here.Listener.Addr().String(), public)
				for _, u := range []string{"https://a.example/", "http://a.example/"} {
					resp, err := w.Fetch(t.Context(), grant, get(u))
					if err != nil || string(resp.Body) != "through" {
						t.Errorf("%s: %+v, %v", u, resp, err)
					}
				}
				// What is not public is not the proxy's: it is dialled, or refused.
				resp, err := w.Fetch(t.Context(), grant, get(here.URL))
				if err != nil || string(resp.Body) != "here" {
					t.Errorf("this machine: %+v, %v", resp, err)
				}
				_, err = w.Fetch(t.Context(), grant, get("https://private.example/"))
				if want := map[bool]services.Kind{false: services.Denied, true: services.Connect}[resolves]; services.KindOf(err) != want {
					t.Errorf("a name that leads to this machine: %v", err)
				}
				if _, err := w.Fetch(t.Context(), grant, get("https://169.254.169.254/")); services.KindOf(err) != services.Denied {
					t.Errorf("a metadata service: %v", err)
				}
				want := []string{"CONNECT " + name + ":443", "CONNECT " + name + ":80"}
				if resolves {
					want = append(want, "CONNECT private.example:443")
				}
				if got := proxy.all(); !slices.Equal(got, want) {
					t.Errorf("the proxy was asked for %v, want %v", got, want)
				}
				if n := w.dns.count("a.example"); resolves && n != 0 {
					t.Errorf("the name was looked up %d times here", n)
				}
				for _, a := range w.wires.all() {
					if text := a.String(); text != "10.9.9.9:3128" && text != here.Listener.Addr().String() {
						t.Errorf("%s was dialled around the proxy", text)
					}
				}
			})
		}
	}
}

// TestAHostileProxy: of a hostile proxy's answer only the head is read.
func TestAHostileProxy(t *testing.T) {
	d := reaching(t, "a.example").Decide("a.example", 443, network.HTTPS)
	for what, c := range map[string]struct {
		f     func(net.Conn)
		kind  services.Kind
		final bool // it is not asked again
		hint  string
	}{
		"says no":             {func(conn net.Conn) { fmt.Fprint(conn, "HTTP/1.1 403 No\r\n\r\n") }, services.Connect, true, "network.proxy_resolves = true"},
		"wants a password":    {func(conn net.Conn) { fmt.Fprint(conn, "HTTP/1.1 407 Who\r\nProxy-Authenticate: Basic\r\n\r\n") }, services.Connect, true, "without a password in network.proxy"},
		"has no such method":  {func(conn net.Conn) { fmt.Fprint(conn, "HTTP/1.1 501 No\r\n\r\n") }, services.Connect, true, "the administrator of the proxy"},
		"is overloaded":       {func(conn net.Conn) { fmt.Fprint(conn, "HTTP/1.1 503 No\r\n\r\n") }, services.Connect, false, "the administrator of the proxy"},
		"redirects":           {func(conn net.Conn) { fmt.Fprint(conn, "HTTP/1.1 302 F\r\nLocation: http://127.0.0.1/\r\n\r\n") }, services.Connect, true, "the administrator of the proxy"},
		"says 200 and no end": {func(conn net.Conn) { fmt.Fprint(conn, "HTTP/1.1 200 OK\r\n"); silent(conn) }, services.Timeout, false, "names an HTTP proxy"},
		"says nothing":        {silent, services.Timeout, false, "names an HTTP proxy"},
		"has a long head": {func(conn net.Conn) {
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\n"+strings.Repeat("x: y\r\n", 100_000))
		}, services.Connect, false, "names an HTTP proxy"},
		"speaks no HTTP": {func(conn net.Conn) { fmt.Fprint(conn, "SSH-2.0\r\n\r\n") }, services.Connect, true, "names an HTTP proxy"},
		"hangs up":       {func(net.Conn) {}, services.Connect, false, "names an HTTP proxy"},
	} {
		t.Run(what, func(t *testing.T) {
			w := newWorld(t, names(map[string][]string{"a.example": {public}}), func(o *Options) {
				if o.Proxy, o.ProxyFrom = "http://10.9.9.9:3128", "user agent.toml:7"; c.kind == services.Timeout {
					o.tlsTimeout = 100 * time.Millisecond
				}
			})
			w.wires.plug("10.9.9.9:3128", raw(t, c.f).Addr())
			conn, err := w.dial(t.Context(), d)
			if conn != nil || services.KindOf(err) != c.kind {
				t.Errorf("%v, %v", conn, err)
			}
			if e, ok := errors.AsType[*services.Error](err); !ok || e.Final != c.final || !strings.Contains(e.Hint, c.hint) || !strings.HasSuffix(e.Hint, "network.proxy is set by user agent.toml:7") {
				t.Errorf("%+v", e)
			}
			if got := w.wires.all(); len(got) != 1 || got[0].String() != "10.9.9.9:3128" {
				t.Errorf("%v were dialled", got)
			}
		})
	}
	t.Run("is not there", func(t *testing.T) {
		w := newWorld(t, names(map[string][]string{"a.example": {public}}), func(o *Options) { o.Proxy = "http://10.9.9.9:3128" })
		if conn, err := w.dial(t.Context(), d); conn != nil || services.KindOf(err) != services.Connect {
			t.Errorf("%v, %v", conn, err)
		}
		if got := w.wires.all(); len(got) != 1 || got[0].String() != "10.9.9.9:3128" {
			t.Errorf("%v were dialled", got)
		}
	})
	t.Run("speaks first in the tunnel", func(t *testing.T) {
		w := newWorld(t, names(map[string][]string{"a.example": {public}}), func(o *Options) { o.Proxy = "http://10.9.9.9:3128" })
		w.wires.plug("10.9.9.9:3128", raw(t, func(conn net.Conn) { fmt.Fprint(conn, "HTTP/1.1 200 OK\r\n\r\nbanner") }).Addr())
		conn, err := w.dial(t.Context(), d)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if got, err := io.ReadAll(conn); string(got) != "banner" || err != nil {
			t.Errorf("what follows the head is %q, %v", got, err)
		}
	})
}

// TestAProxyThatIsNotAuthenticated: such a proxy gets no request, and the program goes on.
func TestAProxyThatIsNotAuthenticated(t *testing.T) {
	d := reaching(t, "a.example").Decide("a.example", 443, network.HTTPS)
	other := newAuthority("another")
	for what, c := range map[string]struct {
		address func(*testing.T) net.Addr
		kind    services.Kind
	}{
		"of another authority": {func(t *testing.T) net.Addr {
			return newTunnels(t, nil, &tls.Config{Certificates: []tls.Certificate{other.issue(t, time.Now().Add(time.Hour), "proxy.example")}}).Addr()
		}, services.TLS},
		"of another name": {func(t *testing.T) net.Addr {
			return newTunnels(t, nil, &tls.Config{Certificates: []tls.Certificate{ca().issue(t, time.Now().Add(time.Hour), "a.example")}}).Addr()
		}, services.TLS},
		"without services.TLS": {func(t *testing.T) net.Addr { return newTunnels(t, nil, nil).Addr() }, services.TLS},
		"says nothing":         {func(t *testing.T) net.Addr { return raw(t, silent).Addr() }, services.Timeout},
	} {
		t.Run(what, func(t *testing.T) {
			w := newWorld(t, names(map[string][]string{"a.example": {public}, "proxy.example": {"10.9.9.9"}}), func(o *Options) {
				if o.Proxy = "https://proxy.example:3128"; c.kind == services.Timeout {
					o.tlsTimeout = 100 * time.Millisecond
				}
			})
			w.wires.plug("10.9.9.9:3128", c.address(t))
			conn, err := w.dial(t.Context(), d)
			if conn != nil || services.KindOf(err) != c.kind {
				t.Errorf("%v, %v", conn, err)
			}
		})
	}
}

func TestProxiesThatAreNone(t *testing.T) {
	for _, url := range []string{"proxy:3128", "socks5://proxy:1080", "http://user:secret@proxy:3128", "http://proxy/path", "http://proxy?q", "http://127.1:3128", "file:///x"} {
		if _, err := New(Options{Proxy: url}); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", url, err)
		}
	}
}
