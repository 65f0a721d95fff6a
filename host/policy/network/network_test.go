package network

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"
)

func rulesOf(t testing.TB, texts ...string) (rules []Rule) {
	t.Helper()
	for _, text := range texts {
		parse := ParseRule
		if rest, ok := strings.CutPrefix(text, "not "); ok {
			parse, text = ParseDenial, rest
		}
		r, err := parse(text)
		if err != nil {
			t.Fatal(err)
		}
		rules = append(rules, r)
	}
	return rules
}

// denialOf returns the denial that an error wraps, or nil.
func denialOf(err error) *Denial {
	denial, _ := errors.AsType[*Denial](err)
	return denial
}

func TestRules(t *testing.T) {
	for _, c := range []struct{ effect, text, want string }{
		{"allow", "example.com", "example.com"},
		{"allow", "https://Example.com.:443", "example.com"},
		{"allow", "http://example.com", "http://example.com"},
		{"allow", "http://example.com:80", "http://example.com"},
		{"allow", "example.com:8443", "example.com:8443"},
		{"allow", "example.com:*", "example.com:*"},
		{"allow", "tcp://example.com:22", "tcp://example.com:22"},
		{"allow", "*.example.com", "*.example.com"},
		{"allow", "*.bücher.example", "*.xn--bcher-kva.example"},
		{"allow", "10.0.0.1", "10.0.0.1"},
		{"allow", "10.0.0.1/32", "10.0.0.1"},
		{"allow", "http://10.0.0.0/8:8080", "http://10.0.0.0/8:8080"},
		{"allow", "::1", "[::1]"},
		{"allow", "fd00::/8", "[fd00::/8]"},
		{"allow", "http://[::1]:8080", "http://[::1]:8080"},
		{"allow", "[fd00::/8]:*", "[fd00::/8]:*"},
		{"deny", "example.com", "example.com"},
		{"deny", "example.com:22", "example.com:22"},
		{"deny", "http://example.com", "http://example.com"},
		{"deny", "https://example.com:443", "https://example.com:443"},
		{"deny", "10.0.0.0/8", "10.0.0.0/8"},
		{"deny", "[::1]:443", "[::1]:443"},
	} {
		parse := map[string]func(string) (Rule, error){"allow": ParseRule, "deny": ParseDenial}[c.effect]
		r, err := parse(c.text)
		if err != nil || r.String() != c.want {
			t.Errorf("%s %q is %q, %v; want %q", c.effect, c.text, r, err, c.want)
			continue
		}
		if again, err := parse(r.String()); err != nil || again != r {
			t.Errorf("%q is read again as %+v, %v; want %+v", r, again, err, r)
		}
	}
	for _, text := range []string{
		"", "*", "*.", "*.*.com", "a.*.com", "*a.com", "*.1.2.3.4", "*.10.0.0.0/8", "ftp://a", "a://b", "://a", "https://", "https://a/b", "a/8", "10.0.0.1/8",
		"10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/08", "10/8", "::1/129", "a:", "a:0", "a:065", "a:65536", "a:-1", "a:+1", "a:1:2", "a:http", "[::1", "[::1]x", "[::1]80",
		"[10.0.0.1]", "[a]:1", "fe80::1%eth0", "[fe80::1%eth0]:1", "fe80::/10%eth0", "::ffff:10.0.0.1", "::ffff:0:0/96", "::ffff:10.0.0.0/104", "tcp://a",
		"user@a", "a b", "127.1", "2130706433", "a%2e", "*.xn--a", "HTTPS://a", "a:*:1", "**.a",
	} {
		if r, err := ParseRule(text); err == nil {
			t.Errorf("%q is accepted as %+v", text, r)
		}
	}
}

