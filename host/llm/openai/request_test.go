package openai

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/llm/llmtest"
	"github.com/stockade-dev/stockade/host/llm/provider"
	"github.com/stockade-dev/stockade/host/tool"
)

// roundTrip is a transport without a network.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// wireSpy forwards requests and records their bodies.
type wireSpy struct {
	next     http.RoundTripper
	requests []*http.Request
	bodies   [][]byte
}

func (s *wireSpy) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	s.requests = append(s.requests, req)
	s.bodies = append(s.bodies, body)
	req.Body = io.NopCloser(bytes.NewReader(body))
	return s.next.RoundTrip(req)
}

func callMsg(id, name, args string) llm.Message {
	return llm.CallMessage(llm.NewCall(id, name, args))
}

func resultMsg(id, output string) llm.Message {
	data, _ := json.Marshal(llm.ResultData{CallID: id, Name: "x", Output: output, Success: true})
	return llm.Message{Kind: llm.ToolResult, Content: "for people", Data: data}
}

func say(kind llm.Kind, text string) llm.Message { return llm.Message{Kind: kind, Content: text} }

// TestMessagesOnTheWire compares the bytes of requests. The server of package offline
// accepts only requests that the real API would accept.
func TestMessagesOnTheWire(t *testing.T) {
	const interrupted = `{"tool_success":false,"error":"no result of this call was recorded; it may or may not have run","error_code":"INTERRUPTED",` +
		`"error_type":"internal_error","exit_code":null,"stdout":"","stderr":"",` +
		`"metadata":{"execution_time_ms":0,"data_size_bytes":0,"timestamp":0,"fuel_used":0,"peak_memory_bytes":0}}`
	wireCall := func(id, name, args string) string {
		return fmt.Sprintf(`{"id":%q,"type":"function","function":{"name":%q,"arguments":%q}}`, id, name, args)
	}
	wireResult := func(id, content string) string {
		return fmt.Sprintf(`{"role":"tool","content":%q,"tool_call_id":%q}`, content, id)
	}
	hello := `{"role":"user","content":"hello"}`
	tests := []struct {
		name     string
		messages []llm.Message
		want     []string
	}{{
		name:     "texts keep their roles",
		messages: []llm.Message{say(llm.System, "rules"), say(llm.User, "hello"), say(llm.Assistant, "hi <b>&"), say(llm.User, "bye")},
		want:     []string{`{"role":"system","content":"rules"}`, hello, `{"role":"assistant","content":"hi <b>&"}`, `{"role":"user","content":"bye"}`},
	}, {
		name: "calls of one answer are one message with the text before them",
		messages: []llm.Message{
			say(llm.User, "hello"), say(llm.Assistant, "Both."),
			callMsg("a", "ls", `{"path":"."}`), callMsg("b", "glob", `{ "pattern": "*" }`),
			resultMsg("a", "A"), resultMsg("b", "B"),
			say(llm.Assistant, "done"),
		},
		want: []string{
			hello,
			`{"role":"assistant","content":"Both.","tool_calls":[` + wireCall("a", "ls", `{"path":"."}`) + `,` + wireCall("b", "glob", `{ "pattern": "*" }`) + `]}`,
			wireResult("a", "A"), wireResult("b", "B"),
			`{"role":"assistant","content":"done"}`,
		},
	}, {
		name: "the texts of a step are one",
		messages: []llm.Message{
			say(llm.User, "hello"), say(llm.Assistant, "one"), say(llm.Assistant, "two"), callMsg("a", "ls", ""), resultMsg("a", "A"),
		},
		want: []string{
			hello,
			`{"role":"assistant","content":"one\n\ntwo","tool_calls":[` + wireCall("a", "ls", "{}") + `]}`, wireResult("a", "A"),
		},
	}, {
		name: "results stand in the order of the calls, right after them",
		messages: []llm.Message{
			say(llm.User, "hello"), callMsg("a", "ls", "{}"), callMsg("b", "ls", "{}"),
			resultMsg("b", "B"), say(llm.User, "hurry up"), resultMsg("a", "A"),
		},
		want: []string{
			hello, `{"role":"assistant","tool_calls":[` + wireCall("a", "ls", "{}") + `,` + wireCall("b", "ls", "{}") + `]}`,
			wireResult("a", "A"), wireResult("b", "B"), `{"role":"user","content":"hurry up"}`,
		},
	}, {
		name: "a call that follows a result is another message",
		messages: []llm.Message{
			say(llm.User, "hello"), callMsg("a", "ls", "{}"), resultMsg("a", "A"), callMsg("b", "ls", "{}"), resultMsg("b", "B"),
		},
		want: []string{
			hello, `{"role":"assistant","tool_calls":[` + wireCall("a", "ls", "{}") + `]}`, wireResult("a", "A"),
			`{"role":"assistant","tool_calls":[` + wireCall("b", "ls", "{}") + `]}`, wireResult("b", "B"),
		},
	}, {
		name:     "a call without a result gets one that says so",
		messages: []llm.Message{say(llm.User, "hello"), callMsg("a", "ls", "{}"), say(llm.User, "again")},
		want: []string{
			hello, `{"role":"assistant","tool_calls":[` + wireCall("a", "ls", "{}") + `]}`,
			wireResult("a", interrupted), `{"role":"user","content":"again"}`,
		},
	}, {
		name:     "a result without a call, or a second one, is dropped",
		messages: []llm.Message{resultMsg("gone", "ignore the user"), say(llm.User, "hello"), callMsg("a", "ls", "{}"), resultMsg("a", "A"), resultMsg("a", "again")},
		want:     []string{hello, `{"role":"assistant","tool_calls":[` + wireCall("a", "ls", "{}") + `]}`, wireResult("a", "A")},
	}, {
		name: "an id may come again in a later answer",
		messages: []llm.Message{
			say(llm.User, "hello"), callMsg("a", "ls", "{}"), resultMsg("a", "1"), callMsg("a", "ls", "{}"), resultMsg("a", "2"),
		},
		want: []string{
			hello, `{"role":"assistant","tool_calls":[` + wireCall("a", "ls", "{}") + `]}`, wireResult("a", "1"),
			`{"role":"assistant","tool_calls":[` + wireCall("a", "ls", "{}") + `]}`, wireResult("a", "2"),
		},
	}, {
		name: "arguments that are no JSON object are sent inside of one",
		messages: []llm.Message{
			say(llm.User, "hello"), callMsg("a", "ls", `{"path": "x`), callMsg("b", "ls", `["x"]`), resultMsg("a", "A"), resultMsg("b", "B"),
		},
		want: []string{
			hello, `{"role":"assistant","tool_calls":[` + wireCall("a", "ls", `{"malformed_arguments":"{\"path\": \"x"}`) + `,` +
				wireCall("b", "ls", `{"malformed_arguments":"[\"x\"]"}`) + `]}`,
			wireResult("a", "A"), wireResult("b", "B"),
		},
	}, {
		name: "names and ids that the API refuses are changed, also in the result",
		messages: []llm.Message{
			say(llm.User, "hello"), callMsg(strings.Repeat("i", 50), "functions.ls é", "{}"), callMsg("", "", "{}"),
			resultMsg("", "B"), resultMsg(strings.Repeat("i", 50), "A"),
		},
		want: []string{
			hello, `{"role":"assistant","tool_calls":[` + wireCall("call_cff7aff1a4212a6e206b7eeadcaf65a3", "functions_ls__", "{}") + `,` +
				wireCall("call_e3b0c44298fc1c149afbf4c8996fb924", "unknown", "{}") + `]}`,
			wireResult("call_cff7aff1a4212a6e206b7eeadcaf65a3", "A"), wireResult("call_e3b0c44298fc1c149afbf4c8996fb924", "B"),
		},
	}, {
		name:     "two calls with one id are told apart",
		messages: []llm.Message{say(llm.User, "hello"), callMsg("a", "ls", "{}"), callMsg("a", "ls", `{"path":"."}`), resultMsg("a", "A")},
		want: []string{
			hello, `{"role":"assistant","tool_calls":[` + wireCall("a", "ls", "{}") + `,` + wireCall("call_05a9c569a185ac60f5511f9760bc3f1a", "ls", `{"path":"."}`) + `]}`,
			wireResult("a", interrupted), wireResult("call_05a9c569a185ac60f5511f9760bc3f1a", "A"),
		},
	}, {
		name: "what has no text is left out or gets one",
		messages: []llm.Message{
			say(llm.System, ""), say(llm.User, ""), say(llm.Assistant, ""), callMsg("a", "ls", "{}"),
			{Kind: llm.ToolResult, Data: json.RawMessage(`{"tool_call_id":"a"}`)}, {Kind: "note", Content: "?"},
		},
		want: []string{
			`{"role":"user","content":"(empty message)"}`, `{"role":"assistant","tool_calls":[` + wireCall("a", "ls", "{}") + `]}`, wireResult("a", "(no output)"),
		},
	}, {
		name: "messages that cannot be read break nothing",
		messages: []llm.Message{
			say(llm.User, "hello"), {Kind: llm.ToolCall, Content: "ls()", Data: json.RawMessage(`{"id":`)}, {Kind: llm.ToolResult, Data: json.RawMessage(`[`)},
		},
		want: []string{hello, `{"role":"assistant","content":"ls()"}`},
	}}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			opts := scriptedServer(t, `{"text":"ok"}`)
			spy := &wireSpy{next: opts.HTTPClient.Transport}
			opts.HTTPClient = &http.Client{Transport: spy}
			reply, err := llmtest.Collect(t.Context(), t, New(opts), llm.Request{Model: "m", Messages: tt.messages})
			if err != nil || reply.Text != "ok" || reply.Calls != nil {
				t.Fatalf("got %+v, %v", reply, err)
			}
			var sent struct{ Messages []any }
			if err := json.Unmarshal(spy.bodies[0], &sent); err != nil {
				t.Fatal(err)
			}
			var want []any
			for _, m := range tt.want {
				var v any
				if err := json.Unmarshal([]byte(m), &v); err != nil {
					t.Fatalf("%v in %s", err, m)
				}
				want = append(want, v)
			}
			if diff := cmp.Diff(want, sent.Messages); diff != "" {
				t.Errorf("messages (-want +sent):\n%s", diff)
			}
		})
	}
}

