package tool

import (
	"fmt"
	"strings"
	"testing"
)

func TestWhatIsAskedForDependsOnWhatIsConfigured(t *testing.T) {
	const manifest = `{"abi":"x","name":"web","config":{"engine":"plain","url":"https://plain.example/q"},"tools":[{"name":"find","description":"d","parameters":{"type":"object"},` +
		`"capabilities":{"network":"http","hosts_of":["url"],"secrets":[{"name":"KEY","header":"X-Key","when":"engine=paid"},{"name":"ALWAYS"}]}},` +
		`{"name":"get","description":"d","parameters":{"type":"object"},"capabilities":{"network":"http"}}]}`
	parsed := func(origin Origin) *Catalog {
		m, err := ParseManifest([]byte(manifest))
		if err != nil {
			t.Fatal(err)
		}
		c, err := NewCatalog(map[*Module]Manifest{{Name: "web", Origin: origin}: m})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	set := func(values map[string]string) map[string]map[string]string {
		return map[string]map[string]string{"web": values}
	}
	for name, c := range map[string]struct {
		origin Origin
		values map[string]map[string]string
		want   string
	}{
		"nothing is set":                 {OriginBuiltin, nil, "network=http hosts=plain.example secret=ALWAYS"},
		"another engine":                 {OriginBuiltin, set(map[string]string{"engine": "paid", "url": "https://API.paid.example:443/v1"}), "network=http hosts=api.paid.example secret=ALWAYS secret=KEY in the header X-Key"},
		"another port":                   {OriginBuiltin, set(map[string]string{"url": "https://plain.example:8443/"}), "network=http hosts=plain.example:8443 secret=ALWAYS"},
		"http":                           {OriginBuiltin, set(map[string]string{"url": "http://127.0.0.1:8080/q"}), "network=http hosts=http://127.0.0.1:8080 secret=ALWAYS"},
		"what is no URL":                 {OriginBuiltin, set(map[string]string{"url": "plain"}), "network=http secret=ALWAYS"},
		"something, and others wrote it": {OriginFile, set(map[string]string{"engine": "paid"}), "network=http hosts=plain.example secret=ALWAYS"},
		"another module":                 {OriginBuiltin, map[string]map[string]string{"other": {"engine": "paid"}}, "network=http hosts=plain.example secret=ALWAYS"},
	} {
		before := parsed(c.origin)
		after := before.WithConfig(c.values).WithConfig(c.values) // a second time changes nothing
		e, _ := after.Find("find")
		if got := e.Capabilities.String(); got != c.want {
			t.Errorf("%s: it asks for %q, want %q", name, got, c.want)
		}
		if get, _ := after.Find("get"); get.Capabilities.String() != "network=http" {
			t.Errorf("%s: another tool asks for %q", name, get.Capabilities)
		}
		if e, _ := before.Find("find"); e.Capabilities.String() != "network=http hosts=plain.example secret=ALWAYS" {
			t.Errorf("%s: the catalog before has changed: %q", name, e.Capabilities)
		}
	}
	for text, want := range map[string]string{
		`{"network":"http","hosts_of":["no"]}`:                                      `the name "no" is not in the module's config`,
		`{"hosts_of":["a"]}`:                                                        "hosts are given without network",
		`{"network":"http","secrets":[{"name":"K","when":"a"}]}`:                    "not NAME=VALUE",
		`{"network":"http","secrets":[{"name":"K","when":"b=c"}]}`:                  `the name "b" is not in the module's config`,
		`{"network":"http","hosts_of":["a"],"secrets":[{"name":"K","when":"a=c"}]}`: "",
	} {
		_, err := ParseManifest(fmt.Appendf(nil, `{"abi":"x","name":"m","config":{"a":""},"tools":[{"name":"t","description":"d","parameters":{"type":"object"},"capabilities":%s}]}`, text))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
