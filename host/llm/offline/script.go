package offline

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/sashabaranov/go-openai"
)

// maxScriptBytes limits the bytes of a script; a larger one is refused.
const maxScriptBytes = 16 << 20

// Script answers each request with the next line of a script. It is safe for concurrent use;
// requests get the lines in the order in which they arrive.
//
// A script is JSON Lines. Empty lines and lines that begin with # or // are ignored. Each other
// line is an [Answer], with tool_calls in place of Calls:
//
//	{"text":"I look.","tool_calls":[{"id":"a","name":"file_read","arguments":{"path":"x"}}],"chunk_bytes":3}
//	{"status":429,"headers":{"Retry-After":"0"},"error":{"message":"slow down","code":"rate_limit_exceeded"}}
//
// arguments may be a string, which is sent unchanged, malformed or not. The id may be left out.
//
// Any line may have "expect" and "expect_not": texts that must and must not occur in the request.
// They are searched in the request's bytes, in each of its JSON strings, and in each string of a
// result that is JSON. If an expectation fails, the server answers 400 with the reason, and the
// script does not advance: its line waits for a request that meets the expectations.
type Script struct {
	name  string
	steps []scriptStep

	mu   sync.Mutex // guards next
	next int        // index of the step for the next request
}

// scriptStep is a line of a script.
type scriptStep struct {
	line int // its number, from 1
	Answer
	ToolCalls []struct {
		ID        string          `json:"id"`
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"tool_calls"`
	Expect    []string `json:"expect"`
	ExpectNot []string `json:"expect_not"`
}

// ParseScript parses a script. Its errors have the name, and for a faulty line its number.
func ParseScript(name string, r io.Reader) (*Script, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxScriptBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read script %s: %w", name, err)
	}
	if len(data) > maxScriptBytes {
		return nil, fmt.Errorf("%s: more than %d bytes", name, maxScriptBytes)
	}
	s := &Script{name: name}
	number := 0
	for line := range bytes.Lines(data) {
		number++
		line = bytes.TrimSpace(line)
		if len(line) == 0 || line[0] == '#' || bytes.HasPrefix(line, []byte("//")) {
			continue
		}
		step, err := parseStep(line)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, number, err)
		}
		step.line = number
		s.steps = append(s.steps, step)
	}
	if len(s.steps) == 0 {
		return nil, fmt.Errorf("%s: the script has no answers", name)
	}
	return s, nil
}

func parseStep(line []byte) (step scriptStep, _ error) {
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&step); err != nil {
		return step, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return step, errors.New("more than one JSON value in the line")
	}
	for i, c := range step.ToolCalls {
		args := string(c.Arguments)
		if strings.HasPrefix(args, `"`) {
			if err := json.Unmarshal(c.Arguments, &args); err != nil {
				return step, fmt.Errorf("tool_calls[%d]: %w", i, err)
			}
		}
		step.Calls = append(step.Calls, openai.ToolCall{ID: c.ID, Function: openai.FunctionCall{Name: c.Name, Arguments: args}})
	}
	if step.Error != nil {
		step.Status = cmp.Or(step.Status, http.StatusInternalServerError)
	}
	return step, step.check()
}

func (s scriptStep) check() error {
	only := 0
	for _, set := range []bool{s.Empty, s.Raw != nil, s.Flood, s.Error != nil} {
		if set {
			only++
		}
	}
	switch {
	case s.Status != 0 && (s.Status < 200 || s.Status > 599):
		return fmt.Errorf("status %d is not one of 200 to 599", s.Status)
	case s.CutAfter < 0 || s.ChunkBytes < 0:
		return errors.New("cut_after_bytes and chunk_bytes cannot be negative")
	case only > 1 || only == 1 && !s.silent():
		return errors.New("a line is one of: reasoning, text and tool_calls, error, empty, raw, flood")
	case only == 0 && s.silent() && s.Status == 0 && s.CutAfter == 0 && !s.Stall:
		return errors.New("the line answers nothing: it needs text, tool_calls or a fault")
	}
	return nil
}

// Remaining returns the number of answers in the script that no request has used yet.
func (s *Script) Remaining() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.steps) - s.next
}

// Respond implements [Responder].
func (s *Script) Respond(_ context.Context, req *Request) Answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next >= len(s.steps) {
		return refuse("the script %s is used up: all its %d answers were sent", s.name, len(s.steps))
	}
	step := s.steps[s.next]
	seen := newHaystack(req.Body)
	for _, text := range step.Expect {
		if !seen.contains(text) {
			return refuse("%s:%d: the request does not contain %q", s.name, step.line, text)
		}
	}
	for _, text := range step.ExpectNot {
		if seen.contains(text) {
			return refuse("%s:%d: the request contains %q", s.name, step.line, text)
		}
	}
	s.next++
	return step.Answer
}

// refuse returns an answer with an error that clients do not retry.
func refuse(format string, args ...any) Answer {
	return Answer{Fault: Fault{
		Status: http.StatusBadRequest,
		Error:  &openai.APIError{Message: fmt.Sprintf(format, args...), Type: "invalid_request_error", Code: "script"},
	}}
}

// haystack holds the texts that are searched for expectations: the body of a request, the
// strings of its JSON, and the strings of those strings that are JSON themselves, such as
// results.
type haystack []string

const haystackDepth = 3 // the request, a result, a document in the result

func newHaystack(body []byte) haystack {
	h := haystack{string(body)}
	h.add(string(body), haystackDepth)
	return h
}

func (h *haystack) add(document string, depth int) {
	if depth == 0 || !json.Valid([]byte(document)) {
		return
	}
	dec := json.NewDecoder(strings.NewReader(document))
	for {
		tok, err := dec.Token()
		if err != nil {
			return
		}
		if s, ok := tok.(string); ok {
			*h = append(*h, s)
			if strings.HasPrefix(s, "{") || strings.HasPrefix(s, "[") {
				h.add(s, depth-1)
			}
		}
	}
}

func (h haystack) contains(text string) bool {
	return slices.ContainsFunc(h, func(s string) bool { return strings.Contains(s, text) })
}
