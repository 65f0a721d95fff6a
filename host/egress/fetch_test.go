package egress

import (
	"compress/gzip"
	"fmt"
	"io"
	"log"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/services"
)

var quiet = log.New(io.Discard, "", 0)

func TestFetch(t *testing.T) {
	w := newWorld(t, names(map[string][]string{"a.example": {public}, "xn--bcher-kva.example": {public}}))
	server := secure(t, func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		rw.Header().Set("X-Odd", "a\xffb")
		rw.Header().Add("X-Two", "1")
		rw.Header().Add("X-Two", "2")
		fmt.Fprintf(rw, "%s %s %s %s %q %q %s", r.Proto, r.Method, r.Host, r.URL, r.Header.Get("X-One"), r.UserAgent(), body)
	}, "a.example", "xn--bcher-kva.example", public)
	w.wires.plug(public+":443", server.Listener.Addr())
	w.wires.plug(public+":8443", server.Listener.Addr())
	w.wires.plug(public+":80", plain(t, func(rw http.ResponseWriter, r *http.Request) { fmt.Fprint(rw, "plain ", r.Host) }).Listener.Addr())
	grant := granted(t, policy.Limits{}, "a.example", "a.example:8443", "http://a.example", "bücher.example", public)

	for _, c := range []struct {
		req  services.Request
		want string
	}{
		{services.Request{Method: "GET", URL: "https://a.example", Headers: [][2]string{{"X-One", "1"}}}, `HTTP/1.1 GET a.example / "1" "stockade" `},
		{get("HTTPS://A.Example./x?y=%20#secret"), `HTTP/1.1 GET a.example /x?y=%20 "" "stockade" `},
		{get("https://a.example:443/"), `HTTP/1.1 GET a.example / "" "stockade" `},
		{get("https://a.example:8443/"), `HTTP/1.1 GET a.example:8443 / "" "stockade" `},
		{get("https://bücher.example/"), `HTTP/1.1 GET xn--bcher-kva.example / "" "stockade" `},
		{get("https://" + public + "/../a/./b"), `HTTP/1.1 GET ` + public + ` /../a/./b "" "stockade" `},
		{services.Request{Method: "POST", URL: "https://a.example/", Body: []byte("data"), Headers: [][2]string{{"user-agent", "me"}}}, `HTTP/1.1 POST a.example / "" "me" data`},
		{get("http://a.example/"), "plain a.example"},
	} {
		resp, err := w.Fetch(t.Context(), grant, c.req)
		if err != nil || resp.Status != 200 || string(resp.Body) != c.want || resp.Truncated {
			t.Errorf("%s: %+v, %v; want %s", c.req.URL, resp, err, c.want)
		}
	}
	resp, err := w.Fetch(t.Context(), grant, get("https://A.example/#x"))
	if err != nil || resp.URL != "https://a.example/" {
		t.Fatalf("%+v, %v", resp, err)
	}
	var kept [][2]string
	for _, h := range resp.Headers {
		if strings.HasPrefix(h[0], "x-") {
			kept = append(kept, h)
		}
	}
	if want := [][2]string{{"x-odd", "a\uFFFDb"}, {"x-two", "1"}, {"x-two", "2"}}; !reflect.DeepEqual(kept, want) {
		t.Errorf("headers %q, want %q", kept, want)
	}
	if resp, err := w.Fetch(t.Context(), grant, services.Request{Method: "HEAD", URL: "https://a.example/"}); err != nil || len(resp.Body) != 0 {
		t.Errorf("HEAD: %+v, %v", resp, err)
	}
	traffic := grant.Traffic()
	if len(traffic) != 5 || traffic[2].Host != "https://a.example:443" || traffic[2].Requests != 6 || traffic[2].SentBytes == 0 || traffic[2].ReceivedBytes == 0 {
		t.Errorf("the account is %+v", traffic)
	}
}

