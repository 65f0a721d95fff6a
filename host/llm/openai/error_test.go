package openai

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/llm/llmtest"
	"github.com/stockade-dev/stockade/host/llm/provider"
	"github.com/stockade-dev/stockade/host/services"
)

func TestStatusSaysWhetherToTryAgainAndWhatToDo(t *testing.T) {
	tests := []struct {
		name      string
		status    int
		body      string
		message   string
		hint      string
		retryable bool
	}{
		{"401", 401, `{"error":{"message":"bad key"}}`, "bad key", "OPENAI_API_KEY", false},
		{"403", 403, `{"error":{"message":"not you"}}`, "not you", "`stockade model list`", false},
		{"404", 404, `{"error":{"message":"no such model"}}`, "no such model", "name of the model and the base URL", false},
		{"400", 400, `{"error":{"message":"bad"}}`, "bad", "", false},
		{"400, the conversation is too long", 400, `{"error":{"message":"long","code":"context_length_exceeded"}}`, "long", "does not fit", false},
		{"402", 402, `{"error":{"message":"pay"}}`, "pay", "no credit", false},
		{"408", 408, `{"error":{"message":"slow"}}`, "slow", "", true},
		{"409", 409, `{"error":{"message":"conflict"}}`, "conflict", "", true},
		{"413", 413, ``, "Request Entity Too Large", "too long for the model", false},
		{"422 of FastAPI", 422, `{"detail":"no field"}`, "no field", "", false},
		{"413 of a limit for a minute", 413, `{"error":{"message":"Request too large for model x on tokens per minute (TPM): Limit 8000, Requested 78478"}}`, "Request too large", "", false},
		{"OpenRouter repeats a server behind it", 400, `{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\"message\":\"no such tool\"}","provider_name":"x"}}}`,
			"Provider returned error: no such tool", "", false},
		{"500, the conversation is too long", 500, `{"error":{"message":"Context size has been exceeded."}}`, "Context size", "does not fit", false},
		{"429", 429, `{"error":{"message":"slow down"}}`, "slow down", "", true},
		{"429 without credit", 429, `{"error":{"message":"pay","code":"insufficient_quota"}}`, "pay", "no credit", false},
		{"429 without credit, by its type", 429, `{"error":{"message":"pay","type":"insufficient_quota"}}`, "pay", "no credit", false},
		{"500 with a text", 500, "oops\n\n\x1b[2J", "oops [2J", "", true},
		{"502 with a web page", 502, "<html>", "a web page instead of an answer", "", true},
		{"503 with the page of a server", 503, "<html><title>503 Service Temporarily Unavailable</title>", `a web page instead of an answer, with the title "503 Service`, "", true},
		{"503 with the page of a filter", 503, "\xef\xbb\xbf<!-- x --><HTML><TITLE lang=en>Access &lt;blocked&gt;\x1b[2J</TITLE>", `a web page instead of an answer, with the title "Access <blocked> [2J"`, "a proxy, a filter or a login page", false},
		{"500 with a page of its own", 500, "<html><title>Category: AI", `a web page instead of an answer, with the title "Category: AI"`, "network.proxy", false},
		{"403 with a page", 403, "<html>", "a web page instead of an answer", "instead of model.test", false},
		{"511", 511, "log in first", "log in first", "a login page", false},
		{"400 of a server that speaks TLS", 400, "Client sent an HTTP request to an HTTPS server.", "Client sent", "https://", false},
		{"503 with nothing", 503, "", "Service Unavailable", "", true},
		{"529 with a list", 529, `[{"error":{"message":["a","b"],"code":5}}]`, "a, b", "", true},
		{"the error is a string", 400, `{"error":"bad"}`, "bad", "", false},
		{"the error has no message", 400, `{"error":{}}`, `{"error":{}}`, "", false},
		{"204", 204, "", "the answer is not a stream", "base URL", false},
		{"304", 304, "", "it redirects to another address", "base URL", false},
		{"a long message is cut", 400, strings.Repeat("é", 1000), strings.Repeat("é", 499) + "…", "", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			model := New(provider.Options{APIKey: llmtest.APIKey, BaseURL: "http://model.test/v1", Model: "m", HTTPClient: &http.Client{
				Transport: roundTrip(func(*http.Request) (*http.Response, error) {
					return &http.Response{StatusCode: tt.status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(tt.body))}, nil
				}),
			}})
			got := failure(t, model)
			if got.Status != tt.status || got.Retryable != tt.retryable || !strings.HasPrefix(got.Message, tt.message) ||
				!strings.Contains(got.Hint, tt.hint) || tt.hint == "" && got.Hint != "" {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestTheHintSaysThatNoKeyIsSet(t *testing.T) {
	got := failure(t, New(provider.Options{KeySource: "XAI_API_KEY", BaseURL: "http://model.test/v1", Model: "m", HTTPClient: &http.Client{
		Transport: roundTrip(func(*http.Request) (*http.Response, error) { return respond(401, ""), nil }),
	}}))
	if !strings.Contains(got.Hint, "no API key is set") || !strings.Contains(got.Hint, "XAI_API_KEY") {
		t.Errorf("got %+v", got)
	}
}

func failure(t *testing.T, model *Model) *llm.ProviderError {
	t.Helper()
	_, err := llmtest.Collect(t.Context(), t, model, llm.Request{Messages: []llm.Message{say(llm.User, "hello")}})
	got, ok := errors.AsType[*llm.ProviderError](err)
	if !ok {
		t.Fatalf("got the error %v, want a *llm.ProviderError", err)
	}
	return got
}

func TestADateInAnAnswerIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // it is midnight of 1 January 2000
		got := failure(t, New(withModel(scriptedServer(t, `{"status":503,"headers":{"Retry-After":"Sat, 01 Jan 2000 00:01:00 GMT"}}`))))
		if got.RetryAfter != time.Minute {
			t.Errorf("got %v", got.RetryAfter)
		}
	})
}

