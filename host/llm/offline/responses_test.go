package offline

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stockade-dev/stockade/host/llm/llmtest"
)

func postResponses(t *testing.T, client *http.Client, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "POST", "http://model.test/v1/responses", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	return do(t, client, req)
}

// TestServerStreamsResponses compares the events with OpenAI's documentation, without the
// fields that depend on the request or the time.
func TestServerStreamsResponses(t *testing.T) {
	line := `{"reasoning":"hmm","text":"Grüße","tool_calls":[{"id":"a","name":"x","arguments":{"p":1}},{"id":"b","name":"y","arguments":"{}"}],` +
		`"chunk_bytes":4,"usage":{"input_tokens":3,"output_tokens":2,"cached_tokens":1}}`
	client := llmtest.Serve(t, NewServer(script(t, line, line), ""))
	const asked = `{"model":"m","input":"hello","include":["reasoning.encrypted_content"],"reasoning":{"summary":"auto"}`
	status, got := postResponses(t, client, asked+`,"stream":true}`)
	if status != 200 {
		t.Fatalf("got %d %s", status, got)
	}
	// A line of want is an event: its type, the item to which it belongs, and its new content.
	const want = `response.created
response.in_progress
response.output_item.added 0 reasoning
response.reasoning_summary_part.added 0
response.reasoning_summary_text.delta 0 hmm
response.reasoning_summary_text.done 0
response.reasoning_summary_part.done 0
response.output_item.done 0 reasoning [hmm] aG1t@m
response.output_item.added 1 message
response.content_part.added 1
response.output_text.delta 1 Grü
response.output_text.delta 1 ße
response.output_text.done 1
response.content_part.done 1
response.output_item.done 1 message [Grüße]
response.output_item.added 2 function_call a x
response.output_item.added 3 function_call b y
response.function_call_arguments.delta 2 {"p"
response.function_call_arguments.delta 3 {}
response.function_call_arguments.delta 2 :1}
response.function_call_arguments.done 2 {"p":1}
response.output_item.done 2 function_call a x {"p":1}
response.function_call_arguments.done 3 {}
response.output_item.done 3 function_call b y {}
response.completed`
	type item struct {
		ID, Type, Name, Arguments string
		CallID                    string `json:"call_id"`
		EncryptedContent          string `json:"encrypted_content"`
		Content, Summary          []struct{ Text string }
	}
	var lines []string
	ids := map[int]string{}
	for i, e := range strings.Split(strings.TrimSuffix(got, "\n\n"), "\n\n") {
		var event struct {
			Type, Delta, Arguments string
			SequenceNumber         int    `json:"sequence_number"`
			ItemID                 string `json:"item_id"`
			OutputIndex            *int   `json:"output_index"`
			Item                   item
			Response               struct {
				Status string
				Output []item
				Usage  json.RawMessage
			}
		}
		head, data, _ := strings.Cut(e, "\ndata: ")
		if err := json.Unmarshal([]byte(data), &event); err != nil || head != "event: "+event.Type || event.SequenceNumber != i {
			t.Fatalf("event %d, %v: %s", i, err, e)
		}
		words := []string{event.Type}
		if n := event.OutputIndex; n != nil {
			if event.Type == "response.output_item.added" {
				ids[*n] = event.Item.ID
			}
			if id := event.ItemID + event.Item.ID; id == "" || id != ids[*n] {
				t.Errorf("event %d is of the item %q, which began as %q", i, id, ids[*n])
			}
			words = append(words, string(rune('0'+*n)))
		}
		words = append(words, event.Item.Type, event.Item.CallID, event.Item.Name)
		for _, p := range append(event.Item.Content, event.Item.Summary...) {
			words = append(words, "["+p.Text+"]")
		}
		words = append(words, event.Item.EncryptedContent, event.Delta, event.Arguments, event.Item.Arguments)
		lines = append(lines, strings.Join(strings.Fields(strings.Join(words, " ")), " "))
		if event.Type == "response.completed" {
			const usage = `{"input_tokens":3,"input_tokens_details":{"cache_write_tokens":0,"cached_tokens":1},"output_tokens":2,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":5}`
			if string(event.Response.Usage) != usage || event.Response.Status != "completed" || len(event.Response.Output) != 4 {
				t.Errorf("it ends with %s", e)
			}
		}
	}
	if diff := cmp.Diff(want, strings.Join(lines, "\n")); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	status, got = postResponses(t, client, asked+`}`)
	if status != 200 || !strings.Contains(got, `"call_id":"a"`) || !strings.Contains(got, `"status":"completed"`) || strings.Contains(got, "event:") {
		t.Errorf("not streamed, got %d %s", status, got)
	}
}

