package ollama

import (
	"errors"
	"io"
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
		there  bool // an Ollama is
		err    string
	}{
		"those with tools first":   {200, `{"models":[{"name":"a:latest"},{"name":"e:latest","capabilities":["embedding"]},{"name":"b","capabilities":["completion"]},{"name":"c:7b","capabilities":["completion","tools"]}]}`, []string{"c:7b", "a:latest", "b"}, true, ""},
		"none":                     {200, `{"models":[]}`, nil, true, ""},
		"odd ones":                 {200, `{"models":[{"name":7,"capabilities":"tools"},{},{"name":""}]}`, []string{"7"}, true, ""},
		"somebody else":            {200, `{"data":[]}`, nil, false, ""},
		"a web page":               {200, `<html>`, nil, false, ""},
		"no such page":             {404, `404 page not found`, nil, false, ""},
		"a proxy that wants a key": {401, `{"error":"who are you, ` + llmtest.APIKey + `?"}`, nil, false, "who are you, [key]?"},
	} {
		client := llmtest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/api/tags" || r.Method != http.MethodGet {
				t.Errorf("it asked %s %s", r.Method, r.URL)
			}
			w.WriteHeader(c.status)
			io.WriteString(w, c.body)
		}))
		got, err := New(provider.Options{APIKey: llmtest.APIKey, BaseURL: "http://model.test/v1/", HTTPClient: client}).Models(t.Context())
		if !slices.Equal(got, c.want) || (got != nil) != c.there || (c.err == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: got %q, %v", name, got, err)
		}
		if base, found, ok := Find(t.Context(), client, "model.test"); ok != c.there || !slices.Equal(found, c.want) || base != "http://model.test:11434" {
			t.Errorf("%s: found %q at %s, %v", name, found, base, ok)
		}
	}
}

func TestHostURL(t *testing.T) {
	for host, want := range map[string]string{
		"":                            Defaults.BaseURL,
		"0.0.0.0":                     Defaults.BaseURL,
		" 0.0.0.0:8080 ":              "http://127.0.0.1:8080",
		":8080":                       "http://127.0.0.1:8080",
		"[::]:8080":                   "http://127.0.0.1:8080",
		"::1":                         "http://[::1]:11434",
		"box":                         "http://box:11434",
		"box:":                        "http://box:11434",
		"http://box":                  "http://box:80",
		"https://box/ollama/":         "https://box:443/ollama",
		"https://box.example.com:444": "https://box.example.com:444",
	} {
		if got := HostURL(host); got != want {
			t.Errorf("%q: got %s, want %s", host, got, want)
		}
	}
}

// TestAModelMayLoadForMinutes checks a long silence before the answer, and a short one
// within it.
func TestAModelMayLoadForMinutes(t *testing.T) {
	for name, c := range map[string]struct {
		load, takes time.Duration
		body        string
		want        string
	}{
		"a load, and an answer":      {10 * time.Minute, 10 * time.Minute, `{"message":{"content":"a"},"done":true}`, ""},
		"a load that does not end":   {time.Hour, minFirstByteTimeout, "", "no answer for 900s"},
		"a load, and half an answer": {10 * time.Minute, 15 * time.Minute, `{"message":{"content":"a"}}` + "\n", "no answer for 300s"},
	} {
		synctest.Test(t, func(t *testing.T) {
			client := llmtest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/api/chat" {
					http.NotFound(w, r)
					return
				}
				io.Copy(io.Discard, r.Body) // or the server does not see that the client leaves
				select {
				case <-time.After(c.load):
				case <-r.Context().Done():
					return
				}
				io.WriteString(w, c.body)
				if http.NewResponseController(w).Flush(); c.want != "" {
					<-r.Context().Done()
				}
			}))
			start := time.Now()
			_, err := llmtest.Collect(t.Context(), t, New(provider.Options{Model: "m", HTTPClient: client}), llmtest.Request())
			failure, _ := errors.AsType[*llm.ProviderError](err)
			if (c.want == "") != (err == nil) || c.want != "" && (failure == nil || failure.Message != c.want) || time.Since(start) != c.takes {
				t.Errorf("%s: got %v after %v", name, err, time.Since(start))
			}
		})
	}
}

// TestRefused is about a server that is not there.
func TestRefused(t *testing.T) {
	client := &http.Client{Transport: &http.Transport{}}
	_, err := llmtest.Collect(t.Context(), t, New(provider.Options{BaseURL: "http://127.0.0.1:1", Model: "m", HTTPClient: client}), llmtest.Request())
	failure, ok := errors.AsType[*llm.ProviderError](err)
	if !ok || failure.Retryable || !strings.Contains(failure.Hint, "start it with `ollama serve`") {
		t.Errorf("got %+v", err)
	}
	if _, _, ok := Find(t.Context(), client, "127.0.0.1:1"); ok {
		t.Error("found a server that is not there")
	}
}
