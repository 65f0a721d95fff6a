package llm

import (
	"fmt"
	"time"
)

// ProviderError is a failure of the provider or of the way to it.
type ProviderError struct {
	Provider   string        // "openai", "offline", ...
	Status     int           // HTTP status; 0 when there was no answer
	Code       string        // the provider's own code, such as "insufficient_quota"; or [ContextExceeded]
	Message    string        // what it says, for a person; never holds a key
	Retryable  bool          // the same request may succeed later
	RetryAfter time.Duration // how long the provider asks to wait; 0 when it does not
	Hint       string        // what to do next
	Err        error         // the cause, if there is one
}

// ContextExceeded is the Code for a conversation that does not fit into the context of the model.
// It replaces the provider's own code.
const ContextExceeded = "context_length_exceeded"

func (e *ProviderError) Error() string {
	if e.Status != 0 {
		return fmt.Sprintf("%s answered %d: %s", e.Provider, e.Status, e.Message)
	}
	return fmt.Sprintf("%s: %s", e.Provider, e.Message)
}

func (e *ProviderError) Unwrap() error { return e.Err }
