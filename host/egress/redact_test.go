package egress

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/redact"
	"github.com/stockade-dev/stockade/host/secret"
	"github.com/stockade-dev/stockade/host/services"
	"github.com/stockade-dev/stockade/host/tool"
)

const repeated = "filled-in/value+1"

// knowing is an option: the value is known to be a secret.
func knowing(o *Options) {
	r := new(redact.Redactor)
	r.Add(repeated)
	o.Redact = r
}

// E03: neither a guest nor a log gets the secret of a request back from the server, in
// whatever part of the answer the server repeats it.
func TestWhatAServerRepeatsIsNotAnswered(t *testing.T) {
	for what, f := range map[string]func(net.Conn){
		"in the body": func(conn net.Conn) {
			fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\n\r\n%s %s %s %s", repeated, base64.StdEncoding.EncodeToString([]byte("me:"+repeated)),
				hex.EncodeToString([]byte(repeated)), url.QueryEscape(repeated))
		},
		"in a compressed body": func(conn net.Conn) {
			fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n%s", gzipped([]byte(repeated)))
		},
		"in two chunks": func(conn net.Conn) {
			fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n%s\r\n%x\r\n%s\r\n0\r\n\r\n", repeated[:4], len(repeated)-4, repeated[4:])
		},
		"in a header": func(conn net.Conn) {
			fmt.Fprintf(conn, "HTTP/1.1 401 No\r\nX-Key: %s\r\nContent-Length: 0\r\n\r\n", repeated)
		},
		"in the name of a header": func(conn net.Conn) {
			fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\n%s: x\r\nContent-Length: 0\r\n\r\n", hex.EncodeToString([]byte(repeated)))
		},
		"in a trailer": func(conn net.Conn) {
			fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nTrailer: X-Key\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX-Key: %s\r\n\r\n", repeated)
		},
		"where HTTP should be": func(conn net.Conn) { fmt.Fprintf(conn, "%s\r\n\r\n", repeated) },
		"in a broken header":   func(conn net.Conn) { fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\n%s\r\n\r\n", repeated) },
		"as a coding": func(conn net.Conn) {
			fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Encoding: %s\r\n\r\n", repeated)
		},
	} {
		t.Run(what, func(t *testing.T) {
			var logged strings.Builder
			w := newWorld(t, names(map[string][]string{"a.example": {public}}), knowing, func(o *Options) {
				o.Logger = slog.New(slog.NewTextHandler(&logged, nil))
			})
			w.wires.plug(public+":80", raw(t, f).Addr())
			resp, err := w.Fetch(t.Context(), granted(t, policy.Limits{}, "http://a.example"), get("http://a.example/"))
			text := fmt.Sprint(err) + logged.String()
			if err == nil {
				headers, err := json.Marshal(resp.Headers)
				if err != nil {
					t.Fatal(err)
				}
				text += resp.URL + string(headers) + string(resp.Body)
			}
			found := new(redact.Redactor)
			found.Add(repeated)
			if found.Text(text) != text {
				t.Errorf("the value is in %s", text)
			}
		})
	}
}

// Quotes of an answer in errors are cut, without leaving a piece of the secret.
func TestAnErrorQuotesNoPieceOfASecret(t *testing.T) {
	const mixed = "Filled-In/Value+1"
	for before := range 70 {
		w := newWorld(t, names(map[string][]string{"a.example": {public}}), func(o *Options) {
			r := new(redact.Redactor)
			r.Add(mixed)
			o.Redact = r
		})
		w.wires.plug(public+":80", raw(t, func(conn net.Conn) {
			fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Encoding: %s%s\r\n\r\n", strings.Repeat("x", before), mixed)
		}).Addr())
		_, err := w.Fetch(t.Context(), granted(t, policy.Limits{}, "http://a.example"), get("http://a.example/"))
		if err == nil || !strings.Contains(err.Error(), "the answer is coded as") || strings.Contains(strings.ToLower(err.Error()), "fil") {
			t.Errorf("behind %d letters: %v", before, err)
		}
	}
}

