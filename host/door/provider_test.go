package door

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stockade-dev/stockade/host/llm"
	"github.com/stockade-dev/stockade/host/llm/provider"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/policy/network"
	"github.com/stockade-dev/stockade/host/session"
)

// under returns a door with an administrator's list of hosts.
func under(hosts ...string) *Door {
	return New(Options{Layers: []policy.Layer{{Source: policy.SourceAdmin, Ceiling: policy.Ceiling{
		Hosts: []policy.List{{Values: hosts, From: policy.Provenance{Source: policy.SourceAdmin, Origin: "policy.toml: network.hosts"}}},
	}}}})
}

// get asks a provider through the client that it has.
func get(d *Door, opts provider.Options, rules ...network.Rule) (string, error) {
	if err := d.setHTTPClient(&opts, rules); err != nil {
		return "", err
	}
	resp, err := opts.HTTPClient.Get(opts.BaseURL)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return string(body), err
}

func TestTheAdministratorsHostsHoldForTheProvider(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { fmt.Fprint(rw, "model") }))
	defer server.Close()
	allowed, err := network.ParseRule(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		hosts []string
		want  bool
	}{{[]string{"127.0.0.1"}, true}, {[]string{"models.example"}, false}, {[]string{"127.0.0.2"}, false}, {nil, false}} {
		got, err := get(under(c.hosts...), provider.Options{BaseURL: server.URL}, allowed)
		if denial, _ := errors.AsType[*network.Denial](err); c.want != (err == nil) || !c.want && (denial == nil || denial.Source != string(policy.SourceAdmin)) {
			t.Errorf("under %q: %q, %v", c.hosts, got, err)
		}
	}
	name, err := network.ParseRule("api.example")
	if err != nil {
		t.Fatal(err)
	}
	got, err := get(under("models.example"), provider.Options{BaseURL: "https://api.example/v1"}, name)
	if denial, _ := errors.AsType[*network.Denial](err); denial == nil || denial.AllowRule != nil || !strings.Contains(err.Error(), "not on the administrator's list") {
		t.Errorf("a name: %q, %v", got, err)
	}
	// The offline model is this process.
	if got, err := get(under("models.example"), provider.Options{Name: ProviderOffline, BaseURL: server.URL}); err != nil || got != "model" {
		t.Errorf("the offline model: %q, %v", got, err)
	}
}

func TestTryingAProvider(t *testing.T) {
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.URL.Path)
		fmt.Fprint(rw, `{"data":[{"id":"small"}]}`)
	}))
	defer server.Close()
	at := provider.Options{BaseURL: server.URL + "/v1", Model: "small"}
	for name, c := range map[string]struct {
		door  *Door
		of    Provider
		want  string
		fault ModelFault
	}{
		"the offline model":           {New(Options{}), Provider{Name: ProviderAuto}, "{offline  []}", -1},
		"a server":                    {New(Options{}), Provider{Name: ProviderAuto, Client: at}, "{openai " + server.URL + "/v1 [small]}", -1},
		"no key":                      {New(Options{}), Provider{Name: ProviderOpenAI}, "{  []}", FaultKey},
		"no model":                    {New(Options{}), Provider{Name: ProviderOpenAI, Client: provider.Options{BaseURL: server.URL}}, "{  []}", FaultName},
		"one that nobody knows":       {New(Options{}), Provider{Name: "nobody"}, "{  []}", FaultProvider},
		"one that is not permitted":   {New(Options{Layers: []policy.Layer{{Ceiling: policy.Ceiling{Providers: []policy.List{{Values: []string{"offline"}}}}}}}), Provider{Name: ProviderOpenAI, Client: at}, "{  []}", FaultDenied},
		"an address that is no https": {New(Options{}), Provider{Name: ProviderOpenAI, Client: provider.Options{BaseURL: "ftp://x", Model: "m"}}, "{openai ftp://x []}", FaultAddress},
	} {
		found, err := c.door.Probe(t.Context(), c.of)
		e, _ := errors.AsType[*ModelError](err)
		if got := fmt.Sprintf("{%s %s %v}", found.Name, found.URL, found.Models); got != c.want || (c.fault < 0) != (err == nil) || err != nil && (e == nil || e.Fault != c.fault) {
			t.Errorf("%s: got %s, %v", name, got, err)
		}
	}
	if len(asked) != 1 || asked[0] != "GET /v1/models" {
		t.Errorf("the server was asked %q", asked)
	}
}

