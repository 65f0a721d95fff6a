package provider

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/stockade-dev/stockade/host/llm"
)

// maxErrorBytes limits the bytes that are read of an answer that is not a stream, to find its
// error message; the rest is left out.
const maxErrorBytes = 64 << 10

// Exchange is one request and its answer. [Client.Begin] makes it.
type Exchange struct {
	JSONLines bool // the stream is not an event stream but has a JSON value in each line
	// FirstByteTimeout limits the silence of the server before its answer begins. 0: the
	// StallTimeout of the client.
	FirstByteTimeout time.Duration

	c          *Client
	ctx        context.Context // ends with parent, or when the server is silent for too long
	parent     context.Context // context of the caller
	client     http.Client
	stallTimer *stallTimer
	stream     *stream   // nil until an answer begins
	answer     io.Closer // body of the answer; nil until an answer begins
	body       io.Reader // body of the answer, which stream reads
}

// Begin begins an exchange. The caller must call done at its end.
func (c *Client) Begin(parent context.Context) (x *Exchange, done func()) {
	ctx, cancel := context.WithCancelCause(parent)
	x = &Exchange{c: c, ctx: ctx, parent: parent}
	x.stallTimer = newStallTimer(c.StallTimeout, func() { cancel(errStalled) })
	x.client = http.Client{
		Transport: c.HTTPClient.Transport,
		// The key and the conversation are for the host that was configured only.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return x, func() {
		x.stallTimer.stop()
		cancel(context.Canceled)
		if x.answer != nil {
			_ = x.answer.Close() // nothing of it is wanted any more
		}
	}
}

// request returns a request for a path of the server, with the query of the base URL.
func (x *Exchange) request(method, path string) (*http.Request, error) {
	req, err := http.NewRequestWithContext(x.ctx, method, x.c.BaseURL+path, nil)
	if err != nil {
		return nil, err
	}
	maps.Copy(req.Header, x.c.Header)
	if x.c.Query != "" {
		req.URL.RawQuery = strings.TrimSuffix(x.c.Query+"&"+req.URL.RawQuery, "&")
	}
	return req, nil
}

// Post sends the body to a path of the server. [Exchange.Next] reads the answer. An answer with
// another status than 200 is an error.
func (x *Exchange) Post(path string, body Pieces) error {
	req, err := x.request(http.MethodPost, path)
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.ContentLength = body.Len()
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(&reader{pieces: body}), nil }
	req.Body = io.NopCloser(x.stallTimer.duringUpload(&reader{pieces: body})) // each read ends the silence, so that a slow upload is no stall
	x.stallTimer.beginUpload(cmp.Or(x.FirstByteTimeout, x.c.StallTimeout))
	resp, err := x.client.Do(req) //nolint:bodyclose // closed by done, at the end of the exchange
	x.stallTimer.endUpload()
	if err != nil {
		return err
	}
	answer := x.stallTimer.duringRead(resp.Body)
	if resp.StatusCode != http.StatusOK {
		defer resp.Body.Close()
		text, err := io.ReadAll(io.LimitReader(answer, maxErrorBytes))
		if err != nil && x.ctx.Err() != nil {
			return err
		}
		return x.c.statusError(resp.StatusCode, resp.Header, text)
	}
	x.stream, x.body, x.answer = x.newStream(answer), answer, resp.Body
	return nil
}

// Next returns the data of the next event, or an error after the last, see [Exchange.EndError].
func (x *Exchange) Next() ([]byte, error) { return x.stream.next() }

// Drain reads the rest of the body after the last event of an answer. Without it the next request
// needs a new connection. The rest comes at once or never, so Drain waits only 50 ms.
func (x *Exchange) Drain() {
	x.stallTimer.stall = 50 * time.Millisecond
	_, _ = io.CopyN(io.Discard, x.body, 4<<10)
}

