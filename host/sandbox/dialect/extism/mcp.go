package extism

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/stockade-dev/stockade/host/sandbox/abi"
	"github.com/stockade-dev/stockade/host/sandbox/dialect"
	"github.com/stockade-dev/stockade/host/tool"
	"github.com/stockade-dev/stockade/host/wasm"
)

// Limits on the answers of plugins, besides [abi.MaxResultBytes].
const (
	maxListBytes   = 4 << 20 // bytes of the list of a plugin's tools; more are a fault
	maxListed      = 1024    // tools in the list; more are a fault
	maxContents    = 1024    // pieces of content in one result; more are a fault
	maxDescription = 8 << 10 // bytes of the description of a tool, which is cut there; a manifest has the same limit
)

// requestContext accompanies each request of hyper-mcp. A plugin puts Token into its reports
// of progress.
type requestContext struct {
	ID   string `json:"id"`
	Meta struct {
		Token string `json:"progressToken"`
	} `json:"_meta"`
}

func contextOf(id string) (c requestContext) {
	c.ID, c.Meta.Token = id, id
	return c
}

type listedTool struct {
	Name        string          `json:"name"`
	Title       string          `json:"title"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"inputSchema"`
}

// list asks a plugin for its tools, and adds them to l. It fails if the list is invalid.
func (d Dialect) list(ctx context.Context, g *dialect.Guest, l *listing) error {
	p, err := newPlugin(ctx, g)
	if err != nil {
		return err
	}
	defer p.end()
	var input []byte
	if d.Kind == wasm.HyperMCPv2 {
		if input, err = json.Marshal(map[string]any{"context": contextOf("describe")}); err != nil {
			return err
		}
	}
	out, toolErr, err := p.run(d.toolExports()[0], input)
	switch {
	case err != nil:
		return err
	case toolErr != nil:
		return fmt.Errorf("it says: %s", toolErr.Message)
	}
	return l.read(ctx, out)
}

// read adds the tools in an answer to l. The error is a fault of the plugin, or the end of
// ctx.
func (l *listing) read(ctx context.Context, answer []byte) error {
	if len(answer) > maxListBytes {
		return fault("the list of its tools has %d bytes, more than the limit of %d", len(answer), maxListBytes)
	}
	var listed struct {
		Tools  json.RawMessage `json:"tools"`
		Cursor string          `json:"nextCursor"`
	}
	if err := json.Unmarshal(answer, &listed); err != nil {
		return fault("the list of its tools is not JSON as it should be: %v", err)
	}
	n := 0
	err := eachOf(listed.Tools, func(item json.RawMessage) error {
		if n++; n > maxListed {
			return fault("it lists more than %d tools", maxListed)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		var t listedTool
		if err := json.Unmarshal(item, &t); err != nil {
			l.note("a tool is left out: it is not described as it should be: %v", err)
			return nil
		}
		l.add(tool.Definition{Name: t.Name, Description: describe(t), Parameters: parameters(t.InputSchema)}, nil)
		return nil
	})
	if err != nil {
		return err
	}
	if listed.Cursor != "" {
		l.note("it has more tools than it lists at a time; the others are left out")
	}
	return nil
}

// describe returns the description of a tool for the model.
func describe(t listedTool) string {
	text := cmp.Or(strings.TrimSpace(t.Description), strings.TrimSpace(t.Title), "The author of the tool does not say what it does.")
	if len(text) > maxDescription {
		const cut = " ..."
		text = strings.ToValidUTF8(text[:maxDescription-len(cut)], "") + cut
	}
	return text
}

// parameters returns the schema of a tool's arguments. If the type is missing it adds
// "object", because arguments are always objects.
func parameters(schema json.RawMessage) json.RawMessage {
	if trimmed := bytes.TrimSpace(schema); len(trimmed) == 0 || string(trimmed) == "null" {
		return json.RawMessage(`{"type":"object","properties":{}}`)
	}
	var keys map[string]json.RawMessage
	if json.Unmarshal(schema, &keys) != nil || keys["type"] != nil {
		return schema
	}
	rest := bytes.TrimLeft(bytes.TrimLeft(schema, " \t\r\n")[1:], " \t\r\n")
	if rest[0] != '}' {
		rest = append([]byte(","), rest...)
	}
	return append([]byte(`{"type":"object"`), rest...)
}

// eachOf calls f with each element of a JSON list, until f fails. A missing list is empty.
func eachOf(list json.RawMessage, f func(json.RawMessage) error) error {
	if len(list) == 0 || string(list) == "null" {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(list))
	if tok, err := dec.Token(); err != nil || tok != json.Delim('[') {
		return fault("there is no list where one should be")
	}
	for dec.More() {
		var item json.RawMessage
		if err := dec.Decode(&item); err != nil {
			return fault("a list is not JSON: %v", err)
		}
		if err := f(item); err != nil {
			return err
		}
	}
	return nil
}

// callTool calls a tool through the plugin's own function for calls.
func (p *plugin) callTool(kind wasm.ShapeKind, call tool.Call) (*abi.Output, *abi.ToolError, error) {
	type params struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	}
	var request any = struct {
		Request params         `json:"request"`
		Context requestContext `json:"context"`
	}{params{call.Tool, call.Args}, contextOf(call.ID)}
	if kind == wasm.HyperMCPv1 {
		request = struct {
			Method string `json:"method"`
			Params params `json:"params"`
		}{"tools/call", params{call.Tool, call.Args}}
	}
	input, err := json.Marshal(request)
	if err != nil {
		return nil, nil, err
	}
	out, toolErr, err := p.run(Dialect{kind}.toolExports()[1], input)
	if toolErr != nil || err != nil {
		return nil, toolErr, err
	}
	result, failed, err := readResult(out)
	switch {
	case err != nil:
		return nil, nil, err
	case failed:
		return nil, &abi.ToolError{Case: abi.Failed, Message: abi.Head([]byte(textOf(result)), maxFailure, p.Redact)}, nil
	}
	return result, nil, nil
}

