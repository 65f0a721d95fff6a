package openai

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/llm/llmtest"
	"github.com/stockade-dev/stockade/host/llm/provider"
)

// over returns a model whose server answers each request with the body.
func over(body string) *Model {
	return New(provider.Options{
		APIKey: llmtest.APIKey, BaseURL: "http://model.test/v1", Model: "m",
		HTTPClient: &http.Client{Transport: roundTrip(func(*http.Request) (*http.Response, error) { return sse(body), nil })},
	})
}

// stream returns an event stream of the chunks.
func stream(chunks ...string) string {
	var b strings.Builder
	for _, c := range chunks {
		b.WriteString("data: " + c + "\n\n")
	}
	return b.String() + "data: [DONE]\n\n"
}

// toolCalls returns a chunk with the pieces.
func toolCalls(pieces ...string) string {
	return `{"choices":[{"index":0,"delta":{"tool_calls":[` + strings.Join(pieces, ",") + `]}}]}`
}

const (
	stopChunk  = `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`
	toolsChunk = `{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`
	textChunk  = `{"choices":[{"index":0,"delta":{"content":"hello"}}]}`
)

// TestServersDiffer checks streams of servers that claim to be compatible.
func TestServersDiffer(t *testing.T) {
	type made struct{ ID, Name, Args string }
	tests := []struct {
		name   string
		stream string
		text   string
		calls  []made
		finish llm.FinishReason
		usage  llm.Usage
	}{{
		name: "openai",
		stream: stream(`{"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"role":"assistant","content":null,"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"glob","arguments":""}}],"refusal":null},"logprobs":null,"finish_reason":null}],"usage":null}`,
			toolCalls(`{"index":0,"function":{"arguments":"{\"pat"}}`), toolCalls(`{"index":0,"function":{"arguments":"tern\":\"*\"}"}}`), toolsChunk,
			`{"choices":[],"usage":{"prompt_tokens":82,"completion_tokens":17,"total_tokens":99,"prompt_tokens_details":{"cached_tokens":0}}}`),
		calls: []made{{"call_1", "glob", `{"pattern":"*"}`}}, finish: llm.FinishTools, usage: llm.Usage{InputTokens: 82, OutputTokens: 17},
	}, {
		name:   "ollama: arguments as an object, no index, id or type, and stop instead of tool_calls",
		stream: stream(toolCalls(`{"function":{"name":"glob","arguments":{"pattern":"*.c"}}}`, `{"function":{"name":"glob","arguments":{"pattern":"*.h"}}}`), stopChunk),
		calls:  []made{{"made_1", "glob", `{"pattern":"*.c"}`}, {"made_2", "glob", `{"pattern":"*.h"}`}}, finish: llm.FinishTools,
	}, {
		name: "one call after the other, all with the index 0",
		stream: stream(toolCalls(`{"index":0,"id":"a","function":{"name":"glob","arguments":"{\"pattern\":\"*.c\"}"}}`),
			toolCalls(`{"index":0,"id":"b","function":{"name":"glob","arguments":"{\"pattern\":\"*.h\"}"}}`), stopChunk),
		calls: []made{{"a", "glob", `{"pattern":"*.c"}`}, {"b", "glob", `{"pattern":"*.h"}`}}, finish: llm.FinishTools,
	}, {
		name: "gemini: whole calls with the index 0 and no id",
		stream: stream(toolCalls(`{"index":0,"id":"","function":{"name":"glob","arguments":"{\"pattern\":\"*.c\"}"}}`),
			toolCalls(`{"index":0,"id":"","function":{"name":"glob","arguments":"{\"pattern\":\"*.h\"}"}}`), stopChunk),
		calls: []made{{"made_1", "glob", `{"pattern":"*.c"}`}, {"made_2", "glob", `{"pattern":"*.h"}`}}, finish: llm.FinishTools,
	}, {
		name: "name and id in every piece",
		stream: stream(toolCalls(`{"index":0,"id":"a","function":{"name":"glob","arguments":"{\"pattern\""}}`),
			toolCalls(`{"index":0,"id":"a","function":{"name":"glob","arguments":":\"*\"}"}}`), toolsChunk),
		calls: []made{{"a", "glob", `{"pattern":"*"}`}}, finish: llm.FinishTools,
	}, {
		name: "another id in every piece",
		stream: stream(toolCalls(`{"index":0,"id":"a","function":{"name":"glob","arguments":"{\"pattern\""}}`),
			toolCalls(`{"index":0,"id":"b","function":{"arguments":":\"*\"}"}}`), toolsChunk),
		calls: []made{{"a", "glob", `{"pattern":"*"}`}}, finish: llm.FinishTools,
	}, {
		name: "no index, the pieces told apart by their ids",
		stream: stream(toolCalls(`{"id":"a","function":{"name":"glob","arguments":"{\"pat"}}`, `{"id":"b","function":{"name":"ls","arguments":"{"}}`),
			toolCalls(`{"id":"a","function":{"arguments":"tern\":1}"}}`, `{"function":{"arguments":"}"}}`), toolsChunk),
		calls: []made{{"a", "glob", `{"pattern":1}`}, {"b", "ls", `{}`}}, finish: llm.FinishTools,
	}, {
		name: "an index out of all bounds, an id that is a number, null arguments",
		stream: stream(toolCalls(`{"index":1e400,"id":7,"function":{"name":"ls","arguments":null}}`, `{"index":-9223372036854775808,"id":"x","function":{"name":"ls"}}`),
			toolCalls(`{"index":-9223372036854775808,"function":{"arguments":"{\"a\":1}"}}`), toolsChunk),
		calls: []made{{"7", "ls", `{}`}, {"x", "ls", `{"a":1}`}}, finish: llm.FinishTools,
	}, {
		name: "the arguments with another index than the id",
		stream: stream(toolCalls(`{"index":1,"id":"a","function":{"name":"glob","arguments":""}}`), toolCalls(`{"index":0,"function":{"arguments":"{\"pat"}}`),
			toolCalls(`{"index":0,"function":{"arguments":"tern\":1}"}}`), toolsChunk),
		calls: []made{{"a", "glob", `{"pattern":1}`}}, finish: llm.FinishTools,
	}, {
		name: "the arguments of two calls, each with the index before its own",
		stream: stream(toolCalls(`{"index":1,"id":"a","function":{"name":"glob"}}`), toolCalls(`{"index":0,"function":{"arguments":"{\"a\":"}}`, `{"index":0,"function":{"arguments":"\"}\\\"\"}"}}`),
			toolCalls(`{"index":2,"id":"b","function":{"name":"ls"}}`), toolCalls(`{"index":1,"function":{"arguments":"{\"b\":"}}`), toolCalls(`{"index":1,"function":{"arguments":"2}"}}`), toolsChunk),
		calls: []made{{"a", "glob", `{"a":"}\""}`}, {"b", "ls", `{"b":2}`}}, finish: llm.FinishTools,
	}, {
		name: "the arguments of two calls, each with the index behind its own",
		stream: stream(toolCalls(`{"index":0,"id":"a","function":{"name":"glob"}}`), toolCalls(`{"index":1,"function":{"arguments":"{\"a\":1}"}}`),
			toolCalls(`{"index":1,"id":"b","function":{"name":"ls"}}`), toolCalls(`{"index":2,"function":{"arguments":"{\"b\":2}"}}`), toolsChunk),
		calls: []made{{"a", "glob", `{"a":1}`}, {"b", "ls", `{"b":2}`}}, finish: llm.FinishTools,
	}, {
		name: "the arguments with another index, and with the id",
		stream: stream(toolCalls(`{"index":1,"id":"a","function":{"name":"glob"}}`, `{"index":2,"id":"b","function":{"name":"ls"}}`),
			toolCalls(`{"index":0,"id":"b","function":{"arguments":"{\"b\":2}"}}`, `{"index":0,"id":"a","function":{"arguments":"{\"a\":1}"}}`), toolsChunk),
		calls: []made{{"a", "glob", `{"a":1}`}, {"b", "ls", `{"b":2}`}}, finish: llm.FinishTools,
	}, {
		name: "two calls with the index 0, whose pieces take turns, with their ids",
		stream: stream(toolCalls(`{"index":0,"id":"a","function":{"name":"glob"}}`, `{"index":0,"id":"b","function":{"name":"glob"}}`),
			toolCalls(`{"index":0,"id":"a","function":{"arguments":"{\"a\":"}}`, `{"index":0,"id":"b","function":{"arguments":"{\"b\":"}}`),
			toolCalls(`{"index":0,"id":"a","function":{"arguments":"1}"}}`, `{"index":0,"id":"b","function":{"arguments":"2}"}}`), toolsChunk),
		calls: []made{{"a", "glob", `{"a":1}`}, {"b", "glob", `{"b":2}`}}, finish: llm.FinishTools,
	}, {
		name: "two calls whose pieces take turns, as the API has it",
		stream: stream(toolCalls(`{"index":0,"id":"a","function":{"name":"glob"}}`, `{"index":1,"id":"b","function":{"name":"ls"}}`), toolCalls(`{"index":0,"function":{"arguments":"{\"a\":"}}`, `{"index":1,"function":{"arguments":"{"}}`),
			toolCalls(`{"index":0,"function":{"arguments":"1}"}}`), toolCalls(`{"index":0,"function":{"arguments":"\n"}}`, `{"index":1,"function":{"arguments":"}"}}`), toolsChunk),
		calls: []made{{"a", "glob", "{\"a\":1}\n"}, {"b", "ls", `{}`}}, finish: llm.FinishTools,
	}, {
		name: "an index that is null, and an id that is empty in what follows",
		stream: stream(toolCalls(`{"index":null,"id":"a","function":{"name":"glob","arguments":""}}`), toolCalls(`{"index":null,"id":"","function":{"name":"","arguments":"{\"a\":"}}`),
			toolCalls(`{"index":null,"id":null,"function":{"name":null,"arguments":"1}"}}`), toolsChunk),
		calls: []made{{"a", "glob", `{"a":1}`}}, finish: llm.FinishTools,
	}, {
		name: "the name in every piece, and neither an index nor an id",
		stream: stream(toolCalls(`{"function":{"name":"glob","arguments":""}}`), toolCalls(`{"function":{"name":"glob","arguments":"{\"a\":"}}`), toolCalls(`{"function":{"name":"glob","arguments":"1}"}}`),
			toolCalls(`{"function":{"name":"glob","arguments":""}}`), toolsChunk),
		calls: []made{{"made_1", "glob", `{"a":1}`}}, finish: llm.FinishTools,
	}, {
		name: "the name in every piece, and the last one says nothing more",
		stream: stream(toolCalls(`{"index":0,"function":{"name":"glob","arguments":"{\"a\":"}}`), toolCalls(`{"index":0,"function":{"name":"glob","arguments":"1}"}}`),
			toolCalls(`{"index":0,"function":{"name":"glob","arguments":""}}`), toolsChunk),
		calls: []made{{"made_1", "glob", `{"a":1}`}}, finish: llm.FinishTools,
	}, {
		name:   "arguments without an id and a name, and no call before them",
		stream: stream(toolCalls(`{"index":0,"function":{"arguments":"{}"}}`), toolsChunk),
		calls:  []made{{"made_1", "", `{}`}}, finish: llm.FinishTools,
	}, {
		name:   "the function call from before tools, in pieces",
		stream: stream(`{"choices":[{"delta":{"function_call":{"name":"glob","arguments":""}}}]}`, `{"choices":[{"delta":{"function_call":{"arguments":"{\"a\":"}}}]}`, `{"choices":[{"delta":{"function_call":{"arguments":"1}"}}}]}`, `{"choices":[{"delta":{},"finish_reason":"function_call"}]}`),
		calls:  []made{{"made_1", "glob", `{"a":1}`}}, finish: llm.FinishTools,
	}, {
		name:   "the function call from before tools, beside the call that it is, and one that is none",
		stream: stream(`{"choices":[{"delta":{"function_call":{"name":"glob","arguments":"{}"},"tool_calls":[{"index":0,"id":"a","function":{"name":"glob","arguments":"{}"}}]}}]}`, `{"choices":[{"delta":{"function_call":"auto"}}]}`, stopChunk),
		calls:  []made{{"a", "glob", `{}`}}, finish: llm.FinishTools,
	}, {
		name:   "[DONE] without a finish, behind a text",
		stream: stream(textChunk, `{"choices":[{"delta":{"content":" there"},"finish_reason":""}]}`, `{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":5}}`),
		text:   "hello there", finish: llm.FinishStop, usage: llm.Usage{InputTokens: 10, OutputTokens: 5},
	}, {
		name:   "[DONE] without a finish, behind whole calls",
		stream: stream(textChunk, toolCalls(`{"index":0,"id":"a","function":{"name":"glob","arguments":"{\"a\":"}}`), toolCalls(`{"index":0,"function":{"arguments":"1}"}}`, `{"index":1,"id":"b","function":{"name":"ls","arguments":"{}"}}`)),
		text:   "hello", calls: []made{{"a", "glob", `{"a":1}`}, {"b", "ls", `{}`}}, finish: llm.FinishTools,
	}, {
		name:   "a finish in capital letters, and of Mistral",
		stream: stream(textChunk, `{"choices":[{"finish_reason":"MODEL_LENGTH"}]}`),
		text:   "hello", finish: llm.FinishLength,
	}, {
		name:   "a server that does not stream",
		stream: "{\n  \"object\": \"chat.completion\", \"error\": null,\n  \"choices\": [{\"index\": 0, \"finish_reason\": \"tool_calls\", \"message\": {\"role\": \"assistant\", \"content\": \"hello\",\n  \"tool_calls\": [{\"id\": \"a\", \"type\": \"function\", \"function\": {\"name\": \"ls\", \"arguments\": \"{}\"}}]}}],\n  \"usage\": {\"prompt_tokens\": 3, \"completion_tokens\": 4}\n}\n",
		text:   "hello", calls: []made{{"a", "ls", `{}`}}, finish: llm.FinishTools, usage: llm.Usage{InputTokens: 3, OutputTokens: 4},
	}, {
		name:   "a server that does not stream, with a function call from before tools, without a finish",
		stream: `{"choices":[{"message":{"role":"assistant","content":null,"function_call":{"name":"ls","arguments":"{\"path\":\"x\"}"}}}]}`,
		calls:  []made{{"made_1", "ls", `{"path":"x"}`}}, finish: llm.FinishTools,
	}, {
		name:   "pieces that say nothing begin no call",
		stream: stream(toolCalls(`{}`, `null`, `{"index":3,"type":"function","function":{}}`), textChunk, stopChunk),
		text:   "hello", finish: llm.FinishStop,
	}, {
		name: "reasoning is no text, other choices are ignored, a refusal is what the model says",
		stream: stream(`{"choices":[{"index":1,"delta":{"content":"no"},"finish_reason":"length"},{"index":0,"delta":{"reasoning_content":"hm","reasoning":"hm"}}]}`,
			`{"choices":[{"delta":{"refusal":"I can't"}}]}`, stopChunk),
		text: "I can't", finish: llm.FinishStop,
	}, {
		name:   "content as parts",
		stream: stream(`{"choices":[{"delta":{"content":[{"type":"thinking","thinking":[]},{"type":"text","text":"a"},{"type":"text","text":"b"}]}}]}`, stopChunk),
		text:   "ab", finish: llm.FinishStop,
	}, {
		name: "comments, other fields, CRLF, no space, a mark at the beginning, and no empty lines",
		stream: "\xef\xbb\xbf: hello\r\nevent: message\r\nid: 1\r\nretry: 10\r\n" + strings.Repeat(": keep-alive\n\n", 1000) +
			"data:" + textChunk + "\r\ndata:" + stopChunk + "\r\ndata:[DONE]\r\n",
		text: "hello", finish: llm.FinishStop,
	}, {
		name:   "no [DONE], and the last line has no end",
		stream: "data: " + textChunk + "\n\ndata: " + stopChunk,
		text:   "hello", finish: llm.FinishStop,
	}, {
		name:   "finish with the text, then repeated, then usage in odd types",
		stream: stream(`{"choices":[{"delta":{"content":"hello"},"finish_reason":"length"}],"usage":5}`, stopChunk, `{"usage":{"prompt_tokens":"3","completion_tokens":-4}}`),
		text:   "hello", finish: llm.FinishLength, usage: llm.Usage{InputTokens: 3},
	}, {
		name:   "xAI counts reasoning beside the answer",
		stream: stream(textChunk, stopChunk, `{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":3,"total_tokens":20,"completion_tokens_details":{"reasoning_tokens":7}}}`),
		text:   "hello", finish: llm.FinishStop, usage: llm.Usage{InputTokens: 10, OutputTokens: 10, ReasoningTokens: 7},
	}, {
		name:   "DeepSeek names what is cached otherwise",
		stream: stream(textChunk, stopChunk, `{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":3,"total_tokens":13,"prompt_cache_hit_tokens":8,"completion_tokens_details":{"reasoning_tokens":2}}}`),
		text:   "hello", finish: llm.FinishStop, usage: llm.Usage{InputTokens: 10, OutputTokens: 3, CachedTokens: 8, ReasoningTokens: 2},
	}, {
		name:   "other words for a finish, and a whole message in one event",
		stream: stream(`{"choices":[{"message":{"role":"assistant","content":"hello"},"finish_reason":"eos"}]}`),
		text:   "hello", finish: llm.FinishStop,
	}, {
		name:   "the finish of the functions that came before tools",
		stream: stream(textChunk, `{"choices":[{"finish_reason":"function_call"}]}`),
		text:   "hello", finish: llm.FinishTools,
	}, {
		name:   "another word for the length",
		stream: stream(textChunk, `{"choices":[{"finish_reason":"max_tokens"}]}`),
		text:   "hello", finish: llm.FinishLength,
	}, {
		name:   "the connection breaks after the finish",
		stream: "data: " + textChunk + "\n\ndata: " + stopChunk + "\n\ndata: {\"usa",
		text:   "hello", finish: llm.FinishStop,
	}}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			reply, err := llmtest.Collect(t.Context(), t, over(tt.stream), llmtest.Request())
			if err != nil {
				t.Fatalf("%+v", err)
			}
			var calls []made
			for _, c := range reply.Calls {
				calls = append(calls, made{c.ID, c.Function.Name, c.Function.Arguments})
			}
			if reply.Text != tt.text || reply.Finish != tt.finish || reply.Usage != tt.usage {
				t.Errorf("got %q, %q, %+v", reply.Text, reply.Finish, reply.Usage)
			}
			if diff := cmp.Diff(tt.calls, calls); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
		})
	}
}

