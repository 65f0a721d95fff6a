//go:build !wasip1

package main

import (
	"context"
	"fmt"
	"io"
	nethttp "net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stockade-dev/stockade/sdk/go/http"
	"github.com/stockade-dev/stockade/sdk/go/secrets"
	"github.com/stockade-dev/stockade/sdk/go/tool"
)

// Answers of the engines, in the form that each documents or sends.
const (
	duckPage = `<!DOCTYPE html><html><body><div class="serp__results"><div id="links" class="results">
<div class="result results_links results_links_deep result--ad "><div class="links_main links_deep result__body"><h2 class="result__title">
 <a rel="nofollow" class="result__a" href="https://duckduckgo.com/y.js?ad_domain=shop.example&amp;u3=x">Buy now</a></h2>
 <a class="result__snippet" href="https://duckduckgo.com/y.js?x">Cheap</a></div></div>
<div class="result results_links results_links_deep web-result "><div class="links_main links_deep result__body"><h2 class="result__title">
 <a rel="nofollow" class="result__a" href="//duckduckgo.com/l/?uddg=https%3A%2F%2Fone.example%2Fa%3Fb%3D1%26c%3D2&amp;rut=0f">First &amp; <b>foremost</b></a></h2>
 <a class="result__url" href="//duckduckgo.com/l/?uddg=https%3A%2F%2Fone.example">one.example</a>
 <a class="result__snippet" href="//duckduckgo.com/l/?uddg=x">About   <b>this</b>
 and that</a></div></div>
<div class="result results_links results_links_deep web-result "><h2 class="result__title"><a class="result__a" href="https://two.example/">Second</a></h2><div class="result__snippet">Two</div></div>
<div class="result web-result"><h2><a class="result__a" href="javascript:x()">Bad</a></h2></div>
<div class="result web-result"><h2><a class="result__a" href="javascript://a.example/%0ax()">Bad</a></h2></div>
<div class="result web-result"><h2><a class="result__a" href="ftp://a.example/">Bad</a></h2></div>
<div class="result web-result"><h2><a class="result__a" href="https://three.example/">Third</a></h2></div>
</div></div></body></html>`
	duckNone    = `<html><body><div class="results"><div class="result result--no-result"><div class="no-results">No results.</div></div></div></body></html>`
	duckBlocked = `<html><body><form id="challenge-form" action="//duckduckgo.com/anomaly.js"><div class="anomaly-modal__title">Unfortunately, bots use DuckDuckGo too.</div></form></body></html>`
	bravePage   = `{"type":"search","query":{"original":"q"},"web":{"type":"search","results":[
{"title":"First &amp; <strong>foremost</strong>","url":"https://one.example/a?b=1&c=2","description":"About <strong>this</strong> and that","language":"en"},
{"title":"Second","url":"https://two.example/","description":"Two"},{"title":"Bad","url":"javascript:x()","description":""},{"title":"Third","url":"https://three.example/","description":""}]}}`
	googlePage = `{"kind":"customsearch#search","items":[{"kind":"customsearch#result","title":"First & foremost","link":"https://one.example/a?b=1&c=2","snippet":"About this\nand that"},
{"title":"Second","link":"https://two.example/","snippet":"Two"},{"title":"Bad","link":"javascript:x()"},{"title":"Third","link":"https://three.example/","snippet":""}]}`
	threeFound = "1. First & foremost\n   https://one.example/a?b=1&c=2\n   About this and that\n\n2. Second\n   https://two.example/\n   Two\n\n3. Third\n   https://three.example/\n   \n"
)

// asking is a search of an engine at a server.
type asking struct {
	engine, cx string
	query      string
	n          int
	noKey      bool
	status     int
	answer     string
	retryAfter string
}

