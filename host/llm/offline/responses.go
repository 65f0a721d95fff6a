package offline

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sashabaranov/go-openai"

	"github.com/stockade-dev/stockade/host/tool"
)

// responsesRequest is a request of OpenAI's Responses API. The API refuses unknown fields, and so
// does [decodeStrict].
type responsesRequest struct {
	openai.CreateResponseRequest
	Input          json.RawMessage   `json:"input"` // a text, or a list of items
	Tools          []json.RawMessage `json:"tools"`
	ClientMetadata map[string]string `json:"client_metadata"` // sent by codex; ignored
}

type responsesTool struct {
	openai.FunctionDefinition
	Type       string          `json:"type"`
	Parameters json.RawMessage `json:"parameters"`
}

// The items of the input that this server understands.
type (
	responsesMessage struct {
		openai.ResponseInputMessage
		ID      string          `json:"id"`
		Content json.RawMessage `json:"content"` // a text, or a list of parts
	}
	responsesPart struct {
		Type        string          `json:"type"`
		Text        string          `json:"text"`
		ImageURL    string          `json:"image_url"`
		Detail      string          `json:"detail"`
		Refusal     string          `json:"refusal"`
		Annotations json.RawMessage `json:"annotations"`
		Logprobs    json.RawMessage `json:"logprobs"`
	}
	responsesCall struct {
		Type      string `json:"type"`
		ID        string `json:"id"`
		CallID    string `json:"call_id"`
		Name      string `json:"name"`
		Namespace string `json:"namespace"`
		Arguments string `json:"arguments"`
		Status    string `json:"status"`
	}
	responsesOutput struct {
		openai.ResponseFunctionCallOutput
		ID     string          `json:"id"`
		Output json.RawMessage `json:"output"` // a text, or a list of parts
	}
	responsesReasoning struct {
		Type             string          `json:"type"`
		ID               string          `json:"id"`
		Summary          []responsesPart `json:"summary"`
		Content          []responsesPart `json:"content"`
		EncryptedContent *string         `json:"encrypted_content"`
	}
)

// decodeStrict decodes JSON and returns an error for fields that v does not have.
func decodeStrict(data []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	return dec.Decode(v)
}

// readResponses parses a request of the Responses API into req.responses, and translates it into
// req.Chat, the form of the chat completions API. It refuses unknown fields and items, broken
// pairs of calls and outputs, and references to earlier responses, which this server forgets. It
// ignores tools that are no functions.
func readResponses(req *Request) error {
	in := new(responsesRequest)
	req.responses = in
	if err := decodeStrict(req.Body, in); err != nil {
		return fmt.Errorf("the request is not JSON of the responses API: %w", err)
	}
	if in.PreviousResponseID != "" || in.Conversation != nil {
		return errors.New("previous_response_id and conversation: this server keeps no responses; send the whole conversation as input")
	}
	req.Chat.Model, req.Chat.Stream = in.Model, in.Stream
	if in.Instructions != "" {
		req.Chat.Messages = append(req.Chat.Messages, openai.ChatCompletionMessage{Role: openai.ChatMessageRoleSystem, Content: in.Instructions})
	}
	for i, raw := range in.Tools {
		var t responsesTool
		if json.Unmarshal(raw, &t) != nil || t.Type == "" {
			return fmt.Errorf("tools[%d]: no object with a type", i)
		}
		if t.Type != "function" {
			continue // other types are optional for a model
		}
		if err := decodeStrict(raw, &t); err != nil || !tool.ValidName(t.Name) || len(t.Parameters) == 0 {
			return cmp.Or(err, fmt.Errorf("tools[%d]: not a function with parameters and a name that matches ^[a-zA-Z0-9_-]{1,64}$", i))
		}
		req.Chat.Tools = append(req.Chat.Tools, openai.Tool{Type: openai.ToolTypeFunction, Function: &openai.FunctionDefinition{Name: t.Name}})
	}
	var text string
	var items []json.RawMessage
	switch {
	case json.Unmarshal(in.Input, &text) == nil && text != "":
		req.Chat.Messages = append(req.Chat.Messages, openai.ChatCompletionMessage{Role: openai.ChatMessageRoleUser, Content: text})
	case json.Unmarshal(in.Input, &items) != nil || len(items) == 0:
		return errors.New("input: neither a text nor a list with an item")
	}
	return req.readItems(items)
}

