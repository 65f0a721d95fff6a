package google

import (
	"bytes"
	"cmp"
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

	"google.golang.org/genai"

	"github.com/stockade-dev/stockade/host/llm/llmtest"
	"github.com/stockade-dev/stockade/host/llm/offline"
)

// server plays a script like Google's API, in the vendor's own types. It refuses requests that
// the API refuses. The signature of a line belongs to its first call, or else to its end.
type server struct {
	script *offline.Script

	mu     sync.Mutex
	signed []string // signatures that it has given
	bodies [][]byte // of requests that it has taken
}

// wireRequest is the request that the API reads.
type wireRequest struct {
	Contents          []*genai.Content        `json:"contents"`
	SystemInstruction *genai.Content          `json:"systemInstruction"`
	Tools             []*genai.Tool           `json:"tools"`
	GenerationConfig  *genai.GenerationConfig `json:"generationConfig"`
}

func newServer(t testing.TB, script ...string) *server {
	t.Helper()
	s, err := offline.ParseScript("script", strings.NewReader(strings.Join(script, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if n := s.Remaining(); n > 0 {
			t.Errorf("%d lines of the script were not used", n)
		}
	})
	return &server{script: s}
}

var streamPath = regexp.MustCompile(`^/v1beta/models/([a-z0-9.-]+):streamGenerateContent$`)

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := streamPath.FindStringSubmatch(r.URL.Path)
	switch {
	case strings.Contains(r.URL.String(), llmtest.APIKey):
		refuse(w, http.StatusBadRequest, "", "the key is in the URL")
		return
	case r.Header.Get("X-Goog-Api-Key") != llmtest.APIKey || r.Header.Get("Authorization") != "":
		refuse(w, http.StatusForbidden, "PERMISSION_DENIED", "Method doesn't allow unregistered callers")
		return
	case path == nil || r.Method != http.MethodPost || r.URL.RawQuery != "alt=sse":
		refuse(w, http.StatusNotFound, "NOT_FOUND", r.Method+" "+r.URL.String()+" is not found")
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client left
	}
	req, err := s.read(body)
	if err == nil {
		err = s.check(path[1], req)
	}
	if err != nil {
		refuse(w, http.StatusBadRequest, "INVALID_ARGUMENT", err.Error())
		return
	}
	s.mu.Lock()
	s.bodies = append(s.bodies, body)
	s.mu.Unlock()
	a := s.script.Respond(r.Context(), &offline.Request{Body: body})
	for name, value := range a.Fault.Headers {
		w.Header().Set(name, value)
	}
	s.answer(w, r, path[1], a)
}

// read decodes a request strictly.
func (s *server) read(body []byte) (req wireRequest, err error) {
	// JSON of protocol buffers takes the base64 of URLs, too, which the vendor's types do not.
	body = bytes.ReplaceAll(body, []byte(placeholderSignature), []byte(strings.ReplaceAll(placeholderSignature, "_", "/")))
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	return req, dec.Decode(&req)
}