func TestRedirectsThatAreFollowed(t *testing.T) {
	w := newWorld(t, names(map[string][]string{"a.example": {public}, "b.example": {"93.184.216.35"}}))
	var seen []string
	handler := func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		seen = append(seen, fmt.Sprintf("%s %s%s key=%s type=%s agent=%s accept=%s body=%s", r.Method, r.Host, r.URL, r.Header.Get("X-Key"),
			r.Header.Get("Content-Type"), r.UserAgent(), r.Header.Get("Accept"), body))
		if to := r.URL.Query().Get("to"); to != "" {
			rw.Header().Set("Location", to)
			var status int
			fmt.Sscan(r.URL.Query().Get("status"), &status)
			rw.WriteHeader(status)
			return
		}
		fmt.Fprint(rw, "there")
	}
	w.wires.plug(public+":443", secure(t, handler, "a.example").Listener.Addr())
	w.wires.plug("93.184.216.35:443", secure(t, handler, "b.example").Listener.Addr())
	headers := [][2]string{{"X-Key", "k"}, {"Content-Type", "text/x"}, {"User-Agent", "me"}, {"Accept", "*/*"}}
	for _, c := range []struct {
		method, body, to string
		status           int
		want             string // the second request, or the error
	}{
		{"GET", "", "/b", 302, "GET a.example/b key=k type=text/x agent=me accept=*/* body="},
		{"GET", "", "//b.example/c", 301, "GET b.example/c key= type= agent=me accept=*/* body="},
		{"GET", "", "https://b.example", 308, "GET b.example/ key= type= agent=me accept=*/* body="},
		{"POST", "x", "/b", 301, "GET a.example/b key=k type= agent=me accept=*/* body="},
		{"POST", "x", "https://b.example/", 303, "GET b.example/ key= type= agent=me accept=*/* body="},
		{"PUT", "x", "/b", 303, "GET a.example/b key=k type= agent=me accept=*/* body="},
		{"PUT", "x", "/b", 302, "PUT a.example/b key=k type=text/x agent=me accept=*/* body=x"},
		{"POST", "x", "/b", 307, "POST a.example/b key=k type=text/x agent=me accept=*/* body=x"},
		{"POST", "x", "https://b.example/", 307, "the body was not meant for b.example"},
		{"HEAD", "", "/b", 303, "HEAD a.example/b key=k type=text/x agent=me accept=*/* body="},
	} {
		seen = nil
		req := services.Request{Method: c.method, URL: fmt.Sprintf("https://a.example/?status=%d&to=%s", c.status, strings.ReplaceAll(c.to, "&", "%26")), Headers: headers}
		if c.body != "" {
			req.Body = []byte(c.body)
		}
		resp, err := w.Fetch(t.Context(), granted(t, policy.Limits{}, "a.example", "b.example"), req)
		got := ""
		switch {
		case err != nil:
			got = err.Error()
		case resp.Status == 200 && len(seen) == 2:
			got = seen[1]
		}
		if !strings.HasSuffix(got, c.want) {
			t.Errorf("%s, %d to %s: %q (%v), want %q", c.method, c.status, c.to, got, seen, c.want)
		}
	}
}

func TestCompressedAnswers(t *testing.T) {
	w := newWorld(t, names(map[string][]string{"a.example": {public}}))
	w.wires.plug(public+":80", plain(t, func(rw http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Accept-Encoding") != "gzip" {
			http.Error(rw, "it wants "+r.Header.Get("Accept-Encoding"), 400)
			return
		}
		rw.Header().Set("Content-Encoding", "GZip")
		z := gzip.NewWriter(rw)
		fmt.Fprint(z, "hello")
		z.Close()
	}).Listener.Addr())
	resp, err := w.Fetch(t.Context(), granted(t, policy.Limits{}, "http://a.example"), get("http://a.example/"))
	if err != nil || string(resp.Body) != "hello" {
		t.Fatalf("%+v, %v", resp, err)
	}
	for _, h := range resp.Headers {
		if h[0] == "content-encoding" || h[0] == "content-length" {
			t.Errorf("the header %v is about what was decompressed", h)
		}
	}
}
