package openai

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/llm/llmtest"
	"github.com/stockade-dev/stockade/host/llm/provider"
)

func TestModels(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		body   string
		want   []string
		err    string
	}{
		"a list":                      {200, `{"object":"list","data":[{"id":"a","object":"model"},{"id":"b"}]}`, []string{"a", "b"}, ""},
		"a server without a list":     {404, "not here", nil, ""},
		"something else":              {200, "<html>", nil, ""},
		"a key that is not taken":     {401, `{"error":{"message":"who are you, ` + llmtest.APIKey + `?"}}`, nil, "who are you, [key]?"},
		"another place":               {307, "", nil, "it redirects to another address"},
		"a server that is overloaded": {503, "", nil, "Service Unavailable"},
		"a list without an end":       {200, `{"data":[` + strings.Repeat(`{"id":"a"},`, 1<<20), nil, ""},
	} {
		var got *http.Request
		m := New(provider.Options{APIKey: llmtest.APIKey, BaseURL: "http://model.test/v1/?api-version=1", HTTPClient: &http.Client{
			Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
				got = r
				return respond(c.status, c.body), nil
			}),
		}})
		names, err := m.Models(t.Context())
		if !slices.Equal(names, c.want) || c.err == "" && err != nil || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("%s: got %q, %v", name, names, err)
		}
		if got.URL.String() != "http://model.test/v1/models?api-version=1" || got.Header.Get("Authorization") != "Bearer "+llmtest.APIKey || got.Body != nil {
			t.Errorf("%s: it asked for %s %v", name, got.URL, got.Header)
		}
	}
}

func TestModelsOfASilentServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := New(provider.Options{BaseURL: "http://model.test/v1", StallTimeout: time.Minute, HTTPClient: &http.Client{
			Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
				<-r.Context().Done()
				return nil, r.Context().Err()
			}),
		}})
		_, err := m.Models(t.Context())
		if _, ok := errors.AsType[*llm.ProviderError](err); !ok || !strings.Contains(err.Error(), "no answer for 60s") {
			t.Errorf("got %v", err)
		}
	})
}

// The answers have the form of the servers' documentation and, for llama.cpp and vLLM, of their
// source.
func TestContextSize(t *testing.T) {
	const (
		vllm       = `{"object":"list","data":[{"id":"other","max_model_len":5000},{"id":"m","object":"model","owned_by":"vllm","root":"m","parent":null,"max_model_len":32768}]}`
		openRouter = `{"data":[{"id":"m","context_length":1048576,"architecture":{"modality":"text->text"},"top_provider":{"context_length":131072,"max_completion_tokens":8192}}]}`
		groq       = `{"object":"list","data":[{"id":"m","active":true,"context_window":131000}]}`
		lmStudio   = `{"object":"list","data":[{"id":"m","type":"llm","state":"loaded","max_context_length":131072,"loaded_context_length":8192},{"id":"o","max_context_length":4096}]}`
		llamaCpp   = `{"default_generation_settings":{"id":0,"n_ctx":16384,"params":{}},"total_slots":1}`
		openAI     = `{"object":"list","data":[{"id":"m","object":"model","created":1,"owned_by":"openai"}]}`
	)
	for name, c := range map[string]struct {
		base  string
		pages map[string]string // body by path; another path is 404
		want  int
	}{
		"vLLM":                        {"http://model.test/v1", map[string]string{"/v1/models": vllm}, 32768},
		"OpenRouter":                  {"https://model.test/api/v1", map[string]string{"/api/v1/models": openRouter}, 131072},
		"Groq":                        {"https://model.test/openai/v1", map[string]string{"/openai/v1/models": groq}, 131000},
		"LM Studio, as it was loaded": {"http://model.test/v1", map[string]string{"/v1/models": openAI, "/api/v0/models": lmStudio}, 8192},
		"llama.cpp":                   {"http://model.test/v1", map[string]string{"/v1/models": openAI, "/props": llamaCpp}, 16384},
		"another server's pages are not read with encryption": {"https://model.test/v1", map[string]string{"/v1/models": openAI, "/props": llamaCpp}, 0},
		"a server that does not tell":                         {"http://model.test/v1", map[string]string{"/v1/models": openAI}, 0},
		"no list":                                             {"http://model.test/v1", nil, 0},
		"nonsense":                                            {"http://model.test/v1", map[string]string{"/v1/models": `{"data":[{"id":"m","max_model_len":{"a":[1]},"context_length":-5,"context_window":"x"}]}`, "/props": `[[[[`, "/api/v0/models": `{"data":{"id":"m"}}`}, 0},
		"a size that cannot be":                               {"http://model.test/v1", map[string]string{"/v1/models": `{"data":[{"id":"m","max_model_len":1}]}`}, 0},
		"a size without bounds":                               {"http://model.test/v1", map[string]string{"/v1/models": `{"data":[{"id":"m","max_model_len":9223372036854775807}]}`}, 1_000_000_000},
		"a list that never ends":                              {"http://model.test/v1", map[string]string{"/v1/models": `{"data":[` + strings.Repeat(`{"id":"a"},`, 1<<20)}, 0},
	} {
		m := New(provider.Options{APIKey: llmtest.APIKey, Model: "m", BaseURL: c.base, HTTPClient: &http.Client{
			Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
				if r.URL.Host != "model.test" || r.Body != nil {
					t.Errorf("%s: it asked for %s", name, r.URL)
				}
				if body, ok := c.pages[r.URL.Path]; ok {
					return respond(200, body), nil
				}
				return respond(404, "not here"), nil
			}),
		}})
		if got := llm.ContextSizeOf(t.Context(), llm.Failover(llm.Retry(m, 3), nil), llm.Request{}); got != c.want {
			t.Errorf("%s: %d tokens, want %d", name, got, c.want)
		}
	}
}

// A server that is silent costs a few seconds, once.
func TestContextSizeOfASilentServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := New(provider.Options{Model: "m", BaseURL: "http://model.test/v1", HTTPClient: &http.Client{
			Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
				<-r.Context().Done()
				return nil, r.Context().Err()
			}),
		}})
		start := time.Now()
		if n := m.ContextSize(t.Context(), llm.Request{}); n != 0 || time.Since(start) > 10*time.Second {
			t.Errorf("%d tokens after %v", n, time.Since(start))
		}
	})
}
