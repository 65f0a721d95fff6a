package hostmod

import (
	"context"
	"errors"
	"net/url"
	"time"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/sandbox/abi"
)

// HTTP makes the requests that a grant allows.
type HTTP interface {
	// Fetch returns an [*HTTPError] for whatever is not an answer.
	Fetch(ctx context.Context, grant policy.Grant, req HTTPRequest) (*HTTPResponse, error)
}

// HTTPRequest is what http.fetch asks for.
type HTTPRequest struct {
	Method   string
	URL      string
	Headers  [][2]string
	Body     []byte        // nil: none
	Timeout  time.Duration // 0: not said
	MaxBytes int           // 0: not said
	// Fill puts the values of secrets in the place of their placeholders, for
	// this URL and no other. Nil: the call has no placeholders.
	Fill func(u *url.URL, headers map[string][]string, body []byte) (map[string][]string, error)
}

// HTTPResponse is an answer.
type HTTPResponse struct {
	Status    int
	URL       string
	Headers   [][2]string
	Body      []byte
	Truncated bool
}

// HTTPError is why there is no answer.
type HTTPError struct {
	Case  uint8  // of error: one of HTTPDenied to HTTPProtocol
	Limit uint64 // of HTTPTooLarge, in bytes
	Err   error
}

func (e *HTTPError) Error() string { return e.Err.Error() }

func (e *HTTPError) Unwrap() error { return e.Err }

// The cases of error.
const (
	HTTPDenied uint8 = iota
	HTTPInvalid
	HTTPDNS
	HTTPConnect
	HTTPTLS
	HTTPTimeout
	HTTPTooLarge
	HTTPProtocol
)

// Limits on what is copied out of the guest, in bytes. What makes sense within
// them is for the service to say.
const (
	maxHTTPMethod  = 64
	maxHTTPURL     = 64 << 10
	maxHTTPHeaders = 256 << 10
	maxHTTPBody    = 64 << 20
)

// result<response, error>; the u64 in error makes the alignment 8.
var httpResult = layout{size: 40, align: 8, payload: 8, errorText: 16}

// Where the fields of response lie in httpResult, and the size of a header.
const (
	httpStatus      = 8
	httpURL         = 12
	httpHeaders     = 20
	httpBody        = 28
	httpTruncated   = 36
	httpHeaderBytes = 16
	httpHeaderValue = 8
)

// httpFetch is http.fetch.
//
// Parameters: method, url (pointer, length each), headers (pointer, length),
// body (option: discriminant, pointer, length), timeout-ms, max-bytes (option:
// discriminant, value each), result pointer.
func httpFetch(g *guest) error {
	out := g.u32(13)
	granted := g.call != nil && g.call.Services.HTTP != nil && g.call.Grant.Network() != nil
	if why := g.denied(granted, "the network"); why != "" {
		return httpResult.fail(g, out, HTTPDenied, why) // without looking at the request
	}
	req, err := g.liftHTTPRequest()
	if err != nil {
		return err
	}
	if g.call.placeholders != nil {
		req.Fill = g.call.placeholders.Fill
	}
	var resp *HTTPResponse
	g.away(func() { resp, err = g.call.Services.HTTP.Fetch(g.ctx, g.call.Grant, req) })
	if err != nil {
		return g.failHTTP(out, err)
	}
	r := httpResult.record()
	r.u16(httpStatus, uint16(resp.Status))
	r.bool(httpTruncated, resp.Truncated)
	if err := r.bytes(g, httpURL, []byte(resp.URL)); err != nil {
		return err
	}
	list := record{make([]byte, httpHeaderBytes*len(resp.Headers))}
	for i, h := range resp.Headers {
		for j, text := range h {
			if err := list.bytes(g, i*httpHeaderBytes+j*httpHeaderValue, []byte(text)); err != nil {
				return err
			}
		}
	}
	if err := r.list(g, httpHeaders, list.b, httpHeaderBytes, 4); err != nil {
		return err
	}
	if err := r.bytes(g, httpBody, resp.Body); err != nil {
		return err
	}
	return httpResult.put(g, out, r)
}

func (g *guest) failHTTP(out uint32, err error) error {
	e, ok := errors.AsType[*HTTPError](err)
	switch {
	case !ok:
		return httpResult.fail(g, out, HTTPProtocol, err.Error())
	case e.Case == HTTPTimeout:
		r := httpResult.record()
		r.u8(0, 1)
		r.u8(httpResult.payload, HTTPTimeout)
		return httpResult.put(g, out, r)
	case e.Case == HTTPTooLarge:
		r := httpResult.record()
		r.u8(0, 1)
		r.u8(httpResult.payload, HTTPTooLarge)
		r.u64(httpResult.errorText, e.Limit)
		return httpResult.put(g, out, r)
	}
	return httpResult.fail(g, out, e.Case, e.Error())
}

func (g *guest) liftHTTPRequest() (req HTTPRequest, err error) {
	if req.Method, err = g.mem.String("method", g.u32(0), g.u32(1), maxHTTPMethod); err != nil {
		return req, err
	}
	if req.URL, err = g.mem.String("url", g.u32(2), g.u32(3), maxHTTPURL); err != nil {
		return req, err
	}
	// A header is two strings, so the list is one of twice as many.
	n := g.u32(5)
	if n > maxHTTPHeaders/httpHeaderBytes {
		return req, &abi.Fault{What: "headers: more than the limit"}
	}
	texts, err := g.mem.Strings("headers", g.u32(4), 2*n, maxHTTPHeaders)
	if err != nil {
		return req, err
	}
	for i := 0; i < len(texts); i += 2 {
		req.Headers = append(req.Headers, [2]string{texts[i], texts[i+1]})
	}
	given, err := g.option("body", 6)
	if err != nil {
		return req, err
	}
	if given {
		body, err := g.mem.Bytes("body", g.u32(7), g.u32(8), maxHTTPBody)
		if err != nil {
			return req, err
		}
		req.Body = append([]byte{}, body...) // not nil, also when it is empty
	}
	if given, err = g.option("timeout-ms", 9); err != nil {
		return req, err
	} else if given {
		req.Timeout = time.Duration(max(g.u32(10), 1)) * time.Millisecond
	}
	if given, err = g.option("max-bytes", 11); err != nil {
		return req, err
	} else if given {
		req.MaxBytes = int(min(max(g.u32(12), 1), 1<<31-1))
	}
	return req, nil
}