// A server that sends the value on in a redirect gets no help from us.
func TestARedirectThatHoldsASecretIsRefused(t *testing.T) {
	w := newWorld(t, names(map[string][]string{"a.example": {public}, "b.example": {"93.184.216.35"}}), knowing)
	w.wires.plug(public+":80", plain(t, func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Location", r.URL.Query().Get("to"))
		rw.WriteHeader(http.StatusFound)
	}).Listener.Addr())
	arrived := 0
	w.wires.plug("93.184.216.35:80", plain(t, func(http.ResponseWriter, *http.Request) { arrived++ }).Listener.Addr())
	grant := granted(t, policy.Limits{}, "http://a.example", "http://b.example")
	for _, to := range []string{"http://b.example/?k=" + url.QueryEscape(repeated), "http://b.example/" + repeated, "http://b.example/#" + hex.EncodeToString([]byte(repeated)), "/" + repeated} {
		_, err := w.Fetch(t.Context(), grant, get("http://a.example/?to="+url.QueryEscape(to)))
		if services.KindOf(err) != services.Denied || strings.Contains(err.Error(), repeated) {
			t.Errorf("%s: %v", to, err)
		}
	}
	if arrived != 0 {
		t.Errorf("the other server was asked %d times", arrived)
	}
}

// However a guest cuts an answer, it gets no piece of the secret, and the number of bytes
// does not reveal whether a text begins like the secret.
func TestACutTellsNothingOfASecret(t *testing.T) {
	before, behind := strings.Repeat("b", 20), strings.Repeat("c", 400)
	body := before + repeated + behind
	clean := new(redact.Redactor)
	clean.Add(repeated)
	whole := clean.Text(body)
	fetch := func(t *testing.T, head, body string, most int) string {
		w := newWorld(t, names(map[string][]string{"a.example": {public}}), knowing)
		w.wires.plug(public+":80", raw(t, func(conn net.Conn) { fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\n%s\r\n%s", head, body) }).Addr())
		req := get("http://a.example/")
		req.MaxBytes = most
		resp, err := w.Fetch(t.Context(), granted(t, policy.Limits{}, "http://a.example"), req)
		if err != nil {
			t.Fatal(err)
		}
		if !resp.Truncated || len(resp.Body) > most {
			t.Errorf("%d of %d bytes, truncated %v", len(resp.Body), most, resp.Truncated)
		}
		return string(resp.Body)
	}
	for most := 1; most < 60; most++ {
		if got := fetch(t, "", body, most); !strings.HasPrefix(whole, got) {
			t.Errorf("with %d bytes to keep: %q", most, got)
		}
	}
	if got := fetch(t, "", body, 100); len(got) < 80 {
		t.Errorf("of 100 bytes %d are kept", len(got))
	}
	other := strings.Repeat("#", len(repeated))
	for n := 1; n < len(repeated); n++ {
		like, unlike := before+repeated[:n], before+other[:n]
		for _, head := range []string{"Content-Length: 1000\r\n", fmt.Sprintf("Content-Length: %d\r\n", len(like))} {
			a, b := fetch(t, head, like, len(like)-1), fetch(t, head, unlike, len(like)-1)
			if len(a) != len(b) {
				t.Errorf("%q is cut at %d and %q at %d", like, len(a), unlike, len(b))
			}
		}
		if got := fetch(t, "Content-Length: 1000\r\n", like, len(like)-1); !strings.HasPrefix(before, got) {
			t.Errorf("what broke off at %q became %q", like, got)
		}
	}
}

// Limits hold even though the replacement of a short secret is longer than the secret.
func TestLimitsHoldForWhatIsRedacted(t *testing.T) {
	w := newWorld(t, names(map[string][]string{"a.example": {public}}), func(o *Options) {
		r := new(redact.Redactor)
		r.Add("1234")
		o.Redact = r
	})
	w.wires.plug(public+":80", plain(t, func(rw http.ResponseWriter, r *http.Request) {
		fmt.Fprint(rw, strings.Repeat("1234,", 20), r.URL.RawQuery)
	}).Listener.Addr())
	grant := granted(t, policy.Limits{HTTPResponseBytes: 100}, "http://a.example")
	if _, err := w.Fetch(t.Context(), grant, get("http://a.example/")); services.KindOf(err) != services.TooLarge {
		t.Errorf("an answer that becomes too large: %v", err)
	}
	req := get("http://a.example/")
	req.MaxBytes = 100
	resp, err := w.Fetch(t.Context(), grant, req)
	if err != nil || !resp.Truncated || len(resp.Body) != 100 || strings.Contains(string(resp.Body), "1234") {
		t.Errorf("%+v, %v", resp, err)
	}
	// To look beyond a cut is not to exceed the limit.
	req.URL += "?" + strings.Repeat("x", 1000)
	if resp, err = w.Fetch(t.Context(), grant, req); err != nil || !resp.Truncated || len(resp.Body) != 100 {
		t.Errorf("a long answer: %+v, %v", resp, err)
	}
}

// guest asks for things with a secret that the person has bound to a.example.
type guest struct {
	w           *world
	grant       policy.Grant
	table       *secret.Table
	placeholder string
}

type shelf secret.Record

func (s shelf) Get(context.Context, string) (secret.Record, error) { return secret.Record(s), nil }

func newGuest(t *testing.T, handler http.HandlerFunc) *guest {
	t.Helper()
	w := newWorld(t, names(map[string][]string{"a.example": {public}}), knowing)
	w.wires.plug(public+":443", secure(t, handler, "a.example").Listener.Addr())
	info := secret.Info{Name: "T", Hosts: []string{"a.example"}}
	table := secret.NewTable([]tool.Secret{{Name: "T"}}, shelf{info, secret.NewValue(repeated)}.Get)
	placeholder, err := table.Placeholder(t.Context(), "T")
	if err != nil {
		t.Fatal(err)
	}
	return &guest{w, granted(t, policy.Limits{HTTPRequests: 1000}, "a.example"), table, placeholder}
}

func (g *guest) ask(t *testing.T, method string, headers ...[2]string) (*services.Response, error) {
	return g.w.Fetch(t.Context(), g.grant, services.Request{Method: method, URL: "https://a.example/", Headers: headers, Fill: g.table.Fill})
}

// A guest cannot use a server that repeats the beginning of a header to cut the secret,
// because the guest cannot choose the text beside the secret.
func TestAGuestDoesNotCutASecret(t *testing.T) {
	sent := 0
	g := newGuest(t, func(rw http.ResponseWriter, r *http.Request) {
		sent++
		header := r.Header.Get("Authorization")
		fmt.Fprint(rw, header[:min(len(header), 60)])
	})
	for n := range 70 {
		pad := strings.Repeat("x", n)
		for _, value := range []string{pad + g.placeholder, pad + " " + g.placeholder, "Bearer " + pad + g.placeholder, "Bearer " + pad + " " + g.placeholder, g.placeholder + pad} {
			resp, err := g.ask(t, "GET", [2]string{"Authorization", value})
			if err == nil && strings.Contains(string(resp.Body), repeated[:4]) {
				t.Errorf("%d characters of padding: %q", n, resp.Body)
			}
		}
	}
	if sent != 3 { // the bare one twice, and one behind Bearer
		t.Errorf("%d requests were sent", sent)
	}
}

// The length and the digests of a body are removed if a secret was taken out of the body.
func TestTheLengthOfWhatWasTakenOutIsNotTold(t *testing.T) {
	repeats := true
	g := newGuest(t, func(rw http.ResponseWriter, r *http.Request) {
		body := "hello"
		if repeats {
			body += repeated
		}
		for _, name := range []string{"Content-Digest", "Repr-Digest", "Digest", "Content-MD5"} {
			rw.Header().Set(name, "x")
		}
		rw.Header().Set("Content-Length", strconv.Itoa(len(body)))
		rw.Header().Set("ETag", "y")
		fmt.Fprint(rw, body)
	})
	with := [2]string{"Authorization", "Bearer " + g.placeholder}
	for what, c := range map[string]struct {
		method  string
		headers [][2]string
		repeats bool
		told    int // of the five
	}{
		"with a secret":                      {"GET", [][2]string{with}, true, 0},
		"with a secret, of which nothing is": {"GET", [][2]string{with}, false, 0},
		"HEAD, with a secret":                {"HEAD", [][2]string{with}, true, 0},
		"without, and one is there":          {"GET", nil, true, 0},
		"without":                            {"GET", nil, false, 5},
		"HEAD, without":                      {"HEAD", nil, false, 5},
	} {
		repeats = c.repeats
		resp, err := g.ask(t, c.method, c.headers...)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		told, etag := 0, false
		for _, h := range resp.Headers {
			switch h[0] {
			case "content-length", "content-digest", "repr-digest", "digest", "content-md5":
				told++
			case "etag":
				etag = true
			}
		}
		if told != c.told || !etag {
			t.Errorf("%s: %q", what, resp.Headers)
		}
	}
}