func TestDecideAboutTheNetwork(t *testing.T) {
	n := New(rulesOf(t, "api.example.com", "*.example.org", "http://plain.example", "any.example:*", "10.1.0.0/16", "http://127.0.0.1:8080", "0.0.0.0/0",
		"93.184.216.34", "tcp://git.example:22", "not secret.example.org", "not 10.1.2.3", "not bad.example:25", "not 8.8.8.0/24"))
	for _, c := range []struct {
		host  string
		port  uint16
		proto Protocol
		want  string // "" is allowed
	}{
		{"api.example.com", 443, HTTPS, ""},
		{"API.example.com.", 443, HTTPS, ""},
		{"api.example.com", 80, HTTP, `no rule allows it; the rule "http://api.example.com" of the network would`},
		{"api.example.com", 443, HTTP, `the rule "http://api.example.com:443" of the network would`},
		{"api.example.com", 22, HTTPS, `the rule "api.example.com:22" of the network would`},
		{"api.example.com", 25, TCP, `the rule "tcp://api.example.com:25" of the network would`},
		{"api.example.com", 6379, HTTPS, "no rule"},
		{"api.example.com", 9200, HTTP, "no rule"},
		{"api.example.com", 0, HTTPS, "port 0"},
		{"api.example.com", 443, "gopher", "not spoken"},
		{"api.example.com", 443, "", "not spoken"},
		// N01, N08, P18: whole labels, one parser.
		{"example.com", 443, HTTPS, "no rule"},
		{"xapi.example.com", 443, HTTPS, "no rule"},
		{"a.api.example.com", 443, HTTPS, "no rule"},
		{"api.example.com.evil", 443, HTTPS, "no rule"},
		{"example.org", 443, HTTPS, "no rule"},
		{"a.example.org", 443, HTTPS, ""},
		{"a.b.example.org", 443, HTTPS, ""},
		{"evilexample.org", 443, HTTPS, "no rule"},
		{"a.example.org.evil", 443, HTTPS, "no rule"},
		{"*.example.org", 443, HTTPS, "something else than letters"},
		{"api.example.com@evil", 443, HTTPS, "something else"},
		{"secret.example.org", 443, HTTPS, `the settings rule "secret.example.org" denies it`},
		{"secret.example.org", 80, HTTP, "denies it"},
		{"git.example", 22, TCP, ""},
		{"git.example", 22, HTTPS, "no rule"},
		{"any.example", 65535, HTTPS, ""},
		{"any.example", 80, HTTP, "no rule"},
		{"plain.example", 80, HTTP, ""},
		// Addresses.
		{"93.184.216.34", 443, HTTPS, ""},
		{"93.184.216.34", 444, HTTPS, "no rule"},
		{"93.184.216.35", 443, HTTPS, ""}, // by 0.0.0.0/0
		{"8.8.8.8", 443, HTTPS, `rule "8.8.8.0/24" denies it`},
		{"10.1.9.9", 443, HTTPS, ""},
		{"10.1.2.3", 443, HTTPS, "denies it"},
		{"10.2.0.1", 443, HTTPS, `10.2.0.1 is private (10.0.0.0/8) and not granted by address; the rule "10.2.0.1" of the network would`},
		{"10.1.9.9", 80, HTTP, `the rule "http://10.1.9.9" of the network would`},
		{"127.0.0.1", 8080, HTTP, ""},
		{"127.0.0.1", 8081, HTTP, "loopback"},
		{"127.0.0.2", 8080, HTTP, "loopback"},
		{"[::1]", 8080, HTTP, `the rule "http://[::1]:8080" of the network would`},
		{"169.254.169.254", 443, HTTPS, "metadata"},
		{"0.0.0.0", 443, HTTPS, "this network"},
		{"2606:4700::1111", 443, HTTPS, `no rule allows it; the rule "[2606:4700::1111]" of the network would`},
		{"::ffff:93.184.216.34", 443, HTTPS, "mapped"},
		// This machine under its own name needs the address, and no resolver.
		{"localhost", 8080, HTTP, ""},
		{"Localhost.", 8080, HTTP, ""},
		{"a.localhost", 8080, HTTP, ""},
		{"localhost", 80, HTTP, `127.0.0.1 is loopback (127.0.0.0/8) and not granted by address; the rule "http://127.0.0.1" of the network would`},
		{"localhost.example", 8080, HTTP, "no rule"},
	} {
		d := n.Decide(c.host, c.port, c.proto)
		err := d.Err()
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s://%s:%d: %v, want %q", c.proto, c.host, c.port, err, c.want)
		}
		if err != nil && (d.Addresses() != nil || d.CheckAddr(netip.MustParseAddr("1.1.1.1")) == nil) {
			t.Errorf("%s is denied and leads to %v", c.host, d.Addresses())
		}
	}
	if got := n.Decide("localhost", 8080, HTTP).Addresses(); fmt.Sprint(got) != "[127.0.0.1]" {
		t.Errorf("localhost is %v: only one of its addresses is granted", got)
	}
}