// readItems translates the items of the input into req.Chat.
func (req *Request) readItems(items []json.RawMessage) error {
	calls, answered := map[string]int{}, map[string]bool{} // calls: index of the item of a call, by call id
	reasoning := ""                                        // path of a reasoning item that must be followed by another item
	for i, raw := range items {
		where := fmt.Sprintf("input[%d]", i)
		var of struct{ Type, Role string }
		if err := json.Unmarshal(raw, &of); err != nil {
			return fmt.Errorf("%s: %w", where, err)
		}
		if of.Type == "" && of.Role != "" {
			of.Type = "message"
		}
		if reasoning != "" && of.Type != "reasoning" && of.Type != "function_call" && of.Role != openai.ChatMessageRoleAssistant {
			return fmt.Errorf("%s: item of type 'reasoning' was provided without its required following item", reasoning)
		}
		var err error
		reasoning = ""
		switch of.Type {
		case "message":
			err = req.readMessage(raw)
		case "function_call":
			var c responsesCall
			err = decodeStrict(raw, &c)
			_, twice := calls[c.CallID]
			switch {
			case err != nil:
			case c.CallID == "" || len(c.CallID) > 64 || twice:
				err = fmt.Errorf("call_id: %.80q is empty, longer than 64, or used twice", c.CallID)
			case !tool.ValidName(c.Name):
				err = fmt.Errorf("name: %.80q does not match ^[a-zA-Z0-9_-]{1,64}$", c.Name)
			}
			calls[c.CallID] = i
			req.Chat.Messages = append(req.Chat.Messages, openai.ChatCompletionMessage{Role: openai.ChatMessageRoleAssistant, ToolCalls: []openai.ToolCall{{
				ID: c.CallID, Type: openai.ToolTypeFunction, Function: openai.FunctionCall{Name: c.Name, Arguments: c.Arguments},
			}}})
		case "function_call_output":
			var o responsesOutput
			err = decodeStrict(raw, &o)
			if _, ok := calls[o.CallID]; err == nil && !ok {
				err = fmt.Errorf("no tool call found for function call output with call_id %.80s", o.CallID)
			}
			m := openai.ChatCompletionMessage{Role: openai.ChatMessageRoleTool, ToolCallID: o.CallID}
			if err == nil {
				m, err = readContent(m, o.Output, "input_text", "input_image")
			}
			answered[o.CallID] = true
			req.Chat.Messages = append(req.Chat.Messages, m)
		case "reasoning":
			reasoning, err = where, req.readReasoning(raw)
		default:
			err = fmt.Errorf("type: this server knows no items of type %.80q", of.Type)
		}
		if err != nil {
			return fmt.Errorf("%s.%w", where, err)
		}
	}
	if reasoning != "" {
		return fmt.Errorf("%s: item of type 'reasoning' was provided without its required following item", reasoning)
	}
	for id, i := range calls {
		if !answered[id] {
			return fmt.Errorf("input[%d]: no tool output found for function call %.80s", i, id)
		}
	}
	return nil
}

func (req *Request) readMessage(raw []byte) error {
	var m responsesMessage
	if err := decodeStrict(raw, &m); err != nil {
		return err
	}
	types := []string{"input_text", "input_image"}
	switch m.Role {
	case openai.ChatMessageRoleUser, openai.ChatMessageRoleSystem, openai.ChatMessageRoleDeveloper:
	case openai.ChatMessageRoleAssistant:
		types = []string{"output_text", "refusal"}
	default:
		return fmt.Errorf("role: unknown role %.80q", m.Role)
	}
	chat, err := readContent(openai.ChatCompletionMessage{Role: m.Role}, m.Content, types...)
	req.Chat.Messages = append(req.Chat.Messages, chat)
	return err
}

