package egress

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/services"
)

// serving starts the proxy of a command, and returns its address.
func serving(t testing.TB, w *world, grant policy.Grant) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var done sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	done.Go(func() {
		if err := w.ServeProxy(ctx, l, grant); err != nil {
			t.Errorf("the proxy ends with %v", err)
		}
	})
	t.Cleanup(func() { cancel(); done.Wait() })
	return l.Addr().String()
}

// say sends text and returns everything that comes back.
func say(t testing.TB, addr, text string) string {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	_, _ = io.WriteString(conn, text) // it may be refused before its end
	answer, _ := io.ReadAll(conn)     // and be reset
	return string(answer)
}

// caFile is a file with the authority of the tests.
func caFile(t testing.TB) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, ca().pem, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// outside runs a program that finds the proxy only by its environment, and returns its output.
func outside(t testing.TB, addr string, argv ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	cmd.Dir = t.TempDir()
	ca := caFile(t)
	cmd.Env = append(ProxyEnv(addr), "PATH="+os.Getenv("PATH"), "HOME="+cmd.Dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_SSL_CAINFO="+ca, "CURL_CA_BUNDLE="+ca, "SSL_CERT_FILE="+ca)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// TestOtherProgramsThroughTheProxy: programs that were not written for the proxy work with it.
func TestOtherProgramsThroughTheProxy(t *testing.T) {
	handler := func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/away" {
			http.Redirect(rw, r, "http://b.example/", http.StatusFound)
			return
		}
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(rw, "%s %s %s %s %d %v", r.Proto, r.Method, r.Host, r.URL, len(body), r.Header["Proxy-Connection"])
	}
	w := newWorld(t, names(map[string][]string{"a.example": {public}, "down.example": {"93.184.216.35"}}))
	secured := httptest.NewUnstartedServer(http.HandlerFunc(handler))
	secured.EnableHTTP2 = true
	secured.TLS = &tls.Config{Certificates: []tls.Certificate{ca().issue(t, time.Now().Add(time.Hour), "a.example", public)}}
	secured.StartTLS()
	t.Cleanup(secured.Close)
	w.wires.plug(public+":443", secured.Listener.Addr())
	w.wires.plug(public+":80", plain(t, handler).Listener.Addr())
	grant := granted(t, policy.Limits{HTTPSentBytes: 64 << 20}, "a.example", "http://a.example", public, "down.example")
	addr := serving(t, w, grant)

	big := filepath.Join(t.TempDir(), "big")
	if err := os.WriteFile(big, make([]byte, 3<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	py := func(url string) []string {
		return []string{"python3", "-c", "import urllib.request as u; print(u.urlopen('" + url + "').read().decode(), end='')"}
	}
	curl := func(args ...string) []string { return append([]string{"curl", "-sS"}, args...) }
	for _, c := range []struct {
		argv []string
		want string
	}{
		{curl("https://a.example/x"), "HTTP/2.0 GET a.example /x 0 []"},
		{curl("--http1.1", "https://a.example/x"), "HTTP/1.1 GET a.example /x 0 []"},
		{curl("https://" + public + "/x"), "HTTP/2.0 GET " + public + " /x 0 []"},
		{curl("http://a.example/x?y=%20z"), "HTTP/1.1 GET a.example /x?y=%20z 0 []"},
		{curl("--http1.0", "http://a.example/x"), "HTTP/1.1 GET a.example /x 0 []"},
		{curl("--proxytunnel", "http://a.example/x"), "HTTP/1.1 GET a.example /x 0 []"},
		{curl("-T", big, "http://a.example/x"), "HTTP/1.1 PUT a.example /x 3145728 []"},
		{curl("-T", big, "-H", "Transfer-Encoding: chunked", "http://a.example/x"), "HTTP/1.1 PUT a.example /x 3145728 []"},
		{curl("-T", big, "https://a.example/x"), "HTTP/2.0 PUT a.example /x 3145728 []"},
		{curl("-o", os.DevNull, "-w", "%{http_code} %{redirect_url}", "http://a.example/away"), "302 http://b.example/"},
		{curl("-w", "%{http_code}", "-I", "-o", os.DevNull, "http://a.example/"), "200"},
		{py("https://a.example/x"), "HTTP/1.1 GET a.example /x 0 []"}, // its CONNECT is HTTP/1.0
		{py("http://a.example/x"), "HTTP/1.1 GET a.example /x 0 []"},
	} {
		if got, err := outside(t, addr, c.argv...); err != nil || got != c.want {
			t.Errorf("%q: %q, %v; want %q", c.argv, got, err, c.want)
		}
	}
	for _, c := range []struct {
		argv []string
		want string
	}{
		{curl("-f", "-v", "https://b.example/"), "403 no connection to https://b.example:443: no rule allows it; --allow-net b.example would allow it"},
		{curl("-f", "-v", "http://a.example:8080/"), "403 no connection to http://a.example:8080: no rule allows it; --allow-net http://a.example:8080 would allow it"},
		{py("https://b.example/"), "403 no connection to https://b.example:443: no rule allows it; --allow-net b.example would allow it"},
		{curl("-f", "-v", "https://down.example/"), "502 connect to https://down.example:443"},
		{curl("-f", "-v", "ftp://a.example/"), "400 URL \"ftp://a.example/\": it does not begin with http:// or https://"},
	} {
		if got, err := outside(t, addr, c.argv...); err == nil || !strings.Contains(got, c.want) {
			t.Errorf("%q: %q, %v; want %q", c.argv, got, err, c.want)
		}
	}
	var accounts []string
	for _, a := range grant.Traffic() {
		accounts = append(accounts, fmt.Sprint(a.Host, " ", a.Requests, " ", a.Refused, " ", a.SentBytes > 0, " ", a.ReceivedBytes > 0))
	}
	want := []string{
		"http://a.example:80 8 0 true true", "http://a.example:8080 0 1 false false", "https://" + public + ":443 1 0 true true",
		"https://a.example:443 4 0 true true", "https://b.example:443 0 2 false false", "https://down.example:443 1 0 false false",
	}
	if !slices.Equal(accounts, want) {
		t.Errorf("the accounts are %q, want %q", accounts, want)
	}
}

func TestGitThroughTheProxy(t *testing.T) {
	root := t.TempDir()
	git := func(args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "git", args...)
		cmd.Dir = root
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	git("init", "-q", "--bare", "r.git")
	git("init", "-q", "work")
	git("-C", "work", "-c", "user.name=x", "-c", "user.email=x@x", "commit", "-q", "--allow-empty", "-m", "first")
	git("-C", "work", "push", "-q", "../r.git", "HEAD:refs/heads/main")
	server := secure(t, (&cgi.Handler{
		Path: filepath.Join(git("--exec-path"), "git-http-backend"), Env: []string{"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1"},
	}).ServeHTTP, "git.example")
	w := newWorld(t, names(map[string][]string{"git.example": {public}}))
	w.wires.plug(public+":443", server.Listener.Addr())
	addr := serving(t, w, granted(t, policy.Limits{}, "git.example"))
	if out, err := outside(t, addr, "git", "clone", "-q", "-b", "main", "https://git.example/r.git"); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	if out, err := outside(t, addr, "git", "clone", "-q", "https://other.example/r.git"); err == nil || !strings.Contains(out, "403") {
		t.Errorf("another host: %v: %s", err, out)
	}
}

// TestManyAtOnce makes more connections than are served at once, all with Go's own
// client, some behind the administrator's proxy.
func TestManyAtOnce(t *testing.T) {
	for _, upstream := range []string{"", "http://10.9.9.9:3128"} {
		w := newWorld(t, names(map[string][]string{"a.example": {public}}), func(o *Options) { o.Proxy = upstream })
		body := bytes.Repeat([]byte("0123456789abcdef"), 8<<10)
		server := secure(t, func(rw http.ResponseWriter, _ *http.Request) { _, _ = rw.Write(body) }, "a.example").Listener.Addr()
		w.wires.plug(public+":443", server)
		w.wires.plug("10.9.9.9:3128", newTunnels(t, map[string]net.Addr{public + ":443": server}, nil).Addr())
		grant := granted(t, policy.Limits{HTTPRequests: 1000}, "a.example")
		to, err := url.Parse("http://" + serving(t, w, grant))
		if err != nil {
			t.Fatal(err)
		}
		roots := x509.NewCertPool()
		roots.AddCert(ca().cert)
		client := &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(to), TLSClientConfig: &tls.Config{RootCAs: roots}, DisableKeepAlives: true}}
		var all sync.WaitGroup
		for range maxConnections + 10 {
			all.Go(func() {
				resp, err := client.Get("https://a.example/")
				if err != nil {
					t.Error(err)
					return
				}
				defer resp.Body.Close()
				if got, err := io.ReadAll(resp.Body); err != nil || !bytes.Equal(got, body) {
					t.Errorf("%d bytes, %v", len(got), err)
				}
			})
		}
		all.Wait()
		if got := grant.Traffic(); len(got) != 1 || got[0].Requests != maxConnections+10 || got[0].ReceivedBytes < int64(len(body)) {
			t.Errorf("the account is %+v", got)
		}
	}
}