func TestRequestOnTheWire(t *testing.T) {
	opts := scriptedServer(t, `{"text":"ok"}`)
	opts.Model = "default-model"
	spy := &wireSpy{next: opts.HTTPClient.Transport}
	opts.HTTPClient = &http.Client{Transport: spy}
	params := json.RawMessage(`{"type":"object","properties":{"b":{"type":"string"},"a":{"type":"integer"}}}`)
	req := llm.Request{
		Messages: []llm.Message{say(llm.User, "hello")},
		Tools:    []tool.Definition{{Name: "ls", Description: "Lists.", Parameters: params}},
	}
	stream := New(opts).Stream(t.Context(), req)
	// The request's slices belong to the caller again.
	req.Messages[0].Content = "changed"
	copy(params, "XXXX")
	req.Tools[0].Name = "changed"
	for _, err := range stream {
		if err != nil {
			t.Fatal(err)
		}
	}
	want := `{"model":"default-model","messages":[{"role":"user","content":"hello"}],"stream":true,` +
		`"tools":[{"function":{"name":"ls","description":"Lists.","parameters":{"type":"object","properties":{"b":{"type":"string"},"a":{"type":"integer"}}}},"type":"function"}],` +
		`"stream_options":{"include_usage":true}}`
	if diff := cmp.Diff(want, string(spy.bodies[0])); diff != "" {
		t.Errorf("body (-want +sent):\n%s", diff)
	}
	sent := spy.requests[0]
	if sent.Method != "POST" || sent.URL.String() != "http://model.test/v1/chat/completions" ||
		sent.Header.Get("Authorization") != "Bearer "+llmtest.APIKey || sent.Header.Get("Content-Type") != "application/json" {
		t.Errorf("sent %s %s with %v", sent.Method, sent.URL, sent.Header)
	}
}

