package ollama

import (
	"encoding/json"
	"fmt"

	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/llm/provider"
)

// line is one line of an answer. A field that differs from version to version is raw JSON: a bad
// value is ignored, and the rest of the answer is kept.
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

// decode yields the deltas of one answer. It returns nil when the answer is complete or yield
// has returned false. Before the end of the answer is yielded, it calls check, which returns an
// error if the server cannot have read the whole request.
func (m *Model) decode(x *provider.Exchange, yield func(llm.Delta) bool, check func(llm.Usage) error) error {
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
			if err := check(*d.Usage); err != nil {
				return err
			}
		}
		if !yield(d) || d.Finish != "" {
			return nil
		}
	}
}

// delta returns the delta of one line. The last line has a finish reason. calls counts the calls
// so far.
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
		// Each call comes in one line. Its index is not used: some versions send only 0.
		d.Calls = append(d.Calls, llm.CallDelta{Index: *calls, ID: provider.ScalarText(c.ID), Name: provider.ScalarText(c.Function.Name), Arguments: argumentsText(c.Function.Arguments)})
		*calls++
	}
	if !l.Done {
		return d, nil
	}
	switch provider.ScalarText(l.DoneReason) {
	case "load", "unload": // the answers to a request without messages
		return d, &llm.ProviderError{Provider: m.Name, Retryable: true, Message: "it only reported that the model was loaded"}
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

// argumentsText returns the arguments of a call as text. Ollama sends an object, and other servers
// with this API a string.
func argumentsText(raw json.RawMessage) string {
	if !provider.IsSet(raw) {
		return ""
	}
	if raw[0] == '"' {
		return provider.ScalarText(raw)
	}
	return string(raw)
}
