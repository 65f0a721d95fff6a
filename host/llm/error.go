package llm

import (
	"fmt"
	"time"
)

// ProviderError is a failure of a provider, or of the connection to a provider.
type ProviderError struct {
	Provider   string        // name of the provider: "openai", "offline", ...
	Status     int           // HTTP status; 0: there was no answer
	Code       string        // the provider's own code, such as "insufficient_quota", or [ContextExceeded]
	Message    string        // the provider's message, for a person; never holds a key
	Retryable  bool          // the same request may succeed later
	RetryAfter time.Duration // wait that the provider asks for; 0: none
	Hint       string        // advice for a person; may be empty
	Err        error         // the cause; may be nil
}

// ContextExceeded is the Code if a conversation exceeds the context of the model. It
// replaces the provider's own code.
const ContextExceeded = "context_length_exceeded"

func (e *ProviderError) Error() string {
	if e.Status != 0 {
		return fmt.Sprintf("%s answered %d: %s", e.Provider, e.Status, e.Message)
	}
	return fmt.Sprintf("%s: %s", e.Provider, e.Message)
}

func (e *ProviderError) Unwrap() error { return e.Err }
