//go:build bench

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
)

// The conversation that the model plays for every program: it answers a prompt with the
// file's name by a call that reads the file, and everything else, including a result, by
// a text.
const (
	fileName    = "notes.txt"
	fileText    = "The budget is 4711 and the deadline is Friday.\n"
	answer      = "The budget is 4711, and the deadline is Friday. That is all that there is to say."
	plainPrompt = "Say what the budget is."
	filePrompt  = "Read " + fileName + " and say what the budget is."
)

// model answers in the wire formats of OpenAI's chat completions, OpenAI's responses and
// Google's content generation.
type model struct {
	mu       sync.Mutex
	requests []request
}

// request is a request of a client.
type request struct {
	path   string
	body   []byte
	tools  int  // number of tools offered
	result bool // it contains the content of the file
	err    error
}

// takeRequests returns the requests since the last call.
func (m *model) takeRequests() []request {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := m.requests
	m.requests = nil
	return all
}

// call is a tool call of the model. It calls the first of readCalls that is offered.
type call struct {
	tool string
	args map[string]any
}

var readCalls = []call{
	{"file_read", map[string]any{"path": fileName}},
	{"read", map[string]any{"filePath": fileName}},
	{"read_file", map[string]any{"file_path": fileName}},
	{"exec_command", map[string]any{"cmd": "cat " + fileName}},
	{"shell_command", map[string]any{"command": "cat " + fileName}},
	{"shell", map[string]any{"command": []string{"cat", fileName}}},
}

// parsedRequest is the content of a request in any format.
type parsedRequest struct {
	prompt  bool // the last prompt has the file's name
	result  bool // the file was read, and no prompt followed
	noTools bool // it offers no tools
	offered map[string]bool
}

// nextCall returns the model's next tool call; nil means that it answers with a text.
func (a parsedRequest) nextCall() (*call, error) {
	if a.noTools || a.result || !a.prompt {
		return nil, nil
	}
	for _, c := range readCalls {
		if a.offered[c.tool] {
			return &c, nil
		}
	}
	return nil, fmt.Errorf("no tool that reads a file is among %v", a.offered)
}

// ServeHTTP implements [http.Handler].
func (m *model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client left
	}
	var a parsedRequest
	var reply func(io.Writer, *call)
	switch {
	case strings.HasSuffix(r.URL.Path, "/chat/completions"):
		a, err = parseChat(body)
		reply = replyInChat
	case strings.HasSuffix(r.URL.Path, "/responses"):
		a, err = parseResponses(body)
		reply = replyInResponses
	case strings.HasSuffix(r.URL.Path, ":streamGenerateContent"):
		a, err = parseGoogle(body)
		reply = func(w io.Writer, c *call) { event(w, "", googleReply(c)) }
	case strings.HasSuffix(r.URL.Path, ":generateContent"):
		a, err = parseGoogle(body)
		reply = func(w io.Writer, c *call) { _ = json.NewEncoder(w).Encode(googleReply(c)) }
	default:
		http.NotFound(w, r)
		return
	}
	var c *call
	if err == nil {
		c, err = a.nextCall()
	}
	m.mu.Lock()
	m.requests = append(m.requests, request{path: r.URL.Path, body: body, tools: len(a.offered), result: a.result, err: err})
	m.mu.Unlock()
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	if strings.HasSuffix(r.URL.Path, ":generateContent") {
		w.Header().Set("Content-Type", "application/json")
	}
	reply(w, c)
}

// words returns the pieces in which a text is streamed.
func words() []string { return strings.SplitAfter(answer, " ") }

func event(w io.Writer, name string, data any) {
	if name != "" {
		fmt.Fprintf(w, "event: %s\n", name)
	}
	encoded, _ := json.Marshal(data) // maps of texts and numbers always encode
	fmt.Fprintf(w, "data: %s\n\n", encoded)
}

func arguments(c *call) string {
	encoded, _ := json.Marshal(c.args)
	return string(encoded)
}

type object = map[string]any

func parseChat(body []byte) (a parsedRequest, err error) {
	var r struct {
		Messages []struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
		Tools []struct {
			Function struct {
				Name string `json:"name"`
			} `json:"function"`
		} `json:"tools"`
	}
	if err := json.Unmarshal(body, &r); err != nil {
		return a, err
	}
	a.offered = map[string]bool{}
	for _, t := range r.Tools {
		a.offered[t.Function.Name] = true
	}
	a.noTools = len(r.Tools) == 0
	for _, m := range r.Messages {
		switch m.Role {
		case "user":
			a.prompt = bytes.Contains(m.Content, []byte(filePrompt))
			a.result = false
		case "tool":
			a.result = bytes.Contains(m.Content, []byte("4711"))
		}
	}
	return a, nil
}