func (a asking) search(t *testing.T) (got searchResult, saw string, err error) {
	t.Helper()
	server := httptest.NewServer(nethttp.HandlerFunc(func(w nethttp.ResponseWriter, r *nethttp.Request) {
		saw = fmt.Sprintf("%s?%s token=%s key=%s", r.URL.Path, r.URL.Query().Encode(), r.Header.Get("X-Subscription-Token"), r.Header.Get("X-Goog-Api-Key"))
		if a.retryAfter != "" {
			w.Header().Set("Retry-After", a.retryAfter)
		}
		w.WriteHeader(a.status)
		_, _ = io.WriteString(w, a.answer)
	}))
	defer server.Close()
	values := map[string]string{configEngine: a.engine, configURL: server.URL + "/at", configCX: a.cx}
	got, err = search(t.Context(), searchArgs{Query: a.query, NumResults: a.n}, hostServices{
		config: func(name string) (string, bool) { v, ok := values[name]; return v, ok },
		secret: func(name string) (string, error) {
			if a.noKey {
				return "", fmt.Errorf("%w: %q", secrets.ErrMissing, name)
			}
			return "placeholder-of-" + name, nil
		},
		fetch: direct,
	})
	if err != nil {
		err = errorOf(err, server.URL)
	}
	return got, saw, err
}

// errorOf takes what differs from run to run out of an error.
func errorOf(err error, url string) error {
	text := strings.ReplaceAll(err.Error(), strings.TrimPrefix(url, "http://"), "HOST")
	return tool.Coded(tool.CodeOf(err), fmt.Errorf("%v: %s", tool.AsError(err).Code, text))
}

