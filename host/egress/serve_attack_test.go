package egress

import (
	"bytes"
	"context"
	"crypto/ecdh"
	"crypto/rand"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stockade-dev/stockade/host/policy"
)

// The attacks of a command on its proxy. Each asserts what did not happen: a
// connection, a question to a name server, a byte that a server got.

// TestN19WhatTheProxyDoesNotPassOn has every form in which a request is refused
// before anything is looked up.
func TestN19WhatTheProxyDoesNotPassOn(t *testing.T) {
	trap := newTrap(t)
	here := trap.Addr().String()
	w := newWorld(t, func(string, int) []string { return []string{public} })
	grant := granted(t, policy.Limits{}, "a.example", "http://b.example", "http://*.c.example:*", "0.0.0.0/0:*", "http://0.0.0.0/0:*")
	addr := serving(t, w, grant)
	connect := func(target string) string { return "CONNECT " + target + " HTTP/1.1\r\nHost: " + target + "\r\n\r\n" }
	get := func(headers string) string {
		return "GET http://b.example/ HTTP/1.1\r\nHost: b.example\r\n" + headers + "\r\n"
	}
	for what, c := range map[string]struct{ sent, want string }{
		"a host that is not granted":        {connect("evil.test:443"), "403 no connection to https://evil.test:443: no rule allows it; --allow-net evil.test would allow it"},
		"a host below one that is granted":  {connect("data.a.example:443"), "403 "},
		"another port":                      {connect("a.example:22"), "403 no connection to https://a.example:22: no rule allows it; --allow-net a.example:22 would allow it"},
		"http, where the rule is for https": {"GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n", "403 no connection to http://a.example:80"},
		"http at the port of https":         {"GET http://a.example:443/ HTTP/1.1\r\nHost: a.example:443\r\n\r\n", "403 "},
		"this machine":                      {connect(here), "403 no connection to https://" + here + ": the address 127.0.0.1 is loopback (127.0.0.0/8)"},
		"this machine by its name":          {connect("localhost:443"), "403 "},
		"this machine in plain http":        {"GET http://" + here + "/ HTTP/1.1\r\nHost: " + here + "\r\n\r\n", "403 "},
		"a metadata service":                {connect("169.254.169.254:443"), "403 "},
		"an IPv4 address within IPv6":       {connect("[::ffff:127.0.0.1]:443"), "403 "},

		"a user name":             {connect("a.example@evil.test:443"), "400 "},
		"a user name in plain":    {"GET http://b.example@evil.test/ HTTP/1.1\r\nHost: b.example\r\n\r\n", "400 "},
		"a zone":                  {connect("[fe80::1%25eth0]:443"), "400 "},
		"a NUL":                   {connect("a.example\x00.evil.test:443"), "400 "},
		"127.1":                   {connect("127.1:443"), "400 "},
		"a number for an address": {connect("2130706433:443"), "400 "},
		"no port":                 {connect("a.example"), "400 "},
		"an empty port":           {connect("a.example:"), "400 "},
		"a port of zero":          {connect("a.example:0"), "400 "},
		"a port that is too high": {connect("a.example:65979"), "400 "},
		"a path":                  {connect("a.example:443/:443"), "400 "},
		"a URL":                   {connect("https://a.example:443"), "400 "},
		"a space":                 {connect("a.example:443 evil.test:443"), "400 "},

		"another Host":                       {"GET http://b.example/ HTTP/1.1\r\nHost: evil.test\r\n\r\n", `400 its header Host is "evil.test", and its target b.example`},
		"another Host in CONNECT":            {"CONNECT a.example:443 HTTP/1.1\r\nHost: evil.test:443\r\n\r\n", "400 "},
		"another Host within CONNECT":        {connect("b.example:80") + "GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n", "400 its header Host"},
		"a user name within CONNECT":         {connect("b.example:80") + "GET @evil.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n", "400 "},
		"more of the name within CONNECT":    {connect("b.example:80") + "GET .evil.test/ HTTP/1.1\r\nHost: b.example.evil.test\r\n\r\n", "403 "},
		"another CONNECT within CONNECT":     {connect("b.example:80") + connect("evil.test:443"), "400 "},
		"a Host with a path":                 {"GET http://b.example/ HTTP/1.1\r\nHost: b.example/x\r\n\r\n", "400 "},
		"two Hosts":                          {get("Host: evil.test\r\n"), "400 the request to the proxy: it has 2 headers Host"},
		"no Host":                            {"GET http://b.example/ HTTP/1.1\r\n\r\n", "400 "},
		"two lengths":                        {get("Content-Length: 1\r\nContent-Length: 1\r\n"), "400 the request to the proxy: it has 2 headers Content-Length"},
		"two lengths in one":                 {get("Content-Length: 1, 2\r\n"), "400 "},
		"a length with a sign":               {get("Content-Length: +1\r\n"), "400 "},
		"a coding and a length":              {get("Transfer-Encoding: chunked\r\nContent-Length: 1\r\n"), "400 the request to the proxy: it has both"},
		"two codings":                        {get("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n"), "400 "},
		"two codings in one":                 {get("Transfer-Encoding: gzip, chunked\r\n"), "400 "},
		"a coding with a tab":                {get("Transfer-Encoding: \x0bchunked\r\n"), "400 "},
		"a space before the colon":           {get("Transfer-Encoding : chunked\r\n"), "400 "},
		"a line that goes on":                {get("X: y\r\n Transfer-Encoding: chunked\r\n"), "400 "},
		"LF without CR":                      {get("X: y\nTransfer-Encoding: chunked\r\n"), "400 "},
		"CR without LF":                      {get("X: y\rTransfer-Encoding: chunked\r\n"), "400 "},
		"a NUL in a header":                  {get("X: y\x00\r\n"), "400 "},
		"a header without a colon":           {get("X\r\n"), "400 "},
		"65 headers":                         {get(strings.Repeat("X: y\r\n", 65)), "400 the request to the proxy: it has more than 64 headers"},
		"a long header":                      {get("X: " + strings.Repeat("y", 1<<20) + "\r\n"), "400 the request to the proxy: its head has more than 24576 bytes"},
		"a long URL":                         {"GET http://b.example/" + strings.Repeat("y", 9<<10) + " HTTP/1.1\r\nHost: b.example\r\n\r\n", "400 URL: it has"},
		"a websocket":                        {get("Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"), "403 this proxy does not change from http to another protocol"},
		"an upgrade that is not named":       {get("Connection: keep-alive, upgrade\r\n"), "403 "},
		"an upgrade that is not announced":   {get("Upgrade: h2c\r\n"), "403 "},
		"https in absolute form":             {"GET https://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n", "400 https is asked for with CONNECT"},
		"a path only":                        {"GET / HTTP/1.1\r\nHost: b.example\r\n\r\n", "400 "},
		"a file":                             {"GET file:///etc/passwd HTTP/1.1\r\nHost: x\r\n\r\n", "400 "},
		"another method":                     {"TRACE http://b.example/ HTTP/1.1\r\nHost: b.example\r\n\r\n", "400 "},
		"HTTP/2":                             {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "400 the request to the proxy: it is not HTTP/1.1"},
		"HTTP/0.9":                           {"GET http://b.example/\r\n\r\n", "400 "},
		"SOCKS":                              {"\x05\x01\x00\r\n", "400 "},
		"nothing of all that":                {"\x00\x00\n", "400 "},
		"TLS at once":                        {"\x16\x03\x01\x00\x05hello\r\n\r\n", "400 "},
		"a line break in what it quotes":     {connect("a\r\nX-Evil: b:443"), "400 "},
		"a name that would be quoted at all": {connect("\x1b[2Jé:443"), "400 "},
	} {
		got := say(t, addr, c.sent)
		got = strings.TrimPrefix(got, "HTTP/1.1 200 Connection established\r\n\r\n")
		status, rest, _ := strings.Cut(got, "\r\n")
		if !strings.HasPrefix(status, "HTTP/1.1 "+c.want) || strings.ContainsFunc(status, func(r rune) bool { return r < ' ' || r > '~' }) || !strings.Contains(rest, "Connection: close\r\n\r\n") {
			t.Errorf("%s: %q, want %s", what, got, c.want)
		}
	}
	if n := w.dns.count(""); n != 0 {
		t.Errorf("%d names were looked up", n)
	}
	if len(w.wires.all()) != 0 {
		t.Errorf("there were connections to %v", w.wires.all())
	}
	requests, refused := 0, 0
	for _, a := range grant.Traffic() {
		requests, refused = requests+a.Requests, refused+a.Refused
	}
	if requests != 0 || refused != 14 {
		t.Errorf("%d requests and %d refusals are on the account: %+v", requests, refused, grant.Traffic())
	}
}

