package foreign

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/services"
)

// Server answers the requests of plugins.
var Server http.HandlerFunc = func(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Test", "1")
	w.Header()["Date"] = nil // it would differ in every answer
	if r.URL.Path == "/missing" {
		w.WriteHeader(http.StatusNotFound)
	}
	body, _ := io.ReadAll(r.Body)
	fmt.Fprintf(w, "%s %s %s %s", r.Method, r.URL.Path, r.Header.Get("some-name"), body)
}

// redirector sends all requests to a server on this machine, whatever their host.
type redirector string

// RoundTrip implements [http.RoundTripper].
func (s redirector) RoundTrip(r *http.Request) (*http.Response, error) {
	to, err := url.Parse(string(s))
	if err != nil {
		return nil, err
	}
	r = r.Clone(r.Context())
	r.URL.Scheme, r.URL.Host = to.Scheme, to.Host
	return http.DefaultTransport.RoundTrip(r)
}

// Fetch implements [services.HTTP] for a sandbox. The host function has already checked
// that the call may reach the host of the request.
func (s redirector) Fetch(ctx context.Context, _ policy.Grant, req services.Request) (*services.Response, error) {
	r, err := http.NewRequestWithContext(ctx, req.Method, req.URL, strings.NewReader(string(req.Body)))
	if err != nil {
		return nil, err
	}
	for _, h := range req.Headers {
		r.Header.Add(h[0], h[1])
	}
	resp, err := s.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	out := &services.Response{Status: resp.StatusCode, URL: req.URL}
	for name, values := range resp.Header {
		for _, v := range values {
			out.Headers = append(out.Headers, [2]string{strings.ToLower(name), v})
		}
	}
	out.Body, err = io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	return out, err
}
