package egress

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/policy/network"
	"github.com/stockade-dev/stockade/host/services"
)

// The attacks of a guest, by the numbers of the threat model. Each asserts what did not
// happen: a trap on loopback that nobody reached, a name that nobody asked for.

func TestN01AHostThatIsNotOnTheListIsNotLookedUp(t *testing.T) {
	w := newWorld(t, names(map[string][]string{"evil.test": {public}, "data.evil.test": {public}}))
	grant := granted(t, policy.Limits{}, "api.example.com", "93.184.216.35")
	for _, url := range []string{"https://evil.test/", "https://data.evil.test/", "https://api.example.com.evil.test/", "http://api.example.com/", "https://" + public + "/"} {
		_, err := w.Fetch(t.Context(), grant, get(url))
		if services.KindOf(err) != services.Denied || denialOf(err) == nil {
			t.Errorf("%s: %v", url, err)
		}
	}
	if n := w.dns.count(""); n != 0 {
		t.Errorf("%d names were looked up", n)
	}
	if len(w.wires.all()) != 0 {
		t.Errorf("there were connections to %v", w.wires.all())
	}
	if sent := grant.Traffic(); len(sent) != 5 || sent[0].Refused != 1 || sent[0].Requests != 0 {
		t.Errorf("the account is %+v", sent)
	}
	if _, err := w.Fetch(t.Context(), policy.Grant{}, get("https://api.example.com/")); services.KindOf(err) != services.Denied {
		t.Errorf("without a grant: %v", err)
	}
}

func TestN02RedirectsAreDecidedAnew(t *testing.T) {
	trap := newTrap(t)
	asked := map[string]int{} // of the name, to answer the second time differently
	w := newWorld(t, func(name string, before int) []string {
		switch name {
		case "a.example":
			return []string{public}
		case "private.example":
			return []string{"127.0.0.1"}
		case "flips.example":
			if before > 0 {
				return []string{"127.0.0.1"}
			}
			return []string{public}
		}
		asked[name]++
		return []string{"127.0.0.1"}
	})
	handler := func(rw http.ResponseWriter, r *http.Request) {
		rw.Header()["Location"] = r.Header["X-To"]
		rw.WriteHeader(http.StatusFound)
	}
	port := fmt.Sprint(":", trap.port())
	w.wires.plug(public+":80", plain(t, handler).Listener.Addr())
	w.wires.plug(public+port, plain(t, handler).Listener.Addr())
	w.wires.plug(public+":443", secure(t, handler, "a.example").Listener.Addr())
	// As wide as rules get, but for other names.
	rules := []string{"a.example", "http://a.example:*", "http://private.example:*", "http://flips.example:*", "http://0.0.0.0/0:*", "http://[::/0]:*"}
	for _, to := range []string{
		"http://127.0.0.1" + port, "http://127.1" + port, "http://2130706433" + port, "http://[::1]" + port, "http://[::ffff:127.0.0.1]" + port,
		"http://0.0.0.0" + port, "http://localhost" + port, "//127.0.0.1" + port, "//localhost" + port, "http://private.example" + port, "http://other.example" + port,
		"http://a.example@127.0.0.1" + port, `http://127.0.0.1` + port + `\@a.example`, `\\127.0.0.1` + port, "/\\127.0.0.1" + port, "http:\\\\127.0.0.1" + port,
		"http:127.0.0.1" + port, "http:///127.0.0.1" + port, "file:///etc/passwd", "gopher://127.0.0.1" + port, "javascript:alert(1)", "data:,x",
		"http://a.example:99999", "http://127.0.0.1" + port + "\x00", " http://127.0.0.1" + port, "http://１２７.０.０.１" + port, strings.Repeat("x", 9000),
	} {
		// The header of the answer as it is written here, whatever it holds.
		loose := newWorld(t, w.dns.zone)
		loose.wires.plug(public+":80", raw(t, func(conn net.Conn) {
			fmt.Fprintf(conn, "HTTP/1.1 302 Found\r\nLocation: %s\r\nContent-Length: 0\r\n\r\n", to)
		}).Addr())
		grant := granted(t, policy.Limits{}, rules...)
		resp, err := loose.Fetch(t.Context(), grant, get("http://a.example/"))
		refused := 0
		for _, account := range grant.Traffic() {
			refused += account.Refused
		}
		if services.KindOf(err) == services.Denied && refused != 1 {
			t.Errorf("a redirect to %q: %d refusals are on the account", to, refused)
		}
		if kind := services.KindOf(err); kind != services.Denied && kind != services.Protocol {
			t.Errorf("a redirect to %q: %+v, %v", to, resp, err)
		}
		if got := loose.wires.all(); len(got) != 1 || got[0].Addr().String() != public {
			t.Errorf("a redirect to %q leads to %v", to, got)
		}
	}
	if len(asked) != 0 {
		t.Errorf("names that are not allowed were looked up: %v", asked)
	}
	// The same name, a second time: it is resolved and checked again.
	req := services.Request{Method: "GET", URL: "http://flips.example" + port, Headers: [][2]string{{"X-To", "http://flips.example" + port}}}
	if _, err := w.Fetch(t.Context(), granted(t, policy.Limits{}, rules...), req); services.KindOf(err) != services.Denied {
		t.Errorf("a name that leads elsewhere after a redirect: %v", err)
	}
	// N16: not from https to http.
	req = services.Request{Method: "GET", URL: "https://a.example/", Headers: [][2]string{{"X-To", "http://a.example/"}}}
	if _, err := w.Fetch(t.Context(), granted(t, policy.Limits{}, rules...), req); services.KindOf(err) != services.Denied || !strings.Contains(err.Error(), "from https to http") {
		t.Errorf("a redirect to http: %v", err)
	}
}

