package main

import (
	"bufio"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stockade-dev/stockade/host/config"
	"github.com/stockade-dev/stockade/host/egress"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/policy/network"
	"github.com/stockade-dev/stockade/host/services"
	"github.com/stockade-dev/stockade/host/settings"
	"github.com/stockade-dev/stockade/host/tool"
)

// netApp is an app whose configuration says this of the network.
func netApp(t *testing.T, change func(*config.Network)) *app {
	t.Helper()
	home := t.TempDir()
	a := &app{s: &stdio{out: io.Discard, err: io.Discard, env: func(name string) string { return map[string]string{"HOME": home}[name] }}, Settings: settings.Settings{Config: config.Default()}}
	dirs, err := settings.FindDirs(a.s.env)
	if err != nil {
		t.Fatal(err)
	}
	a.Dirs = dirs
	change(&a.Config.Network)
	return a
}

func ask(t *testing.T, a *app, url string) (string, error) {
	t.Helper()
	out, err := a.egress()
	if err != nil {
		return "", err
	}
	network, err := egress.ProviderNetwork(url, nil)
	if err != nil {
		return "", err
	}
	resp, err := out.Client(network).Get(url)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return string(body), err
}

func TestAuthoritiesOfTheConfigurationAreTrusted(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { fmt.Fprint(rw, "model") }))
	defer server.Close()
	if got, err := ask(t, netApp(t, func(*config.Network) {}), server.URL); services.KindOf(err) != services.TLS {
		t.Errorf("without the authority: %q, %v", got, err)
	}
	a := netApp(t, func(n *config.Network) { n.CAFiles = []string{"~/ca.pem"} })
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(filepath.Join(a.s.env("HOME"), "ca.pem"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := ask(t, a, server.URL); err != nil || got != "model" {
		t.Errorf("with the authority: %q, %v", got, err)
	}
}

func TestTheProxyOfTheConfigurationIsUsed(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	asked := make(chan string, 1)
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		req, err := http.ReadRequest(bufio.NewReader(conn))
		if err == nil {
			asked <- req.Method + " " + req.RequestURI
			fmt.Fprint(conn, "HTTP/1.1 403 No\r\n\r\n")
		}
	}()
	a := netApp(t, func(n *config.Network) { n.Proxy, n.ProxyResolves = "http://"+l.Addr().String(), true })
	if got, err := ask(t, a, "https://api.example/v1"); services.KindOf(err) != services.Connect {
		t.Errorf("%q, %v", got, err)
	}
	if got := <-asked; got != "CONNECT api.example:443" {
		t.Errorf("the proxy was asked for %q", got)
	}
}

func TestTheConfigurationIsTheNetworkOfTools(t *testing.T) {
	a := netApp(t, func(n *config.Network) {
		n.Allow, n.Deny = []string{"a.example", "*.b.example:8443"}, []string{"x.b.example"}
		n.Timeout, n.MaxRequests, n.MaxResponse = 3*time.Second, 4, 5000
	})
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	here := "http://" + closed.Addr().String()
	a.flags.allowNet = []string{here}
	catalog, err := tool.NewCatalog(nil)
	if err != nil {
		t.Fatal(err)
	}
	p, err := a.newPolicy(catalog, nil)
	if err != nil {
		t.Fatal(err)
	}
	if l := p.Limits(); l.HTTPTimeout != 3*time.Second || l.HTTPRequests != 4 || l.HTTPResponseBytes != 5000 {
		t.Errorf("the limits are %+v", l)
	}
	schema, err := tool.CompileSchema([]byte(`{"type":"object"}`))
	if err != nil {
		t.Fatal(err)
	}
	entry := &tool.Entry{Spec: tool.Spec{Definition: tool.Definition{Name: "get"}, Capabilities: tool.Capabilities{Network: tool.NetworkHTTP}},
		Schema: schema, Module: &tool.Module{}}
	grant, err := p.Decide(tool.Call{Tool: "get", Args: []byte("{}")}, entry, policy.Facts{}).Approve(policy.Answer{Allow: true}, 1)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(grant.Network().Rules(), " "); got != "a.example *.b.example:8443 "+here+" not x.b.example" {
		t.Errorf("the network is %s", got)
	}
	// And what a guest gets to know of each failure.
	for url, want := range map[string]services.Kind{
		"https://c.example/": services.Denied, "ftp://a.example/": services.Invalid, here: services.Connect,
	} {
		_, err := a.door().SandboxOptions().Services.HTTP.Fetch(t.Context(), grant, services.Request{Method: "GET", URL: url})
		if services.KindOf(err) != want {
			t.Errorf("%s: %v, want kind %d", url, err, want)
		}
	}
	a = netApp(t, func(n *config.Network) { n.CAFiles = []string{"/nowhere"} })
	_, err = a.door().SandboxOptions().Services.HTTP.Fetch(t.Context(), grant, services.Request{Method: "GET", URL: "https://a.example/"})
	if services.KindOf(err) != services.Denied || !strings.Contains(err.Error(), "/nowhere") {
		t.Errorf("with a configuration that is wrong: %v", err)
	}
}