// TestAnEndlessHead: the proxy keeps no more of a head than the limit.
func TestAnEndlessHead(t *testing.T) {
	w := newWorld(t, names(nil))
	addr := serving(t, w, granted(t, policy.Limits{}, "http://b.example"))
	for what, block := range map[string]string{"one line": strings.Repeat("y", 1<<16), "lines": strings.Repeat("X: y\r\n", 1<<13)} {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(conn, "GET http://b.example/ HTTP/1.1\r\n")
		sent := 0
		for sent < 1<<30 {
			n, err := io.WriteString(conn, block)
			if sent += n; err != nil {
				break
			}
		}
		conn.Close()
		if sent > 16<<20 { // what the buffers of the system hold
			t.Errorf("%s: %d bytes were taken", what, sent)
		}
	}
}

// TestN03N04NamesOfAProxiedCommand: names that lead to this machine, at once or at the
// second query.
func TestN03N04NamesOfAProxiedCommand(t *testing.T) {
	trap := newTrap(t)
	w := newWorld(t, func(name string, before int) []string {
		switch {
		case name == "rebinds.example" && before == 0:
			return []string{public}
		case name == "mixed.example":
			return []string{public, "127.0.0.1"}
		case name == "six.example":
			return []string{"::1"}
		}
		return []string{"127.0.0.1"}
	})
	w.wires.plug(fmt.Sprintf("%s:%d", public, trap.port()), plain(t, func(http.ResponseWriter, *http.Request) {}).Listener.Addr())
	grant := granted(t, policy.Limits{}, "*.example:*", "http://*.example:*", "tcp://x.example:*", "http://0.0.0.0/0:*", "http://[::/0]:*")
	addr := serving(t, w, grant)
	ask := func(form, name string) string {
		target := fmt.Sprint(name, ":", trap.port())
		return say(t, addr, fmt.Sprintf(form, target, target))
	}
	const connect, get = "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", "GET http://%s/ HTTP/1.1\r\nHost: %s\r\n\r\n"
	if got := ask(get, "rebinds.example"); !strings.HasPrefix(got, "HTTP/1.1 200 ") {
		t.Errorf("the first answer was not dialled: %q", got)
	}
	if n := w.dns.count("rebinds.example"); n != 2 { // A and AAAA
		t.Errorf("there were %d queries, want one for each kind of address", n)
	}
	for _, name := range []string{"rebinds.example", "mixed.example", "six.example", "four.example", "x.example"} {
		for _, form := range []string{connect, get} {
			if got := ask(form, name); !strings.HasPrefix(got, "HTTP/1.1 403 no connection to ") || !strings.Contains(got, "is loopback") {
				t.Errorf("%s of %s: %q", form[:7], name, got)
			}
		}
	}
	if n := len(w.wires.all()); n != 1 {
		t.Errorf("there were connections to %v", w.wires.all())
	}
}