func TestSearch(t *testing.T) {
	for name, c := range map[string]struct {
		ask  asking
		saw  string
		want string
	}{
		"DuckDuckGo":            {asking{engine: "duckduckgo", query: " two\n words ", n: 5, status: 200, answer: duckPage}, "/at?q=two+words token= key=", threeFound},
		"Brave":                 {asking{engine: "brave", query: "q&a", n: 5, status: 200, answer: bravePage}, "/at?count=5&q=q%26a&text_decorations=false token=placeholder-of-brave_search key=", threeFound},
		"Google":                {asking{engine: "google", cx: "id", query: "ü", n: 5, status: 200, answer: googlePage}, "/at?cx=id&num=5&q=%C3%BC token= key=placeholder-of-google_search", threeFound},
		"one result":            {asking{engine: "brave", query: "q", n: 1, status: 200, answer: bravePage}, "", threeFound[:strings.Index(threeFound, "\n\n")+1]},
		"DuckDuckGo has none":   {asking{engine: "duckduckgo", query: "q", n: 5, status: 200, answer: duckNone}, "", "DuckDuckGo has no results for this. Try other words, or fewer."},
		"Brave has none":        {asking{engine: "brave", query: "q", n: 5, status: 200, answer: `{"type":"search"}`}, "", "Brave has no results for this. Try other words, or fewer."},
		"as long as it may be":  {asking{engine: "google", cx: "id", query: strings.Repeat("ü", 400), n: 5, status: 200, answer: `{}`}, "", "Google has no results for this. Try other words, or fewer."},
		"a title for the model": {asking{engine: "google", cx: "id", query: "q", n: 5, status: 200, answer: `{"items":[{"title":"a\u202e\n\u001b[31mb` + strings.Repeat("x", 400) + `","link":"https://a.example"}]}`}, "", "1. a [31mb" + strings.Repeat("x", 290)},
	} {
		got, saw, err := c.ask.search(t)
		if err != nil || !strings.HasPrefix(got.Output, c.want) || c.want == threeFound && (got.Output != c.want || len(got.Results) != 3) || c.saw != "" && saw != c.saw {
			t.Errorf("%s: %v\n%s\nthe server saw %s", name, err, got.Output, saw)
		}
		if got.Engine != c.ask.engine || got.Results == nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestSearchesThatFail(t *testing.T) {
	for name, c := range map[string]struct {
		ask        asking
		code, says string
	}{
		"nothing":  {asking{engine: "duckduckgo", query: " \n"}, "", "invalid-input: query is empty"},
		"too long": {asking{engine: "duckduckgo", query: strings.Repeat("ü", 401)}, "", "query has 401 characters; at most 400"},
		"no key for Brave": {asking{engine: "brave", query: "q", noKey: true}, "MISSING_CREDENTIALS", "get a key at https://api-dashboard.search.brave.com; " +
			"2. keep it: `stockade secret set brave_search --host HOST --header X-Subscription-Token`; 3. see that network.allow in agent.toml, or --allow-net, has \"HOST\""},
		"no key for Google": {asking{engine: "google", cx: "id", query: "q", noKey: true}, "MISSING_CREDENTIALS", "`stockade secret set google_search --host HOST --header X-Goog-Api-Key`"},
		"no ID for Google":  {asking{engine: "google", query: "q"}, "MISSING_CREDENTIALS", "asks Google, and no search engine of the person's is set. Tell the person: 1. make a search engine at https://programmablesearchengine.google.com; 2. set google_cx below [web] in agent.toml to its ID. Without a key"},
		"neither of them": {asking{engine: "google", query: "q", noKey: true}, "MISSING_CREDENTIALS", "asks Google, and no search engine of the person's is set, and no key for that is kept. Tell the person: 1. make a search engine at https://programmablesearchengine.google.com; " +
			"2. set google_cx below [web] in agent.toml to its ID; 3. get a key at https://developers.google.com/custom-search/v1/introduction; 4. keep it: `stockade secret set google_search --host HOST --header X-Goog-Api-Key`; 5. see that network.allow"},
		"a wrong key, Brave":    {asking{engine: "brave", query: "q", status: 422, answer: `{"error":{"code":"SUBSCRIPTION_TOKEN_INVALID","detail":"The token is invalid","status":422}}`}, "INVALID_CREDENTIALS", "(status 422: SUBSCRIPTION_TOKEN_INVALID: The token is invalid). Tell the person"},
		"a wrong key":           {asking{engine: "brave", query: "q", status: 401}, "INVALID_CREDENTIALS", "denied: Brave refuses the key that is kept as brave_search (status 401)"},
		"a wrong key, Google":   {asking{engine: "google", cx: "id", query: "q", status: 400, answer: `{"error":{"code":400,"message":"API key not valid. Please pass a valid API key."}}`}, "INVALID_CREDENTIALS", "API key not valid"},
		"a key without a right": {asking{engine: "google", cx: "id", query: "q", status: 403}, "INVALID_CREDENTIALS", "status 403"},
		"too many":              {asking{engine: "brave", query: "q", status: 429, retryAfter: "7"}, "RATE_LIMITED", "wait 7 seconds"},
		"too many, of a date":   {asking{engine: "brave", query: "q", status: 429, retryAfter: "Wed, 21 Oct 2026 07:28:00 GMT"}, "RATE_LIMITED", "wait a minute"},
		"a robot":               {asking{engine: "duckduckgo", query: "q", status: 200, answer: duckBlocked}, "BLOCKED", "takes the program for a robot"},
		"a robot, by status":    {asking{engine: "duckduckgo", query: "q", status: 202, answer: "<html>"}, "BLOCKED", "robot"},
		"another query":         {asking{engine: "google", cx: "id", query: "q", status: 400, answer: `{"error":{"message":"bad cx"}}`}, "SEARCH_FAILED", "unavailable: Google answered with status 400: bad cx"},
		"a broken server":       {asking{engine: "duckduckgo", query: "q", status: 500}, "SEARCH_FAILED", "status 500; try other words, or later"},
		"a page that is new":    {asking{engine: "duckduckgo", query: "q", status: 200, answer: "<html><p>Welcome"}, "BAD_RESPONSE", "parse: what DuckDuckGo answered is no page of results; perhaps it looks different now: try again later"},
		"no JSON":               {asking{engine: "brave", query: "q", status: 200, answer: "<html>"}, "BAD_RESPONSE", "parse: what Brave answered is no list of results"},
		"an unknown engine":     {asking{engine: "x", query: "q"}, "", `there is no engine "x"`},
	} {
		got, _, err := c.ask.search(t)
		if err == nil || tool.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %q, %v (%s)", name, got.Output, err, tool.CodeOf(err))
		}
	}
	ask := hostServices{
		config: func(name string) (string, bool) {
			return map[string]string{configEngine: "brave", configURL: "https://a.example/"}[name], true
		},
		secret: func(string) (string, error) { return "", fmt.Errorf("%w: bound elsewhere", secrets.ErrDenied) },
		fetch:  func(_ context.Context, _ http.Request) (*http.Response, error) { panic("asked") },
	}
	if _, err := search(t.Context(), searchArgs{Query: "q"}, ask); err == nil || tool.AsError(err).Code != tool.CodeDenied || !strings.Contains(err.Error(), "bound elsewhere") {
		t.Errorf("a key that is refused: %v", err)
	}
}

func FuzzResults(f *testing.F) {
	for _, page := range []string{duckPage, duckNone, duckBlocked, bravePage, googlePage} {
		f.Add([]byte(page))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, e := range engines {
			_, _ = e.read(body)
			_ = apiError(body)
		}
		_ = isBlocked(body)
	})
}