func TestBrokenStreams(t *testing.T) {
	tests := []struct {
		name, stream string
		want         string
		retryable    bool
		status       int
		code         string
	}{
		{name: "empty", stream: "", want: "the stream is empty", retryable: true},
		{name: "nothing but [DONE]", stream: stream(), want: "the stream is empty", retryable: true},
		{name: "no finish reason and no [DONE]", stream: "data: " + textChunk + "\n\n", want: "the stream ended early", retryable: true},
		{name: "[DONE] behind half a call", stream: stream(toolCalls(`{"index":0,"id":"a","function":{"name":"ls","arguments":"{\"path\":"}}`)), want: "the stream ended early", retryable: true},
		{name: "[DONE] behind a call of which no arguments have come", stream: stream(toolCalls(`{"index":0,"id":"a","function":{"name":"ls","arguments":""}}`)), want: "the stream ended early", retryable: true},
		{name: "[DONE] behind a whole call and half of another", stream: stream(textChunk, toolCalls(`{"index":0,"id":"a","function":{"name":"ls","arguments":"{}"}}`, `{"index":1,"id":"b","function":{"name":"ls","arguments":"{"}}`)), want: "the stream ended early", retryable: true},
		{name: "[DONE] and nothing said", stream: stream(`{"choices":[{"delta":{"role":"assistant","content":""}}]}`), want: "the stream ended early", retryable: true},
		{name: "[DONE] behind reasoning alone", stream: stream(`{"choices":[{"delta":{"reasoning_content":"hm"}}]}`), want: "the stream ended early", retryable: true},
		{name: "an event cut in two", stream: "data: " + textChunk + "\n\ndata: " + stopChunk[:20], want: "the stream ended early", retryable: true},
		{name: "an error event", stream: "data: " + textChunk + "\n\nevent: error\ndata: {\"error\":{\"message\":\"overloaded\",\"type\":\"server_error\",\"code\":null}}\n\n",
			want: "overloaded", retryable: true, code: "server_error"},
		{name: "an error event and no end of the line", stream: `data: {"error":{"message":"overloaded"}}`, want: "overloaded", retryable: true},
		{name: "an error that is a string", stream: stream(`{"error":"model runner has stopped"}`), want: "model runner has stopped", retryable: true},
		{name: "an error with a status as its code", stream: stream(textChunk, `{"error":{"message":"bad key","code":401}}`), want: "bad key", status: 401, code: "401"},
		{name: "an error of the request", stream: stream(`{"error":{"message":"no","type":"invalid_request_error"}}`), want: "no", code: "invalid_request_error"},
		{name: "an error of vllm", stream: stream(`{"object":"error","message":"too long","type":"BadRequestError","code":400}`), want: "too long", status: 400, code: "400"},
		{name: "no credit", stream: stream(`{"error":{"message":"pay","code":"insufficient_quota"}}`), want: "pay", code: "insufficient_quota"},
		{name: "an error as the finish reason", stream: stream(`{"choices":[{"delta":{},"finish_reason":"error"}]}`), want: "it broke off without saying why", retryable: true},
		{name: "data that is not JSON", stream: stream(textChunk, "what?"), want: `it sent an event that is not in the format of the API: "what?"`, retryable: true},
		{name: "data of another form", stream: stream(`{"choices":"none"}`), want: `it sent an event that is not in the format of the API: "{\"choices\":\"none\"}"`, retryable: true},
		{name: "a web page", stream: "\n\n<html>\n" + strings.Repeat("x\n", 1<<20), want: "the answer is a web page, not an event stream"},
		{name: "half an answer in JSON", stream: `{"choices":[{"message":{"content":"hello"},"finish_reason":"stop"}]`, want: "the stream ended early", retryable: true},
		{name: "another thing in JSON", stream: `{"status":"ok"}`, want: `the answer is not an event stream: "{\"status\":\"ok\"}"`},
		{name: "a list of nothing", stream: "[]", want: "the stream is empty", retryable: true},
		{name: "a text that only begins like JSON", stream: "[error] no such model", want: `the answer is not an event stream: "[error] no such model"`},
		{name: "a finish that is a failure", stream: stream(textChunk, `{"choices":[{"finish_reason":"insufficient_system_resource"}]}`), want: "it broke off without saying why", retryable: true},
		{name: "an error in JSON", stream: "{\n  \"error\": {\"message\": \"no such\\u001b model\", \"code\": \"model_not_found\"}\n}", want: "no such model", code: "model_not_found"},
		{name: "some text", stream: "hello " + llmtest.APIKey, want: `the answer is not an event stream: "hello [key]"`},
		{name: "a line that is too long", stream: "data: " + strings.Repeat("x", 8<<20) + "\n", want: "it sent a line of more than 8 MiB", code: "stream_too_large"},
		{name: "too many calls", stream: stream(func() (chunks []string) {
			for i := range llm.MaxCalls + 1 {
				chunks = append(chunks, toolCalls(fmt.Sprintf(`{"index":%d,"function":{"name":"ls","arguments":""}}`, i*1000)))
			}
			return chunks
		}()...), want: "it sent more than 128 tool calls", code: "stream_too_large"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := llmtest.Collect(t.Context(), t, over(tt.stream), llmtest.Request())
			got, ok := errors.AsType[*llm.ProviderError](err)
			if !ok {
				t.Fatalf("got %v", err)
			}
			if got.Message != tt.want || got.Retryable != tt.retryable || got.Status != tt.status || got.Code != tt.code || got.Provider != "openai" {
				t.Errorf("got %+v", got)
			}
		})
	}
}

