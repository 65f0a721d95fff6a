package anthropic

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/stockade-dev/stockade/host/llm/llmtest"
	"github.com/stockade-dev/stockade/host/llm/offline"
	"github.com/stockade-dev/stockade/host/llm/provider"
)

// server speaks the Messages API and answers with the lines of a script in the format of
// [offline.Script]. It refuses requests that the API refuses according to its documentation
// and errors.
type server struct {
	script *offline.Script
	thinks bool                                // each answer begins with thinking: one block that can be read, and one that cannot
	refuse func(r *request) (complaint string) // what else it refuses

	mu       sync.Mutex
	requests []*request // that it has accepted
	refused  []string   // why it has not
}

// scripted serves a script in memory and checks that the whole script was used.
func scripted(t testing.TB, s *server, script ...string) provider.Options {
	t.Helper()
	if len(script) == 0 {
		return options(llmtest.Serve(t, s)) // which refuses all
	}
	var err error
	if s.script, err = offline.ParseScript("script", strings.NewReader(strings.Join(script, "\n"))); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if n := s.script.Remaining(); n > 0 {
			t.Errorf("%d lines of the script were not used", n)
		}
	})
	return options(llmtest.Serve(t, s))
}

func options(client *http.Client) provider.Options {
	return provider.Options{
		APIKey: llmtest.APIKey, BaseURL: "http://model.test", StallTimeout: llmtest.StallTimeout,
		MaxStreamBytes: llmtest.MaxStreamBytes, HTTPClient: client,
	}
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method+" "+r.URL.Path != "POST /v1/messages" {
		fail(w, http.StatusNotFound, "not_found_error", "Not Found")
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client left
	}
	req, err := read(r.Header, body, s.thinks)
	if err == nil && s.refuse != nil {
		if said := s.refuse(req); said != "" {
			err = errors.New(said)
		}
	}
	s.mu.Lock()
	if err != nil {
		s.refused = append(s.refused, err.Error())
		s.mu.Unlock()
		fail(w, http.StatusBadRequest, "invalid_request_error", err.Error())
		return
	}
	s.requests = append(s.requests, req)
	n := len(s.requests)
	s.mu.Unlock()
	a := s.script.Respond(r.Context(), &offline.Request{Body: body})
	for name, value := range a.Fault.Headers {
		w.Header().Set(name, value)
	}
	status := cmp.Or(a.Fault.Status, http.StatusOK)
	switch {
	case a.Fault.Error != nil || status != http.StatusOK:
		said, kind := http.StatusText(status), "api_error"
		if e := a.Fault.Error; e != nil {
			code, _ := e.Code.(string)
			said, kind = e.Message, cmp.Or(code, e.Type, kind) // the API has a type and no code
		}
		fail(w, status, kind, said)
	case a.Fault.Stall && a.Reasoning+a.Text == "" && len(a.Calls) == 0:
		<-r.Context().Done()
		panic(http.ErrAbortHandler)
	default:
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		s.stream(w, r, req, a, n)
	}
}