func replyInChat(w io.Writer, c *call) {
	send := func(delta object, finish any) {
		event(w, "", object{
			"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1_700_000_000, "model": "scripted",
			"choices": []object{{"index": 0, "delta": delta, "finish_reason": finish}},
		})
	}
	finish := "stop"
	if c != nil {
		finish = "tool_calls"
		send(object{"role": "assistant", "tool_calls": []object{{
			"index": 0, "id": "call_1", "type": "function", "function": object{"name": c.tool, "arguments": arguments(c)},
		}}}, nil)
	} else {
		for _, word := range words() {
			send(object{"role": "assistant", "content": word}, nil)
		}
	}
	send(object{}, finish)
	event(w, "", object{
		"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1_700_000_000, "model": "scripted",
		"choices": []object{}, "usage": object{"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120},
	})
	fmt.Fprint(w, "data: [DONE]\n\n")
}

func parseResponses(body []byte) (a parsedRequest, err error) {
	var r struct {
		Input []struct {
			Type    string          `json:"type"`
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
			Output  json.RawMessage `json:"output"`
		} `json:"input"`
		Tools []struct {
			Type string `json:"type"`
			Name string `json:"name"`
		} `json:"tools"`
	}
	if err := json.Unmarshal(body, &r); err != nil {
		return a, err
	}
	a.offered = map[string]bool{}
	for _, t := range r.Tools {
		if t.Type == "function" {
			a.offered[t.Name] = true
		}
	}
	a.noTools = len(r.Tools) == 0
	for _, i := range r.Input {
		switch {
		case i.Type == "function_call_output":
			a.result = bytes.Contains(i.Output, []byte("4711"))
		case i.Role == "user":
			a.prompt = bytes.Contains(i.Content, []byte(filePrompt))
			a.result = false
		}
	}
	return a, nil
}

func replyInResponses(w io.Writer, c *call) {
	n := 0
	send := func(name string, data object) {
		data["type"], data["sequence_number"] = name, n
		n++
		event(w, name, data)
	}
	response := object{"id": "resp_1", "object": "response", "created_at": 1_700_000_000, "status": "in_progress", "model": "scripted", "output": []object{}}
	send("response.created", object{"response": response})
	var item object
	if c != nil {
		item = object{"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": c.tool, "arguments": "", "status": "in_progress"}
		send("response.output_item.added", object{"output_index": 0, "item": item})
		send("response.function_call_arguments.delta", object{"output_index": 0, "item_id": "fc_1", "delta": arguments(c)})
		item["arguments"], item["status"] = arguments(c), "completed"
	} else {
		item = object{"type": "message", "id": "msg_1", "role": "assistant", "status": "in_progress", "content": []object{}}
		send("response.output_item.added", object{"output_index": 0, "item": item})
		send("response.content_part.added", object{"output_index": 0, "content_index": 0, "item_id": "msg_1", "part": object{"type": "output_text", "text": "", "annotations": []object{}}})
		for _, word := range words() {
			send("response.output_text.delta", object{"output_index": 0, "content_index": 0, "item_id": "msg_1", "delta": word})
		}
		item["status"], item["content"] = "completed", []object{{"type": "output_text", "text": answer, "annotations": []object{}}}
	}
	send("response.output_item.done", object{"output_index": 0, "item": item})
	response["status"], response["output"] = "completed", []object{item}
	response["usage"] = object{
		"input_tokens": 100, "input_tokens_details": object{"cached_tokens": 0},
		"output_tokens": 20, "output_tokens_details": object{"reasoning_tokens": 0}, "total_tokens": 120,
	}
	send("response.completed", object{"response": response})
}

func parseGoogle(body []byte) (a parsedRequest, err error) {
	var r struct {
		Contents []struct {
			Role  string `json:"role"`
			Parts []struct {
				Text     string          `json:"text"`
				Response json.RawMessage `json:"functionResponse"`
			} `json:"parts"`
		} `json:"contents"`
		Tools []struct {
			Functions []struct {
				Name string `json:"name"`
			} `json:"functionDeclarations"`
		} `json:"tools"`
	}
	if err := json.Unmarshal(body, &r); err != nil {
		return a, err
	}
	a.offered = map[string]bool{}
	for _, t := range r.Tools {
		for _, f := range t.Functions {
			a.offered[f.Name] = true
		}
	}
	a.noTools = len(a.offered) == 0
	for _, c := range r.Contents {
		for _, p := range c.Parts {
			switch {
			case p.Response != nil:
				a.result = bytes.Contains(p.Response, []byte("4711"))
			case c.Role == "user" && p.Text != "":
				a.prompt = strings.Contains(p.Text, filePrompt)
				a.result = false
			}
		}
	}
	return a, nil
}

func googleReply(c *call) object {
	part := object{"text": answer}
	if c != nil {
		part = object{"functionCall": object{"name": c.tool, "args": c.args}}
	}
	return object{
		"candidates":    []object{{"index": 0, "content": object{"role": "model", "parts": []object{part}}, "finishReason": "STOP"}},
		"usageMetadata": object{"promptTokenCount": 100, "candidatesTokenCount": 20, "totalTokenCount": 120},
		"modelVersion":  "scripted", "responseId": "r1",
	}
}