// echList is a configuration for encrypted client hellos, of RFC 9849.
func echList(t *testing.T, public string) []byte {
	t.Helper()
	key, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block := func(b []byte) []byte { return append(binary.BigEndian.AppendUint16(nil, uint16(len(b))), b...) }
	contents := slices.Concat([]byte{7, 0, 0x20}, block(key.PublicKey().Bytes()), block([]byte{0, 1, 0, 1}), []byte{32, byte(len(public))}, []byte(public), block(nil))
	return block(slices.Concat([]byte{0xfe, 0x0d}, block(contents)))
}

// TestN19ATunnelIsForTLS with the decided host: otherwise the server sees a connection
// without a byte.
func TestN19ATunnelIsForTLS(t *testing.T) {
	var bytesSeen atomic.Int64
	w := newWorld(t, names(map[string][]string{"a.example": {public}}))
	server := raw(t, func(net.Conn) { bytesSeen.Add(1) }).Addr()
	w.wires.plug(public+":443", server)
	w.wires.plug(public+":22", server)
	grant := granted(t, policy.Limits{}, "a.example", "a.example:22", public)
	addr := serving(t, w, grant)
	open := func(target string) net.Conn {
		t.Helper()
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", target, target)
		if status, err := connectAnswer(conn); status != 200 || err != nil {
			t.Fatal(status, err)
		}
		return conn
	}
	for what, text := range map[string]string{
		"http":              "GET / HTTP/1.1\r\nHost: a.example\r\n\r\n",
		"ssh":               "SSH-2.0-OpenSSH_9.6\r\n",
		"zeros":             strings.Repeat("\x00", 1000),
		"application data":  "\x17\x03\x03\x00\x05hello",
		"an alert":          "\x15\x03\x03\x00\x02\x01\x00",
		"no client hello":   "\x16\x03\x01\x00\x04\x02\x00\x00\x00",
		"SSL 2":             "\x80\x2e\x01\x03\x01\x00\x15\x00\x00\x00\x10",
		"a hello of junk":   "\x16\x03\x01\x00\x14\x01\x00\x00\x10" + strings.Repeat("\xff", 16),
		"a hello too large": "\x16\x03\x01\x40\x00\x01\xff\xff\xff" + strings.Repeat("\x00", 1<<14),
	} {
		conn := open("a.example:22")
		_, _ = io.WriteString(conn, text)
		got, _ := io.ReadAll(conn)
		if !strings.HasPrefix(string(got), "HTTP/1.1 403 what was sent to a.example is not TLS") {
			t.Errorf("%s: %q", what, got)
		}
		conn.Close()
	}
	for what, c := range map[string]struct {
		target string
		config *tls.Config
	}{
		"another name":               {"a.example:443", &tls.Config{ServerName: "evil.test"}},
		"a name below":               {"a.example:443", &tls.Config{ServerName: "x.a.example"}},
		"no name":                    {"a.example:443", &tls.Config{InsecureSkipVerify: true}},
		"a name, and an address":     {public + ":443", &tls.Config{ServerName: "a.example"}},
		"an encrypted name":          {"a.example:443", &tls.Config{ServerName: "evil.test", EncryptedClientHelloConfigList: echList(t, "a.example"), MinVersion: tls.VersionTLS13}},
		"something that is no name":  {"a.example:443", &tls.Config{ServerName: "a.example\x00.evil.test"}},
		"a name and TLS 1.2 at most": {"a.example:443", &tls.Config{ServerName: "evil.test", MaxVersion: tls.VersionTLS12}},
	} {
		conn := open(c.target)
		if err := tls.Client(conn, c.config).Handshake(); err == nil || !strings.Contains(err.Error(), "access denied") {
			t.Errorf("%s: %v", what, err)
		}
		_, _ = io.Copy(io.Discard, conn) // it counts before it hangs up
		conn.Close()
	}
	if n := bytesSeen.Load(); n != 0 {
		t.Errorf("the server got something %d times", n)
	}
	for _, a := range grant.Traffic() {
		if a.SentBytes != 0 || a.Refused != a.Requests {
			t.Errorf("the account is %+v", a)
		}
	}
	// Other ways to write the same name are fine, and so is no name for an address.
	ok := secure(t, func(http.ResponseWriter, *http.Request) {}, "a.example", public).Listener.Addr()
	w.wires.plug(public+":443", ok)
	for target, name := range map[string]string{"a.example:443": "A.Example", "A.EXAMPLE.:443": "a.example", public + ":443": ""} {
		conn := open(target)
		if err := tls.Client(conn, &tls.Config{ServerName: name, InsecureSkipVerify: true}).Handshake(); err != nil {
			t.Errorf("%s as %q: %v", target, name, err)
		}
		conn.Close()
	}
}

