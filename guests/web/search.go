package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/stockade-dev/stockade/sdk/go/config"
	"github.com/stockade-dev/stockade/sdk/go/http"
	"github.com/stockade-dev/stockade/sdk/go/secrets"
	"github.com/stockade-dev/stockade/sdk/go/tool"
)

// Limits of a search.
const (
	maxQuery   = 400     // characters of a query; a longer one is refused
	maxResults = 10      // results; further ones are left out
	maxAnswer  = 2 << 20 // bytes of an engine's answer; the rest is not read
	maxHeading = 300     // characters of a result's title; the rest is cut
	maxSnippet = 500     // characters of a result's snippet; the rest is cut
	maxAddress = 2000    // bytes of a result's URL; a result with a longer one is left out
)

type searchArgs struct {
	Query      string `json:"query" desc:"What to look for, at most 400 characters."`
	NumResults int    `json:"num_results,omitempty" desc:"How many results." min:"1" max:"10" default:"5"`
}

type searchResult struct {
	Output  string   `json:"output"`
	Engine  string   `json:"engine"`
	Results []result `json:"results"`
}

type result struct {
	Title   string `json:"title"`
	URL     string `json:"url"`
	Snippet string `json:"snippet"`
}

type engine struct {
	name   string // for people
	secret string // the name of the secret that holds its key; "": it needs no key
	header string // the header for the key
	keyURL string // the page where a person gets a key
	params func(query string, n int, cx string) url.Values
	read   func(body []byte) ([]result, error)
}

// withoutKey is advice for a person who has no key for an engine.
const withoutKey = `Without a key there is search = "duckduckgo" below [web] in agent.toml`

// Names of settings that the host gives to the module.
const (
	configEngine = "search"
	configURL    = "search_url" // the engine's URL
	configCX     = "google_cx"
)

var engines = map[string]engine{
	"duckduckgo": {
		name:   "DuckDuckGo",
		params: func(query string, _ int, _ string) url.Values { return url.Values{"q": {query}} },
		read:   readDuckDuckGo,
	},
	"brave": {
		name:   "Brave",
		secret: "brave_search", header: "X-Subscription-Token", keyURL: "https://api-dashboard.search.brave.com",
		params: func(query string, n int, _ string) url.Values {
			return url.Values{"q": {query}, "count": {strconv.Itoa(n)}, "text_decorations": {"false"}}
		},
		read: readBrave,
	},
	"google": {
		name:   "Google",
		secret: "google_search", header: "X-Goog-Api-Key", keyURL: "https://developers.google.com/custom-search/v1/introduction",
		params: func(query string, n int, cx string) url.Values {
			return url.Values{"q": {query}, "num": {strconv.Itoa(n)}, "cx": {cx}}
		},
		read: readGoogle,
	},
}

// hostServices holds the functions of the host that a search needs; tests have substitutes.
type hostServices struct {
	config func(name string) (string, bool)
	secret func(name string) (string, error)
	fetch  fetcher
}

func webSearch(ctx context.Context, in searchArgs) (searchResult, error) {
	return search(ctx, in, hostServices{config.Get, secrets.Placeholder, http.Fetch})
}

