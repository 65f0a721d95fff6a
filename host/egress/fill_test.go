package egress

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/services"
)

// A filled-in secret goes to the server that it is for, and not to the target of a
// redirect, even on the same server.
func TestWhatIsFilledInIsNotRedirected(t *testing.T) {
	const value = "the-value"
	fill := func(u *url.URL, headers map[string][]string, body []byte) (map[string][]string, error) {
		out := maps.Clone(headers)
		for name, values := range out {
			out[name] = slices.Clone(values)
			for i, v := range values {
				out[name][i] = strings.ReplaceAll(v, "PLACEHOLDER", value)
			}
		}
		return out, nil
	}
	w := newWorld(t, names(map[string][]string{"a.example": {public}, "b.example": {"93.184.216.35"}}))
	var seen []string
	handler := func(rw http.ResponseWriter, r *http.Request) {
		seen = append(seen, fmt.Sprint(r.Host, r.URL.Path, " ", r.Header.Get("Authorization"), " ", r.Header.Get("X-Key"), " ", r.Header.Get("X-Own")))
		if to := r.URL.Query().Get("to"); to != "" {
			rw.Header().Set("Location", to)
			rw.WriteHeader(http.StatusTemporaryRedirect)
		}
	}
	w.wires.plug(public+":443", secure(t, handler, "a.example").Listener.Addr())
	w.wires.plug("93.184.216.35:443", secure(t, handler, "b.example").Listener.Addr())
	grant := granted(t, policy.Limits{}, "a.example", "b.example")
	for _, to := range []string{"", "/same", "https://b.example/other"} {
		seen = nil
		resp, err := w.Fetch(t.Context(), grant, services.Request{
			Method: "GET", URL: "https://a.example/first?to=" + url.QueryEscape(to), Fill: fill,
			Headers: [][2]string{{"Authorization", "Bearer PLACEHOLDER"}, {"X-Key", "PLACEHOLDER"}, {"X-Own", "mine"}},
		})
		if err != nil || resp.Status != http.StatusOK {
			t.Fatalf("to %q: %+v, %v", to, resp, err)
		}
		want := []string{"a.example/first Bearer the-value the-value mine"}
		switch to {
		case "/same":
			want = append(want, "a.example/same   mine")
		case "https://b.example/other":
			want = append(want, "b.example/other   ")
		}
		if !slices.Equal(seen, want) {
			t.Errorf("to %q: the servers saw %q, want %q", to, seen, want)
		}
	}
}

// A request whose secret may not be filled in is not sent, and neither is one with an
// Authorization of the guest's own.
func TestWhatIsNotFilledInIsNotSent(t *testing.T) {
	w := newWorld(t, names(map[string][]string{"a.example": {public}}))
	sent := 0
	w.wires.plug(public+":443", secure(t, func(http.ResponseWriter, *http.Request) { sent++ }, "a.example").Listener.Addr())
	grant := granted(t, policy.Limits{}, "a.example")
	own := [][2]string{{"Authorization", "Bearer mine"}}
	same := func(_ *url.URL, h map[string][]string, _ []byte) (map[string][]string, error) { return h, nil }
	refuses := func(*url.URL, map[string][]string, []byte) (map[string][]string, error) {
		return nil, errors.New("misplaced")
	}
	fills := func(_ *url.URL, h map[string][]string, _ []byte) (map[string][]string, error) {
		h = maps.Clone(h)
		for name, values := range h {
			h[name] = strings.Split(strings.ReplaceAll(strings.Join(values, "\n"), "PLACEHOLDER", "the-value"), "\n")
		}
		return h, nil
	}
	two := func(first, second string) [][2]string {
		return [][2]string{{"Authorization", first}, {"authorization", second}}
	}
	for name, c := range map[string]struct {
		req  services.Request
		kind services.Kind
	}{
		"refused":                {services.Request{Fill: refuses}, services.Denied},
		"nothing to fill in":     {services.Request{Headers: own, Fill: same}, services.Invalid},
		"nobody fills anything":  {services.Request{Headers: own}, services.Invalid},
		"a blank before it":      {services.Request{Headers: [][2]string{{"authorization", "  x"}}}, services.Invalid},
		"an empty Authorization": {services.Request{Headers: [][2]string{{"authorization", ""}}}, services.Invalid},
		"behind an empty one":    {services.Request{Headers: two("", "Bearer mine"), Fill: same}, services.Invalid},
		"before what is filled":  {services.Request{Headers: two("Bearer mine", "Bearer PLACEHOLDER"), Fill: fills}, services.Denied},
		"behind what is filled":  {services.Request{Headers: two("Bearer PLACEHOLDER", "Bearer mine"), Fill: fills}, services.Denied},
		"in parts":               {services.Request{Headers: [][2]string{{"Authorization", "PLACEHOLDER"}, {"range", "bytes=0-9"}}, Fill: fills}, services.Denied},
		"in parts, perhaps":      {services.Request{Headers: [][2]string{{"Authorization", "PLACEHOLDER"}, {"If-Range", "x"}}, Fill: fills}, services.Denied},
		"in parts, as it was":    {services.Request{Headers: [][2]string{{"Authorization", "PLACEHOLDER"}, {"Request-Range", "bytes=0-9"}}, Fill: fills}, services.Denied},
		"twice the same":         {services.Request{Headers: two("Bearer PLACEHOLDER", "Bearer PLACEHOLDER"), Fill: fills}, services.Denied},
	} {
		c.req.Method, c.req.URL = "GET", "https://a.example/"
		_, err := w.Fetch(t.Context(), grant, c.req)
		if e, ok := errors.AsType[*services.Error](err); !ok || e.Kind != c.kind {
			t.Errorf("%s: %v", name, err)
		}
	}
	if sent != 0 || len(w.wires.all()) != 0 {
		t.Errorf("%d requests were sent, and %d connections made", sent, len(w.wires.all()))
	}
}
