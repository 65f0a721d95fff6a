package egress

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/stockade-dev/stockade/host/services"
)

// errBodyTooLarge is the error of [bounded] for an answer whose body has too many bytes as it
// comes, before it is decompressed.
var errBodyTooLarge = errors.New("the body is too large as it comes")

// read returns the body of an answer, decompressed and without secrets. A body of more than
// maxBody bytes is an error, or is cut if x.truncates; then a timeout after some bytes cuts it,
// too. redacted reports whether the body held a secret. The bytes as they come have a limit of
// their own, because compressed data can also expand to nothing.
func (x *fetch) read(resp *http.Response, received *counter) (body []byte, truncated, redacted bool, err error) {
	limit := int64(x.grant.Limits().HTTPResponseBytes)
	tooLarge := &services.Error{Kind: services.TooLarge, Limit: limit, Err: fmt.Errorf("the answer is larger than %d bytes", limit)}
	if !x.truncates && resp.ContentLength > limit {
		return nil, false, false, tooLarge
	}
	received.r = resp.Body
	ahead := 0
	if x.truncates {
		ahead = x.e.opts.Redact.Longest() // or a cut could split a secret
	}
	wire := &bounded{r: received, left: limit + int64(ahead)}
	if x.truncates {
		wire.left++ // otherwise a body that is cut at the limit would not count as truncated
	}
	r, err := x.decoded(resp, wire)
	if err != nil {
		return nil, false, false, x.readError(err, tooLarge)
	}
	body, err = io.ReadAll(io.LimitReader(r, int64(x.maxBody+ahead)+1))
	behind := max(len(body)-x.maxBody, 0)
	slow := err != nil && x.truncates && timedOut(err) && len(body) > ahead
	switch {
	case behind > 0 && !x.truncates:
		return nil, false, false, tooLarge
	case behind == 0 && err != nil && !slow:
		return nil, false, false, x.readError(err, tooLarge)
	case err != nil:
		// It has broken off, perhaps in the middle of a secret. Leaving out only the bytes
		// that match one would let a guest guess byte by byte.
		behind = max(behind, ahead)
	}
	clean := x.e.redactBody(body)
	redacted = !bytes.Equal(clean, body)
	body = clean
	if len(body) > x.maxBody && !x.truncates {
		return nil, false, false, tooLarge
	}
	kept := min(max(len(body)-behind, 0), x.maxBody)
	return body[:kept:kept], kept < len(body) || slow, redacted, nil
}

func (x *fetch) readError(err error, tooLarge *services.Error) error {
	if errors.Is(err, errBodyTooLarge) {
		return tooLarge
	}
	return phaseError(services.Protocol, "read the answer of "+x.target.url.Host, err)
}

// decoded decompresses gzip, which the request has asked for. A body without a coding stays as
// it is; any other coding is an error.
func (x *fetch) decoded(resp *http.Response, r io.Reader) (io.Reader, error) {
	coding := strings.TrimSpace(strings.Join(resp.Header.Values("Content-Encoding"), ","))
	switch strings.ToLower(coding) {
	case "", "identity":
		return r, nil
	case "gzip", "x-gzip":
	default:
		return nil, failf(services.Protocol, "the answer is coded as %q, and gzip was asked for", shorten(x.e.opts.Redact.Text(coding), 60))
	}
	resp.Header.Del("Content-Encoding")
	resp.Header.Del("Content-Length")
	z, err := gzip.NewReader(r)
	if errors.Is(err, io.EOF) {
		return strings.NewReader(""), nil // the answer to HEAD, or 304
	}
	return z, err
}

// bounded is a reader that fails with errBodyTooLarge after left more bytes, if more come.
type bounded struct {
	r    io.Reader
	left int64
}

func (b *bounded) Read(p []byte) (int, error) {
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1] // one byte more shows that the limit is exceeded
	}
	n, err := b.r.Read(p)
	if int64(n) > b.left {
		return int(b.left), errBodyTooLarge
	}
	b.left -= int64(n)
	return n, err
}
