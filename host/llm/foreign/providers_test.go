//go:build providers

package foreign

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/llm/anthropic"
	"github.com/stockade-dev/stockade/host/llm/google"
	"github.com/stockade-dev/stockade/host/llm/llmtest"
	"github.com/stockade-dev/stockade/host/llm/ollama"
	"github.com/stockade-dev/stockade/host/llm/openai"
	"github.com/stockade-dev/stockade/host/llm/openai/responses"
	"github.com/stockade-dev/stockade/host/llm/provider"
	"github.com/stockade-dev/stockade/host/tool"
)

// endpoint is a server for one of our providers.
type endpoint struct {
	provider string // the package
	server   string
	at       string // its address
	key      string
	model    string
	stranger string // a model for which the server answers 401; empty: it does with another key
	listed   string // one of the models that the server lists, where that is another one
	cached   string // a model that counts what was read from a cache, where it is another one
	cannot   whys

	reasoning string
	requests  *recorder
}

// client is one of our providers.
type client interface {
	llm.Model
	Models(ctx context.Context) ([]string, error)
}

// of returns the provider.
func (e *endpoint) of(key string) client {
	o := provider.Options{BaseURL: e.at, APIKey: key, ReasoningEffort: e.reasoning, HTTPClient: &http.Client{Transport: e.requests}}
	switch e.provider {
	case "anthropic":
		return anthropic.New(o)
	case "google":
		return google.New(o)
	case "ollama":
		return ollama.New(o)
	case "openai":
		o.BaseURL += "/v1"
		if e.server == "aimock as OpenRouter" {
			o.BaseURL = e.at + "/api/v1"
		}
		return openai.New(o)
	case "responses":
		o.BaseURL += "/v1"
		return responses.New(o)
	}
	panic("no provider " + e.provider)
}

// Reasons why a case proves nothing on a server, in the words of TABLE.md.
const (
	notPlayed  = "not played"
	notCounted = "not counted"
	notSaid    = "not said"
	dropped    = "dropped by LiteLLM"
)

// endpoints holds all endpoints.
func endpoints(aimock, litellm string) []*endpoint {
	counts := []string{cachedTokens, reasoningTokens}
	all := []*endpoint{
		{provider: "openai", server: "aimock", model: "gpt-5", listed: "gpt-4o", cannot: whys{notCounted: counts}},
		{provider: "openai", server: "aimock as OpenRouter", model: "openai/gpt-4o"},
		{provider: "openai", server: "LiteLLM to OpenAI", model: "openai", cached: "openrouter", cannot: whys{notSaid: {retryAfter}}},
		{provider: "openai", server: "LiteLLM to Anthropic", model: "anthropic", cannot: whys{notCounted: counts, notSaid: {retryAfter}}},
		{provider: "openai", server: "LiteLLM to Google", model: "google", cannot: whys{notCounted: counts}},

		{provider: "responses", server: "aimock", model: "gpt-5", listed: "gpt-4o", cannot: whys{notCounted: counts, notPlayed: {cutByLength}}},
		{provider: "responses", server: "LiteLLM to OpenAI", model: "openai", cannot: whys{notCounted: counts, notPlayed: {cutByLength}, notSaid: {retryAfter}}},
		{provider: "responses", server: "LiteLLM to Anthropic", model: "anthropic", cannot: whys{notCounted: counts, notSaid: {retryAfter}, dropped: {reasoning}}},
		{provider: "responses", server: "LiteLLM to Google", model: "google", cannot: whys{notCounted: counts, notSaid: {retryAfter}}},

		{provider: "anthropic", server: "aimock", model: "claude-sonnet-4-5", listed: "gpt-4o", cannot: whys{notCounted: counts}},
		{provider: "anthropic", server: "LiteLLM to OpenAI", model: "openai", cached: "openrouter", cannot: whys{dropped: counts, notSaid: {retryAfter}}},
		{provider: "anthropic", server: "LiteLLM to Anthropic", model: "anthropic", cannot: whys{notCounted: counts, notSaid: {retryAfter}}},
		{provider: "anthropic", server: "LiteLLM to Google", model: "google", cannot: whys{notCounted: counts, notSaid: {retryAfter}}},

		{provider: "google", server: "aimock", model: "gemini-2.5-flash", cannot: whys{notCounted: counts, notPlayed: {modelList}}},
		{provider: "google", server: "LiteLLM to OpenAI", model: "openai", cached: "openrouter",
			cannot: whys{dropped: append(counts, picture, reasoning), notSaid: {retryAfter}, notPlayed: {modelList}}},
		{provider: "google", server: "LiteLLM to Anthropic", model: "anthropic",
			cannot: whys{notCounted: counts, dropped: {picture, reasoning}, notSaid: {retryAfter}, notPlayed: {modelList}}},
		{provider: "google", server: "LiteLLM to Google", model: "google", cannot: whys{notCounted: counts, notSaid: {retryAfter}, notPlayed: {modelList}}},

		{provider: "ollama", server: "aimock", model: "qwen3", listed: "gpt-4o", cannot: whys{notPlayed: {reasoning, cutByLength}, notCounted: append(counts, tokens)}},
	}
	for _, e := range all {
		e.at, e.key = aimock, aimockKey
		if strings.HasPrefix(e.server, "LiteLLM") {
			e.at, e.key, e.stranger = litellm, litellmKey, "stranger"
		}
	}
	return all
}

