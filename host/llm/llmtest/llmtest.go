// Package llmtest is the test suite for every [llm.Model]. It can also run a model against a
// server in memory.
//
// [Run] plays scripts in the format of offline.Script. Each case runs in a bubble of
// testing/synctest. Time is fake there: stall time-outs and Retry-After cost nothing and are
// exact. A goroutine that a model leaves behind fails the test. A model must therefore reach its
// server through [Serve], not through a real socket.
package llmtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/tool"
)

// APIKey is the key of the model under test. Servers repeat it in errors; the model must not.
const APIKey = "sk-llmtest-0123456789abcdef"

// MaxStreamBytes and StallTimeout are the values of these options of the model under test.
const (
	MaxStreamBytes = 16 << 20
	StallTimeout   = 20 * time.Second
)

// Serve serves h in memory until the test ends. All connections of the returned client lead to
// h. In a bubble of synctest, the server is part of the bubble.
func Serve(t testing.TB, h http.Handler) *http.Client {
	listener := &memoryListener{conns: make(chan net.Conn), closed: make(chan struct{})}
	server := &http.Server{Handler: h}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	transport := &http.Transport{DialContext: listener.dial, DisableCompression: true}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		server.Close()
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return &http.Client{Transport: transport}
}

type memoryListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (l *memoryListener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *memoryListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *memoryListener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }

func (l *memoryListener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case l.conns <- far:
		return near, nil
	case <-l.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Collect asks the model and assembles the reply. It fails the test if the model breaks the
// contract of [llm.Model].
func Collect(ctx context.Context, t testing.TB, model llm.Model, req llm.Request) (llm.Reply, error) {
	t.Helper()
	n := 0
	assembler := &llm.Assembler{NewID: func() string { n++; return fmt.Sprintf("made_%d", n) }}
	var failure error
	finished := false
	for d, err := range model.Stream(ctx, req) {
		switch {
		case failure != nil:
			t.Errorf("the model yielded %+v, %v after an error", d, err)
		case err != nil:
			failure = err
			continue
		case d.Finish != "" && finished:
			t.Errorf("the model said twice why it stopped")
		case finished && (d.Text != "" || len(d.Calls) > 0):
			t.Errorf("the model yielded %+v after its finish", d)
		}
		finished = finished || d.Finish != ""
		if err := assembler.Add(d); err != nil {
			return assembler.Reply(), err
		}
	}
	if failure == nil && !finished {
		t.Errorf("the stream ended with neither an error nor a finish reason")
	}
	return assembler.Reply(), failure
}

// Request returns the request that the suite sends. It has one tool.
func Request() llm.Request {
	return llm.Request{
		Model: "test-model",
		Messages: []llm.Message{
			{Kind: llm.System, Content: "You work in a sandbox."},
			{Kind: llm.User, Content: "Which C files are there?"},
		},
		Tools: []tool.Definition{{
			Name: "glob", Description: "Finds files.",
			Parameters: json.RawMessage(`{"type":"object","properties":{"pattern":{"type":"string"}}}`),
		}},
	}
}

// Feature is an ability that some wire formats lack.
type Feature string

// The features.
const (
	TextArguments   Feature = "arguments that are text"             // the arguments may be malformed; without it they are JSON
	Signatures      Feature = "reasoning whose signature goes back" // without it reasoning is only shown
	CachedTokens    Feature = "tokens from a cache that are counted"
	ReasoningTokens Feature = "tokens of reasoning that are counted"
)

// Run runs the suite, except for cases that need a feature in lacks. newModel returns a model
// with [APIKey], [MaxStreamBytes] and [StallTimeout], whose server plays the script.
func Run(t *testing.T, newModel func(t testing.TB, script []string) llm.Model, lacks ...Feature) {
	for _, c := range cases {
		if slices.Contains(lacks, c.needs) {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				reply, err := Collect(t.Context(), t, newModel(t, c.script), Request())
				c.check(t, reply, err)
				if took := time.Since(start); took != c.takes {
					t.Errorf("it took %v, want %v", took, c.takes)
				}
				if err != nil && strings.Contains(fmt.Sprintf("%v %+v %#v", err, err, err), APIKey) {
					t.Errorf("the key is in the error: %+v", err)
				}
			})
		})
	}
	t.Run("a retried request yields the second answer only", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { retried(t, newModel) })
	})
	t.Run("the model gets the images of results and of prompts", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { pictured(t, newModel) })
	})
	if !slices.Contains(lacks, Signatures) {
		t.Run("what a provider wants back with its reasoning goes to the same model only", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { signed(t, newModel) })
		})
	}
	t.Run("a cancelled request ends with the cause", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { cancelled(t, newModel) })
	})
	t.Run("a consumer that stops ends the request", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { stopped(t, newModel) })
	})
	t.Run("a slow consumer is no stall", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { slow(t, newModel) })
	})
	t.Run("the steps of a conversation share a connection", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { connected(t, newModel) })
	})
	t.Run("a model answers many requests at once", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { concurrent(t, newModel) })
	})
}