var validName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}$`)

// check refuses what the API refuses.
func (s *server) check(model string, req wireRequest) error {
	if len(req.Contents) == 0 {
		return errors.New("contents is not specified")
	}
	for _, t := range req.Tools {
		for _, f := range t.FunctionDeclarations {
			if schema, ok := f.ParametersJsonSchema.(map[string]any); !validName.MatchString(f.Name) || !ok || schema["type"] != "object" {
				return fmt.Errorf("Invalid function name or parameters: %q", f.Name)
			}
		}
	}
	turn := 0 // where the current turn begins: at the last text of the user
	for i, c := range req.Contents {
		if c.Role == genai.RoleUser && slices.ContainsFunc(c.Parts, func(p *genai.Part) bool { return p.Text != "" }) {
			turn = i
		}
	}
	calls := []*genai.FunctionCall(nil) // of the content before
	for i, c := range append([]*genai.Content{req.SystemInstruction}, req.Contents...) {
		if c == nil {
			continue
		}
		if len(c.Parts) == 0 {
			return fmt.Errorf("contents[%d].parts must not be empty", i-1)
		}
		var now []*genai.FunctionCall
		var results []*genai.FunctionResponse
		for j, p := range c.Parts {
			where := fmt.Sprintf("contents[%d].parts[%d]", i-1, j)
			switch {
			case i == 0 && p.Text == "":
				return errors.New("the system speaks in texts")
			case p.FunctionCall != nil && c.Role == genai.RoleModel:
				now = append(now, p.FunctionCall)
				if isModern(model) && i > turn && len(now) == 1 && len(p.ThoughtSignature) == 0 {
					return fmt.Errorf("Function call is missing a thought_signature in functionCall parts: %q in %s", p.FunctionCall.Name, where)
				}
			case p.FunctionResponse != nil && c.Role == genai.RoleUser:
				results = append(results, p.FunctionResponse)
			case p.InlineData != nil && c.Role == genai.RoleUser && slices.Contains(imageTypes, p.InlineData.MIMEType):
			case p.Text != "" || len(p.ThoughtSignature) > 0:
			default:
				return fmt.Errorf("%s: required oneof field 'data' must have one initialized field", where)
			}
			if sig := p.ThoughtSignature; len(sig) > 0 && !s.knows(sig) {
				return fmt.Errorf("%s: Thought signature is not valid", where)
			}
		}
		if i == 0 {
			continue
		}
		want := []string{genai.RoleModel, genai.RoleUser}[i%2]
		if c.Role != want {
			return fmt.Errorf("contents[%d]: Please ensure that roles alternate between user and model, got %q", i-1, c.Role)
		}
		if len(results) != len(calls) {
			return fmt.Errorf("contents[%d]: Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn", i-1)
		}
		for k, r := range results {
			if _, failed := r.Response["error"]; r.Name != calls[k].Name || r.ID != calls[k].ID || (r.ID != "") != isModern(model) || failed == (r.Response["output"] != nil) {
				return fmt.Errorf("contents[%d]: %+v is no response to %+v", i-1, r, calls[k])
			}
			for _, p := range r.Parts {
				if !isModern(model) || p.InlineData == nil || !slices.Contains(imageTypes, p.InlineData.MIMEType) {
					return fmt.Errorf("contents[%d]: no such part of a function response", i-1)
				}
			}
		}
		calls = now
	}
	if req.Contents[len(req.Contents)-1].Role != genai.RoleUser {
		return errors.New("Please ensure that the conversation ends with a user turn or a function response")
	}
	return nil
}

// knows reports whether the server has made a signature, or accepts it as a placeholder.
func (s *server) knows(signature []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(append(s.signed, placeholderSignature), func(known string) bool { return bytes.Equal(decoded(known), signature) })
}

func isModern(model string) bool { return strings.HasPrefix(model, "gemini-3") }

// refuse answers with an error in Google's form.
func refuse(w http.ResponseWriter, status int, code, message string, details ...any) {
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"code": status, "status": code, "message": message, "details": details}})
}

func (s *server) answer(w http.ResponseWriter, r *http.Request, model string, a offline.Answer) {
	f := a.Fault
	status := cmp.Or(f.Status, http.StatusOK)
	if w.Header().Get("Content-Type") == "" {
		w.Header().Set("Content-Type", "text/event-stream")
	}
	switch {
	case f.Raw != nil:
		w.WriteHeader(status)
		_, _ = io.WriteString(w, *f.Raw)
	case f.Error != nil:
		code, _ := f.Error.Code.(string)
		refuse(w, status, code, f.Error.Message)
	case status != http.StatusOK:
		refuse(w, status, "", http.StatusText(status))
	case f.Empty:
		w.WriteHeader(status)
	case f.Flood:
		_, err := io.WriteString(w, "data: ")
		for err == nil {
			_, err = w.Write(bytes.Repeat([]byte("x"), 64<<10))
		}
	case f.Stall && a.Text == "" && len(a.Calls) == 0:
		<-r.Context().Done()
		panic(http.ErrAbortHandler)
	default:
		s.stream(w, r, model, a)
	}
}

// stream writes an answer: the text in pieces, each call whole, and then the reason to stop.
func (s *server) stream(w http.ResponseWriter, r *http.Request, model string, a offline.Answer) {
	left := cmp.Or(a.Fault.CutAfter, 1<<30)
	send := func(usage *genai.GenerateContentResponseUsageMetadata, finish genai.FinishReason, parts ...*genai.Part) {
		event, err := json.Marshal(genai.GenerateContentResponse{
			Candidates:    []*genai.Candidate{{Content: &genai.Content{Role: genai.RoleModel, Parts: parts}, FinishReason: finish}},
			UsageMetadata: usage, ModelVersion: model, ResponseID: "answer",
		})
		if err != nil {
			panic(err)
		}
		event = fmt.Appendf(nil, "data: %s\r\n\r\n", event)
		_, _ = w.Write(event[:min(left, len(event))])
		_ = http.NewResponseController(w).Flush()
		if left -= len(event); left <= 0 {
			panic(http.ErrAbortHandler)
		}
	}
	say := func(text string, thought bool) {
		for text != "" {
			n := min(cmp.Or(a.ChunkBytes, 8), len(text))
			for n < len(text) && !utf8.RuneStart(text[n]) {
				n++
			}
			send(nil, "", &genai.Part{Text: text[:n], Thought: thought})
			text = text[n:]
		}
	}
	say(a.Reasoning, true)
	say(a.Text, false)
	signature := s.sign(a.Signature)
	end := &genai.Part{}
	if len(a.Calls) == 0 {
		end.ThoughtSignature = signature
	}
	finish := map[string]genai.FinishReason{"": genai.FinishReasonStop, "length": genai.FinishReasonMaxTokens, "content_filter": genai.FinishReasonSafety}[string(a.Finish)]
	for i, c := range a.Calls {
		part := &genai.Part{FunctionCall: &genai.FunctionCall{ID: c.ID, Name: c.Function.Name}}
		if c.Function.Arguments != "" && json.Unmarshal([]byte(c.Function.Arguments), &part.FunctionCall.Args) != nil {
			finish = genai.FinishReasonMalformedFunctionCall
			break
		}
		if i == 0 {
			part.ThoughtSignature = signature
		}
		send(nil, "", part)
	}
	if a.Fault.Stall {
		<-r.Context().Done()
		panic(http.ErrAbortHandler)
	}
	usage := &genai.GenerateContentResponseUsageMetadata{}
	if a.Usage != nil {
		usage.PromptTokenCount, usage.CandidatesTokenCount, usage.TotalTokenCount = int32(a.Usage.InputTokens), int32(a.Usage.OutputTokens), int32(a.Usage.Total())
		usage.CachedContentTokenCount, usage.ThoughtsTokenCount = int32(a.Usage.CachedTokens), int32(a.Usage.ReasoningTokens)
		usage.CandidatesTokenCount -= usage.ThoughtsTokenCount
	}
	send(usage, finish, end)
}

// sign returns a new signature, which the server knows from then on.
func (s *server) sign(signature string) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.signed = append(s.signed, signature)
	return decoded(signature)
}

// decoded decodes base64 in both alphabets, like the API.
func decoded(s string) []byte {
	out, err := base64.StdEncoding.DecodeString(strings.NewReplacer("-", "+", "_", "/").Replace(s))
	if err != nil {
		panic(err)
	}
	return out
}
