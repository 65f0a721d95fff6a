// Package openai is the provider for OpenAI's chat completions API and for
// the many servers that speak it (vLLM, llama.cpp, xAI, Meta, OpenRouter, ...).
//
// [New] makes a [Model] from options; the model turns canonical messages into
// one streaming request and the stream back into deltas. go-openai has the types of
// the request:
//
//   - request.go: a conversation as wire messages, each made once.
//   - stream.go: lenient decoding; servers differ from the documentation.
//   - reasoning.go: the reasoning that servers show, and want back.
//
// All choices but the first are ignored.
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

// Defaults are the options of OpenAI itself.
var Defaults = provider.Options{Name: "openai", BaseURL: "https://api.openai.com/v1", KeySource: "OPENAI_API_KEY", StripSuffixes: []string{"/chat/completions", "/completions"}}

// Model is a model behind a chat completions API. It is safe for concurrent use.
type Model struct {
	provider.Client
	// The server refuses to be asked for usage, and to get reasoning back.
	noUsage, noReasoning atomic.Bool
	images               provider.RefusedImages
	transcript           llm.Transcript
}

// New makes a model. It connects to nothing and reports nothing: options that
// cannot work are the error of each Stream.
func New(opts provider.Options) *Model {
	opts = opts.WithDefaults(Defaults)
	return &Model{Client: provider.Client{Options: opts, BaseURLHint: BaseURLHint(opts)}}
}

// BaseURLHint is a hint for a base URL without a version. Empty: it has one.
func BaseURLHint(o provider.Options) string {
	if u, err := url.Parse(o.BaseURL); err != nil || strings.Contains(u.Path, "/v") || o.Query != "" {
		return ""
	}
	return "most servers want a base URL that ends in /v1: " + o.BaseURL + "/v1"
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
		return m.decode(x, envelope.Model, yield)
	})
}

// Models asks the server which models it has, which is the cheapest request that
// tells whether it is there and takes the key. Nothing of a conversation is sent.
// A server that is there and has no such list is no error, and names none: nil. Of the
// others there are at most 10,000 names, as the server has written them.
func (m *Model) Models(ctx context.Context) ([]string, error) {
	return m.List(ctx, "/models", m.Bearer(), "data", "id")
}
