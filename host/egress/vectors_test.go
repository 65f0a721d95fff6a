package egress

import (
	"bufio"
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/policy/network"
	"github.com/stockade-dev/stockade/host/services"
)

// vectorRules allow as much as rules can.
var vectorRules = []string{
	"*.example:*", "http://*.example:*", "*.com:*", "http://*.com:*", "0.0.0.0/0:*", "http://0.0.0.0/0:*", "[::/0]:*", "http://[::/0]:*",
	"localhost:*", "http://localhost:*", "http://localhost.localdomain:*", "http://metadata.google.internal:*", "http://metadata:*",
}

// vectorZone returns the addresses of the names in testdata.
func vectorZone(name string, _ int) []string {
	zone := map[string][]string{
		"loopback.example": {"127.0.0.1"}, "loopback6.example": {"::1"}, "zero.example": {"0.0.0.0"}, "unspecified6.example": {"::"},
		"private10.example": {"10.1.2.3"}, "private172.example": {"172.16.1.1"}, "private192.example": {"192.168.1.1"},
		"cgnat.example": {"100.64.1.1"}, "linklocal.example": {"169.254.1.1"}, "metadata.example": {"169.254.169.254"}, "metadata6.example": {"fd00:ec2::254"},
		"mapped.example": {"::ffff:127.0.0.1"}, "mappedprivate.example": {"::ffff:10.0.0.1"}, "compatible.example": {"::7f00:1"},
		"nat64.example": {"64:ff9b::7f00:1"}, "nat64public.example": {"64:ff9b::5db8:d822"}, "6to4.example": {"2002:7f00:1::1"}, "teredo.example": {"2001::1"},
		"ula.example": {"fd00::1"}, "sitelocal.example": {"fec0::1"}, "linklocal6.example": {"fe80::1"}, "multicast.example": {"224.0.0.1"},
		"broadcast.example": {"255.255.255.255"}, "benchmark.example": {"198.18.0.1"},
		"mixed.example": {public, "127.0.0.1"}, "mixed6.example": {public, "::1"}, "lastbad.example": {public, "8.8.8.8", "1.1.1.1", "10.0.0.1"},
		"localhost.localdomain": {"127.0.0.1"}, "metadata.google.internal": {"169.254.169.254"}, "metadata": {"169.254.169.254"},
		"six.example": {"2606:2800:220:1::1"}, "both.example": {public, "2606:2800:220:1::1"},
	}
	switch {
	case zone[name] != nil:
		return zone[name]
	case strings.HasSuffix(name, ".example.com"):
		return []string{public}
	}
	return nil
}

func lines(t testing.TB, name string) (out []string) {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if line := s.Text(); line != "" && !strings.HasPrefix(line, "#") {
			out = append(out, line)
		}
	}
	return out
}

// TestVectorsThatAreRefused: none of these URLs opens a connection.
func TestVectorsThatAreRefused(t *testing.T) {
	w := newWorld(t, vectorZone)
	vectors := lines(t, "testdata/refused.txt")
	if len(vectors) < 120 {
		t.Errorf("only %d vectors", len(vectors))
	}
	grant := granted(t, policy.Limits{HTTPRequests: 1000}, vectorRules...)
	for _, v := range vectors {
		resp, err := w.Fetch(t.Context(), grant, get(v))
		if kind := services.KindOf(err); kind != services.Denied && kind != services.Invalid {
			t.Errorf("%s is answered with %+v, %v", v, resp, err)
		}
	}
	if got := w.wires.all(); len(got) > 0 {
		t.Errorf("there were connections to %v", got)
	}
}

func TestVectorsThatAreAllowed(t *testing.T) {
	w := newWorld(t, vectorZone)
	vectors := lines(t, "testdata/allowed.txt")
	if len(vectors) < 30 {
		t.Errorf("only %d vectors", len(vectors))
	}
	grant := granted(t, policy.Limits{HTTPRequests: 1000}, vectorRules...)
	for _, v := range vectors {
		text, addr, _ := strings.Cut(v, " ")
		before := len(w.wires.all())
		_, err := w.Fetch(t.Context(), grant, get(text))
		dialled := w.wires.all()[before:]
		if services.KindOf(err) != services.Connect || len(dialled) == 0 || !strings.Contains(fmt.Sprint(dialled), addr) {
			t.Errorf("%s: %v, dialled %v; want %s", text, err, dialled, addr)
		}
	}
}

// FuzzTarget: net/url, and so the transport, reads an accepted URL in the same way; the
// URL parses to itself; and an allowed host leads to no refused address.
func FuzzTarget(f *testing.F) {
	for _, v := range lines(f, "testdata/refused.txt") {
		f.Add(v, "/x")
	}
	for _, v := range lines(f, "testdata/allowed.txt") {
		text, _, _ := strings.Cut(v, " ")
		f.Add(text, "//evil.test/")
	}
	wide := reaching(f, vectorRules...)
	f.Fuzz(func(t *testing.T, text, location string) {
		target, err := parseTarget(text)
		if err != nil {
			return
		}
		checkTarget(t, wide, target)
		if next, err := target.redirect(location); err == nil {
			checkTarget(t, wide, next)
			if target.Protocol == network.HTTPS && next.Protocol != network.HTTPS {
				t.Errorf("%s leads from %s to %s", location, target.url, next.url)
			}
		}
	})
}

func checkTarget(t *testing.T, n *network.Network, target target) {
	t.Helper()
	text := target.url.String()
	again, err := parseTarget(text)
	if err != nil || again.Host != target.Host || again.Port != target.Port || again.Protocol != target.Protocol || again.url.String() != text {
		t.Errorf("%s is read again as %+v, %v", text, again, err)
	}
	u, err := url.Parse(text)
	if err != nil || u.Hostname() != target.Host.String() || u.User != nil || u.Fragment != "" || u.Scheme != string(target.Protocol) {
		t.Errorf("others read %s as %+v, %v", text, u, err)
	}
	if p := u.Port(); p != "" && p != fmt.Sprint(target.Port) {
		t.Errorf("others read the port of %s as %s", text, p)
	}
	d := n.Decide(target.Host.String(), target.Port, target.Protocol)
	if d.Err() != nil {
		return
	}
	for _, a := range d.Addresses() {
		if !network.Public(a) || d.CheckAddr(a) != nil {
			t.Errorf("%s leads to %s", text, a)
		}
	}
	for _, a := range []string{"127.0.0.1", "10.0.0.1", "169.254.169.254", "::1", "64:ff9b::7f00:1"} {
		if d.CheckAddr(netip.MustParseAddr(a)) == nil {
			t.Errorf("%s may lead to %s", text, a)
		}
	}
}
