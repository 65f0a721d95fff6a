//go:build !wasip1

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	nethttp "net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stockade-dev/stockade/sdk/go/http"
	"github.com/stockade-dev/stockade/sdk/go/tool"
)

// direct makes requests as the host does, without its rules.
func direct(ctx context.Context, req http.Request) (*http.Response, error) {
	out, err := nethttp.NewRequestWithContext(ctx, req.Method, req.URL, strings.NewReader(string(req.Body)))
	if err != nil {
		return nil, err
	}
	for _, h := range req.Headers {
		out.Header.Add(h.Name, h.Value)
	}
	in, err := nethttp.DefaultClient.Do(out)
	if err != nil {
		return nil, err
	}
	defer in.Body.Close()
	body, err := io.ReadAll(io.LimitReader(in.Body, int64(req.MaxBytes)+1))
	if err != nil {
		return nil, err
	}
	resp := &http.Response{Status: in.StatusCode, URL: in.Request.URL.String(), Body: body[:min(len(body), req.MaxBytes)], Truncated: len(body) > req.MaxBytes}
	for name, values := range in.Header {
		for _, v := range values {
			resp.Headers = append(resp.Headers, http.Header{Name: strings.ToLower(name), Value: v})
		}
	}
	return resp, nil
}

// onePixel is a PNG.
const onePixel = "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x00\x00\x00\x00:~\x9bU\x00\x00\x00\nIDATx\xdac`\x00\x00\x00\x02\x00\x01H\xaf\xa4q\x00\x00\x00\x00IEND\xaeB`\x82"

func args(change func(*fetchArgs)) fetchArgs {
	in := fetchArgs{Method: "GET", Format: "text", MaxBytes: 50000}
	change(&in)
	return in
}

