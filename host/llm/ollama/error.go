package ollama

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/llm/provider"
)

// contextHint is the hint for a conversation that exceeds the context of the model.
const contextHint = "raise model.context_tokens, if the model and the memory allow more; or start a new session"

// refineError adds a hint to an error, by its text: Ollama's errors have no codes.
func refineError(e *llm.ProviderError, detail provider.ErrorDetail, body []byte) {
	words := strings.ToLower(detail.Message)
	has := func(phrases ...string) bool {
		return slices.ContainsFunc(phrases, func(p string) bool { return strings.Contains(words, p) })
	}
	hint := ""
	switch {
	case e.Status == http.StatusNotFound && has("not found"):
		hint = "get it with `ollama pull NAME`; `ollama list` lists the installed models"
	case has("does not support tools"):
		hint = "choose a model that can call tools; `ollama show NAME` shows what a model can do"
	case has("does not support chat", "does not support generate"):
		hint = "choose a model that writes text; `ollama show NAME` shows what a model can do"
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

// withModelHint puts the name of the model into the hint of an error, in place of NAME. If the
// server does not run, it adds the command that starts it.
func withModelHint(model string, err error) error {
	failure, ok := errors.AsType[*llm.ProviderError](err)
	if !ok {
		return err
	}
	if failure.Status == 0 {
		failure.Hint = strings.Replace(failure.Hint, ": start it, or", ": start it with `ollama serve`, or", 1)
	}
	// The name becomes part of a command, so only harmless characters are allowed.
	if !strings.ContainsFunc(model, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("._-:/", r)
	}) {
		failure.Hint = strings.ReplaceAll(failure.Hint, "NAME", model)
	}
	return failure
}
