package anthropic

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/llm/llmtest"
	"github.com/stockade-dev/stockade/host/llm/provider"
)

// TestAnErrorSaysWhatToDo checks the errors of the documentation.
// https://platform.claude.com/docs/en/api/errors
func TestAnErrorSaysWhatToDo(t *testing.T) {
	tests := []struct {
		status     int
		kind, said string
		want       llm.ProviderError // its hint is a part of the error's
	}{
		{400, "invalid_request_error", "no", llm.ProviderError{Message: "no"}},
		{400, "invalid_request_error", "Your credit balance is too low to access the Anthropic API.", llm.ProviderError{Message: "Your credit balance is too low to access the Anthropic API.", Hint: "billing page"}},
		{401, "authentication_error", "invalid x-api-key", llm.ProviderError{Message: "invalid x-api-key", Hint: "the API key in ANTHROPIC_API_KEY"}},
		{402, "billing_error", "no", llm.ProviderError{Message: "no", Hint: "billing page"}},
		{403, "permission_error", "no", llm.ProviderError{Message: "no", Hint: "check the API key"}},
		{404, "not_found_error", "model: claude-nine", llm.ProviderError{Message: "there is no model claude-nine, or the key may not use it", Hint: "stockade model list"}},
		{404, "not_found_error", "Not Found", llm.ProviderError{Message: "Not Found", Hint: "base URL"}},
		{413, "request_too_large", "Request exceeds the maximum size", llm.ProviderError{Message: "Request exceeds the maximum size", Hint: "the conversation is too long"}},
		{429, "rate_limit_error", "slow down", llm.ProviderError{Message: "slow down", Retryable: true, RetryAfter: 30 * time.Second}},
		{500, "api_error", "Internal server error", llm.ProviderError{Message: "Internal server error (request req_011)", Retryable: true, RetryAfter: 30 * time.Second}},
		{504, "timeout_error", "no", llm.ProviderError{Message: "no (request req_011)", Retryable: true, RetryAfter: 30 * time.Second}},
		{529, "overloaded_error", "Overloaded", llm.ProviderError{Message: "Overloaded (request req_011)", Retryable: true, RetryAfter: 30 * time.Second, Hint: "overloaded"}},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprint(tt.status, " ", tt.said), func(t *testing.T) {
			model := New(options(llmtest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Retry-After", "30")
				fail(w, tt.status, tt.kind, tt.said)
			}))))
			_, err := llmtest.Collect(t.Context(), t, model, llmtest.Request())
			got, ok := err.(*llm.ProviderError)
			if !ok || !strings.Contains(got.Hint, tt.want.Hint) || (got.Hint == "") != (tt.want.Hint == "") {
				t.Fatalf("got %+v", err)
			}
			tt.want.Provider, tt.want.Status, tt.want.Code, tt.want.Hint = "anthropic", tt.status, tt.kind, got.Hint
			if *got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}

func TestTheHeadersOfLimits(t *testing.T) {
	now := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		name   string
		header map[string]string
		want   time.Duration
	}{
		{"none", nil, 0},
		{"of one that holds, and one that does not", map[string]string{"anthropic-ratelimit-requests-remaining": "0", "anthropic-ratelimit-requests-reset": "2026-11-26T12:00:20Z",
			"anthropic-ratelimit-tokens-remaining": "7000", "anthropic-ratelimit-tokens-reset": "2026-11-26T12:01:00Z"}, 20 * time.Second},
		{"of two that hold", map[string]string{"anthropic-ratelimit-requests-remaining": "0", "anthropic-ratelimit-requests-reset": "2026-11-26T12:00:20Z",
			"anthropic-ratelimit-output-tokens-remaining": "0", "anthropic-ratelimit-output-tokens-reset": "2026-11-26T12:01:00Z"}, time.Minute},
		{"of one that is over, and one that is no time", map[string]string{"anthropic-ratelimit-requests-remaining": "0", "anthropic-ratelimit-requests-reset": "2026-11-26T11:00:00Z",
			"anthropic-ratelimit-tokens-remaining": "0", "anthropic-ratelimit-tokens-reset": "soon"}, 0},
	} {
		header := http.Header{}
		for name, value := range tt.header {
			header.Set(name, value)
		}
		if got := rateLimitWait(header, now); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		model := New(options(llmtest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("anthropic-ratelimit-tokens-remaining", "0")
			w.Header().Set("anthropic-ratelimit-tokens-reset", time.Now().Add(9*time.Second).Format(time.RFC3339))
			fail(w, http.StatusTooManyRequests, "rate_limit_error", "slow down")
		}))))
		_, err := llmtest.Collect(t.Context(), t, model, llmtest.Request())
		if failure, ok := err.(*llm.ProviderError); !ok || failure.RetryAfter != 9*time.Second {
			t.Errorf("got %+v", err)
		}
	})
}