// under puts an administrator's list of hosts on top of an app.
func under(a *app, hosts ...string) *app {
	a.Layers = []policy.Layer{{Source: policy.SourceAdmin, Ceiling: policy.Ceiling{
		Hosts: []policy.List{{Values: hosts, From: policy.Provenance{Source: policy.SourceAdmin, Origin: "policy.toml: network.hosts"}}},
	}}}
	a.Ceiling = policy.Combine(a.Layers)
	return a
}

func TestTheAdministratorsHostsHoldForGuests(t *testing.T) {
	a := under(netApp(t, func(n *config.Network) { n.Allow = []string{"a.example", "b.example"} }), "a.example")
	a.flags.allowNet = []string{"c.example", "http://127.0.0.1:8080"}
	catalog, err := tool.NewCatalog(nil)
	if err != nil {
		t.Fatal(err)
	}
	p, err := a.newPolicy(catalog, nil)
	if err != nil {
		t.Fatal(err)
	}
	schema, err := tool.CompileSchema([]byte(`{"type":"object"}`))
	if err != nil {
		t.Fatal(err)
	}
	entry := &tool.Entry{Spec: tool.Spec{Definition: tool.Definition{Name: "get"}, Capabilities: tool.Capabilities{Network: tool.NetworkHTTP}},
		Schema: schema, Module: &tool.Module{}}
	grant, err := p.Decide(tool.Call{Tool: "get", Args: []byte("{}")}, entry, policy.Facts{}).Approve(policy.Answer{Allow: true}, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := grant.Network().Decide("a.example", 443, network.HTTPS).Err(); err != nil {
		t.Error(err)
	}
	for _, url := range []string{"https://b.example/", "https://c.example/", "http://127.0.0.1:8080/"} {
		_, err := a.door().SandboxOptions().Services.HTTP.Fetch(t.Context(), grant, services.Request{Method: "GET", URL: url})
		if services.KindOf(err) != services.Denied || !strings.Contains(err.Error(), "administrator") {
			t.Errorf("%s: %v", url, err)
		}
	}
}

func TestWhatAToolAsksFor(t *testing.T) {
	for want, c := range map[string]tool.Capabilities{
		"nothing":                                {},
		"requests to the hosts that are allowed": {Network: tool.NetworkHTTP},
		"reading files in the mounted directories; requests to the hosts that are allowed": {Files: tool.FilesRead, Network: tool.NetworkHTTP},
		"requests to a.example, *.b.example":                                               {Network: tool.NetworkHTTP, Hosts: []string{"a.example", "*.b.example"}},
		`running the command in its argument "c"`:                                          {Exec: "c"},
	} {
		if got := capabilitiesText(c); got != want {
			t.Errorf("it asks for %q, want %q", got, want)
		}
	}
}