func withModel(opts provider.Options) provider.Options {
	opts.Model = "m"
	return opts
}

func TestTheKeyStaysOutOfErrors(t *testing.T) {
	key := llmtest.APIKey
	half := strings.Repeat("x", 490) + key // the cut would leave half of it
	answers := map[string]func() (*http.Response, error){
		"in a message": func() (*http.Response, error) {
			return respond(401, `{"error":{"message":"`+key+`","code":"`+key+`"}}`), nil
		},
		"at the cut":       func() (*http.Response, error) { return respond(401, `{"error":{"message":"`+half+`"}}`), nil },
		"in a text":        func() (*http.Response, error) { return respond(500, "Authorization: Bearer "+key), nil },
		"escaped":          func() (*http.Response, error) { return respond(401, `{"error":"\u0073`+key[1:]+`"}`), nil },
		"between controls": func() (*http.Response, error) { return respond(401, "\x00"+key+"\x1b"), nil },
		"in an event": func() (*http.Response, error) {
			return respond(200, stream(`{"error":{"message":"`+key+`","type":"`+key+`"}}`)), nil
		},
		"in garbage":              func() (*http.Response, error) { return respond(200, "data: "+key+"\n\n"), nil },
		"instead of a reply":      func() (*http.Response, error) { return respond(200, key), nil },
		"in the title of a page":  func() (*http.Response, error) { return respond(403, "<title>"+strings.Repeat("x", 70)+key), nil },
		"in the host of a header": func() (*http.Response, error) { return redirect("https://" + key + ".test/"), nil },
		"in a header":             func() (*http.Response, error) { return redirect("https://elsewhere.test/?key=" + key), nil },
		"from the transport":      func() (*http.Response, error) { return nil, fmt.Errorf("malformed HTTP response %q", key) },
		"in the stream": func() (*http.Response, error) {
			return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(failing{errors.New("bad chunk " + key)})}, nil
		},
	}
	for name, answer := range answers {
		t.Run(name, func(t *testing.T) {
			model := New(provider.Options{APIKey: key, BaseURL: "http://model.test/v1", Model: "m", HTTPClient: &http.Client{
				Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
					if r.Header.Get("Authorization") != "Bearer "+key {
						t.Errorf("sent %v", r.Header)
					}
					return answer()
				}),
			}})
			got := failure(t, model)
			text := fmt.Sprintf("%+v %#v", *got, *got)
			for err := error(got); err != nil; err = errors.Unwrap(err) {
				text += err.Error()
			}
			if strings.Contains(text, key[:len(key)-4]) {
				t.Errorf("the key is in %s", text)
			}
			if text := fmt.Sprintf("%v %+v %#v %s", model, model, model, model.Options); strings.Contains(text, key) {
				t.Errorf("the key is in the model's text: %s", text)
			}
		})
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func respond(status int, body string) *http.Response {
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}
}