type testCase struct {
	name   string
	needs  Feature
	script []string
	takes  time.Duration
	check  func(t *testing.T, reply llm.Reply, err error)
}

// The keys of arguments are in the order of the alphabet, the only one that parsing servers keep.
var cases = []testCase{{
	name:   "a text in many chunks is one reply",
	script: []string{`{"text":"Grüße, 世界 <&>","chunk_bytes":1,"usage":{"input_tokens":11,"output_tokens":7}}`},
	check: wantReply(llm.Reply{
		Text:   "Grüße, 世界 <&>",
		Finish: llm.FinishStop, Usage: llm.Usage{InputTokens: 11, OutputTokens: 7},
	}),
}, {
	name:   "one call in many chunks is one reply",
	script: []string{`{"tool_calls":[{"id":"a","name":"glob","arguments":{"path":"src/","pattern":"*.c"}}],"chunk_bytes":1,"usage":{}}`},
	check:  wantReply(callsReply("", llm.NewCall("a", "glob", `{"path":"src/","pattern":"*.c"}`))),
}, {
	name:   "tokens from a cache are counted",
	script: []string{`{"text":"x","usage":{"input_tokens":11,"output_tokens":7,"cached_tokens":5}}`},
	needs:  CachedTokens,
	check:  wantReply(llm.Reply{Text: "x", Finish: llm.FinishStop, Usage: llm.Usage{InputTokens: 11, OutputTokens: 7, CachedTokens: 5}}),
}, {
	name:   "tokens of reasoning are counted",
	script: []string{`{"text":"x","usage":{"input_tokens":11,"output_tokens":7,"reasoning_tokens":3}}`},
	needs:  ReasoningTokens,
	check:  wantReply(llm.Reply{Text: "x", Finish: llm.FinishStop, Usage: llm.Usage{InputTokens: 11, OutputTokens: 7, ReasoningTokens: 3}}),
}, {
	name:   "reasoning comes before the text",
	script: []string{`{"reasoning":"hmm, the \"list\"","text":"I look.","chunk_bytes":3,"usage":{}}`},
	check: func(t *testing.T, reply llm.Reply, err error) {
		t.Helper()
		if err != nil || len(reply.Parts) != 2 || reply.Parts[0].Type != llm.ReasoningPart || reply.Parts[0].Text != `hmm, the "list"` || reply.Text != "I look." {
			t.Errorf("got %+v, %v", reply, err)
		}
	},
}, {
	name: "two interleaved calls stay apart and in order",
	script: []string{`{"text":"Both.","tool_calls":[{"id":"b","name":"glob","arguments":{"pattern":"*.c"}},` +
		`{"id":"a","name":"file_read","arguments":{"limit":3,"path":"README.md"}}],"chunk_bytes":2,"usage":{}}`},
	check: wantReply(callsReply("Both.",
		llm.NewCall("b", "glob", `{"pattern":"*.c"}`),
		llm.NewCall("a", "file_read", `{"limit":3,"path":"README.md"}`))),
}, {
	name:   "missing ids are made",
	script: []string{`{"tool_calls":[{"name":"glob","arguments":{"pattern":"a"}},{"name":"glob","arguments":{"pattern":"b"}}],"usage":{}}`},
	check: wantReply(callsReply("",
		llm.NewCall("made_1", "glob", `{"pattern":"a"}`),
		llm.NewCall("made_2", "glob", `{"pattern":"b"}`))),
}, {
	name:   "malformed arguments are passed on as they are",
	needs:  TextArguments,
	script: []string{`{"tool_calls":[{"id":"a","name":"glob","arguments":"{\"pattern\": \"*.c"}],"usage":{}}`},
	check:  wantReply(callsReply("", llm.NewCall("a", "glob", `{"pattern": "*.c`))),
}, {
	name:   "too large arguments are dropped, and the reply is whole",
	script: []string{`{"tool_calls":[{"id":"a","name":"glob","arguments":{"pattern":"` + strings.Repeat("x", llm.MaxArgumentBytes) + `"}}],"chunk_bytes":65536,"usage":{}}`},
	check: wantReply(callsReply("", llm.CallData{ID: "a", Type: "function", Function: llm.FunctionData{
		Name: "glob", Arguments: "{}", DroppedBytes: llm.MaxArgumentBytes + len(`{"pattern":""}`),
	}})),
}, {
	name:   "a call without arguments gets an empty object",
	script: []string{`{"tool_calls":[{"id":"a","name":"list_tasks"}],"usage":{}}`},
	check:  wantReply(callsReply("", llm.NewCall("a", "list_tasks", `{}`))),
}, {
	name:   "an answer that is cut by its length says so",
	script: []string{`{"text":"and so","finish":"length","usage":{}}`},
	check:  wantReply(llm.Reply{Text: "and so", Finish: llm.FinishLength}),
}, {
	name:   "half a stream is an error that can be retried",
	script: []string{`{"text":"This answer will never be whole, however long it gets.","chunk_bytes":4,"cut_after_bytes":900}`},
	check:  wantError(llm.ProviderError{Retryable: true, Message: "ended early"}),
}, {
	name:   "a stream that is cut before its first event is an error that can be retried",
	script: []string{`{"text":"x","cut_after_bytes":20}`},
	check:  wantError(llm.ProviderError{Retryable: true}),
}, {
	name:   "401 is not retryable and does not repeat the key",
	script: []string{`{"status":401,"error":{"message":"Incorrect API key provided: ` + APIKey + `.","code":"invalid_api_key"}}`},
	check:  wantError(llm.ProviderError{Status: 401, Code: "invalid_api_key", Message: "Incorrect API key provided", Hint: "stockade model list"}),
}, {
	name:   "429 is retryable after the time that the server asks for",
	script: []string{`{"status":429,"headers":{"Retry-After":"7"},"error":{"message":"slow down","code":"rate_limit_exceeded"}}`},
	check:  wantError(llm.ProviderError{Status: 429, Code: "rate_limit_exceeded", Message: "slow down", Retryable: true, RetryAfter: 7 * time.Second}),
}, {
	name:   "500 is retryable",
	script: []string{`{"status":500,"error":{"message":"oops"}}`},
	check:  wantError(llm.ProviderError{Status: 500, Message: "oops", Retryable: true}),
}, {
	name:   "400 is not retryable and has the provider's message",
	script: []string{`{"status":400,"error":{"message":"no such parameter"}}`},
	check:  wantError(llm.ProviderError{Status: 400, Message: "no such parameter"}),
}, {
	name:   "an empty stream is an error",
	script: []string{`{"empty":true}`},
	check:  wantError(llm.ProviderError{Retryable: true, Message: "empty"}),
}, {
	name:   "a server that does not answer is given up after the stall time-out",
	script: []string{`{"stall":true}`},
	takes:  StallTimeout,
	check:  wantError(llm.ProviderError{Retryable: true, Message: "no answer for 20s"}),
}, {
	name:   "a server that falls silent is given up after the stall time-out",
	script: []string{`{"text":"Let me think.","stall":true}`},
	takes:  StallTimeout,
	check:  wantError(llm.ProviderError{Retryable: true, Message: "no answer for 20s"}),
}, {
	name:   "a line that never ends is given up",
	script: []string{`{"flood":true}`},
	check:  wantError(llm.ProviderError{Message: "more than"}),
}, {
	name:   "garbage is an error",
	script: []string{`{"raw":"\u0000\u0001 what?\r\n\r\n{]"}`},
	check:  wantError(llm.ProviderError{}),
}, {
	name:   "a web page is an error",
	script: []string{`{"raw":"<!DOCTYPE html>\n<html><body>Log in to the hotel's network</body></html>"}`},
	check:  wantError(llm.ProviderError{Message: "web page"}),
}}