func TestWhereANameLeads(t *testing.T) {
	n := New(rulesOf(t, "a.example", "10.0.0.5", "127.0.0.1:8443", "64:ff9b::/96", "not 1.1.1.1"))
	d := n.Decide("a.example", 443, HTTPS)
	for addr, want := range map[string]string{
		"93.184.216.34":          "",
		"2606:4700::1111":        "",
		"10.0.0.5":               "",
		"::ffff:10.0.0.5":        "", // a connection goes to the IPv4 address
		"1.1.1.1":                "denies it",
		"::ffff:1.1.1.1":         "denies it",
		"10.0.0.6":               `the rule "10.0.0.6" of the network would`,
		"::ffff:10.0.0.6":        "private",
		"127.0.0.1":              `the rule "127.0.0.1" of the network would`, // granted at another port
		"64:ff9b::93.184.216.34": "",
		"64:ff9b::10.0.0.5":      "",
		"64:ff9b::10.0.0.6":      "private",
		"64:ff9b::127.0.0.1":     "loopback",
		"64:ff9b::1.1.1.1":       "denies it",
		"2002:5db8:d822::1":      "6to4",
		"fe80::1%eth0":           "zone",
		"::1":                    "loopback",
	} {
		err := d.CheckAddr(netip.MustParseAddr(addr))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", addr, err, want)
		}
		if err != nil && denialOf(err) == nil {
			t.Errorf("%s: %T is no denial", addr, err)
		}
	}
	if d.CheckAddr(netip.Addr{}) == nil || (Decision{}).CheckAddr(netip.MustParseAddr("1.0.0.1")) == nil || (Decision{}).Err() == nil {
		t.Error("nothing allows")
	}
	literal := n.Decide("10.0.0.5", 443, HTTPS)
	if literal.CheckAddr(netip.MustParseAddr("93.184.216.34")) == nil {
		t.Error("an address leads to another")
	}
	var none *Network
	if none.Decide("a.example", 443, HTTPS).Err() == nil || none.Restrict(sourceAdministrator, nil) != nil || none.Rules() != nil {
		t.Error("no network allows")
	}
}

// TestReservedRanges: the first and the last address of each range are refused to a name,
// and to a rule with a wider prefix.
func TestReservedRanges(t *testing.T) {
	wide := New(rulesOf(t, "a.example", "0.0.0.0/0", "::/0", "64.0.0.0/2", "::/2"))
	d := wide.Decide("a.example", 443, HTTPS)
	for _, r := range reservedRanges {
		for _, a := range []netip.Addr{r.prefix.Addr(), lastOf(r.prefix)} {
			if Public(a) {
				t.Errorf("%s of %s is public", a, r.prefix)
			}
			if !a.Is4In6() && d.CheckAddr(a) == nil {
				t.Errorf("a name may lead to %s of %s", a, r.prefix)
			}
			if wide.Decide(a.String(), 443, HTTPS).Err() == nil {
				t.Errorf("%s of %s is allowed by a rule that is wider", a, r.prefix)
			}
		}
	}
	for _, text := range []string{
		"1.1.1.1", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.0", "168.63.129.15", "169.253.255.255", "169.255.0.0",
		"172.15.255.255", "172.32.0.0", "192.0.1.0", "192.0.3.0", "192.167.255.255", "192.169.0.0", "198.17.255.255", "198.20.0.0", "198.51.99.255", "203.0.114.0",
		"223.255.255.255", "2000::", "2001:200::", "2001:4860:4860::8888", "2003::", "2606:4700::1111", "3ffe::", "2a00:1450::",
	} {
		if a := netip.MustParseAddr(text); !Public(a) || d.CheckAddr(a) != nil {
			t.Errorf("%s is refused: %v", text, d.CheckAddr(a))
		}
	}
}

func lastOf(p netip.Prefix) netip.Addr {
	b := p.Addr().AsSlice()
	for i := range b {
		for bit := range 8 {
			if 8*i+bit >= p.Bits() {
				b[i] |= 0x80 >> bit
			}
		}
	}
	a, _ := netip.AddrFromSlice(b)
	return a
}

