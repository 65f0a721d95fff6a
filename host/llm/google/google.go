// Package google is the provider for Google's Gemini API.
//
// [New] makes a [Model] from options; the model turns canonical messages into one
// streaming request and the stream back into deltas:
//
//   - request.go: a conversation as the contents of a request, each entry made once.
//   - version.go: what depends on the version of a model, by its name.
//   - stream.go: events to deltas, and how an answer ends.
//   - error.go: what Google says of a failure beyond its status.
//   - models.go: which models there are.
//
// The wire format is written and read here, and Google's library says in the tests what
// is right: see RATIONALE, "Why is Google's API spoken without its library?" It is that of
// v1beta, the version that the library speaks by itself, too.
package google

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"strings"

	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/llm/provider"
)

// providerName is the name of the wire format, with which is kept what goes back to it.
const providerName = "google"

// Defaults are the options of Google itself.
var Defaults = provider.Options{Name: providerName, BaseURL: "https://generativelanguage.googleapis.com", KeySource: "GEMINI_API_KEY", StripSuffixes: []string{"/v1beta"}}

// Model is a Gemini. It is safe for concurrent use.
type Model struct {
	provider.Client
	images     provider.RefusedImages
	transcript llm.Transcript
	tools      declarations
}

// New makes a model. It connects to nothing and reports nothing: options that
// cannot work are the error of each Stream.
func New(opts provider.Options) *Model {
	opts = opts.WithDefaults(Defaults)
	m := &Model{Client: provider.Client{Options: opts}}
	m.RefineError = m.refineError
	return m
}

// Stream implements [llm.Model].
func (m *Model) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Delta, error] {
	model := strings.TrimPrefix(m.ModelOf(req), "models/")
	entries, names := m.transcript.Entries(req.Messages), names(req.Tools)
	tools := m.tools.of(req.Tools)
	return m.Client.Stream(ctx, req, func(yield func(llm.Delta) bool) error {
		x, done := m.Begin(ctx)
		defer done()
		err := m.images.SendWithFallback(entries, func() error {
			return x.Post("/v1beta/models/"+url.PathEscape(model)+":streamGenerateContent?alt=sse", m.header(), m.body(model, entries, tools))
		})
		if err != nil {
			return x.Explain(err)
		}
		return (&decoder{Client: &m.Client, model: model, names: names}).decode(x, yield)
	})
}

// header has the key, which Google also takes in the URL, where proxies and logs see it.
func (m *Model) header() http.Header { return m.KeyHeader("X-Goog-Api-Key", "") }