// TestN19AServerThatChangesTheProtocol gets nowhere either.
func TestN19AServerThatChangesTheProtocol(t *testing.T) {
	for what, answer := range map[string]string{
		"another protocol": "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nframes",
		"no HTTP":          "SSH-2.0-OpenSSH_9.6\r\n",
		"a long head":      "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("y", 1<<20) + "\r\n\r\n",
		"many headers":     "HTTP/1.1 200 OK\r\n" + strings.Repeat("X: y\r\n", 1000) + "\r\n",
	} {
		w := sends(t, func(conn net.Conn) { _, _ = io.WriteString(conn, answer) })
		got := say(t, serving(t, w, granted(t, policy.Limits{}, "http://a.example")), "GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n")
		if !strings.HasPrefix(got, "HTTP/1.1 502 ") || strings.Contains(got, "frames") {
			t.Errorf("%s: %q", what, got)
		}
	}
}

// TestN11WhatIsBetweenNeighbours: hop-by-hop headers are not passed on, in either direction.
func TestN11WhatIsBetweenNeighbours(t *testing.T) {
	var seen http.Header
	w := newWorld(t, names(map[string][]string{"b.example": {public}}))
	w.wires.plug(public+":80", plain(t, func(rw http.ResponseWriter, r *http.Request) {
		seen = r.Header
		conn, _, err := http.NewResponseController(rw).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		fmt.Fprint(conn, "HTTP/1.1 200 OK\r\nConnection: x-hop\r\nX-Hop: x\r\nKeep-Alive: 5\r\nProxy-Authenticate: x\r\nX-Kept: x\r\nContent-Length: 0\r\n\r\n")
	}).Listener.Addr())
	addr := serving(t, w, granted(t, policy.Limits{}, "http://b.example"))
	const request = "GET http://b.example/ HTTP/1.1\r\nHost: b.example\r\nProxy-Authorization: Basic eDp4\r\nProxy-Connection: keep-alive\r\n" +
		"Keep-Alive: 5\r\nTE: trailers\r\nX-Hop: 1\r\nConnection: x-hop, close\r\nAuthorization: Bearer mine\r\nAccept-Encoding: br\r\n\r\n"
	// A second request on the connection is answered by nobody.
	got := say(t, addr, request+"GET http://b.example/two HTTP/1.1\r\nHost: b.example\r\n\r\n")
	want := http.Header{"Authorization": {"Bearer mine"}, "Accept-Encoding": {"br"}, "Connection": {"close"}}
	if fmt.Sprint(seen) != fmt.Sprint(want) {
		t.Errorf("the server got %v, want %v", seen, want)
	}
	if strings.Count(got, "HTTP/1.1 200 OK") != 1 || !strings.Contains(got, "X-Kept: x\r\n") || strings.Contains(got, "Proxy-") || strings.Contains(got, "X-Hop") || strings.Contains(got, "Keep-Alive") {
		t.Errorf("the answer is %q", got)
	}
	if n := len(w.wires.all()); n != 1 {
		t.Errorf("%d connections", n)
	}
}