// whys holds the names of cases that prove nothing, by the reason.
type whys map[string][]string

// of returns the reason why a case proves nothing; empty: it must prove something.
func (w whys) of(name string) string {
	for why, names := range w {
		if slices.Contains(names, name) {
			return why
		}
	}
	return ""
}

// The cases, by name.
const (
	streamedText    = "a text is streamed"
	parallelCalls   = "two calls, their arguments in many pieces"
	secondStep      = "what they have returned arrives"
	picture         = "an image arrives"
	reasoning       = "reasoning is kept, and a step goes on after it"
	tokens          = "tokens are counted"
	cachedTokens    = "cached tokens are counted"
	reasoningTokens = "reasoning tokens are counted"
	cutByLength     = "an answer that is too long says so"
	wrongKey        = "401 is no use to try again"
	rateLimit       = "429 is"
	retryAfter      = "429 says when"
	modelList       = "models are listed"
)

const systemText = "You work in a sandbox."

var cases = []struct {
	name string
	run  func(t *testing.T, w *window, e *endpoint)
}{
	{streamedText, func(t *testing.T, w *window, e *endpoint) {
		text, pieces := "", 0
		for d, err := range e.of(e.key).Stream(t.Context(), e.request("Say hello.")) {
			if err != nil {
				t.Fatalf("%+v", err)
			}
			if d.Text != "" {
				pieces++
			}
			text += d.Text
		}
		if text != `Grüße, 世界 <&> and "more".` || pieces < 3 {
			t.Errorf("got %q in %d pieces", text, pieces)
		}
		if body := w.seen(); !strings.Contains(body, systemText) || !strings.Contains(body, "Reads a file.") {
			t.Errorf("the server has not got the system's words and the tools: %.600s", body)
		}
	}},
	{parallelCalls, func(t *testing.T, _ *window, e *endpoint) {
		got := e.ask(t, "Which C files are there, and what is this?")
		if got.Text != "I look." || got.Finish != llm.FinishTools || len(got.Calls) != 2 {
			t.Fatalf("got %+v", got)
		}
		for i, want := range []llm.FunctionData{
			{Name: "glob", Arguments: `{"path":"src/a directory with a long name","pattern":"**/*.c"}`},
			{Name: "file_read", Arguments: `{"limit":3,"path":"README.md"}`},
		} {
			call := got.Calls[i]
			var args any
			if err := json.Unmarshal([]byte(call.Function.Arguments), &args); err != nil {
				t.Error(err)
			}
			if sorted, _ := json.Marshal(args); call.ID == "" || call.Function.Name != want.Name || string(sorted) != want.Arguments {
				t.Errorf("call %d is %+v", i, call)
			}
		}
	}},
	{secondStep, func(t *testing.T, _ *window, e *endpoint) {
		got := e.ask(t, "Which C files are there, and what is this?")
		got = e.ask(t, "Which C files are there, and what is this?", results(got, "src/a.c, src/b.c", "a program that counts")...)
		if got.Text != "Two files, and it counts." {
			t.Errorf("got %+v", got)
		}
	}},
	{picture, func(t *testing.T, w *window, e *endpoint) {
		drawn := redDot(t)
		req := e.request("What is in this picture?")
		req.Messages[1].Parts = []llm.Part{{Type: llm.ImagePart, Mime: "image/png", Data: drawn}}
		got, err := llmtest.Collect(t.Context(), t, e.of(e.key), req)
		if err != nil || got.Text != "A red dot." {
			t.Fatalf("got %+v, %v", got, err)
		}
		if body := w.seen(); !strings.Contains(body, base64.StdEncoding.EncodeToString(drawn)) {
			t.Errorf("the server has got no image: %.600s", body)
		}
	}},
	{reasoning, func(t *testing.T, _ *window, e *endpoint) {
		thinking := *e
		e = &thinking
		e.reasoning = "low"
		got := e.ask(t, "Think.")
		if text := thoughts(got); text != "Somebody wrote it down." || len(got.Calls) != 1 {
			t.Fatalf("the reasoning is %q of %+v", text, got)
		}
		got = e.ask(t, "Think.", results(got, "The answer is 42.")...)
		if text := thoughts(got); text != "So that is it." || got.Text != "It is 42." {
			t.Errorf("the reasoning is %q of %+v", text, got)
		}
	}},
	{tokens, func(t *testing.T, _ *window, e *endpoint) {
		if got := e.ask(t, "Count.").Usage; got.InputTokens != 1100 || got.OutputTokens != 70 {
			t.Errorf("got %+v", got)
		}
	}},
	{cachedTokens, func(t *testing.T, _ *window, e *endpoint) {
		of := *e
		of.model = cmp.Or(e.cached, e.model)
		got := of.ask(t, "Count.").Usage
		if got.InputTokens != 1100 || got.CachedTokens != 1000 {
			t.Errorf("got %+v", got)
		}
	}},
	{reasoningTokens, func(t *testing.T, _ *window, e *endpoint) {
		of := *e
		of.model = cmp.Or(e.cached, e.model)
		if got := of.ask(t, "Count.").Usage; got.OutputTokens != 70 || got.ReasoningTokens != 40 {
			t.Errorf("got %+v", got)
		}
	}},
	{cutByLength, func(t *testing.T, _ *window, e *endpoint) {
		if got := e.ask(t, "Stop early."); got.Text != "And so" || got.Finish != llm.FinishLength {
			t.Errorf("got %+v", got)
		}
	}},
	{wrongKey, func(t *testing.T, _ *window, e *endpoint) {
		of, key := *e, "sk-another-key"
		if e.stranger != "" {
			of.model, key = e.stranger, e.key
		}
		if err := of.fail(t, key, "Say hello."); err.Status != http.StatusUnauthorized || err.Retryable || err.Hint == "" {
			t.Errorf("got %+v", err)
		}
	}},
	{rateLimit, func(t *testing.T, _ *window, e *endpoint) {
		err := e.fail(t, e.key, "Hurry.")
		said := err.Status == http.StatusTooManyRequests || strings.HasPrefix(err.Code, "rate_limit") // LiteLLM may say it in a stream
		if !said || !err.Retryable || !strings.Contains(err.Message, "slow down") {
			t.Errorf("got %d %q, retryable %t: %v", err.Status, err.Code, err.Retryable, err)
		}
	}},
	{retryAfter, func(t *testing.T, _ *window, e *endpoint) {
		if err := e.fail(t, e.key, "Hurry."); err.RetryAfter != 7*time.Second {
			t.Errorf("got %+v", err)
		}
	}},
	{modelList, func(t *testing.T, _ *window, e *endpoint) {
		got, err := e.of(e.key).Models(t.Context())
		if err != nil || !slices.Contains(got, cmp.Or(e.listed, e.model)) {
			t.Errorf("got %q, %v", got, err)
		}
	}},
}

