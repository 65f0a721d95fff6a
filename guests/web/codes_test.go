//go:build !wasip1

package main

import (
	"context"
	"fmt"
	"testing"

	"github.com/stockade-dev/stockade/guests/internal/codetest"
	"github.com/stockade-dev/stockade/sdk/go/http"
)

// TestCodes: a model or a script tells these failures apart without reading them.
func TestCodes(t *testing.T) {
	failed := map[string]error{
		"DENIED": http.ErrDenied, "DNS_FAILED": http.ErrDNS, "CONNECT_FAILED": http.ErrConnect, "TLS_FAILED": http.ErrTLS, "TIMED_OUT": http.ErrTimeout,
		"BAD_RESPONSE": http.ErrProtocol, "TOO_LARGE": &http.TooLargeError{Limit: 1000},
	}
	answering := func(resp *http.Response, err error) fetcher {
		return func(context.Context, http.Request) (*http.Response, error) { return resp, err }
	}
	fetched := func(url string, f fetcher) func() error {
		return func() error {
			_, err := fetch(t.Context(), args(func(a *fetchArgs) { a.URL, a.Method = url, "POST" }), f)
			return err
		}
	}
	searched := func(a asking) func() error {
		return func() error { _, _, err := a.search(t); return err }
	}
	var cases []codetest.Case
	for code, err := range failed {
		err = fmt.Errorf("%w: why", err)
		f := answering(nil, err)
		cases = append(cases, codetest.Case{Name: err.Error(), Tool: "http_fetch", Code: code, Call: fetched("a.example", f)}, codetest.Case{Name: err.Error(), Tool: "web_search", Code: code, Call: func() error {
			_, err := search(t.Context(), searchArgs{Query: "q"}, hostServices{
				config: func(name string) (string, bool) {
					v, ok := map[string]string{configEngine: "duckduckgo", configURL: "https://a.example"}[name]
					return v, ok
				}, fetch: f,
			})
			return err
		}})
	}
	cases = append(cases,
		codetest.Case{Name: "a file", Tool: "http_fetch", Code: "INVALID_URL", Call: fetched("file:///etc/passwd", nil)},
		codetest.Case{Name: "what the host takes for none", Tool: "http_fetch", Code: "INVALID_URL", Call: fetched("a.example", answering(nil, http.ErrInvalid))},
		codetest.Case{Name: "no text", Tool: "http_fetch", Code: "UNSUPPORTED_TYPE", Call: fetched("a.example", answering(&http.Response{Status: 200, Body: []byte("\x00")}, nil))},
	)
	for code, asks := range map[string][]asking{
		"MISSING_CREDENTIALS": {{engine: "brave", query: "q", noKey: true}, {engine: "google", query: "q"}},
		"INVALID_CREDENTIALS": {{engine: "brave", query: "q", status: 401}},
		"RATE_LIMITED":        {{engine: "brave", query: "q", status: 429}},
		"BLOCKED":             {{engine: "duckduckgo", query: "q", status: 202}},
		"SEARCH_FAILED":       {{engine: "duckduckgo", query: "q", status: 500}},
		"BAD_RESPONSE":        {{engine: "duckduckgo", query: "q", status: 200}, {engine: "brave", query: "q", status: 200}, {engine: "google", cx: "id", query: "q", status: 200}},
		"TOOL_FAILED":         {{engine: "x", query: "q"}},
	} {
		for _, ask := range asks {
			cases = append(cases, codetest.Case{Name: ask.engine, Tool: "web_search", Code: code, Call: searched(ask)})
		}
	}
	codetest.Run(t, cases)
}