func TestFetch(t *testing.T) {
	var saw []string
	server := httptest.NewServer(nethttp.HandlerFunc(func(w nethttp.ResponseWriter, r *nethttp.Request) {
		body, _ := io.ReadAll(r.Body)
		saw = append(saw, fmt.Sprintf("%s %s %s %q %q", r.Method, r.URL.RequestURI(), r.Header.Get("Content-Type"), r.Header.Get("X-A"), body))
		say := func(mediaType, body string) {
			w.Header().Set("Content-Type", mediaType)
			_, _ = io.WriteString(w, body)
		}
		switch r.URL.Path {
		case "/page":
			say("text/html; charset=iso-8859-1", "<title>T</title><p>gr\xfcn <a href=/x>y</a>")
		case "/json":
			say("application/json", `{"a": [1, 2]}`)
		case "/unsaid":
			w.Header()["Content-Type"] = nil
			_, _ = io.WriteString(w, "<!DOCTYPE html><b>x</b>")
		case "/old":
			nethttp.Redirect(w, r, "/page", nethttp.StatusFound)
		case "/gone":
			w.Header().Set("Content-Type", "text/html")
			w.WriteHeader(404)
			_, _ = io.WriteString(w, "<h1>Not here</h1>")
		case "/png":
			say("image/png", onePixel)
		case "/said-to-be-bytes":
			say("application/octet-stream", onePixel)
		case "/said-to-be-jpeg":
			say("image/jpeg", onePixel)
		case "/gif":
			say("text/plain", "GIF89a=1;\nalert()\n")
		case "/half-png":
			say("image/png", onePixel[:40])
		case "/no-png":
			say("image/png", "\x00\x01")
		case "/pdf":
			say("application/pdf", "%PDF-1.7")
		case "/binary":
			say("text/plain", "a\x00b")
		case "/sjis":
			say("text/plain; charset=shift_jis", "a\x82")
		case "/app":
			say("text/html", "<nav>x</nav><div id=root></div><script>go()</script>")
		case "/long":
			say("text/plain", strings.Repeat("line of text\n", 10000))
		case "/50mb":
			w.Header().Set("Content-Type", "text/html")
			line := "<p>" + strings.Repeat("word ", 200)
			for range 50 << 20 / len(line) {
				if _, err := io.WriteString(w, line); err != nil {
					return
				}
			}
		}
	}))
	defer server.Close()
	for name, c := range map[string]struct {
		in   fetchArgs
		want fetchResult // its output is the beginning
		note string
		end  string // of the output
		sent string
	}{
		"a page": {args(func(a *fetchArgs) { a.URL = "/page#part" }), fetchResult{Output: "Title: T\n\ngrün [y](/x)", URL: "/page", Status: 200, ContentType: "text/html; charset=iso-8859-1"}, "", "", `GET /page  "" ""`},
		"its source": {args(func(a *fetchArgs) { a.URL, a.Format = "/page", "raw" }),
			fetchResult{Output: "<title>T</title><p>grün <a href=/x>y</a>", URL: "/page", Status: 200, ContentType: "text/html; charset=iso-8859-1"}, "", "", ""},
		"JSON is as it is":  {args(func(a *fetchArgs) { a.URL = "/json" }), fetchResult{Output: `{"a": [1, 2]}`, URL: "/json", Status: 200, ContentType: "application/json"}, "", "", ""},
		"a page of no type": {args(func(a *fetchArgs) { a.URL = "/unsaid" }), fetchResult{Output: "x", URL: "/unsaid", Status: 200}, "", "", ""},
		"a redirect":        {args(func(a *fetchArgs) { a.URL = "/old" }), fetchResult{Output: "Title: T", URL: "/page", Status: 200, ContentType: "text/html; charset=iso-8859-1"}, "redirected to http://", "", ""},
		"an error of the server is no error of the tool": {args(func(a *fetchArgs) { a.URL = "/gone" }), fetchResult{Output: "# Not here", URL: "/gone", Status: 404, ContentType: "text/html"}, "status 404: what follows is its error", "", ""},
		"an image":                     {args(func(a *fetchArgs) { a.URL = "/png" }), fetchResult{Output: "[image/png, 67 bytes]", URL: "/png", Status: 200, ContentType: "image/png"}, "", "", ""},
		"an image of no type":          {args(func(a *fetchArgs) { a.URL = "/said-to-be-bytes" }), fetchResult{Output: "[image/png, 67 bytes]", URL: "/said-to-be-bytes", Status: 200, ContentType: "application/octet-stream"}, "", "", ""},
		"an image of another type":     {args(func(a *fetchArgs) { a.URL = "/said-to-be-jpeg" }), fetchResult{Output: "[image/png, 67 bytes]", URL: "/said-to-be-jpeg", Status: 200, ContentType: "image/jpeg"}, "", "", ""},
		"an encoding that is not read": {args(func(a *fetchArgs) { a.URL = "/sjis" }), fetchResult{Output: "a\uFFFD", URL: "/sjis", Status: 200, ContentType: "text/plain; charset=shift_jis"}, `"shift_jis" is not supported`, "", ""},
		"a page of scripts":            {args(func(a *fetchArgs) { a.URL = "/app" }), fetchResult{URL: "/app", Status: 200, ContentType: "text/html"}, "no text of its own", "", ""},
		"no body":                      {args(func(a *fetchArgs) { a.URL = "/nothing" }), fetchResult{URL: "/nothing", Status: 200}, "has no body", "", ""},
		"text that begins as an image": {args(func(a *fetchArgs) { a.URL = "/gif" }), fetchResult{Output: "GIF89a=1;", URL: "/gif", Status: 200, ContentType: "text/plain"}, "", "", ""},
		"JSON that is sent": {args(func(a *fetchArgs) {
			a.URL, a.Method, a.Body, a.Headers = "/json", "POST", `{"b":1}`, map[string]string{"X-A": "1"}
		}),
			fetchResult{Output: "{", URL: "/json", Status: 200, ContentType: "application/json"}, "", "", `POST /json application/json "1" "{\"b\":1}"`},
		"text that is sent": {args(func(a *fetchArgs) {
			a.URL, a.Method, a.Body, a.Headers = "/json", "PUT", "x=1", map[string]string{"content-type": "text/x"}
		}),
			fetchResult{Output: "{", URL: "/json", Status: 200, ContentType: "application/json"}, "", "", `PUT /json text/x "" "x=1"`},
		"a path that has to be escaped": {args(func(a *fetchArgs) { a.URL = "/page/ü x?q=\"y\"" }), fetchResult{URL: "/page/%C3%BC%20x?q=%22y%22", Status: 200}, "has no body", "", `GET /page/%C3%BC%20x?q=%22y%22  "" ""`},
		"the first part": {args(func(a *fetchArgs) { a.URL, a.MaxBytes = "/long", 1000 }),
			fetchResult{Output: "line of text\n", URL: "/long", Status: 200, ContentType: "text/plain", NextOffset: 988}, "", "\n[there is more: call again with offset=988]", ""},
		"a part in between": {args(func(a *fetchArgs) { a.URL, a.MaxBytes, a.Offset = "/long", 1000, 988 }),
			fetchResult{Output: "line of text\n", URL: "/long", Status: 200, ContentType: "text/plain", NextOffset: 1976}, "", "offset=1976]", ""},
		"50 MB": {args(func(a *fetchArgs) { a.URL = "/50mb" }),
			fetchResult{Output: "word word", URL: "/50mb", Status: 200, ContentType: "text/html", NextOffset: 49999, Truncated: true}, "", "[there is more: call again with offset=49999]", ""},
		"the end of what is read of 50 MB": {args(func(a *fetchArgs) { a.URL, a.Offset = "/50mb", 8330000 }),
			fetchResult{Output: "", URL: "/50mb", Status: 200, ContentType: "text/html", Truncated: true}, "", "[the body is larger than the first 8388608 bytes, which are all that is read of one]", ""},
	} {
		saw = nil
		c.in.URL = server.URL + c.in.URL
		got, err := fetch(t.Context(), c.in, direct)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !strings.HasPrefix(got.Output, c.want.Output) || c.want.Output == "" && c.end == "" && got.Output != "" || !strings.HasSuffix(got.Output, c.end) {
			t.Errorf("%s: the output is %.200q ... %q", name, got.Output, got.Output[max(len(got.Output)-100, 0):])
		}
		if c.note == "" && got.Note != "" || !strings.Contains(got.Note, c.note) {
			t.Errorf("%s: the note is %q", name, got.Note)
		}
		if len(got.Images()) != map[bool]int{true: 1}[strings.HasPrefix(name, "an image")] || len(got.Images()) > 0 && got.Images()[0].Mime != "image/png" {
			t.Errorf("%s: there are %d images", name, len(got.Images()))
		}
		if c.sent != "" && !slices.Contains(saw, c.sent) {
			t.Errorf("%s: the server saw %q", name, saw)
		}
		c.want.URL = server.URL + c.want.URL
		c.want.Output, c.want.Note = got.Output, got.Note
		if a, b := fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", c.want); a != b && len(got.Images()) == 0 {
			t.Errorf("%s:\n got %.300s\nwant %.300s", name, a[len(got.Output):], b[len(got.Output):])
		}
	}

	head, err := fetch(t.Context(), args(func(a *fetchArgs) { a.URL, a.Method = server.URL+"/json", "HEAD" }), direct)
	if err != nil || !strings.Contains(head.Output, "content-type: application/json\n") {
		t.Errorf("HEAD returns %q, %v", head.Output, err)
	}
	for path, want := range map[string]string{
		"/pdf":      "8 bytes of application/pdf (status 200), which is not read here: HTML, JSON and other text is, and images of up to 3.75 MiB are shown",
		"/binary":   "3 bytes of text/plain",
		"/half-png": "are shown; this begins as image/png and is cut short or damaged",
		"/no-png":   "are shown; this is not a PNG, JPEG, GIF or WebP image",
	} {
		_, err := fetch(t.Context(), args(func(a *fetchArgs) { a.URL = server.URL + path }), direct)
		if tool.CodeOf(err) != "UNSUPPORTED_TYPE" || tool.AsError(err).Code != tool.CodeParse || !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%s: %v", path, err)
		}
	}
	for _, asked := range []string{strings.Replace(server.URL, "http:", "HTTP:", 1) + "/json", server.URL + "/json"} {
		if got, err := fetch(t.Context(), args(func(a *fetchArgs) { a.URL = asked }), direct); err != nil || got.Note != "" {
			t.Errorf("of %s it says %q, %v", asked, got.Note, err)
		}
	}
	for from, elsewhereIs := range map[string]bool{"https://a.example/": false, "https://a.example/X": true, "http://a.example": true} {
		if isRedirected("https://A.example", from) != elsewhereIs {
			t.Errorf("%s is elsewhere: %v", from, !elsewhereIs)
		}
	}
	// What is behind the end is no page, also where the body was cut.
	if _, err := fetch(t.Context(), args(func(a *fetchArgs) { a.URL, a.Offset = server.URL+"/50mb", 9_000_000 }), direct); err == nil || !strings.Contains(err.Error(), "is beyond the end") {
		t.Errorf("behind the end of what is read of 50 MB: %v", err)
	}
	if _, err := fetch(t.Context(), args(func(a *fetchArgs) { a.URL, a.Offset = server.URL+"/json", 100 }), direct); err == nil || !strings.Contains(err.Error(), "the text has 13 bytes") {
		t.Errorf("behind the end: %v", err)
	}
}

