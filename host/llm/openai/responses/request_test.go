package responses

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/llm/llmtest"
	"github.com/stockade-dev/stockade/host/llm/provider"
	"github.com/stockade-dev/stockade/host/tool"
)

func TestAConversationBecomesItems(t *testing.T) {
	const (
		first  = `{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"gAAA-1"}`
		second = `{"type":"reasoning","id":"rs_2","summary":[],"encrypted_content":"gAAA-2"}`
	)
	thought := func(data string) llm.Part {
		return llm.Part{Type: llm.ReasoningPart, Text: "hm", ProviderData: kept(data)}
	}
	ofOther := llm.Part{Type: llm.ReasoningPart, Text: "hm", ProviderData: &llm.ProviderData{Provider: "openai-responses", Model: "other", Data: json.RawMessage(first)}}
	call := func(id string, parts ...llm.Part) llm.Message {
		m := llm.CallMessage(llm.NewCall(id, "glob", `{"a":1}`))
		m.Parts = parts
		return m
	}
	result := llm.ResultMessage("a", "glob", tool.Result{Output: tool.Text("x")})
	const (
		userItem   = `{"type":"message","role":"user","content":"hello"}`
		saidItem   = `{"type":"message","role":"assistant","content":"I look."}`
		callItem   = `{"type":"function_call","call_id":"a","name":"glob","arguments":"{\"a\":1}"}`
		resultItem = `{"type":"function_call_output","call_id":"a","output":"{\"tool_success\":true,\"result\":{\"output\":\"x\"},\"metadata\":{\"execution_time_ms\":0}}"}`
	)
	user := llm.Message{Kind: llm.User, Content: "hello"}
	said := llm.Message{Kind: llm.Assistant, Content: "I look."}
	tests := []struct {
		name     string
		messages []llm.Message
		want     []string
	}{
		{"a turn", []llm.Message{{Kind: llm.System, Content: "rules"}, user, said, call("a"), result, said},
			[]string{`{"type":"message","role":"system","content":"rules"}`, userItem, saidItem, callItem, resultItem, saidItem}},
		{"reasoning stands before what it led to, as it came", []llm.Message{
			user, {Kind: llm.Assistant, Content: "I look.", Parts: []llm.Part{thought(first)}}, call("a", thought(second)), result},
			[]string{userItem, first, saidItem, second, callItem, resultItem}},
		{"reasoning that led to nothing is left out", []llm.Message{user, {Kind: llm.Assistant, Parts: []llm.Part{thought(first)}}, user}, []string{userItem, userItem}},
		{"reasoning of another model is left out", []llm.Message{user, call("a", ofOther, llm.Part{Type: llm.ReasoningPart, Text: "not kept"}), result}, []string{userItem, callItem, resultItem}},
		{"what is kept and is no reasoning is left out", []llm.Message{user, call("a", thought(`{"type":"message"}`), thought(`"x`)), result}, []string{userItem, callItem, resultItem}},
		{"the phase of a text goes back", []llm.Message{user, {Kind: llm.Assistant, Content: "I look.", Parts: []llm.Part{{Type: llm.TextPart, ProviderData: kept(`{"phase":"commentary"}`)}}}},
			[]string{userItem, `{"type":"message","role":"assistant","content":"I look.","phase":"commentary"}`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := New(provider.Options{})
			var transcript llm.Transcript
			pieces := provider.EncodeEntries(transcript.Entries(tt.messages), "", func(e *llm.Entry) []byte { return m.encodeEntry(e, "test-model") })
			got := ""
			for _, p := range pieces {
				got += string(p)
			}
			if diff := cmp.Diff(strings.Join(tt.want, ",\n"), strings.ReplaceAll(got, "},{\"type\"", "},\n{\"type\"")); diff != "" {
				t.Errorf("items (-want +got):\n%s", diff)
			}
		})
	}
}

// TestReasoningGoesBack plays a turn against a server that verifies its encrypted reasoning.
func TestReasoningGoesBack(t *testing.T) {
	m := scripted(t,
		`{"reasoning":"I should look.","text":"I look.","tool_calls":[{"id":"a","name":"glob","arguments":{"pattern":"*"}}],`+
			`"expect":["\"store\":false","\"include\":[\"reasoning.encrypted_content\"]","\"parallel_tool_calls\":true","\"strict\":false","\"effort\":\"low\"","\"prompt_cache_key\":\""]}`,
		`{"text":"Two.","expect":["\"encrypted_content\":\"SSBzaG91bGQgbG9vay4=@test-model\"","\"text\":\"I should look.\""]}`,
		`{"text":"Two.","expect":["I look."],"expect_not":["\"encrypted_content\":","I should look."]}`)
	m.Options.ReasoningEffort = "low"
	req := llmtest.Request()
	reply, err := llmtest.Collect(t.Context(), t, m, req)
	if err != nil || reply.Parts[0].Text != "I should look." {
		t.Fatalf("got %+v, %v", reply, err)
	}
	req.Messages = append(req.Messages, reply.Messages()...)
	req.Messages = append(req.Messages, llm.ResultMessage("a", "glob", tool.Result{Output: tool.Text("a.c b.c")}))
	for _, model := range []string{"test-model", "other-model"} {
		req.Model = model
		if reply, err := llmtest.Collect(t.Context(), t, m, req); err != nil || reply.Text != "Two." {
			t.Errorf("%s: got %+v, %v", model, reply, err)
		}
	}
}

