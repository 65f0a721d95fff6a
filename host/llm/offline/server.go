package offline

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/sashabaranov/go-openai"

	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/tool"
)

// Request is one request to the server.
type Request struct {
	Body []byte                       // the body as it was received
	Chat openai.ChatCompletionRequest // the request in the form of the chat completions API
	// responses is the original of a request of the Responses API; Chat is its translation. Nil:
	// the request is one of the chat completions API.
	responses *responsesRequest
}

// Answer is the answer of a [Responder]: one step of a model, or a fault. Its JSON form is that of
// a line of a [Script].
type Answer struct {
	// Reasoning comes before the text. The client has to send Signature back with it, if the wire
	// format has signatures.
	Reasoning string `json:"reasoning"`
	Signature string `json:"signature"`

	Text   string              `json:"text"`
	Calls  []openai.ToolCall   `json:"-"`      // Index is ignored; the type is always "function"
	Finish openai.FinishReason `json:"finish"` // finish reason; empty: "tool_calls" or "stop"
	Usage  *llm.Usage          `json:"usage"`  // nil: an estimate of one token for four bytes
	// ChunkBytes limits the bytes of reasoning, text or arguments in a chunk of a stream; 0: the
	// server's default.
	ChunkBytes int `json:"chunk_bytes"`
	Fault
}

// Fault makes an answer fail. The zero value is no fault.
type Fault struct {
	Status   int               `json:"status"`          // HTTP status; 0: 200; if it is another, Raw or Error is sent instead of an answer
	Headers  map[string]string `json:"headers"`         // added to the headers of the answer
	Error    *openai.APIError  `json:"error"`           // sent instead of an answer; nil: none, or the text of a Status that is not 200
	CutAfter int               `json:"cut_after_bytes"` // number of bytes of the body after which the connection is closed; 0: it stays
	Stall    bool              `json:"stall"`           // silence after the answer, until the client leaves; if it is empty, no header is sent
	Empty    bool              `json:"empty"`           // the answer is a stream without events
	Raw      *string           `json:"raw"`             // the whole body; nil: none
	Flood    bool              `json:"flood"`           // one line that never ends
}

// silent reports whether the model says and calls nothing.
func (a Answer) silent() bool { return a.Reasoning+a.Text == "" && len(a.Calls) == 0 }

// Responder is the model behind a [Server]. It must be safe for concurrent use.
type Responder interface {
	Respond(ctx context.Context, req *Request) Answer
}

const (
	model        = "offline" // name in /v1/models, and in answers to requests that name no model
	chunkBytes   = 8         // default of Answer.ChunkBytes
	maxBodyBytes = 64 << 20  // bytes of a request; a larger one is answered with 413
)

// Server serves a [Responder] with OpenAI's chat completions API and responses API. It is an
// [http.Handler]; [Server.Start] serves it on this machine only.
//
// It refuses conversations that the real API refuses, such as a tool call without a result, so
// that a client that works here should work there, too.
type Server struct {
	responder Responder
	token     string    // bearer token that requests must have; empty: none is required
	maxBody   int64     // limit of a request in bytes
	made      time.Time // time of NewServer; shown in /v1/models

	closing   chan struct{} // closed by Close; ends answers that would never end
	closeOnce sync.Once

	mu       sync.Mutex   // guards the fields below
	server   *http.Server // nil: not started, or closed
	serveErr chan error
}

// NewServer returns a server. Clients must send the token as bearer token; empty: none is
// required.
func NewServer(responder Responder, token string) *Server {
	return &Server{responder: responder, token: token, maxBody: maxBodyBytes, closing: make(chan struct{}), made: time.Now()}
}

// Start serves on addr, such as "127.0.0.1:0" or "localhost:8080", and returns the base URL for
// clients. It accepts only addresses of this machine: the server is for demos and tests, and an
// answer can start tools.
func (s *Server) Start(addr string) (baseURL string, err error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "", fmt.Errorf("serve model: %w", err)
	}
	if host == "localhost" {
		host = "127.0.0.1" // the machine's resolver may differ
	}
	if ip, err := netip.ParseAddr(host); err != nil || !ip.IsLoopback() {
		return "", fmt.Errorf("serve model: %q is not an address of this machine only; use 127.0.0.1:%s", addr, port)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.server != nil {
		return "", errors.New("serve model: already started")
	}
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", net.JoinHostPort(host, port))
	if err != nil {
		return "", fmt.Errorf("serve model: %w", err)
	}
	s.server = &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second}
	s.serveErr = make(chan error, 1)
	go func() { s.serveErr <- s.server.Serve(listener) }()
	return "http://" + listener.Addr().String() + "/v1", nil
}

