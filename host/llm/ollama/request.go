package ollama

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"sync"

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
	ToolCallID string     `json:"tool_call_id,omitempty"` // since 0.12.10; before it, results are told apart by their order
}

type wireCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"` // which Ollama leaves out, and its documentation does not
	Function struct {
		Index     int             `json:"index"`
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"` // an object, byte for byte: no number loses a digit, no key its place
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

// body is a request, of what is kept of its tools and messages.
//
// truncate and shift forbid the server to forget the beginning of the request in silence,
// before the answer and within it. Servers know them since 0.12.4; see context.go for the
// others.
func (w *contextWindow) body(model string, tools []byte, messages provider.Pieces) provider.Pieces {
	head := `{"model":` + string(tool.Marshal(model)) + `,"stream":true,"truncate":false,"shift":false,"options":{"num_ctx":` + strconv.Itoa(w.numCtx) + `}`
	if w.think != "" {
		head += `,"think":` + w.think
	}
	b := provider.Pieces{[]byte(head)}
	if len(tools) > 0 {
		b = append(b, []byte(`,"tools":`), tools)
	}
	b = append(b, []byte(`,"messages":[`))
	return append(append(b, messages...), []byte(`]}`))
}

// wireEntry is the messages of an entry, with commas between them.
func (m *Model) wireEntry(e *llm.Entry) []byte {
	var out provider.Pieces
	switch e.Role {
	case llm.RoleSystem, llm.RoleUser:
		out = out.Add(tool.Marshal(m.withImages(wireMessage{Role: string(e.Role), Content: e.Parts[0].Text}, e.Parts[1:], "this message")))
	case llm.RoleAssistant:
		out = out.Add(tool.Marshal(assistant(e)))
	case llm.RoleTool:
		images := wireMessage{Role: "user"} // most models know images in messages of the user only
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

// withImages adds images to a message, and to its text a line for each.
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

// wireTools keeps the tools of the newest request on the wire: they are the same in each
// step of a conversation.
type wireTools struct {
	mu   sync.Mutex
	of   []tool.Definition
	wire []byte
}

func (w *wireTools) get(tools []tool.Definition) []byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	same := func(a, b tool.Definition) bool {
		return a.Name == b.Name && a.Description == b.Description && bytes.Equal(a.Parameters, b.Parameters)
	}
	if len(tools) > 0 && !slices.EqualFunc(w.of, tools, same) {
		wire := make([]wireTool, len(tools))
		w.of = slices.Clone(tools)
		for i, def := range tools {
			w.of[i].Parameters = bytes.Clone(def.Parameters)
			f := &wire[i].Function
			wire[i].Type, f.Name, f.Description, f.Parameters = "function", def.Name, def.Description, wireParameters(def.Parameters)
		}
		w.wire = tool.Marshal(wire)
	}
	if len(tools) == 0 {
		return nil
	}
	return w.wire
}
