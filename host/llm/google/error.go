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

// failure is an error as Google's servers write it: a google.rpc.Status, which says in
// its details what the status alone does not.
// https://cloud.google.com/apis/design/errors
type failure struct {
	Error struct {
		Details []struct {
			Reason     string `json:"reason"`     // of an ErrorInfo
			RetryDelay string `json:"retryDelay"` // of a RetryInfo, such as "34.07s"
			Violations []struct {
				QuotaID string `json:"quotaId"`
			} `json:"violations"` // of a QuotaFailure
		} `json:"details"`
	} `json:"error"`
}

// refineError mends an error with what Google has said.
func (m *Model) refineError(e *llm.ProviderError, said provider.ErrorDetail, body []byte) {
	if isWord(said.Kind) && e.Code != llm.ContextExceeded { // the code is the status of HTTP once more
		e.Code = said.Kind
	}
	body = bytes.TrimSpace(body)
	if list := []json.RawMessage(nil); json.Unmarshal(body, &list) == nil && len(list) > 0 {
		body = list[0]
	}
	var f failure
	_ = json.Unmarshal(body, &f)                         // what is not there is not used
	spent := strings.Contains(said.Message, "limit: 0,") // of a model that the account has no quota for
	for _, d := range f.Error.Details {
		if strings.HasPrefix(d.Reason, "API_KEY_") && isWord(d.Reason) { // with the status 400
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
		// The delay that comes with it, of seconds, is that of another quota.
		e.Retryable, e.RetryAfter = false, 0
		e.Hint = "the quota of this model is used up until tomorrow, or the account has none for it: use another model, or see https://ai.google.dev/gemini-api/docs/rate-limits"
	}
}

// isWord reports whether a server's text is one of Google's constants.
func isWord(s string) bool {
	return s != "" && len(s) <= 64 && strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_") == ""
}

// blockedError is the error of a request that Google refuses to have answered.
func (d *decoder) blockedError(reason, message string) *llm.ProviderError {
	return d.answerError("the request was blocked: "+reason, message, false,
		"Google's filters have refused what the conversation holds: word it differently, or start a new one")
}

// retryableReasons are reasons to stop that are mishaps of the model, which Google's own command
// line asks again after, too.
var retryableReasons = map[string]bool{"MALFORMED_FUNCTION_CALL": true, "UNEXPECTED_TOOL_CALL": true, "MALFORMED_RESPONSE": true, "OTHER": true}

// stoppedError is the error of an answer that ended for a reason that leaves it of no use.
func (d *decoder) stoppedError(reason, message string) *llm.ProviderError {
	return d.answerError("the model broke off: "+reason, message, retryableReasons[reason], "")
}

// emptyAnswerError is the error of an answer in which the model neither says anything nor calls
// anything. Gemini does that now and then, and mostly not again when it is asked again.
func (d *decoder) emptyAnswerError() *llm.ProviderError {
	return d.answerError("the model has said nothing", "", true, "")
}

func (d *decoder) answerError(what, message string, retryable bool, hint string) *llm.ProviderError {
	if message != "" {
		what += ": " + message
	}
	e := d.StreamError(provider.ErrorDetail{Message: what}, nil) // which makes a server's words harmless
	e.Retryable, e.Hint = retryable, hint
	return e
}
