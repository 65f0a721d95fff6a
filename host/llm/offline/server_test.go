package offline

import (
	"bytes"
	"context"
	"encoding/json"
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
	"github.com/stockade-dev/stockade/host/llm/openai"
	"github.com/stockade-dev/stockade/host/llm/provider"
)

const hello = `{"model":"m","messages":[{"role":"user","content":"hello"}]}`

// post sends a body and returns the status and the answer.
func post(t *testing.T, client *http.Client, body string, header http.Header) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "POST", "http://model.test/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if header != nil {
		req.Header = header
	}
	return do(t, client, req)
}

func do(t *testing.T, client *http.Client, req *http.Request) (int, string) {
	t.Helper()
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(got)
}

// TestServerSpeaksTheWireFormat compares bytes with OpenAI's documentation.
func TestServerSpeaksTheWireFormat(t *testing.T) {
	line := `{"text":"Grüße","tool_calls":[{"id":"a","name":"x","arguments":{"p":1}},{"id":"b","name":"y","arguments":"{}"}],"chunk_bytes":4,"usage":{"input_tokens":3,"output_tokens":2}}`
	client := llmtest.Serve(t, NewServer(script(t, line, line, line), ""))
	const head = `{"id":"ID","object":"chat.completion.chunk","created":TIME,"model":"m","choices":[`
	chunk := func(delta, finish string) string {
		return head + `{"index":0,"delta":` + delta + `,"finish_reason":` + finish + `}]}`
	}
	chunks := []string{
		chunk(`{"role":"assistant"}`, "null"),
		chunk(`{"content":"Grü"}`, "null"),
		chunk(`{"content":"ße"}`, "null"),
		chunk(`{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"x","arguments":""}}]}`, "null"),
		chunk(`{"tool_calls":[{"index":1,"id":"b","type":"function","function":{"name":"y","arguments":""}}]}`, "null"),
		chunk(`{"tool_calls":[{"index":0,"function":{"arguments":"{\"p\""}}]}`, "null"),
		chunk(`{"tool_calls":[{"index":1,"function":{"arguments":"{}"}}]}`, "null"),
		chunk(`{"tool_calls":[{"index":0,"function":{"arguments":":1}"}}]}`, "null"),
		chunk(`{}`, `"tool_calls"`),
	}
	usage := head[:len(head)-1] + `[],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5,"prompt_tokens_details":null,"completion_tokens_details":null}}`
	whole := `{"id":"ID","object":"chat.completion","created":TIME,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"Grüße",` +
		`"tool_calls":[{"id":"a","type":"function","function":{"name":"x","arguments":"{\"p\":1}"}},{"id":"b","type":"function","function":{"name":"y","arguments":"{}"}}]},` +
		`"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5,"prompt_tokens_details":null,"completion_tokens_details":null}}`
	events := func(chunks ...string) string {
		return "data: " + strings.Join(append(chunks, "[DONE]"), "\n\ndata: ") + "\n\n"
	}
	tests := []struct{ name, more, want string }{
		{"streamed", `,"stream":true}`, events(chunks...)},
		{"streamed with usage", `,"stream":true,"stream_options":{"include_usage":true}}`, events(append(chunks, usage)...)},
		{"whole", `}`, whole},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			began := time.Now().Unix()
			status, got := post(t, client, hello[:len(hello)-1]+tt.more, nil)
			var first struct {
				ID      string
				Created int64
			}
			if err := json.Unmarshal([]byte(strings.TrimPrefix(strings.SplitN(got, "\n", 2)[0], "data: ")), &first); err != nil || !strings.HasPrefix(first.ID, "chatcmpl-") {
				t.Fatalf("id %q, %v in %s", first.ID, err, got)
			}
			if diff := cmp.Diff(tt.want, strings.NewReplacer(first.ID, "ID", fmt.Sprintf(`"created":%d,`, first.Created), `"created":TIME,`).Replace(got)); diff != "" || status != 200 {
				t.Errorf("status %d (-want +got):\n%s", status, diff)
			}
			if first.Created < began || first.Created > time.Now().Unix() {
				t.Errorf("created at %d, and asked at %d", first.Created, began)
			}
		})
	}
}