func search(ctx context.Context, in searchArgs, s hostServices) (searchResult, error) {
	query := strings.Join(strings.Fields(in.Query), " ")
	switch n := utf8.RuneCountInString(query); {
	case n == 0:
		return searchResult{}, tool.InvalidInput("query is empty")
	case n > maxQuery:
		return searchResult{}, tool.InvalidInput("query has %d characters; at most %d are sent: leave out what matters least", n, maxQuery)
	}
	name, _ := s.config(configEngine)
	e, ok := engines[name]
	if !ok {
		return searchResult{}, tool.Failed("there is no engine %q; the person can set search below [web] in agent.toml", name)
	}
	base, _ := s.config(configURL)
	u, err := url.Parse(base)
	if err != nil || u.Host == "" {
		return searchResult{}, e.noURL(err)
	}
	cx, _ := s.config(configCX)
	var lacks, steps []string // all missing things at once, so that the next call does not fail for another
	if name == "google" && cx == "" {
		lacks = []string{"search engine of the person's is set"}
		steps = []string{"make a search engine at https://programmablesearchengine.google.com", "set google_cx below [web] in agent.toml to its ID"}
	}
	req := http.Request{
		URL: base + "?" + e.params(query, in.NumResults, cx).Encode(), MaxBytes: maxAnswer, Timeout: timeLeft(ctx),
		Headers: []http.Header{{Name: "accept", Value: "application/json, text/html"}},
	}
	if e.secret != "" {
		placeholder, err := s.secret(e.secret)
		switch {
		case errors.Is(err, secrets.ErrMissing):
			lacks = append(lacks, "key for that is kept")
			steps = append(steps, "get a key at "+e.keyURL, "keep it: `"+e.secretCommand(u)+"`", fmt.Sprintf("see that network.allow in agent.toml, or --allow-net, has %q", u.Host))
		case err != nil:
			return searchResult{}, tool.Denied("the key for %s: %w", e.name, err)
		}
		req.Headers = append(req.Headers, http.Header{Name: e.header, Value: placeholder})
	}
	if lacks != nil {
		for i := range steps {
			steps[i] = fmt.Sprintf("%d. %s", i+1, steps[i])
		}
		return searchResult{}, tool.Coded("MISSING_CREDENTIALS", tool.Denied("web_search asks %s, and no %s. Tell the person: %s. %s",
			e.name, strings.Join(lacks, ", and no "), strings.Join(steps, "; "), withoutKey))
	}
	resp, err := s.fetch(ctx, req)
	if errors.Is(err, http.ErrInvalid) {
		return searchResult{}, e.noURL(err)
	} else if err != nil {
		return searchResult{}, failure(err)
	}
	if err := e.checkResponse(resp, u); err != nil {
		return searchResult{}, err
	}
	results, err := e.read(resp.Body)
	if err != nil {
		return searchResult{}, err
	}
	out := searchResult{Engine: name, Results: []result{}}
	var b strings.Builder
	for _, r := range results {
		r.Title, r.Snippet = short(r.Title, maxHeading), short(r.Snippet, maxSnippet)
		if u, err := url.Parse(r.URL); err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || len(r.URL) > maxAddress {
			continue
		}
		if out.Results = append(out.Results, r); len(out.Results) > 1 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "%d. %s\n   %s\n   %s\n", len(out.Results), r.Title, r.URL, r.Snippet)
		if len(out.Results) == min(max(in.NumResults, 1), maxResults) {
			break
		}
	}
	out.Output = b.String()
	if len(out.Results) == 0 {
		out.Output = e.name + " has no results for this. Try other words, or fewer."
	}
	return out, nil
}

func (e engine) noURL(err error) error {
	return tool.Failed("the URL of %s is not valid (%v); the person can look at [web] in agent.toml", e.name, err)
}

// secretCommand returns the command with which a person stores the key of the engine.
func (e engine) secretCommand(u *url.URL) string {
	return fmt.Sprintf("stockade secret set %s --host %s --header %s", e.secret, u.Host, e.header)
}

// checkResponse returns an error if an engine refuses the search, by the status of its
// response or by a page that asks for proof of a person.
func (e engine) checkResponse(resp *http.Response, u *url.URL) error {
	message := ""
	if resp.Status != 200 {
		message = apiError(resp.Body)
	}
	badKey := e.secret != "" && (resp.Status == 401 || resp.Status == 403 || resp.Status == 422 && strings.Contains(message, "SUBSCRIPTION_TOKEN") ||
		resp.Status == 400 && strings.Contains(strings.ToLower(message), "api key"))
	switch {
	case badKey:
		return tool.Coded("INVALID_CREDENTIALS", tool.Denied("%s refuses the key that is kept as %s (status %d%s). Tell the person: look at the key at %s, and keep the right one: `%s`",
			e.name, e.secret, resp.Status, message, e.keyURL, e.secretCommand(u)))
	case resp.Status == 429:
		wait := "a minute"
		if n, err := strconv.Atoi(header(resp, "retry-after")); err == nil && n >= 0 {
			wait = fmt.Sprintf("%d seconds", n)
		}
		return tool.Coded("RATE_LIMITED", tool.Unavailable("%s has had too many searches; wait %s", e.name, wait))
	case e.secret == "" && (resp.Status == 202 || resp.Status == 403 || isBlocked(resp.Body)):
		return tool.Coded("BLOCKED", tool.Unavailable("%s takes the program for a robot and answers no searches for now. Wait some minutes; the person can set another engine in [web] of agent.toml", e.name))
	case resp.Status != 200:
		return tool.Coded("SEARCH_FAILED", tool.Unavailable("%s answered with status %d%s; try other words, or later", e.name, resp.Status, message))
	}
	return nil
}

// short returns a text from a server on one line, cut to at most limit characters.
func short(text string, limit int) string {
	text = strings.Join(strings.Fields(clean(strings.ToValidUTF8(text, "\uFFFD"))), " ")
	if utf8.RuneCountInString(text) <= limit {
		return text
	}
	return strings.TrimSpace(string([]rune(text)[:limit-1])) + "…"
}
