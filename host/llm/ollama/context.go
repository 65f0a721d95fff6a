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

// Of what does not fit into the context of a model, Ollama forgets the beginning, where
// the tools and the system's words are, and answers as if nothing were missing. And the
// context of a model that nobody has asked more of holds 4096 tokens on most machines,
// which is less than a first request. So each request says how large the context has to
// be, and forbids to forget (see body). Servers before 0.12.4 do not know how to obey; for
// them, and for those that only speak like Ollama, what a request needs is guessed
// before, and what the server says it has read is believed after.
const (
	// defaultContext is what a model is loaded with, in tokens, if nothing says another
	// number. Of a model of 8 thousand million parameters, it takes about 4 GiB of memory.
	defaultContext = 32 << 10
	// maxInitialContext is what it is loaded with for a first request that needs more, as one of a long
	// session does that is taken up again.
	maxInitialContext = 64 << 10

	// Bytes of a request to a token: no model has more in all of a request, whatever it says;
	// few have more; and hardly one has less. Text in English has four.
	maxBytesPerToken, highBytesPerToken, lowBytesPerToken = 16, 6, 2
	// minCheckedBytes is a size from which on mostBytes holds. In a small request, what is not
	// text is a large part.
	minCheckedBytes = 4 << 10

	maxAnswerBytes = 4 << 20 // of what the server says of its models
)

// contextWindow is the context of a model, the same as long as this program runs: another size
// would load the model again.
type contextWindow struct {
	numCtx int    // what is asked for
	think  string // how much the model is to think, as JSON; "": it cannot

	checked atomic.Bool // the server has been asked what it has given

	mu         sync.Mutex
	grantedCtx int // what it has given, as far as it says: at most numCtx
	// lastBytes and read are of the newest request that is not small: bytes, and tokens as the
	// server counts.
	lastBytes, lastTokens int
}

type contextWindows struct {
	mu sync.Mutex
	of map[string]*contextWindow // by model
}

// window is that of the model, chosen at its first request, which has so many bytes.
func (m *Model) window(ctx context.Context, model string, size int) (*contextWindow, error) {
	m.windows.mu.Lock()
	w := m.windows.of[model]
	m.windows.mu.Unlock()
	if w != nil {
		return w, nil
	}
	about, err := m.show(ctx, model)
	if err != nil {
		return nil, err
	}
	w = &contextWindow{numCtx: about.chooseContext(m.ContextTokens, m.loadedContext(ctx, model), size)}
	if slices.Contains(about.capabilities, "thinking") {
		w.think = "true"
		if m.ReasoningEffort != "" {
			w.think = string(tool.Marshal(m.ReasoningEffort))
		}
	}
	w.grantedCtx = w.numCtx
	m.windows.mu.Lock()
	defer m.windows.mu.Unlock()
	if m.windows.of == nil {
		m.windows.of = map[string]*contextWindow{}
	}
	if other := m.windows.of[model]; other != nil {
		return other, nil // of a request at the same time
	}
	m.windows.of[model] = w
	return w, nil
}

// modelInfo is what a server says of a model. What it does not say is zero.
type modelInfo struct {
	maxContext   int // tokens that the model can hold
	numCtx       int // the parameter of its Modelfile
	remote       bool
	capabilities []string // nil: from a version that does not say
}

// chooseContext chooses num_ctx. What is loaded is taken as it is if it is enough.
func (a modelInfo) chooseContext(configured, loaded, size int) int {
	n := max(defaultContext, a.numCtx, loaded, min(size/lowBytesPerToken, maxInitialContext))
	if a.remote { // it is not this machine's memory
		n = cmp.Or(a.maxContext, n)
	}
	if n = cmp.Or(configured, n); a.maxContext > 0 {
		n = min(n, a.maxContext) // more is not to be had, and would be shown as if it were
	}
	return n
}