// endless is a body without an end. It counts the bytes that are read.
type endless struct {
	piece  string
	read   int64
	closed bool
}

func (e *endless) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) {
		n += copy(p[n:], e.piece)
	}
	e.read += int64(n)
	return n, nil
}

func (e *endless) Close() error { e.closed = true; return nil }

func TestAnEndlessAnswerIsReadToTheLimitOnly(t *testing.T) {
	tests := []struct {
		name   string
		piece  string
		status int
		limit  int64
		most   int64
	}{
		{"one line, below the limit of the stream", "x", 200, 1 << 20, 1 << 20},
		{"one line, below the limit of a line", "data: x", 200, 1 << 40, 8 << 20},
		{"many comments", ": ping\n", 200, 1 << 20, 1 << 20},
		{"one value of JSON", "[[[[", 200, 1 << 40, 8 << 20},
		{"an event of many lines", "data: {\n", 200, 1 << 40, 32 << 20},
		{"many events", "data: " + textChunk + "\n\n", 200, 1 << 20, 1 << 20},
		{"a web page", "<html>\n", 200, 1 << 40, 64 << 10},
		{"an error", "oops ", 500, 1 << 40, 64 << 10},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			body := &endless{piece: tt.piece}
			model := New(provider.Options{
				BaseURL: "http://model.test/v1", Model: "m", MaxStreamBytes: tt.limit,
				HTTPClient: &http.Client{Transport: roundTrip(func(*http.Request) (*http.Response, error) {
					return &http.Response{StatusCode: tt.status, Header: http.Header{}, Body: body}, nil
				})},
			})
			_, err := llmtest.Collect(t.Context(), t, model, llmtest.Request())
			if _, ok := errors.AsType[*llm.ProviderError](err); !ok {
				t.Fatalf("got %v", err)
			}
			if body.read > tt.most+64<<10 || !body.closed {
				t.Errorf("read %d bytes, closed %v; want at most %d and a buffer, and closed", body.read, body.closed, tt.most)
			}
		})
	}
}

