package anthropic

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/llm/provider"
)

// refineError adds the details of Anthropic's errors to e. Each error has a type, even in a
// stream, where there is no status. Some errors that a person can fix have no type of their own;
// they are recognised by their message.
func refineError(e *llm.ProviderError, detail provider.ErrorDetail, body []byte) {
	if e.Code == "" && validID(detail.Kind) {
		e.Code = detail.Kind
	}
	switch detail.Kind {
	case "authentication_error", "permission_error", "not_found_error", "billing_error", "request_too_large", "invalid_request_error":
		e.Retryable = false
	case "overloaded_error":
		e.Hint = "the API is overloaded: try again later, or choose another model"
	}
	text := strings.ToLower(e.Message)
	switch {
	case strings.Contains(text, "credit balance") || strings.Contains(text, "spend limit") || strings.Contains(text, "usage limits"):
		e.Hint = "the account has no credit left, or has reached its limit: see the provider's billing page, or use another key"
	case detail.Kind == "not_found_error" && strings.HasPrefix(text, "model:"):
		e.Message = "there is no model " + llm.Truncate(strings.TrimSpace(e.Message[len("model:"):]), 100) + ", or the key may not use it"
		e.Hint = "`stockade model list` lists the models"
	case e.Status == http.StatusBadRequest && (strings.Contains(text, "thinking") || strings.Contains(text, "effort")):
		e.Hint = "the model may not take the reasoning that is set for it: `stockade config` shows where it is set"
	}
	// Anthropic's support asks for the id of the request if the server has failed.
	var outer struct {
		RequestID string `json:"request_id"`
	}
	if e.Retryable && e.Status != http.StatusTooManyRequests && json.Unmarshal(body, &outer) == nil && validID(outer.RequestID) {
		e.Message += " (request " + outer.RequestID + ")"
	}
}

// rateLimitWait returns the time until an exhausted limit is reset: the longest, if several are
// exhausted; 0: none is. See https://platform.claude.com/docs/en/api/rate-limits
func rateLimitWait(header http.Header, now time.Time) (longest time.Duration) {
	for _, of := range []string{"Requests", "Tokens", "Input-Tokens", "Output-Tokens"} {
		name := "Anthropic-Ratelimit-" + of
		if header.Get(name+"-Remaining") != "0" {
			continue
		}
		if reset, err := time.Parse(time.RFC3339, header.Get(name+"-Reset")); err == nil {
			longest = max(longest, reset.Sub(now))
		}
	}
	return longest
}

// validID reports whether a server's id can be shown: it has 1 to 64 letters, digits, '_' and '-'.
func validID(id string) bool {
	return id != "" && len(id) <= 64 && !strings.ContainsFunc(id, func(r rune) bool {
		return r != '_' && r != '-' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	})
}
