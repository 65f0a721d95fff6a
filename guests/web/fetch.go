package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/stockade-dev/stockade/sdk/go/http"
	"github.com/stockade-dev/stockade/sdk/go/picture"
	"github.com/stockade-dev/stockade/sdk/go/tool"
)

type fetchArgs struct {
	URL      string            `json:"url" desc:"The address; one without a scheme is taken as https."`
	Method   string            `json:"method,omitempty" enum:"GET,HEAD,POST,PUT,PATCH,DELETE" default:"GET"`
	Headers  map[string]string `json:"headers,omitempty" desc:"Headers to send. Authorization cannot be sent."`
	Body     string            `json:"body,omitempty" desc:"What to send with POST, PUT or PATCH."`
	Format   string            `json:"format,omitempty" desc:"text or markdown: readable text; raw: the source." enum:"text,markdown,raw" default:"text"`
	Offset   int               `json:"offset,omitempty" desc:"Byte of the text to begin at." min:"0"`
	MaxBytes int               `json:"max_bytes,omitempty" desc:"Bytes of text to return." min:"1000" max:"200000" default:"50000"`
}

type fetchResult struct {
	Output      string `json:"output"`
	URL         string `json:"url"` // address after all redirects
	Status      int    `json:"status"`
	ContentType string `json:"content_type,omitempty"`
	NextOffset  int    `json:"next_offset,omitempty"` // offset of the next part; 0: this was the last part
	Truncated   bool   `json:"truncated,omitempty"`   // the end of the body is missing: too large or too slow
	Note        string `json:"note,omitempty"`

	image []tool.Image
}

// Images implements tool.Pictured.
func (r fetchResult) Images() []tool.Image { return r.image }

// fetcher is the type of http.Fetch; tests have their own functions.
type fetcher func(context.Context, http.Request) (*http.Response, error)

func httpFetch(ctx context.Context, in fetchArgs) (fetchResult, error) {
	return fetch(ctx, in, http.Fetch)
}

// defaultAccept is the Accept header of requests for which the model gives none.
const defaultAccept = "text/html, application/xhtml+xml, application/json, text/plain;q=0.9, */*;q=0.5"

