package google

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/llm/llmtest"
	"github.com/stockade-dev/stockade/host/llm/provider"
	"github.com/stockade-dev/stockade/host/tool"
)

// ask lets the server answer with a body, unchanged.
func ask(t *testing.T, status int, body string) (llm.Reply, error) {
	t.Helper()
	line := tool.Marshal(map[string]any{"raw": body, "status": status})
	req := llmtest.Request()
	req.Model = "gemini-3.8-flash"
	req.Tools = append(req.Tools, definitions...)
	return llmtest.Collect(t.Context(), t, New(options(t, newServer(t, string(line)))), req)
}

// events returns a stream of candidates, each with the JSON of its parts. The last one has
// the reason to stop.
func events(finish string, parts ...string) string {
	var out strings.Builder
	for i, p := range parts {
		out.WriteString(`data: {"candidates":[{"content":{"role":"model","parts":[` + p + `]}`)
		if i == len(parts)-1 {
			out.WriteString(`,"finishReason":"` + finish + `"`)
		}
		out.WriteString("}]}\r\n\r\n")
	}
	return out.String()
}

func TestAnswers(t *testing.T) {
	signature := func(s string, n int) *llm.ProviderData {
		return &llm.ProviderData{Provider: "google", Model: "gemini-3.8-flash", Data: tool.Marshal(signatureData{s, n})}
	}
	text := func(s string, k *llm.ProviderData) llm.Part {
		return llm.Part{Type: llm.TextPart, Text: s, ProviderData: k}
	}
	thought := func(s string, k *llm.ProviderData) llm.Part {
		return llm.Part{Type: llm.ReasoningPart, Text: s, ProviderData: k}
	}
	for _, c := range []struct {
		name string
		body string
		want llm.Reply
	}{
		{"the signature of a text comes with its last piece", events("STOP", `{"text":"I think, "}`, `{"text":"so.","thoughtSignature":"c2ln"}`),
			llm.Reply{Text: "I think, so.", Finish: llm.FinishStop, Parts: []llm.Part{text("I think, so.", signature("c2ln", 3))}}},
		{"the signature of a text comes behind it", events("STOP", `{"text":"I think."}`, `{"text":"","thoughtSignature":"c2ln"}`),
			llm.Reply{Text: "I think.", Finish: llm.FinishStop, Parts: []llm.Part{text("I think.", signature("c2ln", 0))}}},
		{"a signature ends a text", events("STOP", `{"text":"A","thoughtSignature":"YQ=="},{"text":"B","thoughtSignature":"Yg=="}`),
			llm.Reply{Text: "AB", Finish: llm.FinishStop, Parts: []llm.Part{text("A", signature("YQ==", 1)), text("B", signature("Yg==", 1))}}},
		{"a signature of no text at all is nobody's", events("STOP", `{"functionCall":{"id":"a","name":"glob","args":{}}}`, `{"thoughtSignature":"c2ln"}`),
			llm.Reply{Calls: []llm.CallData{llm.NewCall("a", "glob", "{}")}, Finish: llm.FinishTools}},
		{"thoughts have signatures, too", events("STOP", `{"text":"Hmm.","thought":true,"thoughtSignature":"c2ln"}`, `{"text":"Yes."}`),
			llm.Reply{Text: "Yes.", Finish: llm.FinishStop, Parts: []llm.Part{thought("Hmm.", signature("c2ln", 4)), text("Yes.", nil)}}},
		{"of calls in parallel the first is signed", events("STOP", `{"functionCall":{"name":"glob","args":{"a":1}},"thoughtSignature":"c2ln"},{"functionCall":{"name":"glob"}}`),
			llm.Reply{Calls: []llm.CallData{llm.NewCall("made_1", "glob", `{"a":1}`), llm.NewCall("made_2", "glob", "{}")}, Finish: llm.FinishTools,
				Parts: []llm.Part{{Type: llm.CallPart, ProviderData: signature("c2ln", 0)}, {Type: llm.CallPart}}}},
		{"names of tools are ours again", events("STOP", `{"functionCall":{"id":"a","name":"default_api:glob","args":null}},{"functionCall":{"id":"b","name":"_7zip-list"}},{"functionCall":{"id":"c","name":"no_such"}}`),
			llm.Reply{Calls: []llm.CallData{llm.NewCall("a", "glob", "{}"), llm.NewCall("b", "7zip-list", "{}"), llm.NewCall("c", "no_such", "{}")}, Finish: llm.FinishTools}},
		{"a server of others has a word of its own", events("FUNCTION_CALL", `{"functionCall":{"id":"a","name":"glob"}}`), llm.Reply{Calls: []llm.CallData{llm.NewCall("a", "glob", "{}")}, Finish: llm.FinishTools}},
		{"an older model says in each event that it stops", events("STOP", `{"text":"a"}`) + events("STOP", `{"text":"b"}`), llm.Reply{Text: "ab", Finish: llm.FinishStop}},
		{"what goes with a text is left out", events("STOP", `{"executableCode":{"code":"1"}},{"text":"1"},{"inlineData":{"mimeType":"image/png","data":"AA=="}}`), llm.Reply{Text: "1", Finish: llm.FinishStop}},
		{"no parts", events("STOP", `{"text":"a"}`) + `data: {"candidates":[{"content":{"parts":null}},{"content":null}]}` + "\n\n" + `data: {"candidates":null}` + "\n\n", llm.Reply{Text: "a", Finish: llm.FinishStop}},
		{"another candidate is left out", `data: {"candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":"STOP"},{"index":1,"content":{"parts":[{"text":"b"}]}}]}` + "\n\n", llm.Reply{Text: "a", Finish: llm.FinishStop}},
		{"a server of another API says that it is done", events("STOP", `{"text":"a"}`) + "data: [DONE]\n\n", llm.Reply{Text: "a", Finish: llm.FinishStop}},
		{"an answer whose only end is [DONE]", strings.Replace(events("", `{"text":"a"}`, `{"functionCall":{"id":"a","name":"glob","args":{}}}`), `]}`, `]},"finishReason":"FINISH_REASON_UNSPECIFIED"`, 1) + `data: {"usageMetadata":{"promptTokenCount":9}}` + "\n\ndata: [DONE]\n\n",
			llm.Reply{Text: "a", Calls: []llm.CallData{llm.NewCall("a", "glob", "{}")}, Finish: llm.FinishTools, Usage: llm.Usage{InputTokens: 9}}},
		{"a server that does not stream", `[{"candidates":[{"content":{"parts":[{"text":"a"}]}}]},` + "\r\n" + `{"candidates":[{"content":{"parts":[{"text":"b"}]},"finishReason":"STOP"}]}]`, llm.Reply{Text: "ab", Finish: llm.FinishStop}},
		{"an answer that was cut", events("MAX_TOKENS", `{"text":"and so"}`), llm.Reply{Text: "and so", Finish: llm.FinishLength}},
		{"one that repeats what others have written", events("RECITATION", `{"text":"Once upon"}`), llm.Reply{Text: "Once upon", Finish: llm.FinishFilter}},
		{"the tokens are those of the last event", `data: {"usageMetadata":{"promptTokenCount":9}}` + "\n\n" +
			`data: {"candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":10,"toolUsePromptTokenCount":1,"cachedContentTokenCount":8,"candidatesTokenCount":3,"thoughtsTokenCount":"4","totalTokenCount":-1}}` + "\n\n",
			llm.Reply{Text: "a", Finish: llm.FinishStop, Usage: llm.Usage{InputTokens: 11, OutputTokens: 7, CachedTokens: 8, ReasoningTokens: 4}}},
		{"numbers that are none cost nothing", `data: {"candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":-1,"candidatesTokenCount":1e99,"thoughtsTokenCount":{}}}` + "\n\n",
			llm.Reply{Text: "a", Finish: llm.FinishStop}},
	} {
		t.Run(c.name, func(t *testing.T) {
			reply, err := ask(t, http.StatusOK, c.body)
			if err != nil {
				t.Fatalf("%+v", err)
			}
			if diff := cmp.Diff(c.want, reply); diff != "" {
				t.Errorf("reply (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFailures(t *testing.T) {
	failure := func(status, message, details string) string {
		return `{"error":{"code":1,"message":"` + message + `","status":"` + status + `","details":[` + details + `]}}`
	}
	const quota = `{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaId":"GenerateRequestsPer%Per Project"}]}`
	const retry = `{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34.5s"}`
	for _, c := range []struct {
		name   string
		status int
		body   string
		want   llm.ProviderError // Message and Hint are parts of the error's
	}{
		{"a key that is not valid", 400, failure("INVALID_ARGUMENT", "API key not valid.", `{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID"}`),
			llm.ProviderError{Status: 400, Code: "API_KEY_INVALID", Message: "API key not valid.", Hint: "GEMINI_API_KEY"}},
		{"a key without permission", 403, "[" + failure("PERMISSION_DENIED", "no", "") + "]", llm.ProviderError{Status: 403, Code: "PERMISSION_DENIED", Hint: "GEMINI_API_KEY"}},
		{"a conversation that is too long", 400, failure("INVALID_ARGUMENT", "The input token count (9) exceeds the maximum number of tokens allowed (8).", ""),
			llm.ProviderError{Status: 400, Code: llm.ContextExceeded, Hint: "does not fit"}},
		{"a model that there is not", 404, failure("NOT_FOUND", "models/x is not found", ""), llm.ProviderError{Status: 404, Code: "NOT_FOUND", Hint: "name of the model"}},
		{"a quota of a minute", 429, failure("RESOURCE_EXHAUSTED", "Quota exceeded", strings.Replace(quota, "%", "Minute", 1)+","+retry),
			llm.ProviderError{Status: 429, Code: "RESOURCE_EXHAUSTED", Retryable: true, RetryAfter: 34500 * time.Millisecond}},
		{"a quota of a day", 429, failure("RESOURCE_EXHAUSTED", "Quota exceeded", strings.Replace(quota, "%", "Day", 1)+","+retry),
			llm.ProviderError{Status: 429, Code: "RESOURCE_EXHAUSTED", Hint: "until tomorrow"}},
		{"no quota", 429, failure("RESOURCE_EXHAUSTED", "Quota exceeded, limit: 0, model: x", retry), llm.ProviderError{Status: 429, Code: "RESOURCE_EXHAUSTED", Hint: "has none for it"}},
		{"delays that are none", 429, failure("RESOURCE_EXHAUSTED", "Quota exceeded", `{"retryDelay":"-3s"},{"retryDelay":"soon"},{"retryDelay":"99999999999999999999h"}`),
			llm.ProviderError{Status: 429, Code: "RESOURCE_EXHAUSTED", Retryable: true}},
		{"a model that is overloaded", 503, failure("UNAVAILABLE", "The model is overloaded.", ""), llm.ProviderError{Status: 503, Code: "UNAVAILABLE", Retryable: true, Message: "overloaded"}},
		{"details of another form", 503, `{"error":{"message":"oops","status":"\u001b[2J","details":"none"}}`, llm.ProviderError{Status: 503, Message: "oops", Retryable: true}},
		{"an error in the stream", 200, events("", `{"text":"a"}`) + "data: " + `{"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}` + "\n\n",
			llm.ProviderError{Status: 503, Code: "UNAVAILABLE", Message: "overloaded", Retryable: true}},
		{"a quota in the stream", 200, "data: " + strings.Replace(failure("RESOURCE_EXHAUSTED", "Quota exceeded", retry), `"code":1`, `"code":429`, 1) + "\n\n",
			llm.ProviderError{Status: 429, Code: "RESOURCE_EXHAUSTED", Retryable: true, RetryAfter: 34500 * time.Millisecond}},
		{"a request that is blocked", 200, "data: " + `{"promptFeedback":{"blockReason":"SAFETY\u001b[2J"},"usageMetadata":{"promptTokenCount":1}}` + "\n\n",
			llm.ProviderError{Message: "the request was blocked: SAFETY [2J", Hint: "word it differently"}},
		{"a call that is broken", 200, strings.Replace(events("MALFORMED_FUNCTION_CALL", ``), `"finishReason"`, `"finishMessage":"Malformed function call: print(","finishReason"`, 1),
			llm.ProviderError{Message: "MALFORMED_FUNCTION_CALL: Malformed function call: print(", Retryable: true}},
		{"a call that nobody offered", 200, events("UNEXPECTED_TOOL_CALL", ``), llm.ProviderError{Message: "UNEXPECTED_TOOL_CALL", Retryable: true}},
		{"a reason that nobody knows", 200, events("INVALID", `{"text":"a"}`), llm.ProviderError{Message: "the model broke off: INVALID"}},
		{"nothing is said", 200, events("STOP", `{"text":"Hmm.","thought":true}`, `{"text":""}`), llm.ProviderError{Message: "the answer of the model is empty", Retryable: true}},
		{"no end but [DONE], and nothing is said", 200, events("", `{"text":"Hmm.","thought":true}`) + "data: [DONE]\n\n", llm.ProviderError{Message: "ended early", Retryable: true}},
		{"no end", 200, events("", `{"text":"a"}`), llm.ProviderError{Message: "ended early", Retryable: true}},
		{"more parts than an answer has", 200, events("STOP", `{"text":"a"}`+strings.Repeat(",{}", 1000)), llm.ProviderError{Message: "not in the format", Retryable: true}},
		{"parts that are none", 200, events("STOP", `{"text":1}`), llm.ProviderError{Message: "not in the format", Retryable: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := ask(t, c.status, c.body)
			got, ok := errors.AsType[*llm.ProviderError](err)
			if !ok {
				t.Fatalf("got %v", err)
			}
			if !strings.Contains(got.Message, c.want.Message) || !strings.Contains(got.Hint, c.want.Hint) || strings.ContainsRune(got.Message+got.Code, 0x1b) {
				t.Errorf("got %+v", got)
			}
			got.Message, got.Hint = c.want.Message, c.want.Hint
			c.want.Provider = "google"
			if diff := cmp.Diff(&c.want, got); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}

func TestModels(t *testing.T) {
	var got *http.Request
	opts := options(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r
		_ = json.NewEncoder(w).Encode(map[string]any{"models": []map[string]any{
			{"name": "models/gemini-3.8-flash", "inputTokenLimit": 1_048_576, "outputTokenLimit": 65_536, "supportedGenerationMethods": []string{"generateContent", "countTokens"}},
			{"name": "models/gemini-embedding-001", "supportedGenerationMethods": []string{"embedContent"}},
			{"name": "tunedModels/mine"},
		}})
	}))
	opts.BaseURL += "/v1beta/"
	names, err := New(opts).Models(t.Context())
	if diff := cmp.Diff([]string{"gemini-3.8-flash"}, names); diff != "" || err != nil {
		t.Errorf("(-want +got):\n%s%v", diff, err)
	}
	if got.URL.String() != "/v1beta/models?pageSize=1000" || got.Header.Get("X-Goog-Api-Key") != llmtest.APIKey {
		t.Errorf("it asked for %s %v", got.URL, got.Header)
	}
	for name, want := range map[string]int{"gemini-3.8-flash": 1_048_576, "models/gemini-3.8-flash": 1_048_576, "gemini-embedding-001": 0} {
		if n := llm.ContextSizeOf(t.Context(), New(opts), llm.Request{Model: name}); n != want {
			t.Errorf("%s: the context has %d tokens, want %d", name, n, want)
		}
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// FuzzAnswers checks that a conversation can continue after any answer.
func FuzzAnswers(f *testing.F) {
	for _, body := range []string{
		events("STOP", `{"text":"Hmm.","thought":true,"thoughtSignature":"c2ln"}`, `{"text":"I look.","thoughtSignature":"c2ln"}`, `{"functionCall":{"id":"a","name":"7zip","args":{"a":["\ud800",1e999]}},"thoughtSignature":"c2ln"},{"functionCall":{"id":"a","name":""}}`),
		events("MALFORMED_FUNCTION_CALL", `{"functionCall":{"args":"x"}}`), events("SAFETY", ``), `data: {"promptFeedback":{"blockReason":"SAFETY"}}` + "\n\n",
		`data: {"error":{"code":429,"message":"` + llmtest.APIKey + `","details":[{"retryDelay":"3s"}]}}`, `[{"error":{"status":"X","details":[{"reason":"API_KEY_INVALID"}]}}]`, "<html>", "data: {",
	} {
		f.Add(body, 200)
		f.Add(body, 429)
	}
	signatures := regexp.MustCompile(`"thoughtSignature":"(\\.|[^"\\])*"`)
	f.Fuzz(func(t *testing.T, body string, status int) {
		model := New(provider.Options{
			APIKey: llmtest.APIKey, MaxStreamBytes: 1 << 16,
			HTTPClient: &http.Client{Transport: roundTrip(func(*http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}, nil
			})},
		})
		req := llmtest.Request()
		req.Model = "gemini-3.8-flash"
		reply, err := llmtest.Collect(t.Context(), t, model, req) // which checks the contract
		if err != nil {
			failure, ok := errors.AsType[*llm.ProviderError](err)
			if !ok || failure.Message == "" || failure.RetryAfter < 0 || strings.Contains(fmt.Sprintf("%+v", failure), llmtest.APIKey) {
				t.Errorf("got %+v", err)
			}
			return
		}
		messages := append(req.Messages, reply.Messages()...)
		for _, c := range reply.Calls {
			messages = append(messages, resultMsg(c.ID, c.Function.Name, "x"))
		}
		for _, name := range []string{"gemini-2.5-flash", "gemini-3.8-flash"} {
			sent := bytes.Join(model.body(name, model.transcript.Entries(messages), nil, nil), nil)
			sent = signatures.ReplaceAll(sent, []byte(`"thoughtSignature":"`+placeholderSignature+`"`)) // which are the server's own affair
			s := &server{}
			next, err := s.read(sent)
			if err == nil {
				err = s.check(name, next)
			}
			if err != nil {
				t.Errorf("%s: %v\n%s", name, err, sent)
			}
		}
	})
}