// wantReply returns a check for the reply want, including its zero fields, and no error.
func wantReply(want llm.Reply) func(t *testing.T, reply llm.Reply, err error) {
	return func(t *testing.T, reply llm.Reply, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%+v", err)
		}
		if diff := cmp.Diff(want, reply); diff != "" {
			t.Errorf("reply (-want +got):\n%s", diff)
		}
	}
}

// wantError returns a check for a *ProviderError. Its Message and Hint must contain those of want.
// The other fields must be equal; an empty Code stands for any.
func wantError(want llm.ProviderError) func(t *testing.T, reply llm.Reply, err error) {
	return func(t *testing.T, _ llm.Reply, err error) {
		t.Helper()
		got, ok := errors.AsType[*llm.ProviderError](err)
		if !ok {
			t.Fatalf("got the error %v, want a *llm.ProviderError", err)
		}
		if got.Provider == "" || got.Message == "" {
			t.Errorf("the error does not say who and what: %+v", got)
		}
		if !strings.Contains(got.Message, want.Message) || !strings.Contains(got.Hint, want.Hint) {
			t.Errorf("got %+v, want the message %q and the hint %q", got, want.Message, want.Hint)
		}
		if got.Status != want.Status || got.Retryable != want.Retryable || got.RetryAfter != want.RetryAfter || want.Code != "" && got.Code != want.Code {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
}

func callsReply(text string, calls ...llm.CallData) llm.Reply {
	return llm.Reply{Text: text, Calls: calls, Finish: llm.FinishTools}
}

func retried(t *testing.T, newModel func(testing.TB, []string) llm.Model) {
	model := newModel(t, []string{
		`{"text":"This answer will never be whole, however long it gets.","chunk_bytes":4,"cut_after_bytes":900}`,
		`{"status":429,"headers":{"Retry-After":"3"},"error":{"message":"slow down"}}`,
		`{"text":"whole"}`,
	})
	start := time.Now()
	reply, err := Collect(t.Context(), t, llm.Retry(model, 4), Request())
	if err != nil || reply.Text != "whole" || reply.Calls != nil {
		t.Errorf("got %+v, %v", reply, err)
	}
	if took := time.Since(start); took < 3*time.Second || took > 4*time.Second {
		t.Errorf("waited %v, want a part of a second and 3s", took)
	}
}

// pictured sends images, and one image that was left out. The first server takes images; the
// second refuses.
func pictured(t *testing.T, newModel func(testing.TB, []string) llm.Model) {
	image := func(bytes string) llm.Part {
		return llm.Part{Type: llm.ImagePart, Mime: "image/png", Data: []byte(bytes)}
	}
	result := func(id string, parts ...llm.Part) llm.Message {
		m := llm.ResultMessage(id, "file_read", tool.Result{Output: tool.Text("the words of " + id)})
		m.Parts = parts
		return m
	}
	req := Request()
	req.Messages[1].Parts = []llm.Part{image("of the prompt")}
	for _, id := range []string{"call_a", "call_b"} {
		req.Messages = append(req.Messages, llm.CallMessage(llm.NewCall(id, "file_read", "{}")))
	}
	req.Messages = append(req.Messages, result("call_a", image("of a call"), llm.Part{Type: llm.ImagePart, Mime: "image/gif"}), result("call_b"))
	const prompt, call = `"b2YgdGhlIHByb21wdA=="`, `"b2YgYSBjYWxs"`
	seen := `{"text":"seen","expect":[` + prompt + `,` + call + `,"the words of call_b","call_a","left out to save room"]}`
	model := newModel(t, []string{seen, `{"status":400,"error":{"message":"image input is not supported"}}`,
		`{"text":"not seen","expect":["the words of call_b","image input is not supported"],"expect_not":[` + prompt + `,` + call + `]}`,
		`{"text":"not seen","expect_not":[` + prompt + `,` + call + `]}`})
	for _, want := range []string{"seen", "not seen", "not seen"} {
		reply, err := Collect(t.Context(), t, model, req)
		if err != nil || reply.Text != want {
			t.Errorf("got %+v, %v, want %s", reply, err, want)
		}
	}
}

// signed continues a conversation after an answer with a signature.
func signed(t *testing.T, newModel func(testing.TB, []string) llm.Model) {
	const signature = "c2lnbmVkIGhlcmU="
	model := newModel(t, []string{
		`{"reasoning":"I need a list.","signature":"` + signature + `","text":"I look.","tool_calls":[{"id":"a","name":"glob","arguments":{"pattern":"*.c"}}]}`,
		`{"text":"whole","expect":["` + signature + `","the list"]}`,
		`{"text":"another","expect":["the list"],"expect_not":["` + signature + `"]}`,
	})
	req := Request()
	reply, err := Collect(t.Context(), t, model, req)
	if err != nil {
		t.Fatal(err)
	}
	req.Messages = append(req.Messages, reply.Messages()...)
	for _, c := range reply.Calls {
		req.Messages = append(req.Messages, llm.ResultMessage(c.ID, c.Function.Name, tool.Result{Output: tool.Text("the list")}))
	}
	for _, want := range []string{"whole", "another"} {
		reply, err := Collect(t.Context(), t, model, req)
		if err != nil || reply.Text != want {
			t.Errorf("got %+v, %v, want %s", reply, err, want)
		}
		req.Model = "another-model"
	}
}

func cancelled(t *testing.T, newModel func(testing.TB, []string) llm.Model) {
	cause := errors.New("the user pressed Ctrl-C")
	for _, line := range []string{`{"stall":true}`, `{"text":"Let me think.","stall":true}`} {
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(cause) })
		_, err := Collect(ctx, t, newModel(t, []string{line}), Request())
		if !errors.Is(err, cause) {
			t.Errorf("%s: got %v, want the cause", line, err)
		}
		if _, ok := errors.AsType[*llm.ProviderError](err); ok {
			t.Errorf("%s: a cancelled request is not the provider's fault: %v", line, err)
		}
	}
}

