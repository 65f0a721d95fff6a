package egress

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/services"
)

// TestN16ServersThatAreNotBelieved: servers that are not authenticated get no request.
func TestN16ServersThatAreNotBelieved(t *testing.T) {
	hour := time.Now().Add(time.Hour)
	with := func(c tls.Certificate) *tls.Config { return &tls.Config{Certificates: []tls.Certificate{c}} }
	good := ca().issue(t, hour, "a.example")
	hints := map[string]string{"self-signed": "network.ca_files", "expired": "the clock of this machine", "for another name": "a login page"}
	for what, config := range map[string]*tls.Config{
		"self-signed":                with(newAuthority("itself").issue(t, hour, "a.example")),
		"expired":                    with(ca().issue(t, time.Now().Add(-time.Hour), "a.example")),
		"for another name":           with(ca().issue(t, hour, "b.example")),
		"for the address":            with(ca().issue(t, hour, public)),
		"for a wildcard of two dots": with(ca().issue(t, hour, "*.a.example")),
		"TLS 1.1":                    {Certificates: []tls.Certificate{good}, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11},
		"TLS 1.0":                    {Certificates: []tls.Certificate{good}, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS10},
		"RC4":                        {Certificates: []tls.Certificate{good}, MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{tls.TLS_ECDHE_ECDSA_WITH_RC4_128_SHA}},
	} {
		t.Run(what, func(t *testing.T) {
			asked := 0
			w := newWorld(t, names(map[string][]string{"a.example": {public}}))
			server := secureWith(t, func(http.ResponseWriter, *http.Request) { asked++ }, config)
			w.wires.plug(public+":443", server.Listener.Addr())
			_, err := w.Fetch(t.Context(), granted(t, policy.Limits{}, "a.example"), get("https://a.example/"))
			if e, ok := errors.AsType[*services.Error](err); !ok || e.Kind != services.TLS || asked != 0 || hints[what] != "" && (!e.Final || !strings.Contains(e.Hint, hints[what])) {
				t.Errorf("%+v, %d requests", e, asked)
			}
			answer, err := w.Client(reaching(t, "a.example")).Get("https://a.example/")
			if err == nil {
				answer.Body.Close()
			}
			if services.KindOf(err) != services.TLS || asked != 0 {
				t.Errorf("the provider's client: %v, %d requests", err, asked)
			}
		})
	}
	t.Run("no TLS", func(t *testing.T) {
		w := newWorld(t, names(map[string][]string{"a.example": {public}}))
		w.wires.plug(public+":443", plain(t, func(http.ResponseWriter, *http.Request) { t.Error("a request arrived") }).Listener.Addr())
		if _, err := w.Fetch(t.Context(), granted(t, policy.Limits{}, "a.example"), get("https://a.example/")); services.KindOf(err) != services.TLS {
			t.Error(err)
		}
	})
	t.Run("TLS 1.2 and 1.3 are", func(t *testing.T) {
		for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
			w := newWorld(t, names(map[string][]string{"a.example": {public}}))
			server := secureWith(t, func(http.ResponseWriter, *http.Request) {}, &tls.Config{Certificates: []tls.Certificate{good}, MinVersion: version, MaxVersion: version})
			w.wires.plug(public+":443", server.Listener.Addr())
			if _, err := w.Fetch(t.Context(), granted(t, policy.Limits{}, "a.example"), get("https://a.example/")); err != nil {
				t.Error(err)
			}
		}
	})
}

// TestN12AuthoritiesComeFromTheConfiguration: not from SSL_CERT_FILE, which
// crypto/x509 would follow.
func TestN12AuthoritiesComeFromTheConfiguration(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "ca.pem"), ca().pem, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SSL_CERT_FILE", filepath.Join(dir, "ca.pem"))
	t.Setenv("SSL_CERT_DIR", dir)
	another, ours := Authorities{"another.pem", newAuthority("another").pem}, Authorities{"ca.pem", ca().pem}
	for _, c := range []struct {
		given []Authorities
		want  services.Kind
	}{{nil, services.TLS}, {[]Authorities{another}, services.TLS}, {[]Authorities{ours}, 0}, {[]Authorities{another, ours}, 0}} {
		w := newWorld(t, names(map[string][]string{"a.example": {public}}), func(o *Options) { o.Authorities = c.given })
		w.wires.plug(public+":443", secure(t, func(http.ResponseWriter, *http.Request) {}, "a.example").Listener.Addr())
		if _, err := w.Fetch(t.Context(), granted(t, policy.Limits{}, "a.example"), get("https://a.example/")); services.KindOf(err) != c.want {
			t.Errorf("%v, want kind %d", err, c.want)
		}
	}
}