func fail(w http.ResponseWriter, status int, kind, said string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"type":"error","error":{"type":%q,"message":%s},"request_id":"req_011"}`, kind, quote(said))
}

func quote(text string) string {
	out, _ := json.Marshal(text)
	return string(out)
}

// stream sends an answer, or a fault in its place.
func (s *server) stream(w http.ResponseWriter, r *http.Request, req *request, a offline.Answer, n int) {
	var body string
	switch {
	case a.Fault.Flood:
		line := []byte(strings.Repeat("x", 64<<10))
		for r.Context().Err() == nil {
			if _, err := w.Write(line); err != nil {
				return
			}
		}
		return
	case a.Fault.Raw != nil:
		body = *a.Fault.Raw
	case !a.Fault.Empty:
		body = s.answer(req, a, n)
	}
	if cut := a.Fault.CutAfter; cut > 0 && cut < len(body) {
		body = body[:cut]
	}
	for event := range strings.SplitAfterSeq(body, "\n\n") {
		if _, err := io.WriteString(w, event); err != nil {
			return // the client left
		}
		http.NewResponseController(w).Flush()
	}
	switch {
	case a.Fault.CutAfter > 0:
		panic(http.ErrAbortHandler)
	case a.Fault.Stall:
		<-r.Context().Done()
		panic(http.ErrAbortHandler)
	}
}

// events encodes events in the API's form.
func events(data ...string) string {
	var out strings.Builder
	for _, d := range data {
		var e struct{ Type string }
		_ = json.Unmarshal([]byte(d), &e)
		out.WriteString("event: " + e.Type + "\ndata: " + d + "\n\n")
	}
	return out.String()
}

// answer returns the stream of an answer: the n-th of the server.
func (s *server) answer(req *request, a offline.Answer, n int) string {
	input, output, cached, details := 1, 1, 0, ""
	if a.Usage != nil {
		input, output = a.Usage.InputTokens, a.Usage.OutputTokens
		cached = a.Usage.CachedTokens
		if n := a.Usage.ReasoningTokens; n > 0 {
			details = fmt.Sprintf(`,"output_tokens_details":{"thinking_tokens":%d}`, n)
		}
	}
	out := []string{fmt.Sprintf(`{"type":"message_start","message":{"id":"msg_%d","type":"message","role":"assistant","model":%q,"content":[],"stop_reason":null,"stop_sequence":null,`+
		`"usage":{"input_tokens":%d,"cache_creation_input_tokens":0,"cache_read_input_tokens":%d,"output_tokens":%d,"service_tier":"standard"}}}`, n, req.Model, input-cached, cached, min(output, 1)),
		`{"type": "ping"}`}
	index := 0
	block := func(start string, deltas ...string) {
		out = append(out, fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":%s}`, index, start))
		for _, d := range deltas {
			out = append(out, fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":%s}`, index, d))
		}
		out = append(out, fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, index))
		index++
	}
	size := cmp.Or(a.ChunkBytes, 8)
	if a.Reasoning != "" {
		var deltas []string
		for _, p := range cut(a.Reasoning, size) {
			deltas = append(deltas, `{"type":"thinking_delta","thinking":`+quote(p)+`}`)
		}
		block(`{"type":"thinking","thinking":"","signature":""}`, append(deltas, `{"type":"signature_delta","signature":`+quote(a.Signature)+`}`)...)
	}
	if s.thinks {
		text := fmt.Sprintf("thought %d", n)
		block(`{"type":"thinking","thinking":"","signature":""}`, `{"type":"thinking_delta","thinking":`+quote(text)+`}`, `{"type":"signature_delta","signature":`+quote(req.sign(len(req.Messages), nil, text))+`}`)
		block(`{"type":"redacted_thinking","data":"secret"}`)
	}
	if a.Text != "" {
		var deltas []string
		for _, p := range cut(a.Text, size) {
			deltas = append(deltas, `{"type":"text_delta","text":`+quote(p)+`}`)
		}
		block(`{"type":"text","text":""}`, deltas...)
	}
	for _, c := range a.Calls {
		deltas := []string{`{"type":"input_json_delta","partial_json":""}`}
		for _, p := range cut(c.Function.Arguments, size) {
			deltas = append(deltas, `{"type":"input_json_delta","partial_json":`+quote(p)+`}`)
		}
		block(fmt.Sprintf(`{"type":"tool_use","id":%q,"name":%q,"input":{}}`, c.ID, c.Function.Name), deltas...)
	}
	if a.Fault.Stall {
		return events(out...)
	}
	stop := "end_turn"
	switch {
	case a.Finish == "length":
		stop = "max_tokens"
	case len(a.Calls) > 0:
		stop = "tool_use"
	}
	return events(append(out, fmt.Sprintf(`{"type":"message_delta","delta":{"stop_reason":%q,"stop_sequence":null},"usage":{"output_tokens":%d%s}}`, stop, output, details), `{"type":"message_stop"}`)...)
}

// cut cuts a text in pieces of at most n bytes, or of one character.
func cut(text string, n int) (pieces []string) {
	for text != "" {
		end := min(n, len(text))
		for end < len(text) && !utf8.RuneStart(text[end]) {
			end++
		}
		pieces, text = append(pieces, text[:end]), text[end:]
	}
	return pieces
}

// request is a request with all fields that the server knows.
type request struct {
	Model        string                 `json:"model"`
	MaxTokens    int                    `json:"max_tokens"`
	Stream       bool                   `json:"stream"`
	System       []contentBlock         `json:"system"`
	Tools        []toolDef              `json:"tools"`
	ToolChoice   *struct{ Type string } `json:"tool_choice"`
	Thinking     *thinkingConfig        `json:"thinking"`
	OutputConfig struct {
		Effort string `json:"effort"`
	} `json:"output_config"`
	Messages []struct {
		Role    string         `json:"role"`
		Content []contentBlock `json:"content"`
	} `json:"messages"`

	body  []byte
	bound bool // signatures are those of the server
}