func TestRedirectsEnd(t *testing.T) {
	w := newWorld(t, names(map[string][]string{"a.example": {public}}))
	n := 0
	w.wires.plug(public+":80", plain(t, func(rw http.ResponseWriter, r *http.Request) {
		n++
		if r.URL.Path == "/two" {
			rw.Header()["Location"] = []string{"/a", "/b"}
		} else {
			rw.Header().Set("Location", "/again")
		}
		rw.WriteHeader(http.StatusFound)
	}).Listener.Addr())
	_, err := w.Fetch(t.Context(), granted(t, policy.Limits{}, "http://a.example"), get("http://a.example/"))
	if services.KindOf(err) != services.Protocol || n != maxRedirects+1 {
		t.Errorf("%d requests: %v", n, err)
	}
	if _, err := w.Fetch(t.Context(), granted(t, policy.Limits{}, "http://a.example"), get("http://a.example/two")); services.KindOf(err) != services.Protocol || n != maxRedirects+2 {
		t.Errorf("two places to go to: %v", err)
	}
	n = 0
	if _, err := w.Fetch(t.Context(), granted(t, policy.Limits{HTTPRequests: 3}, "http://a.example"), get("http://a.example/")); services.KindOf(err) != services.Denied || n != 3 {
		t.Errorf("redirects cost %d requests: %v", n, err)
	}
}

func TestN03N06NamesThatLeadToThisMachine(t *testing.T) {
	trap := newTrap(t)
	addrs := []string{"127.0.0.1", "127.0.0.9", "0.0.0.0", "::ffff:127.0.0.1", "::1", "::", "::ffff:0.0.0.0", "10.0.0.1", "172.16.0.1", "192.168.0.1", "64:ff9b::7f00:1"}
	w := newWorld(t, func(name string, _ int) []string {
		var i int
		if _, err := fmt.Sscanf(name, "n%d.example", &i); err != nil {
			return nil
		}
		return []string{addrs[i]}
	})
	grant := granted(t, policy.Limits{}, "http://*.example:*", "http://0.0.0.0/0:*", "http://[::/0]:*")
	for i, a := range addrs {
		_, err := w.Fetch(t.Context(), grant, get(fmt.Sprintf("http://n%d.example:%d/", i, trap.port())))
		denial := denialOf(err)
		if services.KindOf(err) != services.Denied || denial == nil || !denial.Addr.IsValid() {
			t.Errorf("a name that leads to %s: %v", a, err)
		}
	}
	if got := w.wires.all(); len(got) != 0 {
		t.Errorf("there were connections to %v", got)
	}
}