// A tunnel for tcp carries protocols other than TLS and HTTP, and either side may close first.
func TestATunnelForTCP(t *testing.T) {
	w := newWorld(t, names(map[string][]string{"a.example": {public}}))
	w.wires.plug(public+":22", raw(t, func(conn net.Conn) {
		rest, _ := io.ReadAll(conn)
		fmt.Fprintf(conn, "and %d bytes", len(rest))
	}).Addr())
	addr := serving(t, w, granted(t, policy.Limits{}, "tcp://a.example:22"))
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "CONNECT a.example:22 HTTP/1.1\r\nHost: a.example:22\r\n\r\nSSH-2.0-x\r\n") // it need not wait
	if status, err := connectAnswer(conn); status != 200 || err != nil {
		t.Fatal(status, err)
	}
	_, _ = conn.Write(make([]byte, 100_000))
	_ = conn.(*net.TCPConn).CloseWrite()
	got, err := io.ReadAll(conn)
	var n int
	if _, scan := fmt.Sscanf(string(got), "and %d bytes", &n); scan != nil || err != nil || n < 100_000-64<<10 || n > 100_011 {
		t.Errorf("%q, %v", got, err)
	}
}

// TestAnswersInPlainHTTP sends bytes as clients do that are hard to get as programs.
func TestAnswersInPlainHTTP(t *testing.T) {
	w := newWorld(t, names(map[string][]string{"a.example": {public}}))
	w.wires.plug(public+":80", plain(t, func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(rw, "it got %d", len(body))
		_ = http.NewResponseController(rw).Flush() // so that the length is not known
		if r.URL.Path == "/broken" {
			panic(http.ErrAbortHandler)
		}
	}).Listener.Addr())
	addr := serving(t, w, granted(t, policy.Limits{}, "http://a.example"))
	ask := func(first, then string) string {
		t.Helper()
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, first)
		begin := make([]byte, len("HTTP/1.1 100 Continue\r\n\r\n"))
		if then != "" {
			if _, err := io.ReadFull(conn, begin); err != nil || string(begin) != "HTTP/1.1 100 Continue\r\n\r\n" {
				t.Fatalf("%q, %v", begin, err)
			}
			_, _ = io.WriteString(conn, then)
		}
		got, err := io.ReadAll(conn)
		for range 100 { // a client that looks for the answer later still gets there
			if _, werr := io.WriteString(conn, "more"); werr != nil && err == nil {
				err = werr
			}
		}
		if err != nil {
			t.Errorf("%.100q: %v", first, err)
		}
		return string(got)
	}
	for _, c := range []struct{ first, then, want string }{
		{"GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n", "", "8\r\nit got 0\r\n0\r\n\r\n"},
		{"GET http://a.example/broken HTTP/1.1\r\nHost: a.example\r\n\r\n", "", "8\r\nit got 0\r\n"},
		{"GET http://a.example/ HTTP/1.0\r\n\r\n", "", "GMT\r\n\r\nit got 0"},
		{"PUT http://a.example/ HTTP/1.1\r\nHost: a.example\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n", "hello", "8\r\nit got 5\r\n0\r\n\r\n"},
		{"PUT http://b.example/ HTTP/1.1\r\nHost: b.example\r\nContent-Length: 200000\r\n\r\n" + strings.Repeat("x", 200_000), "", "--allow-net http://b.example would allow it\n"},
	} {
		if got := ask(c.first, c.then); !strings.HasSuffix(got, c.want) {
			t.Errorf("%.100q: %q, want %q", c.first, got, c.want)
		}
	}
}

