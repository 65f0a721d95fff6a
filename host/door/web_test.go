package door

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stockade-dev/stockade/host/egress"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/policy/network"
	"github.com/stockade-dev/stockade/host/redact"
	"github.com/stockade-dev/stockade/host/secret"
	"github.com/stockade-dev/stockade/host/tool"
)

// web is a session that may fetch and search, from the servers that are allowed.
type web struct {
	*Session
	dir string
	n   int
}

func newWeb(t *testing.T, d *Door, limits policy.Limits, allow ...string) *web {
	t.Helper()
	dir, opts := work(t)
	var rules []network.Rule
	for _, text := range allow {
		r, err := network.ParseRule(text)
		if err != nil {
			t.Fatal(err)
		}
		rules = append(rules, r)
	}
	opts.Policy.Network, opts.Policy.Limits = network.New(rules), limits
	for _, name := range []string{"http_fetch", "web_search with brave_search", "web_search"} {
		r, err := policy.ParseRule(name)
		if err != nil {
			t.Fatal(err)
		}
		r.Effect, r.Source = policy.Allow, policy.SourceFlag
		opts.Policy.Rules = append(opts.Policy.Rules, r)
	}
	return &web{Session: open(t, d, opts), dir: dir}
}

func (w *web) call(t *testing.T, name string, args any) tool.Result {
	t.Helper()
	w.n++
	r, err := w.Call(t.Context(), tool.Call{ID: fmt.Sprint("c", w.n), Tool: name, Args: tool.Marshal(args), Caller: tool.CallerAgent, Cwd: w.dir})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

type fetched struct {
	Output     string
	URL        string
	Status     int
	NextOffset int `json:"next_offset"`
	Truncated  bool
	Note       string
	Results    []struct{ Title, URL, Snippet string }
}

func (w *web) got(t *testing.T, name string, args any) fetched {
	t.Helper()
	r := w.call(t, name, args)
	var out fetched
	if r.Err != nil || json.Unmarshal(r.Output, &out) != nil {
		t.Fatalf("%v: %s", args, r.Summary())
	}
	return out
}

// url are the arguments of a fetch: pairs follow.
func url(address string, more ...any) map[string]any {
	args := map[string]any{"url": address}
	for i := 0; i < len(more); i += 2 {
		args[more[i].(string)] = more[i+1]
	}
	return args
}

// gzipped returns a body of n equal bytes, compressed with gzip.
func gzipped(n int) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	chunk := bytes.Repeat([]byte("x"), 1<<20)
	for ; n > 0; n -= len(chunk) {
		_, _ = z.Write(chunk[:min(n, len(chunk))])
	}
	_ = z.Close()
	return b.Bytes()
}

// site is a server with pages that are hard to take, of 1 MiB or, if that is asked for, of 8.
func site(w http.ResponseWriter, r *http.Request) {
	full := 1 << 20
	if r.URL.RawQuery == "8" {
		full = 8 << 20
	}
	html := func(piece string) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, strings.Repeat(piece, full/len(piece)))
	}
	switch strings.TrimPrefix(r.URL.Path, "/") {
	case "plain":
		_, _ = fmt.Fprintf(w, "%s %s", r.Method, r.Header.Get("X-A"))
	case "nested":
		html("<div>")
	case "lists":
		html("<ul><li>")
	case "tables":
		html("<table><tr><td>")
	case "links":
		html("<a href=/x>")
	case "words":
		html("word ")
	case "word":
		html("w")
	case "entities":
		html("&amp;")
	case "comment":
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, "<!--"+strings.Repeat("-", full-5))
	case "attributes":
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, "<a ")
		for i := range full/8 - 1 {
			_, _ = fmt.Fprintf(w, "a%06x ", i)
		}
		_, _ = io.WriteString(w, ">end")
	case "latin":
		w.Header().Set("Content-Type", "text/html; charset=latin1")
		_, _ = w.Write(bytes.Repeat([]byte{0x80}, full))
	case "utf16":
		w.Header().Set("Content-Type", "text/html; charset=utf-16le")
		_, _ = w.Write(bytes.Repeat([]byte{0xac, 0x20}, full/2))
	case "bytes":
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write(bytes.Repeat([]byte{0x80}, full))
	case "json":
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, strings.Repeat("[", full))
	case "50mb":
		w.Header().Set("Content-Type", "text/html")
		for range 50 {
			if _, err := io.WriteString(w, strings.Repeat("<p>word ", 1<<17)); err != nil {
				return
			}
		}
	case "bomb":
		w.Header().Set("Content-Type", "text/plain")
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(gzipped(64 << 20))
	case "silent":
		<-r.Context().Done()
	case "loop":
		http.Redirect(w, r, "/loop", http.StatusFound)
	case "to":
		http.Redirect(w, r, r.URL.Query().Get("u"), http.StatusFound)
	}
}