// readContent parses a text, or a list of parts of the given types, into m, which it returns.
func readContent(m openai.ChatCompletionMessage, content json.RawMessage, types ...string) (openai.ChatCompletionMessage, error) {
	if json.Unmarshal(content, &m.Content) == nil {
		return m, nil
	}
	var parts []responsesPart
	if err := decodeStrict(content, &parts); err != nil {
		return m, fmt.Errorf("content: %w", err)
	}
	for i, p := range parts {
		part := openai.ChatMessagePart{Type: openai.ChatMessagePartTypeText, Text: p.Text + p.Refusal}
		if p.Type == "input_image" {
			part = openai.ChatMessagePart{Type: openai.ChatMessagePartTypeImageURL, ImageURL: &openai.ChatMessageImageURL{URL: p.ImageURL}}
		}
		if !slices.Contains(types, p.Type) || part.ImageURL != nil && !isImage(part) {
			return m, fmt.Errorf("content[%d]: %.80q is not one of %s, or no image in the request itself", i, p.Type, strings.Join(types, ", "))
		}
		m.MultiContent = append(m.MultiContent, part)
	}
	return m, nil
}

// sealed returns a stand-in for encrypted reasoning. The server accepts it back only for the same
// model.
func (req *Request) sealed(a Answer) string {
	return cmp.Or(a.Signature, base64.StdEncoding.EncodeToString([]byte(a.Reasoning))) + req.seal()
}

func (req *Request) seal() string { return "@" + cmp.Or(req.Chat.Model, model) }

func (req *Request) readReasoning(raw []byte) error {
	var r responsesReasoning
	if err := decodeStrict(raw, &r); err != nil {
		return err
	}
	if r.Summary == nil {
		return errors.New("summary: missing required parameter")
	}
	if r.EncryptedContent == nil {
		return fmt.Errorf("id: item with id %.80q not found; items are not persisted", r.ID)
	}
	if !strings.HasSuffix(*r.EncryptedContent, req.seal()) {
		return errors.New("encrypted_content: it could not be verified for this model")
	}
	return nil
}

type object = map[string]any

// response returns the response object with the given items. ended is set if the answer has ended,
// completely or not: the object then has the final status and the usage.
func (req *Request) response(a Answer, items []object, ended bool) object {
	r := object{
		"id": answerID("resp_", req), "object": "response", "created_at": time.Now().Unix(), "model": cmp.Or(req.Chat.Model, model),
		"status": "in_progress", "output": items, "error": nil, "incomplete_details": nil,
		"instructions": nil, "metadata": object{}, "parallel_tool_calls": true, "store": false, "temperature": 1, "tool_choice": "auto", "tools": []any{}, "top_p": 1,
	}
	if !ended {
		return r
	}
	u := a.usage(req)
	r["status"], r["usage"] = "completed", object{
		"input_tokens": u.InputTokens, "output_tokens": u.OutputTokens, "total_tokens": u.Total(),
		"input_tokens_details":  object{"cached_tokens": u.CachedTokens, "cache_write_tokens": u.CacheWriteTokens},
		"output_tokens_details": object{"reasoning_tokens": u.ReasoningTokens},
	}
	switch a.finish() {
	case openai.FinishReasonLength:
		r["status"], r["incomplete_details"] = "incomplete", object{"reason": "max_output_tokens"}
	case openai.FinishReasonContentFilter:
		r["status"], r["incomplete_details"] = "incomplete", object{"reason": "content_filter"}
	}
	return r
}

// items returns the items of an answer: the reasoning, the text, and the calls.
func (req *Request) items(a Answer) []object {
	items := []object{}
	add := func(typ, prefix string, item object) {
		item["type"], item["id"] = typ, fmt.Sprintf("%s_%d", answerID(prefix, req), len(items))
		items = append(items, item)
	}
	if a.Reasoning != "" {
		item := object{"summary": []object{}}
		if r := req.responses.Reasoning; r != nil && r.Summary != "" {
			item["summary"] = []object{{"type": "summary_text", "text": a.Reasoning}}
		}
		if slices.Contains(req.responses.Include, openai.ResponseIncludeReasoningEncryptedContent) {
			item["encrypted_content"] = req.sealed(a)
		}
		add("reasoning", "rs_", item)
	}
	if a.Text != "" {
		add("message", "msg_", object{"role": openai.ChatMessageRoleAssistant, "status": "completed", "content": []object{outputText(a.Text)}})
	}
	for _, c := range a.Calls {
		add("function_call", "fc_", object{"call_id": c.ID, "name": c.Function.Name, "arguments": c.Function.Arguments, "status": "completed"})
	}
	return items
}