// TestProviders runs all cases on all servers, checks the requests with the vendors' types,
// and compares TABLE.md.
func TestProviders(t *testing.T) {
	w := newWindow(t, startAimock(t))
	all := endpoints(w.address, startLiteLLM(t, w.address))
	dir := t.TempDir()
	for _, e := range all {
		t.Run(e.provider+", "+e.server, func(t *testing.T) {
			for i, c := range cases {
				if e.cannot.of(c.name) != "" {
					continue
				}
				e.requests = &recorder{file: filepath.Join(dir, fmt.Sprintf("%s-%s-%02d", e.provider, strings.ReplaceAll(e.server, " ", "-"), i))}
				t.Run(c.name, func(t *testing.T) { c.run(t, w, e) })
			}
		})
	}
	output, err := exec.CommandContext(t.Context(), *python, filepath.Join("testdata", "check.py"), dir).CombinedOutput()
	if t.Logf("%s", output); err != nil {
		t.Errorf("the vendors' types do not have what was sent: %v", err)
	}
	compareTable(t, all)
}

// compareTable compares TABLE.md with the proven cases, or writes it.
func compareTable(t *testing.T, all []*endpoint) {
	t.Helper()
	var text strings.Builder
	text.WriteString(tableHead)
	for i, c := range cases {
		fmt.Fprintf(&text, "%d. %s\n", i+1, c.name)
	}
	text.WriteString("\n| provider | server | proven | not |\n|---|---|---|---|\n")
	for _, e := range all {
		var proven, not []string
		byWhy := map[string]string{}
		for i, c := range cases {
			why := e.cannot.of(c.name)
			switch {
			case why == "":
				proven = append(proven, fmt.Sprint(i+1))
				continue
			case byWhy[why] == "":
				not = append(not, why)
			}
			byWhy[why] += fmt.Sprint(" ", i+1)
		}
		for i, why := range not {
			not[i] = why + ":" + byWhy[why]
		}
		fmt.Fprintf(&text, "| %s | %s | %s | %s |\n", e.provider, e.server, strings.Join(proven, " "), strings.Join(not, ", "))
	}
	text.WriteString(tableTail)
	if os.Getenv("UPDATE_TABLE") != "" && !t.Failed() {
		if err := os.WriteFile("TABLE.md", []byte(text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	table, err := os.ReadFile("TABLE.md")
	if err != nil || string(table) != text.String() {
		t.Errorf("TABLE.md is not what was found, %v: run UPDATE_TABLE=1 make test-providers", err)
	}
}

const tableHead = `# What the wire formats were proven against

` + "`make test-providers`" + ` checks this page, with the versions that the Makefile names; the package comment says what
the servers are. The cases:

`

const tableTail = `
Each body that was sent there was also checked with the types of the vendors' libraries for Python: it has no field
that they do not know, at no depth, and all that they require. Left out of that is what is documented and not in
the libraries: reasoning, which servers of others than OpenAI want back, and of Ollama two fields and most of
JSON Schema.

` + "`stockade model serve`" + ` was proven with clients of others: OpenAI's library, which has each chunk checked with its
type of one, LiteLLM's, and two agents that have a file read: opencode by chat completions, codex by responses.
`

func (e *endpoint) request(prompt string) llm.Request {
	return llm.Request{
		Model: e.model,
		Messages: []llm.Message{
			{Kind: llm.System, Content: systemText},
			{Kind: llm.User, Content: prompt},
		},
		Tools: []tool.Definition{
			{
				Name: "file_read", Description: "Reads a file.",
				Parameters: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"},"limit":{"type":"integer","minimum":1}},"required":["path"],"additionalProperties":false}`),
			},
			{
				Name: "glob", Description: "Finds files.",
				Parameters: json.RawMessage(`{"type":"object","properties":{"pattern":{"type":"string"},"path":{"type":"string"}},"required":["pattern"],"additionalProperties":false}`),
			},
		},
	}
}

// ask sends a prompt and the messages that follow it.
func (e *endpoint) ask(t *testing.T, prompt string, after ...llm.Message) llm.Reply {
	t.Helper()
	req := e.request(prompt)
	req.Messages = append(req.Messages, after...)
	reply, err := llmtest.Collect(t.Context(), t, e.of(e.key), req)
	if err != nil {
		t.Fatalf("%+v", err)
	}
	return reply
}

// fail sends a prompt that must fail.
func (e *endpoint) fail(t *testing.T, key, prompt string) *llm.ProviderError {
	t.Helper()
	reply, err := llmtest.Collect(t.Context(), t, e.of(key), e.request(prompt))
	failure, ok := errors.AsType[*llm.ProviderError](err)
	if !ok {
		t.Fatalf("got %+v, %v, want an error of the provider", reply, err)
	}
	if strings.Contains(fmt.Sprintf("%+v", failure), key) {
		t.Errorf("the key is in the error: %+v", failure)
	}
	return failure
}

// results returns the messages of a reply and of the results of its calls.
func results(reply llm.Reply, outputs ...string) []llm.Message {
	all := reply.Messages()
	for i, c := range reply.Calls {
		all = append(all, llm.ResultMessage(c.ID, c.Function.Name, tool.Result{Output: tool.Text(outputs[i])}))
	}
	return all
}

func thoughts(reply llm.Reply) string {
	var text strings.Builder
	for _, p := range reply.Parts {
		if p.Type == llm.ReasoningPart {
			text.WriteString(p.Text)
		}
	}
	return text.String()
}

func redDot(t *testing.T) []byte {
	t.Helper()
	dot := image.NewRGBA(image.Rect(0, 0, 8, 8))
	dot.Set(4, 4, color.RGBA{R: 255, A: 255})
	var out bytes.Buffer
	if err := png.Encode(&out, dot); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// recorder is a transport that records the bodies of requests.
type recorder struct {
	file string
	n    int
}

func (r *recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body != nil {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		r.n++
		if err := os.WriteFile(fmt.Sprintf("%s-%d.json", r.file, r.n), body, 0o600); err != nil {
			return nil, err
		}
		req = req.Clone(req.Context())
		req.Body = io.NopCloser(bytes.NewReader(body))
	}
	return http.DefaultTransport.RoundTrip(req)
}
