package ollama

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/llm/llmtest"
	"github.com/stockade-dev/stockade/host/llm/provider"
	"github.com/stockade-dev/stockade/host/tool"
)

var record = flag.String("record", "", "base URL of an Ollama on which to record testdata anew; it gets some tiny models whose names begin with stockade-")

const recordings = "testdata/recorded.json"

// recording is one request to a real Ollama, and its answer.
type recording struct {
	Case    string          `json:"case"`
	Request string          `json:"request"`
	Body    json.RawMessage `json:"body,omitempty"`
	Status  int             `json:"status"`
	Answer  string          `json:"answer"`
}

const (
	// goTemplate ends with the token that begins an answer. After results it is another token.
	goTemplate = `{{ if .Tools }}{{ range .Tools }}{{ . }}{{ end }}{{ end }}{{ $last := "" }}{{ range .Messages }}[{{ .Role }} {{ .ToolName }} {{ .ToolCallID }}]` +
		`{{ if .Thinking }}<think>{{ .Thinking }}</think>{{ end }}{{ .Content }}{{ if .ToolCalls }}<tool_call>{{ range .ToolCalls }}{"name": "{{ .Function.Name }}", "arguments": {{ .Function.Arguments }}}{{ end }}</tool_call>{{ end }}` +
		`{{ $last = .Role }}{{ end }}{{ if eq $last "tool" }}<|say|>{{ else }}<|call|>{{ end }}`
	plainTemplate = `{{ range .Messages }}[{{ .Role }}]{{ .Content }}{{ end }}<|say|>`
	// jinja is a template in the model's file. llama.cpp finds the calls with it; Ollama
	// does not use it.
	jinja = `{%- if tools %}<tools>{% for tool in tools %}{{ tool | tojson }}{% endfor %}</tools>{% endif %}{% for message in messages %}[{{ message.role }}]{{ message.content }}` +
		`{% if message.tool_calls %}{% for tc in message.tool_calls %}<tool_call>{"name": "{{ tc.function.name }}", "arguments": {{ tc.function.arguments | tojson }}}</tool_call>{% endfor %}{% endif %}` +
		`{% if message.role == 'tool' %}<tool_response>{% endif %}{% endfor %}{% if add_generation_prompt %}{% if messages[-1].role == 'tool' %}<|say|>{% else %}<|call|>{% endif %}{% endif %}`
)

var models = map[string]struct{ template, chat string }{
	"stockade-call":  {template: goTemplate},
	"stockade-calls": {template: strings.ReplaceAll(goTemplate, "<|call|>", "<|calls|>")},
	"stockade-think": {template: strings.NewReplacer("<|call|>", "<|think|>", "<|say|>", "<|think|>").Replace(goTemplate)},
	"stockade-say":   {template: plainTemplate},
	"stockade-loop":  {template: strings.ReplaceAll(plainTemplate, "<|say|>", "<|loop|>")},
	"stockade-jinja": {chat: jinja},
}

