package openai

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/stockade-dev/stockade/host/llm"
)

// The fields in which servers send reasoning. OpenAI sends reasoning only in its Responses API.
const (
	reasoningContent = "reasoning_content" // DeepSeek, xAI, Moonshot, vLLM
	reasoningText    = "reasoning"         // OpenRouter, Groq, newer vLLM
	// thinkingBlocks has the signed thinking of Anthropic's models at LiteLLM, beside
	// reasoningContent. A model that thinks refuses to continue after a call without it.
	thinkingBlocks = "thinking_blocks"
)

// reasoningData is the provider data of reasoning. Some models fail without their reasoning
// in a turn with calls, and each server wants it back in its own field.
type reasoningData struct {
	Field     string `json:"field"`               // field in which the server sent the reasoning
	Signature string `json:"signature,omitempty"` // signature of a thinking block; empty in other fields
}

// thinkingBlock is an element of thinking_blocks on the wire; in a stream, a piece of one.
type thinkingBlock struct {
	Type      string `json:"type"`
	Thinking  string `json:"thinking"`
	Signature string `json:"signature"`
}

// signature returns the signature of the last thinking block of a piece. Empty: there is
// none, or the block has not ended.
func signature(blocks json.RawMessage) string {
	var all []thinkingBlock
	if json.Unmarshal(blocks, &all) != nil || len(all) == 0 {
		return ""
	}
	return all[len(all)-1].Signature
}

// providerDataDelta returns provider data for reasoning of the model. It has the configured name
// of the provider, because one package serves different servers.
func (m *Model) providerDataDelta(model string, k reasoningData) *llm.ProviderDataDelta {
	data, _ := json.Marshal(k) // cannot fail
	return &llm.ProviderDataDelta{PartType: llm.ReasoningPart, ProviderData: llm.ProviderData{Provider: m.Name, Model: model, Data: data}}
}

// withReasoning returns the entry's message on the wire with the entry's reasoning added, if the
// same model of the same provider wrote it.
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
	reasoning, _ := json.Marshal(value) // cannot fail
	return append(append(append(message[:len(message)-1], `,"`+field+`":`...), reasoning...), '}')
}

// refusesReasoning reports whether an error names the fields of reasoning, which some servers do
// not take back.
func refusesReasoning(err error) bool {
	failure, ok := errors.AsType[*llm.ProviderError](err)
	return ok && failure.Code != llm.ContextExceeded && (failure.Status == http.StatusBadRequest || failure.Status == http.StatusUnprocessableEntity) &&
		strings.Contains(failure.Message, reasoningText) && !strings.Contains(failure.Message, "reasoning_effort")
}