// TestTheGrantOfADenialAllows adds the rules that denials propose until the host is
// allowed. Each is the smallest, and two are enough.
func TestTheGrantOfADenialAllows(t *testing.T) {
	for _, host := range []string{"a.example", "10.0.0.1", "::1", "fd00::1", "localhost", "169.254.169.254", "64:ff9b::7f00:1", "8.8.8.8"} {
		for _, proto := range []Protocol{HTTP, HTTPS, TCP} {
			var rules []Rule
			for steps := 0; ; steps++ {
				denial := denialOf(New(rules).Decide(host, 8080, proto).Err())
				if denial == nil {
					break
				}
				if denial.AllowRule == nil || steps == 3 {
					t.Errorf("%s %s: %v after %v", proto, host, denial, rules)
					break
				}
				again, err := ParseRule(denial.AllowRule.String())
				if err != nil || again != *denial.AllowRule {
					t.Errorf("the grant %q is read as %+v, %v", denial.AllowRule, again, err)
				}
				if other := New(append(rules, again)).Decide("b.example", 8080, proto); other.Err() == nil {
					t.Errorf("%q allows more than %s", again, host)
				}
				rules = append(rules, again)
			}
		}
	}
	d := New(rulesOf(t, "a.example")).Decide("a.example", 443, HTTPS)
	denial := denialOf(d.CheckAddr(netip.MustParseAddr("192.168.1.1")))
	if denial == nil || denial.AllowRule == nil || denial.AllowRule.String() != "192.168.1.1" || denial.Addr.String() != "192.168.1.1" || denial.Host != "a.example" {
		t.Errorf("the denial of an address is %+v", denial)
	}
}

func TestTheAdministratorsListIsACeiling(t *testing.T) {
	user := New(rulesOf(t, "a.example", "b.example", "10.0.0.0/8", "localhost.example"))
	n := user.Restrict(sourceAdministrator, rulesOf(t, "a.example", "10.1.0.0/16", "not 10.1.1.1", "c.example"))
	for host, want := range map[string]string{
		"a.example": "", "10.1.0.1": "", "b.example": "not on the administrator's list", "c.example": "no rule allows it",
		"10.2.0.1": "by the administrator", "10.1.1.1": "denies it",
	} {
		err := n.Decide(host, 443, HTTPS).Err()
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", host, err, want)
		}
		if denial := denialOf(err); denial != nil && strings.Contains(want, "administrator") && denial.AllowRule != nil {
			t.Errorf("%s: a user is told that %s would help", host, denial.AllowRule)
		}
	}
	if user.Restrict(sourceAdministrator, nil).Decide("a.example", 443, HTTPS).Err() == nil {
		t.Error("an empty list allows everything")
	}
	if user.Decide("b.example", 443, HTTPS).Err() != nil {
		t.Error("the list of one changed another")
	}
}

func TestTheProvidersNetwork(t *testing.T) {
	of := func(host string, port uint16, proto Protocol, rules ...string) *Network {
		h, err := ParseHost(host)
		if err != nil {
			t.Fatal(err)
		}
		return ForProvider(h, port, proto, rulesOf(t, rules...))
	}
	api := of("api.example.com", 443, HTTPS, "10.0.0.0/8", "other.example")
	d := api.Decide("api.example.com", 443, HTTPS)
	for addr, ok := range map[string]bool{"93.184.216.34": true, "127.0.0.1": true, "::1": true, "10.0.0.1": true, "192.168.0.1": false, "169.254.169.254": false} {
		if err := d.CheckAddr(netip.MustParseAddr(addr)); (err == nil) != ok {
			t.Errorf("the provider at %s: %v", addr, err)
		}
	}
	for _, host := range []string{"other.example", "example.com", "www.api.example.com", "192.168.0.1"} {
		if api.Decide(host, 443, HTTPS).Err() == nil {
			t.Errorf("the provider's client may talk to %s", host)
		}
	}
	for what, n := range map[string]*Network{
		"http":                       of("localhost", 11434, HTTP),
		"an address":                 of("127.0.0.1", 11434, HTTP),
		"one in a private network":   of("192.168.0.1", 11434, HTTP),
		"a denial of something else": of("localhost", 11434, HTTP, "not api.example.com"),
	} {
		host := map[string]string{"an address": "127.0.0.1", "one in a private network": "192.168.0.1"}[what]
		if host == "" {
			host = "localhost"
		}
		if err := n.Decide(host, 11434, HTTP).Err(); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if n.Decide(host, 11435, HTTP).Err() == nil {
			t.Errorf("%s: at another port, too", what)
		}
	}
	if of("localhost", 11434, HTTP, "not 127.0.0.0/8", "not ::1").Decide("localhost", 11434, HTTP).Err() == nil {
		t.Error("what the user denies is allowed to the provider")
	}
	admin := api.Restrict(sourceAdministrator, rulesOf(t, "models.example"))
	if admin.Decide("api.example.com", 443, HTTPS).Err() == nil {
		t.Error("the provider is not on the administrator's list")
	}
	loopback := of("localhost", 11434, HTTP).Restrict(sourceAdministrator, rulesOf(t, "models.example"))
	if loopback.Decide("localhost", 11434, HTTP).Err() == nil {
		t.Error("loopback is not on the administrator's list")
	}
}

