// Package google is the provider for Google's Gemini API.
//
// [New] returns a [Model]. For each request the model yields deltas of the answer:
//
//   - request.go encodes a conversation as the contents of a request, each entry once.
//   - version.go decides by a model's name what its version can do.
//   - stream.go makes deltas of events, and decides how an answer has ended.
//   - error.go reads the details of Google's errors.
//   - models.go lists the models.
//
// This package encodes and decodes the wire format itself. The tests compare it with
// Google's library: see RATIONALE, "Why is Google's API spoken without its library?" The
// format is v1beta, the library's default.
package google

import (
	"context"
	"iter"
	"net/url"
	"strings"

	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/llm/provider"
)

// providerName marks the provider data of this package.
const providerName = "google"

// Defaults holds the default options: Google's own server.
var Defaults = provider.Options{Name: providerName, BaseURL: "https://generativelanguage.googleapis.com", KeySource: "GEMINI_API_KEY", StripSuffixes: []string{"/v1beta"}, ModelPages: []provider.ModelPage{
	{Path: "/v1beta/models?pageSize=1000", List: "models", Name: "name", Fields: []string{"inputTokenLimit"}},
}}

// Model is a Gemini model. It is safe for concurrent use.
type Model struct {
	provider.Client
	images     provider.RefusedImages
	transcript llm.Transcript
	tools      provider.LastTools
}

// New returns a model. It does not connect and returns no error: with options that cannot work,
// each Stream returns an error.
func New(opts provider.Options) *Model {
	opts = opts.WithDefaults(Defaults)
	m := &Model{Client: provider.Client{Options: opts, Header: opts.KeyHeader("X-Goog-Api-Key", "")}} // not in the URL, which proxies and logs see
	m.RefineError = m.refineError
	return m
}

// Stream implements [llm.Model].
func (m *Model) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Delta, error] {
	model := strings.TrimPrefix(m.ModelOf(req), "models/")
	entries, names := m.transcript.Entries(req.Messages), names(req.Tools)
	tools := m.tools.Wire(req.Tools, declare)
	return m.Client.Stream(ctx, req, func(yield func(llm.Delta) bool) error {
		x, done := m.Begin(ctx)
		defer done()
		err := m.images.SendWithFallback(entries, func() error {
			return x.Post("/v1beta/models/"+url.PathEscape(model)+":streamGenerateContent?alt=sse", m.body(model, entries, tools, req.Schema))
		})
		if err != nil {
			return x.Explain(err)
		}
		return (&decoder{Client: &m.Client, model: model, names: names}).decode(x, yield)
	})
}