func stopped(t *testing.T, newModel func(testing.TB, []string) llm.Model) {
	model := newModel(t, []string{`{"text":"Let me think about that for a while.","chunk_bytes":4,"stall":true}`})
	start := time.Now()
	for d, err := range model.Stream(t.Context(), Request()) {
		if err != nil || d.Text == "" {
			t.Errorf("got %+v, %v, want a text", d, err)
		}
		break
	}
	// Everything that the request started must end without the stall time-out;
	// what does not end at all, the bubble reports.
	synctest.Wait()
	if took := time.Since(start); took != 0 {
		t.Errorf("the request went on for %v", took)
	}
}

func slow(t *testing.T, newModel func(testing.TB, []string) llm.Model) {
	model := newModel(t, []string{`{"text":"Take your time, I can wait.","chunk_bytes":4}`})
	text := ""
	for d, err := range model.Stream(t.Context(), Request()) {
		if err != nil {
			t.Fatal(err)
		}
		text += d.Text
		<-time.After(2 * StallTimeout) // of the bubble's time
	}
	if text != "Take your time, I can wait." {
		t.Errorf("got %q", text)
	}
}

func connected(t *testing.T, newModel func(testing.TB, []string) llm.Model) {
	model := newModel(t, []string{`{"text":"one"}`, `{"tool_calls":[{"id":"a","name":"glob","arguments":{"pattern":"*"}}]}`, `{"text":"three"}`})
	made := 0
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(c httptrace.GotConnInfo) {
		if !c.Reused {
			made++
		}
	}})
	for range 3 {
		if _, err := Collect(ctx, t, model, Request()); err != nil {
			t.Error(err)
		}
	}
	if made != 1 {
		t.Errorf("three requests have made %d connections", made)
	}
}

func concurrent(t *testing.T, newModel func(testing.TB, []string) llm.Model) {
	const n = 8
	var script []string
	for range n {
		script = append(script, `{"text":"one of many","tool_calls":[{"id":"a","name":"glob","arguments":{"pattern":"*"}}]}`)
	}
	model := newModel(t, script)
	var group sync.WaitGroup
	for range n {
		group.Go(func() {
			reply, err := Collect(t.Context(), t, model, Request())
			if err != nil || reply.Text != "one of many" || len(reply.Calls) != 1 {
				t.Errorf("got %+v, %v", reply, err)
			}
		})
	}
	group.Wait()
}