type thinkingConfig struct {
	Type         string `json:"type"`
	BudgetTokens int    `json:"budget_tokens"`
	Display      string `json:"display"`
}

type toolDef struct {
	Name         string                     `json:"name"`
	Description  string                     `json:"description"`
	InputSchema  map[string]json.RawMessage `json:"input_schema"`
	CacheControl *cacheControl              `json:"cache_control"`
}

type cacheControl struct {
	Type string `json:"type"`
}

type contentBlock struct {
	Type      string          `json:"type"`
	Text      string          `json:"text,omitempty"`
	Thinking  *string         `json:"thinking,omitempty"`
	Signature string          `json:"signature,omitempty"`
	Data      string          `json:"data,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`
	ToolUseID string          `json:"tool_use_id,omitempty"`
	IsError   bool            `json:"is_error,omitempty"`
	Content   []contentBlock  `json:"content,omitempty"`
	Source    *struct {
		Type      string `json:"type"`
		MediaType string `json:"media_type"`
		Data      string `json:"data"`
	} `json:"source,omitempty"`
	CacheControl *cacheControl `json:"cache_control,omitempty"`
}

// sign returns the signature of thinking. It binds the thinking to the model and to
// everything before it: the messages before, and the preceding blocks of its own message.
func (r *request) sign(messages int, before []contentBlock, thinking string) string {
	var prefix []any
	for _, m := range r.Messages[:messages] {
		prefix = append(prefix, m.Role, uncached(m.Content))
	}
	text, _ := json.Marshal([]any{r.Model, uncached(r.System), prefix, uncached(before), thinking})
	return fmt.Sprintf("%x", sha256.Sum256(text))
}

func uncached(blocks []contentBlock) []contentBlock {
	blocks = append([]contentBlock{}, blocks...)
	for i := range blocks {
		blocks[i].CacheControl = nil
	}
	return blocks
}

var validToolID = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)

// read decodes a request as strictly as the API.
func read(header http.Header, body []byte, bound bool) (*request, error) {
	for name := range header {
		if strings.HasPrefix(name, "X-Stainless") {
			return nil, fmt.Errorf("the header %s tells of the user's machine", name)
		}
	}
	if header.Get("X-Api-Key") != llmtest.APIKey || header.Get("Anthropic-Version") != apiVersion || header.Get("Content-Type") != "application/json" {
		return nil, fmt.Errorf("the headers are not those of the API: %v", header)
	}
	r := &request{body: body, bound: bound}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(r); err != nil {
		return nil, err
	}
	return r, r.check()
}

