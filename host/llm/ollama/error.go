package ollama

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/llm/provider"
)

const contextHint = "raise model.context_tokens, if the model and the memory allow more; or start a new session, or lower history_char_budget"

// refineError mends an error by what Ollama says, which is words only: it has no codes.
func refineError(e *llm.ProviderError, said provider.ErrorDetail, body []byte) {
	words := strings.ToLower(said.Message)
	has := func(phrases ...string) bool {
		return slices.ContainsFunc(phrases, func(p string) bool { return strings.Contains(words, p) })
	}
	hint := ""
	switch {
	case e.Status == http.StatusNotFound && has("not found"):
		hint = "get it with `ollama pull NAME`; `ollama list` says which there are"
	case has("does not support tools"):
		hint = "choose a model that can call tools; `ollama show NAME` says what one can"
	case has("does not support chat", "does not support generate"):
		hint = "choose a model that writes text; `ollama show NAME` says what one can"
	case e.Code == llm.ContextExceeded:
		hint = contextHint
	case has("system memory", "out of memory", "unable to allocate", "resource limitations"):
		hint = "the model and its context need more memory than there is: lower model.context_tokens, or choose a smaller model"
	case e.Status == http.StatusUnauthorized && strings.Contains(string(body), "signin_url"):
		hint = "models of Ollama's cloud need an account: `ollama signin`"
	default:
		return
	}
	e.Hint, e.Retryable = hint, false
}

// withModelHint has the hint of an error say what to do about the model, and about a server that
// does not run.
func withModelHint(model string, err error) error {
	failure, ok := errors.AsType[*llm.ProviderError](err)
	if !ok {
		return err
	}
	if failure.Status == 0 {
		failure.Hint = strings.Replace(failure.Hint, ": start it, or", ": start it with `ollama serve`, or", 1)
	}
	// In a hint it is a part of a command.
	if !strings.ContainsFunc(model, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("._-:/", r)
	}) {
		failure.Hint = strings.ReplaceAll(failure.Hint, "NAME", model)
	}
	return failure
}
