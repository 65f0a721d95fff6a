// Package ollama is the provider for Ollama's own API, which runs models on the machine of
// their user: https://github.com/ollama/ollama/blob/main/docs/api.md.
//
// Ollama speaks OpenAI's API, too, but there nobody can say how large the context of a
// model has to be, and the one that it has by itself is too small for an agent (see
// context.go). What is this package's own:
//
//   - request.go: the conversation and the tools as Ollama takes them. Arguments are objects.
//   - schema.go: what it takes of a tool's JSON Schema.
//   - stream.go: the answer, a JSON value in each line.
//   - error.go: what Ollama says of a failure, and what to do about it.
//   - context.go: how large the context is, and whether a request has found room in it.
//   - models.go: which models there are, and finding a server that runs.
//
// What it shares with other providers is in host/llm/provider.
package ollama

import (
	"context"
	"iter"
	"time"

	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/llm/provider"
)

// minFirstByteTimeout is how long the server may be silent before its answer begins: nothing comes
// while a model is loaded from a disk and while it reads a long conversation without a
// graphics card, which both take minutes, and no part of the API tells that time from
// a server that hangs. Ollama itself gives a load up after five minutes without progress.
const minFirstByteTimeout = 15 * time.Minute

// Defaults are the options of an Ollama on this machine.
var Defaults = provider.Options{Name: "ollama", BaseURL: "http://127.0.0.1:11434", KeySource: "OLLAMA_API_KEY", StripSuffixes: []string{"/chat/completions", "/v1", "/api/chat", "/api"}}

// Model is a model behind Ollama's API. It is safe for concurrent use.
type Model struct {
	provider.Client
	firstByteTimeout time.Duration
	transcript       llm.Transcript
	tools            wireTools
	images           provider.RefusedImages
	windows          contextWindows
}

// New makes a model. It connects to nothing and reports nothing: options that cannot
// work are the error of each Stream. A base URL may end in /v1 or /api, as those of
// others do.
//
// ContextTokens is num_ctx. Without it, 32,768 tokens are asked for: more if the model's
// Modelfile says more, or it is loaded with more, or the first request needs more (at most
// 65,536), and less if the model cannot hold so many. The answer may be 15 minutes in
// coming, or the stall time-out if that is longer.
func New(opts provider.Options) *Model {
	opts = opts.WithDefaults(Defaults)
	return &Model{
		Client:           provider.Client{Options: opts, BaseURLHint: "Ollama's own is " + Defaults.BaseURL, RefineError: refineError},
		firstByteTimeout: max(minFirstByteTimeout, opts.StallTimeout),
	}
}

// Stream implements [llm.Model].
func (m *Model) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Delta, error] {
	model, entries, tools := m.ModelOf(req), m.transcript.Entries(req.Messages), m.tools.get(req.Tools)
	return m.Client.Stream(ctx, req, func(yield func(llm.Delta) bool) error {
		return withModelHint(model, m.stream(ctx, model, entries, tools, yield))
	})
}

// stream makes the request and yields its answer.
func (m *Model) stream(ctx context.Context, model string, entries []*llm.Entry, tools []byte, yield func(llm.Delta) bool) error {
	x, done := m.Begin(ctx)
	defer done()
	x.JSONLines, x.FirstByteTimeout = true, m.firstByteTimeout
	var w *contextWindow
	size := 0
	err := m.images.SendWithFallback(entries, func() (err error) {
		messages := provider.EncodeEntries(entries, m.images.Version(), m.wireEntry)
		size = sizeOf(messages) + len(tools)
		if w, err = m.window(ctx, model, size); err != nil {
			return err
		}
		if err := m.checkFits(w, size); err != nil {
			return err
		}
		return x.Post("/api/chat", m.Bearer(), w.body(model, tools, messages))
	})
	if err != nil {
		return x.Explain(err)
	}
	return m.decode(x, yield, func(u llm.Usage) error { return m.checkNotCut(ctx, w, model, size, u) })
}