// TestDenyWinsAndLayersNarrow tries random rules: a host that matches a rule which denies
// is denied, and a further layer never allows a denied host.
func TestDenyWinsAndLayersNarrow(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	hosts := []string{"a.example", "b.a.example", "example", "10.0.0.1", "10.0.1.1", "127.0.0.1", "8.8.8.8", "::1", "2606::1", "localhost", "64:ff9b::a00:1"}
	texts := []string{"a.example", "*.example", "*.a.example", "10.0.0.0/24", "10.0.0.0/8", "127.0.0.1", "0.0.0.0/0", "::/0", "::1", "64:ff9b::/96", "8.8.8.8",
		"localhost", "http://a.example", "a.example:8443"}
	some := func() (out []string) {
		for range rnd.IntN(5) {
			text := texts[rnd.IntN(len(texts))]
			if rnd.IntN(4) == 0 {
				text = "not " + text
			}
			out = append(out, text)
		}
		return out
	}
	allowed := 0
	for range 20_000 {
		first, second, denied := some(), some(), texts[rnd.IntN(len(texts))]
		n := New(rulesOf(t, first...))
		narrow := n.Restrict(sourceAdministrator, rulesOf(t, second...))
		denying := New(rulesOf(t, append(first, "not "+denied)...))
		rule := rulesOf(t, "not "+denied)[0]
		for _, host := range hosts {
			before := n.Decide(host, 443, HTTPS)
			if before.Err() == nil {
				allowed++
			}
			if narrow.Decide(host, 443, HTTPS).Err() == nil && before.Err() != nil {
				t.Fatalf("%v under %v allows %s", first, second, host)
			}
			d := denying.Decide(host, 443, HTTPS)
			h := d.Host()
			if d.Err() == nil && rule.matchesPort(443, HTTPS) && (rule.matchesName(h.Name()) || h.IsAddr() && contains(rule.Prefix, h.Addr())) {
				t.Fatalf("%v and not %s allows %s", first, denied, host)
			}
			if d.Err() == nil && before.Err() != nil {
				t.Fatalf("%v allows %s once %s is denied", first, host, denied)
			}
		}
	}
	if allowed < 1000 {
		t.Errorf("only %d were allowed at all", allowed)
	}
}

// A tool with an allowance does not get the hosts of other tools; denials for all tools
// hold for it.
func TestAToolHasANetworkOfItsOwn(t *testing.T) {
	all := New(rulesOf(t, "open.example", "10.0.0.1", "not denied.example"))
	asked := func(texts ...string) (rules []Rule) {
		for _, text := range texts {
			r, err := ParseAsked(text)
			if err != nil {
				t.Fatal(err)
			}
			rules = append(rules, r)
		}
		return rules
	}
	for name, c := range map[string]struct {
		given, asked []Rule
		host         string
		port         uint16
		want         string // what the denial says; empty: it is allowed
	}{
		"what is open to others":                {nil, nil, "open.example", 443, "the tool was not given this host"},
		"an address that is":                    {nil, nil, "10.0.0.1", 443, "not granted by address to the tool"},
		"what it was given":                     {rulesOf(t, "a.example"), nil, "a.example", 443, ""},
		"at another port":                       {rulesOf(t, "a.example"), nil, "a.example", 8443, "the tool was not given this host"},
		"what is denied to all":                 {rulesOf(t, "denied.example"), nil, "denied.example", 443, `"denied.example" denies it`},
		"what it asks for, at any port":         {rulesOf(t, "a.example:*"), asked("a.example"), "a.example", 8443, ""},
		"what it does not ask for":              {rulesOf(t, "*.a.example"), asked("b.a.example"), "c.a.example", 443, "the tool does not ask for this host"},
		"at a port that it does not":            {rulesOf(t, "a.example:*"), asked("a.example:443"), "a.example", 8443, "the tool does not ask for this host"},
		"what it asks for and was not given":    {rulesOf(t, "a.example"), asked("a.example", "b.example"), "b.example", 443, "the tool was not given this host"},
		"an address that it does not ask for":   {rulesOf(t, "10.0.0.2"), asked("a.example"), "10.0.0.2", 443, "the tool does not ask for the address 10.0.0.2"},
		"an address that it was given and asks": {rulesOf(t, "10.0.0.2"), asked("10.0.0.2"), "10.0.0.2", 443, ""},
	} {
		err := all.ForTool(c.given, c.asked).Decide(c.host, c.port, HTTPS).Err()
		switch denial := denialOf(err); {
		case c.want == "" && err != nil, c.want != "" && (denial == nil || !strings.Contains(denial.Reason, c.want)):
			t.Errorf("%s: %v", name, err)
		case denial != nil && denial.AllowRule != nil:
			t.Errorf("%s: it offers the rule %s for all tools", name, denial.AllowRule)
		}
	}
	if n := all.ForTool(rulesOf(t, "a.example", "b.example"), asked("b.example:443")); strings.Join(n.OpenRules(), " ") != "b.example" || n.Closed() {
		t.Errorf("open are %q", n.OpenRules())
	}
	if n := (*Network)(nil).ForTool(rulesOf(t, "a.example"), nil); n.Decide("a.example", 443, HTTPS).Err() != nil {
		t.Error("a network of its own needs another")
	}
}