func TestServerRefusesWhatTheRealOneRefuses(t *testing.T) {
	server := NewServer(Planner{}, "")
	server.maxBody = 4096
	client := llmtest.Serve(t, server)
	call := func(id, name, args string) string {
		data, _ := json.Marshal(map[string]any{"id": id, "type": "function", "function": map[string]string{"name": name, "arguments": args}})
		return string(data)
	}
	messages := func(list ...string) string { return `{"model":"m","messages":[` + strings.Join(list, ",") + `]}` }
	tests := []struct {
		name, body string
		status     int
		want       string
	}{
		{"not JSON", "{", 400, "not JSON"},
		{"no message", messages(), 400, "at least one"},
		{"too much", strings.Repeat(" ", 5000), 413, "more than 4096 bytes"},
		{"a call that nothing answers", messages(`{"role":"assistant","tool_calls":[`+call("a", "x", "{}")+`]}`, `{"role":"user","content":"a"}`), 400, "must be followed by tool messages"},
		{"a call at the end", messages(`{"role":"assistant","tool_calls":[` + call("a", "x", "{}") + `]}`), 400, "without a tool message"},
		{"an answer that nothing called", messages(`{"role":"tool","tool_call_id":"a","content":"x"}`), 400, "must be a response"},
		{"an id that is too long", messages(`{"role":"assistant","tool_calls":[` + call(strings.Repeat("a", 41), "x", "{}") + `]}`), 400, "41 characters"},
		{"an id twice", messages(`{"role":"assistant","tool_calls":[` + call("a", "x", "{}") + `,` + call("a", "x", "{}") + `]}`), 400, "used twice"},
		{"a name that is none", messages(`{"role":"assistant","tool_calls":[` + call("a", "x.y", "{}") + `]}`), 400, "does not match"},
		{"malformed arguments", messages(`{"role":"assistant","tool_calls":[` + call("a", "x", "{") + `]}`), 400, "not JSON"},
		{"no content", messages(`{"role":"user"}`), 400, "no content"},
		{"an empty assistant", messages(`{"role":"assistant"}`), 400, "needs content"},
		{"an unknown role", messages(`{"role":"function","content":"x"}`), 400, "unknown role"},
		{"a tool that is none", `{"messages":[{"role":"user","content":"a"}],"tools":[{"type":"function"}]}`, 400, "tools[0]"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			status, got := post(t, client, tt.body, nil)
			var answer struct {
				Error struct{ Message, Type string }
			}
			if err := json.Unmarshal([]byte(got), &answer); err != nil || status != tt.status || answer.Error.Type != "invalid_request_error" ||
				!strings.Contains(answer.Error.Message, tt.want) {
				t.Errorf("got %d %s, %v", status, got, err)
			}
		})
	}
}

func TestServerKnowsItsPathsAndItsToken(t *testing.T) {
	client := llmtest.Serve(t, NewServer(Planner{}, "secret"))
	bearer := http.Header{"Authorization": {"Bearer secret"}}
	tests := []struct {
		name, method, path string
		header             http.Header
		status             int
		want               string
	}{
		{"models", "GET", "/v1/models", bearer, 200, `"id":"offline"`},
		{"no token", "GET", "/v1/models", nil, 401, "invalid_api_key"},
		{"another token", "GET", "/v1/models", http.Header{"Authorization": {"Bearer secre"}}, 401, "invalid_api_key"},
		{"no bearer", "GET", "/v1/models", http.Header{"Authorization": {"secret"}}, 401, "invalid_api_key"},
		{"another path", "GET", "/", bearer, 404, "unknown path"},
		{"another method", "GET", "/v1/chat/completions", bearer, 405, "use POST"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			req, err := http.NewRequestWithContext(t.Context(), tt.method, "http://model.test"+tt.path, http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			req.Header = tt.header
			if req.Header == nil {
				req.Header = make(http.Header)
			}
			if status, got := do(t, client, req); status != tt.status || !strings.Contains(got, tt.want) || strings.Contains(got, `"created":0`) {
				t.Errorf("got %d %s", status, got)
			}
		})
	}
	if status, got := post(t, client, hello, bearer); status != 200 || !strings.Contains(got, "offline model") {
		t.Errorf("got %d %s", status, got)
	}
}

func TestServerListensOnThisMachineOnly(t *testing.T) {
	for _, addr := range []string{":0", "0.0.0.0:0", "[::]:0", "192.0.2.1:0", "example.com:0", "127.0.0.1"} {
		if base, err := NewServer(Planner{}, "").Start(addr); err == nil {
			t.Errorf("%s: serves at %s", addr, base)
		}
	}
}

// TestServerOverTCP goes through a real socket from Start to Close.
func TestServerOverTCP(t *testing.T) {
	server := NewServer(Planner{}, "secret")
	base, err := server.Start("localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := server.Start("localhost:0"); err == nil {
		t.Errorf("it started twice")
	}
	if !strings.HasPrefix(base, "http://127.0.0.1:") || !strings.HasSuffix(base, "/v1") {
		t.Errorf("base URL %s", base)
	}
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	model := openai.New(provider.Options{BaseURL: base, APIKey: "secret", HTTPClient: &http.Client{Transport: transport}})
	messages := turn(t, model, []llm.Message{user("list files then read a.txt")}, allTools, results)
	got, _ := calls(messages)
	if diff := cmp.Diff([]string{`ls(path=".")`, `file_read(path="a.txt")`}, got); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	if err := server.Close(t.Context()); err != nil {
		t.Errorf("close: %v", err)
	}
	if err := server.Close(t.Context()); err != nil {
		t.Errorf("close again: %v", err)
	}
	transport.CloseIdleConnections() // or the request could be written to a connection of before
	_, err = llmtest.Collect(t.Context(), t, model, llm.Request{Model: "m", Messages: messages[:1]})
	failure, ok := errors.AsType[*llm.ProviderError](err)
	if !ok || failure.Retryable || !strings.Contains(failure.Hint, "not running") {
		t.Errorf("after the end got %+v", err)
	}
}

