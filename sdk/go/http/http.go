// Package http makes requests through the host, to the hosts that were
// granted. The host resolves the name, refuses private addresses, checks every
// redirect and applies its own limits when they are lower than those asked for.
package http

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"time"

	"github.com/stockade-dev/stockade/sdk/go/internal/abi"
)

var (
	// ErrDenied is returned if the host or the address was not granted. It is
	// fs.ErrPermission, too.
	ErrDenied = abi.Sentinel("request denied", fs.ErrPermission)
	// ErrInvalid is returned if the URL, the method or a header is malformed.
	ErrInvalid = errors.New("invalid request")
	// ErrDNS is returned if the name could not be resolved.
	ErrDNS = errors.New("resolve the host")
	// ErrConnect is returned if no server answers at the address.
	ErrConnect = errors.New("connect")
	// ErrTLS is returned if the server could not be authenticated.
	ErrTLS = errors.New("tls")
	// ErrTimeout is returned if there was no answer in time. It is os.ErrDeadlineExceeded,
	// too.
	ErrTimeout = abi.Sentinel("no answer in time", os.ErrDeadlineExceeded)
	// ErrProtocol is returned if the answer is not HTTP or broke off, and for any other
	// failure.
	ErrProtocol = errors.New("http protocol")
)

// TooLargeError is the error for an answer beyond the host's limit. No part of the answer is
// returned.
type TooLargeError struct {
	Limit uint64 // bytes
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("response is larger than %d bytes", e.Limit)
}

// Header is one header of a request or a response.
type Header struct{ Name, Value string }

// Request is a request to send.
type Request struct {
	Method  string // empty: GET
	URL     string // absolute, http or https
	Headers []Header
	Body    []byte // nil: none
	// Timeout limits the whole exchange, in whole milliseconds; 0 leaves the limit to the
	// host.
	Timeout time.Duration
	// MaxBytes limits the part of the body that is returned; 0 leaves the limit to the host.
	// If it is set, the part of a slow body that came in time is an answer, too; otherwise
	// such a body is an ErrTimeout.
	MaxBytes int
}

// Response is the final answer, after all redirects.
type Response struct {
	Status    int
	URL       string // address of the answer, after redirects
	Headers   []Header
	Body      []byte
	Truncated bool // set if the body was longer than MaxBytes, or than the part that came in time
}

// Fetch sends a request and reads the answer. A status such as 404 is no error. The deadline
// of ctx limits the exchange, too.
func Fetch(ctx context.Context, req Request) (*Response, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	timeout := req.Timeout
	if deadline, ok := ctx.Deadline(); ok && (timeout <= 0 || time.Until(deadline) < timeout) {
		timeout = max(time.Until(deadline), time.Millisecond)
	}
	method := req.Method
	if method == "" {
		method = "GET"
	}
	var headers []string
	for _, h := range req.Headers {
		headers = append(headers, h.Name, h.Value)
	}

	var f abi.Frame
	defer f.Free()
	methodPtr, methodLen := f.Text(method)
	urlPtr, urlLen := f.Text(req.URL)
	bodyPtr, bodyLen := f.Bytes(req.Body)
	hasTimeout, millis := option(timeout.Milliseconds(), timeout > 0)
	hasMax, maxBytes := option(int64(req.MaxBytes), req.MaxBytes > 0)
	// result<response, error>: the case at 0; at 8, since an error holds a u64, the response
	// of 32 bytes, or the error, whose case is at 8 and whose u64 or text is at 16.
	ret, r := f.Area(40)
	hostFetch(methodPtr, methodLen, urlPtr, urlLen, f.Texts(headers), uint32(len(req.Headers)),
		abi.Flag(req.Body != nil), bodyPtr, bodyLen, hasTimeout, millis, hasMax, maxBytes, ret)
	if r.Bool(0) {
		return nil, errorOf(r)
	}
	resp := &Response{
		Status:    int(r.U16(8)),
		URL:       r.Text(12),
		Body:      r.Bytes(28),
		Truncated: r.Bool(36),
	}
	pairs := r.Texts(20, 2)
	for i := 0; i < len(pairs); i += 2 {
		resp.Headers = append(resp.Headers, Header{pairs[i], pairs[i+1]})
	}
	return resp, nil
}

func errorOf(r abi.Record) error {
	var err error
	switch r.Case(8) {
	case 0:
		err = ErrDenied
	case 1:
		err = ErrInvalid
	case 2:
		err = ErrDNS
	case 3:
		err = ErrConnect
	case 4:
		err = ErrTLS
	case 5:
		return ErrTimeout
	case 6:
		return &TooLargeError{Limit: r.U64(16)}
	default:
		err = ErrProtocol
	}
	return fmt.Errorf("%w: %s", err, r.Text(16))
}

// option lowers an option<u32>. A value of 0 becomes 1, because 0 would allow nothing.
func option(v int64, some bool) (has, value uint32) {
	if !some {
		return 0, 0
	}
	return 1, uint32(min(max(v, 1), math.MaxUint32))
}