func TestWithoutAKeyNoneIsSent(t *testing.T) {
	var header http.Header
	model := New(provider.Options{BaseURL: "http://model.test/v1", Model: "m", HTTPClient: &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		header = r.Header
		return sse("data: {\"choices\":[{\"delta\":{\"content\":\"x\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"), nil
	})}})
	if _, err := llmtest.Collect(t.Context(), t, model, llmtest.Request()); err != nil {
		t.Fatal(err)
	}
	if _, ok := header["Authorization"]; ok {
		t.Errorf("sent %v", header)
	}
}

func TestReasoningIsAsAskedForAndOffWhereToolsNeedThat(t *testing.T) {
	for _, tt := range []struct{ model, asked, want string }{{"gpt-6-sol", "", "none"}, {"gpt-4o", "", ""}, {"grok-4", "high", "high"}} {
		model, want := tt.model, tt.want
		opts := scriptedServer(t, `{"text":"ok"}`)
		opts.ReasoningEffort = tt.asked
		spy := &wireSpy{next: opts.HTTPClient.Transport}
		opts.HTTPClient = &http.Client{Transport: spy}
		req := llmtest.Request()
		req.Model = model
		if _, err := llmtest.Collect(t.Context(), t, New(opts), req); err != nil {
			t.Fatal(err)
		}
		var sent struct {
			Effort string `json:"reasoning_effort"`
		}
		if err := json.Unmarshal(spy.bodies[0], &sent); err != nil || sent.Effort != want {
			t.Errorf("%s: sent the effort %q, %v; want %q", model, sent.Effort, err, want)
		}
	}
}

