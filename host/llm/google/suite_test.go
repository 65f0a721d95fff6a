package google

import (
	"context"
	"iter"
	"net/http"
	"testing"

	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/llm/llmtest"
	"github.com/stockade-dev/stockade/host/llm/provider"
)

// options returns the options of a model over a server in memory.
func options(t testing.TB, server http.Handler) provider.Options {
	return provider.Options{
		APIKey:         llmtest.APIKey,
		BaseURL:        "http://model.test",
		StallTimeout:   llmtest.StallTimeout,
		MaxStreamBytes: llmtest.MaxStreamBytes,
		HTTPClient:     llmtest.Serve(t, server),
	}
}

// named is a model with its own name in place of the suite's.
type named struct {
	llm.Model
	name string
}

func (n named) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Delta, error] {
	if req.Model == llmtest.Request().Model {
		req.Model = n.name
	}
	return n.Model.Stream(ctx, req)
}

func TestModelPassesTheSuite(t *testing.T) {
	for _, name := range []string{"gemini-2.5-flash", "gemini-3.8-flash"} {
		t.Run(name, func(t *testing.T) {
			llmtest.Run(t, func(t testing.TB, script []string) llm.Model {
				return named{New(options(t, newServer(t, script...))), name}
			}, llmtest.TextArguments)
		})
	}
}