func fetch(ctx context.Context, in fetchArgs, get fetcher) (fetchResult, error) {
	address, note, err := addressOf(in.URL)
	if err != nil {
		return fetchResult{}, err
	}
	reads := in.Method == "GET" || in.Method == "HEAD"
	switch {
	case in.Body != "" && (reads || in.Method == "DELETE"):
		return fetchResult{}, tool.InvalidInput("a body is sent with POST, PUT or PATCH, and method is %s", in.Method)
	case in.Offset > 0 && !reads:
		return fetchResult{}, tool.InvalidInput("offset needs GET: %s would be sent again; call with a larger max_bytes instead", in.Method)
	}
	req := http.Request{Method: in.Method, URL: address, MaxBytes: maxBody, Timeout: timeLeft(ctx)}
	sent := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(in.Headers)) {
		sent[strings.ToLower(name)] = true
		req.Headers = append(req.Headers, http.Header{Name: name, Value: in.Headers[name]})
	}
	if !sent["accept"] {
		req.Headers = append(req.Headers, http.Header{Name: "accept", Value: defaultAccept})
	}
	if in.Body != "" {
		req.Body = []byte(in.Body)
		if !sent["content-type"] && json.Valid(req.Body) {
			req.Headers = append(req.Headers, http.Header{Name: "content-type", Value: "application/json"})
		}
	}
	began := time.Now()
	resp, err := get(ctx, req)
	if large, ok := errors.AsType[*http.TooLargeError](err); ok && reads && large.Limit < maxBody {
		req.MaxBytes = int(large.Limit) // the person permits less: fetch only that much
		resp, err = get(ctx, req)
	}
	if err != nil {
		return fetchResult{}, failure(err)
	}
	out := fetchResult{URL: resp.URL, Status: resp.Status, ContentType: header(resp, "content-type"), Truncated: resp.Truncated}
	notes := []string{note}
	if isRedirected(address, resp.URL) {
		notes = append(notes, "the server redirected to "+resp.URL)
	}
	// A body that was cut at the limit has about that size; redacted secrets may make it
	// smaller.
	slow := resp.Truncated && len(resp.Body) < req.MaxBytes-req.MaxBytes/10
	if slow {
		notes = append(notes, fmt.Sprintf("the server was too slow: this is what came in %d s", int(time.Since(began).Seconds())))
	}
	if resp.Status >= 400 {
		notes = append(notes, fmt.Sprintf("the server answered with status %d: what follows is its error", resp.Status))
	}
	w := &window{offset: in.Offset, limit: in.MaxBytes}
	mime, noImage := imageType(resp)
	if mime != "" && in.Method != "HEAD" {
		out.image = []tool.Image{{Mime: mime, Data: resp.Body}}
		out.Output = fmt.Sprintf("[%s, %d bytes]", mime, len(resp.Body))
		out.Note = joinNotes(notes)
		return out, nil
	}
	if in.Method == "HEAD" {
		for _, h := range resp.Headers {
			w.write(clean(h.Name + ": " + h.Value + "\n"))
		}
	} else {
		bodyNotes, cut, err := writeBody(w, resp, in.Format == "raw", noImage)
		if err != nil {
			return fetchResult{}, err
		}
		out.Truncated = out.Truncated || cut
		notes = append(notes, bodyNotes...)
	}
	out.Output, out.NextOffset = w.text()
	switch {
	case out.NextOffset > 0:
		out.Output += fmt.Sprintf("\n[there is more: call again with offset=%d]", out.NextOffset)
	case in.Offset > 0 && out.Output == "":
		return fetchResult{}, tool.InvalidInput("offset %d is beyond the end: the text has %d bytes", in.Offset, w.written)
	case out.Truncated && !slow:
		out.Output += fmt.Sprintf("\n[the body is larger than the first %d bytes, which are all that is read of one]", len(resp.Body))
	case out.Output == "" && len(resp.Body) == 0:
		notes = append(notes, "the answer has no body")
	case out.Output == "":
		notes = append(notes, "the page has no text of its own; perhaps its scripts make some, but scripts are not run. format raw shows its source")
	}
	out.Note = joinNotes(notes)
	return out, nil
}

// isRedirected reports whether an answer came from another URL than the one that was asked
// for. The case of the host and a slash at the end make no difference.
func isRedirected(asked, from string) bool {
	plain := func(text string) string {
		if u, err := url.Parse(text); err == nil {
			u.Host = strings.ToLower(u.Host)
			text = u.String()
		}
		return strings.TrimSuffix(text, "/")
	}
	return plain(asked) != plain(from)
}

func joinNotes(notes []string) string {
	return strings.Join(slices.DeleteFunc(notes, func(s string) bool { return s == "" }), "; ")
}

// imageType returns the media type of an image that a model can be shown. Its bytes decide:
// the type in the headers may be wrong. The error is the reason why the body is no such image.
func imageType(resp *http.Response) (mime string, err error) {
	info, err := picture.Look(resp.Body)
	if err == nil && resp.Truncated {
		err = picture.ErrBroken
	}
	if err != nil {
		return "", err
	}
	return info.Mime, nil
}

// timeLeft returns the time that a request may take, so that some of the call's time is left
// to return the result; 0: the call has no deadline.
func timeLeft(ctx context.Context) time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok {
		return 0
	}
	left := time.Until(deadline)
	return max(left-min(2*time.Second, left/4), time.Millisecond)
}

