package ollama

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/llm/provider"
	"github.com/stockade-dev/stockade/host/tool"
)

// wireMessage is one message on the wire.
type wireMessage struct {
	Role       string     `json:"role"`
	Content    string     `json:"content"`
	Thinking   string     `json:"thinking,omitempty"`
	Images     [][]byte   `json:"images,omitempty"` // base64 in JSON
	ToolCalls  []wireCall `json:"tool_calls,omitempty"`
	ToolName   string     `json:"tool_name,omitempty"`
	ToolCallID string     `json:"tool_call_id,omitempty"` // since 0.12.10; older servers match results by their order
}

type wireCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"` // in Ollama's documentation, but not in its answers
	Function struct {
		Index     int             `json:"index"`
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"` // an object, byte for byte: numbers keep their digits, and keys their order
	} `json:"function"`
}

type wireTool struct {
	Type     string `json:"type"`
	Function struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Parameters  json.RawMessage `json:"parameters"`
	} `json:"function"`
}

// body returns the body of a request with encoded tools and messages, and with the schema of the
// answer if there is one.
//
// truncate and shift forbid the server to drop the beginning of the conversation silently,
// before or during the answer. Servers know them since 0.12.4; see context.go for older ones.
func (w *contextWindow) body(model string, tools, schema []byte, messages provider.Pieces) provider.Pieces {
	head := `{"model":` + string(tool.Marshal(model)) + `,"stream":true,"truncate":false,"shift":false,"options":{"num_ctx":` + strconv.Itoa(w.numCtx) + `}`
	if w.think != "" {
		head += `,"think":` + w.think
	}
	b := provider.Pieces{[]byte(head)}
	if len(tools) > 0 {
		b = append(b, []byte(`,"tools":`), tools)
	}
	if schema != nil {
		b = append(b, []byte(`,"format":`), schema)
	}
	b = append(b, []byte(`,"messages":[`))
	return append(append(b, messages...), []byte(`]}`))
}

// wireEntry returns the messages of an entry, separated by commas.
func (m *Model) wireEntry(e *llm.Entry) []byte {
	var out provider.Pieces
	switch e.Role {
	case llm.RoleSystem, llm.RoleUser:
		out = out.Add(tool.Marshal(m.withImages(wireMessage{Role: string(e.Role), Content: e.Parts[0].Text}, e.Parts[1:], "this message")))
	case llm.RoleAssistant:
		out = out.Add(tool.Marshal(assistant(e)))
	case llm.RoleTool:
		images := wireMessage{Role: "user"} // most models see images only in messages of the user
		for _, p := range e.Parts {
			out = out.Add(tool.Marshal(wireMessage{Role: "tool", Content: p.Text, ToolName: p.Result.Name, ToolCallID: p.Result.CallID}))
			images = m.withImages(images, p.Images, "the result of "+p.Result.CallID+", "+p.Result.Name)
		}
		if images.Content != "" {
			images.Content = llm.ResultImagesHeading + images.Content
			out = out.Add(tool.Marshal(images))
		}
	}
	return bytes.Join(out, nil)
}

// withImages adds images to a message, and a line for each to its text. of names their source.
func (m *Model) withImages(message wireMessage, parts []llm.Part, of string) wireMessage {
	for _, s := range m.images.Show(parts, of) {
		if s.Image != nil {
			message.Images = append(message.Images, s.Image.Data)
		} else {
			message.Content += "\n" + s.Text
		}
	}
	return message
}

func assistant(e *llm.Entry) wireMessage {
	m := wireMessage{Role: "assistant"}
	var texts, thoughts []string
	for _, p := range e.Parts {
		switch p.Type {
		case llm.TextPart:
			texts = append(texts, p.Text)
		case llm.ReasoningPart:
			if p.Text != "" {
				thoughts = append(thoughts, p.Text)
			}
		case llm.CallPart:
			call := wireCall{ID: p.Call.ID, Type: "function"}
			call.Function.Index, call.Function.Name, call.Function.Arguments = len(m.ToolCalls), p.Call.Function.Name, json.RawMessage(p.Call.Function.Arguments)
			m.ToolCalls = append(m.ToolCalls, call)
		}
	}
	m.Content, m.Thinking = strings.Join(texts, "\n\n"), strings.Join(thoughts, "\n\n")
	return m
}

func encodeTools(tools []tool.Definition) []byte {
	wire := make([]wireTool, len(tools))
	for i, def := range tools {
		f := &wire[i].Function
		wire[i].Type, f.Name, f.Description, f.Parameters = "function", def.Name, def.Description, wireParameters(def.Parameters)
	}
	return tool.Marshal(wire)
}
