package egress

import (
	"cmp"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stockade-dev/stockade/host/policy/network"
	"github.com/stockade-dev/stockade/host/services"
)

func TestAFollowingClient(t *testing.T) {
	trap := newTrap(t)
	w := newWorld(t, names(map[string][]string{"registry.example": {public}, "cdn.example": {"93.184.216.35"}, "private.example": {"192.168.0.1"}}))
	var mu sync.Mutex
	got := map[string]http.Header{} // by host and path
	handler := func(rw http.ResponseWriter, r *http.Request) {
		mu.Lock()
		got[r.Host+r.URL.Path] = r.Header.Clone()
		mu.Unlock()
		if to, ok := strings.CutPrefix(r.URL.Path, "/to/"); ok {
			rw.Header().Set("Location", to)
			rw.WriteHeader(http.StatusTemporaryRedirect)
			return
		}
		fmt.Fprint(rw, "module")
	}
	w.wires.plug(public+":443", secure(t, handler, "registry.example").Listener.Addr())
	w.wires.plug(public+":8443", secure(t, handler, "registry.example").Listener.Addr())
	w.wires.plug("93.184.216.35:443", secure(t, handler, "cdn.example").Listener.Addr())
	client := w.FollowingClient(reaching(t, "registry.example", "https://registry.example:8443", "cdn.example", "private.example"), 0)

	for _, tt := range []struct {
		what, method, url string
		last              string // where the answer is from; empty: it is refused
		keeps             bool   // the credentials
		want              string // in the error
	}{
		{"no redirect", "GET", "https://registry.example/blob", "registry.example/blob", true, ""},
		{"one on the same host", "GET", "https://registry.example/to/https://registry.example/blob1", "registry.example/blob1", true, ""},
		{"one that is relative", "GET", "https://registry.example/to//blob2", "registry.example/blob2", true, ""},
		{"one to another host", "GET", "https://registry.example/to/https://cdn.example/blob3", "cdn.example/blob3", false, ""},
		{"one to another port", "GET", "https://registry.example/to/https://registry.example:8443/blob4", "registry.example:8443/blob4", false, ""},
		{"away and back", "GET", "https://registry.example/to/https://cdn.example/to/https://registry.example/blob5", "registry.example/blob5", false, ""},
		{"away, back and on", "GET", "https://registry.example/to/https://cdn.example/to/https://registry.example/to/https://registry.example/blob", "registry.example/blob", false, ""},
		{"one with a body to the same host", "POST", "https://registry.example/to/https://registry.example/blob6", "registry.example/blob6", true, ""},
		{"one with a body to another host", "POST", "https://registry.example/to/https://cdn.example/blob7", "", false, "the body was not meant for cdn.example"},
		{"one to a host that no rule allows", "GET", "https://registry.example/to/https://other.example/", "", false, "other.example"},
		{"one to an address of this machine", "GET", "https://registry.example/to/https://" + trap.Addr().String() + "/", "", false, "127.0.0.1"},
		{"one to a private address by name", "GET", "https://registry.example/to/https://private.example/", "", false, "private (192.168.0.0/16)"},
		{"one from https to http", "GET", "https://registry.example/to/http://registry.example/", "", false, "from https to http"},
		{"one with a user name", "GET", "https://registry.example/to/https://me@cdn.example/", "", false, "user"},
		{"one to another protocol", "GET", "https://registry.example/to/file:///etc/passwd", "", false, ""},
		{"five", "GET", "https://registry.example" + strings.Repeat("/to/https://registry.example", 5) + "/blob8", "registry.example/blob8", true, ""},
		{"six", "GET", "https://registry.example" + strings.Repeat("/to/https://registry.example", 6) + "/blob9", "", false, "more than 5 redirects"},
	} {
		clear(got)
		var body io.Reader
		if tt.method == "POST" {
			body = strings.NewReader("secret")
		}
		req, err := http.NewRequest(tt.method, tt.url, body)
		if err != nil {
			t.Fatal(err)
		}
		credentials := []string{"Authorization", "Cookie", "X-Registry-Auth", "Referer"}
		for _, name := range credentials {
			req.Header.Set(name, "secret")
		}
		resp, err := client.Do(req)
		if tt.last == "" {
			if err == nil {
				resp.Body.Close()
				t.Errorf("%s: it was followed", tt.what)
			} else if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%s: %v", tt.what, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", tt.what, err)
			continue
		}
		answer, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || string(answer) != "module" {
			t.Errorf("%s: %q, %v", tt.what, answer, err)
		}
		seen, ok := got[tt.last]
		if !ok {
			t.Errorf("%s: the requests were %v", tt.what, got)
		}
		for _, name := range credentials {
			if has := seen.Get(name) == "secret"; has != tt.keeps && !(name == "Referer" && tt.keeps) {
				t.Errorf("%s: the header %s was sent: %v", tt.what, name, has)
			}
		}
	}
	if _, err := client.Get("https://registry.example/to/https://other.example/"); denialOf(err) == nil || services.KindOf(err) != services.Denied {
		t.Errorf("a denial is not found in %v", err)
	}
}

