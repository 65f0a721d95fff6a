package network

import (
	"testing"
)

// P18 of the attack suite, and the zero byte that has misled other programs.
func TestHostsAreComparedByWholeLabels(t *testing.T) {
	var patterns []Pattern
	for _, text := range []string{"*.example.com", "api.example.org", "10.1.2.3", "[2606:2800:0220::1]", "b\u00fccher.example"} {
		p, err := ParsePattern(text)
		if err != nil {
			t.Fatal(err)
		}
		again, err := ParsePattern(p.String())
		if err != nil || again != p {
			t.Errorf("%s is %s, which is %v, %v", text, p, again, err)
		}
		patterns = append(patterns, p)
	}
	for host, want := range map[string]bool{
		"a.example.com": true, "A.Example.COM": true, "a.b.example.com": true, "a.example.com.": true, "api.example.org": true,
		"example.com": false, "evilexample.com": false, "example.com.evil": false, "a.example.com.evil.org": false, "x.api.example.org": false,
		".example.com": false, "a..example.com": false, "": false, "evil.org\x00.example.com": false, "evil.org%00.example.com": false,
		"evil.org#.example.com": false, "evil.org/.example.com": false, "evil.org\n.example.com": false, "\uff41.example.com": false, "-.example.com": false,
		"https://a.example.com/x": true, "HTTPS://A.EXAMPLE.com.:8443/": true, "git://a.example.com/x": true,
		"https://evil.org/a.example.com": false, "https://evil.org#.example.com/": false, "https://evil.org?.example.com/": false,
		"https://evil.org\\.example.com/": false, "https://a.example.com@evil.org/": false, "https://evil.org@a.example.com/": false,
		"//a.example.com/x": false, "https:a.example.com/x": false, "https:/a.example.com/x": false, "https://%61.example.com/": false,
		"10.1.2.3": true, "http://10.1.2.3/": true, "http://[::ffff:10.1.2.3]/": true, "::ffff:a01:203": true, "10.1.2.3.": false, "10.1.2.4": false,
		"x.10.1.2.3": false, "10.1.515": false, "http://167838211/": false, "http://0xa010203/": false, "http://012.1.2.3/": false,
		"2606:2800:220::1": true, "http://[2606:2800:220:0:0:0:0:1]:80/": true, "http://[2606:2800:220::1%25eth0]/": false, "http://[2606:2800:220::2]/": false,
		"xn--bcher-kva.example": true, "https://b\u00fccher.example/": true, "https://bu\u0308cher.example/": false,
	} {
		name, ok := HostOf(host)
		got := false
		for _, p := range patterns {
			got = got || ok && p.Match(name)
		}
		if got != want {
			t.Errorf("%q, which is %q, %v: %v", host, name, ok, got)
		}
	}
	for _, text := range []string{
		"*", "*.com", "a.*.com", "**.example.com", "*example.com", "", "*.", "exa mple.com", "example.com/x", "[::1", "a\x00.com", "a_b.example.com",
		"*.10.1.2.3", "*.[::1]", "127.1", "0x7f.1", "10.0.0.0/8", "fe80::1%eth0", "example.com:443",
	} {
		if p, err := ParsePattern(text); err == nil {
			t.Errorf("%q is the pattern %v", text, p)
		}
	}
}
