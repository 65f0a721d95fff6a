package provider

import (
	"bytes"
	"cmp"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"io/fs"
	"math"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode"

	"github.com/stockade-dev/stockade/host/llm"
)

const (
	maxMessageRunes = 500 // characters of a server's message, after which it is cut
	maxCodeRunes    = 64  // characters of a server's code, after which it is cut
	// leastKey is the least number of bytes of a key that is removed from texts. People write
	// shorter keys if a server needs none, and those would occur in any text.
	leastKey = 4
)

// clean makes a server's text fit for an error message: one line of at most maxRunes characters; a
// longer one is cut. It removes the key, which servers like to repeat when they refuse it.
func (c *Client) clean(text string, maxRunes int) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, strings.ToValidUTF8(text, " "))
	text = strings.Join(strings.Fields(text), " ")
	// Before the cut, which could leave half of the key.
	if len(c.APIKey) >= leastKey {
		text = strings.ReplaceAll(text, c.APIKey, "[key]")
	}
	return llm.Truncate(text, maxRunes)
}

// safeCause returns err, or nil if its text holds the key.
func (c *Client) safeCause(err error) error {
	if err != nil && len(c.APIKey) >= leastKey && strings.Contains(err.Error(), c.APIKey) {
		return nil
	}
	return err
}

// InvalidRequest returns the error for a request that cannot work and was not sent.
func (c *Client) InvalidRequest(message, hint string) *llm.ProviderError {
	return &llm.ProviderError{Provider: c.Name, Message: message, Hint: hint}
}

// TooLarge returns the error for an answer over a limit.
func (c *Client) TooLarge(what string) *llm.ProviderError {
	return &llm.ProviderError{Provider: c.Name, Code: "stream_too_large", Message: "it sent " + what}
}