func TestARequestDoesWithoutWhatIsRefused(t *testing.T) {
	const encrypted, summary = `"\"include\":["`, `"\"summary\":\"auto\""`
	refuse := func(status int, code, message string) string {
		line, _ := json.Marshal(map[string]any{"status": status, "error": map[string]string{"message": message, "code": code, "type": "invalid_request_error"}})
		return string(line)
	}
	tests := []struct {
		name, reasoning string
		script          []string
		want            string // the reply, or the error
	}{
		{"of a model that does not think, twice", "", []string{
			refuse(400, "unsupported_parameter", "Unsupported parameter: 'reasoning.summary' is not supported with this model."),
			refuse(400, "", "Encrypted content is not supported with this model."),
			`{"text":"yes","expect_not":[` + encrypted + `,"\"reasoning\":"]}`,
			`{"text":"yes","expect_not":[` + encrypted + `,"\"reasoning\":"]}`,
		}, "yes"},
		{"a summary for those who have not shown who they are", "high", []string{
			refuse(400, "unsupported_value", "Your organization must be verified to generate reasoning summaries."),
			`{"text":"yes","expect":[` + encrypted + `,"\"reasoning\":{\"effort\":\"high\"}"],"expect_not":[` + summary + `]}`,
			`{"text":"yes","expect_not":[` + summary + `]}`,
		}, "yes"},
		{"reasoning that the server cannot read, but not what comes then", "", []string{
			refuse(400, "invalid_encrypted_content", "The encrypted content gAAA could not be verified."),
			`{"reasoning":"new","text":"yes","expect":[` + encrypted + `],"expect_not":["gAAA"]}`,
			`{"text":"yes","expect":["bmV3@test-model"],"expect_not":["gAAA"]}`,
		}, "yes"},
		{"reasoning that the server has not stored", "", []string{
			refuse(404, "", "Item with id 'rs_1' not found. Items are not persisted when `store` is set to false."),
			`{"text":"yes","expect_not":["gAAA"]}`,
			`{"text":"yes","expect_not":["gAAA"]}`,
		}, "yes"},
		{"a key of a cache that the model has not", "", []string{
			refuse(400, "", "litellm.UnsupportedParamsError: anthropic does not support parameters: ['prompt_cache_key'], for model=claude"),
			`{"text":"yes","expect":[` + encrypted + `,` + summary + `],"expect_not":["prompt_cache_key"]}`,
			`{"text":"yes","expect_not":["prompt_cache_key"]}`,
		}, "yes"},
		{"a schema that the server does not know", "", []string{
			`{"status":400,"raw":"{\"error\":{\"message\":\"Unsupported parameter: 'text.format' is not supported with this model.\"}}","expect":["\"text\":{\"format\":{\"type\":\"json_schema\",\"name\":\"answer\",\"schema\":{\"type\":\"object\"}}}"]}`,
			`{"text":"yes","expect_not":["json_schema"]}`,
			`{"text":"yes","expect_not":["json_schema"]}`,
		}, "yes"},
		{"but not without the effort that was asked for", "high", []string{
			refuse(400, "unsupported_value", "Unsupported value: 'reasoning.effort' does not support 'high' with this model."),
			refuse(400, "unsupported_value", "Unsupported value: 'reasoning.effort' does not support 'high' with this model."),
		}, "'reasoning.effort' does not support"},
		{"and not for another reason", "", []string{refuse(400, "", "no such model"), refuse(400, "", "no such model")}, "no such model"},
		{"a server without this API is told apart", "", []string{`{"status":404,"raw":"Not Found"}`, `{"status":404,"raw":"Not Found"}`}, "needs the provider openai"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := scripted(t, tt.script...)
			m.Options.ReasoningEffort = tt.reasoning
			req := llmtest.Request()
			req.Messages = append(req.Messages, llm.Message{Kind: llm.Assistant, Content: "Well.", Parts: []llm.Part{
				{Type: llm.ReasoningPart, ProviderData: kept(`{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"gAAA@test-model"}`)},
			}}, llm.Message{Kind: llm.User, Content: "And?"})
			if strings.HasPrefix(tt.name, "a schema") {
				req.Schema = json.RawMessage(`{"type":"object"}`)
			}
			for range 2 {
				reply, err := llmtest.Collect(t.Context(), t, m, req)
				got := reply.Text
				if failure, ok := errors.AsType[*llm.ProviderError](err); ok {
					got = failure.Message + " " + failure.Hint
				}
				if !strings.Contains(got, tt.want) {
					t.Errorf("got %+v, %v", reply, err)
				}
				req.Messages = append(append(req.Messages, reply.Messages()...), llm.Message{Kind: llm.User, Content: "And?"})
			}
		})
	}
}

func TestTheKeyOfTheCacheIsOfTheConversation(t *testing.T) {
	key := func(texts ...string) string {
		messages := []llm.Message{{Kind: llm.System, Content: "rules"}}
		for _, text := range texts {
			messages = append(messages, llm.Message{Kind: llm.User, Content: text})
		}
		var transcript llm.Transcript
		return cacheKey(transcript.Entries(messages))
	}
	if a, b, other := key("hello"), key("hello", "more"), key("bye"); a != b || a == other || len(a) != 32 {
		t.Errorf("got %s, %s and %s", a, b, other)
	}
}
