package ollama

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/llm/llmtest"
	"github.com/stockade-dev/stockade/host/tool"
)

// raw returns a line of a script that answers with this body.
func raw(body string) string { return string(tool.Marshal(map[string]string{"raw": body})) }

func TestAnswers(t *testing.T) {
	const end = "\n" + `{"message":{"role":"assistant","content":""},"done":true,"done_reason":"stop","prompt_eval_count":20,"eval_count":3}` + "\n"
	usage := llm.Usage{InputTokens: 20, OutputTokens: 3}
	for name, c := range map[string]struct {
		body string
		want llm.Reply
	}{
		"a text": {`{"message":{"content":"a"},"done":false}` + "\r\n\n" + `{"message":{"content":"b"}}` + end, llm.Reply{Text: "ab", Finish: llm.FinishStop, Usage: usage}},
		"all in one line, without an end": {`{"message":{"content":"a","thinking":"t","tool_calls":[{"id":"x","function":{"index":0,"name":"n","arguments":{"b":1.0,"a":10000000000000000001}}}]},"done":true,"eval_count":-5}`,
			llm.Reply{Text: "a", Finish: llm.FinishTools, Calls: []llm.CallData{llm.NewCall("x", "n", `{"b":1.0,"a":10000000000000000001}`)},
				Parts: []llm.Part{{Type: llm.ReasoningPart, Text: "t"}, {Type: llm.TextPart, Text: "a"}, {Type: llm.CallPart}}}},
		"calls without ids and with the same index": {`{"message":{"tool_calls":[{"function":{"index":0,"name":"n","arguments":{}}},{"function":{"index":0,"name":"n","arguments":null}}]}}` + "\n" +
			`{"message":{"tool_calls":[{"function":{"name":"n","arguments":"{\"a\":"}}]}}` + end,
			llm.Reply{Finish: llm.FinishTools, Usage: usage, Calls: []llm.CallData{llm.NewCall("made_1", "n", "{}"), llm.NewCall("made_2", "n", "{}"), llm.NewCall("made_3", "n", `{"a":`)}}},
		"an end that is [DONE] alone": {`{"message":{"content":"a"}}` + "\n[DONE]\n", llm.Reply{Text: "a", Finish: llm.FinishStop}},
		"fields of other types": {`{"message":{"content":["a"],"thinking":7,"tool_calls":null},"done_reason":null}` + end, llm.Reply{Finish: llm.FinishStop, Usage: usage,
			Parts: []llm.Part{{Type: llm.ReasoningPart, Text: "7"}}}},
		"nothing after the end is read": {`{"message":{"content":"a"}}` + end + `{"error":"late"}`, llm.Reply{Text: "a", Finish: llm.FinishStop, Usage: usage}},
		"cut by its length":             {`{"message":{"content":"a","tool_calls":[{"function":{"name":"n"}}]}}` + "\n" + `{"done":true,"done_reason":"length"}`, llm.Reply{Text: "a", Finish: llm.FinishLength, Calls: []llm.CallData{llm.NewCall("made_1", "n", "{}")}}},
	} {
		reply, err := llmtest.Collect(t.Context(), t, New(options(t, scripted{}, raw(c.body))), llmtest.Request())
		if diff := cmp.Diff(c.want, reply); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
}

// TestFailures checks Ollama's errors, and the hints that are added.
func TestFailures(t *testing.T) {
	status := func(status, message string) string {
		return `{"status":` + status + `,"raw":` + string(tool.Marshal(string(tool.Marshal(map[string]string{"error": message})))) + `}`
	}
	const text = `{"message":{"content":"a"}}` + "\n"
	for name, c := range map[string]struct {
		show      string
		line      string // "": it is not asked for an answer
		message   string
		hint      string
		retryable bool
	}{
		"a model that is not there":     {`404 {"error":"model 'test-model' not found"}`, "", "model 'test-model' not found", "ollama pull test-model", false},
		"an older version's words":      {"", status("404", `model "test-model" not found, try pulling it first`), "try pulling", "ollama pull test-model", false},
		"no tools":                      {"", status("400", "registry.ollama.ai/library/test-model:latest does not support tools"), "does not support tools", "ollama show test-model", false},
		"a model for embeddings":        {"", status("400", `"test-model" does not support chat`), "does not support chat", "ollama show test-model", false},
		"too little memory":             {"", status("500", "model requires more system memory (9.1 GiB) than is available (3.0 GiB)"), "9.1 GiB", "lower model.context_tokens", false},
		"a server that is busy":         {"", status("503", "server busy, please try again.  maximum pending requests exceeded"), "server busy", "", true},
		"a runner that has died":        {"", raw(text + `{"error":"an error was encountered while running the model: unexpected EOF"}`), "unexpected EOF", "", true},
		"too long, in the stream":       {"", raw(text + `{"error":"request (9000 tokens) exceeds the available context size (8192 tokens)"}`), "9000 tokens", "model.context_tokens", false},
		"a model of the cloud":          {"", `{"status":401,"raw":"{\"error\":\"unauthorized\",\"signin_url\":\"https://x\"}"}`, "unauthorized", "ollama signin", false},
		"a load, and no answer":         {"", raw(`{"message":{},"done":true,"done_reason":"load"}`), "it only reported that the model was loaded", "", true},
		"an object that is no answer":   {"", raw(text + `[]` + "\n"), "not in the format", "", true},
		"more calls than an answer has": {"", raw(`{"message":{"tool_calls":[` + strings.Repeat(`{},`, llm.MaxCalls) + `{}]}}`), "more than 128 tool calls", "", false},
	} {
		_, err := llmtest.Collect(t.Context(), t, New(options(t, scripted{show: c.show}, c.line)), llmtest.Request())
		got, ok := errors.AsType[*llm.ProviderError](err)
		if !ok || !strings.Contains(got.Message, c.message) || !strings.Contains(got.Hint, c.hint) || c.hint == "" && got.Hint != "" || got.Retryable != c.retryable {
			t.Errorf("%s: got %+v, %v", name, got, err)
		}
	}
}
