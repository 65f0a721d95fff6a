package egress

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"slices"
	"strconv"
	"strings"

	"github.com/stockade-dev/stockade/host/policy/network"
	"github.com/stockade-dev/stockade/host/services"
)

// maxRequestHead limits the head of a request to the proxy, in bytes; more are an error.
const maxRequestHead = maxURLBytes + maxHeaderBytes

// head is the head of a command's request to the proxy.
type head struct {
	method, target string
	http10         bool // HTTP/1.0
	header         http.Header
}

// readHead reads a head strictly. It refuses a head that two programs could read in two ways;
// package net/http would repair it.
func readHead(r *bufio.Reader) (*head, error) {
	h, err := parseHead(r)
	if err != nil {
		return nil, failf(services.Invalid, "the request to the proxy: %w", err)
	}
	return h, nil
}

func parseHead(r *bufio.Reader) (*head, error) {
	left := maxRequestHead
	first, err := readLine(r, &left)
	if err != nil {
		return nil, err
	}
	words := strings.Split(first, " ")
	if len(words) != 3 || words[2] != "HTTP/1.1" && words[2] != "HTTP/1.0" {
		return nil, errors.New("it is not HTTP/1.1")
	}
	h := &head{method: words[0], target: words[1], http10: words[2] == "HTTP/1.0", header: http.Header{}}
	for n := 0; ; n++ {
		line, err := readLine(r, &left)
		switch {
		case err != nil:
			return nil, err
		case line == "":
			return h, h.check()
		case n == maxHeaders:
			return nil, fmt.Errorf("it has more than %d headers", maxHeaders)
		}
		name, value, ok := strings.Cut(line, ":")
		if !ok {
			return nil, fmt.Errorf("header %q: it has no colon", shorten(line, 60))
		}
		value = strings.Trim(value, " \t")
		if err := checkField(strings.ToLower(name), value); err != nil {
			return nil, fmt.Errorf("header %q: %w", shorten(name, 60), err)
		}
		h.header.Add(name, value)
	}
}

// readLine returns a line without its CRLF, and subtracts its bytes from left, the number of
// bytes that may still come. A longer line, and one that ends otherwise, is an error.
func readLine(r *bufio.Reader, left *int) (string, error) {
	line, err := r.ReadSlice('\n')
	*left -= len(line)
	switch {
	case *left < 0, errors.Is(err, bufio.ErrBufferFull):
		return "", fmt.Errorf("its head has more than %d bytes", maxRequestHead)
	case err != nil:
		return "", err
	}
	text, ok := strings.CutSuffix(string(line), "\r\n")
	if !ok {
		return "", errors.New("a line ends in LF without CR")
	}
	return text, nil
}

// check refuses a head that leaves its host or the end of its body open to interpretation.
func (h *head) check() error {
	for _, name := range []string{"Host", "Content-Length", "Transfer-Encoding"} {
		if n := len(h.header.Values(name)); n > 1 {
			return fmt.Errorf("it has %d headers %s", n, name)
		}
	}
	coding, length := h.header.Get("Transfer-Encoding"), h.header.Values("Content-Length")
	switch {
	case !h.http10 && len(h.header.Values("Host")) == 0:
		return errors.New("it has no header Host")
	case coding != "" && len(length) > 0:
		return errors.New("it has both Transfer-Encoding and Content-Length")
	case coding != "" && !strings.EqualFold(coding, "chunked"):
		return errors.New("its Transfer-Encoding is not chunked")
	}
	for _, n := range length {
		if _, err := strconv.ParseUint(n, 10, 63); err != nil {
			return errors.New("its Content-Length is no number")
		}
	}
	return nil
}

// checkHost refuses a header Host that differs from the host of the target. It compares no
// ports; an absent header is no error.
func (h *head) checkHost(host network.Host) error {
	named := h.header.Get("Host")
	if o, rest, err := network.ParseOrigin("http://" + named); named != "" && (err != nil || rest != "" || o.Host != host) {
		return fmt.Errorf("its header Host is %q, and its target %s", shorten(named, 200), host)
	}
	return nil
}

// upgrades reports whether the client wants to switch to another protocol.
func (h *head) upgrades() bool {
	return len(h.header.Values("Upgrade")) > 0 || slices.Contains(connectionOptions(h.header), "upgrade")
}

// request returns the request for the server, without the headers of deleteHopHeaders.
func (h *head) request(ctx context.Context, t target, body io.Reader) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, h.method, t.url.String(), nil)
	if err != nil {
		return nil, fail(services.Invalid, err)
	}
	req.Header = h.header.Clone()
	deleteHopHeaders(req.Header)
	if req.UserAgent() == "" {
		req.Header.Set("User-Agent", "") // otherwise the transport would send its own name
	}
	if h.header.Get("Transfer-Encoding") != "" {
		req.Body, req.ContentLength = io.NopCloser(httputil.NewChunkedReader(body)), -1
	} else if n, _ := strconv.ParseInt(h.header.Get("Content-Length"), 10, 64); n > 0 {
		req.Body, req.ContentLength = io.NopCloser(io.LimitReader(body, n)), n
	}
	return req, nil
}

// deleteHopHeaders removes the headers that concern one connection only, and those that the
// sender of a message has to set itself.
func deleteHopHeaders(h http.Header) {
	options := connectionOptions(h)
	for name := range h {
		lower := strings.ToLower(name)
		if slices.Contains(options, lower) || strings.HasPrefix(lower, "proxy-") || slices.Contains(reservedHeaders, lower) && lower != "accept-encoding" {
			delete(h, name)
		}
	}
}

// connectionOptions returns the words of the Connection headers, in lower case. Without such
// words it returns one empty word.
func connectionOptions(h http.Header) []string {
	options := strings.Split(strings.ToLower(strings.Join(h.Values("Connection"), ",")), ",")
	for i := range options {
		options[i] = strings.TrimSpace(options[i])
	}
	return options
}
