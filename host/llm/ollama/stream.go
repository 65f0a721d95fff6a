package ollama

import (
	"encoding/json"
	"fmt"

	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/llm/provider"
)

// line is one line of an answer. What differs from version to version is raw JSON, so
// that an odd value makes us ignore a field and not lose the answer.
type line struct {
	Error   json.RawMessage `json:"error"`
	Message struct {
		Content   json.RawMessage `json:"content"`
		Thinking  json.RawMessage `json:"thinking"`
		ToolCalls []struct {
			ID       json.RawMessage `json:"id"`
			Function struct {
				Name      json.RawMessage `json:"name"`
				Arguments json.RawMessage `json:"arguments"`
			} `json:"function"`
		} `json:"tool_calls"`
	} `json:"message"`
	Done            bool            `json:"done"`
	DoneReason      json.RawMessage `json:"done_reason"`
	PromptEvalCount json.RawMessage `json:"prompt_eval_count"`
	EvalCount       json.RawMessage `json:"eval_count"`
}

// decode yields the answer of a stream. It returns nil when the answer is complete or
// yield returned false. Whole is asked before the end of an answer is passed on whether
// it can be one.
func (m *Model) decode(x *provider.Exchange, yield func(llm.Delta) bool, whole func(llm.Usage) error) error {
	calls, empty := 0, true
	for {
		raw, err := x.Next()
		if err != nil {
			return x.EndError(err, empty)
		}
		empty = false
		d, err := m.delta(raw, &calls)
		if err != nil {
			return err
		}
		if d.Finish != "" {
			x.Drain()
			if err := whole(*d.Usage); err != nil {
				return err
			}
		}
		if !yield(d) || d.Finish != "" {
			return nil
		}
	}
}

// delta is what one line says, the last one with a finish reason. Calls counts those of
// the answer.
func (m *Model) delta(raw []byte, calls *int) (d llm.Delta, err error) {
	var l line
	if err := json.Unmarshal(raw, &l); err != nil {
		return d, m.BadEvent(raw)
	}
	if provider.IsSet(l.Error) {
		return d, m.StreamError(provider.ParseErrorDetail(l.Error), raw)
	}
	d.Reasoning, d.Text = provider.ScalarText(l.Message.Thinking), provider.ScalarText(l.Message.Content)
	for _, c := range l.Message.ToolCalls {
		if *calls == llm.MaxCalls {
			return d, m.TooLarge(fmt.Sprintf("more than %d tool calls", llm.MaxCalls))
		}
		// A call is whole in one line, whatever its index: some versions say 0 of each.
		d.Calls = append(d.Calls, llm.CallDelta{Index: *calls, ID: provider.ScalarText(c.ID), Name: provider.ScalarText(c.Function.Name), Arguments: argumentsText(c.Function.Arguments)})
		*calls++
	}
	if !l.Done {
		return d, nil
	}
	switch provider.ScalarText(l.DoneReason) {
	case "load", "unload": // as to a request without messages
		return d, &llm.ProviderError{Provider: m.Name, Retryable: true, Message: "it answered nothing, only that the model was loaded"}
	case "length":
		d.Finish = llm.FinishLength
	default:
		if d.Finish = llm.FinishStop; *calls > 0 {
			d.Finish = llm.FinishTools
		}
	}
	d.Usage = &llm.Usage{InputTokens: provider.ParseTokens(l.PromptEvalCount), OutputTokens: provider.ParseTokens(l.EvalCount)}
	return d, nil
}

// argumentsText is the arguments of a call as text: of an object, which they are on this
// wire, or of a string, which other servers of this API send.
func argumentsText(raw json.RawMessage) string {
	if !provider.IsSet(raw) {
		return ""
	}
	if raw[0] == '"' {
		return provider.ScalarText(raw)
	}
	return string(raw)
}
