package ollama

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/llm/provider"
	"github.com/stockade-dev/stockade/host/tool"
)

// If a conversation exceeds the context of the model, Ollama drops its beginning, which has the
// tools and the system messages, and answers as if nothing were missing. The default context has
// 4096 tokens on most machines, less than the first request of an agent needs. So each request
// names the size of the context, and forbids to drop anything (see body). Servers before 0.12.4
// do not obey; for them, and for servers that only imitate Ollama, the need of a request is
// estimated before, and the number of tokens that the server has read is checked afterwards.
const (
	// defaultContext is the context of a model in tokens, unless the options, the model or the
	// request ask for another. For a model of 8 billion parameters it takes about 4 GiB of memory.
	defaultContext = 32 << 10
	// maxInitialContext limits the context in tokens that a model gets because its first request
	// is long, such as that of a resumed session.
	maxInitialContext = 64 << 10

	// Bytes of a request per token: no model has more than the first in any whole request; few
	// have more than the second; hardly any has fewer than the third. English text has four.
	maxBytesPerToken, highBytesPerToken, lowBytesPerToken = 16, 6, 2
	// minCheckedBytes is the size of a request from which maxBytesPerToken holds. A smaller
	// request has a large part that is not text.
	minCheckedBytes = 4 << 10

	maxAnswerBytes = 4 << 20 // bytes of an answer about models; the rest is not read
)

// contextWindow is the context of a model. Its size does not change while this program runs,
// because a change would reload the model.
type contextWindow struct {
	numCtx int    // the num_ctx of each request, in tokens
	think  string // the think field of each request, as JSON; "": the model cannot think

	checked atomic.Bool // the server was asked for the size that it has granted

	mu         sync.Mutex // guards the fields below
	grantedCtx int        // tokens that the server has granted, at most numCtx; numCtx if it does not tell
	// lastBytes is the size of the latest request over minCheckedBytes, and lastTokens its
	// number of tokens as the server counts them; 0: there was none.
	lastBytes, lastTokens int
}

type contextWindows struct {
	mu      sync.Mutex
	byModel map[string]*contextWindow // guarded by mu
}

// window returns the window of the model. Its size is chosen at the model's first request; size is
// the number of bytes of this request.
func (m *Model) window(ctx context.Context, model string, size int) (*contextWindow, error) {
	m.windows.mu.Lock()
	w := m.windows.byModel[model]
	m.windows.mu.Unlock()
	if w != nil {
		return w, nil
	}
	info, err := m.show(ctx, model)
	if err != nil {
		return nil, err
	}
	w = &contextWindow{numCtx: info.chooseContext(m.ContextTokens, m.loadedContext(ctx, model), size)}
	if slices.Contains(info.capabilities, "thinking") {
		w.think = "true"
		if m.ReasoningEffort != "" {
			w.think = string(tool.Marshal(m.ReasoningEffort))
		}
	}
	w.grantedCtx = w.numCtx
	m.windows.mu.Lock()
	defer m.windows.mu.Unlock()
	if m.windows.byModel == nil {
		m.windows.byModel = map[string]*contextWindow{}
	}
	if other := m.windows.byModel[model]; other != nil {
		return other, nil // of a concurrent request
	}
	m.windows.byModel[model] = w
	return w, nil
}

// modelInfo holds a server's description of a model. A field is zero if the server does not send
// it.
type modelInfo struct {
	maxContext   int      // limit of the model's context, in tokens
	numCtx       int      // num_ctx in the Modelfile, in tokens
	remote       bool     // the model runs in Ollama's cloud
	capabilities []string // nil: an older server, which does not list them
}

// chooseContext returns the num_ctx for a model: at least the loaded context. All sizes are in
// tokens, except size, the bytes of the first request. configured overrides the others; 0: unset.
func (a modelInfo) chooseContext(configured, loaded, size int) int {
	n := max(defaultContext, a.numCtx, loaded, min(size/lowBytesPerToken, maxInitialContext))
	if a.remote { // it takes no memory of this machine
		n = cmp.Or(a.maxContext, n)
	}
	if n = cmp.Or(configured, n); a.maxContext > 0 {
		n = min(n, a.maxContext) // a larger context is never granted, but would be shown
	}
	return n
}