// Close stops the server. It waits for the answers that are being sent, until ctx ends, which is
// an error. Answers that stall end at once.
func (s *Server) Close(ctx context.Context) error {
	s.closeOnce.Do(func() { close(s.closing) })
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.server == nil {
		return nil
	}
	err := s.server.Shutdown(ctx)
	if err != nil {
		err = errors.Join(fmt.Errorf("stop model server: %w", err), s.server.Close())
	}
	if serveErr := <-s.serveErr; !errors.Is(serveErr, http.ErrServerClosed) {
		err = errors.Join(err, serveErr)
	}
	s.server = nil
	return err
}

// ServeHTTP implements [http.Handler].
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.authorized(r) {
		writeError(w, http.StatusUnauthorized, "the bearer token is missing or wrong", "invalid_api_key")
		return
	}
	switch r.URL.Path {
	case "/v1/chat/completions":
		if allow(w, r, http.MethodPost) {
			s.ask(w, r, readChat)
		}
	case "/v1/responses":
		if allow(w, r, http.MethodPost) {
			s.ask(w, r, readResponses)
		}
	case "/v1/models":
		if allow(w, r, http.MethodGet) {
			writeJSON(w, http.StatusOK, struct {
				Object string         `json:"object"`
				Data   []openai.Model `json:"data"`
			}{"list", []openai.Model{{ID: model, Object: "model", CreatedAt: s.made.Unix(), OwnedBy: "stockade"}}})
		}
	default:
		writeError(w, http.StatusNotFound, "unknown path "+r.URL.Path+"; there are /v1/chat/completions, /v1/responses and /v1/models", "")
	}
}

func (s *Server) authorized(r *http.Request) bool {
	if s.token == "" {
		return true
	}
	// Hashes of equal length, so that the time does not show the length of the token.
	want := sha256.Sum256([]byte("Bearer " + s.token))
	got := sha256.Sum256([]byte(r.Header.Get("Authorization")))
	return subtle.ConstantTimeCompare(want[:], got[:]) == 1
}

func allow(w http.ResponseWriter, r *http.Request, method string) bool {
	if r.Method == method {
		return true
	}
	w.Header().Set("Allow", method)
	writeError(w, http.StatusMethodNotAllowed, "use "+method, "")
	return false
}

// ask answers a request, which read parses; an error of read is answered with 400.
func (s *Server) ask(w http.ResponseWriter, r *http.Request, read func(*Request) error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, s.maxBody))
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		writeError(w, http.StatusRequestEntityTooLarge, fmt.Sprintf("the request has more than %d bytes", s.maxBody), "")
		return
	}
	if err != nil {
		return // the client has left
	}
	req := &Request{Body: body}
	if err := read(req); err != nil {
		writeError(w, http.StatusBadRequest, err.Error(), "")
		return
	}
	answer := s.responder.Respond(r.Context(), req)
	for name, value := range answer.Headers {
		w.Header().Set(name, value)
	}
	s.answer(w, r, req, answer)
}

func readChat(req *Request) error {
	if err := json.Unmarshal(req.Body, &req.Chat); err != nil {
		return fmt.Errorf("the request is not JSON of the chat completions API: %w", err)
	}
	return checkConversation(req.Chat)
}

func (s *Server) answer(w http.ResponseWriter, r *http.Request, req *Request, a Answer) {
	status := cmp.Or(a.Fault.Status, http.StatusOK)
	stream, whole := streamChat, wholeChat
	if req.responses != nil {
		stream, whole = streamResponse, wholeResponse
	}
	var body []byte
	switch {
	case a.Raw != nil:
		body = []byte(*a.Raw)
	case a.Error != nil || status != http.StatusOK:
		e := cmp.Or(a.Error, &openai.APIError{Message: http.StatusText(status)})
		writeJSON(w, status, openai.ErrorResponse{Error: e})
		return
	case a.Empty, a.Flood:
	case a.Stall && a.silent() && a.CutAfter == 0:
		s.stall(r)
	case req.Chat.Stream:
		w.Header().Set("Cache-Control", "no-cache")
		body = stream(req, a)
	default:
		setDefault(w, "Content-Type", "application/json")
		body = tool.Marshal(whole(req, a))
	}
	setDefault(w, "Content-Type", "text/event-stream")
	w.WriteHeader(status)
	if a.Flood {
		s.flood(w, r)
	}
	s.send(w, r, body, a.Fault)
}