// TestN12AProxiedCommandAndTheEnvironment: the proxy ignores our own environment.
func TestN12AProxiedCommandAndTheEnvironment(t *testing.T) {
	trap := newTrap(t)
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"} {
		t.Setenv(name, "http://"+trap.Addr().String())
		t.Setenv(strings.ToLower(name), "http://"+trap.Addr().String())
	}
	t.Setenv("NO_PROXY", "")
	w := newWorld(t, names(map[string][]string{"a.example": {public}}))
	hello := func(rw http.ResponseWriter, _ *http.Request) { fmt.Fprint(rw, "direct") }
	w.wires.plug(public+":443", secure(t, hello, "a.example").Listener.Addr())
	w.wires.plug(public+":80", plain(t, hello).Listener.Addr())
	addr := serving(t, w, granted(t, policy.Limits{}, "a.example", "http://a.example"))
	for _, url := range []string{"https://a.example/", "http://a.example/"} {
		if got, err := outside(t, addr, "curl", "-sS", url); err != nil || got != "direct" {
			t.Errorf("%s: %q, %v", url, got, err)
		}
	}
	if got := strings.Join(ProxyEnv("127.0.0.1:3128"), " "); strings.Contains(got, trap.Addr().String()) || !strings.Contains(got, "NO_PROXY= ") {
		t.Errorf("the environment of a command is %s", got)
	}
}