// TestPagesThatAreHardToTake: each page gives an answer, within 64 MiB of memory.
func TestPagesThatAreHardToTake(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(site))
	defer server.Close()
	w := newWeb(t, New(Options{}), policy.Limits{MemoryBytes: 64 << 20}, server.URL)
	for path, c := range map[string]struct {
		offset     int
		starts     string
		note, ends string
	}{
		"nested?8":   {0, "", "no text of its own", ""},
		"lists":      {0, "", "no text of its own", ""},
		"tables":     {0, "", "no text of its own", ""},
		"links":      {0, "", "no text of its own", ""},
		"words":      {900_000, "word word", "", "call again with offset=9"},
		"word?8":     {8_000_000, "wwww", "", "call again with offset=80"},
		"entities":   {150_000, "&&&&", "", "call again with offset=20"},
		"comment?8":  {0, "", "no text of its own", ""},
		"attributes": {0, "end", "", ""},
		"latin?8":    {8_000_000, "€", "", "call again with offset=80"},
		"utf16?8":    {8_000_000, "€", "", "call again with offset=80"},
		"bytes?8":    {0, "\n[there is more", "", "call again with offset=4999"},
		"json?8":     {8_000_000, "[[[[", "", "call again with offset=80"},
		"50mb":       {0, "word\n\nword", "", "call again with offset=4"},
		"bomb":       {8_350_000, "xxxx", "", "[the body is larger than the first 8388608 bytes, which are all that is read of one]"},
	} {
		r := w.call(t, "http_fetch", url(server.URL+"/"+path, "offset", c.offset))
		var got fetched
		if r.Err != nil || json.Unmarshal(r.Output, &got) != nil {
			t.Errorf("%s: %s", path, r.Summary())
			continue
		}
		last := got.Output[strings.LastIndexByte(got.Output, '\n')+1:]
		if !strings.HasPrefix(strings.TrimLeft(got.Output, "\uFFFD"), c.starts) || c.starts == "" && got.Output != "" || !strings.Contains(got.Note, c.note) || !strings.Contains(last, c.ends) {
			t.Errorf("%s: %.80q ... %q, note %q", path, got.Output, last, got.Note)
		}
		if truncated := slices.Contains([]string{"50mb", "bomb", "latin?8", "utf16?8"}, path); got.Truncated != truncated {
			t.Errorf("%s: truncated is %v", path, got.Truncated)
		}
		if r.Usage.PeakMemoryBytes > 64<<20 {
			t.Errorf("%s: it takes %d MiB", path, r.Usage.PeakMemoryBytes>>20)
		}
		t.Logf("%s: %d MiB, %d million units of fuel, %v", path, r.Usage.PeakMemoryBytes>>20, r.Usage.FuelUsed/1_000_000, r.Usage.Duration.Round(time.Millisecond))
	}
}