func TestServerRefusesInputThatTheRealOneRefuses(t *testing.T) {
	const (
		user      = `{"role":"user","content":"a"}`
		call      = `{"type":"function_call","call_id":"a","name":"x","arguments":"{}"}`
		output    = `{"type":"function_call_output","call_id":"a","output":"x"}`
		reasoning = `{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"aG1t@m"}`
		said      = `{"type":"message","role":"assistant","phase":"commentary","content":[{"type":"output_text","text":"a"}]}`
	)
	input := func(items ...string) string { return `{"model":"m","input":[` + strings.Join(items, ",") + `]}` }
	tests := []struct {
		name, body, want string // empty: it answers
	}{
		{"a whole conversation", input(user, reasoning, said, reasoning, call, output, user), ""},
		{"a result with an image", input(user, call, strings.Replace(output, `"x"`, `[{"type":"input_text","text":"a"},{"type":"input_image","image_url":"data:image/png;base64,YQ=="}]`, 1)), ""},
		{"not JSON", "{", "not JSON"},
		{"an unknown field", `{"model":"m","input":"a","messages":[]}`, "unknown field"},
		{"no input", `{"model":"m","input":[]}`, "input:"},
		{"what is stored elsewhere", `{"model":"m","input":"a","previous_response_id":"resp_1"}`, "keeps no responses"},
		{"an unknown field of an item", input(`{"role":"user","content":"a","name":"b"}`), "input[0].json: unknown field"},
		{"a call that nothing answers", input(user, call), "no tool output found"},
		{"an answer that nothing called", input(user, output), "no tool call found"},
		{"a call twice", input(user, call, call, output), "used twice"},
		{"a name that is none", input(user, strings.Replace(call, `"x"`, `"x.y"`, 1), output), "does not match"},
		{"reasoning at the end", input(user, reasoning), "required following item"},
		{"reasoning before what it did not lead to", input(user, reasoning, user), "required following item"},
		{"reasoning without a summary", input(user, strings.Replace(reasoning, `"summary":[],`, "", 1), said), "missing required parameter"},
		{"reasoning that is stored elsewhere", input(user, `{"type":"reasoning","id":"rs_1","summary":[]}`, said), "not found"},
		{"reasoning of another model", input(user, strings.Replace(reasoning, "@m", "@n", 1), said), "could not be verified"},
		{"a part of the wrong kind", input(strings.Replace(said, "output_text", "input_text", 1)), "is not one of output_text"},
		{"an image from elsewhere", input(`{"role":"user","content":[{"type":"input_image","image_url":"http://a.test/b.png"}]}`), "no image in the request"},
		{"an unknown role", input(`{"role":"tool","content":"a"}`), "unknown role"},
		{"an unknown item", input(`{"type":"item_reference","id":"msg_1"}`), "knows no items"},
		{"a tool that is none", `{"model":"m","input":"a","tools":[{"type":"function","function":{"name":"x"}}]}`, "unknown field"},
		{"a tool of another kind", `{"model":"m","input":"a","tools":[{"type":"web_search","external_web_access":false}]}`, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			status, got := postResponses(t, llmtest.Serve(t, NewServer(Planner{}, "")), tt.body)
			if tt.want == "" {
				if status != 200 || !strings.Contains(got, "offline model") {
					t.Errorf("got %d %s", status, got)
				}
				return
			}
			var answer struct {
				Error struct{ Message, Type string }
			}
			if err := json.Unmarshal([]byte(got), &answer); err != nil || status != 400 || answer.Error.Type != "invalid_request_error" || !strings.Contains(answer.Error.Message, tt.want) {
				t.Errorf("got %d %s, %v", status, got, err)
			}
		})
	}
}
