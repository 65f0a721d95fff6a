//go:build screens

package screens

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sashabaranov/go-openai"

	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/llm/offline"
)

// key is the key that the model's server wants.
const key = "key-of-the-test"

// hold stands in a text where the model stops until it is told to go on.
const hold = "⏸"

// model is an OpenAI-compatible server whose answers are told beforehand. It refuses
// what the real API refuses.
type model struct {
	url     string
	goOn    chan struct{}
	holding chan struct{}

	mu      sync.Mutex
	answers []offline.Answer
	asked   []string // the last message of each request, as JSON
	extra   int      // requests without an answer
	calls   int
}

func serve(t testing.TB) *model {
	m := &model{goOn: make(chan struct{}), holding: make(chan struct{})}
	inner := offline.NewServer(m, key)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		inner.ServeHTTP(&holding{w, m, r.Context()}, r)
	}))
	m.url = server.URL + "/v1"
	t.Cleanup(server.Close)
	return m
}

// Respond implements offline.Responder.
func (m *model) Respond(ctx context.Context, req *offline.Request) offline.Answer {
	last, _ := json.Marshal(req.Chat.Messages[len(req.Chat.Messages)-1])
	m.mu.Lock()
	m.asked = append(m.asked, string(last))
	if len(m.answers) == 0 {
		m.extra++
		m.mu.Unlock()
		return offline.Answer{Fault: offline.Fault{Status: http.StatusBadRequest, Error: &openai.APIError{Message: "the test has no answer to this", Type: "invalid_request_error"}}}
	}
	a := m.answers[0]
	m.answers = m.answers[1:]
	for i := range a.Calls {
		m.calls++
		a.Calls[i].ID = fmt.Sprintf("call_%d", m.calls)
	}
	m.mu.Unlock()
	if strings.HasPrefix(a.Text, hold) {
		a.Text = strings.TrimPrefix(a.Text, hold)
		m.pause(ctx)
	}
	if strings.Contains(a.Text, hold) {
		a.ChunkBytes = 1 // the mark is an event of its own
	}
	if a.Usage == nil {
		// The real number depends on the length of paths and of ids.
		a.Usage = &llm.Usage{InputTokens: 1800, OutputTokens: 60}
	}
	return a
}

// pause waits for goes.
func (m *model) pause(ctx context.Context) {
	select {
	case m.holding <- struct{}{}:
	case <-ctx.Done():
		return
	}
	select {
	case <-m.goOn:
	case <-ctx.Done():
	}
}

// answers adds answers of the model.
func (p *person) answers(a ...offline.Answer) {
	p.model.mu.Lock()
	defer p.model.mu.Unlock()
	p.model.answers = append(p.model.answers, a...)
}

// held waits until the model stands at the next mark.
func (p *person) held() {
	p.t.Helper()
	select {
	case <-p.model.holding:
	case <-time.After(patience):
		p.t.Fatalf("the model did not come to a mark: %s", p.model.state())
	}
}

// goesOn lets the model go on from the mark at which it stands.
func (p *person) goesOn() {
	p.t.Helper()
	select {
	case p.model.goOn <- struct{}{}:
	case <-time.After(patience):
		p.t.Fatal("the model does not stand at a mark")
	}
}

// state describes the progress of the model, for the message about a screen that does not
// come.
func (m *model) state() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return fmt.Sprintf("the model was asked %d times, and has %d more answers; last: %.2000s\n", len(m.asked), len(m.answers), strings.Join(m.asked[max(len(m.asked)-1, 0):], ""))
}

// holding is an answer that stops at each mark.
type holding struct {
	http.ResponseWriter
	model *model
	ctx   context.Context
}

func (h *holding) Unwrap() http.ResponseWriter { return h.ResponseWriter }

func (h *holding) Write(event []byte) (int, error) {
	if rest := bytes.ReplaceAll(event, []byte(hold), nil); len(rest) < len(event) {
		h.model.pause(h.ctx)
		return len(event), h.ctx.Err()
	}
	return h.ResponseWriter.Write(event)
}

func text(format string, args ...any) offline.Answer {
	return offline.Answer{Text: fmt.Sprintf(format, args...)}
}

// calls is a step with tool calls.
func calls(text string, calls ...openai.ToolCall) offline.Answer {
	return offline.Answer{Text: text, Calls: calls}
}

func call(name, args string) openai.ToolCall {
	return openai.ToolCall{Function: openai.FunctionCall{Name: name, Arguments: args}}
}

// edit is a call that replaces a text in notes.md.
func edit(old, text string) openai.ToolCall {
	return call("file_edit", fmt.Sprintf(`{"path":"notes.md","old_string":%q,"new_string":%q}`, old, text))
}

// bash is a call that runs a command.
func bash(command string) openai.ToolCall {
	return call("bash", fmt.Sprintf(`{"command":%q}`, command))
}
