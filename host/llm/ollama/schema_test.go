package ollama

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/llm/provider"
)

func TestTheSchemaOfAnAnswerIsSent(t *testing.T) {
	m := New(provider.Options{})
	w := &contextWindow{numCtx: 8192}
	messages := provider.EncodeEntries(m.transcript.Entries([]llm.Message{{Kind: llm.User, Content: "go"}}), "", m.wireEntry)
	sent := bytes.Join(w.body("qwen3", nil, []byte(`{"type":"object"}`), messages), nil)
	if !json.Valid(sent) || !strings.Contains(string(sent), `"format":{"type":"object"},"messages":`) {
		t.Errorf("sent %s", sent)
	}
}