// TestRequestsThatMustNotGoOut has requests that are refused, and requests whose answer is.
func TestRequestsThatMustNotGoOut(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(site))
	defer server.Close()
	secured := httptest.NewTLSServer(http.HandlerFunc(site))
	defer secured.Close()
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a server was reached that is not allowed") }))
	defer other.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	w := newWeb(t, New(Options{}), policy.Limits{HTTPTimeout: 300 * time.Millisecond}, server.URL, secured.URL, "none.invalid", "https://127.0.0.1:9")
	for name, c := range map[string]struct {
		args any
		code tool.Code
		says string
	}{
		"another host":               {url("https://other.example/"), tool.CodeDenied, `the rule "other.example" of the network`},
		"another host, by its name":  {url("other.example/x"), tool.CodeDenied, `the rule "other.example" of the network`},
		"another port":               {url(other.URL), tool.CodeDenied, "not granted by address"},
		"a private address":          {url("http://10.0.0.1/"), tool.CodeDenied, "10.0.0.0/8"},
		"the metadata of a cloud":    {url("http://169.254.169.254/latest/meta-data/"), tool.CodeDenied, "metadata"},
		"this machine by a name":     {url("http://localhost:1/"), tool.CodeDenied, "loopback"},
		"a redirect to another port": {url(server.URL + "/to?u=" + other.URL + "/"), tool.CodeDenied, "no connection to " + other.URL},
		"a redirect to a file":       {url(server.URL + "/to?u=file:///etc/passwd"), tool.CodeDenied, "redirect of " + host + " is refused"},
		"redirects without end":      {url(server.URL + "/loop"), "BAD_RESPONSE", "redirects"},
		"a file":                     {url("file:///etc/passwd"), "INVALID_URL", "file_read"},
		"a user name":                {url("http://u:p@" + host + "/"), "INVALID_URL", "user name"},
		"another way to write it":    {url("http://2130706433/"), "INVALID_URL", "number"},
		"a line end in a header":     {url(server.URL+"/plain", "headers", map[string]string{"X-A": "a\r\nHost: b"}), tool.CodeInvalidArgs, "header"},
		"a line end in a name":       {url(server.URL+"/plain", "headers", map[string]string{"X-A\r\nB": "a"}), tool.CodeInvalidArgs, "header"},
		"a line end in a URL":        {url(server.URL + "/plain\r\nHost: b"), "INVALID_URL", ""},
		"Authorization":              {url(server.URL+"/plain", "headers", map[string]string{"Authorization": "Bearer x"}), tool.CodeInvalidArgs, "only the host may set it"},
		"the name of the host":       {url(server.URL+"/plain", "headers", map[string]string{"Host": "b"}), tool.CodeInvalidArgs, "host"},
		"a method of its own":        {url(server.URL+"/plain", "method", "TRACE"), tool.CodeInvalidArgs, "method"},
		"a server that is silent":    {url(server.URL + "/silent"), "TIMED_OUT", "slow"},
		"a certificate of nobody":    {url(secured.URL + "/plain"), "TLS_FAILED", ""},
		"a name that is none":        {url("https://none.invalid/"), "DNS_FAILED", ""},
		"nobody at the address":      {url("https://127.0.0.1:9/"), "CONNECT_FAILED", ""},
		"https at a port of http":    {url("https://" + host + "/plain"), tool.CodeDenied, "no connection to https://"},
		"http at a port of https":    {url(strings.Replace(secured.URL, "https", "http", 1)), tool.CodeDenied, "over https it is allowed"},
	} {
		r := w.call(t, "http_fetch", c.args)
		if r.Err == nil || r.Err.Code != c.code || !strings.Contains(r.Err.Error(), c.says) {
			t.Errorf("%s: %s\n%s", name, r.Summary(), r.Output)
		}
	}
}

func TestAPageOverTLS(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(site))
	defer server.Close()
	trusted := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	d := New(Options{Egress: func() (*egress.Egress, error) {
		return egress.New(egress.Options{Authorities: []egress.Authorities{{Name: "test", PEM: trusted}}})
	}})
	w := newWeb(t, d, policy.Limits{}, server.URL)
	got := w.got(t, "http_fetch", url(strings.TrimPrefix(server.URL, "https://")+"/to?u=/plain", "headers", map[string]string{"X-A": "1"}))
	if got.Output != "GET 1" || got.URL != server.URL+"/plain" || got.Note != "https:// was put before the URL; the server redirected to "+server.URL+"/plain" {
		t.Errorf("it got %+v", got)
	}
	if got := w.got(t, "http_fetch", url(server.URL+"/plain", "method", "PUT", "body", "x")); got.Output != "PUT " {
		t.Errorf("it got %+v", got)
	}
}

