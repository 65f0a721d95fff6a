// Package provider is what the providers of models share: the options of a client, one
// HTTP exchange with its bounds, and failures as errors that say what to do.
//
// A provider makes a [Client], pieces the body of its request together of what it has
// kept ([Pieces]), sends it in an [Exchange], and reads the answer from that. Everything
// that a server sends is hostile: an exchange has a time-out on silence, a bound on
// the bytes of a line and of the stream, and no redirects, and no error of it holds
// the key.
package provider

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/stockade-dev/stockade/host/llm"
)

const (
	maxModelsBytes = 4 << 20
	maxModels      = 10_000
)

// Options says which server and which model. The zero value of each field is
// its default, which each provider has for the first four.
type Options struct {
	Name      string // of the provider, in errors
	BaseURL   string
	KeySource string // where the key is from, for hints: "OPENAI_API_KEY", "the secret work"
	APIKey    string // empty: none is sent, which local servers accept
	Model     string // when a request names none
	// StripSuffixes are paths of requests, the longest first. People copy them, and [Options.WithDefaults] removes
	// them from the base URL.
	StripSuffixes []string
	Query         string // the query of the base URL, such as api-version=1, for each request
	// ReasoningEffort is how much the model thinks: "low", "medium" or "high". Empty: as much as
	// the provider does unasked.
	ReasoningEffort string
	// ContextTokens is how many tokens the context of the model holds; 0: not said.
	ContextTokens int

	// StallTimeout is how long the server may be silent: before its answer
	// begins and between two bytes of it. Any byte counts as life. 60s.
	StallTimeout time.Duration
	// MaxStreamBytes bounds the answer, after decompression. 64 MiB.
	MaxStreamBytes int64
	// HTTPClient gives the transport; without one nothing is sent, because whom
	// a program talks to is not this package's to decide. Nothing else of it is
	// used: a Timeout would cut long answers, and redirects are always refused.
	HTTPClient *http.Client
}

// WithDefaults fills empty options from others. It removes the query and the path of a request from the
// base URL.
func (o Options) WithDefaults(other Options) Options {
	o.Name = cmp.Or(o.Name, other.Name)
	o.BaseURL, _, _ = strings.Cut(cmp.Or(o.BaseURL, other.BaseURL), "#") // a fragment is not sent
	o.BaseURL, o.Query, _ = strings.Cut(o.BaseURL, "?")
	o.BaseURL = strings.TrimRight(o.BaseURL, "/")
	for _, ending := range other.StripSuffixes {
		o.BaseURL = strings.TrimRight(strings.TrimSuffix(o.BaseURL, ending), "/")
	}
	o.KeySource = cmp.Or(o.KeySource, other.KeySource)
	o.Model = cmp.Or(o.Model, other.Model)
	o.StallTimeout = cmp.Or(o.StallTimeout, other.StallTimeout, 60*time.Second)
	o.MaxStreamBytes = cmp.Or(o.MaxStreamBytes, other.MaxStreamBytes, 64<<20)
	return o
}

// String hides the key.
func (o Options) String() string {
	key := "no key"
	if o.APIKey != "" {
		key = "a key"
	}
	return fmt.Sprintf("%s at %s with %s", o.Name, o.BaseURL, key)
}

// GoString hides the key.
func (o Options) GoString() string { return o.String() }

// Client makes exchanges with one server. It is safe for concurrent use, and its fields
// are fixed at creation.
type Client struct {
	Options
	// BaseURLHint says, for hints, what a base URL of the provider looks like.
	BaseURLHint string
	// RefineError mends an error for a provider that says more than the status: with what it
	// said, in full. Nil: nothing is mended.
	RefineError func(e *llm.ProviderError, said ErrorDetail, body []byte)
	// RateLimitWait is how long the headers say that a limit holds, of a provider that has headers
	// for it; 0 if they do not. It is asked where there is no Retry-After. Nil: nothing is.
	RateLimitWait func(header http.Header, now time.Time) time.Duration
}

// ModelOf is the model that a request asks.
func (c *Client) ModelOf(req llm.Request) string { return cmp.Or(req.Model, c.Model) }