// addressOf completes a URL from a model, for example by a missing scheme; note mentions that
// scheme, or is empty. The host stays as it is, because the rules have judged the argument.
func addressOf(text string) (address, note string, err error) {
	text, _, _ = strings.Cut(text, "#") // fragments are not sent
	scheme, rest, ok := strings.Cut(text, "://")
	if ok = ok && !strings.ContainsAny(scheme, "/?"); ok { // :// in a path or a query belongs to another URL
		scheme = strings.ToLower(scheme)
	}
	switch {
	case text == "":
		return "", "", invalidURL("url is empty")
	case ok && scheme != "https" && scheme != "http":
		if scheme == "file" {
			return "", "", invalidURL("a file is no address; file_read reads files")
		}
		return "", "", invalidURL("%.20q is not fetched; only https and http are", scheme+"://")
	case !ok && strings.HasPrefix(text, "//"):
		scheme, rest = "https", text[2:]
		note = "https: was put before the URL"
	case !ok && strings.ContainsAny(text[:1], "/.~\\"):
		return "", "", invalidURL("%.80q is a path, and no address; file_read reads files", text)
	case !ok:
		if name, port, has := strings.Cut(text, ":"); has && !strings.ContainsAny(name, "/?[") && (port == "" || port[0] < '0' || port[0] > '9') {
			return "", "", invalidURL("%.20q is not fetched; only https and http are", name+":")
		}
		scheme, rest = "https", text
		note = "https:// was put before the URL"
	}
	end := strings.IndexAny(rest, "/?")
	if end < 0 {
		end = len(rest)
	}
	if rest[:end] == "" {
		return "", "", invalidURL("%.80q names no host", text)
	}
	return scheme + "://" + rest[:end] + escapePath(rest[end:]), note, nil
}

