package door

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stockade-dev/stockade/host/llm/provider"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/policy/network"
)

// under is a door with an administrator's list of hosts.
func under(hosts ...string) *Door {
	return New(Options{Layers: []policy.Layer{{Source: policy.SourceAdmin, Ceiling: policy.Ceiling{
		Hosts: []policy.List{{Values: hosts, From: policy.From{Source: policy.SourceAdmin, Origin: "policy.toml: network.hosts"}}},
	}}}})
}

// get asks a provider through the client that it has.
func get(d *Door, opts provider.Options, rules ...network.Rule) (string, error) {
	if err := d.reach(&opts, rules); err != nil {
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
	if denial, _ := errors.AsType[*network.Denial](err); denial == nil || denial.Grant != nil || !strings.Contains(err.Error(), "not on the administrator's list") {
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
		found, err := c.door.Try(t.Context(), c.of)
		e, _ := errors.AsType[*ModelError](err)
		if got := fmt.Sprint(found); got != c.want || (c.fault < 0) != (err == nil) || err != nil && (e == nil || e.Fault != c.fault) {
			t.Errorf("%s: got %s, %v", name, got, err)
		}
	}
	if len(asked) != 1 || asked[0] != "GET /v1/models" {
		t.Errorf("the server was asked %q", asked)
	}
}
