package egress

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/services"
)

// sends makes a world in which http://a.example/ sends the bytes that f writes.
func sends(t *testing.T, f func(conn net.Conn), change ...func(*Options)) *world {
	t.Helper()
	w := newWorld(t, names(map[string][]string{"a.example": {public}}), change...)
	w.wires.plug(public+":80", raw(t, f).Addr())
	return w
}

// silent says nothing until the other side hangs up.
func silent(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) }

func gzipped(data []byte) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write(data)
	_ = z.Close()
	return b.Bytes()
}

// TestN13N14AnswersThatAreTooLarge counts the sent bytes: the host stops reading at the
// limit, give or take the buffers of the system.
func TestN13N14AnswersThatAreTooLarge(t *testing.T) {
	const limit = 64 << 10
	const slack = 16 << 20 // of the socket's buffers, both ends
	zeros := make([]byte, 64<<10)
	bomb := gzipped(make([]byte, 100<<20)) // 1000:1
	empty := gzipped(nil)
	var sent atomic.Int64
	flood := func(head string, block []byte) func(net.Conn) {
		return func(conn net.Conn) {
			fmt.Fprint(conn, head)
			for sent.Load() < 1<<30 {
				n, err := conn.Write(block)
				sent.Add(int64(n))
				if err != nil {
					return
				}
			}
		}
	}
	whole := func(head string, body []byte) func(net.Conn) {
		return func(conn net.Conn) { fmt.Fprintf(conn, head, len(body)); _, _ = conn.Write(body) }
	}
	chunk := []byte(fmt.Sprintf("%x\r\n%s\r\n", len(zeros), zeros))
	chunkOfEmpty := bytes.Repeat(empty, 1000)
	for what, c := range map[string]struct {
		f    func(net.Conn)
		kind services.Kind
		cut  bool // with max-bytes of 100, it is cut
	}{
		"a length that is too large":     {flood("HTTP/1.1 200 OK\r\nContent-Length: 10737418240\r\n\r\n", zeros), services.TooLarge, true},
		"no length":                      {flood("HTTP/1.1 200 OK\r\n\r\n", zeros), services.TooLarge, true},
		"chunks without end":             {flood("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", chunk), services.TooLarge, true},
		"one byte too many":              {whole("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", make([]byte, limit+1)), services.TooLarge, true},
		"a bomb":                         {whole("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n", bomb), services.TooLarge, true},
		"a bomb in a bomb, said once":    {whole("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n", gzipped(bomb)), services.TooLarge, true},
		"a bomb in a bomb":               {whole("HTTP/1.1 200 OK\r\nContent-Encoding: gzip, gzip\r\nContent-Length: %d\r\n\r\n", gzipped(bomb)), services.Protocol, false},
		"a bomb in a bomb, in two lines": {whole("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n", gzipped(bomb)), services.Protocol, false},
		"brotli":                         {whole("HTTP/1.1 200 OK\r\nContent-Encoding: br\r\nContent-Length: %d\r\n\r\n", []byte("x")), services.Protocol, false},
		"what expands to nothing":        {flood("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n", chunkOfEmpty), services.TooLarge, false},
		"no gzip":                        {whole("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n", []byte("not gzip at all")), services.Protocol, false},
		"half of a gzip":                 {whole("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n", gzipped([]byte("hello"))[:12]), services.Protocol, false},
		"less than the length":           {whole("HTTP/1.1 200 OK\r\nContent-Length: 9%d\r\n\r\n", []byte("short")), services.Protocol, false},
		"headers without end":            {flood("HTTP/1.1 200 OK\r\n", []byte(strings.Repeat("x: y\r\n", 10000))), services.Protocol, false},
		"one header without end":         {flood("HTTP/1.1 200 OK\r\nx: ", zeros), services.Protocol, false},
		"a status line without end":      {flood("HTTP/1.1 200 ", zeros), services.Protocol, false},
		"1xx without end":                {flood("", []byte("HTTP/1.1 103 Early Hints\r\nLink: <x>\r\n\r\n")), services.Protocol, false},
		"a thousand headers":             {whole("HTTP/1.1 200 OK\r\n"+strings.Repeat("x: y\r\n", 1000)+"Content-Length: %d\r\n\r\n", nil), services.Protocol, false},
		"a megabyte of header":           {whole("HTTP/1.1 200 OK\r\nx: "+strings.Repeat("y", 1<<20)+"\r\nContent-Length: %d\r\n\r\n", nil), services.Protocol, false},
		"another protocol":               {whole("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nX: %d\r\n\r\n", nil), services.Protocol, false},
		"a preface of HTTP/2":            {whole("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n%d", nil), services.Protocol, false},
		"no HTTP":                        {whole("SSH-2.0-OpenSSH_9.6 %d\r\n", nil), services.Protocol, false},
		"nothing":                        {func(net.Conn) {}, services.Protocol, false},
		"two lengths":                    {whole("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2%d\r\n\r\nab", nil), services.Protocol, false},
	} {
		t.Run(what, func(t *testing.T) {
			sent.Store(0)
			w := sends(t, c.f)
			grant := granted(t, policy.Limits{HTTPResponseBytes: limit}, "http://a.example")
			resp, err := w.Fetch(t.Context(), grant, get("http://a.example/"))
			if services.KindOf(err) != c.kind {
				t.Errorf("it is answered with %+v, %v", resp, err)
			}
			if e, ok := err.(*services.Error); ok && c.kind == services.TooLarge && e.Limit != limit { //nolint:errorlint // returned bare
				t.Errorf("the limit is %d", e.Limit)
			}
			if n := sent.Load(); n > slack {
				t.Errorf("%d bytes were sent", n)
			}
			if got := grant.Traffic()[0].ReceivedBytes; got > limit+1 {
				t.Errorf("%d bytes of the body were read", got)
			}
			req := get("http://a.example/")
			req.MaxBytes = 100
			sent.Store(0)
			resp, err = w.Fetch(t.Context(), grant, req)
			if c.cut && (err != nil || !resp.Truncated || len(resp.Body) != 100) {
				t.Errorf("it is not cut: %v", err)
			} else if !c.cut && services.KindOf(err) != c.kind {
				t.Errorf("with 100 bytes to keep: %+v, %v", resp, err)
			}
		})
	}
	t.Run("more than the limit, of which all that is permitted is kept", func(t *testing.T) {
		for _, f := range []func(net.Conn){flood("HTTP/1.1 200 OK\r\n\r\n", zeros), whole("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n", bomb)} {
			req := get("http://a.example/")
			req.MaxBytes = limit
			resp, err := sends(t, f).Fetch(t.Context(), granted(t, policy.Limits{HTTPResponseBytes: limit}, "http://a.example"), req)
			if err != nil || len(resp.Body) != limit || !resp.Truncated {
				t.Errorf("it is not cut: %v", err)
			}
		}
	})
	t.Run("exactly the limit", func(t *testing.T) {
		w := sends(t, whole("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", make([]byte, limit)))
		req := get("http://a.example/")
		for _, req.MaxBytes = range []int{0, limit, limit + 1, 1 << 30} {
			resp, err := w.Fetch(t.Context(), granted(t, policy.Limits{HTTPResponseBytes: limit}, "http://a.example"), req)
			if err != nil || len(resp.Body) != limit || resp.Truncated {
				t.Errorf("with %d bytes to keep: %v", req.MaxBytes, err)
			}
		}
	})
}

