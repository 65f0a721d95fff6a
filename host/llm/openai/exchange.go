package openai

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/stockade-dev/stockade/host/llm"
)

// maxErrorBytes is how much of an answer that is no stream is read to find out
// what it says.
const maxErrorBytes = 64 << 10

// exchange is one request and its answer. go-openai uses it as its HTTP
// client; answers that are not a stream end here, because go-openai would read
// them without bound and lose their headers.
type exchange struct {
	m      *Model
	ctx    context.Context // ends when the server is silent for too long
	parent context.Context
	client http.Client
	watch  *watch
	sent   bool    // go-openai found nothing wrong with the request
	events *events // of the answer, once there is one
}

// newExchange begins an exchange; done must be called at its end.
func (m *Model) newExchange(parent context.Context) (x *exchange, done func()) {
	ctx, cancel := context.WithCancelCause(parent)
	x = &exchange{m: m, ctx: ctx, parent: parent}
	x.watch = newWatch(m.opts.StallTimeout, func() { cancel(errStalled) })
	x.client = http.Client{
		Transport: m.opts.HTTPClient.Transport,
		// The key and the conversation are for the host that was configured only.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return x, func() {
		x.watch.rest()
		cancel(context.Canceled)
	}
}

// Do sends the request. It returns a response only for a stream.
func (x *exchange) Do(req *http.Request) (*http.Response, error) {
	x.sent = true
	if req.Body != nil {
		req.Body = struct {
			io.Reader
			io.Closer
		}{x.watch.duringUpload(req.Body), req.Body} // a slow upload is life, too
	}
	x.watch.uploading()
	resp, err := x.client.Do(req)
	x.watch.uploaded()
	if err != nil {
		return nil, err
	}
	body := x.watch.duringRead(resp.Body)
	if resp.StatusCode != http.StatusOK {
		defer resp.Body.Close()
		text, err := io.ReadAll(io.LimitReader(body, maxErrorBytes))
		if err != nil && x.ctx.Err() != nil {
			return nil, err
		}
		return nil, x.m.status(resp.StatusCode, resp.Header, text)
	}
	x.events = newEvents(body, x.m.opts.MaxStreamBytes, x.m.fault)
	resp.Body = struct {
		io.Reader
		io.Closer
	}{x.events, resp.Body}
	return resp, nil
}

// explain turns whatever ended the exchange into the error to report.
func (x *exchange) explain(err error) error {
	if x.parent.Err() != nil {
		return context.Cause(x.parent)
	}
	if errors.Is(context.Cause(x.ctx), errStalled) {
		return &llm.ProviderError{
			Provider: x.m.provider, Retryable: true,
			Message: "no answer for " + seconds(x.m.opts.StallTimeout),
			Hint:    "the server is overloaded, or the model thinks for longer than the stall time-out allows",
			Err:     errStalled,
		}
	}
	if failure, ok := errors.AsType[*llm.ProviderError](err); ok {
		return failure
	}
	if !x.sent {
		return x.m.refuse(x.m.clean(err.Error(), maxMessageRunes), "choose another model, or another provider for it")
	}
	base, _ := url.Parse(x.m.opts.BaseURL) // checked before
	return x.m.network(err, base, x.events != nil)
}

// errStalled is no context.DeadlineExceeded, which a caller takes for the end
// of its own context.
var errStalled = errors.New("the server was silent for too long")

func seconds(d time.Duration) string {
	if d%time.Second == 0 {
		return fmt.Sprintf("%ds", d/time.Second)
	}
	return d.String()
}

// watch calls stalled when a wait for the server takes too long. It runs only
// while we wait, so that a slow consumer of the answer is not taken for a
// silent server.
type watch struct {
	limit time.Duration

	mu     sync.Mutex // the transport reads the upload on a goroutine of its own
	timer  *time.Timer
	answer bool // it has begun, so that the upload no longer matters
}

func newWatch(limit time.Duration, stalled func()) *watch {
	w := &watch{timer: time.AfterFunc(limit, stalled), limit: limit}
	w.rest()
	return w
}

func (w *watch) arm() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer.Reset(w.limit)
}

func (w *watch) rest() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer.Stop()
}

// uploading begins the wait for the answer to a request: the first one of an
// exchange, or one that is sent because that was refused.
func (w *watch) uploading() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answer = false
	w.timer.Reset(w.limit)
}

func (w *watch) uploaded() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answer = true
	w.timer.Stop()
}

// duringUpload begins the wait anew with each read of r.
func (w *watch) duringUpload(r io.Reader) io.Reader {
	return readerFunc(func(p []byte) (int, error) {
		w.mu.Lock()
		if !w.answer {
			w.timer.Reset(w.limit)
		}
		w.mu.Unlock()
		return r.Read(p)
	})
}

// duringRead waits only while r is read.
func (w *watch) duringRead(r io.Reader) io.Reader {
	return readerFunc(func(p []byte) (int, error) {
		w.arm()
		defer w.rest()
		return r.Read(p)
	})
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