// TestRecorded replays the answers of Ollama 0.33.0-rc2, over llama.cpp b11549, to exactly
// these requests. tinyModel determines the answers within one turn.
func TestRecorded(t *testing.T) {
	glob := tool.Definition{Name: "glob", Description: "Finds files.", Parameters: json.RawMessage(
		`{"type":"object","properties":{"pattern":{"type":"string"},"limit":{"type":"integer"},"a":{"type":"number"},"path":{"type":"string"}}}`)}
	odd := glob
	odd.Parameters = json.RawMessage(`{"type":"object","properties":{"pattern":true,"limit":{"type":7}}}`)
	user := func(text string, parts ...llm.Part) []llm.Message {
		return []llm.Message{{Kind: llm.System, Content: "You work here."}, {Kind: llm.User, Content: text, Parts: parts}}
	}
	const said = "There are two files: Grüße 世界 <&>"
	call := func(arguments string) llm.CallData { return llm.NewCall("", "glob", arguments) }
	var all []recording
	if *record == "" {
		data, err := os.ReadFile(recordings)
		if err == nil {
			err = json.Unmarshal(data, &all)
		}
		if err != nil {
			t.Fatal(err)
		}
	} else {
		makeModels(t)
	}
	for _, c := range []struct {
		name, model string
		context     int
		tools       []tool.Definition
		messages    []llm.Message
		want        []llm.Reply
		err         llm.ProviderError
	}{
		{name: "a call and its result", model: "stockade-call", tools: []tool.Definition{glob}, messages: user("Which files?"), want: []llm.Reply{
			{Calls: []llm.CallData{call(`{"a":1.5,"limit":3,"pattern":"*.c"}`)}, Finish: llm.FinishTools, Usage: llm.Usage{OutputTokens: 11}},
			{Text: said, Finish: llm.FinishStop, Usage: llm.Usage{OutputTokens: 10}}}},
		{name: "a text and two calls", model: "stockade-calls", tools: []tool.Definition{glob}, messages: user("Which files?"), want: []llm.Reply{
			{Text: "I look.\n", Calls: []llm.CallData{call(`{"pattern":"*.h"}`), call(`{"path":"src/"}`)}, Finish: llm.FinishTools, Usage: llm.Usage{OutputTokens: 9}},
			{Text: said, Finish: llm.FinishStop, Usage: llm.Usage{OutputTokens: 10}}}},
		{name: "a template of llama.cpp", model: "stockade-jinja", tools: []tool.Definition{glob}, messages: user("Which files?"), want: []llm.Reply{
			{Calls: []llm.CallData{call(`{"a":1.5,"limit":3,"pattern":"*.c"}`)}, Finish: llm.FinishTools, Usage: llm.Usage{OutputTokens: 11}},
			{Text: said, Finish: llm.FinishStop, Usage: llm.Usage{OutputTokens: 10}}}},
		{name: "reasoning, which is sent back", model: "stockade-think", messages: append(user("Think."), llm.Message{Kind: llm.Assistant, Content: "Yes.", Parts: []llm.Part{{Type: llm.ReasoningPart, Text: "Hm."}}},
			llm.Message{Kind: llm.User, Content: "Again."}), want: []llm.Reply{
			{Text: "It is fine.", Parts: []llm.Part{{Type: llm.ReasoningPart, Text: "I must look at it."}, {Type: llm.TextPart, Text: "It is fine."}}, Finish: llm.FinishStop, Usage: llm.Usage{OutputTokens: 9}}}},
		{name: "an answer that the context ends", model: "stockade-loop", context: 256, messages: user(strings.Repeat("w", 204)), want: []llm.Reply{{Text: strings.Repeat("on and", 9), Finish: llm.FinishLength, Usage: llm.Usage{OutputTokens: 18}}}},
		{name: "a schema that Ollama refuses as it is", model: "stockade-call", tools: []tool.Definition{odd}, messages: user("Which files?"), want: []llm.Reply{
			{Calls: []llm.CallData{call(`{"a":1.5,"limit":3,"pattern":"*.c"}`)}, Finish: llm.FinishTools, Usage: llm.Usage{OutputTokens: 11}},
			{Text: said, Finish: llm.FinishStop, Usage: llm.Usage{OutputTokens: 10}}}},
		{name: "an image that the model cannot see", model: "stockade-say", messages: user("Look.", llm.Part{Type: llm.ImagePart, Mime: "image/png", Data: []byte("no image")}),
			want: []llm.Reply{{Text: said, Finish: llm.FinishStop, Usage: llm.Usage{OutputTokens: 10}}}},
		{name: "a conversation that is too long", model: "stockade-say", context: 256, messages: user(strings.Repeat("word ", 80)),
			err: llm.ProviderError{Status: 400, Code: "context_length_exceeded", Message: "request (594 tokens) exceeds", Hint: "model.context_tokens"}},
		{name: "a model without tools", model: "stockade-say", tools: []tool.Definition{glob}, messages: user("Which files?"),
			err: llm.ProviderError{Status: 400, Message: "does not support tools", Hint: "`ollama show stockade-say`"}},
		{name: "a model that is not there", model: "stockade-none", messages: user("Hello?"), err: llm.ProviderError{Status: 404, Message: "not found", Hint: "`ollama pull stockade-none`"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			tape := &tape{t: t, name: c.name, all: &all}
			defer tape.done()
			m := New(provider.Options{BaseURL: cmp.Or(*record, Defaults.BaseURL), ContextTokens: c.context, HTTPClient: &http.Client{Transport: tape}})
			messages := c.messages
			for _, want := range c.want {
				reply, err := llmtest.Collect(t.Context(), t, m, llm.Request{Model: c.model, Messages: messages, Tools: c.tools})
				if err != nil {
					t.Fatal(err)
				}
				if reply.Usage.InputTokens < 10 || reply.Usage.InputTokens > 2000 {
					t.Errorf("it read %d tokens", reply.Usage.InputTokens)
				}
				messages = append(messages, reply.Messages()...)
				for i, call := range reply.Calls {
					messages = append(messages, llm.ResultMessage(call.ID, call.Function.Name, tool.Result{Output: tool.Text("x.c")}))
					reply.Calls[i].ID, reply.Calls[i].Function.Arguments = "", sorted(call.Function.Arguments)
				}
				reply.Usage.InputTokens = 0
				if diff := gocmp.Diff(want, reply); diff != "" {
					t.Errorf("reply (-want +got):\n%s", diff)
				}
			}
			if c.want != nil {
				return
			}
			_, err := llmtest.Collect(t.Context(), t, m, llm.Request{Model: c.model, Messages: messages, Tools: c.tools})
			if got, ok := errors.AsType[*llm.ProviderError](err); !ok || got.Status != c.err.Status || got.Code != c.err.Code || got.Retryable || !strings.Contains(got.Message, c.err.Message) || !strings.Contains(got.Hint, c.err.Hint) {
				t.Errorf("got %+v", err)
			}
		})
	}
	if *record != "" && !t.Failed() {
		if err := os.WriteFile(recordings, append(bytes.ReplaceAll(tool.Marshal(all), []byte("},{\"case\""), []byte("},\n{\"case\"")), '\n'), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// sorted returns an object with sorted keys: Ollama changes their order where it finds
// calls itself.
func sorted(object string) string {
	var fields map[string]any
	if json.Unmarshal([]byte(object), &fields) != nil {
		return object
	}
	return string(tool.Marshal(fields))
}

// tape is a transport that replays a recording, or that records the traffic with a real server.
type tape struct {
	t    *testing.T
	name string
	all  *[]recording
}

func (p *tape) RoundTrip(r *http.Request) (*http.Response, error) {
	got := recording{Case: p.name, Request: r.Method + " " + r.URL.Path}
	if r.Body != nil {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		got.Body = body
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	if *record != "" {
		resp, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			return nil, err
		}
		defer resp.Body.Close()
		answer, err := io.ReadAll(resp.Body)
		if err != nil {
			return nil, err
		}
		got.Status, got.Answer = resp.StatusCode, strings.TrimSpace(string(answer))
		var show map[string]json.RawMessage
		if r.URL.Path == "/api/show" && json.Unmarshal(answer, &show) == nil {
			for _, long := range []string{"license", "modelfile", "template", "tensors"} {
				delete(show, long) // which nobody reads, and the second holds paths
			}
			got.Answer = string(tool.Marshal(show))
		}
		*p.all = append(*p.all, got)
		return p.respond(r, got), nil
	}
	if len(*p.all) == 0 || (*p.all)[0].Case != p.name {
		return nil, fmt.Errorf("no answer is recorded to %s %s", got.Request, got.Body)
	}
	want := (*p.all)[0]
	*p.all = (*p.all)[1:]
	if want.Request != got.Request || !bytes.Equal(want.Body, got.Body) {
		p.t.Errorf("it sent %s %s, and an answer is recorded to %s %s", got.Request, got.Body, want.Request, want.Body)
	}
	return p.respond(r, want), nil
}

func (p *tape) respond(r *http.Request, x recording) *http.Response {
	return &http.Response{StatusCode: x.Status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(x.Answer)), Request: r}
}

// done reports recorded requests that were not sent.
func (p *tape) done() {
	for *record == "" && len(*p.all) > 0 && (*p.all)[0].Case == p.name {
		p.t.Errorf("it did not send %s", (*p.all)[0].Request)
		*p.all = (*p.all)[1:]
	}
}

// makeModels makes the models of the test on the server whose answers are recorded.
func makeModels(t *testing.T) {
	t.Helper()
	post := func(path string, body []byte) {
		resp, err := http.Post(*record+path, "application/json", bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if answer, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode >= 300 {
			t.Fatalf("%s: %d %s %v", path, resp.StatusCode, answer, err)
		}
	}
	for name, m := range models {
		file := tinyModel(m.chat)
		sum := sha256.Sum256(file)
		digest := "sha256:" + hex.EncodeToString(sum[:])
		post("/api/blobs/"+digest, file)
		post("/api/create", tool.Marshal(map[string]any{"model": name, "files": map[string]string{"model.gguf": digest}, "template": m.template, "stream": false}))
	}
}
