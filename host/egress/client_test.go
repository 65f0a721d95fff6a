package egress

import (
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/stockade-dev/stockade/host/policy/network"
	"github.com/stockade-dev/stockade/host/services"
)

func provider(t *testing.T, base string, texts ...string) *network.Network {
	t.Helper()
	n, err := ProviderNetwork(base, rules(t, texts...))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestTheProvidersClient(t *testing.T) {
	trap := newTrap(t)
	w := newWorld(t, names(map[string][]string{
		"api.example": {public}, "private.example": {"192.168.0.1"}, "metadata.example": {"169.254.169.254"}, "local.example": {"127.0.0.1"},
	}))
	handler := func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/away" {
			http.Redirect(rw, r, "http://"+trap.Addr().String()+"/", http.StatusTemporaryRedirect)
			return
		}
		fmt.Fprint(rw, "model")
	}
	w.wires.plug(public+":443", secure(t, handler, "api.example").Listener.Addr())
	ollama := plain(t, handler)
	_, port, _ := strings.Cut(ollama.Listener.Addr().String(), ":")

	ask := func(n *network.Network, url string) (string, error) {
		resp, err := w.Client(n).Get(url)
		if err != nil {
			return "", err
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		return fmt.Sprint(resp.StatusCode, " ", string(body)), err
	}
	for base, url := range map[string]string{
		"https://api.example/v1":            "https://api.example/v1/chat",
		"http://localhost:" + port + "/v1":  "http://localhost:" + port + "/v1/chat",
		"http://127.0.0.1:" + port + "/v1":  "http://127.0.0.1:" + port + "/v1/chat",
		"http://local.example:" + port + "": "http://LOCAL.example.:" + port + "/v1/chat",
	} {
		if got, err := ask(provider(t, base), url); err != nil || got != "200 model" {
			t.Errorf("%s: %q, %v", base, got, err)
		}
	}
	api := provider(t, "https://api.example/v1", "other.example", "http://api.example", "http://"+trap.Addr().String())
	if got, err := ask(api, "https://api.example/away"); err != nil || !strings.HasPrefix(got, "307 ") {
		t.Errorf("a redirect: %q, %v", got, err)
	}
	for _, url := range []string{"https://other.example/", "http://api.example/", "https://api.example:8443/", "https://api.example@127.0.0.1/", "file:///etc/passwd"} {
		if got, err := ask(api, url); err == nil {
			t.Errorf("%s: %q", url, got)
		}
	}
	for base, want := range map[string]string{
		"https://private.example": "private (192.168.0.0/16)", "https://metadata.example": "metadata",
	} {
		if _, err := ask(provider(t, base), base); denialOf(err) == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", base, err)
		}
	}
	if _, err := ask(provider(t, "https://private.example", "192.168.0.0/24"), "https://private.example"); services.KindOf(err) != services.Connect {
		t.Errorf("a private network that is granted: %v", err)
	}
	admin := api.Restrict("administrator", rules(t, "models.example"))
	if _, err := ask(admin, "https://api.example/v1"); denialOf(err) == nil || !strings.Contains(err.Error(), "administrator") {
		t.Errorf("a provider that is not on the administrator's list: %v", err)
	}
	for _, base := range []string{"api.example", "ftp://api.example", "https://", "https://a@b", "http://127.1/"} {
		if n, err := ProviderNetwork(base, nil); err == nil {
			t.Errorf("%s is a provider: %v", base, n)
		}
	}
}

func TestTheProvidersConnectionIsUsedAgain(t *testing.T) {
	w := newWorld(t, names(map[string][]string{"api.example": {public}}))
	w.wires.plug(public+":80", plain(t, func(http.ResponseWriter, *http.Request) {}).Listener.Addr())
	client := w.Client(provider(t, "http://api.example"))
	for range 3 {
		resp, err := client.Get("http://api.example/")
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
	if got := w.wires.all(); len(got) != 1 || got[0] != netip.MustParseAddrPort(public+":80") {
		t.Errorf("connections to %v", got)
	}
	client.CloseIdleConnections()
}
