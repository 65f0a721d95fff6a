package openai

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/sashabaranov/go-openai"

	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/llm/provider"
)

// create sends the request. It asks for usage, and sends reasoning back, until the server
// refuses a request because of that. Some servers know neither.
func (m *Model) create(x *provider.Exchange, wire openai.ChatCompletionRequest, entries []*llm.Entry) error {
	if err := m.checkReasoning(&wire); err != nil {
		return err
	}
	for {
		usage, sendReasoning := !m.noUsage.Load(), !m.noReasoning.Load()
		version := fmt.Sprint(m.images.Version(), " ", sendReasoning, " ", wire.Model)
		messages := provider.EncodeEntries(entries, version, func(e *llm.Entry) []byte { return m.encodeEntry(e, wire.Model, sendReasoning) })
		wire.StreamOptions = nil
		if usage {
			wire.StreamOptions = &openai.StreamOptions{IncludeUsage: true}
		}
		body, err := json.Marshal(wire)
		if err == nil {
			err = x.Post("/chat/completions", messages.SpliceInto(body, placeholderMessage()))
		}
		switch {
		case usage && refuses(err, "stream_options", "include_usage"):
			m.noUsage.Store(true)
		case wire.ResponseFormat != nil && refuses(err, "response_format", "json_schema"):
			wire.ResponseFormat = nil
		case sendReasoning && refusesReasoning(err):
			m.noReasoning.Store(true)
		default:
			return err
		}
	}
}

// refuses reports whether an error names one of the fields of the request.
func refuses(err error, fields ...string) bool {
	failure, ok := errors.AsType[*llm.ProviderError](err)
	return ok && (failure.Status == http.StatusBadRequest || failure.Status == http.StatusUnprocessableEntity) &&
		slices.ContainsFunc(fields, func(field string) bool { return strings.Contains(failure.Message, field) })
}

// checkReasoning switches reasoning off for a model that refuses tools with reasoning. If a
// reasoning effort is configured for such a model, it returns an error.
func (m *Model) checkReasoning(wire *openai.ChatCompletionRequest) error {
	err := openai.NewReasoningValidator().Validate(*wire)
	if errors.Is(err, openai.ErrReasoningToolsRequireResponses) && wire.ReasoningEffort == "" {
		wire.ReasoningEffort = openai.ReasoningEffortNone
		err = openai.NewReasoningValidator().Validate(*wire)
	}
	if err == nil {
		return nil
	}
	return m.InvalidRequest("this model takes tools with reasoning only in the Responses API", "use --provider openai-responses, or set it as model.provider in agent.toml; or choose another model")
}

// placeholderMessage returns the message in whose place the conversation is spliced.
func placeholderMessage() openai.ChatCompletionMessage {
	return openai.ChatCompletionMessage{Role: openai.ChatMessageRoleUser, Content: provider.Placeholder()}
}

// requestTemplate returns the request, with a placeholder for its messages.
func (m *Model) requestTemplate(req llm.Request) openai.ChatCompletionRequest {
	wire := openai.ChatCompletionRequest{Model: m.ModelOf(req), Messages: []openai.ChatCompletionMessage{placeholderMessage()}, Stream: true, ReasoningEffort: m.ReasoningEffort}
	if req.Schema != nil { // not strict, which takes only some schemas
		wire.ResponseFormat = &openai.ChatCompletionResponseFormat{
			Type: openai.ChatCompletionResponseFormatTypeJSONSchema, JSONSchema: &openai.ChatCompletionResponseFormatJSONSchema{Name: "answer", Schema: req.Schema},
		}
	}
	for _, def := range req.Tools {
		params := json.RawMessage(bytes.Clone(def.Parameters))
		if !json.Valid(params) {
			params = json.RawMessage(`{"type":"object","properties":{}}`)
		}
		wire.Tools = append(wire.Tools, openai.Tool{
			Type:     openai.ToolTypeFunction,
			Function: &openai.FunctionDefinition{Name: def.Name, Description: def.Description, Parameters: params},
		})
	}
	return wire
}

// encodeEntry returns the messages of an entry, separated by commas; with sendReasoning, including
// its reasoning.
func (m *Model) encodeEntry(e *llm.Entry, model string, sendReasoning bool) []byte {
	var out provider.Pieces
	add := func(message openai.ChatCompletionMessage) { out = out.Add(marshal(message)) }
	switch e.Role {
	case llm.RoleSystem:
		add(openai.ChatCompletionMessage{Role: openai.ChatMessageRoleSystem, Content: e.Parts[0].Text})
	case llm.RoleUser:
		add(userMessage(e.Parts[0].Text, m.images.Show(e.Parts[1:], "this message")))
	case llm.RoleAssistant:
		message := openai.ChatCompletionMessage{Role: openai.ChatMessageRoleAssistant}
		for _, p := range e.Parts {
			switch p.Type {
			case llm.TextPart:
				if message.Content != "" {
					message.Content += "\n\n"
				}
				message.Content += p.Text
			case llm.CallPart:
				message.ToolCalls = append(message.ToolCalls, openai.ToolCall{
					ID: p.Call.ID, Type: openai.ToolTypeFunction,
					Function: openai.FunctionCall{Name: p.Call.Function.Name, Arguments: p.Call.Function.Arguments},
				})
			}
		}
		if message.Content == "" && message.ToolCalls == nil {
			return nil
		}
		encoded := marshal(message)
		if sendReasoning {
			encoded = m.withReasoning(encoded, e, model)
		}
		return encoded
	case llm.RoleTool:
		var images []provider.ImageOrText
		for _, p := range e.Parts {
			add(openai.ChatCompletionMessage{Role: openai.ChatMessageRoleTool, Content: p.Text, ToolCallID: p.Result.CallID})
			images = append(images, m.images.Show(p.Images, "the result of "+p.Result.CallID+", "+p.Result.Name)...)
		}
		if images != nil { // messages of a tool hold only text
			add(userMessage(llm.ResultImagesHeading, images))
		}
	}
	return bytes.Join(out, nil)
}

// userMessage returns a message of a text and its attachments. Without images the content is a
// string, because some servers know nothing else.
func userMessage(text string, shown []provider.ImageOrText) openai.ChatCompletionMessage {
	m := openai.ChatCompletionMessage{Role: openai.ChatMessageRoleUser}
	texts, images := []string{text}, false
	parts := []openai.ChatMessagePart{{Type: openai.ChatMessagePartTypeText, Text: text}}
	for _, s := range shown {
		if s.Image == nil {
			texts = append(texts, s.Text)
			parts = append(parts, openai.ChatMessagePart{Type: openai.ChatMessagePartTypeText, Text: s.Text})
			continue
		}
		images = true
		url := "data:" + s.Image.Mime + ";base64," + base64.StdEncoding.EncodeToString(s.Image.Data)
		parts = append(parts, openai.ChatMessagePart{Type: openai.ChatMessagePartTypeImageURL, ImageURL: &openai.ChatMessageImageURL{URL: url}})
	}
	if images {
		m.MultiContent = parts
	} else {
		m.Content = strings.Join(texts, "\n")
	}
	return m
}

func marshal(message openai.ChatCompletionMessage) []byte {
	out, err := json.Marshal(message)
	if err != nil {
		return nil // not reached: it never has both a content and parts
	}
	return out
}