func FuzzRule(f *testing.F) {
	for _, text := range []string{"a.example", "*.a", "http://[::1]:80", "10.0.0.0/8:*", "[fd00::/8]:1", "tcp://a:22", "::1", "a:b"} {
		f.Add(text, true)
		f.Add(text, false)
	}
	f.Fuzz(func(t *testing.T, text string, allow bool) {
		parse := ParseDenial
		if allow {
			parse = ParseRule
		}
		r, err := parse(text)
		if err != nil {
			return
		}
		if r.Allow != allow || (r.Name == "") != r.Prefix.IsValid() || r.Subdomains && r.Name == "" {
			t.Errorf("%q is %+v", text, r)
		}
		again, err := parse(r.String())
		if err != nil || again != r {
			t.Errorf("%q is %q, which is %+v, %v", text, r, again, err)
		}
		if !allow {
			return
		}
		// A rule for a name opens no address. A rule for a prefix outside the special
		// ranges opens no special address.
		n := New([]Rule{r})
		for _, s := range []string{"127.0.0.1", "10.0.0.1", "169.254.169.254", "::1", "fd00:ec2::254", "64:ff9b::7f00:1"} {
			a := netip.MustParseAddr(s)
			port, proto := max(r.Port, 1), r.Protocol
			if n.Decide(s, port, proto).Err() == nil && (!contains(r.Prefix, a) || r.Prefix.Bits() < 8) {
				t.Errorf("%q allows %s", text, s)
			}
		}
	})
}

// TestOpened: WithHost opens a name of the internet if only a rule of the settings is
// missing.
func TestOpened(t *testing.T) {
	n := New(rulesOf(t, "a.example", "e.example", "f.example", "not d.example")).Restrict(sourceAdministrator, rulesOf(t, "*.example:*", "http://10.0.0.1:*"))
	for name, want := range map[string]bool{
		"b.example": true, "B.Example.": true, "a.example": false, "d.example": false, "c.test": false, "b.example.org": false,
		"localhost": false, "x.localhost": false, "example": false, "10.0.0.1": false, "93.184.216.34": false, "": false, "*.b.example": false, "b.example:443": false,
	} {
		out, ok := n.WithHost(name)
		if ok != want || ok && (out.Decide(name, 443, HTTPS).Err() != nil || out.Decide("c.example", 443, HTTPS).Err() == nil || out.Decide("d.example", 443, HTTPS).Err() == nil) {
			t.Errorf("%q is opened: %v, %v", name, ok, out.Rules())
		}
	}
	b, _ := n.WithHost("b.example")
	n.WithHost("c.example")
	if n.Decide("b.example", 443, HTTPS).Err() == nil || b.Decide("b.example", 443, HTTPS).Err() != nil || b.Decide("c.example", 443, HTTPS).Err() == nil {
		t.Error("a network that was there is another now")
	}
	for name, n := range map[string]*Network{
		"none": nil, "the zero value": {}, "of an added tool": n.ForTool(rulesOf(t, "a.example"), nil),
	} {
		if _, ok := n.WithHost("b.example"); ok || n.CanAddHost() {
			t.Errorf("a network is opened: %s", name)
		}
	}
	if !n.CanAddHost() || n.Restrict(sourceUser, nil).CanAddHost() || n.Restrict(sourceUser, rulesOf(t, "http://*.example:*", "1.2.3.4:*")).CanAddHost() {
		t.Error("what is closed can be opened, or what is not cannot")
	}
}
