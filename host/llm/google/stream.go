package google

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"

	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/llm/provider"
	"github.com/stockade-dev/stockade/host/tool"
)

// chunk is one event of a stream: a GenerateContentResponse, or an error.
type chunk struct {
	Candidates     boundedList[candidate] `json:"candidates"`
	PromptFeedback struct {
		BlockReason        string `json:"blockReason"`
		BlockReasonMessage string `json:"blockReasonMessage"`
	} `json:"promptFeedback"`
	UsageMetadata *usage          `json:"usageMetadata"`
	Error         json.RawMessage `json:"error"`
}

type candidate struct {
	Index   int `json:"index"`
	Content struct {
		Parts boundedList[piece] `json:"parts"`
	} `json:"content"`
	FinishReason  string `json:"finishReason"`
	FinishMessage string `json:"finishMessage"`
}

// boundedList is a list of at most 1,000 elements. It limits memory: an element can take
// three bytes on the wire, and thirty times as many here.
type boundedList[T any] []T

// UnmarshalJSON returns an error for more than 1,000 elements.
func (l *boundedList[T]) UnmarshalJSON(data []byte) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	if _, err := dec.Token(); err != nil || data[0] != '[' {
		return json.Unmarshal(data, (*[]T)(l)) // null, or not a list
	}
	for dec.More() {
		if len(*l) == 1000 {
			return errors.New("a list is too long")
		}
		var element T
		if err := dec.Decode(&element); err != nil {
			return err
		}
		*l = append(*l, element)
	}
	return nil
}

// piece is a part of an answer. A text comes in many pieces, a call in one.
type piece struct {
	Text             string `json:"text"`
	Thought          bool   `json:"thought"`
	ThoughtSignature string `json:"thoughtSignature"`
	FunctionCall     *struct {
		ID   string          `json:"id"`
		Name string          `json:"name"`
		Args json.RawMessage `json:"args"`
	} `json:"functionCall"`
}

// usage holds numbers of tokens as raw JSON, so that a bad number does not spoil the answer.
type usage struct {
	Prompt     json.RawMessage `json:"promptTokenCount"`
	ToolPrompt json.RawMessage `json:"toolUsePromptTokenCount"`
	Cached     json.RawMessage `json:"cachedContentTokenCount"`
	Candidates json.RawMessage `json:"candidatesTokenCount"`
	Thoughts   json.RawMessage `json:"thoughtsTokenCount"`
}

func (u usage) tokens() *llm.Usage {
	return &llm.Usage{
		InputTokens:     provider.ParseTokens(u.Prompt) + provider.ParseTokens(u.ToolPrompt),
		OutputTokens:    provider.ParseTokens(u.Candidates) + provider.ParseTokens(u.Thoughts),
		CachedTokens:    provider.ParseTokens(u.Cached),
		ReasoningTokens: provider.ParseTokens(u.Thoughts),
	}
}

// decoder makes deltas of the events of one answer.
type decoder struct {
	*provider.Client
	model string            // model of the request
	names map[string]string // names of tools, by their names on the wire

	events        int    // number of events so far
	calls         int    // number of calls so far
	hasText       bool   // there was a text
	finish        string // the server's reason to stop; empty: none yet
	finishMessage string // the server's explanation of finish; may be empty
	usage         *llm.Usage
}

// decode yields the deltas of one answer. It returns nil when the answer is complete or
// yield has returned false.
func (d *decoder) decode(x *provider.Exchange, yield func(llm.Delta) bool) error {
	for {
		event, err := x.Next()
		switch {
		case err == nil:
			if more, err := d.event(event, yield); !more {
				return err
			}
		case d.finish == "" || x.Cancelled():
			yield(llm.Delta{Usage: d.usage})
			return x.EndError(err, d.events == 0)
		default: // the stream ends without a mark: an answer with a reason to stop is complete
			end, err := d.end()
			if err == nil {
				yield(end)
			}
			return err
		}
	}
}

