package openai

import (
	"strings"
	"testing"

	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/llm/llmtest"
	"github.com/stockade-dev/stockade/host/llm/offline"
	"github.com/stockade-dev/stockade/host/llm/provider"
)

// scriptedServer serves a script in memory and checks that all of it was used.
func scriptedServer(t testing.TB, script ...string) provider.Options {
	t.Helper()
	s, err := offline.ParseScript("script", strings.NewReader(strings.Join(script, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	server := offline.NewServer(s, llmtest.APIKey)
	t.Cleanup(func() {
		if n := s.Remaining(); n > 0 {
			t.Errorf("%d lines of the script were not used", n)
		}
	})
	return provider.Options{
		APIKey:         llmtest.APIKey,
		BaseURL:        "http://model.test/v1",
		StallTimeout:   llmtest.StallTimeout,
		MaxStreamBytes: llmtest.MaxStreamBytes,
		HTTPClient:     llmtest.Serve(t, server),
	}
}

func TestModelPassesTheSuite(t *testing.T) {
	llmtest.Run(t, func(t testing.TB, script []string) llm.Model {
		return New(scriptedServer(t, script...))
	}, llmtest.Signatures)
}