// TestAnyByteIsLife uses a server that sends a comment shortly before each stall time-out,
// for longer than the time-out altogether.
func TestAnyByteIsLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := llmtest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			tick := time.NewTicker(19 * time.Second)
			defer tick.Stop()
			for range 10 {
				<-tick.C
				io.WriteString(w, ":")
				http.NewResponseController(w).Flush()
			}
			io.WriteString(w, "\n"+stream(textChunk, stopChunk))
		}))
		model := New(provider.Options{BaseURL: "http://model.test/v1", Model: "m", StallTimeout: 20 * time.Second, HTTPClient: client})
		reply, err := llmtest.Collect(t.Context(), t, model, llmtest.Request())
		if err != nil || reply.Finish != llm.FinishStop {
			t.Errorf("got %+v, %v", reply, err)
		}
	})
}

// TestASlowUploadIsLife uses a server that reads the request slowly.
func TestASlowUploadIsLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := llmtest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			buf := make([]byte, 64<<10)
			tick := time.NewTicker(19 * time.Second)
			defer tick.Stop()
			for {
				<-tick.C
				if _, err := io.ReadFull(r.Body, buf); err != nil {
					break
				}
			}
			io.WriteString(w, stream(textChunk, stopChunk))
		}))
		model := New(provider.Options{BaseURL: "http://model.test/v1", Model: "m", StallTimeout: 20 * time.Second, HTTPClient: client})
		req := llmtest.Request()
		req.Messages[1].Content = strings.Repeat("x", 1<<20)
		if reply, err := llmtest.Collect(t.Context(), t, model, req); err != nil || reply.Finish != llm.FinishStop {
			t.Errorf("got %+v, %v", reply, err)
		}
	})
}

