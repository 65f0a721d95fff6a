package google

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/llm/provider"
)

// failure is an error in the form of Google's servers: a google.rpc.Status with details.
// https://cloud.google.com/apis/design/errors
type failure struct {
	Error struct {
		Details []struct {
			Reason     string `json:"reason"`     // set in an ErrorInfo
			RetryDelay string `json:"retryDelay"` // set in a RetryInfo, such as "34.07s"
			Violations []struct {
				QuotaID string `json:"quotaId"`
			} `json:"violations"` // set in a QuotaFailure
		} `json:"details"`
	} `json:"error"`
}

// refineError adds the details of Google's errors to e.
func (m *Model) refineError(e *llm.ProviderError, detail provider.ErrorDetail, body []byte) {
	if isWord(detail.Kind) && e.Code != llm.ContextExceeded { // Google's own code repeats the HTTP status
		e.Code = detail.Kind
	}
	body = bytes.TrimSpace(body)
	if list := []json.RawMessage(nil); json.Unmarshal(body, &list) == nil && len(list) > 0 {
		body = list[0]
	}
	var f failure
	_ = json.Unmarshal(body, &f)                           // missing fields are not used
	spent := strings.Contains(detail.Message, "limit: 0,") // the account has no quota for the model
	for _, d := range f.Error.Details {
		if strings.HasPrefix(d.Reason, "API_KEY_") && isWord(d.Reason) { // comes with the status 400
			e.Code, e.Hint = d.Reason, m.KeyHint()
		}
		if delay, err := time.ParseDuration(d.RetryDelay); err == nil && e.Retryable {
			e.RetryAfter = max(delay, 0)
		}
		for _, v := range d.Violations {
			spent = spent || strings.Contains(v.QuotaID, "PerDay")
		}
	}
	if spent && e.Status == http.StatusTooManyRequests {
		// The delay in the details, a few seconds, belongs to another quota.
		e.Retryable, e.RetryAfter = false, 0
		e.Hint = "the quota of this model is used up until tomorrow, or the account has none for it: use another model, or see https://ai.google.dev/gemini-api/docs/rate-limits"
	}
}

// isWord reports whether a server's text is a constant in Google's style, and so can be shown.
func isWord(s string) bool {
	return s != "" && len(s) <= 64 && strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_") == ""
}

// blockedError returns the error for a request that Google's filters have refused.
func (d *decoder) blockedError(reason, message string) *llm.ProviderError {
	return d.answerError("the request was blocked: "+reason, message, false,
		"Google's filters have refused the content of the conversation: word it differently, or start a new one")
}

// retryableReasons holds reasons to stop that are mishaps of the model, after which the same
// request may succeed. Google's own command line tool repeats the request after them, too.
var retryableReasons = map[string]bool{"MALFORMED_FUNCTION_CALL": true, "UNEXPECTED_TOOL_CALL": true, "MALFORMED_RESPONSE": true, "OTHER": true}

// stoppedError returns the error for an answer that is useless because of its reason to stop.
func (d *decoder) stoppedError(reason, message string) *llm.ProviderError {
	return d.answerError("the model broke off: "+reason, message, retryableReasons[reason], "")
}

// emptyAnswerError returns the error for an answer with neither a text nor a call. Gemini
// sends one now and then, and mostly not again.
func (d *decoder) emptyAnswerError() *llm.ProviderError {
	return d.answerError("the answer of the model is empty", "", true, "")
}

func (d *decoder) answerError(what, message string, retryable bool, hint string) *llm.ProviderError {
	if message != "" {
		what += ": " + message
	}
	e := d.StreamError(provider.ErrorDetail{Message: what}, nil) // StreamError cleans the server's text
	e.Retryable, e.Hint = retryable, hint
	return e
}