// TestN13TimeIsBounded has each phase stall forever while only the time limit of this
// phase is short.
func TestN13TimeIsBounded(t *testing.T) {
	const short = 30 * time.Millisecond
	for what, c := range map[string]struct {
		zone   func(string, int) []string
		f      func(net.Conn)
		change func(*Options)
		limits policy.Limits
		req    services.Request
		says   string
	}{
		"the name server": {zone: names(map[string][]string{"a.example": {"silence"}}), change: func(o *Options) { o.resolveTimeout = short }, says: "resolve"},
		"the connection": {change: func(o *Options) {
			o.connectTimeout = short
			o.connect = func(ctx context.Context, _ netip.AddrPort) (net.Conn, error) { <-ctx.Done(); return nil, ctx.Err() }
		}, says: "connect"},
		"the handshake":     {change: func(o *Options) { o.tlsTimeout = short }, req: get("https://a.example/"), says: "authenticate"},
		"the head":          {change: func(o *Options) { o.headerTimeout = short }, says: "request"},
		"the whole":         {limits: policy.Limits{HTTPTimeout: short}, says: "request"},
		"the guest's limit": {req: services.Request{Method: "GET", URL: "http://a.example/", Timeout: short}, says: "request"},
		"the body, a byte at a time": {f: func(conn net.Conn) {
			fmt.Fprint(conn, "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
			for tick := time.NewTicker(time.Millisecond); ; {
				<-tick.C
				if _, err := conn.Write([]byte("x")); err != nil {
					return
				}
			}
		}, limits: policy.Limits{HTTPTimeout: 5 * short}, says: "read the answer"},
		"the head, a byte at a time": {f: func(conn net.Conn) {
			fmt.Fprint(conn, "HTTP/1.1 200 OK\r\nx: ")
			for tick := time.NewTicker(time.Millisecond); ; {
				<-tick.C
				if _, err := conn.Write([]byte("x")); err != nil {
					return
				}
			}
		}, limits: policy.Limits{HTTPTimeout: 5 * short}, says: "request"},
	} {
		t.Run(what, func(t *testing.T) {
			if c.zone == nil {
				c.zone = names(map[string][]string{"a.example": {public}})
			}
			if c.f == nil {
				c.f = silent
			}
			if c.change == nil {
				c.change = func(*Options) {}
			}
			if c.req.URL == "" {
				c.req = get("http://a.example/")
			}
			w := newWorld(t, c.zone, c.change)
			l := raw(t, c.f)
			w.wires.plug(public+":80", l.Addr())
			w.wires.plug(public+":443", l.Addr())
			start := time.Now()
			_, err := w.Fetch(t.Context(), granted(t, c.limits, "http://a.example", "a.example"), c.req)
			if took := time.Since(start); services.KindOf(err) != services.Timeout || took > 5*time.Second || !strings.Contains(err.Error(), c.says) {
				t.Errorf("after %s: %v", took, err)
			}
		})
	}
}

// A guest that wants a part of a body gets the bytes so far of a slow one, but never its
// end, which may be the beginning of a secret.
func TestOfASlowBodyIsKeptWhatHasCome(t *testing.T) {
	const text = "what comes before the secret that never ends: "
	for what, c := range map[string]struct {
		change func(*Options)
		sent   string
		cuts   int
		want   string
	}{
		"all that has come, where there is no secret": {func(*Options) {}, text, 1000, text},
		"less than a secret is nothing":               {knowing, repeated[:5], 1000, ""},
		"none of what may begin one":                  {knowing, strings.Repeat(text, 10) + repeated[:len(repeated)-1], 1000, strings.Repeat(text, 10)},
		"who wants all of it has nothing":             {func(*Options) {}, text, 0, ""},
		"in its time as much as was kept":             {func(*Options) {}, text, 10, text[:10]},
	} {
		t.Run(what, func(t *testing.T) {
			w := newWorld(t, names(map[string][]string{"a.example": {public}}), c.change)
			w.wires.plug(public+":80", raw(t, func(conn net.Conn) {
				fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n%s", c.sent)
				silent(conn)
			}).Addr())
			req := get("http://a.example/")
			req.MaxBytes = c.cuts
			resp, err := w.Fetch(t.Context(), granted(t, policy.Limits{HTTPTimeout: 500 * time.Millisecond}, "http://a.example"), req)
			if c.want == "" {
				if services.KindOf(err) != services.Timeout {
					t.Errorf("got %v, %v", resp, err)
				}
				return
			}
			if err != nil || !resp.Truncated || !strings.HasPrefix(c.want, string(resp.Body)) || c.want != text && c.cuts > 10 && len(resp.Body) >= len(c.want) || c.want == text && string(resp.Body) != text {
				t.Errorf("got %+v, %v", resp, err)
			}
		})
	}
}

func TestANameThatIsNotThereIsSaidOnce(t *testing.T) {
	dns := &net.DNSError{Err: "no such host", Name: "a.example.", Server: "10.0.0.1:53", IsNotFound: true}
	for want, err := range map[string]error{
		"no such host: a.example":                                           dns,
		"resolve a.example: server misbehaving":                             &net.DNSError{Err: "server misbehaving", Name: "a.example.", Server: "10.0.0.1:53"},
		"resolve a.example: it has no address":                              errors.New("it has no address"),
		"resolve a.example: no answer in time (lookup a.example.: no news)": &net.DNSError{Err: "no news", Name: "a.example.", IsTimeout: true},
	} {
		if got := phaseError(services.DNS, "resolve a.example", err); got.Error() != want || services.KindOf(got) == 0 {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if found, ok := errors.AsType[*net.DNSError](phaseError(services.DNS, "x", dns)); !ok || found != dns {
		t.Error("what the resolver has said is lost")
	}
}

// TestN15DataThatLeaksAway: in URLs, in labels, in many small requests.
func TestN15DataThatLeaksAway(t *testing.T) {
	asked := 0
	w := newWorld(t, func(name string, _ int) []string { return []string{public} })
	w.wires.plug(public+":80", plain(t, func(_ http.ResponseWriter, r *http.Request) {
		asked++
		_, _ = io.Copy(io.Discard, r.Body)
	}).Listener.Addr())
	limits := policy.Limits{HTTPRequests: 5, HTTPSentBytes: 20 << 10}

	grant := granted(t, limits, "http://*.example")
	if _, err := w.Fetch(t.Context(), grant, get("http://a.example/"+strings.Repeat("a", maxURLBytes))); services.KindOf(err) != services.Invalid {
		t.Errorf("a long URL: %v", err)
	}
	for i := range 8 {
		_, err := w.Fetch(t.Context(), grant, get(fmt.Sprintf("http://secret%d.example/", i)))
		if i < 5 && err != nil || i >= 5 && services.KindOf(err) != services.Denied {
			t.Errorf("request %d: %v", i, err)
		}
	}
	if got := w.dns.count("secret5.example") + w.dns.count("secret6.example"); got != 0 || asked != 5 {
		t.Errorf("names were looked up %d times beyond the budget, %d requests", got, asked)
	}
	if n := len(grant.Traffic()); n != 8 {
		t.Errorf("%d hosts are on the account, want 8", n)
	}
	grant = granted(t, limits, "http://*.example")
	post := services.Request{Method: "POST", URL: "http://a.example/", Body: make([]byte, 12<<10)}
	asked = 0
	for i := range 3 {
		if _, err := w.Fetch(t.Context(), grant, post); i == 0 && err != nil || i > 0 && services.KindOf(err) != services.Denied {
			t.Errorf("body %d: %v", i, err)
		}
	}
	long := get("http://a.example/?" + strings.Repeat("a", 7<<10))
	long.Headers = [][2]string{{"x", strings.Repeat("a", 2<<10)}}
	if _, err := w.Fetch(t.Context(), grant, long); services.KindOf(err) != services.Denied || asked != 1 {
		t.Errorf("URLs and headers do not count: %v, %d requests", err, asked)
	}
}
