package ollama

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/llm/llmtest"
	"github.com/stockade-dev/stockade/host/llm/provider"
)

const (
	showTools = `{"model_info":{"general.architecture":"llama","llama.context_length":131072,"llama.rope":null},"capabilities":["completion","tools"]}`
	psEmpty   = `{"models":[]}`
)

// TestContext checks the size of the context that is asked for.
func TestContext(t *testing.T) {
	const info = `"model_info":{"general.architecture":"qwen3","qwen3.context_length":`
	for name, c := range map[string]struct {
		configured int
		show, ps   string
		size       int
		want       string
	}{
		"of a model that can hold much":     {show: showTools, ps: psEmpty, want: `{"num_ctx":32768}`},
		"of a model that can hold little":   {show: `{` + info + `8192}}`, want: `{"num_ctx":8192}`},
		"of a model that says nothing":      {want: `{"num_ctx":32768}`},
		"of nonsense":                       {show: `{` + info + `"much"},"parameters":7}`, ps: `[]`, want: `{"num_ctx":32768}`},
		"configured":                        {configured: 100_000, show: showTools, want: `{"num_ctx":100000}`},
		"configured, and less":              {configured: 6_000, show: showTools, want: `{"num_ctx":6000}`},
		"more than the model can hold":      {configured: 200_000, show: showTools, want: `{"num_ctx":131072}`},
		"of a Modelfile that says more":     {show: `{` + info + `262144},"parameters":"stop    \"x\"\nnum_ctx                        65000\ntop_k 7"}`, want: `{"num_ctx":65000}`},
		"of a Modelfile that says less":     {show: `{"parameters":"num_ctx 4096"}`, want: `{"num_ctx":32768}`},
		"loaded with more":                  {show: showTools, ps: `{"models":[{"name":"other","context_length":7},{"name":"test-model:latest","context_length":50000}]}`, want: `{"num_ctx":50000}`},
		"loaded with less":                  {show: showTools, ps: `{"models":[{"name":"test-model:latest","context_length":4096}]}`, want: `{"num_ctx":32768}`},
		"for a long conversation":           {show: showTools, size: 100_000, want: `{"num_ctx":5`},
		"for a very long conversation":      {show: showTools, size: 300_000, want: `{"num_ctx":65536}`},
		"of the cloud, where there is room": {show: `{` + info + `262144},"remote_host":"https://ollama.com:443"}`, want: `{"num_ctx":262144}`},
	} {
		opts := options(t, scripted{show: c.show, ps: c.ps}, `{"text":"ok","expect":["`+strings.ReplaceAll(c.want, `"`, `\"`)+`"]}`)
		opts.ContextTokens = c.configured
		req := llmtest.Request()
		req.Messages[1].Content = strings.Repeat("word ", c.size/5)
		model := New(opts)
		told := llm.ContextSizeOf(t.Context(), model, req) // before the first request
		if reply, err := llmtest.Collect(t.Context(), t, model, req); err != nil || reply.Text != "ok" {
			t.Errorf("%s: got %+v, %v", name, reply, err)
		}
		if !strings.HasPrefix(fmt.Sprintf(`{"num_ctx":%d}`, told), c.want) {
			t.Errorf("%s: %d tokens are told, want %s", name, told, c.want)
		}
	}
}

// TestNothingIsForgottenInSilence checks requests that exceed the context, and servers that
// cut them.
func TestNothingIsForgottenInSilence(t *testing.T) {
	long := func(bytes int) llm.Request {
		req := llmtest.Request()
		req.Messages[1].Content = strings.Repeat("word ", bytes/5)
		return req
	}
	said := func(tokens string) string {
		return `{"text":"ok","usage":{"input_tokens":` + tokens + `,"output_tokens":1}}`
	}
	for name, c := range map[string]struct {
		configured int
		ps         string
		script     []string
		requests   []llm.Request
		want       string // the error of the last one
	}{
		"too long for certain":                           {8192, psEmpty, []string{said("1")}, []llm.Request{llmtest.Request(), long(60_000)}, "about 10"},
		"too long by what the server has counted before": {8192, psEmpty, []string{said("7000")}, []llm.Request{long(20_000), long(30_000)}, "about 10"},
		"as long as it may be":                           {8192, psEmpty, []string{said("5000"), said("7500")}, []llm.Request{long(20_000), long(30_000)}, ""},
		"cut to a part":                                  {8192, psEmpty, []string{said("900")}, []llm.Request{long(20_000)}, "it read 900 tokens of at least 1"},
		"cut to what there is":                           {8192, psEmpty, []string{said("8192")}, []llm.Request{long(20_000)}, "it read 8192 tokens, as many as the context"},
		"given less, and cut to that":                    {8192, `{"models":[{"name":"test-model:latest","context_length":4096}]}`, []string{said("4096")}, []llm.Request{long(20_000)}, "it read 4096 tokens, as many as the context"},
		"given less, and then too long":                  {8192, `{"models":[{"name":"test-model:latest","context_length":4096}]}`, []string{said("3000")}, []llm.Request{long(10_000), long(20_000)}, "holds 4096"},
		"not counted":                                    {8192, ``, []string{said("0"), said("0")}, []llm.Request{long(20_000), long(20_000)}, ""},
		"refused by the server":                          {8192, ``, []string{`{"status":400,"error":{"message":"the input length exceeds the context length"}}`}, []llm.Request{long(20_000)}, "the input length exceeds"},
	} {
		opts := options(t, scripted{show: showTools, ps: c.ps}, c.script...)
		opts.ContextTokens = c.configured
		m := New(opts)
		for i, req := range c.requests {
			_, err := llmtest.Collect(t.Context(), t, m, req)
			failure, _ := errors.AsType[*llm.ProviderError](err)
			switch {
			case i < len(c.requests)-1 || c.want == "":
				if err != nil {
					t.Errorf("%s: request %d: %v", name, i+1, err)
				}
			case failure == nil || failure.Retryable || failure.Code != "context_length_exceeded" || !strings.Contains(failure.Message, c.want) || !strings.Contains(failure.Hint, "model.context_tokens"):
				t.Errorf("%s: got %+v, want %s", name, failure, c.want)
			}
		}
	}
}

// TestSize checks that images do not count as text, and that similar text does.
func TestSize(t *testing.T) {
	message := func(role, rest string) []byte { return []byte(`{"role":"` + role + `","content":"` + rest + `}`) }
	for name, c := range map[string]struct {
		message []byte
		images  int
	}{
		"a text":                      {message("user", `a"`), 0},
		"two images":                  {message("user", `a","images":["aaaa","bbbb"]`), 11},
		"results, and images of them": {append(message("tool", `a","tool_name":"x"},`), message("user", `b","images":["cccc"]`)...), 4},
		"a text about images":         {message("user", `\",\"images\":[\"aaaa\"]"`), 0},
		"arguments":                   {message("assistant", `","tool_calls":[{"function":{"arguments":{"a":1,"images":["aaaa",7]}}}]`), 0},
	} {
		if got := sizeOf(provider.Pieces{c.message, []byte(","), c.message}); got != 2*(len(c.message)-c.images)+1 {
			t.Errorf("%s: got %d of %d", name, got, len(c.message))
		}
	}
}
