// Package anthropic is the provider for Anthropic's Messages API and for other servers with
// the same API.
// [New] returns a [Model]. For each streaming request of canonical messages, the model yields
// deltas of the answer. See RATIONALE, "Why is Anthropic's API spoken without its library?"
// deltas of the answer. See RATIONALE, "Why is Anthropic's API spoken without its library?"
//
//   - request.go encodes a conversation as messages of the API, each entry once, and marks the
//     points up to which the API caches it.
//   - plan.go chooses the parameters of a request, and others after a refusal.
//   - stream.go decodes the stream leniently.
//   - error.go reads the details of the API's errors.
//
// Thinking comes with a signature. It is sent back, at its place and with the signature, to
// the model that made it. See RATIONALE, "Why is thinking kept that nobody can read?"
package anthropic

import (
	"context"
	"iter"
	"sync"

	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/llm/provider"
	"github.com/stockade-dev/stockade/host/tool"
)

// Defaults holds the default options: Anthropic's own server.
var Defaults = provider.Options{Name: "anthropic", BaseURL: "https://api.anthropic.com", KeySource: "ANTHROPIC_API_KEY", StripSuffixes: []string{"/messages", "/v1"}, ModelPages: []provider.ModelPage{
	{Path: "/v1/models?limit=1000", List: "data", Name: "id", Fields: []string{"max_input_tokens"}}, // the newest are the first
}}

// apiVersion is the version of the API for which the library's types are made.
const apiVersion = "2023-06-01"

// Model is a model behind a Messages API. It is safe for concurrent use.
type Model struct {
	provider.Client
	images     provider.RefusedImages
	transcript llm.Transcript

	mu       sync.Mutex // guards the fields below
	limits   serverLimits
	template *requestTemplate  // template of the latest request; nil: none yet
	tools    []tool.Definition // tools of the latest request with tools
}

// New returns a model. It does not connect and returns no error: with options that cannot work,
// each Stream returns an error. The base URL may end in /v1 or not.
func New(opts provider.Options) *Model {
	opts = opts.WithDefaults(Defaults)
	header := opts.KeyHeader("X-Api-Key", "")
	header.Set("Anthropic-Version", apiVersion)
	return &Model{Client: provider.Client{Options: opts, Header: header, BaseURLHint: "/v1/messages is added to it", RefineError: refineError, RateLimitWait: rateLimitWait}}
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