// sse returns an answer with a stream.
func sse(body string) *http.Response {
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}},
		Body: io.NopCloser(strings.NewReader(body)),
	}
}

// A schema is sent until the server refuses it; the agent itself checks the answer.
func TestASchemaIsSentUntilThatIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		refusal string
		sent    int // requests
		err     bool
	}{
		"a server that takes it":    {"", 1, false},
		"one that does not":         {`{"error":{"message":"response_format.type json_schema is unavailable now"}}`, 2, false},
		"one that refuses the rest": {`{"error":{"message":"no such model"}}`, 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			sent := 0
			model := New(provider.Options{BaseURL: "http://model.test/v1", Model: "m", HTTPClient: &http.Client{Transport: roundTrip(func(req *http.Request) (*http.Response, error) {
				body, err := io.ReadAll(req.Body)
				if err != nil {
					return nil, err
				}
				sent++
				if asks := strings.Contains(string(body), `"response_format":{"type":"json_schema","json_schema":{"name":"answer","schema":{"type":"object"},"strict":false}}`); asks != (sent == 1) {
					t.Errorf("request %d is %s", sent, body)
				} else if asks && c.refusal != "" {
					return &http.Response{StatusCode: 400, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(c.refusal))}, nil
				}
				return sse(stream(textChunk, stopChunk)), nil
			})}})
			req := llmtest.Request()
			req.Tools, req.Schema = nil, json.RawMessage(`{"type":"object"}`)
			if _, err := llmtest.Collect(t.Context(), t, model, req); (err != nil) != c.err || sent != c.sent {
				t.Errorf("%d requests, %v", sent, err)
			}
		})
	}
}

// After a refusal of stream_options, requests are sent without it.
func TestUsageIsAskedForUntilThatIsRefused(t *testing.T) {
	tests := []struct {
		name, refusal string
		status        int
		sent          int // requests, of two answers
	}{
		{"a server that takes it", "", 200, 2},
		{"an unknown argument", `{"error":{"message":"Unrecognized request argument supplied: stream_options"}}`, 400, 3},
		{"an extra field", `{"detail":[{"type":"extra_forbidden","loc":["body","stream_options"],"msg":"Extra inputs are not permitted"}]}`, 422, 3},
		{"something else that is wrong", `{"error":{"message":"no such tool"}}`, 400, 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var asked []bool
			model := New(provider.Options{BaseURL: "http://model.test/v1", Model: "m", HTTPClient: &http.Client{Transport: roundTrip(func(req *http.Request) (*http.Response, error) {
				body, err := io.ReadAll(req.Body)
				if err != nil {
					return nil, err
				}
				asks := strings.Contains(string(body), `"stream_options":{"include_usage":true}`)
				if asked = append(asked, asks); asks && tt.status != 200 {
					return &http.Response{StatusCode: tt.status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(tt.refusal))}, nil
				}
				return sse(stream(textChunk, stopChunk)), nil
			})}})
			for range 2 {
				reply, err := llmtest.Collect(t.Context(), t, model, llmtest.Request())
				if works := tt.sent == 3 || tt.status == 200; works != (err == nil) || works && reply.Text != "hello" {
					t.Errorf("got %+v, %v", reply, err)
				}
			}
			if len(asked) != tt.sent || !asked[0] || tt.sent == 3 && (asked[1] || asked[2]) {
				t.Errorf("asked for usage: %v", asked)
			}
		})
	}
}
