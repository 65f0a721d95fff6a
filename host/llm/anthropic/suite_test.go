package anthropic

import (
	"testing"

	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/llm/llmtest"
)

func TestModelPassesTheSuite(t *testing.T) {
	llmtest.Run(t, func(t testing.TB, script []string) llm.Model {
		return New(scripted(t, &server{}, script...))
	})
}
