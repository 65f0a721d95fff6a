package egress

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// userAgent is sent to a proxy, and to a server if a guest sets no User-Agent.
const userAgent = "stockade"

const (
	maxHeaders     = 64       // headers of a guest's or a command's request; one more is an error
	maxHeaderBytes = 16 << 10 // bytes of the headers of a guest's request; more are an error
)

// methods lists the methods that a guest's or a command's request may have.
var methods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}

// reservedHeaders lists headers that a guest must not set, in lower case: they control the end of
// a message, its destination, or the connection. See checkHeader for further ones.
var reservedHeaders = []string{
	"accept-encoding", // the host must bound what it decompresses
	"connection", "content-length", "expect", "host", "http2-settings", "keep-alive",
	"te", "trailer", "transfer-encoding", "upgrade",
}

func checkMethod(method string) error {
	if !slices.Contains(methods, method) {
		return fmt.Errorf("method %.20q: the methods are %s", method, strings.Join(methods, ", "))
	}
	return nil
}

// headers returns a guest's headers, which are pairs of name and value, or an error if they exceed
// a limit or one of them is not allowed.
func headers(pairs [][2]string) (http.Header, error) {
	out := http.Header{}
	if len(pairs) > maxHeaders {
		return nil, fmt.Errorf("%d headers, more than %d", len(pairs), maxHeaders)
	}
	size := 0
	for _, p := range pairs {
		name, value := strings.ToLower(p[0]), p[1]
		if size += len(name) + len(value); size > maxHeaderBytes {
			return nil, fmt.Errorf("the headers have more than %d bytes", maxHeaderBytes)
		}
		if err := checkHeader(name, value); err != nil {
			return nil, fmt.Errorf("header %q: %w", shorten(p[0], 60), err)
		}
		out.Add(name, value)
	}
	return out, nil
}

const tokenCharacters = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz"

func checkHeader(name, value string) error {
	if slices.Contains(reservedHeaders, name) || strings.HasPrefix(name, "proxy-") || strings.HasPrefix(name, "sec-") {
		return errors.New("only the host may set it")
	}
	return checkField(name, value)
}

// checkField returns an error if a header has invalid syntax. name is in lower case.
func checkField(name, value string) error {
	if name == "" || strings.Trim(name, tokenCharacters) != "" {
		return errors.New("its name is not a token")
	}
	for i := range len(value) {
		if c := value[i]; c < ' ' && c != '\t' || c >= 0x7f {
			return errors.New("its value holds a control character, a line break or something that is not ASCII")
		}
	}
	return nil
}

// crossOriginHeaders returns the headers of a request that are kept on a redirect to another host,
// port or protocol. None of them is meant for credentials.
func crossOriginHeaders(h http.Header) http.Header {
	out := http.Header{}
	for _, name := range []string{"Accept", "Accept-Language", "User-Agent"} {
		if v := h.Values(name); len(v) > 0 {
			out[name] = v
		}
	}
	return out
}

// size returns the number of bytes in the parts of a request that a guest can fill: the URL,
// the headers and the body.
func size(t target, h http.Header, body []byte) int64 {
	n := len(t.url.String()) + len(body)
	for name, values := range h {
		for _, v := range values {
			n += len(name) + len(v) + 4
		}
	}
	return int64(n)
}
