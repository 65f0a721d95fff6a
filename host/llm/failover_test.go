package llm

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"net"
	"strings"
	"syscall"
	"testing"
)

// asked is a model that records the names of the requested models.
type asked struct {
	attempts
	names []string
}

func (m *asked) Stream(ctx context.Context, req Request) iter.Seq2[Delta, error] {
	m.names = append(m.names, req.Model)
	return m.attempts.Stream(ctx, req)
}

func TestFailover(t *testing.T) {
	down := &ProviderError{Provider: "test", Status: 503, Message: "down", Retryable: true}
	badRequest := &ProviderError{Provider: "test", Status: 400, Message: "bad"}
	prompt, result := Message{Kind: User, Content: "go"}, Message{Kind: ToolResult, Content: "done"}
	type step struct {
		messages []Message
		want     string
	}
	for name, c := range map[string]struct {
		first, second, third [][]any
		steps                []step
		asked                string // of each, the models
	}{
		"nothing fails": {[][]any{{"a"}}, nil, nil, []step{{[]Message{prompt}, "a."}}, "[big] [] []"},
		"the first fails, and the second answers to the end of the turn": {
			[][]any{{"half", error(down)}, {"a"}}, [][]any{{"b"}}, nil,
			[]step{{[]Message{prompt}, "half<down: two>b."}, {[]Message{prompt, result, BriefMessage(CallAsText, "no call")}, "b."}, {[]Message{prompt, result, prompt}, "a."}}, "[big big] [small small] []"},
		"all fail": {
			[][]any{{error(down)}}, [][]any{{error(down)}}, [][]any{{error(busy(0))}},
			[]step{{[]Message{prompt}, "<down: two><down: three>!test: busy"}, {[]Message{prompt, result}, "!test: busy"}}, "[big] [small] [smallest smallest]"},
		"the request is at fault": {[][]any{{error(badRequest)}}, nil, nil, []step{{[]Message{prompt}, "!test answered 400: bad"}}, "[big] [] []"},
		"we are at fault":         {[][]any{{errors.New("no memory")}}, nil, nil, []step{{[]Message{prompt}, "!no memory"}}, "[big] [] []"},
	} {
		first, second, third := &asked{attempts: attempts{answers: c.first}}, &asked{attempts: attempts{answers: c.second}}, &asked{attempts: attempts{answers: c.third}}
		model := Failover(first, []Alternative{{Profile: "two", Name: "small", Model: second}, {Profile: "three", Name: "smallest", Model: third}})
		for i, s := range c.steps {
			var got strings.Builder
			for d, err := range model.Stream(t.Context(), Request{Model: "big", Messages: s.messages}) {
				switch {
				case err != nil:
					fmt.Fprintf(&got, "!%v", err)
				case d.Restart != nil:
					fmt.Fprintf(&got, "<%s: %s>", d.Restart.Err.Message, d.Restart.Alternative.Profile)
				case d.Finish != "":
					got.WriteString(".")
				default:
					got.WriteString(d.Text)
				}
			}
			if got.String() != s.want {
				t.Errorf("%s: step %d: got %s, want %s", name, i+1, &got, s.want)
			}
		}
		if got := fmt.Sprint(first.names, second.names, third.names); got != c.asked {
			t.Errorf("%s: asked %s, want %s", name, got, c.asked)
		}
	}

	// A consumer that stops, or an interrupted request, asks no other model.
	second := &asked{attempts: attempts{answers: [][]any{{"b"}}}}
	model := Failover(&asked{attempts: attempts{answers: [][]any{{error(down)}}}}, []Alternative{{Model: second}})
	for range model.Stream(t.Context(), Request{}) {
		break
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, err := range model.Stream(ctx, Request{}) {
		if err == nil {
			t.Error("an interrupted request went elsewhere")
		}
	}
	if second.calls > 0 {
		t.Errorf("the second was asked %d times", second.calls)
	}
}

func TestWhatMaySucceedElsewhere(t *testing.T) {
	refused := &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	for name, c := range map[string]struct {
		of   ProviderError
		want bool
	}{
		"one that may succeed later":            {ProviderError{Retryable: true}, true},
		"too many requests":                     {ProviderError{Status: 429}, true},
		"an account without credit":             {ProviderError{Status: 402}, true},
		"a quota that is used up":               {ProviderError{Status: 403, Code: "insufficient_quota"}, true},
		"one that is overloaded":                {ProviderError{Status: 529, Code: "overloaded_error"}, true},
		"a server that does not run":            {ProviderError{Err: refused}, true},
		"a name that there is not":              {ProviderError{Err: fmt.Errorf("look up: %w", &net.DNSError{IsNotFound: true})}, true},
		"a proxy that refuses":                  {ProviderError{Err: fmt.Errorf("ask the proxy: %w", syscall.EHOSTUNREACH)}, true},
		"a request that nobody would take":      {ProviderError{Status: 400}, false},
		"a key that is wrong":                   {ProviderError{Status: 401}, false},
		"a model that there is not":             {ProviderError{Status: 404}, false},
		"a host that the administrator forbids": {ProviderError{Err: fs.ErrPermission}, false},
		"what was forbidden when it was dialed": {ProviderError{Err: &net.OpError{Op: "dial", Err: fs.ErrPermission}}, false},
		"an answer that is no stream":           {ProviderError{Status: 200, Message: "a web page"}, false},
		"a conversation that does not fit":      {ProviderError{Status: 500, Code: ContextExceeded}, false},
		"a certificate that is not trusted":     {ProviderError{Message: "x509"}, false},
	} {
		if got := c.of.CanFailOver(); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
