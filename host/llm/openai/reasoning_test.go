package openai

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/llm/llmtest"
	"github.com/stockade-dev/stockade/host/tool"
)

func TestReasoningGoesBackInTheFieldInWhichItCame(t *testing.T) {
	raw := func(chunks ...string) string {
		line, _ := json.Marshal(map[string]string{"raw": stream(chunks...)})
		return string(line)
	}
	call := toolCalls(`{"index":0,"id":"a","function":{"name":"glob","arguments":"{}"}}`)
	tests := []struct {
		name, first string
		model       string // that is asked then
		then        []string
	}{
		{"as DeepSeek names it", `{"reasoning":"I should look.","text":"I look.","tool_calls":[{"id":"a","name":"glob"}],"chunk_bytes":4}`, "test-model",
			[]string{`{"text":"Two.","expect":["\"reasoning_content\":\"I should look.\"","I look."]}`}},
		{"as OpenRouter names it", raw(`{"choices":[{"delta":{"role":"assistant","content":"","reasoning":"I should "}}]}`, `{"choices":[{"delta":{"content":"","reasoning":"look."}}]}`, call, toolsChunk), "test-model",
			[]string{`{"text":"Two.","expect":["\"reasoning\":\"I should look.\""],"expect_not":["reasoning_content"]}`}},
		{"as LiteLLM has it signed", raw(`{"choices":[{"delta":{"reasoning_content":"I should ","thinking_blocks":[{"type":"thinking","thinking":"I should "}]}}]}`,
			`{"choices":[{"delta":{"reasoning_content":"look.","thinking_blocks":[{"type":"thinking","thinking":"look."}]}}]}`,
			`{"choices":[{"delta":{"reasoning_content":"","thinking_blocks":[{"type":"thinking","thinking":"","signature":"c2ln"}]}}]}`,
			`{"choices":[{"delta":{"reasoning_content":"And count.","thinking_blocks":[{"type":"thinking","thinking":"And count.","signature":"c2ln2"}]}}]}`, call, toolsChunk), "test-model",
			[]string{`{"text":"Two.","expect":["\"thinking_blocks\":[{\"type\":\"thinking\",\"thinking\":\"I should look.\",\"signature\":\"c2ln\"},{\"type\":\"thinking\",\"thinking\":\"And count.\",\"signature\":\"c2ln2\"}]"],"expect_not":["reasoning_content"]}`}},
		{"not to another model", `{"reasoning":"I should look.","tool_calls":[{"id":"a","name":"glob"}]}`, "other",
			[]string{`{"text":"Two.","expect_not":["I should look."]}`}},
		{"not to a server that does not take it", `{"reasoning":"I should look.","tool_calls":[{"id":"a","name":"glob"}]}`, "test-model",
			[]string{`{"status":400,"error":{"message":"property 'reasoning_content' is unsupported"}}`, `{"text":"Two.","expect_not":["I should look."]}`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			opts := scriptedServer(t, append([]string{tt.first}, tt.then...)...)
			model, req := New(opts), llmtest.Request()
			reply, err := llmtest.Collect(t.Context(), t, model, req)
			if err != nil {
				t.Fatal(err)
			}
			if p := reply.Parts[0]; p.Type != llm.ReasoningPart || p.Text != "I should look." {
				t.Errorf("got %+v", reply)
			}
			req.Messages = append(append(req.Messages, reply.Messages()...), llm.ResultMessage("a", "glob", tool.Result{Output: tool.Text("a.c b.c")}))
			req.Model = tt.model
			if reply, err := llmtest.Collect(t.Context(), t, model, req); err != nil || reply.Text != "Two." {
				t.Errorf("got %+v, %v", reply, err)
			}
		})
	}
}

func TestReasoningIsSentAsItIsKept(t *testing.T) {
	thought := func(provider, model, data string) llm.Part {
		return llm.Part{Type: llm.ReasoningPart, Text: "h\"m", ProviderData: &llm.ProviderData{Provider: provider, Model: model, Data: json.RawMessage(data)}}
	}
	const message, reasoned = `{"role":"assistant","content":"hi"}`, `{"role":"assistant","content":"hi","reasoning":"h\"m\n\nh\"m"}`
	tests := []struct {
		name  string
		parts []llm.Part
		want  string
	}{
		{"all of one field", []llm.Part{thought("openai", "m", `{"field":"reasoning"}`), thought("openai", "m", `{"field":"reasoning"}`), thought("openai", "m", `{"field":"reasoning_content"}`)}, reasoned},
		{"not of another provider, or model", []llm.Part{thought("xai", "m", `{"field":"reasoning"}`), thought("openai", "n", `{"field":"reasoning"}`)}, message},
		{"in no other field", []llm.Part{thought("openai", "m", `{"field":"content"}`), thought("openai", "m", `"x`), {Type: llm.ReasoningPart, Text: "hm"}}, message},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := &llm.Entry{Role: llm.RoleAssistant, Parts: append(tt.parts, llm.Part{Type: llm.TextPart, Text: "hi"})}
			got := string(over("").encodeEntry(e, "m", true))
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("message (-want +got):\n%s", diff)
			}
		})
	}
}