func TestTheUsualAddressMayStandInAListByItsName(t *testing.T) {
	const own = "https://api.openai.com/v1"
	at := func(lists ...[]string) *Door {
		var c policy.Ceiling
		for _, values := range lists {
			c.BaseURLs = append(c.BaseURLs, policy.List{Values: values, From: policy.Provenance{Source: policy.SourceAdmin, Origin: "policy.toml"}})
		}
		return New(Options{Layers: []policy.Layer{{Source: policy.SourceAdmin, Ceiling: c}}})
	}
	for name, c := range map[string]struct {
		door *Door
		base string
		want string
	}{
		"no list":                           {at(), "", ""},
		"by no name":                        {at([]string{""}), "", ""},
		"by its name":                       {at([]string{own}), "", ""},
		"in words where the list has none":  {at([]string{""}), own, ""},
		"in both forms":                     {at([]string{""}, []string{own}), "", ""},
		"that of another one":               {at([]string{"https://api.x.ai/v1"}), "", "the provider's own address, https://api.openai.com/v1, is not permitted: administrator policy.toml"},
		"in one list and not in the other":  {at([]string{own}, []string{"https://llm.example"}), "", "the provider's own address, https://api.openai.com/v1, is not permitted: administrator policy.toml"},
		"an empty list":                     {at([]string{}), own, "the provider's own address, https://api.openai.com/v1, is not permitted: administrator policy.toml"},
		"another address, where the own is": {at([]string{"", own}), "https://llm.example", `the address "https://llm.example" of the provider is not permitted: administrator policy.toml`},
	} {
		_, err := c.door.ResolveProvider(Provider{Name: ProviderOpenAI, Client: provider.Options{BaseURL: c.base, APIKey: "k", Model: "m"}})
		if got := fmt.Sprint(err); got != c.want && (c.want != "" || err != nil) {
			t.Errorf("%s: got %s", name, got)
		}
	}
}

func TestAnOllamaIsFoundWhereItMayBeAsked(t *testing.T) {
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		asked++
		fmt.Fprint(rw, `{"models":[{"name":"qwen3:8b"}]}`)
	}))
	defer server.Close()
	env := func(string) string { return strings.TrimPrefix(server.URL, "http://") }
	denied, err := network.ParseDenial("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		door  *Door
		rules []network.Rule
		want  string
		asked int
	}{
		"it is there":                              {New(Options{}), nil, "{ollama " + server.URL + " [qwen3:8b]} true", 1},
		"its provider is not permitted":            {New(Options{Layers: []policy.Layer{{Ceiling: policy.Ceiling{Providers: []policy.List{{Values: []string{"offline"}}}}}}}), nil, "{  []} false", 0},
		"its host is not permitted":                {under("models.example"), nil, "{ollama " + server.URL + " []} false", 0},
		"its host is one that the person does not": {New(Options{}), []network.Rule{denied}, "{ollama " + server.URL + " []} false", 0},
	} {
		asked = 0
		found, ok := c.door.FindOllama(t.Context(), env, c.rules)
		if got := fmt.Sprintf("{%s %s %v} %v", found.Name, found.URL, found.Models, ok); got != c.want || asked != c.asked {
			t.Errorf("%s: got %s, asked %d times", name, got, asked)
		}
	}
}