func TestAddresses(t *testing.T) {
	for text, want := range map[string]string{
		"https://a.example/x?y#z":   "https://a.example/x?y",
		"HTTP://A.example":          "http://A.example",
		"a.example/?u=https://b":    "https://a.example/?u=https://b +",
		"a.example?u=ftp://b/":      "https://a.example?u=ftp://b/ +",
		"a.example/https://b":       "https://a.example/https://b +",
		"a.example":                 "https://a.example +",
		"a.example/x":               "https://a.example/x +",
		"a.example:8443/x":          "https://a.example:8443/x +",
		"localhost:3000":            "https://localhost:3000 +",
		"//a.example/x":             "https://a.example/x +",
		"[::1]:80/x":                "https://[::1]:80/x +",
		"https://a.example/ü ö":     "https://a.example/%C3%BC%20%C3%B6",
		"https://u:p@a.example/":    "https://u:p@a.example/", // which the host refuses
		"https://a.example\\@b/c":   "https://a.example\\@b/c",
		" https://a.example":        `" https://" is not fetched`,
		"":                          "url is empty",
		"#x":                        "url is empty",
		"https://":                  "names no host",
		"https:///etc/passwd":       "names no host",
		"file:///etc/passwd":        "file_read reads files",
		"FILE:///etc/passwd":        "file_read reads files",
		"ftp://a.example":           `"ftp://" is not fetched`,
		"javascript:alert(1)":       `"javascript:" is not fetched`,
		"mailto:a@b.example":        `"mailto:" is not fetched`,
		"data:text/html,x":          `"data:" is not fetched`,
		"/etc/passwd":               "is a path",
		"./x":                       "is a path",
		"~/x":                       "is a path",
		"gopher:":                   `"gopher:" is not fetched`,
		"view-source://a.example/x": "is not fetched",
	} {
		address, note, err := addressOf(text)
		got := address
		if note != "" {
			got += " +"
		}
		if err != nil {
			got = err.Error()
			if tool.CodeOf(err) != "INVALID_URL" {
				t.Errorf("%q: the code is %q", text, tool.CodeOf(err))
			}
		}
		if got != want && (err == nil || !strings.Contains(got, want)) {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}

func TestWhatIsNotSent(t *testing.T) {
	for name, c := range map[string]struct {
		in   fetchArgs
		want string
	}{
		"a body with GET":      {args(func(a *fetchArgs) { a.URL, a.Body = "https://a.example", "x" }), "sent with POST, PUT or PATCH"},
		"an offset with POST":  {args(func(a *fetchArgs) { a.URL, a.Method, a.Offset = "https://a.example", "POST", 5 }), "would be sent again"},
		"what is no address":   {args(func(a *fetchArgs) { a.URL = "file:///etc/passwd" }), "file_read"},
		"what is nothing else": {args(func(a *fetchArgs) {}), "empty"},
	} {
		_, err := fetch(t.Context(), c.in, func(context.Context, http.Request) (*http.Response, error) {
			t.Errorf("%s: a request is made", name)
			return nil, errors.New("no")
		})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestFailures(t *testing.T) {
	why := func(err error) error { return fmt.Errorf("%w: why", err) }
	for name, c := range map[string]struct {
		err        error
		code, says string
		kind       tool.Code
	}{
		"denied":           {why(http.ErrDenied), "", "why; that is for the user to change", tool.CodeDenied},
		"a redirect":       {fmt.Errorf("%w: a.example redirects to https://b.example/: no connection", http.ErrDenied), "", "A call with that URL", tool.CodeDenied},
		"a header":         {fmt.Errorf(`%w: header "a": it holds a line end`, http.ErrInvalid), "", "line end", tool.CodeInvalidInput},
		"a URL":            {why(http.ErrInvalid), "INVALID_URL", "why", tool.CodeInvalidInput},
		"a name":           {fmt.Errorf("%w: no such host: a.example", http.ErrDNS), "DNS_FAILED", "no such host: a.example; look at the spelling", tool.CodeUnavailable},
		"a name server":    {why(http.ErrDNS), "DNS_FAILED", "why; try again later", tool.CodeUnavailable},
		"nobody answers":   {why(http.ErrConnect), "CONNECT_FAILED", "why; look at the host and the port", tool.CodeUnavailable},
		"a certificate":    {why(http.ErrTLS), "TLS_FAILED", "certificate", tool.CodeUnavailable},
		"time":             {http.ErrTimeout, "TIMED_OUT", "slow", tool.CodeUnavailable},
		"what is not HTTP": {why(http.ErrProtocol), "BAD_RESPONSE", "why; look at the scheme", tool.CodeUnavailable},
		"too large":        {&http.TooLargeError{Limit: 1000}, "TOO_LARGE", "1000 bytes, which is all that may be read of one; ask for less", tool.CodeIO},
		"cancelled":        {context.Canceled, "", "", tool.CodeCancelled},
	} {
		sent := 0
		_, err := fetch(t.Context(), args(func(a *fetchArgs) { a.URL, a.Method = "https://a.example", "POST" }),
			func(context.Context, http.Request) (*http.Response, error) { sent++; return nil, c.err })
		if sent != 1 {
			t.Errorf("%s: a POST is sent %d times", name, sent)
		}
		if err == nil || tool.CodeOf(err) != c.code || tool.AsError(err).Code != c.kind || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v (%s, %v)", name, err, tool.CodeOf(err), tool.AsError(err).Code)
		}
	}
	if !errors.Is(http.ErrDenied, fs.ErrPermission) || !errors.Is(http.ErrTimeout, os.ErrDeadlineExceeded) {
		t.Error("the sentinels are not what they were")
	}
	asked := []int{}
	got, err := fetch(t.Context(), args(func(a *fetchArgs) { a.URL = "https://a.example" }), func(_ context.Context, req http.Request) (*http.Response, error) {
		if asked = append(asked, req.MaxBytes); req.MaxBytes > 1000 {
			return nil, &http.TooLargeError{Limit: 1000}
		}
		return &http.Response{Status: 200, URL: req.URL, Body: []byte("text"), Truncated: true}, nil
	})
	if err != nil || !got.Truncated || !slices.Equal(asked, []int{maxBody, 1000}) {
		t.Errorf("where less is permitted: %+v, %v, asked for %v", got, err, asked)
	}
	if want := "the server was too slow: this is what came in 0 s"; got.Note != want || got.Output != "text" {
		t.Errorf("of a slow page: %q, with the note %q, want %q", got.Output, got.Note, want)
	}
}

func TestARequestEndsBeforeItsCall(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if left := timeLeft(ctx); left > 28*time.Second || left < 20*time.Second {
		t.Errorf("of 30 s a request gets %v", left)
	}
	if left := timeLeft(t.Context()); left != 0 {
		t.Errorf("without a deadline it gets %v", left)
	}
}