// show asks the server about a model. One that does not have it is an error, and one
// that does not know the question is none.
func (m *Model) show(ctx context.Context, model string) (a modelInfo, err error) {
	answer, err := m.ask(ctx, "/api/show", tool.Marshal(map[string]string{"model": model}))
	if failure, ok := errors.AsType[*llm.ProviderError](err); ok && (failure.Status == http.StatusMethodNotAllowed ||
		failure.Status == http.StatusNotFound && !strings.Contains(failure.Message, "model")) {
		return a, nil
	} else if err != nil {
		return a, err
	}
	var said struct {
		Parameters   string                     `json:"parameters"`
		Info         map[string]json.RawMessage `json:"model_info"`
		Capabilities []string                   `json:"capabilities"`
		RemoteHost   string                     `json:"remote_host"`
	}
	if json.Unmarshal(answer, &said) != nil {
		return a, nil
	}
	a = modelInfo{remote: said.RemoteHost != "", capabilities: said.Capabilities}
	a.maxContext = provider.ParseTokens(said.Info[provider.ScalarText(said.Info["general.architecture"])+".context_length"])
	for line := range strings.Lines(said.Parameters) {
		if f := strings.Fields(line); len(f) == 2 && f[0] == "num_ctx" {
			n, _ := strconv.ParseInt(f[1], 10, 64)
			a.numCtx = llm.ClampTokens(n)
		}
	}
	return a, nil
}

// loadedContext is the context that the model is loaded with; 0 if it is not, or the server does
// not say.
func (m *Model) loadedContext(ctx context.Context, model string) int {
	answer, err := m.Get(ctx, "/api/ps", m.Bearer(), maxAnswerBytes)
	var said struct {
		Models []struct {
			Name    string          `json:"name"`
			Context json.RawMessage `json:"context_length"`
		} `json:"models"`
	}
	if err != nil || json.Unmarshal(answer, &said) != nil {
		return 0
	}
	for _, l := range said.Models {
		if withTag(l.Name) == withTag(model) {
			return provider.ParseTokens(l.Context)
		}
	}
	return 0
}

// sizeOf is how many bytes of text messages have: their images are not read as such, and
// what one counts for is known to the model only.
func sizeOf(messages provider.Pieces) (size int) {
	assistant, images, end := []byte(`{"role":"assistant"`), []byte(`,"images":["`), []byte(`"]`)
	for _, m := range messages {
		size += len(m)
		for !bytes.HasPrefix(m, assistant) { // whose arguments may have a key of any name
			_, rest, found := bytes.Cut(m, images) // nowhere in a text, whose quotes have backslashes
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

// withTag is a model's name with the tag that it has if it says none.
func withTag(name string) string {
	if strings.Contains(name[strings.LastIndexByte(name, '/')+1:], ":") {
		return name
	}
	return name + ":latest"
}

// checkFits is the error of a request that is too long for certain.
func (m *Model) checkFits(w *contextWindow, size int) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	need := size / highBytesPerToken
	if w.lastTokens > 0 { // most of it is what was sent before
		need = int(int64(size) * int64(w.lastTokens) / int64(w.lastBytes))
	}
	if need > w.grantedCtx {
		return m.tooLong(fmt.Sprintf("the conversation is about %d tokens long, and the context of the model holds %d", need, w.grantedCtx))
	}
	return nil
}

// checkNotCut is the error of an answer to a request of which the server has not read all.
func (m *Model) checkNotCut(ctx context.Context, w *contextWindow, model string, size int, usage llm.Usage) error {
	given := w.numCtx
	if w.checked.CompareAndSwap(false, true) { // once: a model stays loaded as it is
		given = cmp.Or(m.loadedContext(ctx, model), given)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.grantedCtx = min(w.grantedCtx, given)
	read := usage.InputTokens
	switch {
	case read == 0: // it does not count
		return nil
	case read == w.grantedCtx || read == w.grantedCtx-1: // more would be a context that is larger than asked for
		return m.tooLong(fmt.Sprintf("the server has cut the conversation: it read %d tokens, and that is all that the context of the model holds", read))
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