func (r *request) check() error {
	switch {
	case r.Model == "" || !r.Stream || r.MaxTokens < 1:
		return errors.New("model, stream or max_tokens: Field required")
	case len(r.Messages) == 0:
		return errors.New("messages: at least one message is required")
	case r.Messages[0].Role != "user":
		return errors.New("messages: first message must use the \"user\" role")
	case r.Messages[len(r.Messages)-1].Role != "user":
		return errors.New("This model does not support assistant message prefill. The conversation must end with a user message.")
	}
	if t := r.Thinking; t != nil {
		switch {
		case t.Type == "enabled" && (t.BudgetTokens < 1024 || t.BudgetTokens >= r.MaxTokens || r.OutputConfig.Effort != ""):
			return fmt.Errorf("thinking.enabled.budget_tokens: %d with max_tokens %d", t.BudgetTokens, r.MaxTokens)
		case t.Type == "adaptive" && (t.BudgetTokens != 0 || !slices.Contains([]string{"low", "medium", "high"}, r.OutputConfig.Effort)):
			return fmt.Errorf("output_config.effort: %q", r.OutputConfig.Effort)
		case t.Type != "enabled" && t.Type != "adaptive":
			return fmt.Errorf("thinking.type: %q", t.Type)
		}
	}
	breakpoints := 0
	for i, d := range r.Tools {
		breakpoints += count(d.CacheControl)
		switch {
		case !validToolID.MatchString(d.Name):
			return fmt.Errorf("tools.%d.name: %q", i, d.Name)
		case string(d.InputSchema["type"]) != `"object"`:
			return fmt.Errorf("tools.%d.custom.input_schema.type: Field required", i)
		}
		for _, name := range []string{"oneOf", "anyOf", "allOf"} {
			if d.InputSchema[name] != nil {
				return fmt.Errorf("tools.%d.custom.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level", i)
			}
		}
	}
	for i, b := range r.System {
		breakpoints += count(b.CacheControl)
		if b.Type != "text" || strings.TrimSpace(b.Text) == "" {
			return fmt.Errorf("system.%d: text content blocks must contain non-whitespace text", i)
		}
	}
	ids := map[string]bool{}
	open := []string(nil) // calls of the message before
	for i, m := range r.Messages {
		if i > 0 && m.Role == r.Messages[i-1].Role {
			return fmt.Errorf("messages.%d: roles must alternate", i) // which only some servers want
		}
		results, other := []string(nil), false
		for j, b := range m.Content {
			at := fmt.Sprintf("messages.%d.content.%d", i, j)
			breakpoints += count(b.CacheControl)
			switch err := checkBlock(b); {
			case err != nil:
				return fmt.Errorf("%s: %w", at, err)
			case b.Type == "tool_result" && (m.Role != "user" || other || !slices.Contains(open, b.ToolUseID) || slices.Contains(results, b.ToolUseID)):
				return fmt.Errorf("%s: unexpected `tool_use_id` found in `tool_result` blocks: %s. Each `tool_result` block must have a corresponding `tool_use` block in the previous message", at, b.ToolUseID)
			case b.Type == "tool_result":
				results = append(results, b.ToolUseID)
			case b.Type == "image" && m.Role != "user", b.Type != "image" && b.Type != "text" && m.Role != "assistant":
				return fmt.Errorf("%s: `%s` blocks are not permitted in %s messages", at, b.Type, m.Role)
			case b.Type == "tool_use" && (ids[b.ID] || len(r.Tools) == 0):
				return fmt.Errorf("%s: `tool_use` ids must be unique, and requests which include `tool_use` blocks must define tools", at)
			case b.Type == "tool_use":
				ids[b.ID] = true
			case b.Type == "thinking" && r.bound && b.Signature != r.sign(i, m.Content[:j], *b.Thinking):
				return fmt.Errorf("%s: Invalid `signature` in `thinking` block. The block is bound to a different conversation.", at)
			}
			other = other || b.Type != "tool_result"
		}
		if len(m.Content) == 0 || len(results) != len(open) {
			return fmt.Errorf("messages.%d: `tool_use` ids were found without `tool_result` blocks immediately after, or there is no content", i)
		}
		open = nil
		for _, b := range m.Content {
			if b.Type == "tool_use" {
				open = append(open, b.ID)
			}
		}
	}
	if breakpoints > 4 {
		return fmt.Errorf("A maximum of 4 blocks with cache_control may be provided. Found %d.", breakpoints)
	}
	return nil
}

func count(c *cacheControl) int {
	if c == nil {
		return 0
	}
	return 1
}

func checkBlock(b contentBlock) error {
	switch b.Type {
	case "text":
		if strings.TrimSpace(b.Text) == "" {
			return errors.New("text content blocks must contain non-whitespace text")
		}
	case "thinking", "redacted_thinking":
		if b.Type == "thinking" && (b.Thinking == nil || b.Signature == "") || b.Type == "redacted_thinking" && b.Data != "secret" {
			return errors.New("signature or data: Field required")
		}
		if b.CacheControl != nil {
			return errors.New("cache_control: Extra inputs are not permitted")
		}
	case "tool_use":
		if !validToolID.MatchString(b.ID) || !validToolID.MatchString(b.Name) || !bytes.HasPrefix(b.Input, []byte("{")) {
			return fmt.Errorf("tool_use.id, name or input: Input should be a valid dictionary: %+v", b)
		}
	case "tool_result":
		for _, c := range b.Content {
			if c.Type != "text" && (c.Type != "image" || b.IsError) {
				return errors.New("all content must be type \"text\" if \"is_error\" is true")
			}
			if err := checkBlock(c); err != nil {
				return err
			}
		}
	case "image":
		if b.Source == nil || b.Source.Type != "base64" || !slices.Contains([]string{"image/png", "image/jpeg", "image/gif", "image/webp"}, b.Source.MediaType) {
			return errors.New("image.source: not an image that can be shown")
		}
		if data, err := base64.StdEncoding.DecodeString(b.Source.Data); err != nil || len(data) == 0 {
			return errors.New("image.source.base64.data: not base64")
		}
	default:
		return fmt.Errorf("Input tag '%s' found using 'type' does not match any of the expected tags", b.Type)
	}
	return nil
}