func TestADeadlineOfTheCallerIsNotTheProvidersFault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := llmtest.Collect(ctx, t, New(scriptedServer(t, `{"stall":true}`)), llmtest.Request())
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		if _, ok := errors.AsType[*llm.ProviderError](err); ok {
			t.Errorf("got a provider error: %v", err)
		}
	})
}

func FuzzStream(f *testing.F) {
	for _, body := range []string{
		"", "data: [DONE]", stream(textChunk, stopChunk), stream(textChunk), "data: {", "<html>", `{"error":{"message":["a"]}}`,
		stream(toolCalls(`{"index":0,"id":"a","function":{"name":"glob","arguments":"{}"}}`, `{"function":{"name":"x","arguments":{"a":[1]}}}`), toolsChunk),
		"data: {\"error\": {\"message\":\"" + llmtest.APIKey + "\"}}\n", ":\r\n\r\ndata:\n\nevent: x\ndata: null\n", "\xef\xbb\xbfdata: 1\n",
		stream(`{"choices":[{"delta":{"content":[{"type":"text","text":"a"}]},"finish_reason":"error"}],"usage":{"prompt_tokens":1e99}}`),
	} {
		f.Add([]byte(body), 200)
		f.Add([]byte(body), 429)
	}
	f.Fuzz(func(t *testing.T, body []byte, status int) {
		model := New(provider.Options{
			APIKey: llmtest.APIKey, BaseURL: "http://model.test/v1", Model: "m", MaxStreamBytes: 1 << 16,
			HTTPClient: &http.Client{Transport: roundTrip(func(*http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: status, Header: http.Header{"Retry-After": {string(body)}}, Body: io.NopCloser(strings.NewReader(string(body)))}, nil
			})},
		})
		reply, err := llmtest.Collect(t.Context(), t, model, llmtest.Request()) // which checks the contract
		if err != nil {
			failure, ok := errors.AsType[*llm.ProviderError](err)
			if !ok || failure.Message == "" || failure.RetryAfter < 0 || strings.Contains(fmt.Sprintf("%+v", failure), llmtest.APIKey) {
				t.Errorf("got %+v", err)
			}
			return
		}
		ids := make(map[string]bool)
		for _, c := range reply.Calls {
			if c.ID == "" || ids[c.ID] || c.Function.Arguments == "" {
				t.Errorf("calls %+v", reply.Calls)
			}
			ids[c.ID] = true
		}
	})
}
