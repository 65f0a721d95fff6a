// Package openai is the provider for OpenAI's chat completions API and for the many servers
// that offer the same API (vLLM, llama.cpp, xAI, Meta, OpenRouter, ...).
//
// [New] returns a [Model]. For each streaming request of canonical messages, the model yields
// deltas of the answer. The types of the request come from go-openai:
//
//   - request.go encodes a conversation. Each message is encoded once.
//   - stream.go decodes the answer leniently, because servers differ from the documentation.
//   - reasoning.go handles the reasoning that servers show, and want back.
//
// Only the first choice of an answer is read.
package openai

import (
	"context"
	"iter"
	"net/url"
	"strings"
	"sync/atomic"

	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/llm/provider"
)

// Defaults holds the default options: OpenAI's own server. LM Studio and llama.cpp have the size of
// the context on pages of their own; vLLM, OpenRouter, Groq and Mistral in the list of models.
var Defaults = provider.Options{Name: "openai", BaseURL: "https://api.openai.com/v1", KeySource: "OPENAI_API_KEY", StripSuffixes: []string{"/chat/completions", "/completions"}, ModelPages: []provider.ModelPage{
	{Root: true, Path: "/api/v0/models", List: "data", Name: "id", Fields: []string{"loaded_context_length", "max_context_length"}},
	{Root: true, Path: "/props", Fields: []string{"default_generation_settings.n_ctx"}},
	{Path: "/models", List: "data", Name: "id", Fields: []string{"max_model_len", "top_provider.context_length", "context_length", "context_window", "max_context_length"}},
}}

// Model is a model behind a chat completions API. It is safe for concurrent use.
type Model struct {
	provider.Client
	noUsage, noReasoning atomic.Bool // the server has refused to report usage, or to take reasoning back
	images               provider.RefusedImages
	transcript           llm.Transcript
}

// New returns a model. It does not connect and returns no error: with options that cannot work,
// each Stream returns an error.
func New(opts provider.Options) *Model {
	opts = opts.WithDefaults(Defaults)
	return &Model{Client: provider.Client{Options: opts, Header: opts.Bearer(), BaseURLHint: BaseURLHint(opts)}}
}

// BaseURLHint returns a hint for a base URL without a version. Empty: it has a version.
func BaseURLHint(o provider.Options) string {
	if u, err := url.Parse(o.BaseURL); err != nil || strings.Contains(u.Path, "/v") || o.Query != "" {
		return ""
	}
	return "most servers want a base URL that ends in /v1: " + o.BaseURL + "/v1"
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
		return m.decode(x, template.Model, yield)
	})
}