// TestCloseEndsAnswersThatStall would hang if Close waited for them.
func TestCloseEndsAnswersThatStall(t *testing.T) {
	for _, line := range []string{`{"stall":true}`, `{"text":"a","stall":true}`, `{"flood":true}`} {
		server := NewServer(script(t, line), "")
		base, err := server.Start("127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		responded := make(chan struct{})
		server.responder = signalling{server.responder, responded}
		ended := make(chan error, 1)
		go func() {
			resp, err := http.Post(base+"/chat/completions", "application/json", strings.NewReader(hello[:len(hello)-1]+`,"stream":true}`))
			if err == nil {
				_, err = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
			ended <- err
		}()
		<-responded
		if err := server.Close(t.Context()); err != nil {
			t.Errorf("%s: close: %v", line, err)
		}
		<-ended
	}
}

// signalling closes a channel when it is asked.
type signalling struct {
	Responder
	asked chan struct{}
}

func (s signalling) Respond(ctx context.Context, req *Request) Answer {
	close(s.asked)
	return s.Responder.Respond(ctx, req)
}

// TestFaultsOnTheWire compares the bytes that a client receives.
func TestFaultsOnTheWire(t *testing.T) {
	ask := func(t *testing.T, line string) (*http.Response, []byte, error) {
		t.Helper()
		client := llmtest.Serve(t, NewServer(script(t, line), ""))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, "POST", "http://model.test/v1/chat/completions", strings.NewReader(hello[:len(hello)-1]+`,"stream":true}`))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(req)
		if err != nil {
			return nil, nil, err
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
		return resp, body, err
	}
	tests := []struct {
		name, line string
		check      func(t *testing.T, resp *http.Response, body []byte, err error)
	}{
		{"an error with headers", `{"status":429,"headers":{"retry-after":"0"},"error":{"message":"m","code":"c"}}`, func(t *testing.T, resp *http.Response, body []byte, err error) {
			if err != nil || resp.StatusCode != 429 || resp.Header.Get("Retry-After") != "0" || string(body) != `{"error":{"code":"c","message":"m","type":""}}` {
				t.Errorf("got %+v %s, %v", resp, body, err)
			}
		}},
		{"a cut", `{"text":"hello","cut_after_bytes":40}`, func(t *testing.T, _ *http.Response, body []byte, err error) {
			if !errors.Is(err, io.ErrUnexpectedEOF) || len(body) != 40 || !bytes.HasPrefix(body, []byte("data: {")) {
				t.Errorf("got %q, %v", body, err)
			}
		}},
		{"silence", `{"stall":true}`, func(t *testing.T, resp *http.Response, _ []byte, err error) {
			if resp != nil || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %+v, %v", resp, err)
			}
		}},
		{"silence after a text", `{"text":"hello","stall":true}`, func(t *testing.T, _ *http.Response, body []byte, err error) {
			if !errors.Is(err, context.DeadlineExceeded) || !bytes.Contains(body, []byte("hello")) || bytes.Contains(body, []byte(`"stop"`)) {
				t.Errorf("got %q, %v", body, err)
			}
		}},
		{"nothing", `{"empty":true}`, func(t *testing.T, resp *http.Response, body []byte, err error) {
			if err != nil || resp.StatusCode != 200 || len(body) != 0 {
				t.Errorf("got %+v %q, %v", resp, body, err)
			}
		}},
		{"a body as it is", `{"raw":"a\u0000\n\nb","headers":{"Content-Type":"text/plain"},"status":201}`, func(t *testing.T, resp *http.Response, body []byte, err error) {
			if err != nil || resp.StatusCode != 201 || resp.Header.Get("Content-Type") != "text/plain" || string(body) != "a\x00\n\nb" {
				t.Errorf("got %+v %q, %v", resp, body, err)
			}
		}},
		{"a line without an end", `{"flood":true}`, func(t *testing.T, _ *http.Response, body []byte, err error) {
			if err != nil || len(body) != 1<<20 || bytes.Contains(body, []byte("\n")) {
				t.Errorf("got %d bytes, %v", len(body), err)
			}
		}},
		{"malformed arguments", `{"tool_calls":[{"name":"x","arguments":"{\"a"}]}`, func(t *testing.T, _ *http.Response, body []byte, err error) {
			if err != nil || !bytes.Contains(body, []byte(`"arguments":"{\"a"`)) {
				t.Errorf("got %s, %v", body, err)
			}
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // so that the minute is over at once
				resp, body, err := ask(t, tt.line)
				tt.check(t, resp, body, err)
			})
		})
	}
}