func TestTheProxyIsNotThereWithoutANetwork(t *testing.T) {
	l := newPipes()
	if err := newWorld(t, nil).ServeProxy(t.Context(), l, policy.Grant{}); services.KindOf(err) != services.Denied {
		t.Errorf("without a grant: %v", err)
	}
	later := Lazy(func() (*Egress, error) { return nil, fmt.Errorf("its file is broken") })
	if err := later.ServeProxy(t.Context(), newPipes(), granted(t, policy.Limits{}, "a.example")); services.KindOf(err) != services.Denied || !strings.Contains(err.Error(), "its file is broken") {
		t.Errorf("without a way out: %v", err)
	}
	if _, err := l.Accept(); err == nil {
		t.Error("the listener is open")
	}
}

// pipes is a listener in memory.
type pipes struct {
	conns    chan net.Conn
	closed   chan struct{}
	close    func()
	accepted int
}

func newPipes() *pipes {
	p := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
	p.close = sync.OnceFunc(func() { close(p.closed) })
	return p
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.conns:
		p.accepted++
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { p.close(); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

// dial returns the end of a client. It may wait to be accepted.
func (p *pipes) dial() net.Conn {
	a, b := net.Pipe()
	go func() {
		select {
		case p.conns <- b:
		case <-p.closed:
		}
	}()
	return a
}

// TestAConnectionEnds uses fake time, and finds goroutines that stay.
func TestAConnectionEnds(t *testing.T) {
	const connect = "CONNECT a.example:1 HTTP/1.1\r\nHost: a.example:1\r\n\r\n"
	const limit = 7 * time.Second
	trickle := func(conn net.Conn, every time.Duration, times int) {
		for range times {
			time.Sleep(every)
			if _, err := conn.Write([]byte("x")); err != nil {
				return
			}
		}
	}
	for what, c := range map[string]struct {
		rule   string
		client func(net.Conn)
		server func(net.Conn)
		after  time.Duration
		logs   string
	}{
		"that says nothing":          {client: func(net.Conn) {}, after: limit, logs: "no progress for too long"},
		"that never ends its head":   {client: func(c net.Conn) { trickle(c, time.Second, 1000) }, after: limit, logs: "no progress for too long"},
		"that never begins its TLS":  {client: func(c net.Conn) { fmt.Fprint(c, connect) }, after: limit, logs: "no progress for too long"},
		"that trickles its TLS":      {client: func(c net.Conn) { fmt.Fprint(c, connect, "\x16\x03\x01\x40\x00\x01"); trickle(c, time.Second, 1000) }, after: limit, logs: "no progress for too long"},
		"that is silent both ways":   {rule: "tcp", client: func(c net.Conn) { fmt.Fprint(c, connect) }, after: limit, logs: "no progress for too long"},
		"whose client talks a while": {rule: "tcp", client: func(c net.Conn) { fmt.Fprint(c, connect); trickle(c, limit-1, 3) }, after: 3*(limit-1) + limit, logs: "no progress for too long"},
		"whose server talks a while": {rule: "tcp", client: func(c net.Conn) { fmt.Fprint(c, connect) }, server: func(s net.Conn) { trickle(s, limit-1, 3); silent(s) }, after: 3*(limit-1) + limit, logs: "no progress for too long"},
		"whose server hangs up":      {rule: "tcp", client: func(c net.Conn) { fmt.Fprint(c, connect) }, server: func(net.Conn) {}, logs: "proxy connection"},
		"whose client hangs up":      {rule: "tcp", client: func(c net.Conn) { fmt.Fprint(c, connect); time.Sleep(time.Second); c.Close() }, after: time.Second, logs: "proxy connection"},
		"whose command ends":         {rule: "tcp", client: func(c net.Conn) { fmt.Fprint(c, connect); trickle(c, time.Second, 1000) }, after: time.Hour / 4, logs: "context canceled"},
		"whose body never comes": {rule: "http", client: func(c net.Conn) {
			fmt.Fprint(c, "PUT http://a.example:1/ HTTP/1.1\r\nHost: a.example:1\r\nContent-Length: 5\r\n\r\n")
		}, after: limit, logs: "no progress for too long"},
		"whose answer does not begin": {rule: "http", client: func(c net.Conn) { fmt.Fprint(c, "GET http://a.example:1/ HTTP/1.1\r\nHost: a.example:1\r\n\r\n") }, after: limit, logs: "no progress for too long"},
		"whose answer never ends": {rule: "http", client: func(c net.Conn) { fmt.Fprint(c, "GET http://a.example:1/ HTTP/1.1\r\nHost: a.example:1\r\n\r\n") },
			server: func(s net.Conn) {
				_, _ = s.Read(make([]byte, 4096))
				fmt.Fprint(s, "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
				trickle(s, time.Second, 3)
				silent(s)
			}, after: 3*time.Second + limit, logs: "no progress for too long"},
	} {
		t.Run(what, func(t *testing.T) {
			if c.rule == "" {
				c.rule = "https"
			}
			if c.server == nil {
				c.server = silent
			}
			grant := granted(t, policy.Limits{HTTPTimeout: limit}, c.rule+"://a.example:*")
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				var others sync.WaitGroup
				e, err := New(Options{
					resolver: fixed{netip.MustParseAddr(public)}, Logger: slog.New(slog.NewTextHandler(&log, nil)),
					connect: func(context.Context, netip.AddrPort) (net.Conn, error) {
						a, b := net.Pipe()
						others.Go(func() { c.server(b); b.Close() })
						return a, nil
					},
				})
				if err != nil {
					t.Fatal(err)
				}
				l := newPipes()
				ctx, cancel := context.WithTimeoutCause(t.Context(), time.Hour/4, context.Canceled)
				defer cancel()
				ended := make(chan error, 1)
				go func() { ended <- e.ServeProxy(ctx, l, grant) }()
				client := l.dial()
				start := time.Now()
				others.Go(func() { c.client(client) })
				_, _ = io.Copy(io.Discard, client)
				if took := time.Since(start); took != c.after {
					t.Errorf("it ends after %s, want %s", took, c.after)
				}
				client.Close()
				cancel()
				if err := <-ended; err != nil {
					t.Errorf("the proxy ends with %v", err)
				}
				others.Wait()
				if !strings.Contains(log.String(), c.logs) {
					t.Errorf("the log is %q, want %q", &log, c.logs)
				}
			})
		})
	}
}

// TestConnectionsAreFew: at the limit, no connection is accepted before another has ended.
func TestConnectionsAreFew(t *testing.T) {
	grant := granted(t, policy.Limits{}, "a.example")
	synctest.Test(t, func(t *testing.T) {
		e, err := New(Options{})
		if err != nil {
			t.Fatal(err)
		}
		l := newPipes()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- e.ServeProxy(ctx, l, grant) }()
		var clients []net.Conn
		for range maxConnections + 3 {
			clients = append(clients, l.dial())
		}
		synctest.Wait()
		if l.accepted != maxConnections {
			t.Errorf("%d connections were accepted, want %d", l.accepted, maxConnections)
		}
		for _, c := range clients {
			c.Close()
		}
		synctest.Wait()
		if l.accepted != maxConnections+3 {
			t.Errorf("%d connections were accepted in the end", l.accepted)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
