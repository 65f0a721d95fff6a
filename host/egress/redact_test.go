package egress

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/secret"
)

const repeated = "filled-in/value+1"

// knowing is an option: the value is known to be a secret.
func knowing(o *Options) {
	r := new(secret.Redactor)
	r.Add(repeated)
	o.Redact = r
}

// E03: a guest does not get from a server what the host has put into its
// request, in whatever part of an answer that comes back, and neither does a log.
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
			found := new(secret.Redactor)
			found.Add(repeated)
			if found.Text(text) != text {
				t.Errorf("the value is in %s", text)
			}
		})
	}
}

// What an error quotes of an answer is cut, and no piece of the value is left.
func TestAnErrorQuotesNoPieceOfASecret(t *testing.T) {
	const mixed = "Filled-In/Value+1"
	for before := range 70 {
		w := newWorld(t, names(map[string][]string{"a.example": {public}}), func(o *Options) {
			r := new(secret.Redactor)
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
		if KindOf(err) != Denied || strings.Contains(err.Error(), repeated) {
			t.Errorf("%s: %v", to, err)
		}
	}
	if arrived != 0 {
		t.Errorf("the other server was asked %d times", arrived)
	}
}

// However a guest cuts an answer, there is no piece of the value in what it gets,
// and how much it gets does not tell whether a text begins like the value.
func TestACutTellsNothingOfASecret(t *testing.T) {
	before, behind := strings.Repeat("b", 20), strings.Repeat("c", 400)
	body := before + repeated + behind
	clean := new(secret.Redactor)
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

// What stands in place of a short secret is longer than it is.
func TestLimitsHoldForWhatIsRedacted(t *testing.T) {
	w := newWorld(t, names(map[string][]string{"a.example": {public}}), func(o *Options) {
		r := new(secret.Redactor)
		r.Add("1234")
		o.Redact = r
	})
	w.wires.plug(public+":80", plain(t, func(rw http.ResponseWriter, r *http.Request) {
		fmt.Fprint(rw, strings.Repeat("1234,", 20), r.URL.RawQuery)
	}).Listener.Addr())
	grant := granted(t, policy.Limits{HTTPResponseBytes: 100}, "http://a.example")
	if _, err := w.Fetch(t.Context(), grant, get("http://a.example/")); KindOf(err) != TooLarge {
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