func mebibytes(n int64) string {
	if n%(1<<20) == 0 {
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d bytes", n)
}

// EmptyStream returns the error for a stream without events.
func (c *Client) EmptyStream() *llm.ProviderError {
	return &llm.ProviderError{Provider: c.Name, Message: "the stream is empty", Retryable: true}
}

// BadEvent returns the error for an event that is not in the format of the API.
func (c *Client) BadEvent(event []byte) *llm.ProviderError {
	return &llm.ProviderError{
		Provider: c.Name, Retryable: true,
		Message: "it sent an event that is not in the format of the API: " + strconv.Quote(c.clean(string(event), 80)),
	}
}

// EndedEarly returns the error for a stream that broke off. cause may be nil.
func (c *Client) EndedEarly(cause error) *llm.ProviderError {
	return &llm.ProviderError{Provider: c.Name, Message: "the stream ended early", Retryable: true, Err: c.safeCause(cause)}
}

// KeyHint returns the hint for a key that is missing or was refused.
func (c *Client) KeyHint() string {
	if c.APIKey == "" {
		return "no API key is set: set " + c.KeySource + "; `stockade model list` shows which one is read"
	}
	return "check the API key in " + c.KeySource + "; `stockade model list` shows which one is read, and for which server"
}

// page reports whether a body is a web page, and returns its title as the end of a message, or "".
func (c *Client) page(body []byte) (title string, isPage bool) {
	body = bytes.TrimPrefix(body, []byte("\xef\xbb\xbf")) // a byte order mark
	if !bytes.HasPrefix(body, []byte("<")) {
		return "", false
	}
	if m := titleRE().FindSubmatch(body); m != nil {
		title = ", with the title " + strconv.Quote(c.clean(html.UnescapeString(string(m[1])), 80))
	}
	return title, true
}

var titleRE = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?i)<title[^>]*>\s*([^<]*)`) })

// pageHint returns the hint for an answer that may come from another program than the server.
func (c *Client) pageHint() string {
	base, _ := url.Parse(c.BaseURL) // checked before
	if isLoopback(base.Hostname()) {
		return "another program may answer at " + c.clean(base.Host, 200)
	}
	return "a proxy, a filter or a login page on the way may answer instead of " + c.clean(base.Host, 200) +
		": open that in a browser; if your network has a proxy, name it in network.proxy"
}

// URLHint returns the hint for a base URL that may be wrong.
func (c *Client) URLHint() string {
	hint := "check the base URL; `stockade config` shows where it comes from"
	if c.BaseURLHint != "" {
		hint += "; " + c.BaseURLHint
	}
	return hint
}

// notAStream returns the error for an answer with status 200 that is not an event stream.
func (c *Client) notAStream(body []byte) *llm.ProviderError {
	body = bytes.TrimSpace(body)
	e := &llm.ProviderError{Provider: c.Name, Hint: c.URLHint()}
	page, isPage := c.page(body)
	switch detail := parseErrorBody(body); {
	case detail.Message != "":
		e.Message, e.Code = c.clean(detail.Message, maxMessageRunes), c.clean(detail.Code, maxCodeRunes)
		e.Hint = c.BaseURLHint // a server may answer like that to an address that it does not have
		markContextExceeded(e, detail)
	case isPage:
		e.Message = "the answer is a web page, not an event stream" + page
		e.Hint = c.pageHint() + "; " + e.Hint
	default:
		e.Message = "the answer is not an event stream: " + strconv.Quote(c.clean(string(body), 80))
	}
	return e
}

// statusError returns the error for an answer with another status than 200.
func (c *Client) statusError(status int, header http.Header, body []byte) *llm.ProviderError {
	e := &llm.ProviderError{Provider: c.Name, Status: status}
	detail := parseErrorBody(body)
	trimmed := bytes.TrimSpace(body)
	page, isPage := c.page(trimmed)
	switch {
	case detail.Message != "":
		e.Message = c.clean(detail.Message, maxMessageRunes)
	case isPage:
		e.Message = "a web page instead of an answer" + page
	case len(trimmed) > 0:
		e.Message = c.clean(string(trimmed), maxMessageRunes)
	}
	if e.Message == "" {
		e.Message = cmp.Or(http.StatusText(status), "no message")
	}
	e.Code = c.clean(detail.Code, maxCodeRunes)
	c.classify(e, detail)
	// An overloaded server has the status in its page, and can answer later. A filter has
	// its own page, and sends it each time.
	passes := status == http.StatusBadGateway || status == http.StatusGatewayTimeout || header.Get("Retry-After") != "" || bytes.Contains(body, strconv.AppendInt(nil, int64(status), 10))
	switch {
	case isPage && (status == http.StatusForbidden || status >= 500 && !passes), status == http.StatusNetworkAuthenticationRequired:
		e.Retryable, e.Hint = false, c.pageHint()
	case status == http.StatusBadRequest && strings.HasPrefix(c.BaseURL, "http:") && bytes.Contains(bytes.ToUpper(body), []byte("HTTPS")):
		e.Hint = "the base URL may need https:// instead of http://"
	}
	if e.Retryable {
		e.RetryAfter = retryAfter(header, time.Now())
		if e.RetryAfter == 0 && c.RateLimitWait != nil {
			e.RetryAfter = c.RateLimitWait(header, time.Now())
		}
	}
	if c.RefineError != nil {
		c.RefineError(e, detail, body)
	}
	switch {
	case status >= 300 && status < 400:
		where := "another address"
		e.Hint = c.URLHint()
		if to, err := url.Parse(header.Get("Location")); err == nil && to.Host != "" {
			// The message has only the host of the target: a redirect may carry a token.
			where += ", at " + c.clean(to.Scheme+"://"+to.Host, 200)
			if base, _ := url.Parse(c.BaseURL); base.Host != to.Host {
				e.Hint = c.pageHint() + "; " + e.Hint
			}
		}
		e.Message = "it redirects to " + where + ", which is refused because the key would go there"
	case status < 300:
		e.Message = "the answer is not a stream"
		e.Hint = c.URLHint()
	}
	return e
}

// classify sets the hint of an error, and Retryable, by its status and the server's text.
func (c *Client) classify(e *llm.ProviderError, detail ErrorDetail) {
	codes := detail.Code + " " + detail.Kind
	switch s := e.Status; {
	case markContextExceeded(e, detail):
	case strings.Contains(codes, "insufficient_quota") || s == http.StatusPaymentRequired:
		e.Hint = "the account has no credit left: see the provider's billing page, or use another key"
	case s == http.StatusUnauthorized || s == http.StatusForbidden:
		e.Hint = c.KeyHint()
	case s == http.StatusNotFound:
		e.Hint = "check the name of the model and the base URL; `stockade config` shows where they come from"
		if c.BaseURLHint != "" {
			e.Hint += "; " + c.BaseURLHint
		}
	case s == http.StatusRequestEntityTooLarge && !notTooLong().MatchString(e.Message):
		e.Hint = "the conversation is too long for the model: set model.context_tokens to what it holds, or start a new one"
	case s == http.StatusRequestTimeout, s == http.StatusConflict, s == http.StatusTooManyRequests, s >= 500:
		e.Retryable = true
	}
}

// StreamError returns the error for an error that a server sends as an event.
func (c *Client) StreamError(detail ErrorDetail, event []byte) *llm.ProviderError {
	e := &llm.ProviderError{
		Provider: c.Name,
		Code:     c.clean(cmp.Or(detail.Code, detail.Kind), maxCodeRunes),
		Message:  cmp.Or(c.clean(detail.Message, maxMessageRunes), "it broke off without saying why"),
	}
	// Some servers send the status that they would have answered as the code.
	if n, err := strconv.Atoi(detail.Code); err == nil && n >= 400 && n < 600 {
		e.Status = n
	}
	c.classify(e, detail)
	if e.Status == 0 && e.Hint == "" {
		// The request had been accepted, so the failure is probably the server's.
		e.Retryable = !strings.Contains(detail.Kind, "invalid_request") && !strings.Contains(detail.Code, "invalid")
	}
	if c.RefineError != nil {
		c.RefineError(e, detail, event)
	}
	return e
}

// networkError returns the error for a connection that failed; with begun, after the answer had
// begun.
//
// A refusal by this machine is not retryable: no server listens, and a person has to start one.
// A refusal by another machine is, because load balancers refuse while a server restarts. An
// unknown host name, a certificate that is not trusted, and an error whose Remedy is final are
// not retryable. Every other network failure is.
func (c *Client) networkError(err error, base *url.URL, begun bool) *llm.ProviderError {
	if begun {
		return c.EndedEarly(err)
	}
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err // without the URL
	}
	e := &llm.ProviderError{Provider: c.Name, Message: c.clean(err.Error(), maxMessageRunes), Retryable: true, Err: c.safeCause(err)}
	if way, ok := errors.AsType[interface { // services.Error
		error
		Remedy() (hint string, final bool)
	}](err); ok {
		hint, final := way.Remedy()
		if e.Hint, e.Retryable = c.clean(hint, maxMessageRunes), !final; hint != "" {
			return e
		}
	}
	host := c.clean(base.Host, 200)
	dns, isDNS := errors.AsType[*net.DNSError](err)
	_, isNotTLS := errors.AsType[tls.RecordHeaderError](err)
	switch {
	case errors.Is(err, fs.ErrPermission): // denied by policy, whose message has the advice
		e.Retryable = false
	case errors.Is(err, syscall.ECONNREFUSED), strings.Contains(err.Error(), "refused"):
		e.Message = "the connection to " + host + " was refused"
		if isLoopback(base.Hostname()) {
			e.Retryable = false
			e.Hint = "the server is not running at " + host + ": start it, or check the base URL; `stockade config` shows where it comes from"
		}
	case isDNS && dns.IsNotFound:
		e.Message = "the host " + host + " does not exist"
		e.Retryable = false
		e.Hint = "check the base URL and the network"
	case isNotTLS, strings.Contains(err.Error(), "HTTP response to HTTPS client"):
		e.Message = host + " does not speak https"
		e.Retryable = false
		e.Hint = "the base URL may need http:// instead of https://"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		e.Message = "the connection ended before an answer"
	}
	return e
}

func isLoopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.IsLoopback() || strings.EqualFold(host, "localhost")
}

// ErrorDetail is an error as a server describes it. Kind is the type of the error, such as
// "invalid_request_error"; for Google it is the status.
type ErrorDetail struct{ Message, Code, Kind string }

// parseErrorBody finds the error in the forms that servers use: {"error":{"message":...}},
// {"error":"..."}, {"message":...}, {"detail":...}. The result is empty if there is no error.
func parseErrorBody(body []byte) ErrorDetail {
	body = bytes.TrimSpace(body)
	if bytes.HasPrefix(body, []byte("[")) { // Google wraps it in a list
		var list []json.RawMessage
		if json.Unmarshal(body, &list) == nil && len(list) > 0 {
			body = list[0]
		}
	}
	var outer map[string]json.RawMessage
	if json.Unmarshal(body, &outer) != nil {
		return ErrorDetail{}
	}
	if inner := outer["error"]; len(inner) > 0 && string(inner) != "null" {
		return ParseErrorDetail(inner)
	}
	detail := ParseErrorDetail(body)
	if detail.Message == "" {
		detail.Message = ScalarText(outer["detail"])
	}
	return detail
}

// ParseErrorDetail parses an object with a message, a code and a type, or the text of a message.
func ParseErrorDetail(value json.RawMessage) ErrorDetail {
	var fields map[string]json.RawMessage
	if json.Unmarshal(value, &fields) != nil {
		text := ScalarText(value)
		var inner map[string]json.RawMessage // the answer of another server that this one repeats as text
		if json.Unmarshal([]byte(text), &inner) == nil && json.Unmarshal(inner["error"], &fields) == nil && ScalarText(fields["message"]) != "" {
			return ParseErrorDetail(inner["error"])
		}
		return ErrorDetail{Message: text}
	}
	detail := ErrorDetail{Message: ScalarText(fields["message"]), Code: ScalarText(fields["code"]), Kind: cmp.Or(ScalarText(fields["type"]), ScalarText(fields["status"]))}
	var metadata map[string]json.RawMessage // OpenRouter puts the answer of the server behind it here
	if json.Unmarshal(fields["metadata"], &metadata) == nil && IsSet(metadata["raw"]) {
		raw := ScalarText(metadata["raw"])
		detail.Message += ": " + cmp.Or(parseErrorBody([]byte(raw)).Message, raw)
	}
	if parts := []string(nil); detail.Message == "" && json.Unmarshal(fields["message"], &parts) == nil {
		detail.Message = strings.Join(parts, ", ")
	}
	return detail
}

// ScalarText returns the text of a JSON string or number, and "" for anything else.
func ScalarText(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	var n json.Number
	if json.Unmarshal(raw, &n) == nil {
		return n.String()
	}
	return ""
}

// IsSet reports whether a field was sent and is not null.
func IsSet(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

// ParseTokens returns a number of tokens, limited by [llm.ClampTokens]. 0: raw is not a number.
func ParseTokens(raw json.RawMessage) int {
	n, _ := strconv.ParseInt(ScalarText(raw), 10, 64)
	return llm.ClampTokens(n)
}

// retryAfter returns the wait that a header asks for; 0: none.
func retryAfter(header http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(header.Get("Retry-After-Ms"), 64); err == nil {
		return fromSeconds(ms / 1000)
	}
	value := header.Get("Retry-After")
	if s, err := strconv.ParseFloat(value, 64); err == nil {
		return fromSeconds(s)
	}
	if date, err := http.ParseTime(value); err == nil {
		return max(date.Sub(now), 0)
	}
	return 0
}

func fromSeconds(s float64) time.Duration {
	const limit = 30 * 24 * time.Hour // more would overflow, and means never
	if math.IsNaN(s) || s <= 0 {
		return 0
	}
	return time.Duration(min(s, limit.Seconds()) * float64(time.Second))
}