// A file with an unreadable part is refused, even next to a good one, because somebody
// wanted all of it to be trusted.
func TestAuthoritiesThatCannotBeReadAreRefused(t *testing.T) {
	good := string(ca().pem)
	for name, text := range map[string]string{
		"nothing":           "",
		"no PEM":            "no certificate",
		"half":              good[:len(good)/2],
		"one, and half":     good + good[:len(good)/2],
		"half, and one":     good[:len(good)/2] + "\n" + good,
		"not a certificate": "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
		"a key":             good + strings.ReplaceAll(good, "CERTIFICATE", "PRIVATE KEY"),
	} {
		_, err := New(Options{Authorities: []Authorities{{"good.pem", []byte(good)}, {"ca.pem", []byte(text)}}})
		if err == nil || !strings.Contains(err.Error(), "ca.pem") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := New(Options{Authorities: []Authorities{{"ca.pem", []byte("# ours\n" + good + "\n# theirs\n" + good)}}}); err != nil {
		t.Error(err)
	}
}

// TestN18HTTP2IsNotSpoken: guests speak no HTTP/2, even if the server offers it, so its
// floods cannot happen.
func TestN18HTTP2IsNotSpoken(t *testing.T) {
	w := newWorld(t, names(map[string][]string{"a.example": {public}}))
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { fmt.Fprint(rw, r.Proto) }))
	server.EnableHTTP2 = true
	server.TLS = &tls.Config{Certificates: []tls.Certificate{ca().issue(t, time.Now().Add(time.Hour), "a.example")}}
	server.StartTLS()
	defer server.Close()
	w.wires.plug(public+":443", server.Listener.Addr())
	resp, err := w.Fetch(t.Context(), granted(t, policy.Limits{}, "a.example"), get("https://a.example/"))
	if err != nil || string(resp.Body) != "HTTP/1.1" {
		t.Errorf("%+v, %v", resp, err)
	}
	answer, err := w.Client(reaching(t, "a.example")).Get("https://a.example/")
	if err != nil || answer.ProtoMajor != 2 {
		t.Errorf("the provider's client: %+v, %v", answer, err)
	} else {
		answer.Body.Close()
	}
}

// TestAProxyOfTheEnvironmentIsNamed: the hint about it comes only if a public host cannot
// be reached.
func TestAProxyOfTheEnvironmentIsNamed(t *testing.T) {
	for url, c := range map[string]struct {
		proxy string
		want  string
	}{
		"https://a.example/":      {"", "HTTPS_PROXY is set, and is not read"},
		"https://gone.example/":   {"", "HTTPS_PROXY is set, and is not read"},
		"http://127.0.0.1:1/":     {"", ""},
		"http://gone.example/":    {"http://10.9.9.9:3128", "network.proxy_resolves = true"},
		"https://denied.example/": {"", ""},
	} {
		w := newWorld(t, names(map[string][]string{"a.example": {public}}), func(o *Options) { o.IgnoredProxyVariable, o.Proxy = "HTTPS_PROXY", c.proxy })
		_, err := w.Fetch(t.Context(), granted(t, policy.Limits{}, "a.example", "gone.example", "http://gone.example", "http://127.0.0.1:1"), get(url))
		if e, ok := errors.AsType[*services.Error](err); !ok || (e.Hint == "") != (c.want == "") || !strings.Contains(e.Hint, c.want) {
			t.Errorf("%s: %+v", url, e)
		}
	}
}

func TestErrorsAreOneLine(t *testing.T) {
	err := failf(services.Protocol, "x%sy", strings.Repeat("\r\n\x1b[31m\u202e\xff", 500))
	if text := err.Error(); strings.ContainsAny(text, "\r\n\x1b\u202e") || len([]rune(text)) > 600 || strings.ToValidUTF8(text, "?") != text {
		t.Errorf("%q", text)
	}
}