// escapePath escapes characters of a path or a query that people write unescaped.
func escapePath(text string) string {
	var b strings.Builder
	for i := range len(text) {
		if c := text[i]; c == ' ' || c >= 0x80 || strings.IndexByte("\"<>^`", c) >= 0 {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

func invalidURL(format string, args ...any) error {
	return tool.Coded("INVALID_URL", tool.InvalidInput(format, args...))
}

func failure(err error) error {
	large, tooLarge := errors.AsType[*http.TooLargeError](err)
	text := err.Error()
	for _, kind := range []error{http.ErrDenied, http.ErrDNS, http.ErrConnect, http.ErrTLS} { // the rest of these messages is enough
		if errors.Is(err, kind) {
			text = strings.TrimPrefix(text, kind.Error()+": ")
		}
	}
	switch {
	case errors.Is(err, http.ErrDenied) && strings.Contains(text, " redirects to "):
		return tool.Denied("%s. A call with that URL is decided by itself", text)
	case errors.Is(err, http.ErrDenied):
		return tool.Denied("%s; that is for the user to change", text)
	case errors.Is(err, http.ErrInvalid) && strings.Contains(text, "header"):
		return tool.InvalidInput("%w", err)
	case errors.Is(err, http.ErrInvalid):
		return invalidURL("%w", err)
	case errors.Is(err, http.ErrDNS) && strings.HasPrefix(text, "no such host"):
		return tool.Coded("DNS_FAILED", tool.Unavailable("%s; look at the spelling", text))
	case errors.Is(err, http.ErrDNS):
		return tool.Coded("DNS_FAILED", tool.Unavailable("%s; try again later", text))
	case errors.Is(err, http.ErrConnect):
		return tool.Coded("CONNECT_FAILED", tool.Unavailable("%s; look at the host and the port, or try again later", text))
	case errors.Is(err, http.ErrTLS):
		return tool.Coded("TLS_FAILED", tool.Unavailable("%s; without a certificate that is good nothing is sent", err))
	case errors.Is(err, http.ErrTimeout):
		return tool.Coded("TIMED_OUT", tool.Unavailable("%w; the server is slow or does not answer: try again later", err))
	case tooLarge:
		return tool.Coded("TOO_LARGE", tool.IO("the answer is larger than %d bytes, which is all that may be read of one; ask for less, or tell the person, who can raise network.max_response", large.Limit))
	case errors.Is(err, http.ErrProtocol):
		return tool.Coded("BAD_RESPONSE", tool.Unavailable("%w; look at the scheme and the port, or try again later", err))
	}
	return err
}

func header(resp *http.Response, name string) string {
	for _, h := range resp.Headers {
		if h.Name == name {
			return h.Value
		}
	}
	return ""
}

// mediaTypeOf returns the media type of an answer in lower case, and its parameters.
func mediaTypeOf(resp *http.Response) (mediaType, params string) {
	mediaType, params, _ = strings.Cut(strings.ToLower(header(resp, "content-type")), ";")
	return strings.TrimSpace(mediaType), params
}

// kind is the way to convert a body to text.
type kind int

const (
	unreadable kind = iota
	plainText
	htmlPage
)

// writeBody writes the body of an answer, and with raw the source of a page. It returns notes
// about the body; cut reports whether text beyond maxBody was left out. noImage is the reason
// why the body is not shown as an image.
func writeBody(w *window, resp *http.Response, raw bool, noImage error) (notes []string, cut bool, err error) {
	mediaType, params := mediaTypeOf(resp)
	_, charset, _ := strings.Cut(params, "charset=")
	charset, _, _ = strings.Cut(charset, ";")
	k := kindOf(mediaType, resp.Body)
	var text []byte
	if k != unreadable {
		var encoding string
		var known bool
		text, encoding, known, cut = decode(resp.Body, charset, k == htmlPage)
		if !known {
			notes = append(notes, fmt.Sprintf("its encoding %q is not supported: all characters but ASCII are lost", encoding))
		}
		if bytes.IndexByte(text[:min(len(text), 8000)], 0) >= 0 {
			k = unreadable
		}
	}
	switch {
	case k == unreadable:
		if mediaType == "" {
			mediaType = "no type that it names"
		}
		size := fmt.Sprintf("%d bytes", len(resp.Body))
		if resp.Truncated {
			size = "more than " + size
		}
		why := ""
		if strings.HasPrefix(mediaType, "image/") || !errors.Is(noImage, picture.ErrUnknown) {
			why = fmt.Sprintf("; this %v", noImage)
		}
		return nil, false, tool.Coded("UNSUPPORTED_TYPE", tool.Parse("%s answered with %s of %s (status %d), which is not read here: HTML, JSON and other text is, and images of up to 3.75 MiB are shown%s",
			resp.URL, size, mediaType, resp.Status, why))
	case k == htmlPage && !raw:
		p := page{out: w}
		p.base, _ = url.Parse(resp.URL)
		p.render(text)
		if p.hidesText {
			notes = append(notes, "the page hides text from people: it is left out, or marked as [hidden text: ...]")
		}
	default:
		writePlain(w, text)
	}
	return notes, cut, nil
}

func kindOf(mediaType string, body []byte) kind {
	switch {
	case isOneOf(mediaType, "text/html", "application/xhtml+xml"):
		return htmlPage
	case isOneOf(mediaType, "text/", "application/json", "application/xml", "+json", "+xml", "application/javascript", "application/x-javascript",
		"application/ecmascript", "application/ndjson", "application/x-ndjson", "application/yaml", "application/x-yaml", "application/toml",
		"application/sql", "application/graphql", "application/x-sh", "application/x-www-form-urlencoded"):
		return plainText
	case !isOneOf(mediaType, "", "application/octet-stream", "binary/octet-stream", "application/x-unknown"):
		return unreadable
	}
	// The server has named no type.
	head := body[:min(len(body), 1024)]
	start := bytes.ToLower(bytes.TrimSpace(head))
	switch {
	case bytes.HasPrefix(start, []byte("<!doctype html")), bytes.HasPrefix(start, []byte("<html")):
		return htmlPage
	case bytes.HasPrefix(head, []byte("\xff\xfe")), bytes.HasPrefix(head, []byte("\xfe\xff")):
		return plainText
	case utf8.Valid(head[:wholeRunes(head)]) && bytes.IndexByte(head, 0) < 0:
		return plainText
	}
	return unreadable
}