func redirect(to string) *http.Response {
	r := respond(http.StatusTemporaryRedirect, "")
	r.Header.Set("Location", to)
	return r
}

// real sends requests to servers on loopback.
var real = &http.Client{Transport: http.DefaultTransport}

func TestRedirectsAreRefused(t *testing.T) {
	asked := 0
	thief := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ }))
	defer thief.Close()
	front := httptest.NewServer(http.RedirectHandler(thief.URL, http.StatusTemporaryRedirect))
	defer front.Close()
	got := failure(t, New(provider.Options{APIKey: llmtest.APIKey, BaseURL: front.URL + "/v1", Model: "m", HTTPClient: real}))
	if got.Status != 307 || got.Retryable || !strings.Contains(got.Message, "refused") {
		t.Errorf("got %+v", got)
	}
	if asked != 0 {
		t.Errorf("the other server was asked %d times", asked)
	}
}

// TestBaseURLsAsPeopleCopyThem checks that an unambiguous URL works, and that others are
// explained.
func TestBaseURLsAsPeopleCopyThem(t *testing.T) {
	for base, want := range map[string]string{
		"http://model.test/v1":                                               "http://model.test/v1/chat/completions",
		"http://model.test/v1//":                                             "http://model.test/v1/chat/completions",
		"http://model.test/v1/chat/completions/":                             "http://model.test/v1/chat/completions",
		"http://model.test/v1/completions#create":                            "http://model.test/v1/chat/completions",
		"http://model.test/openai/deployments/d/?api-version=2024-10-21":     "http://model.test/openai/deployments/d/chat/completions?api-version=2024-10-21",
		"http://model.test/x/chat/completions?api-version=2024-10-21#create": "http://model.test/x/chat/completions?api-version=2024-10-21",
		"http://model.test/models?api-version=1":                             "http://model.test/models/chat/completions?api-version=1",
		"http://model.test":                                                  "http://model.test/chat/completions; most servers want a base URL that ends in /v1: http://model.test/v1",
		"http://model.test/api/":                                             "http://model.test/api/chat/completions; most servers want a base URL that ends in /v1: http://model.test/api/v1",
		"http://model.test/v1/responses":                                     "use --provider openai-responses, or write http://model.test/v1 as the base URL",
		"http://model.test/v1/messages/":                                     "use --provider anthropic, or write http://model.test/v1 as the base URL",
	} {
		asked := ""
		got := failure(t, New(provider.Options{BaseURL: base, Model: "m", HTTPClient: &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			asked += r.URL.String()
			return respond(404, "404 page not found"), nil
		})}}))
		if asked == "" {
			asked = got.Hint
		} else if _, likely, found := strings.Cut(got.Hint, "come from"); found {
			asked += likely
		}
		if asked != want {
			t.Errorf("%s: got %s, want %s", base, asked, want)
		}
	}
}

