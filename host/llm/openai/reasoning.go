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
	// thinkingBlocks is how LiteLLM has what Anthropic has signed; it comes with
	// reasoningContent, and a model that thinks refuses to go on behind a call without.
	thinkingBlocks = "thinking_blocks"
)

// reasoningData is what is kept of reasoning. Some models are lost without their own in
// the middle of a turn with calls, and each server wants it in the field in which it came.
type reasoningData struct {
	Field     string `json:"field"`
	Signature string `json:"signature,omitempty"` // of a thinking block
}

// thinkingBlock is one on the wire; in a stream, a piece of it.
type thinkingBlock struct {
	Type      string `json:"type"`
	Thinking  string `json:"thinking"`
	Signature string `json:"signature"`
}

// signature is that of the thinking block that ends in a piece; empty: none does.
func signature(blocks json.RawMessage) string {
	var all []thinkingBlock
	if json.Unmarshal(blocks, &all) != nil || len(all) == 0 {
		return ""
	}
	return all[len(all)-1].Signature
}

// providerDataDelta marks reasoning of the model, as it came. The mark is of the provider by
// its name: behind those that share this package there are different servers.
func (m *Model) providerDataDelta(model string, k reasoningData) *llm.ProviderDataDelta {
	data, _ := json.Marshal(k) // which fails never
	return &llm.ProviderDataDelta{PartType: llm.ReasoningPart, ProviderData: llm.ProviderData{Provider: m.Name, Model: model, Data: data}}
}

// withReasoning adds the reasoning of an entry to its message on the wire, if it came from
// the model.
func (m *Model) withReasoning(message []byte, e *llm.Entry, model string) []byte {
	var field string
	var texts []string
	var blocks []thinkingBlock
	for _, p := range e.Parts {
		var k reasoningData
		if p.Type != llm.ReasoningPart || p.Text == "" || !p.ProviderData.IsFrom(m.Name, model) || json.Unmarshal(p.ProviderData.Data, &k) != nil ||
			k.Field != reasoningContent && k.Field != reasoningText && k.Field != thinkingBlocks || field != "" && k.Field != field {
			continue
		}
		field, texts, blocks = k.Field, append(texts, p.Text), append(blocks, thinkingBlock{"thinking", p.Text, k.Signature})
	}
	if field == "" {
		return message
	}
	var value any = strings.Join(texts, "\n\n")
	if field == thinkingBlocks {
		value = blocks
	}
	reasoning, _ := json.Marshal(value) // which fails never
	return append(append(append(message[:len(message)-1], `,"`+field+`":`...), reasoning...), '}')
}

// refusesReasoning tells an error that names the fields of reasoning, which some servers do
// not take back.
func refusesReasoning(err error) bool {
	failure, ok := errors.AsType[*llm.ProviderError](err)
	return ok && failure.Code != llm.ContextExceeded && (failure.Status == http.StatusBadRequest || failure.Status == http.StatusUnprocessableEntity) &&
		strings.Contains(failure.Message, reasoningText) && !strings.Contains(failure.Message, "reasoning_effort")
}