// TestWhatASearchAsksForDependsOnItsEngine: the engine decides about the host, the
// secret, and whether the secret is read at all.
func TestWhatASearchAsksForDependsOnItsEngine(t *testing.T) {
	var saw []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		saw = append(saw, r.URL.Path+" "+r.Header.Get("X-Subscription-Token"))
		if r.URL.Path == "/duck" {
			_, _ = io.WriteString(w, `<div class="result"><a class="result__a" href="https://a.example/">A</a></div>`)
			return
		}
		_, _ = fmt.Fprintf(w, `{"web":{"results":[{"title":"B %s","url":"https://b.example/"}]}}`, r.Header.Get("X-Subscription-Token"))
	}))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	dir := t.TempDir()
	vault := func(hosts ...string) func() *secret.Vault {
		file := func() *secret.File {
			return secret.NewFile(secret.FileOptions{Path: filepath.Join(dir, strings.Join(hosts, "-")+"sealed"), KeyPath: filepath.Join(dir, strings.Join(hosts, "-")+"key")})
		}
		open := func(f *secret.File) *secret.Vault {
			return secret.NewVault(secret.NewKeyring(filepath.Join(dir, "index")), f, new(redact.Redactor))
		}
		if f := file(); hosts != nil && !f.Exists() {
			r := secret.Record{Info: secret.Info{Name: "brave_search", Hosts: hosts}, Value: secret.NewValue("sesame-of-the-test")}
			if err := open(f).Set(t.Context(), f, r); err != nil {
				t.Fatal(err)
			}
		}
		return func() *secret.Vault { return open(file()) } // as in the next process
	}
	config := func(engine, path string) map[string]map[string]string {
		return map[string]map[string]string{"web": {"search": engine, "search_url": server.URL + path}}
	}
	for name, c := range map[string]struct {
		config map[string]map[string]string
		vault  func() *secret.Vault
		allow  []string
		code   tool.Code
		says   string
		saw    string
		reads  bool // the secret, before any call
	}{
		"an engine without a key":          {config("duckduckgo", "/duck"), vault(host), []string{server.URL}, "", "1. A\n", "[/duck ]", false},
		"an engine with one":               {config("brave", "/brave"), vault(host), []string{server.URL}, "", "1. B [redacted]\n", "[/brave sesame-of-the-test]", true},
		"no key":                           {config("brave", "/brave"), vault(), []string{server.URL}, "MISSING_CREDENTIALS", "`stockade secret set brave_search --host " + host, "[]", false},
		"a key that is bound elsewhere":    {config("brave", "/brave"), vault("api.search.brave.com"), []string{server.URL}, tool.CodeDenied, "not for " + host, "[]", true},
		"an engine that is not allowed":    {config("brave", "/brave"), vault(host), []string{"api.example"}, tool.CodeDenied, `the rule "` + server.URL + `" of the network`, "[]", false},
		"nobody is allowed":                {config("brave", "/brave"), vault(host), nil, tool.CodeDenied, `the rule "` + server.URL + `" of the network`, "[]", false},
		"what the module declares, denied": {nil, vault(host), []string{server.URL}, tool.CodeDenied, `the rule "html.duckduckgo.com" of the network`, "[]", false},
	} {
		saw = []string{}
		v := c.vault()
		d := New(Options{Config: c.config, Secrets: v})
		w := newWeb(t, d, policy.Limits{}, c.allow...)
		if reads := v.Redactor().Text("sesame-of-the-test") != "sesame-of-the-test"; reads != c.reads {
			t.Errorf("%s: the secret is read before any call: %v", name, reads)
		}
		shown := false
		for _, def := range w.Tools.Definitions() {
			shown = shown || def.Name == "web_search"
		}
		if want := len(c.allow) > 0 && c.allow[0] == server.URL && c.config != nil; shown != want {
			t.Errorf("%s: the model sees web_search: %v", name, shown)
		}
		r := w.call(t, "web_search", map[string]any{"query": "q"})
		var text string
		if r.Err != nil {
			text = r.Err.Error()
			if r.Err.Code != c.code {
				t.Errorf("%s: %s", name, r.Summary())
			}
		} else {
			var out fetched
			_ = json.Unmarshal(r.Output, &out)
			text = out.Output
		}
		if !strings.Contains(text, c.says) || (r.Err == nil) != (c.code == "") || fmt.Sprint(saw) != c.saw {
			t.Errorf("%s: %q, %s; the server saw %q", name, text, r.Summary(), saw)
		}
		if strings.Contains(string(r.Envelope()), "sesame") {
			t.Errorf("%s: the guest has the value: %s", name, r.Envelope())
		}
	}
}