func TestAFollowingClientGivesUpOnAServerThatStandsStill(t *testing.T) {
	w := newWorld(t, names(map[string][]string{"registry.example": {public}}))
	done := make(chan struct{})
	server := plain(t, func(rw http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/body":
			fmt.Fprint(rw, "mod")
			rw.(http.Flusher).Flush()
			<-done
		case "/head":
			<-done
		case "/body-of-request":
			_, _ = r.Body.Read(make([]byte, 1))
			<-done
		}
	})
	defer close(done) // before the server is closed, which waits for its handlers
	w.wires.plug(public+":80", server.Listener.Addr())
	client := w.FollowingClient(reaching(t, "http://registry.example"), 50*time.Millisecond)
	for _, path := range []string{"/head", "/body", "/body-of-request"} {
		var body io.Reader
		if path == "/body-of-request" {
			body = strings.NewReader(strings.Repeat("module", 10<<20))
		}
		resp, err := client.Post("http://registry.example"+path, "text/plain", body)
		if err == nil {
			_, err = io.ReadAll(resp.Body)
			resp.Body.Close()
		}
		if services.KindOf(err) != services.Timeout || !strings.Contains(err.Error(), "registry.example has not answered or taken anything for 50ms") {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestTheNetworkOfWhatAPersonOrAFileNames(t *testing.T) {
	w := newWorld(t, names(map[string][]string{"r.example": {public}, "cdn.example": {public}, "private.example": {"192.168.0.1"}, "local.example": {"127.0.0.1"}}))
	server := plain(t, func(http.ResponseWriter, *http.Request) {})
	_, port, _ := strings.Cut(server.Listener.Addr().String(), ":")
	w.wires.plug(public+":80", server.Listener.Addr())
	w.wires.plug("192.168.0.1:80", server.Listener.Addr())
	for _, tt := range []struct {
		base, rules, url string
		want             string // in the error
		file             string // in the error if a file names the base; empty: the same
	}{
		{"http://r.example", "", "http://r.example/", "", ""},
		{"http://r.example", "", "http://cdn.example/", "cdn.example", ""},
		{"http://r.example", "http://cdn.example", "http://cdn.example/", "", ""},
		{"http://r.example", "", "http://r.example:81/", "r.example:81", ""},
		{"http://r.example", "not r.example", "http://r.example/", "r.example", ""},
		{"http://" + public, "", "http://" + public + "/", "", ""},
		{"http://localhost:" + port, "", "http://localhost:" + port + "/", "", "loopback"},
		{"http://localhost:" + port, "http://127.0.0.1:" + port, "http://localhost:" + port + "/", "", ""},
		{"http://x.localhost:" + port, "", "http://x.localhost:" + port + "/", "loopback", ""},
		{"http://127.0.0.1:" + port, "", "http://127.0.0.1:" + port + "/", "", "loopback"},
		{"http://127.0.0.1:" + port, "http://127.0.0.1:" + port, "http://127.0.0.1:" + port + "/", "", ""},
		{"http://[::ffff:127.0.0.1]:" + port, "", "http://127.0.0.1:" + port + "/", "loopback", ""},
		{"http://local.example:" + port, "", "http://local.example:" + port + "/", "loopback", ""},
		{"http://private.example", "", "http://private.example/", "private (192.168.0.0/16)", ""},
		{"http://192.168.0.1", "", "http://192.168.0.1/", "", "private (192.168.0.0/16)"},
		{"http://192.168.0.1", "http://192.168.0.1", "http://192.168.0.1/", "", ""},
		{"http://192.168.0.1", "", "http://192.168.0.2/", "192.168.0.2", ""},
	} {
		for _, byPerson := range []bool{true, false} {
			want := tt.want
			if !byPerson {
				want = cmp.Or(tt.file, want)
			}
			var own []network.Rule
			if tt.rules != "" {
				own = rules(t, tt.rules)
			}
			n, err := FetchNetwork(tt.base, own, byPerson)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := w.FollowingClient(n, 0).Get(tt.url)
			if err == nil {
				resp.Body.Close()
			}
			if (err == nil) != (want == "") || err != nil && (denialOf(err) == nil || !strings.Contains(err.Error(), want)) {
				t.Errorf("%s with %q, named by a person: %v, for %s: %v", tt.base, tt.rules, byPerson, tt.url, err)
			}
		}
	}
	if n, err := FetchNetwork("r.example", nil, true); err == nil {
		t.Errorf("no URL: %v", n)
	}
}