// content is one element of a result. The type decides which other fields are set.
type content struct {
	Type     string          `json:"type"`
	Text     string          `json:"text"`
	MimeType string          `json:"mimeType"`
	URI      string          `json:"uri"`
	Name     string          `json:"name"`
	Title    string          `json:"title"`
	Resource *resource       `json:"resource"`
	Data     json.RawMessage `json:"data"` // for an image: a string in base64
}

// resource is the content of a resource, embedded in a result.
type resource struct {
	URI      string `json:"uri"`
	MimeType string `json:"mimeType"`
	Text     string `json:"text"`
}

// readResult parses a plugin's answer to a call. failed reports whether the tool has failed.
func readResult(answer []byte) (out *abi.Output, failed bool, err error) {
	if !utf8.Valid(answer) {
		return nil, false, fault("the result is not text")
	}
	var result struct {
		Content    json.RawMessage `json:"content"`
		Structured json.RawMessage `json:"structuredContent"`
		IsError    bool            `json:"isError"`
	}
	if err := json.Unmarshal(answer, &result); err != nil {
		return nil, false, fault("the result is not JSON as it should be: %v", err)
	}
	out = &abi.Output{}
	var images abi.Images
	err = eachOf(result.Content, func(item json.RawMessage) error {
		if len(out.Content) == maxContents {
			return fault("the result has more than %d pieces", maxContents)
		}
		var c content
		if err := json.Unmarshal(item, &c); err != nil {
			return fault("a piece of the result is not as it should be: %v", err)
		}
		out.Content = append(out.Content, c.lift(&images))
		return nil
	})
	if err != nil {
		return nil, false, err
	}
	if s := string(result.Structured); s != "null" && !result.IsError {
		out.Structured = s
	}
	return out, result.IsError, nil
}

func (c *content) lift(images *abi.Images) abi.Content {
	text := func(format string, args ...any) abi.Content {
		return abi.Content{Kind: abi.ContentText, Text: fmt.Sprintf(format, args...)}
	}
	switch {
	case c.Type == "image":
		return abi.Content{Kind: abi.ContentImage, Mime: c.MimeType, Data: c.image(images)}
	case c.Type == "audio":
		return text("[audio %s]", c.MimeType)
	case c.Type == "resource_link":
		return abi.Content{Kind: abi.ContentResource, Text: c.URI, Title: cmp.Or(c.Title, c.Name), Mime: c.MimeType}
	case c.Resource != nil && c.Resource.Text != "":
		return text("%s\n%s", c.Resource.URI, c.Resource.Text)
	case c.Resource != nil:
		return abi.Content{Kind: abi.ContentResource, Text: c.Resource.URI, Mime: c.Resource.MimeType}
	}
	return abi.Content{Kind: abi.ContentText, Text: c.Text}
}

// image returns the bytes of an image; nil: they are invalid or over a limit of images.
func (c *content) image(images *abi.Images) []byte {
	var text string
	if json.Unmarshal(c.Data, &text) != nil || text == "" || !images.Add(base64.StdEncoding.DecodedLen(len(text))) {
		return nil
	}
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil
	}
	return data
}

// textOf returns the texts in a result, for the message of a failure.
func textOf(out *abi.Output) string {
	var texts []string
	for _, c := range out.Content {
		if c.Kind == abi.ContentText && c.Text != "" {
			texts = append(texts, c.Text)
		}
	}
	return strings.Join(texts, "\n")
}
