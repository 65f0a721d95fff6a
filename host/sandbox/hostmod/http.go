package hostmod

import (
	"context"
	"errors"
	"time"

	"github.com/stockade-dev/stockade/host/sandbox/abi"
	"github.com/stockade-dev/stockade/host/sandbox/meter"
	"github.com/stockade-dev/stockade/host/services"
)

// The cases of the variant error of http, see wit/.
const (
	httpDenied uint8 = iota
	httpInvalid
	httpDNS
	httpConnect
	httpTLS
	httpTimeout
	httpTooLarge
	httpProtocol
)

var httpCases = map[services.Kind]uint8{
	services.Denied: httpDenied, services.Invalid: httpInvalid, services.DNS: httpDNS, services.Connect: httpConnect,
	services.TLS: httpTLS, services.Timeout: httpTimeout, services.TooLarge: httpTooLarge, services.Protocol: httpProtocol,
}

// Limits on the data of a request that is copied out of the guest, in bytes; more is an
// [abi.Fault]. The service may have lower limits.
const (
	maxHTTPMethod  = 64
	maxHTTPURL     = 64 << 10
	maxHTTPHeaders = 256 << 10
	maxHTTPBody    = 64 << 20
)

// httpResult is the layout of a result<response, error>. The u64 in error makes the alignment 8.
var httpResult = layout{size: 40, align: 8, payload: 8, errorText: 16}

// Offsets of the fields of response in httpResult, the size of a header, and the offset of
// its value.
const (
	httpStatus      = 8
	httpURL         = 12
	httpHeaders     = 20
	httpBody        = 28
	httpTruncated   = 36
	httpHeaderBytes = 16
	httpHeaderValue = 8
)

// httpFetch is http.fetch. Parameters: method, url (pointer, length each), headers (pointer,
// length), body (option: discriminant, pointer, length), timeout-ms, max-bytes (option:
// discriminant, value each), result pointer.
func httpFetch(c reply) error {
	if why := c.world.whyNoNetwork(); why != "" {
		return refusal{httpDenied, why} // the request is not read
	}
	req, err := c.liftHTTPRequest()
	if err != nil {
		return err
	}
	resp, err := c.world.Fetch(c.ctx, c.account, req)
	if err != nil {
		return c.failHTTP(err)
	}
	r := c.record()
	r.u16(httpStatus, uint16(resp.Status))
	r.bool(httpTruncated, resp.Truncated)
	r.bytes(c.guest, httpURL, []byte(resp.URL))
	list := record{make([]byte, httpHeaderBytes*len(resp.Headers))}
	for i, h := range resp.Headers {
		for j, text := range h {
			list.bytes(c.guest, i*httpHeaderBytes+j*httpHeaderValue, []byte(text))
		}
	}
	r.list(c.guest, httpHeaders, list.b, httpHeaderBytes, 4)
	r.bytes(c.guest, httpBody, resp.Body)
	return c.put(r)
}

// whyNoNetwork returns the reason why the call has no network; "": it has one.
func (w *World) whyNoNetwork() string {
	return w.whyDenied(w != nil && w.Services.HTTP != nil && w.Grant.Network() != nil, "the network")
}

// Fetch makes a request on behalf of the call, with its secrets in place of their
// placeholders. The errors are those of [services.HTTP].
func (w *World) Fetch(ctx context.Context, account *meter.Account, req services.Request) (resp *services.Response, err error) {
	if why := w.whyNoNetwork(); why != "" {
		return nil, &services.Error{Kind: services.Denied, Err: errors.New(why)}
	}
	if w.placeholders != nil {
		req.Fill = w.placeholders.Fill
	}
	account.WithoutTurn(func() { resp, err = w.Services.HTTP.Fetch(ctx, w.Grant, req) })
	return resp, err
}

func (c reply) failHTTP(err error) error {
	failed, ok := errors.AsType[*services.Error](err)
	if !ok {
		failed = &services.Error{Kind: services.Protocol, Err: err}
	}
	errorCase, ok := httpCases[failed.Kind]
	if !ok {
		errorCase = httpProtocol
	}
	switch errorCase {
	case httpTimeout, httpTooLarge: // these cases have no text
		r := c.failed(errorCase)
		if errorCase == httpTooLarge {
			r.u64(c.errorText, uint64(failed.Limit))
		}
		return c.put(r)
	}
	text := err.Error()
	if failed.Hint != "" {
		text += "; " + failed.Hint
	}
	return refusal{errorCase, text}
}

func (g *guest) liftHTTPRequest() (req services.Request, err error) {
	if req.Method, err = g.mem.String("method", g.u32(0), g.u32(1), maxHTTPMethod); err != nil {
		return req, err
	}
	if req.URL, err = g.mem.String("url", g.u32(2), g.u32(3), maxHTTPURL); err != nil {
		return req, err
	}
	// A header is two strings, so the list of headers is a list of 2*n strings.
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
	if g.option("body", 6) {
		body, err := g.mem.Bytes("body", g.u32(7), g.u32(8), maxHTTPBody)
		if err != nil {
			return req, err
		}
		req.Body = append([]byte{}, body...) // not nil, also if it is empty
	}
	if g.option("timeout-ms", 9) {
		req.Timeout = time.Duration(max(g.u32(10), 1)) * time.Millisecond
	}
	if g.option("max-bytes", 11) {
		req.MaxBytes = int(min(max(g.u32(12), 1), 1<<31-1))
	}
	return req, g.err
}