// TestN04Rebinding: a name server that changes its mind gets one question, and
// the connection goes to its first answer.
func TestN04Rebinding(t *testing.T) {
	trap := newTrap(t)
	w := newWorld(t, func(name string, before int) []string {
		switch {
		case name == "rebinds.example" && before == 0:
			return []string{public}
		case name == "mixed.example":
			return []string{public, "127.0.0.1", "93.184.216.35"}
		case name == "mixed6.example":
			return []string{public, "::1"}
		}
		return []string{"127.0.0.1", "::1"}
	})
	reached := 0
	server := plain(t, func(http.ResponseWriter, *http.Request) { reached++ })
	w.wires.plug(fmt.Sprintf("%s:%d", public, trap.port()), server.Listener.Addr())
	w.wires.plug(fmt.Sprintf("93.184.216.35:%d", trap.port()), server.Listener.Addr())
	grant := granted(t, policy.Limits{}, "http://*.example:*")
	url := func(name string) services.Request { return get(fmt.Sprintf("http://%s:%d/", name, trap.port())) }

	if _, err := w.Fetch(t.Context(), grant, url("rebinds.example")); err != nil || reached != 1 {
		t.Errorf("the first answer was not dialled: %v", err)
	}
	if n := w.dns.count("rebinds.example"); n != 2 { // A and AAAA
		t.Errorf("there were %d queries, want one for each kind of address", n)
	}
	if _, err := w.Fetch(t.Context(), grant, url("rebinds.example")); services.KindOf(err) != services.Denied {
		t.Errorf("the second answer: %v", err)
	}
	for _, name := range []string{"mixed.example", "mixed6.example"} {
		if _, err := w.Fetch(t.Context(), grant, url(name)); services.KindOf(err) != services.Denied {
			t.Errorf("%s: %v", name, err)
		}
	}
	if reached != 1 {
		t.Errorf("the server was reached %d times", reached)
	}
}

// TestTheCheckedAddressIsDialled replaces the dialler: it gets only addresses, never names.
func TestTheCheckedAddressIsDialled(t *testing.T) {
	w := newWorld(t, names(map[string][]string{"a.example": {public, "93.184.216.35", "2606:2800:220:1::1"}}))
	if _, err := w.dial(t.Context(), reaching(t, "a.example").Decide("a.example", 443, network.HTTPS)); services.KindOf(err) != services.Connect {
		t.Errorf("nothing answers: %v", err)
	}
	var got []string
	for _, a := range w.wires.all() {
		got = append(got, a.String())
	}
	slices.Sort(got)
	if fmt.Sprint(got) != "[93.184.216.34:443 93.184.216.35:443 [2606:2800:220:1::1]:443]" {
		t.Errorf("dialled %v", got)
	}
	// One that the socket would be connected to in its place is refused.
	trap := newTrap(t)
	if _, err := w.dial(t.Context(), network.Decision{}); services.KindOf(err) != services.Denied {
		t.Errorf("without a decision: %v", err)
	}
	d := reaching(t, "http://localhost:*", "http://127.0.0.1:1").Decide("localhost", trap.port(), network.HTTP)
	if _, err := w.dial(t.Context(), d); services.KindOf(err) != services.Denied {
		t.Errorf("another port of this machine: %v", err)
	}
}

