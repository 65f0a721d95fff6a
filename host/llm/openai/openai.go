// Package openai is the provider for OpenAI's chat completions API and for
// the many servers that speak it (Ollama, vLLM, llama.cpp, xAI, OpenRouter, ...).
//
// [New] makes a [Model] from [Options]; the model turns canonical messages into
// one streaming request and the stream back into deltas. go-openai makes the
// request and splits the stream; this package adds what it lacks:
//
//   - request.go: canonical messages to wire messages that the API accepts, also
//     when a conversation was cut, resumed or came from another provider.
//   - images.go: the images of results and prompts, and servers that take none.
//   - exchange.go: one HTTP exchange, with a time-out on silence, a bound on
//     bytes, no redirects, and errors that tell what to do.
//   - events.go: the event stream, line by line and in bounded memory.
//   - stream.go: lenient decoding; servers differ from the documentation.
//   - error.go: every failure as a [llm.ProviderError] without the key in it.
//
// Everything that a server sends is hostile until this package has checked it.
// Reasoning fields are ignored, as are all choices but the first.
package openai

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sashabaranov/go-openai"

	"github.com/stockade-dev/stockade/host/llm"
)

// Options says which server and which model. The zero value of each field is
// its default.
type Options struct {
	Name    string // of the provider, in errors; "openai"
	APIKey  string // empty: no Authorization header is sent, which local servers accept
	KeyEnv  string // environment variable that hints about the key name; "OPENAI_API_KEY"
	BaseURL string // [DefaultBaseURL]
	Model   string // when a request names none

	// StallTimeout is how long the server may be silent: before its answer
	// begins and between two bytes of it. Any byte counts as life. 60s.
	StallTimeout time.Duration
	// MaxStreamBytes bounds the answer, after decompression. 64 MiB.
	MaxStreamBytes int64
	// HTTPClient gives the transport; without one nothing is sent, because whom
	// a program talks to is not this package's to decide. Nothing else of it is
	// used: a Timeout would cut long answers, and redirects are always refused.
	HTTPClient *http.Client
}

// DefaultBaseURL is OpenAI's own.
const DefaultBaseURL = "https://api.openai.com/v1"

// String hides the key.
func (o Options) String() string {
	key := "no key"
	if o.APIKey != "" {
		key = "a key"
	}
	return fmt.Sprintf("%s at %s with %s", o.Name, o.BaseURL, key)
}

// GoString hides the key.
func (o Options) GoString() string { return o.String() }

// Model is a model behind a chat completions API. It is safe for concurrent use.
type Model struct {
	opts Options // fixed at creation
	fault
	noUsage atomic.Bool // the server refuses to be asked for usage
	refused refusals
	results results
}

// New makes a model. It connects to nothing and reports nothing: options that
// cannot work are the error of each Stream.
func New(opts Options) *Model {
	opts.Name = cmp.Or(opts.Name, "openai")
	opts.KeyEnv = cmp.Or(opts.KeyEnv, "OPENAI_API_KEY")
	opts.BaseURL = cmp.Or(opts.BaseURL, DefaultBaseURL)
	opts.StallTimeout = cmp.Or(opts.StallTimeout, 60*time.Second)
	opts.MaxStreamBytes = cmp.Or(opts.MaxStreamBytes, 64<<20)
	return &Model{opts: opts, fault: fault{provider: opts.Name, key: opts.APIKey, keyEnv: opts.KeyEnv}}
}

// String hides the key.
func (m *Model) String() string { return m.opts.String() }

// GoString hides the key.
func (m *Model) GoString() string { return m.opts.String() }

// Stream implements [llm.Model].
func (m *Model) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Delta, error] {
	wire := m.wireRequest(req)
	return func(yield func(llm.Delta, error) bool) {
		stopped := false
		err := m.stream(ctx, wire, func(d llm.Delta) bool {
			stopped = !yield(d, nil)
			return !stopped
		})
		if stopped || err == nil {
			return
		}
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		yield(llm.Delta{}, err)
	}
}

// stream makes the request and yields its answer. It returns nil when the
// answer is complete or yield returned false.
func (m *Model) stream(ctx context.Context, wire openai.ChatCompletionRequest, yield func(llm.Delta) bool) error {
	if err := m.checkOptions(); err != nil {
		return err
	}
	if wire.Model == "" {
		return m.refuse("no model is named", "name one with --model, or as model.name in agent.toml")
	}
	exchange, done := m.newExchange(ctx)
	defer done()

	config := openai.DefaultConfig(m.opts.APIKey)
	config.BaseURL = m.opts.BaseURL
	config.HTTPClient = exchange
	stream, err := m.create(exchange.ctx, openai.NewClientWithConfig(config), wire)
	if err != nil {
		return exchange.explain(err)
	}
	defer stream.Close()
	return m.decode(exchange, stream, yield)
}

func (m *Model) checkOptions() error {
	if m.opts.HTTPClient == nil || m.opts.HTTPClient.Transport == nil {
		return m.refuse("there is no way to the network", "")
	}
	base, err := url.Parse(m.opts.BaseURL)
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
		// The text of the URL stays out: it may hold a password.
		return m.refuse("the base URL is not an http or https URL with a host", "check the base URL; `stockade config` shows where it comes from")
	}
	if strings.ContainsFunc(m.opts.APIKey, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return m.refuse("the API key holds a space or a character that is not ASCII", m.keyHint())
	}
	return nil
}
