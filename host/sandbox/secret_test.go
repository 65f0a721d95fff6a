package sandbox_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stockade-dev/stockade/host/egress"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/policy/network"
	"github.com/stockade-dev/stockade/host/sandbox"
	"github.com/stockade-dev/stockade/host/secret"
	"github.com/stockade-dev/stockade/host/services"
	"github.com/stockade-dev/stockade/host/tool"
)

// tables is the host function secrets over one secret.
type tables struct{ record secret.Record }

func (k tables) Placeholders(granted []tool.Secret) services.Placeholders {
	return secret.NewTable(granted, k.Get)
}

func (k tables) Get(context.Context, string) (secret.Record, error) { return k.record, nil }

// TestASecretGoesToItsServerOnly tests the whole path: a guest, the ABI, policy, the
// placeholders of the call, egress, servers.
func TestASecretGoesToItsServerOnly(t *testing.T) {
	const value = "only-for-one-server"
	var seen []string
	handler := func(name string) http.HandlerFunc {
		return func(rw http.ResponseWriter, r *http.Request) {
			seen = append(seen, name+r.URL.Path+" "+r.Header.Get("Authorization"))
			if to := r.URL.Query().Get("to"); to != "" {
				http.Redirect(rw, r, to, http.StatusTemporaryRedirect)
			}
		}
	}
	bound, other := httptest.NewServer(handler("bound")), httptest.NewServer(handler("other"))
	defer bound.Close()
	defer other.Close()
	out, err := egress.New(egress.Options{})
	if err != nil {
		t.Fatal(err)
	}
	keeper := tables{secret.Record{
		Info:  secret.Info{Name: "TOKEN", Hosts: []string{strings.TrimPrefix(bound.URL, "http://")}},
		Value: secret.NewValue(value),
	}}
	code, err := tck()
	if err != nil {
		t.Fatal(err)
	}
	mod := module(code)
	box := newBox(t, sandbox.Options{CacheDir: sharedCache, Services: services.Set{HTTP: out, Secrets: keeper}})
	var rules []network.Rule
	for _, server := range []*httptest.Server{bound, other} {
		rule, err := network.ParseRule(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		rules = append(rules, rule)
	}
	with := "Bearer " + value
	for _, c := range []struct {
		url, says string
		sees      []string
	}{
		{bound.URL + "/a", "", []string{"bound/a " + with}},
		{other.URL + "/b", "misplaced", nil},
		{bound.URL + "/c?to=/same", "", []string{"bound/c " + with, "bound/same "}},
		{bound.URL + "/d?to=" + other.URL + "/e", "", []string{"bound/d " + with, "other/e "}},
	} {
		seen = nil
		args := marshal(t, map[string]string{"fetch": c.url, "key": "k", "value": "v", "secret": "TOKEN", "command": "true"})
		dir := t.TempDir()
		r := granted(t, mod, ask{tool: "host", args: args, cwd: dir, mounts: []policy.Mount{{Host: dir}}, network: rules,
			caps: tool.Capabilities{Files: tool.FilesRead, Network: tool.NetworkHTTP, Secrets: []tool.Secret{{Name: "TOKEN"}}}}).mustRun(t, box)
		var got fetched
		if r.Err != nil || json.Unmarshal(r.Output, &got) != nil {
			t.Fatalf("%s %s", r.Output, r.Summary())
		}
		if fmt.Sprint(seen) != fmt.Sprint(c.sees) || !strings.Contains(got.Errors["fetch"], c.says) || (got.Fetch == nil) != (c.says != "") {
			t.Errorf("%s: the servers saw %q, want %q; the guest got %s", c.url, seen, c.sees, r.Output)
		}
		if bytes.Contains(r.Output, []byte(value)) {
			t.Errorf("%s: the guest has the value: %s", c.url, r.Output)
		}
	}
}
