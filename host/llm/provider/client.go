// Package provider holds the code that all providers of models share: the options of a
// client, one HTTP exchange with its limits, and errors with hints.
//
// A provider makes a [Client]. It builds the body of a request from cached parts ([Pieces]),
// sends it in an [Exchange], and reads the answer from the exchange. A server is not trusted: an
// exchange has a time-out for silence, limits on the bytes of a line and of the stream, and no
// redirects. No error of an exchange holds the key.
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

// Limits of the list of models; what exceeds them is left out.
const (
	maxModelsBytes = 4 << 20 // bytes of the answer; a longer one does not parse
	maxModels      = 10_000
)

// Options names a server and a model, and sets the limits of an exchange. A field with its zero
// value has a default. Each provider has its own defaults for Name, BaseURL, KeySource and Model.
type Options struct {
	Name      string // name of the provider, for errors
	BaseURL   string
	KeySource string // origin of the key, for hints: "OPENAI_API_KEY", "the secret work"
	APIKey    string // empty: no key is sent, which local servers accept
	Model     string // name of the model for requests that name none
	// StripSuffixes are paths of requests, the longest first, which people copy into the base URL.
	// [Options.WithDefaults] removes them.
	StripSuffixes   []string
	ModelPages      []ModelPage // pages of the server about its models; the list of models is the last
	Query           string      // query that each request gets, such as api-version=1; cut off the base URL
	ReasoningEffort string      // amount of thinking: "low", "medium" or "high"; empty: the provider decides
	ContextTokens   int         // size of the model's context, in tokens; 0: not known

	// StallTimeout limits the time in which the server sends nothing, before its answer and
	// within it. A longer silence fails the request. 0: 5 minutes.
	StallTimeout   time.Duration
	MaxStreamBytes int64 // limit of the bytes of an answer, after decompression; a longer one fails; 0: 64 MiB
	// HTTPClient provides the transport. Nil: every request is an error, because this package
	// must not choose its network access. No other field of it is used: its Timeout would cut
	// long answers, and redirects are always refused.
	HTTPClient *http.Client
}

// WithDefaults returns the options with empty fields set from other. It removes the query, the
// suffixes of other.StripSuffixes and final slashes from the base URL.
func (o Options) WithDefaults(other Options) Options {
	o.Name = cmp.Or(o.Name, other.Name)
	o.BaseURL, _, _ = strings.Cut(cmp.Or(o.BaseURL, other.BaseURL), "#") // a fragment is not sent
	o.BaseURL, o.Query, _ = strings.Cut(o.BaseURL, "?")
	o.BaseURL = strings.TrimRight(o.BaseURL, "/")
	for _, ending := range other.StripSuffixes {
		o.BaseURL = strings.TrimRight(strings.TrimSuffix(o.BaseURL, ending), "/")
	}
	o.ModelPages = other.ModelPages
	o.KeySource = cmp.Or(o.KeySource, other.KeySource)
	o.Model = cmp.Or(o.Model, other.Model)
	o.StallTimeout = cmp.Or(o.StallTimeout, other.StallTimeout, 5*time.Minute)
	o.MaxStreamBytes = cmp.Or(o.MaxStreamBytes, other.MaxStreamBytes, 64<<20)
	return o
}

// String describes the options without the key.
func (o Options) String() string {
	key := "no key"
	if o.APIKey != "" {
		key = "a key"
	}
	return fmt.Sprintf("%s at %s with %s", o.Name, o.BaseURL, key)
}

// GoString describes the options without the key.
func (o Options) GoString() string { return o.String() }

// Client makes exchanges with one server. It is safe for concurrent use. Its fields do not change.
type Client struct {
	Options
	Header      http.Header // headers of each request, such as the key
	BaseURLHint string      // the form of the provider's base URLs, for hints; empty: no hint
	// RefineError changes an error by details that only this provider sends. It gets the parsed
	// error and the whole body. Nil: errors stay as they are.
	RefineError func(e *llm.ProviderError, detail ErrorDetail, body []byte)
	// RateLimitWait returns the time until a rate limit ends, from headers of this provider; 0
	// if they name none. It is called without a Retry-After. Nil: there are no such headers.
	RateLimitWait func(header http.Header, now time.Time) time.Duration
}

// ModelOf returns the name of the model for a request.
func (c *Client) ModelOf(req llm.Request) string { return cmp.Or(req.Model, c.Model) }

// Check returns an error for options that cannot work. Nothing is sent.
func (c *Client) Check() error {
	if c.HTTPClient == nil || c.HTTPClient.Transport == nil {
		return c.InvalidRequest("no network access is configured", "")
	}
	base, err := url.Parse(c.BaseURL)
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {

		return c.InvalidRequest("the base URL is not an http or https URL with a host", "check the base URL; `stockade config` shows where it comes from")
	}
	for ending, name := range map[string]string{"/chat/completions": "openai", "/responses": "openai-responses", "/messages": "anthropic", "/api/chat": "ollama"} {
		if address, found := strings.CutSuffix(c.BaseURL, ending); found { // WithDefaults has removed the provider's own
			return c.InvalidRequest("the base URL ends in "+ending+", the path of another API", "use --provider "+name+", or write "+address+" as the base URL")
		}
	}
	if strings.ContainsFunc(c.APIKey, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return c.InvalidRequest("the API key holds a space or a character that is not ASCII", c.KeyHint())
	}
	return nil
}

// Stream returns the deltas that ask yields, and its error, as [llm.Model] requires. Ask returns
// nil when the answer is complete or yield has returned false. Ask is not called if the options
// cannot work or neither req nor the options name a model.
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

// Bearer returns a header with the key in the form that most servers expect.
func (o Options) Bearer() http.Header { return o.KeyHeader("Authorization", "Bearer ") }

// KeyHeader returns a header with the given name, and the prefix and the key; empty without a key.
func (o Options) KeyHeader(name, prefix string) http.Header {
	h := http.Header{}
	if o.APIKey != "" {
		h.Set(name, prefix+o.APIKey)
	}
	return h
}

// Get sends one request outside of a conversation, such as one for the list of models. It
// returns at most limit bytes of the answer, and nil if the server has no such page. The request
// is not repeated. Ctx limits the whole time, and the stall time-out each silence.
func (c *Client) Get(ctx context.Context, path string, limit int64) ([]byte, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	x, done := c.Begin(ctx)
	defer done()
	req, err := x.request(http.MethodGet, path)
	if err != nil {
		return nil, x.Explain(err)
	}
	x.stallTimer.arm()
	resp, err := x.client.Do(req)
	if err != nil {
		return nil, x.Explain(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(x.stallTimer.duringRead(resp.Body), limit))
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

// Models returns the names of the server's models, as the server writes them, at most 10,000;
// others are left out. Nil: the server has no such list, which is not an error. It is the
// cheapest request that shows whether the server runs and accepts the key. Nothing of a
// conversation is sent.
func (c *Client) Models(ctx context.Context) ([]string, error) {
	page := c.ModelPages[len(c.ModelPages)-1]
	body, err := c.Get(ctx, page.Path, maxModelsBytes)
	if err != nil {
		return nil, err
	}
	var models []json.RawMessage
	if json.Unmarshal(lookup(body, page.List), &models) != nil {
		return nil, nil
	}
	var names []string
	for _, m := range models[:min(len(models), maxModels)] {
		names = append(names, ScalarText(lookup(m, page.Name)))
	}
	return names, nil
}
