// Package responses is the provider for OpenAI's Responses API, in which OpenAI's newer models can
// both think and call tools.
//
// [New] returns a [Model]. For each streaming request of canonical messages, the model yields
// deltas of the answer. The types of the request come from go-openai:
//
//   - request.go encodes a conversation as items. Each item is encoded once. It also drops
//     optional fields that a server refuses.
//   - stream.go decodes the events leniently.
//
// The server stores nothing: each request has the whole conversation, with the encrypted
// reasoning that the server has sent for the same model.
package responses

import (
	"context"
	"iter"
	"net/http"
	"sync/atomic"

	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/llm/openai"
	"github.com/stockade-dev/stockade/host/llm/provider"
)

// Model is a model behind a Responses API. It is safe for concurrent use.
type Model struct {
	provider.Client
	transcript llm.Transcript
	images     provider.RefusedImages
	refused    refusedReasoning // reasoning that the server has refused, and that is not sent again
	// The flags are set after the server has refused to send summaries, to send encrypted
	// reasoning, or to take a cache key. Then these are not asked for or sent again.
	noSummary, noEncrypted, noCacheKey, noFormat atomic.Bool
}

// New returns a model. It does not connect and returns no error: with options that cannot work,
// each Stream returns an error.
func New(opts provider.Options) *Model {
	defaults := openai.Defaults
	defaults.StripSuffixes = []string{"/responses"}
	opts = opts.WithDefaults(defaults)
	m := &Model{Client: provider.Client{Options: opts, Header: opts.Bearer(), BaseURLHint: openai.BaseURLHint(opts)}}
	m.RefineError = func(e *llm.ProviderError, detail provider.ErrorDetail, _ []byte) {
		if (e.Status == http.StatusNotFound || e.Status == http.StatusMethodNotAllowed) && detail.Code == "" {
			e.Hint = "check the name of the model and the base URL (`stockade config` shows where they come from); a server without the Responses API needs the provider openai"
		}
	}
	return m
}

// Stream implements [llm.Model].
func (m *Model) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Delta, error] {
	entries, template := m.transcript.Entries(req.Messages), m.requestTemplate(req)
	return m.Client.Stream(ctx, req, func(yield func(llm.Delta) bool) error {
		x, done := m.Begin(ctx)
		defer done()
		if err := m.images.SendWithFallback(entries, func() error { return m.create(x, template, entries) }); err != nil {
			return x.Explain(err)
		}
		d := decoder{m: m, model: template.Model, yield: yield}
		return d.decode(x)
	})
}
