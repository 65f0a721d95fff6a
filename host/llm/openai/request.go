package openai

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/sashabaranov/go-openai"

	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/llm/provider"
)

// create sends the request. It asks for usage, and sends reasoning back, until a server
// refuses the request because of that, as some do that know no such thing.
func (m *Model) create(x *provider.Exchange, wire openai.ChatCompletionRequest, entries []*llm.Entry) error {
	if err := m.checkReasoning(&wire); err != nil {
		return err
	}
	for {
		usage, reasons := !m.noUsage.Load(), !m.noReasoning.Load()
		version := fmt.Sprint(m.images.Version(), " ", reasons, " ", wire.Model)
		messages := provider.Wire(entries, version, func(e *llm.Entry) []byte { return m.wire(e, wire.Model, reasons) })
		wire.StreamOptions = nil
		if usage {
			wire.StreamOptions = &openai.StreamOptions{IncludeUsage: true}
		}
		body, err := json.Marshal(wire)
		if err == nil {
			err = x.Post("/chat/completions", m.Bearer(), messages.In(body, standIn()))
		}
		switch {
		case usage && refusesUsage(err):
			m.noUsage.Store(true)
		case reasons && refusesReasoning(err):
			m.noReasoning.Store(true)
		default:
			return err
		}
	}
}

// refusesUsage tells an error that names what asks for usage.
func refusesUsage(err error) bool {
	failure, ok := errors.AsType[*llm.ProviderError](err)
	return ok && (failure.Status == http.StatusBadRequest || failure.Status == http.StatusUnprocessableEntity) &&
		(strings.Contains(failure.Message, "stream_options") || strings.Contains(failure.Message, "include_usage"))
}

// checkReasoning switches reasoning off if the model takes no tools while it reasons. If reasoning
// was asked for, the error says how to use the model instead.
func (m *Model) checkReasoning(wire *openai.ChatCompletionRequest) error {
	err := openai.NewReasoningValidator().Validate(*wire)
	if errors.Is(err, openai.ErrReasoningToolsRequireResponses) && wire.ReasoningEffort == "" {
		wire.ReasoningEffort = openai.ReasoningEffortNone
		err = openai.NewReasoningValidator().Validate(*wire)
	}
	if err == nil {
		return nil
	}
	return m.Refuse("this model calls tools in the Responses API only, where it thinks", "use --provider openai-responses, or set it as model.provider in agent.toml; or choose another model")
}

// standIn is the message that stands for the conversation.
func standIn() openai.ChatCompletionMessage {
	return openai.ChatCompletionMessage{Role: openai.ChatMessageRoleUser, Content: provider.Placeholder()}
}

// envelope is the request but for its messages.
func (m *Model) envelope(req llm.Request) openai.ChatCompletionRequest {
	wire := openai.ChatCompletionRequest{Model: m.ModelOf(req), Messages: []openai.ChatCompletionMessage{standIn()}, Stream: true, ReasoningEffort: m.Reasoning}
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

// wire are the messages of an entry, with commas between, and with its reasoning.
func (m *Model) wire(e *llm.Entry, model string, reasons bool) []byte {
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
		said := marshal(message)
		if reasons {
			said = m.withReasoning(said, e, model)
		}
		return said
	case llm.RoleTool:
		var images []provider.Shown
		for _, p := range e.Parts {
			add(openai.ChatCompletionMessage{Role: openai.ChatMessageRoleTool, Content: p.Text, ToolCallID: p.Result.CallID})
			images = append(images, m.images.Show(p.Images, "the result of "+p.Result.CallID+", "+p.Result.Name)...)
		}
		if images != nil { // a message of a tool holds text only
			add(userMessage(llm.ResultImages, images))
		}
	}
	return bytes.Join(out, nil)
}

// userMessage is a message of a text and what goes with it. Without images it is text,
// which is all that some servers know.
func userMessage(text string, shown []provider.Shown) openai.ChatCompletionMessage {
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
		return nil // not reached: it is a content or parts, and never both
	}
	return out
}