// show asks the server about a model. It returns an error if the model does not exist, and an
// empty result if the server does not know the request.
func (m *Model) show(ctx context.Context, model string) (a modelInfo, err error) {
	answer, err := m.ask(ctx, "/api/show", tool.Marshal(map[string]string{"model": model}))
	if failure, ok := errors.AsType[*llm.ProviderError](err); ok && (failure.Status == http.StatusMethodNotAllowed ||
		failure.Status == http.StatusNotFound && !strings.Contains(failure.Message, "model")) {
		return a, nil
	} else if err != nil {
		return a, err
	}
	var shown struct {
		Parameters   string                     `json:"parameters"`
		Info         map[string]json.RawMessage `json:"model_info"`
		Capabilities []string                   `json:"capabilities"`
		RemoteHost   string                     `json:"remote_host"`
	}
	if json.Unmarshal(answer, &shown) != nil {
		return a, nil
	}
	a = modelInfo{remote: shown.RemoteHost != "", capabilities: shown.Capabilities}
	a.maxContext = provider.ParseTokens(shown.Info[provider.ScalarText(shown.Info["general.architecture"])+".context_length"])
	for line := range strings.Lines(shown.Parameters) {
		if f := strings.Fields(line); len(f) == 2 && f[0] == "num_ctx" {
			n, _ := strconv.ParseInt(f[1], 10, 64)
			a.numCtx = llm.ClampTokens(n)
		}
	}
	return a, nil
}

// loadedContext returns the size of the loaded model's context in tokens; 0 if the model is not
// loaded, or the server does not tell.
func (m *Model) loadedContext(ctx context.Context, model string) int {
	answer, err := m.Get(ctx, "/api/ps", maxAnswerBytes)
	var list struct {
		Models []struct {
			Name    string          `json:"name"`
			Context json.RawMessage `json:"context_length"`
		} `json:"models"`
	}
	if err != nil || json.Unmarshal(answer, &list) != nil {
		return 0
	}
	for _, l := range list.Models {
		if withTag(l.Name) == withTag(model) {
			return provider.ParseTokens(l.Context)
		}
	}
	return 0
}

// sizeOf returns the bytes of text in messages. Images do not count, because only the model knows
// how many tokens an image takes.
func sizeOf(messages provider.Pieces) (size int) {
	assistant, images, end := []byte(`{"role":"assistant"`), []byte(`,"images":["`), []byte(`"]`)
	for _, m := range messages {
		size += len(m)
		for !bytes.HasPrefix(m, assistant) { // not in assistant messages: their arguments may have a key "images"
			_, rest, found := bytes.Cut(m, images) // cannot occur in a text, whose quotes are escaped
			if !found {
				break
			}
			data, _, _ := bytes.Cut(rest, end)
			size -= len(data)
			m = rest[len(data):]
		}
	}
	return size
}

// withTag returns a model's name with its tag. The default tag is added if there is none.
func withTag(name string) string {
	if strings.Contains(name[strings.LastIndexByte(name, '/')+1:], ":") {
		return name
	}
	return name + ":latest"
}

// checkFits returns an error if a request of size bytes certainly exceeds the context.
func (m *Model) checkFits(w *contextWindow, size int) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	need := size / highBytesPerToken
	if w.lastTokens > 0 { // most of the request was in the last one
		need = int(int64(size) * int64(w.lastTokens) / int64(w.lastBytes))
	}
	if need > w.grantedCtx {
		return m.tooLong(fmt.Sprintf("the conversation is about %d tokens long, and the context of the model holds %d", need, w.grantedCtx))
	}
	return nil
}

// checkNotCut returns an error if the server has not read the whole request of size bytes. usage
// is what the server has reported.
func (m *Model) checkNotCut(ctx context.Context, w *contextWindow, model string, size int, usage llm.Usage) error {
	given := w.numCtx
	if w.checked.CompareAndSwap(false, true) { // only once: a model stays loaded unchanged
		given = cmp.Or(m.loadedContext(ctx, model), given)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.grantedCtx = min(w.grantedCtx, given)
	read := usage.InputTokens
	switch {
	case read == 0: // the server does not count
		return nil
	case read == w.grantedCtx || read == w.grantedCtx-1: // a cut request fills the context exactly; if more was read, the context is larger
		return m.tooLong(fmt.Sprintf("the server has cut the conversation: it read %d tokens, as many as the context of the model holds", read))
	case size > minCheckedBytes && read < size/maxBytesPerToken:
		return m.tooLong(fmt.Sprintf("the server has cut the conversation: it read %d tokens of at least %d; the context of the model holds %d", read, size/maxBytesPerToken, w.grantedCtx))
	}
	if size > minCheckedBytes {
		w.lastBytes, w.lastTokens = size, read
	}
	return nil
}

func (m *Model) tooLong(message string) error {
	return &llm.ProviderError{Provider: m.Name, Code: llm.ContextExceeded, Message: message, Hint: contextHint}
}

// ContextSize implements [llm.ContextSizer]: the context that each request asks for, or less if
// the server has granted less.
func (m *Model) ContextSize(ctx context.Context, req llm.Request) int {
	size := 0
	for _, message := range req.Messages {
		size += len(message.Content) + len(message.Data)
	}
	w, err := m.window(ctx, m.ModelOf(req), size)
	if err != nil {
		return 0 // the request itself fails with the same error
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.grantedCtx
}
