package network

import (
	"net/netip"
	"net/url"
	"strings"
	"testing"
)

// goodHosts maps hosts to their canonical form.
var goodHosts = map[string]string{
	"example.com":                  "example.com",
	"EXAMPLE.com":                  "example.com",
	"example.com.":                 "example.com",
	"a":                            "a",
	"3com.com":                     "3com.com",
	"1.2.3.4.com":                  "1.2.3.4.com",
	"127.0.0.1.nip.io":             "127.0.0.1.nip.io",
	"0x7f.example":                 "0x7f.example",
	"face":                         "face",
	"0xg":                          "0xg",
	"r3---sn-4g5.example.com":      "r3---sn-4g5.example.com",
	"bücher.example":               "xn--bcher-kva.example",
	"xn--bcher-kva.example":        "xn--bcher-kva.example",
	"XN--BCHER-KVA.example":        "xn--bcher-kva.example",
	"xn--fiqs8s":                   "xn--fiqs8s",
	"中国":                           "xn--fiqs8s",
	"аррӏе.example":                "xn--80ak6aa92e.example", // Cyrillic: another name than apple.example
	strings.Repeat("a", 63) + ".b": strings.Repeat("a", 63) + ".b",
	"93.184.216.34":                "93.184.216.34",
	"127.0.0.1":                    "127.0.0.1",
	"0.0.0.0":                      "0.0.0.0",
	"::1":                          "::1",
	"[::1]":                        "::1",
	"[2606:2800:220:1::1]":         "2606:2800:220:1::1",
	"2606:2800:0220:0001:0:0:0:1":  "2606:2800:220:1::1",
	"::ffff:127.0.0.1":             "::ffff:127.0.0.1",
	"::127.0.0.1":                  "::7f00:1",
	"localhost":                    "localhost",
	"LOCALHOST.":                   "localhost",
}

// badHosts are no hosts here, although some other parser accepts them.
var badHosts = []string{
	"", ".", "..", "a..b", ".a", "a.b..", "-a", "a-", "a.-b.c", "a_b", "a b", " a", "a ", "a\tb", "a\nb", "a\x00b", "a\x7fb",
	"a%2eb", "%31", "127%2e0.0.1", "a@b", "a:b", "a:80", "a/b", "a\\b", "a?b", "a#b", "a;b", "a,b", "a'b", `a"b`, "a<b", "a|b", "*.a", "*",
	strings.Repeat("a", 64), strings.Repeat("a.", 127) + "aa", strings.Repeat("ä", 2000),
	// IPv4 as inet_aton reads it.
	"127.1", "127.0.1", "2130706433", "0", "0x7f000001", "0x7f.1", "0x7f.0.0.1", "0x7f.0x0.0x0.0x1", "017700000001", "0177.0.0.1", "0177.1",
	"127.000.000.001", "127.0.0.01", "010.0.0.1", "256.1.1.1", "1.2.3.4.5", "1.2.3", "1.2.3.4.", "127.0.0.1..", "1.1", "0x", "a.0x", "a.0x7f", "a.1",
	"4294967295", "99999999999", "0xffffffff", "127.0.0.1:80", "127.0.0.1/8",
	// Malformed IPv6.
	"[::1", "::1]", "[::1]]", "[[::1]]", "[]", "[127.0.0.1]", "[::1]:80", "[::1%25eth0]", "[fe80::1%eth0]", "fe80::1%eth0", "::1%lo", "[v1.a]",
	":::1", "1::2::3", "::12345", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9", "::ffff:127.1", "::ffff:0177.0.0.1",
	// Names that mapping would change.
	"１２７.０.０.１", "①②⑦.⓪.⓪.①", "ｌocalhost", "ⓛⓞⓒⓐⓛⓗⓞⓢⓣ", "127。0。0。1", "example。com", "example．com", "ex\u00adample.com", "exam\u200bple.com",
	"\u202eexample.com", "BÜCHER.example", "faß.EXAMPLE\u0301", "e\u0301xample.com", "ℂ.example", "a\u2044b.example", "evil\u2100.com", "\ufeffa", "\xff", "a\xc0\xae",
	// Labels that claim to be international.
	"xn--", "xn--a", "xn--localhost-", "xn--example-", "xn--127-", "xn--a-ecp.ru\u00e9", "xn--0000h", "xn--bcher-kva.bücher\u2028", "xn--xn--a-.example",
}