// EndError returns the provider error for an error of [Exchange.Next], if the answer has not
// ended as its format requires. empty is set if there was no event.
//
// One rule holds for all formats. An answer is complete if the server ends it: as its format
// requires, or with [DONE] or the end of a JSON body if [llm.Assembler.InferFinish] finds it
// complete. If only the bytes end, even cleanly, the answer is incomplete: a proxy that loses its
// server ends like that, too.
func (x *Exchange) EndError(err error, empty bool) error {
	end, marked := errors.AsType[*markedEnd](err)
	switch {
	case x.parent.Err() != nil || !marked && !errors.Is(err, io.EOF):
		return x.Explain(err)
	case empty:
		return x.c.EmptyStream()
	case marked:
		x.Drain()
		return end // Client.Stream checks whether the answer is complete
	}
	return x.c.EndedEarly(nil)
}

// Cancelled reports whether the caller's context has ended.
func (x *Exchange) Cancelled() bool { return x.parent.Err() != nil }

// Explain returns the error to report for any error that ended the exchange: the cause of the
// caller's context if that has ended, else an [llm.ProviderError].
func (x *Exchange) Explain(err error) error {
	if x.parent.Err() != nil {
		return context.Cause(x.parent)
	}
	if errors.Is(context.Cause(x.ctx), errStalled) {
		limit := x.c.StallTimeout
		if x.stream == nil {
			limit = cmp.Or(x.FirstByteTimeout, limit)
		}
		return &llm.ProviderError{
			Provider: x.c.Name, Retryable: true,
			Message: "no answer for " + seconds(limit),
			Hint:    "the server is overloaded, or the model thinks for longer: raise stall_timeout in agent.toml",
			Err:     errStalled,
		}
	}
	if failure, ok := errors.AsType[*llm.ProviderError](err); ok {
		return failure
	}
	if limit, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return x.c.TooLarge("more than " + mebibytes(limit.Limit))
	}
	base, _ := url.Parse(x.c.BaseURL) // checked before
	return x.c.networkError(err, base, x.stream != nil)
}

// errStalled is not context.DeadlineExceeded, which callers take for the end of their context.
var errStalled = errors.New("the server was silent for too long")

func seconds(d time.Duration) string {
	if d%time.Second == 0 {
		return fmt.Sprintf("%ds", d/time.Second)
	}
	return d.String()
}

// stallTimer calls a function when the server is silent for too long. It runs only while we wait
// for the server, so that a slow consumer of the answer is not taken for a silent server.
type stallTimer struct {
	stall time.Duration // limit of the silence between two bytes of the answer

	mu     sync.Mutex // guards the fields below; the transport reads the upload on its own goroutine
	timer  *time.Timer
	first  time.Duration // limit of the silence until the answer begins
	answer bool          // the answer has begun: reads of the upload no longer restart the timer
}

func newStallTimer(limit time.Duration, stalled func()) *stallTimer {
	w := &stallTimer{timer: time.AfterFunc(limit, stalled), stall: limit}
	w.stop()
	return w
}

func (w *stallTimer) arm() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer.Reset(w.stall)
}

func (w *stallTimer) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer.Stop()
}

// beginUpload starts the wait for the answer to a request: the first request of an exchange, or a
// request that is sent again after a refusal. limit is the limit of the silence.
func (w *stallTimer) beginUpload(limit time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answer, w.first = false, limit
	w.timer.Reset(limit)
}

func (w *stallTimer) endUpload() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answer = true
	w.timer.Stop()
}

// duringUpload returns a reader that restarts the wait with each read of r.
func (w *stallTimer) duringUpload(r io.Reader) io.Reader {
	return readerFunc(func(p []byte) (int, error) {
		w.mu.Lock()
		if !w.answer {
			w.timer.Reset(w.first)
		}
		w.mu.Unlock()
		return r.Read(p)
	})
}

// duringRead returns a reader that waits for the server only during reads of r.
func (w *stallTimer) duringRead(r io.Reader) io.Reader {
	return readerFunc(func(p []byte) (int, error) {
		w.arm()
		defer w.stop()
		return r.Read(p)
	})
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