// Check refuses options that cannot work, before anything is sent.
func (c *Client) Check() error {
	if c.HTTPClient == nil || c.HTTPClient.Transport == nil {
		return c.InvalidRequest("there is no way to the network", "")
	}
	base, err := url.Parse(c.BaseURL)
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
		// The text of the URL stays out: it may hold a password.
		return c.InvalidRequest("the base URL is not an http or https URL with a host", "check the base URL; `stockade config` shows where it comes from")
	}
	for ending, name := range map[string]string{"/chat/completions": "openai", "/responses": "openai-responses", "/messages": "anthropic", "/api/chat": "ollama"} {
		if address, found := strings.CutSuffix(c.BaseURL, ending); found { // Or has removed its own
			return c.InvalidRequest("the base URL ends in "+ending+", which is of another interface", "ask it with --provider "+name+", or write "+address+" as the base URL")
		}
	}
	if strings.ContainsFunc(c.APIKey, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return c.InvalidRequest("the API key holds a space or a character that is not ASCII", c.KeyHint())
	}
	return nil
}

// Stream is what a provider's Stream returns: the deltas that ask yields, and its error.
// Ask returns nil when the answer is complete or yield returned false. A request that
// names no model, or whose options cannot work, is not asked.
func (c *Client) Stream(ctx context.Context, req llm.Request, ask func(yield func(llm.Delta) bool) error) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		stopped := false
		err := c.Check()
		if err == nil && c.ModelOf(req) == "" {
			err = c.InvalidRequest("no model is named", "name one with --model, or as model.name in agent.toml")
		}
		if err == nil {
			answer := llm.Assembler{}
			err = ask(func(d llm.Delta) bool {
				_ = answer.Add(d) // the reader of the deltas reports the same error
				stopped = !yield(d, nil)
				return !stopped
			})
			if end, ok := errors.AsType[*markedEnd](err); ok {
				if err = end.incomplete; answer.InferFinish() != "" && !stopped {
					yield(llm.Delta{Finish: answer.InferFinish()}, nil)
					return
				}
			}
		}
		if stopped || err == nil {
			return
		}
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		yield(llm.Delta{}, err)
	}
}

// Bearer returns a header with the key as most servers want it.
func (o Options) Bearer() http.Header { return o.KeyHeader("Authorization", "Bearer ") }

// KeyHeader returns a header with the key under a name, after a prefix.
func (o Options) KeyHeader(name, prefix string) http.Header {
	h := http.Header{}
	if o.APIKey != "" {
		h.Set(name, prefix+o.APIKey)
	}
	return h
}

// Get makes one request that is no part of a conversation, such as one for the list of
// models, and returns at most so many bytes of the answer. A server that has no such page answers
// nil. It is not tried again; ctx bounds the time that it takes, and the stall time-out that of
// each silence.
func (c *Client) Get(ctx context.Context, path string, header http.Header, most int64) ([]byte, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	x, done := c.Begin(ctx)
	defer done()
	req, err := x.request(http.MethodGet, path, header)
	if err != nil {
		return nil, x.Explain(err)
	}
	x.stallTimer.arm()
	resp, err := x.client.Do(req)
	if err != nil {
		return nil, x.Explain(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(x.stallTimer.duringRead(resp.Body), most))
	if err != nil {
		return nil, x.Explain(err)
	}
	switch resp.StatusCode {
	case http.StatusOK:
		return body, nil
	case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotImplemented:
		return nil, nil
	}
	return nil, c.statusError(resp.StatusCode, resp.Header, body[:min(len(body), maxErrorBytes)])
}

// List is the list of models that a server has at a path: of an object's field with
// a list, in each element the field with the name. Nil: it has no such list. There are at
// most 10,000.
func (c *Client) List(ctx context.Context, path string, header http.Header, list, name string) ([]string, error) {
	body, err := c.Get(ctx, path, header, maxModelsBytes)
	if err != nil {
		return nil, err
	}
	var outer map[string]json.RawMessage
	var inner []map[string]json.RawMessage
	if json.Unmarshal(body, &outer) != nil || json.Unmarshal(outer[list], &inner) != nil {
		return nil, nil
	}
	var names []string
	for _, m := range inner[:min(len(inner), maxModels)] {
		names = append(names, ScalarText(m[name]))
	}
	return names, nil
}
