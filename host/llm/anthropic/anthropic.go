// Package anthropic is the provider for Anthropic's Messages API and for the servers
// that speak it.
//
// [New] makes a [Model] from options; the model turns canonical messages into one
// streaming request and the stream back into deltas. Anthropic's library has the types
// of the request:
//
//   - request.go: a conversation as messages of the API, each entry made once, and where
//     the API caches it.
//   - plan.go: what is asked of a model beside the conversation, and what is asked instead
//     when a server refuses that.
//   - stream.go: lenient decoding of the stream.
//   - error.go: what the API says about its errors, beside their status.
//
// Thinking comes back with a signature, and goes back with it to the model that it came
// from, in its place. See RATIONALE, "Why is thinking kept that nobody can read?"
package anthropic

import (
	"context"
	"iter"
	"net/http"
	"sync"

	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/llm/provider"
	"github.com/stockade-dev/stockade/host/tool"
)

// Defaults are the options of Anthropic itself.
var Defaults = provider.Options{Name: "anthropic", BaseURL: "https://api.anthropic.com", KeySource: "ANTHROPIC_API_KEY", StripSuffixes: []string{"/messages", "/v1"}}

// apiVersion is the version of the API that the types of the library are for.
const apiVersion = "2023-06-01"

// Model is a model behind a Messages API. It is safe for concurrent use.
type Model struct {
	provider.Client
	images     provider.RefusedImages
	transcript llm.Transcript

	mu       sync.Mutex
	limits   serverLimits
	template *requestTemplate  // of the newest request
	tools    []tool.Definition // of the newest request that had some
}

// New makes a model. It connects to nothing and reports nothing: options that
// cannot work are the error of each Stream. The base URL may end in /v1 or not.
func New(opts provider.Options) *Model {
	opts = opts.WithDefaults(Defaults)
	return &Model{Client: provider.Client{Options: opts, BaseURLHint: "/v1/messages is added to it", RefineError: refineError, RateLimitWait: rateLimitWait}}
}

// Stream implements [llm.Model].
func (m *Model) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Delta, error] {
	entries := m.transcript.Entries(req.Messages)
	settings := m.settings(req, entries)
	return m.Client.Stream(ctx, req, func(yield func(llm.Delta) bool) error {
		x, done := m.Begin(ctx)
		defer done()
		if err := m.images.SendWithFallback(entries, func() error { return m.ask(x, settings, entries) }); err != nil {
			return x.Explain(err)
		}
		return m.decode(x, settings.model, yield)
	})
}

func (m *Model) header() http.Header {
	header := m.KeyHeader("X-Api-Key", "")
	header.Set("Anthropic-Version", apiVersion)
	return header
}

// Models asks the server which models it has, which is the cheapest request that
// tells whether it is there and takes the key. Nothing of a conversation is sent.
// A server that is there and has no such list is no error, and names none: nil. Of the
// others there are at most 1,000 names, as the server has written them, the newest first.
func (m *Model) Models(ctx context.Context) ([]string, error) {
	return m.List(ctx, "/v1/models?limit=1000", m.header(), "data", "id")
}