func TestConnectionsThatFail(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	untrusted := httptest.NewUnstartedServer(http.NotFoundHandler())
	untrusted.Config.ErrorLog = log.New(io.Discard, "", 0)
	untrusted.StartTLS()
	defer untrusted.Close()
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	dialError := func(err error) *http.Client {
		return &http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return nil, err }}}
	}
	refused := func() error { _, err := net.Dial("tcp", closed.Addr().String()); return err }()
	if refused == nil {
		t.Fatal("something listens at a port that was free")
	}
	tests := []struct {
		name      string
		base      string
		client    *http.Client
		message   string
		hint      string
		retryable bool
	}{
		{"refused by this machine", "http://" + closed.Addr().String() + "/v1", real, "was refused", "the server is not running", false},
		{"refused by another", "http://model.test/v1", dialError(refused), "was refused", "", true},
		{"a name that does not exist", "http://model.test/v1", dialError(&net.DNSError{Err: "no such host", Name: "model.test", IsNotFound: true}), "the host model.test does not exist", "base URL", false},
		{"a resolver that does not answer", "http://model.test/v1", dialError(&net.DNSError{Err: "timeout", IsTimeout: true}), "timeout", "", true},
		{"https to a server without it", strings.Replace(plain.URL, "http:", "https:", 1), real, "does not speak https", "http://", false},
		{"a refusal by policy", "http://model.test/v1", dialError(fmt.Errorf("no connection to model.test: %w", fs.ErrPermission)), "no connection to model.test", "", false},
		{"http to a server with TLS", strings.Replace(untrusted.URL, "https:", "http:", 1), real, "an HTTP request to an HTTPS server", "https://", false},
		{"what the way to the server knows, for good", "http://model.test/v1", dialError(&services.Error{Kind: services.Connect, Err: refused, Hint: "name another proxy", Final: true}), "connection refused", "name another proxy", false},
		{"what it knows of this moment", "http://model.test/v1", dialError(&services.Error{Kind: services.DNS, Err: errors.New("no such host"), Hint: "name a proxy"}), "no such host", "name a proxy", true},
		{"a connection that breaks", "http://model.test/v1", dialError(io.ErrUnexpectedEOF), "ended before an answer", "", true},
		{"no scheme", "localhost:11434", real, "base URL", "base URL", false},
		{"another scheme", "ftp://model.test", real, "base URL", "base URL", false},
		{"no host", "https://", real, "base URL", "base URL", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := failure(t, New(provider.Options{Name: "test", BaseURL: tt.base, Model: "m", HTTPClient: tt.client}))
			if got.Provider != "test" || got.Retryable != tt.retryable || !strings.Contains(got.Message, tt.message) ||
				!strings.Contains(got.Hint, tt.hint) || tt.hint == "" && got.Hint != "" {
				t.Errorf("got %+v", got)
			}
			if _, ok := errors.AsType[*url.Error](got.Err); ok {
				t.Errorf("the URL is in the cause: %v", got.Err)
			}
		})
	}
}

func TestOptionsThatCannotWork(t *testing.T) {
	tests := []struct {
		name string
		opts provider.Options
		want string
	}{
		{"no model", provider.Options{}, "no model is named"},
		{"a key with a line end", provider.Options{Model: "m", APIKey: "sk-secret\n"}, "the API key holds"},
		{"a model that takes no tools", provider.Options{Model: "gpt-6-astra"}, "only in the Responses API"},
		{"reasoning that was asked for, which it cannot have with tools", provider.Options{Model: "gpt-6-sol", ReasoningEffort: "low"}, "only in the Responses API"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.opts.HTTPClient = &http.Client{Transport: roundTrip(func(*http.Request) (*http.Response, error) {
				t.Error("a request was sent")
				return nil, io.EOF
			})}
			req := llmtest.Request()
			req.Model = ""
			_, err := llmtest.Collect(t.Context(), t, New(tt.opts), req)
			got, ok := errors.AsType[*llm.ProviderError](err)
			if !ok || got.Retryable || got.Hint == "" || !strings.Contains(got.Message, tt.want) || strings.Contains(got.Message, "sk-secret") {
				t.Errorf("got %+v", err)
			}
		})
	}
}
