package openai

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/stockade-dev/stockade/host/llm"
)

// The fields in which servers send reasoning. OpenAI has none: there it is a matter of the
// Responses API.
const (
	reasoningContent = "reasoning_content" // DeepSeek, xAI, Moonshot, vLLM
	reasoningText    = "reasoning"         // OpenRouter, Groq, newer vLLM
)

// keptReasoning is what is kept of reasoning. Some models are lost without their own in
// the middle of a turn with calls, and each server wants it in the field in which it came.
type keptReasoning struct {
	Field string `json:"field"`
}

// kept marks reasoning of the model that came in a field. The mark is of the provider by
// its name: behind those that share this package there are different servers.
func (m *Model) kept(model, field string) *llm.KeptDelta {
	data, _ := json.Marshal(keptReasoning{field}) // which fails never
	return &llm.KeptDelta{Of: llm.ReasoningPart, Kept: llm.Kept{Provider: m.Name, Model: model, Data: data}}
}

// withReasoning adds the reasoning of an entry to its message on the wire, if it came from
// the model.
func (m *Model) withReasoning(message []byte, e *llm.Entry, model string) []byte {
	var field string
	var texts []string
	for _, p := range e.Parts {
		var k keptReasoning
		if p.Type != llm.ReasoningPart || p.Text == "" || !p.Kept.From(m.Name, model) || json.Unmarshal(p.Kept.Data, &k) != nil ||
			k.Field != reasoningContent && k.Field != reasoningText || field != "" && k.Field != field {
			continue
		}
		field, texts = k.Field, append(texts, p.Text)
	}
	if field == "" {
		return message
	}
	text, _ := json.Marshal(strings.Join(texts, "\n\n")) // which fails never
	return append(append(append(message[:len(message)-1], `,"`+field+`":`...), text...), '}')
}

// refusesReasoning tells an error that names the fields of reasoning, which some servers do
// not take back.
func refusesReasoning(err error) bool {
	failure, ok := errors.AsType[*llm.ProviderError](err)
	return ok && (failure.Status == http.StatusBadRequest || failure.Status == http.StatusUnprocessableEntity) &&
		strings.Contains(failure.Message, reasoningText) && !strings.Contains(failure.Message, "reasoning_effort")
}
