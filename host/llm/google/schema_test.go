package google

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/llm/provider"
)

func TestTheSchemaOfAnAnswerIsSent(t *testing.T) {
	for model, want := range map[string]string{
		"gemini-1.0":       `"generationConfig":{"responseJsonSchema":{"type":"object"},"responseMimeType":"application/json"},`,
		"gemini-2.5-flash": `"responseMimeType":"application/json","thinkingConfig":{`,
	} {
		m := New(provider.Options{})
		entries := m.transcript.Entries([]llm.Message{{Kind: llm.User, Content: "go"}})
		sent := bytes.Join(m.body(model, entries, nil, json.RawMessage(`{"type":"object"}`)), nil)
		if !json.Valid(sent) || !strings.Contains(string(sent), want) {
			t.Errorf("%s: %s", model, sent)
		}
		if sent := bytes.Join(m.body(model, entries, nil, nil), nil); !json.Valid(sent) || strings.Contains(string(sent), "response") {
			t.Errorf("%s, without a schema: %s", model, sent)
		}
	}
}
