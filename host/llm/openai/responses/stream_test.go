package responses

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/llm/llmtest"
	"github.com/stockade-dev/stockade/host/llm/provider"
)

// raw returns a line of a script with events, each on its own line.
func raw(events string) string {
	var body strings.Builder
	for e := range strings.Lines(strings.TrimSpace(events)) {
		fmt.Fprintf(&body, "data: %s\n\n", strings.TrimSpace(e))
	}
	line, _ := json.Marshal(map[string]string{"raw": body.String()})
	return string(line)
}

const completed = `{"type":"response.completed","response":{"status":"completed","output":[],"usage":{"input_tokens":37,"input_tokens_details":{"cached_tokens":5,"cache_write_tokens":3},"output_tokens":11,"output_tokens_details":{"reasoning_tokens":7},"total_tokens":48}}}`

var usage = llm.Usage{InputTokens: 37, OutputTokens: 11, CachedTokens: 5, CacheWriteTokens: 3, ReasoningTokens: 7}

func kept(data string) *llm.ProviderData {
	return &llm.ProviderData{Provider: "openai-responses", Model: "test-model", Data: json.RawMessage(data)}
}

// The streams follow OpenAI's published examples and recordings of OpenAI's servers,
// shortened. Names mark the streams of other servers.
func TestEventsBecomeAReply(t *testing.T) {
	const look = `{"type":"response.output_item.added","output_index":1,"item":{"id":"fc_1","type":"function_call","status":"in_progress","arguments":"","call_id":"call_1","name":"glob"}}`
	tests := []struct {
		name, events string
		want         llm.Reply
	}{{
		name: "a text with all of its events",
		events: `{"type":"response.created","sequence_number":0,"response":{"id":"resp_1","status":"in_progress","output":[],"usage":null}}
{"type":"response.in_progress","sequence_number":1,"response":{"id":"resp_1","status":"in_progress","output":[]}}
{"type":"response.output_item.added","output_index":0,"item":{"id":"msg_1","type":"message","status":"in_progress","role":"assistant","content":[]}}
{"type":"response.content_part.added","item_id":"msg_1","output_index":0,"content_index":0,"part":{"type":"output_text","text":"","annotations":[]}}
{"type":"response.output_text.delta","item_id":"msg_1","output_index":0,"content_index":0,"delta":"Hi ","obfuscation":"AbC"}
{"type":"response.output_text.delta","item_id":"msg_1","output_index":0,"content_index":0,"delta":"there!"}
{"type":"response.output_text.done","item_id":"msg_1","output_index":0,"content_index":0,"text":"Hi there!"}
{"type":"response.content_part.done","item_id":"msg_1","output_index":0,"content_index":0,"part":{"type":"output_text","text":"Hi there!","annotations":[]}}
{"type":"response.output_item.done","output_index":0,"item":{"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"Hi there!","annotations":[]}]}}
` + completed,
		want: llm.Reply{Text: "Hi there!", Finish: llm.FinishStop, Usage: usage},
	}, {
		name: "reasoning is kept as it came, in order, before what it led to",
		events: `{"type":"response.output_item.added","output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"gAAA-half"}}
{"type":"response.reasoning_summary_text.delta","item_id":"rs_1","output_index":0,"summary_index":0,"delta":"**Look**"}
{"type":"response.reasoning_summary_text.delta","item_id":"rs_1","output_index":0,"summary_index":1,"delta":"**Count**"}
{"type":"response.output_item.done","output_index":0,"item":{"id":"rs_1","type":"reasoning","status":null,"content":[],"summary":[{"type":"summary_text","text":"**Look**"},{"type":"summary_text","text":"**Count**"}],"encrypted_content":"gAAA-1"}}
` + look + `
{"type":"response.function_call_arguments.delta","item_id":"fc_1","output_index":1,"delta":"{}"}
{"type":"response.output_item.done","output_index":2,"item":{"id":"rs_2","type":"reasoning","summary":[],"encrypted_content":"gAAA-2"}}
{"type":"response.output_item.done","output_index":3,"item":{"id":"fc_2","type":"function_call","arguments":"{\"a\":1}","call_id":"call_2","name":"glob"}}
` + completed,
		want: llm.Reply{
			Calls: []llm.CallData{llm.NewCall("call_1", "glob", "{}"), llm.NewCall("call_2", "glob", `{"a":1}`)},
			Parts: []llm.Part{
				{Type: llm.ReasoningPart, Text: "**Look**\n\n**Count**", ProviderData: kept(`{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"**Look**"},{"type":"summary_text","text":"**Count**"}],"encrypted_content":"gAAA-1"}`)},
				{Type: llm.CallPart},
				{Type: llm.ReasoningPart, ProviderData: kept(`{"type":"reasoning","id":"rs_2","summary":[],"encrypted_content":"gAAA-2"}`)},
				{Type: llm.CallPart},
			},
			Finish: llm.FinishTools, Usage: usage,
		},
	}, {
		name: "two calls that come at once stay apart",
		events: look + `
{"type":"response.output_item.added","output_index":2,"item":{"id":"fc_2","type":"function_call","arguments":"","call_id":"call_2","name":"file_read"}}
{"type":"response.function_call_arguments.delta","item_id":"fc_2","output_index":2,"delta":"{\"path\":"}
{"type":"response.function_call_arguments.delta","item_id":"fc_1","output_index":1,"delta":"{\"pattern\":"}
{"type":"response.function_call_arguments.delta","item_id":"fc_2","output_index":2,"delta":"\"b\"}"}
{"type":"response.function_call_arguments.delta","item_id":"fc_1","output_index":1,"delta":"\"a\"}"}
{"type":"response.function_call_arguments.done","item_id":"fc_1","output_index":1,"arguments":"{\"pattern\":\"a\"}"}
{"type":"response.output_item.done","output_index":1,"item":{"id":"fc_1","type":"function_call","arguments":"{\"pattern\":\"a\"}","call_id":"call_1","name":"glob"}}
` + completed,
		want: llm.Reply{
			Calls:  []llm.CallData{llm.NewCall("call_1", "glob", `{"pattern":"a"}`), llm.NewCall("call_2", "file_read", `{"path":"b"}`)},
			Finish: llm.FinishTools, Usage: usage,
		},
	}, {
		name: "the phase of a text is kept, and what follows is another one",
		events: `{"type":"response.output_text.delta","output_index":0,"delta":"Let me see."}
{"type":"response.output_item.done","output_index":0,"item":{"type":"message","phase":"commentary","role":"assistant","content":[{"type":"output_text","text":"Let me see."}]}}
{"type":"response.output_text.delta","output_index":1,"delta":"Two."}
{"type":"response.output_item.done","output_index":1,"item":{"type":"message","phase":"final_answer","role":"assistant","content":[{"type":"output_text","text":"Two."}]}}
` + completed,
		want: llm.Reply{
			Text: "Let me see.Two.",
			Parts: []llm.Part{
				{Type: llm.TextPart, Text: "Let me see.", ProviderData: kept(`{"phase":"commentary"}`)},
				{Type: llm.TextPart, Text: "Two.", ProviderData: kept(`{"phase":"final_answer"}`)},
			},
			Finish: llm.FinishStop, Usage: usage,
		},
	}, {
		name: "a refusal is a text",
		events: `{"type":"response.refusal.delta","item_id":"msg_1","output_index":0,"content_index":0,"delta":"I can't "}
{"type":"response.refusal.delta","item_id":"msg_1","output_index":0,"content_index":0,"delta":"do that."}
{"type":"response.refusal.done","item_id":"msg_1","output_index":0,"content_index":0,"refusal":"I can't do that."}
` + completed,
		want: llm.Reply{Text: "I can't do that.", Finish: llm.FinishStop, Usage: usage},
	}, {
		name: "an answer that is too long says so",
		events: `{"type":"response.output_text.delta","output_index":0,"delta":"and"}
{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"usage":null}}`,
		want: llm.Reply{Text: "and", Finish: llm.FinishLength},
	}, {
		name: "of a server that ends all answers alike, the status says so",
		events: `{"type":"response.output_text.delta","output_index":0,"delta":"and"}
{"type":"response.completed","response":{"status":"incomplete"}}`,
		want: llm.Reply{Text: "and", Finish: llm.FinishLength},
	}, {
		name:   "an answer that was filtered says so",
		events: `{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"content_filter"}}}`,
		want:   llm.Reply{Finish: llm.FinishFilter},
	}, {
		name: "ids that change with each event do not matter where there is an index",
		events: `{"type":"response.output_item.added","output_index":0,"item":{"id":"x1","type":"function_call","arguments":"","call_id":"call_1","name":"glob"}}
{"type":"response.function_call_arguments.delta","item_id":"x2","output_index":0,"delta":"{}"}
{"type":"response.output_item.done","output_index":0,"item":{"id":"x3","type":"function_call","arguments":"{}","call_id":"call_1","name":"glob"}}
` + completed,
		want: llm.Reply{Calls: []llm.CallData{llm.NewCall("call_1", "glob", "{}")}, Finish: llm.FinishTools, Usage: usage},
	}, {
		name: "of a server that sends items in the end only, these are the answer",
		events: `{"type":"response.output_item.done","item":{"type":"reasoning","id":"rs_1","summary":[],"content":[{"type":"reasoning_text","text":"hm"}]}}
{"type":"response.output_item.done","item":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"I "},{"type":"output_text","text":"look."}]}}
{"type":"response.output_item.done","item":{"type":"function_call","call_id":"call_1","name":"glob","arguments":"{}"}}
{"type":"response.output_item.done","item":{"type":"function_call","call_id":"call_2","name":"glob","arguments":"{}"}}
` + completed,
		want: llm.Reply{
			Text:  "I look.",
			Calls: []llm.CallData{llm.NewCall("call_1", "glob", "{}"), llm.NewCall("call_2", "glob", "{}")},
			Parts: []llm.Part{
				{Type: llm.ReasoningPart, Text: "hm", ProviderData: kept(`{"type":"reasoning","id":"rs_1","summary":[],"content":[{"type":"reasoning_text","text":"hm"}]}`)},
				{Type: llm.TextPart, Text: "I look."}, {Type: llm.CallPart}, {Type: llm.CallPart},
			},
			Finish: llm.FinishTools, Usage: usage,
		},
	}, {
		name: "of a server that sends the response only, that is the answer",
		events: `{"type":"response.completed","response":{"output":[{"type":"message","id":"msg_1","role":"assistant","content":[{"type":"output_text","text":"one"}]},
			{"type":"message","id":"msg_2","role":"assistant","content":[{"type":"output_text","text":"two"}]}]}}`,
		want: llm.Reply{Text: "one\n\ntwo", Finish: llm.FinishStop},
	}, {
		name: "a server that does not stream",
		events: `RAW{"id":"resp_1","object":"response","status":"completed","error":null,"output":[{"type":"message","id":"msg_1","role":"assistant","content":[{"type":"output_text","text":"Hi"}]},
			{"type":"function_call","id":"fc_1","call_id":"call_1","name":"glob","arguments":"{\"a\":1}"}],"usage":{"input_tokens":3,"output_tokens":4}}`,
		want: llm.Reply{Text: "Hi", Calls: []llm.CallData{llm.NewCall("call_1", "glob", `{"a":1}`)}, Finish: llm.FinishTools, Usage: llm.Usage{InputTokens: 3, OutputTokens: 4}},
	}, {
		name: "an end that is [DONE] alone, behind a text and a whole call",
		events: `{"type":"response.output_text.delta","output_index":0,"delta":"Hi"}
` + look + `
{"type":"response.function_call_arguments.delta","item_id":"fc_1","output_index":1,"delta":"{}"}
[DONE]`,
		want: llm.Reply{Text: "Hi", Calls: []llm.CallData{llm.NewCall("call_1", "glob", `{}`)}, Finish: llm.FinishTools},
	}, {
		name: "of raw reasoning and a summary there is one",
		events: `{"type":"response.reasoning_text.delta","item_id":"rs_1","delta":"hm"}
{"type":"response.reasoning_summary_text.delta","item_id":"rs_1","summary_index":0,"delta":"He thinks."}
{"type":"response.output_text.delta","item_id":"msg_1","delta":"Hi"}
` + completed,
		want: llm.Reply{Text: "Hi", Parts: []llm.Part{{Type: llm.ReasoningPart, Text: "hm"}, {Type: llm.TextPart, Text: "Hi"}}, Finish: llm.FinishStop, Usage: usage},
	}, {
		name: "what is unknown or odd is ignored",
		events: `{"type":"response.queued"}
{"type":7}
{"type":"response.output_item.added","output_index":"x","item":7}
{"type":"response.web_search_call.searching","output_index":0,"item_id":"ws_1"}
{"type":"response.output_item.done","output_index":0,"item":{"type":"web_search_call","id":"ws_1"}}
{"type":"response.function_call_arguments.delta","output_index":9,"delta":"{}"}
{"type":"response.output_text.delta","output_index":1,"delta":{"text":"no"}}
{"type":"response.output_text.delta","output_index":1,"delta":"Hi"}
{"type":"response.completed","response":{"output":7,"usage":{"input_tokens":"3","output_tokens":-1}}}`,
		want: llm.Reply{Text: "Hi", Finish: llm.FinishStop, Usage: llm.Usage{InputTokens: 3}},
	}}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			events := strings.ReplaceAll(tt.events, "\n\t\t\t", " ")
			line := raw(events)
			if whole, ok := strings.CutPrefix(events, "RAW"); ok {
				line = string(marshal(map[string]string{"raw": whole}))
			}
			reply, err := llmtest.Collect(t.Context(), t, scripted(t, line), llmtest.Request())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, reply); diff != "" {
				t.Errorf("reply (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEventsThatAreErrors(t *testing.T) {
	tests := []struct {
		name, events string
		want         llm.ProviderError // Message and Hint are parts of the error's
	}{
		{"an error", `{"type":"error","code":"server_error","message":"Something went wrong","param":null,"sequence_number":1}`,
			llm.ProviderError{Code: "server_error", Message: "Something went wrong", Retryable: true}},
		{"an error in an error", `{"type":"error","sequence_number":2,"error":{"type":"insufficient_quota","code":"insufficient_quota","message":"You exceeded your current quota","param":null}}`,
			llm.ProviderError{Code: "insufficient_quota", Message: "exceeded", Hint: "no credit"}},
		{"a response that failed", `{"type":"response.failed","response":{"id":"resp_1","status":"failed","error":{"code":"rate_limit_exceeded","message":"Slow down"}}}`,
			llm.ProviderError{Code: "rate_limit_exceeded", Message: "Slow down", Retryable: true}},
		{"a prompt that is refused", `{"type":"response.failed","response":{"error":{"code":"invalid_prompt","message":"flagged"}}}`,
			llm.ProviderError{Code: "invalid_prompt", Message: "flagged"}},
		{"a failure without a word", `{"type":"response.failed","response":null}`, llm.ProviderError{Message: "broke off", Retryable: true}},
		{"a conversation that is too long", `{"type":"error","code":"context_length_exceeded","message":"too long"}`,
			llm.ProviderError{Code: "context_length_exceeded", Message: "too long", Hint: "start a new one"}},
		{"an error of a proxy", `{"error":{"message":"upstream is gone","code":502}}`, llm.ProviderError{Status: 502, Code: "502", Message: "upstream", Retryable: true}},
		{"[DONE] behind half a call", `{"type":"response.output_item.added","output_index":1,"item":{"type":"function_call","arguments":"","call_id":"call_1","name":"glob"}}
[DONE]`, llm.ProviderError{Message: "ended early", Retryable: true}},
		{"half an answer", `{"type":"response.output_text.delta","output_index":0,"delta":"and"}`, llm.ProviderError{Message: "ended early", Retryable: true}},
		{"no JSON", "{]", llm.ProviderError{Message: "not in the format", Retryable: true}},
		{"too many calls", strings.Repeat(`{"type":"response.output_item.added","item":{"type":"function_call","name":"x","id":"N"}}`+"\n", llm.MaxCalls+1),
			llm.ProviderError{Code: "stream_too_large", Message: "tool calls"}},
		{"too many items", strings.Repeat(`{"type":"response.output_item.done","item":{"type":"x"}}`+"\n", maxItems+1),
			llm.ProviderError{Code: "stream_too_large", Message: "items"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			n := 0
			events := ""
			for line := range strings.Lines(tt.events) {
				n++
				events += strings.Replace(line, `"N"`, fmt.Sprintf(`"%d"`, n), 1)
			}
			_, err := llmtest.Collect(t.Context(), t, scripted(t, raw(events)), llmtest.Request())
			got, ok := errors.AsType[*llm.ProviderError](err)
			if !ok || got.Status != tt.want.Status || got.Code != tt.want.Code || got.Retryable != tt.want.Retryable ||
				!strings.Contains(got.Message, tt.want.Message) || !strings.Contains(got.Hint, tt.want.Hint) {
				t.Errorf("got %+v, want %+v", err, tt.want)
			}
		})
	}
}

func FuzzEvents(f *testing.F) {
	f.Add(`{"type":"response.output_item.added","output_index":0,"item":{"id":"x1","type":"function_call","arguments":"","call_id":"call_1","name":"glob"}}` + "\n" + completed)
	f.Add(`{"type":"response.output_item.done","item":{"type":"reasoning","summary":[{"text":"a"}],"encrypted_content":"x"}}` + "\n" + completed)
	f.Fuzz(func(t *testing.T, events string) {
		d := decoder{m: New(provider.Options{}), model: "m", yield: func(llm.Delta) bool { return true }}
		assembler := &llm.Assembler{}
		d.yield = func(delta llm.Delta) bool { return assembler.Add(delta) == nil }
		for line := range strings.Lines(events) {
			var e event
			if json.Unmarshal([]byte(line), &e) == nil {
				if _, err := d.event(e, []byte(line)); err != nil || d.stopped {
					break
				}
			}
		}
		for _, p := range assembler.Reply().Parts {
			if p.ProviderData != nil && !json.Valid(p.ProviderData.Data) {
				t.Errorf("it keeps what is no JSON: %q", p.ProviderData.Data)
			}
		}
	})
}