func TestThisMachineWhenItIsGranted(t *testing.T) {
	w := newWorld(t, names(nil))
	server := plain(t, func(rw http.ResponseWriter, _ *http.Request) { fmt.Fprint(rw, "here") })
	addr := server.Listener.Addr().String()
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	for _, url := range []string{"http://" + addr, "http://localhost:" + port, "http://x.localhost:" + port} {
		resp, err := w.Fetch(t.Context(), granted(t, policy.Limits{}, "http://"+addr), get(url))
		if err != nil || string(resp.Body) != "here" {
			t.Errorf("%s: %+v, %v", url, resp, err)
		}
	}
	if n := w.dns.count(""); n != 0 {
		t.Errorf("this machine was looked up %d times", n)
	}
}

func TestN09Ports(t *testing.T) {
	trap := newTrap(t)
	w := newWorld(t, names(map[string][]string{"a.example": {"127.0.0.1"}, "b.example": {public}}))
	grant := granted(t, policy.Limits{}, "a.example", "http://a.example", "b.example", "127.0.0.1", "http://127.0.0.1")
	for _, url := range []string{
		"http://a.example:%d/", "https://a.example:%d/", "http://127.0.0.1:%d/", "https://127.0.0.1:%d/", "http://localhost:%d/",
	} {
		if _, err := w.Fetch(t.Context(), grant, get(fmt.Sprintf(url, trap.port()))); services.KindOf(err) != services.Denied {
			t.Errorf("%s: %v", url, err)
		}
	}
	for _, port := range []int{21, 22, 23, 25, 110, 445, 2375, 3306, 5432, 6379, 9200, 11211, 27017} {
		if _, err := w.Fetch(t.Context(), grant, get(fmt.Sprintf("https://b.example:%d/", port))); services.KindOf(err) != services.Denied {
			t.Errorf("port %d: %v", port, err)
		}
	}
	if w.dns.count("") != 0 || len(w.wires.all()) != 0 {
		t.Errorf("%d queries, connections to %v", w.dns.count(""), w.wires.all())
	}
}

func TestN11N19RequestsThatAreNotSent(t *testing.T) {
	w := newWorld(t, names(map[string][]string{"a.example": {public}}))
	asked := 0
	w.wires.plug(public+":80", plain(t, func(http.ResponseWriter, *http.Request) { asked++ }).Listener.Addr())
	grant := granted(t, policy.Limits{}, "http://a.example")
	var many [][2]string
	for i := range 65 {
		many = append(many, [2]string{fmt.Sprint("x-", i), "1"})
	}
	bad := map[string][][2]string{
		"a line break in a value":   {{"x", "a\r\nHost: evil.test"}},
		"a line feed in a value":    {{"x", "a\nb"}},
		"a return in a value":       {{"x", "a\rb"}},
		"a NUL in a value":          {{"x", "a\x00b"}},
		"not ASCII in a value":      {{"x", "a\u010d\u010a"}},
		"a line break in a name":    {{"x\r\nHost", "evil.test"}},
		"a space in a name":         {{"Transfer-Encoding ", "chunked"}},
		"a colon in a name":         {{"x:", "y"}},
		"no name":                   {{"", "y"}},
		"too many":                  many,
		"too large":                 {{"x", strings.Repeat("a", 17<<10)}},
		"a tab before the name":     {{"\tx", "y"}},
		"a name that is not ASCII":  {{"h\u00f6st", "y"}},
		"a Kelvin sign in the name": {{"\u212aeep-alive", "y"}},
	}
	for _, name := range []string{
		"Host", "host", "HOST", "Connection", "Content-Length", "Transfer-Encoding", "TE", "Trailer", "Upgrade", "Expect", "Keep-Alive", "HTTP2-Settings",
		"Proxy-Authorization", "Proxy-Connection", "proxy-x", "Authorization", "Accept-Encoding", "Sec-WebSocket-Key",
	} {
		bad["header "+name] = [][2]string{{name, "x"}}
	}
	for what, headers := range bad {
		if _, err := w.Fetch(t.Context(), grant, services.Request{Method: "GET", URL: "http://a.example/", Headers: headers}); services.KindOf(err) != services.Invalid {
			t.Errorf("%s: %v", what, err)
		}
	}
	for _, method := range []string{"", "get", "CONNECT", "TRACE", "GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n", "GET\x00", "PRI", "GÉT", "PURGE"} {
		if _, err := w.Fetch(t.Context(), grant, services.Request{Method: method, URL: "http://a.example/"}); services.KindOf(err) != services.Invalid {
			t.Errorf("method %q: %v", method, err)
		}
	}
	if asked != 0 || len(w.wires.all()) != 0 || w.dns.count("") != 0 {
		t.Errorf("%d requests, connections to %v", asked, w.wires.all())
	}
}