func TestHosts(t *testing.T) {
	for in, want := range goodHosts {
		h, err := ParseHost(in)
		if err != nil || h.String() != want {
			t.Errorf("%q is %q, %v; want %q", in, h, err, want)
			continue
		}
		checkHost(t, in, h)
	}
	for _, in := range badHosts {
		if h, err := ParseHost(in); err == nil || h != (Host{}) {
			t.Errorf("%q is accepted as %q, %v", in, h, err)
		}
	}
}

// checkHost checks the properties of every host that is accepted.
func checkHost(t *testing.T, in string, h Host) {
	t.Helper()
	text := h.String()
	again, err := ParseHost(text)
	if err != nil || again != h {
		t.Errorf("%q became %q, which becomes %q, %v", in, text, again, err)
	}
	if h.IsAddr() == (h.Name() != "") {
		t.Errorf("%q is an address and a name, or neither: %v, %q", in, h.Addr(), h.Name())
	}
	if h.IsAddr() {
		if a, err := netip.ParseAddr(text); err != nil || a != h.Addr() || a.Zone() != "" {
			t.Errorf("%q became the address %q: %v", in, text, err)
		}
		text = "[" + text + "]"
		if h.Addr().Is4() {
			text = h.String()
		}
	} else {
		if strings.Trim(text, "abcdefghijklmnopqrstuvwxyz0123456789-.") != "" || len(text) > maxNameBytes || strings.Contains(text, "..") {
			t.Errorf("%q became the name %q", in, text)
		}
		if _, err := netip.ParseAddr(text); err == nil {
			t.Errorf("%q became a name that is an address: %q", in, text)
		}
		if strings.ContainsAny(text[len(text)-1:], ".-") || strings.ContainsAny(text[:1], ".-") {
			t.Errorf("%q became %q", in, text)
		}
	}
	// Other parsers return the same host.
	if u, err := url.Parse("https://" + text + "/x"); err != nil || u.Host != text || u.Hostname() != h.String() || u.User != nil {
		t.Errorf("%q in a URL is %v, %v", text, u, err)
	}
}

func FuzzParseHost(f *testing.F) {
	for in := range goodHosts {
		f.Add(in)
	}
	for _, in := range badHosts {
		f.Add(in)
	}
	wide := wideNetwork(f)
	f.Fuzz(func(t *testing.T, in string) {
		h, err := ParseHost(in)
		d := wide.Decide(in, 443, HTTPS)
		if err != nil {
			if h != (Host{}) || d.Err() == nil {
				t.Fatalf("%q is refused, and becomes %q, %v", in, h, d.Err())
			}
			return
		}
		checkHost(t, in, h)
		// No address of an allowed host is special for the predicates of netip, which do
		// not know our list.
		for _, a := range d.Addresses() {
			if d.Err() != nil || special(a) {
				t.Errorf("%q leads to %s", in, a)
			}
		}
		if h.IsAddr() && special(h.Addr()) && d.Err() == nil {
			t.Errorf("%q is allowed", in)
		}
	})
}

// wideNetwork allows all names of two labels in some domains, and all addresses that the
// widest prefixes can allow.
func wideNetwork(t testing.TB) *Network {
	t.Helper()
	var rules []Rule
	for _, text := range []string{"*.com:*", "*.example:*", "*.io:*", "0.0.0.0/0:*", "[::/0]:*", "http://0.0.0.0/0:*", "http://[::/0]:*", "http://*.com:*"} {
		r, err := ParseRule(text)
		if err != nil {
			t.Fatal(err)
		}
		rules = append(rules, r)
	}
	return New(rules)
}

// special reports whether netip knows an address as one outside the internet.
func special(a netip.Addr) bool {
	return !a.IsValid() || a.Zone() != "" || a.Unmap().IsLoopback() || a.Unmap().IsPrivate() || a.Unmap().IsLinkLocalUnicast() || a.Unmap().IsMulticast() ||
		a.Unmap().IsUnspecified() || a.Is4In6() || !a.IsGlobalUnicast()
}
