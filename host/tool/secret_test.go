package tool

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

func TestManifestsAskForSecrets(t *testing.T) {
	m, err := ParseManifest([]byte(aTool("a", "d", `{"type":"object"}`,
		`{"secrets":[{"name":"TOKEN","hosts":["API.Example.com:443","b.example:8443."],"header":"X-Key"},{"name":"b"}]}`)))
	if err == nil {
		t.Fatal("a port with a dot is a port")
	}
	m, err = ParseManifest([]byte(aTool("a", "d", `{"type":"object"}`,
		`{"secrets":[{"name":"TOKEN","hosts":["API.Example.com.:443","b.example:8443"],"header":"X-Key"},{"name":"b"}]}`)))
	want := []Secret{{Name: "TOKEN", Hosts: []string{"api.example.com", "b.example:8443"}, Header: "X-Key"}, {Name: "b"}}
	if err != nil || !reflect.DeepEqual(m.Tools[0].Capabilities.Secrets, want) {
		t.Errorf("%+v, %v", m, err)
	}
	many := func(n int, format string) string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf(format, i))
		}
		return strings.Join(all, ",")
	}
	if _, err := ParseManifest([]byte(aTool("a", "d", `{"type":"object"}`, `{"secrets":[`+many(maxSecretsPerTool, `{"name":"N%d"}`)+`]}`))); err != nil {
		t.Errorf("%d secrets: %v", maxSecretsPerTool, err)
	}
	for caps, says := range map[string]string{
		`{"secrets":[` + many(maxSecretsPerTool+1, `{"name":"N%d"}`) + `]}`:               "limit of 16",
		`{"secrets":[{"name":"A","hosts":[` + many(MaxHostsPerSecret+1, `"h%d"`) + `]}]}`: "limit of 16",
		`{"secrets":[{}]}`:                                         "not 1 to 64",
		`{"secrets":[{"name":"1A"}]}`:                              "not 1 to 64",
		`{"secrets":[{"name":"A B"}]}`:                             "not 1 to 64",
		`{"secrets":[{"name":"` + strings.Repeat("A", 65) + `"}]}`: "not 1 to 64",
		`{"secrets":[{"name":"A"},{"name":"A"}]}`:                  "twice",
		`{"secrets":[{"name":"A"},{"name":"a"}]}`:                  "twice",
		`{"secrets":[{"name":"A","hosts":["*.example.com"]}]}`:     "no patterns",
		`{"secrets":[{"name":"A","hosts":["https://a.example"]}]}`: "no https://",
		`{"secrets":[{"name":"A","header":"Host"}]}`:               "cannot be a header",
		`{"secrets":[{"name":"A","header":"a\r\nb"}]}`:             "cannot be a header",
		`{"secrets":[{"name":"A","query":"token"}]}`:               "unknown key",
		`{"secrets":[{"name":"A","value":"x"}]}`:                   "unknown key",
		`{"secrets":["A"]}`:                                        "cannot unmarshal",
		`{"secrets":{"name":"A"}}`:                                 "cannot unmarshal",
	} {
		_, err := ParseManifest([]byte(aTool("a", "d", `{"type":"object"}`, caps)))
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%.80s: %v, want %q", caps, err, says)
		}
	}
}

func TestNormalHost(t *testing.T) {
	for in, want := range map[string]string{
		"api.github.com": "api.github.com", "API.GitHub.com": "api.github.com", "a.": "a", "localhost": "localhost", "a.b:443": "a.b", "a.b:80": "a.b:80",
		"127.0.0.1:8080": "127.0.0.1:8080", "[::1]": "[::1]", "[::1]:443": "[::1]", "[2001:DB8:0:0::1]:8443": "[2001:db8::1]:8443", "xn--gre-6ka.example": "xn--gre-6ka.example",
		"_dmarc.example": "_dmarc.example",
		"":               "", ":80": "", "a:": "", "a:0": "", "a:65536": "", "a:080": "", "a:+80": "", "a b": "", "a..b": "", ".a": "", "*": "", "*.a": "", "a/b": "", "http://a": "", "u@a": "", "-a.b": "", "a-.b": "",
		"::1": "", "[::1": "", "[a]": "", "[127.0.0.1]": "", "[fe80::1%eth0]": "", "grüße.example": "", "a\n": "", "a%2eb": "", strings.Repeat("a", 64): "", strings.Repeat("a.", 127) + "aa": "",
	} {
		got, err := NormalHost(in)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v, want %q", in, got, err, want)
		}
		if err == nil {
			if again, err := NormalHost(got); again != got || err != nil {
				t.Errorf("%q is not the normal form of itself: %q, %v", got, again, err)
			}
		}
	}
}