func TestOnlyAnIDIsShown(t *testing.T) {
	for _, id := range []string{"req_\x1b[2J", "req 1", strings.Repeat("x", 65), ""} {
		e := &llm.ProviderError{Retryable: true, Message: "no"}
		refineError(e, provider.ErrorDetail{Kind: "api_error\n"}, mustJSON(map[string]string{"request_id": id}))
		if e.Message != "no" || e.Code != "" {
			t.Errorf("%q: %+v", id, e)
		}
	}
}

func TestTheListOfModels(t *testing.T) {
	var got *http.Request
	client := llmtest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r
		fmt.Fprint(w, `{"data":[{"type":"model","id":"claude-opus-5-5","display_name":"Claude Opus 5.5","max_input_tokens":1000000,"max_tokens":128000},{"type":"model","id":"claude-haiku-5-5"}],"has_more":false}`)
	}))
	opts := options(client)
	opts.BaseURL += "/v1/" // as that of other providers
	models, err := New(opts).Models(t.Context())
	if err != nil || strings.Join(models, " ") != "claude-opus-5-5 claude-haiku-5-5" {
		t.Errorf("got %q, %v", models, err)
	}
	if got.URL.String() != "/v1/models?limit=1000" || got.Header.Get("X-Api-Key") != llmtest.APIKey || got.Header.Get("Anthropic-Version") == "" {
		t.Errorf("asked %s with %v", got.URL, got.Header)
	}
	for name, want := range map[string]int{"claude-opus-5-5": 1_000_000, "claude-haiku-5-5": 0} {
		if n := llm.ContextSizeOf(t.Context(), New(opts), llm.Request{Model: name}); n != want {
			t.Errorf("%s: the context has %d tokens, want %d", name, n, want)
		}
	}
}

// TestTheEnvironmentChangesNothing sets all variables that Anthropic's library reads by itself.
func TestTheEnvironmentChangesNothing(t *testing.T) {
	for name, value := range map[string]string{
		"ANTHROPIC_API_KEY": "another", "ANTHROPIC_AUTH_TOKEN": "another", "ANTHROPIC_BASE_URL": "http://elsewhere.test", "ANTHROPIC_PROFILE": "none",
		"ANTHROPIC_CUSTOM_HEADERS": "X-Stainless-Extra: 1", "ANTHROPIC_CONFIG_DIR": t.TempDir(),
	} {
		t.Setenv(name, value)
	}
	s := &server{}
	opts := scripted(t, s, yes, yes)
	for _, base := range []string{opts.BaseURL, opts.BaseURL + "/v1/"} {
		opts.BaseURL = base
		if _, _, err := ask(t, New(opts), s, user("u")); err != nil {
			t.Error(err)
		}
	}
	// Without a key none is sent, even if the environment has one.
	opts.APIKey = ""
	if _, _, err := ask(t, New(opts), s, user("u")); err == nil || strings.Contains(err.Error(), "another") || !strings.Contains(err.Error(), "headers") {
		t.Errorf("got %v", err)
	}
}
