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