// send writes a body event by event. With fault.CutAfter it stops after so many bytes and
// closes the connection; with fault.Stall it is silent after the body.
func (s *Server) send(w http.ResponseWriter, r *http.Request, body []byte, fault Fault) {
	if fault.CutAfter > 0 && fault.CutAfter < len(body) {
		body = body[:fault.CutAfter]
	}
	flusher := http.NewResponseController(w)
	for len(body) > 0 {
		event := body
		if i := bytes.Index(body, []byte("\n\n")); i >= 0 {
			event = body[:i+2]
		}
		body = body[len(event):]
		if _, err := w.Write(event); err != nil {
			return // the client has left
		}
		if err := flusher.Flush(); err != nil {
			return
		}
	}
	switch {
	case fault.CutAfter > 0:
		panic(http.ErrAbortHandler) // closes the connection
	case fault.Stall:
		s.stall(r)
	}
}

func (s *Server) stall(r *http.Request) {
	select {
	case <-r.Context().Done():
	case <-s.closing:
	}
	panic(http.ErrAbortHandler)
}

func (s *Server) flood(w http.ResponseWriter, r *http.Request) {
	block := bytes.Repeat([]byte("x"), 64<<10)
	_, err := io.WriteString(w, "data: ")
	for err == nil && r.Context().Err() == nil {
		select {
		case <-s.closing:
			return
		default:
			_, err = w.Write(block)
		}
	}
}

// chunk is the wire format of one event of a stream. go-openai's types have fields of other
// vendors that OpenAI does not send.
type chunk struct {
	ID      string        `json:"id"`
	Object  string        `json:"object"`
	Created int64         `json:"created"`
	Model   string        `json:"model"`
	Choices []chunkChoice `json:"choices"`
	Usage   *openai.Usage `json:"usage,omitempty"`
}

type chunkChoice struct {
	Index        int                 `json:"index"`
	Delta        chunkDelta          `json:"delta"`
	FinishReason openai.FinishReason `json:"finish_reason"` // null if empty
}

type chunkDelta struct {
	Role      string      `json:"role,omitempty"`
	Reasoning string      `json:"reasoning_content,omitempty"` // the name that DeepSeek and vLLM use
	Content   string      `json:"content,omitempty"`
	ToolCalls []chunkCall `json:"tool_calls,omitempty"`
}