// event handles one event. more is false after an error, or when yield has returned false.
func (d *decoder) event(event []byte, yield func(llm.Delta) bool) (more bool, err error) {
	d.events++
	var c chunk
	if json.Unmarshal(event, &c) != nil {
		return false, d.BadEvent(event)
	}
	if len(c.Error) > 0 && string(c.Error) != "null" {
		return false, d.StreamError(provider.ParseErrorDetail(c.Error), event)
	}
	if c.UsageMetadata != nil {
		d.usage = c.UsageMetadata.tokens()
	}
	if reason := c.PromptFeedback.BlockReason; reason != "" && len(c.Candidates) == 0 {
		return false, d.blockedError(reason, c.PromptFeedback.BlockReasonMessage)
	}
	for _, candidate := range c.Candidates {
		if candidate.Index != 0 {
			continue
		}
		for _, p := range candidate.Content.Parts {
			if delta, ok := d.delta(p); ok && !yield(delta) {
				return false, nil
			}
		}
		if reason := candidate.FinishReason; reason != "" && reason != "FINISH_REASON_UNSPECIFIED" { // older models send STOP in each event
			d.finish, d.finishMessage = reason, candidate.FinishMessage
		}
	}
	return true, nil
}

func (d *decoder) delta(p piece) (delta llm.Delta, ok bool) {
	if p.FunctionCall != nil {
		call := llm.CallDelta{Index: d.calls, ID: p.FunctionCall.ID, Name: d.toolName(p.FunctionCall.Name), Arguments: arguments(p.FunctionCall.Args)}
		if p.ThoughtSignature != "" {
			call.ProviderData = d.providerData(signatureData{Signature: p.ThoughtSignature})
		}
		d.calls++
		return llm.Delta{Calls: []llm.CallDelta{call}}, true
	}
	of := llm.TextPart
	if delta.Text = p.Text; p.Thought {
		of, delta.Text, delta.Reasoning = llm.ReasoningPart, "", p.Text
	}
	d.hasText = d.hasText || delta.Text != ""
	// The signature of a text often follows in its own piece. If there is no text, the
	// signature has no place in a conversation.
	if p.ThoughtSignature != "" && (d.hasText || of == llm.ReasoningPart) {
		delta.ProviderData = &llm.ProviderDataDelta{PartType: of, ProviderData: *d.providerData(signatureData{p.ThoughtSignature, len(p.Text)})}
	}
	return delta, delta.Text != "" || delta.Reasoning != "" || delta.ProviderData != nil
}

func (d *decoder) providerData(s signatureData) *llm.ProviderData {
	return &llm.ProviderData{Provider: providerName, Model: d.model, Data: tool.Marshal(s)}
}

// arguments returns the text of a call's arguments; "" for none.
func arguments(raw json.RawMessage) string {
	if string(raw) == "null" {
		return ""
	}
	return string(raw)
}

// toolName returns the name of the tool that a model has called. Some models prefix it with
// the namespace in which they see functions.
func (d *decoder) toolName(called string) string {
	for _, space := range []string{"", "default_api:", "default_api."} {
		if name, ok := d.names[strings.TrimPrefix(called, space)]; ok {
			return name
		}
	}
	return called
}

// end returns the last delta of an answer, or an error if the answer is useless.
func (d *decoder) end() (llm.Delta, error) {
	end := llm.Delta{Usage: d.usage}
	switch d.finish {
	case "STOP", "FUNCTION_CALL": // FUNCTION_CALL comes from servers that are not Google's
		switch {
		case d.calls > 0:
			end.Finish = llm.FinishTools
		case d.hasText:
			end.Finish = llm.FinishStop
		default:
			return end, d.emptyAnswerError()
		}
	case "MAX_TOKENS":
		end.Finish = llm.FinishLength
	case "SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII",
		"IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION":
		end.Finish = llm.FinishFilter
	default:
		return end, d.stoppedError(d.finish, d.finishMessage)
	}
	return end, nil
}
