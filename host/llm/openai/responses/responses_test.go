package responses

import (
	"strings"
	"testing"

	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/llm/llmtest"
	"github.com/stockade-dev/stockade/host/llm/offline"
	"github.com/stockade-dev/stockade/host/llm/provider"
)

// scripted returns a model over a server in memory, and checks that the whole script was used.
func scripted(t testing.TB, script ...string) *Model {
	t.Helper()
	s, err := offline.ParseScript("script", strings.NewReader(strings.Join(script, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if n := s.Remaining(); n > 0 {
			t.Errorf("%d lines of the script were not used", n)
		}
	})
	return New(provider.Options{
		APIKey:         llmtest.APIKey,
		BaseURL:        "http://model.test/v1",
		StallTimeout:   llmtest.StallTimeout,
		MaxStreamBytes: llmtest.MaxStreamBytes,
		HTTPClient:     llmtest.Serve(t, offline.NewServer(s, llmtest.APIKey)),
	})
}

func TestModelPassesTheSuite(t *testing.T) {
	llmtest.Run(t, func(t testing.TB, script []string) llm.Model { return scripted(t, script...) })
}