// TestN12TheEnvironmentIsIgnored: neither a proxy nor an authority comes from the environment.
func TestN12TheEnvironmentIsIgnored(t *testing.T) {
	trap := newTrap(t)
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"} {
		t.Setenv(name, "http://"+trap.Addr().String())
	}
	t.Setenv("NO_PROXY", "")
	w := newWorld(t, names(map[string][]string{"a.example": {public}}))
	server := secure(t, func(rw http.ResponseWriter, _ *http.Request) { fmt.Fprint(rw, "direct") }, "a.example")
	w.wires.plug(public+":443", server.Listener.Addr())
	resp, err := w.Fetch(t.Context(), granted(t, policy.Limits{}, "a.example"), get("https://a.example/"))
	if err != nil || string(resp.Body) != "direct" {
		t.Errorf("%+v, %v", resp, err)
	}
	answer, err := w.Client(reaching(t, "a.example")).Get("https://a.example/")
	if err != nil || answer.StatusCode != 200 {
		t.Errorf("%+v, %v", answer, err)
	} else {
		answer.Body.Close()
	}
}

func TestALostCallEndsItsRequest(t *testing.T) {
	w := newWorld(t, names(map[string][]string{"a.example": {public}}))
	arrived, ended := make(chan struct{}), make(chan struct{})
	w.wires.plug(public+":80", plain(t, func(_ http.ResponseWriter, r *http.Request) {
		close(arrived)
		<-r.Context().Done()
		close(ended)
	}).Listener.Addr())
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-arrived; cancel() }()
	if _, err := w.Fetch(ctx, granted(t, policy.Limits{}, "http://a.example"), get("http://a.example/")); err == nil {
		t.Error("a cancelled request has an answer")
	}
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		t.Error("the connection is still open")
	}
}

func TestAddressesAreFew(t *testing.T) {
	lots := make([]netip.Addr, maxAddresses+1)
	for i := range lots {
		lots[i] = netip.AddrFrom4([4]byte{93, 184, byte(i >> 8), byte(i)})
	}
	w := newWorld(t, nil, func(o *Options) { o.resolver = fixed(lots) })
	d := reaching(t, "a.example").Decide("a.example", 443, network.HTTPS)
	if _, err := w.dial(t.Context(), d); services.KindOf(err) != services.DNS || len(w.wires.all()) != 0 {
		t.Errorf("%d addresses: %v", len(lots), err)
	}
	w = newWorld(t, nil, func(o *Options) { o.resolver = fixed(lots[:maxAddresses]) })
	if _, err := w.dial(t.Context(), d); services.KindOf(err) != services.Connect || len(w.wires.all()) != maxAttempts {
		t.Errorf("%d attempts: %v", len(w.wires.all()), err)
	}
	w = newWorld(t, nil, func(o *Options) { o.resolver = fixed(nil) })
	if _, err := w.dial(t.Context(), d); services.KindOf(err) != services.DNS {
		t.Errorf("no address: %v", err)
	}
}

// fixed is a resolver with one answer.
type fixed []netip.Addr

func (f fixed) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) { return f, nil }