// TestN15DataThatACommandSends: connections, bytes and names count, and the log has them.
func TestN15DataThatACommandSends(t *testing.T) {
	var log bytes.Buffer
	w := newWorld(t, func(string, int) []string { return []string{public} }, func(o *Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	w.wires.plug(public+":80", plain(t, func(rw http.ResponseWriter, r *http.Request) { _, _ = rw.Write(make([]byte, 100_000)) }).Listener.Addr())
	const limit = 64 << 10
	run := func(limits policy.Limits, requests ...string) (answers []string, grant policy.Grant) {
		grant = granted(t, limits, "http://*.example", "tcp://a.example:1", "http://b.example:1")
		ctx, cancel := context.WithCancel(t.Context())
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error)
		go func() { ended <- w.ServeProxy(ctx, l, grant) }()
		for _, r := range requests {
			answers = append(answers, say(t, l.Addr().String(), r))
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		return answers, grant
	}
	const head = "PUT http://b.example:1/ HTTP/1.1\r\nHost: b.example:1\r\nTransfer-Encoding: chunked\r\n\r\n"
	long := fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", 10*limit, strings.Repeat("x", 10*limit))
	for what, request := range map[string]string{
		"a tunnel": "CONNECT a.example:1 HTTP/1.1\r\nHost: a.example:1\r\n\r\n" + strings.Repeat("x", 10*limit), "a body": head + long,
	} {
		t.Run(what, func(t *testing.T) {
			var got atomic.Int64
			t.Cleanup(func() { // when the server has ended
				if n := got.Load(); n > limit {
					t.Errorf("%d bytes were sent", n)
				}
			})
			sink := raw(t, func(conn net.Conn) {
				n, _ := io.Copy(io.Discard, conn)
				got.Add(n)
			}).Addr()
			w.wires.plug(public+":1", sink)
			log.Reset()
			_, grant := run(policy.Limits{HTTPSentBytes: limit}, request)
			if a := grant.Traffic(); len(a) != 1 || a[0].SentBytes > limit || a[0].Refused != 1 || a[0].Requests != 1 {
				t.Errorf("the account is %+v", a)
			}
			if text := log.String(); !strings.Contains(text, "this call may send 65536 bytes") || !strings.Contains(text, "sent=") || !strings.Contains(text, ".example:1 ") {
				t.Errorf("the log is %s", text)
			}
		})
	}
	var many []string
	for i := range 8 {
		many = append(many, strings.ReplaceAll("GET http://secretN.example/ HTTP/1.1\r\nHost: secretN.example\r\n\r\n", "N", fmt.Sprint(i)))
	}
	answers, grant := run(policy.Limits{HTTPRequests: 5}, many...)
	for i, a := range answers {
		if (i < 5) != strings.HasPrefix(a, "HTTP/1.1 200 OK") || (i >= 5) != strings.HasPrefix(a, "HTTP/1.1 403 this call has made its 5 requests") {
			t.Errorf("request %d: %.80q", i, a)
		}
	}
	if n := w.dns.count("secret5.example") + w.dns.count("secret6.example"); n != 0 || len(grant.Traffic()) != 8 {
		t.Errorf("names were looked up %d times beyond the budget; %+v", n, grant.Traffic())
	}
	// What comes back is bounded too: by as much as so many requests can get.
	answers, grant = run(policy.Limits{HTTPRequests: 5, HTTPResponseBytes: 50_000}, many[:4]...)
	sizes := []int{}
	for _, a := range answers {
		_, body, _ := strings.Cut(a, "\r\n\r\n")
		sizes = append(sizes, len(body))
	}
	if sizes[0] < 100_000 || sizes[1] < 100_000 || sizes[2] >= 100_000 || !strings.HasPrefix(answers[3], "HTTP/1.1 403 this command may receive 250000 bytes") {
		t.Errorf("%d bytes were let in, and at last %.100q; %+v", sizes, answers[3], grant.Traffic())
	}
}
