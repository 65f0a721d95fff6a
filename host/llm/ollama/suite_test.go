package ollama

import (
	"testing"

	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/llm/llmtest"
	"github.com/stockade-dev/stockade/host/llm/provider"
)

// options returns the options of a model over a scripted server.
func options(t testing.TB, s scripted, script ...string) provider.Options {
	return provider.Options{
		APIKey:         llmtest.APIKey,
		BaseURL:        "http://model.test",
		Model:          "test-model",
		StallTimeout:   llmtest.StallTimeout,
		MaxStreamBytes: llmtest.MaxStreamBytes,
		HTTPClient:     serve(t, s, script...),
	}
}

func TestModelPassesTheSuite(t *testing.T) {
	llmtest.Run(t, func(t testing.TB, script []string) llm.Model {
		m := New(options(t, scripted{}, script...))
		m.firstByteTimeout = llmtest.StallTimeout
		return m
	}, llmtest.Signatures, llmtest.CachedTokens, llmtest.ReasoningTokens)
}
