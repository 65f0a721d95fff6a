// Package ollama is the provider for Ollama's own API. Ollama runs models on the user's
// machine: https://github.com/ollama/ollama/blob/main/docs/api.md.
//
// Ollama offers OpenAI's API, too, but without a way to set the size of a model's context, and the
// default is too small for an agent (see context.go). This package handles only what is special to
// Ollama; the rest is in host/llm/provider:
//
//   - request.go encodes the conversation and the tools. Arguments are objects.
//   - schema.go reduces a tool's JSON Schema to the part that Ollama takes.
//   - stream.go decodes the answer, which has a JSON value in each line.
//   - error.go adds advice to Ollama's errors.
//   - context.go chooses the size of the context, and checks whether a request fits in it.
//   - models.go lists the models, and finds a running server.
package ollama

import (
	"context"
	"iter"
	"time"

	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/llm/provider"
)

// minFirstByteTimeout limits the silence before an answer begins, if the stall time-out is
// shorter. Nothing comes while a model is loaded from disk, or while it reads a long
// conversation without a graphics card. Both take minutes, and the API does not distinguish them
// from a server that hangs. Ollama itself gives up loading after five minutes without progress.
const minFirstByteTimeout = 15 * time.Minute

// Defaults holds the default options: an Ollama on this machine.
var Defaults = provider.Options{Name: "ollama", BaseURL: "http://127.0.0.1:11434", KeySource: "OLLAMA_API_KEY", StripSuffixes: []string{"/chat/completions", "/v1", "/api/chat", "/api"}}

// Model is a model behind Ollama's API. It is safe for concurrent use.
type Model struct {
	provider.Client
	firstByteTimeout time.Duration
	transcript       llm.Transcript
	tools            provider.LastTools
	images           provider.RefusedImages
	windows          contextWindows
}

// New returns a model. It does not connect and returns no error: with options that cannot work,
// each Stream returns an error. The base URL may end in /v1 or /api, like those of other servers.
//
// ContextTokens is Ollama's num_ctx. 0: the context has 32,768 tokens. It has more if the model's
// Modelfile names more, if the model is loaded with more, or if the first request needs more (at
// most 65,536). It has fewer if the model cannot hold as many. An answer may take 15 minutes to
// begin, or the stall time-out if that is longer.
func New(opts provider.Options) *Model {
	opts = opts.WithDefaults(Defaults)
	return &Model{
		Client:           provider.Client{Options: opts, Header: opts.Bearer(), BaseURLHint: "Ollama's own is " + Defaults.BaseURL, RefineError: refineError},
		firstByteTimeout: max(minFirstByteTimeout, opts.StallTimeout),
	}
}

// Stream implements [llm.Model].
func (m *Model) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Delta, error] {
	model, entries, tools := m.ModelOf(req), m.transcript.Entries(req.Messages), m.tools.Wire(req.Tools, encodeTools)
	return m.Client.Stream(ctx, req, func(yield func(llm.Delta) bool) error {
		return withModelHint(model, m.stream(ctx, model, entries, tools, req.Schema, yield))
	})
}

// stream sends the request and yields the deltas of its answer.
func (m *Model) stream(ctx context.Context, model string, entries []*llm.Entry, tools, schema []byte, yield func(llm.Delta) bool) error {
	x, done := m.Begin(ctx)
	defer done()
	x.JSONLines, x.FirstByteTimeout = true, m.firstByteTimeout
	var w *contextWindow
	size := 0
	err := m.images.SendWithFallback(entries, func() (err error) {
		messages := provider.EncodeEntries(entries, m.images.Version(), m.wireEntry)
		size = sizeOf(messages) + len(tools) + len(schema)
		if w, err = m.window(ctx, model, size); err != nil {
			return err
		}
		if err := m.checkFits(w, size); err != nil {
			return err
		}
		return x.Post("/api/chat", w.body(model, tools, schema, messages))
	})
	if err != nil {
		return x.Explain(err)
	}
	return m.decode(x, yield, func(u llm.Usage) error { return m.checkNotCut(ctx, w, model, size, u) })
}
