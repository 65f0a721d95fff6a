package provider

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/stockade-dev/stockade/host/llm"
)

// maxErrorBytes is how much of an answer that is no stream is read to find out
// what it says.
const maxErrorBytes = 64 << 10

// Exchange is one request and its answer, which begins with [Client.Begin].
type Exchange struct {
	// JSONLines: the stream has a JSON value in each line, and is no event stream.
	JSONLines bool
	// FirstByteTimeout is how long the server may be silent before its answer begins. The stall
	// time-out, if it is zero.
	FirstByteTimeout time.Duration

	c          *Client
	ctx        context.Context // ends when the server is silent for too long
	parent     context.Context
	client     http.Client
	stallTimer *stallTimer
	stream     *stream // of the answer, once there is one
	answer     io.Closer
	body       io.Reader // of the answer, which stream reads
}

// Begin begins an exchange; done must be called at its end.
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

// request makes a request for a path of the server, with the query of the base URL.
func (x *Exchange) request(method, path string, header http.Header) (*http.Request, error) {
	req, err := http.NewRequestWithContext(x.ctx, method, x.c.BaseURL+path, nil)
	if err != nil {
		return nil, err
	}
	req.Header = header
	if x.c.Query != "" {
		req.URL.RawQuery = strings.TrimSuffix(x.c.Query+"&"+req.URL.RawQuery, "&")
	}
	return req, nil
}

// Post sends pieces to a path of the server. The answer is read by [Exchange.Next].
func (x *Exchange) Post(path string, header http.Header, body Pieces) error {
	req, err := x.request(http.MethodPost, path, header)
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.ContentLength = body.Len()
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(&reader{pieces: body}), nil }
	req.Body = io.NopCloser(x.stallTimer.duringUpload(&reader{pieces: body})) // a slow upload is life, too
	x.stallTimer.beginUpload(cmp.Or(x.FirstByteTimeout, x.c.StallTimeout))
	resp, err := x.client.Do(req) //nolint:bodyclose // at the end of the exchange
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

// Next is the data of the next event, or an error behind the last: see [Exchange.EndError].
func (x *Exchange) Next() ([]byte, error) { return x.stream.next() }

// Drain reads what follows the last event of an answer: the end of the body, without which
// the next request would have to connect anew. It comes at once or never, so the wait for
// it is short.
func (x *Exchange) Drain() {
	x.stallTimer.stall = 50 * time.Millisecond
	_, _ = io.CopyN(io.Discard, x.body, 4<<10)
}

// EndError turns the error of [Exchange.Next] into the error of a provider, for an answer that its
// format has not ended. Empty: there was no event.
//
// One rule holds for all formats. An answer is whole if the server ends it: as its format says,
// or with [DONE] or the end of a body that is JSON, if [llm.Assembler.InferFinish] finds it whole. If
// only the bytes end, it is half an answer, even after a clean end of the body: a proxy that
// loses its server sends that, too.
func (x *Exchange) EndError(err error, empty bool) error {
	end, said := errors.AsType[*markedEnd](err)
	switch {
	case x.parent.Err() != nil || !said && !errors.Is(err, io.EOF):
		return x.Explain(err)
	case empty:
		return x.c.EmptyStream()
	case said:
		x.Drain()
		return end // Client.Stream knows the answer
	}
	return x.c.EndedEarly(nil)
}

// Cancelled reports whether the caller has given up.
func (x *Exchange) Cancelled() bool { return x.parent.Err() != nil }

// Explain turns whatever ended the exchange into the error to report.
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
			Hint:    "the server is overloaded, or the model thinks for longer than the stall time-out allows",
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

// errStalled is no context.DeadlineExceeded, which a caller takes for the end
// of its own context.
var errStalled = errors.New("the server was silent for too long")

func seconds(d time.Duration) string {
	if d%time.Second == 0 {
		return fmt.Sprintf("%ds", d/time.Second)
	}
	return d.String()
}

// stallTimer calls stalled when a wait for the server takes too long. It runs only
// while we wait, so that a slow consumer of the answer is not taken for a
// silent server.
type stallTimer struct {
	stall time.Duration

	mu     sync.Mutex // the transport reads the upload on a goroutine of its own
	timer  *time.Timer
	first  time.Duration // the limit until the answer begins
	answer bool          // it has begun, so that the upload no longer matters
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

// beginUpload begins the wait for the answer to a request: the first one of an
// exchange, or one that is sent because that was refused.
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

// duringUpload begins the wait anew with each read of r.
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

// duringRead waits only while r is read.
func (w *stallTimer) duringRead(r io.Reader) io.Reader {
	return readerFunc(func(p []byte) (int, error) {
		w.arm()
		defer w.stop()
		return r.Read(p)
	})
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