func outputText(text string) object {
	return object{"type": "output_text", "text": text, "annotations": []any{}, "logprobs": []any{}}
}

func wholeResponse(req *Request, a Answer) any { return req.response(a, req.items(a), true) }

// streamResponse returns the event stream of an answer, without its end if the answer stalls. The
// arguments of its calls are interleaved.
func streamResponse(req *Request, a Answer) []byte {
	var out bytes.Buffer
	size, number := cmp.Or(a.ChunkBytes, chunkBytes), 0
	event := func(typ string, fields object) {
		fields["type"], fields["sequence_number"] = typ, number
		number++
		fmt.Fprintf(&out, "event: %s\ndata: %s\n\n", typ, tool.Marshal(fields))
	}
	items := req.items(a)
	of := func(i int, fields object) object {
		fields["output_index"], fields["item_id"] = i, items[i]["id"]
		return fields
	}
	begin := func(i int, empty object) {
		for _, field := range []string{"type", "id", "role", "call_id", "name"} {
			if v, ok := items[i][field]; ok {
				empty[field] = v
			}
		}
		event("response.output_item.added", object{"output_index": i, "item": empty})
	}
	end := func(i int) { event("response.output_item.done", object{"output_index": i, "item": items[i]}) }
	deltas := func(i int, typ, text string, fields func() object) {
		for _, piece := range pieces(size, text) {
			f := of(i, fields())
			f["delta"] = piece
			event(typ+".delta", f)
		}
	}

	event("response.created", object{"response": req.response(a, []object{}, false)})
	event("response.in_progress", object{"response": req.response(a, []object{}, false)})
	arguments := make([]string, len(items))
	for i, item := range items {
		switch item["type"] {
		case "reasoning":
			begin(i, object{"summary": []object{}})
			for n, s := range item["summary"].([]object) {
				at := func() object { return object{"summary_index": n} }
				event("response.reasoning_summary_part.added", of(i, object{"summary_index": n, "part": object{"type": "summary_text", "text": ""}}))
				deltas(i, "response.reasoning_summary_text", a.Reasoning, at)
				event("response.reasoning_summary_text.done", of(i, object{"summary_index": n, "text": a.Reasoning}))
				event("response.reasoning_summary_part.done", of(i, object{"summary_index": n, "part": s}))
			}
			end(i)
		case "message":
			begin(i, object{"status": "in_progress", "content": []object{}})
			event("response.content_part.added", of(i, object{"content_index": 0, "part": outputText("")}))
			deltas(i, "response.output_text", a.Text, func() object { return object{"content_index": 0, "logprobs": []any{}} })
			if a.Fault.Stall && len(a.Calls) == 0 {
				return out.Bytes() // silent in place of the end
			}
			event("response.output_text.done", of(i, object{"content_index": 0, "text": a.Text, "logprobs": []any{}}))
			event("response.content_part.done", of(i, object{"content_index": 0, "part": outputText(a.Text)}))
			end(i)
		case "function_call":
			begin(i, object{"status": "in_progress", "arguments": ""})
			arguments[i] = item["arguments"].(string)
		}
	}
	for i, piece := range pieces(size, arguments...) {
		event("response.function_call_arguments.delta", of(i, object{"delta": piece}))
	}
	if a.Fault.Stall {
		return out.Bytes()
	}
	for i, item := range items {
		if item["type"] == "function_call" {
			event("response.function_call_arguments.done", of(i, object{"name": item["name"], "arguments": item["arguments"]}))
			end(i)
		}
	}
	r := req.response(a, items, true)
	event(fmt.Sprintf("response.%s", r["status"]), object{"response": r})
	return out.Bytes()
}
