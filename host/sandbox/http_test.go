package sandbox_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stockade-dev/stockade/host/egress"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/policy/network"
	"github.com/stockade-dev/stockade/host/sandbox"
	"github.com/stockade-dev/stockade/host/services"
	"github.com/stockade-dev/stockade/host/tool"
)

// httpFunc is a service behind http.fetch.
type httpFunc func(ctx context.Context, grant policy.Grant, req services.Request) (*services.Response, error)

func (f httpFunc) Fetch(ctx context.Context, grant policy.Grant, req services.Request) (*services.Response, error) {
	return f(ctx, grant, req)
}

// fetched is the report of the guest of the conformance tests about its fetch.
type fetched struct {
	Fetch *struct {
		Status    int
		URL       string
		Headers   []string
		Body      string
		Truncated bool
	}
	Errors map[string]string
}

// fetcher calls that guest, whose module is compiled once.
type fetcher struct {
	service httpFunc
	mod     *tool.Module
	box     *sandbox.Sandbox
}

func newFetcher(t *testing.T) *fetcher {
	t.Helper()
	code, err := tck()
	if err != nil {
		t.Fatal(err)
	}
	f := &fetcher{mod: module(code)}
	f.box = newBox(t, sandbox.Options{CacheDir: sharedCache, Services: services.Set{HTTP: httpFunc(
		func(ctx context.Context, grant policy.Grant, req services.Request) (*services.Response, error) {
			return f.service(ctx, grant, req)
		})}})
	return f
}

func (f *fetcher) fetch(t *testing.T, url, body string, rules ...network.Rule) (fetched, tool.Result) {
	t.Helper()
	if rules == nil { // where nobody can be reached, nothing is asked
		rules = []network.Rule{{Allow: true, Name: "a.example"}}
	}
	dir := t.TempDir()
	args := marshal(t, map[string]string{"fetch": url, "body": body, "key": "k", "value": "v", "secret": "s", "command": "true"})
	r := granted(t, f.mod, ask{tool: "host", args: args, cwd: dir, mounts: []policy.Mount{{Host: dir}},
		caps: tool.Capabilities{Files: tool.FilesRead, Network: tool.NetworkHTTP}, network: rules}).mustRun(t, f.box)
	var out fetched
	if r.Err != nil || json.Unmarshal(r.Output, &out) != nil {
		t.Fatalf("%s %s", r.Output, r.Summary())
	}
	return out, r
}

// TestAGuestReachesTheServerThatIsGranted tests the whole path: a guest, the ABI, policy,
// egress, a server.
func TestAGuestReachesTheServerThatIsGranted(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		rw.Header().Set("X-Answer", "ü")
		if r.URL.Path == "/long" {
			body = make([]byte, 1<<17)
		}
		rw.WriteHeader(418)
		fmt.Fprintf(rw, "%s %s %q %s", r.Method, r.Header.Get("x-one"), r.Header.Values("x-empty"), body)
	}))
	defer server.Close()
	unasked := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a server was reached that is not granted") }))
	defer unasked.Close()
	out, err := egress.New(egress.Options{})
	if err != nil {
		t.Fatal(err)
	}
	f := newFetcher(t)
	f.service = out.Fetch
	rule, err := network.ParseRule(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	got, r := f.fetch(t, server.URL+"/a", "data", rule)
	if got.Fetch == nil || got.Fetch.Status != 418 || got.Fetch.URL != server.URL+"/a" || got.Fetch.Body != `GET 1 [""] data` || got.Fetch.Truncated ||
		!strings.Contains(strings.Join(got.Fetch.Headers, "\n"), "x-answer: ü") {
		t.Errorf("it got %s", r.Output)
	}
	if n := r.Usage.Network; len(n) != 1 || n[0].Host != server.URL || n[0].Requests != 1 || n[0].ReceivedBytes == 0 {
		t.Errorf("the account is %+v", n)
	}
	if envelope := string(r.Envelope()); !strings.Contains(envelope, `"network":[{"host":"`+server.URL+`","requests":1`) {
		t.Errorf("the envelope is %s", envelope)
	}
	if got, r := f.fetch(t, server.URL+"/long", "", rule); got.Fetch == nil || !got.Fetch.Truncated || len(got.Fetch.Body) != 1<<16 {
		t.Errorf("it got %.200s", r.Output)
	}
	for _, url := range []string{unasked.URL, strings.Replace(server.URL, "127.0.0.1", "127.1", 1), "https://example.com/"} {
		got, r := f.fetch(t, url, "", rule)
		if got.Fetch != nil || !strings.Contains(got.Errors["fetch"], "denied") && !strings.Contains(got.Errors["fetch"], "invalid") {
			t.Errorf("%s: %s", url, r.Output)
		}
	}
	got, _ = f.fetch(t, unasked.URL, "", rule)
	if want := `the rule "` + unasked.URL + `" of the network would allow it`; !strings.Contains(got.Errors["fetch"], want) {
		t.Errorf("the denial is %q, want %q", got.Errors["fetch"], want)
	}
}

// TestWhatAGuestAsksForCrossesTheABI compares both sides.
func TestWhatAGuestAsksForCrossesTheABI(t *testing.T) {
	var asked services.Request
	answer := services.Response{Status: 599, URL: "u", Body: []byte{'a', 0, 'b'}, Truncated: true}
	for i := range 200 {
		answer.Headers = append(answer.Headers, [2]string{fmt.Sprint("n", i), strings.Repeat("v", i)})
	}
	f := newFetcher(t)
	f.service = func(_ context.Context, _ policy.Grant, req services.Request) (*services.Response, error) {
		asked = req
		return &answer, nil
	}
	got, r := f.fetch(t, "any text", "data")
	want := services.Request{
		Method: "GET", URL: "any text", Headers: [][2]string{{"x-one", "1"}, {"x-empty", ""}}, Body: []byte("data"), Timeout: 5_000_000_000, MaxBytes: 1 << 16,
	}
	if diff := cmp.Diff(want, asked); diff != "" {
		t.Errorf("the host was asked for (-want +got):\n%s", diff)
	}
	if got.Fetch == nil || got.Fetch.Status != 599 || got.Fetch.URL != "u" || got.Fetch.Body != "a\x00b" || !got.Fetch.Truncated || len(got.Fetch.Headers) != 200 ||
		got.Fetch.Headers[199] != "n199: "+strings.Repeat("v", 199) {
		t.Errorf("it got %.500s", r.Output)
	}
	if _, _ = f.fetch(t, "any text", ""); asked.Body != nil {
		t.Errorf("no body is %q", asked.Body)
	}
	for kind, want := range map[services.Kind]string{
		services.Denied: "request denied: why", services.Invalid: "invalid request: why", services.DNS: "resolve the host: why",
		services.Connect: "connect: why", services.TLS: "tls: why", services.Timeout: "no answer in time",
		services.TooLarge: "response is larger than 4294967297 bytes", services.Protocol: "http protocol: why",
		services.NotFound: "http protocol: why",
	} {
		f.service = func(context.Context, policy.Grant, services.Request) (*services.Response, error) {
			return nil, &services.Error{Kind: kind, Limit: 1<<32 + 1, Err: errors.New("why")}
		}
		if got, r := f.fetch(t, "u", ""); got.Errors["fetch"] != want {
			t.Errorf("kind %d: %s", kind, r.Output)
		}
	}
	f.service = func(context.Context, policy.Grant, services.Request) (*services.Response, error) {
		return nil, errors.New("why")
	}
	if got, r := f.fetch(t, "u", ""); got.Errors["fetch"] != "http protocol: why" {
		t.Errorf("another error: %s", r.Output)
	}
}