func TestASessionGoesOnWithAnotherProvider(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "Bearer of-the-first" {
			rw.WriteHeader(http.StatusPaymentRequired)
			return
		}
		rw.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(rw, "data: {\"choices\":[{\"delta\":{\"content\":\"Hello.\"},\"finish_reason\":\"stop\"}]}\n\ndata: {\"choices\":[],\"usage\":{\"prompt_tokens\":1000000}}\n\ndata: [DONE]\n\n")
	}))
	defer server.Close()
	at := func(profile, key string, price float64) Provider {
		return Provider{Name: "openai", Profile: profile, Attempts: 1, Price: &llm.Price{Input: price}, Client: provider.Options{BaseURL: server.URL, APIKey: key, Model: profile + "-model"}}
	}
	_, opts := work(t)
	opts.Provider = &Provider{Name: ProviderOffline}
	var said []string
	d := New(Options{Note: func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) }})
	s := open(t, d, opts)
	turn := func() {
		t.Helper()
		for _, err := range s.Run(t.Context(), "hello") {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	turn()
	if err := s.Use(at("second", "of-the-second", 2)); err != nil {
		t.Fatal(err)
	}
	turn()
	if e, ok := errors.AsType[*ModelError](s.Use(Provider{Name: "anthropic"})); !ok || e.Fault != FaultKey || s.Provider != "openai" {
		t.Errorf("one without a key: %v, %s", e, s.Provider)
	}
	first := at("first", "of-the-first", 1)
	first.Fallback = []Provider{{Name: "xai", Profile: "keyless"}, at("third", "of-the-third", 3)}
	if err := s.Use(first); err != nil {
		t.Fatal(err)
	}
	turn()

	st, err := d.Store(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for e, err := range st.Events(t.Context(), s.Log.ID(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		switch e.Type {
		case session.TypeTurnStarted:
			var b session.TurnStarted
			if err := json.Unmarshal(e.Body, &b); err != nil {
				t.Fatal(err)
			}
			got = append(got, strings.TrimSpace(b.Provider+" "+b.Model))
		case session.TypeStepEnded:
			var b session.StepEnded
			if err := json.Unmarshal(e.Body, &b); err != nil {
				t.Fatal(err)
			}
			cost := 0.0
			if b.Cost != nil {
				cost = *b.Cost
			}
			got = append(got, fmt.Sprintf("[%s %s $%v]", b.Provider, b.Model, cost))
		}
	}
	if got, want := strings.Join(got, " "), "offline [  $0] openai second-model [  $2] openai first-model [openai third-model $3]"; got != want {
		t.Errorf("the log has %s\nwant %s", got, want)
	}
	if want := "warning: keyless cannot be asked where first fails: no API key: XAI_API_KEY is not set"; len(said) != 1 || said[0] != want {
		t.Errorf("said %q", said)
	}
}

// TestBaseURLsOfEachProvider: a base URL may end in the path that requests add, its query
// stays, and the provider's own host needs no path.
func TestBaseURLsOfEachProvider(t *testing.T) {
	for _, c := range []struct{ provider, base, asked string }{
		{"openai", "https://api.openai.com", "https://api.openai.com/v1/chat/completions"},
		{"openai", "https://other.example/", "https://other.example/chat/completions"},
		{"openai-responses", "https://api.openai.com/v1/responses?api-version=1#x", "https://api.openai.com/v1/responses?api-version=1"},
		{"meta", "https://api.llama.com/compat/", "https://api.llama.com/compat/v1/chat/completions"},
		{"anthropic", "https://a.example/x/v1/messages?api-version=1", "https://a.example/x/v1/messages?api-version=1"},
		{"google", "https://g.example/v1beta/?api-version=1", "https://g.example/v1beta/models/m:streamGenerateContent?api-version=1&alt=sse"},
		{"ollama", "http://o.example:11434/api/chat", "http://o.example:11434/api/show"},
		{"ollama", "http://o.example:11434/v1/chat/completions", "http://o.example:11434/api/show"},
	} {
		p := Provider{Name: c.provider, Client: provider.Options{BaseURL: c.base, APIKey: "key-of-the-test", Model: "m"}}
		chosen, err := New(Options{}).ResolveProvider(p)
		if err != nil {
			t.Errorf("%s: %v", c.base, err)
			continue
		}
		var asked []string
		chosen.Client.HTTPClient = &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
			asked = append(asked, r.URL.String())
			return nil, io.ErrUnexpectedEOF
		})}
		kind, _ := ProviderKindOf(c.provider)
		for _, err = range kind.client(chosen.Client).Stream(t.Context(), llm.Request{Messages: []llm.Message{{Kind: llm.User, Content: "hello"}}}) {
		}
		if len(asked) == 0 || asked[len(asked)-1] != c.asked {
			t.Errorf("%s at %s asked for %q (%v), want %s", c.provider, c.base, asked, err, c.asked)
		}
	}
}

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
