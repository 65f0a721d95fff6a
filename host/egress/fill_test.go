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

	"github.com/stockade-dev/stockade/host/effect"
	"github.com/stockade-dev/stockade/host/policy"
)

// What Fill has put into the headers goes to where it was put for, and nowhere
// that an answer leads to, not even on the same server.
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
		resp, err := w.Fetch(t.Context(), grant, effect.Request{
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

// A request that may not be filled in is not sent, and one whose Authorization
// is the guest's own neither.
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
		req  effect.Request
		kind effect.Kind
	}{
		"refused":                {effect.Request{Fill: refuses}, effect.Denied},
		"nothing to fill in":     {effect.Request{Headers: own, Fill: same}, effect.Invalid},
		"nobody fills anything":  {effect.Request{Headers: own}, effect.Invalid},
		"a blank before it":      {effect.Request{Headers: [][2]string{{"authorization", "  x"}}}, effect.Invalid},
		"an empty Authorization": {effect.Request{Headers: [][2]string{{"authorization", ""}}}, effect.Invalid},
		"behind an empty one":    {effect.Request{Headers: two("", "Bearer mine"), Fill: same}, effect.Invalid},
		"before what is filled":  {effect.Request{Headers: two("Bearer mine", "Bearer PLACEHOLDER"), Fill: fills}, effect.Denied},
		"behind what is filled":  {effect.Request{Headers: two("Bearer PLACEHOLDER", "Bearer mine"), Fill: fills}, effect.Denied},
		"in parts":               {effect.Request{Headers: [][2]string{{"Authorization", "PLACEHOLDER"}, {"range", "bytes=0-9"}}, Fill: fills}, effect.Denied},
		"in parts, perhaps":      {effect.Request{Headers: [][2]string{{"Authorization", "PLACEHOLDER"}, {"If-Range", "x"}}, Fill: fills}, effect.Denied},
		"in parts, as it was":    {effect.Request{Headers: [][2]string{{"Authorization", "PLACEHOLDER"}, {"Request-Range", "bytes=0-9"}}, Fill: fills}, effect.Denied},
		"twice the same":         {effect.Request{Headers: two("Bearer PLACEHOLDER", "Bearer PLACEHOLDER"), Fill: fills}, effect.Denied},
	} {
		c.req.Method, c.req.URL = "GET", "https://a.example/"
		_, err := w.Fetch(t.Context(), grant, c.req)
		if e, ok := errors.AsType[*effect.Error](err); !ok || e.Kind != c.kind {
			t.Errorf("%s: %v", name, err)
		}
	}
	if sent != 0 || len(w.wires.all()) != 0 {
		t.Errorf("%d requests were sent, and %d connections made", sent, len(w.wires.all()))
	}
}
