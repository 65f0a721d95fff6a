// Package responses is the provider for OpenAI's Responses API, in which its newer
// models think and call tools in one conversation.
//
// [New] makes a [Model] from options; the model turns canonical messages into one
// streaming request and the stream back into deltas. go-openai has the types of the
// request:
//
//   - request.go: a conversation as items, each made once, and what a server may
//     refuse of a request.
//   - stream.go: lenient decoding of the events.
//
// Nothing is stored at the server: each request has the whole conversation, and in it
// the reasoning of the same model, encrypted, as the server has sent it.
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
	// What the server, or the model behind it, has refused is not sent any more.
	refused                            refusedReasoning
	noSummary, noEncrypted, noCacheKey atomic.Bool
}

// New makes a model. It connects to nothing and reports nothing: options that
// cannot work are the error of each Stream.
func New(opts provider.Options) *Model {
	defaults := openai.Defaults
	defaults.StripSuffixes = []string{"/responses"}
	opts = opts.WithDefaults(defaults)
	m := &Model{Client: provider.Client{Options: opts, BaseURLHint: openai.BaseURLHint(opts)}}
	m.RefineError = func(e *llm.ProviderError, said provider.ErrorDetail, _ []byte) {
		if (e.Status == http.StatusNotFound || e.Status == http.StatusMethodNotAllowed) && said.Code == "" {
			e.Hint = "check the name of the model and the base URL (`stockade config` shows where they come from); a server without the Responses API needs the provider openai"
		}
	}
	return m
}

// Stream implements [llm.Model].
func (m *Model) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Delta, error] {
	entries, envelope := m.transcript.Entries(req.Messages), m.requestTemplate(req)
	return m.Client.Stream(ctx, req, func(yield func(llm.Delta) bool) error {
		x, done := m.Begin(ctx)
		defer done()
		if err := m.images.SendWithFallback(entries, func() error { return m.create(x, envelope, entries) }); err != nil {
			return x.Explain(err)
		}
		d := decoder{m: m, model: envelope.Model, yield: yield}
		return d.decode(x)
	})
}

// Models asks the server which models it has, as [openai.Model.Models] does.
func (m *Model) Models(ctx context.Context) ([]string, error) {
	return openai.New(m.Options).Models(ctx)
}