type chunkCall struct {
	Index    int             `json:"index"`
	ID       string          `json:"id,omitempty"`
	Type     openai.ToolType `json:"type,omitempty"`
	Function struct {
		Name      string `json:"name,omitempty"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// streamChat returns the event stream of an answer: the reasoning, the text, the calls, and the end
// unless the answer stalls. The arguments of the calls are interleaved in small pieces, like those
// of a fast model.
func streamChat(req *Request, a Answer) []byte {
	size := cmp.Or(a.ChunkBytes, chunkBytes)
	var out bytes.Buffer
	id, now := answerID("chatcmpl-", req), time.Now().Unix()
	event := func(choices []chunkChoice, usage *openai.Usage) {
		out.WriteString("data: ")
		out.Write(tool.Marshal(chunk{ID: id, Object: "chat.completion.chunk", Created: now, Model: cmp.Or(req.Chat.Model, model), Choices: choices, Usage: usage}))
		out.WriteString("\n\n")
	}
	send := func(d chunkDelta) { event([]chunkChoice{{Delta: d}}, nil) }

	send(chunkDelta{Role: openai.ChatMessageRoleAssistant})
	for _, piece := range pieces(size, a.Reasoning) {
		send(chunkDelta{Reasoning: piece})
	}
	for _, piece := range pieces(size, a.Text) {
		send(chunkDelta{Content: piece})
	}
	arguments := make([]string, len(a.Calls))
	for i, c := range a.Calls {
		arguments[i] = c.Function.Arguments
		begin := chunkCall{Index: i, ID: c.ID, Type: openai.ToolTypeFunction}
		begin.Function.Name = c.Function.Name
		send(chunkDelta{ToolCalls: []chunkCall{begin}})
	}
	for i, piece := range pieces(size, arguments...) {
		more := chunkCall{Index: i}
		more.Function.Arguments = piece
		send(chunkDelta{ToolCalls: []chunkCall{more}})
	}
	if a.Fault.Stall {
		return out.Bytes() // silent in place of the end
	}
	event([]chunkChoice{{FinishReason: a.finish()}}, nil)
	if req.Chat.StreamOptions != nil && req.Chat.StreamOptions.IncludeUsage {
		event([]chunkChoice{}, chatUsage(a.usage(req)))
	}
	out.WriteString("data: [DONE]\n\n")
	return out.Bytes()
}

func wholeChat(req *Request, a Answer) any {
	type choice struct {
		Index        int                          `json:"index"`
		Message      openai.ChatCompletionMessage `json:"message"`
		FinishReason openai.FinishReason          `json:"finish_reason"`
	}
	calls := make([]openai.ToolCall, 0, len(a.Calls))
	for _, c := range a.Calls {
		calls = append(calls, openai.ToolCall{ID: c.ID, Type: openai.ToolTypeFunction, Function: c.Function})
	}
	return struct {
		ID      string        `json:"id"`
		Object  string        `json:"object"`
		Created int64         `json:"created"`
		Model   string        `json:"model"`
		Choices []choice      `json:"choices"`
		Usage   *openai.Usage `json:"usage"`
	}{
		ID: answerID("chatcmpl-", req), Object: "chat.completion", Created: time.Now().Unix(), Model: cmp.Or(req.Chat.Model, model), Usage: chatUsage(a.usage(req)),
		Choices: []choice{{
			Message:      openai.ChatCompletionMessage{Role: openai.ChatMessageRoleAssistant, ReasoningContent: a.Reasoning, Content: a.Text, ToolCalls: calls},
			FinishReason: a.finish(),
		}},
	}
}

// answerID returns an id that is the same for the same request, so that answers can be compared.
func answerID(prefix string, req *Request) string {
	return fmt.Sprintf("%s%x", prefix, sha256.Sum256(req.Body))[:len(prefix)+24]
}

func (a Answer) finish() openai.FinishReason {
	switch {
	case a.Finish != "":
		return a.Finish
	case len(a.Calls) > 0:
		return openai.FinishReasonToolCalls
	}
	return openai.FinishReasonStop
}

func (a Answer) usage(req *Request) llm.Usage {
	if a.Usage != nil {
		return *a.Usage
	}
	out := len(a.Reasoning) + len(a.Text)
	for _, c := range a.Calls {
		out += len(c.Function.Name) + len(c.Function.Arguments)
	}
	in := len(req.Body)
	for _, m := range req.Chat.Messages {
		for _, part := range m.MultiContent {
			if part.ImageURL != nil { // an image costs the same, however many bytes it has
				in += 6000 - len(part.ImageURL.URL)
			}
		}
	}
	return llm.Usage{InputTokens: (in + 3) / 4, OutputTokens: (out + 3) / 4}
}

func chatUsage(u llm.Usage) *openai.Usage {
	usage := &openai.Usage{PromptTokens: u.InputTokens, CompletionTokens: u.OutputTokens, TotalTokens: u.Total()}
	if u.CachedTokens > 0 {
		usage.PromptTokensDetails = &openai.PromptTokensDetails{CachedTokens: u.CachedTokens}
	}
	if u.ReasoningTokens > 0 {
		usage.CompletionTokensDetails = &openai.CompletionTokensDetails{ReasoningTokens: u.ReasoningTokens}
	}
	return usage
}

// pieces yields texts in pieces of at most size bytes, one of each text in turn, with the index of
// the text.
func pieces(size int, texts ...string) iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		for more := true; more; {
			more = false
			for i, text := range texts {
				if text == "" {
					continue
				}
				piece := firstPiece(text, size)
				more, texts[i] = true, text[len(piece):]
				if !yield(i, piece) {
					return
				}
			}
		}
	}
}

// firstPiece returns at most the first n bytes of s, but at least one character, and never half
// of a character: a chunk is JSON, which holds whole characters.
func firstPiece(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	if n == 0 {
		_, n = utf8.DecodeRuneInString(s)
	}
	return s[:n]
}

// checkConversation returns an error for faults that the real API refuses, too.
func checkConversation(chat openai.ChatCompletionRequest) error {
	if len(chat.Messages) == 0 {
		return errors.New("messages: there has to be at least one")
	}
	open := make(map[string]bool) // ids of calls of the last assistant message that have no result yet
	for i, m := range chat.Messages {
		where := fmt.Sprintf("messages[%d]", i)
		if m.Role == openai.ChatMessageRoleTool {
			if !open[m.ToolCallID] {
				return fmt.Errorf("%s: a message with role 'tool' must be a response to a preceding message with 'tool_calls'; nothing called %q", where, m.ToolCallID)
			}
			delete(open, m.ToolCallID)
		} else if len(open) > 0 {
			return fmt.Errorf("%s: an assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'; %d are missing", where, len(open))
		}
		for j, part := range m.MultiContent {
			if part.Type != openai.ChatMessagePartTypeText && (m.Role != openai.ChatMessageRoleUser || !isImage(part)) {
				return fmt.Errorf("%s.content[%d]: a message with role %q takes no %.80q of this kind", where, j, m.Role, part.Type)
			}
		}
		switch m.Role {
		case openai.ChatMessageRoleSystem, openai.ChatMessageRoleDeveloper, openai.ChatMessageRoleUser, openai.ChatMessageRoleTool:
			if m.Content == "" && len(m.MultiContent) == 0 {
				return fmt.Errorf("%s: a message with role %q has no content", where, m.Role)
			}
		case openai.ChatMessageRoleAssistant:
			if m.Content == "" && len(m.MultiContent) == 0 && len(m.ToolCalls) == 0 {
				return fmt.Errorf("%s: an assistant message needs content or tool_calls", where)
			}
			for j, c := range m.ToolCalls {
				at := fmt.Sprintf("%s.tool_calls[%d]", where, j)
				switch {
				case c.ID == "" || len(c.ID) > 40:
					return fmt.Errorf("%s.id: %d characters; it needs 1 to 40", at, len(c.ID))
				case open[c.ID]:
					return fmt.Errorf("%s.id: %q is used twice", at, c.ID)
				case c.Type != openai.ToolTypeFunction:
					return fmt.Errorf("%s.type: %q is not \"function\"", at, c.Type)
				case !tool.ValidName(c.Function.Name):
					return fmt.Errorf("%s.function.name: %.80q does not match ^[a-zA-Z0-9_-]{1,64}$", at, c.Function.Name)
				case !json.Valid([]byte(c.Function.Arguments)):
					return fmt.Errorf("%s.function.arguments: not JSON", at)
				}
				open[c.ID] = true
			}
		default:
			return fmt.Errorf("%s: unknown role %.80q", where, m.Role)
		}
	}
	if len(open) > 0 {
		return fmt.Errorf("messages: the last assistant message has %d 'tool_calls' without a tool message", len(open))
	}
	for i, t := range chat.Tools {
		if t.Type != openai.ToolTypeFunction || t.Function == nil || !tool.ValidName(t.Function.Name) {
			return fmt.Errorf("tools[%d]: not a function with a name that matches ^[a-zA-Z0-9_-]{1,64}$", i)
		}
	}
	return nil
}

// isImage reports whether a part is an image whose bytes are in the request.
func isImage(part openai.ChatMessagePart) bool {
	if part.Type != openai.ChatMessagePartTypeImageURL || part.ImageURL == nil {
		return false
	}
	mime, data, _ := strings.Cut(part.ImageURL.URL, ";base64,")
	_, err := base64.StdEncoding.DecodeString(data)
	return strings.HasPrefix(mime, "data:image/") && data != "" && err == nil
}

func setDefault(w http.ResponseWriter, name, value string) {
	if w.Header().Get(name) == "" {
		w.Header().Set(name, value)
	}
}

func writeError(w http.ResponseWriter, status int, message, code string) {
	e := &openai.APIError{Message: message, Type: "invalid_request_error"}
	if code != "" {
		e.Code = code
	}
	writeJSON(w, status, openai.ErrorResponse{Error: e})
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	setDefault(w, "Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(tool.Marshal(v)) // an error means that the client has left
}
