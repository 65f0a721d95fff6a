package tool

import (
	"encoding/json"
	"testing"
)

// A name that a module gives to an argument does not read like another request.
func TestARequestIsNotWrittenLikeAnother(t *testing.T) {
	for _, two := range [][2]Capabilities{
		{{Exec: "cmd network=http"}, {Exec: "cmd", Network: NetworkHTTP}},
		{{Exec: "a", ExecTimeout: "b exec_network=c"}, {Exec: "a", ExecTimeout: "b", ExecNetwork: "c"}},
		{{HostsOf: []string{"a,b"}}, {HostsOf: []string{"a", "b"}}},
	} {
		if a, b := two[0].String(), two[1].String(); a == b {
			t.Errorf("both are %q", a)
		}
	}
}

// TestAFingerprintCoversHowAToolIsRun checks that an approved tool cannot be run in another
// way, and that a tool without a Run keeps its earlier fingerprint.
func TestAFingerprintCoversHowAToolIsRun(t *testing.T) {
	m := func(run *Run, config map[string]string) Manifest {
		return Manifest{Name: "m", Config: config, Tools: []Spec{{Definition: Definition{Name: "run", Description: "Runs.", Parameters: json.RawMessage(`{"type":"object"}`)}, Run: run}}}
	}
	const before = "854d71fa19d7ca423fc9a73de224222531e8c8c1023363cc39ee5d500e939931"
	seen := map[Fingerprint]string{}
	for _, tt := range []struct {
		what string
		m    Manifest
	}{
		{"a tool that its module knows", m(nil, nil)},
		{"one that is run without arguments", m(&Run{}, nil)},
		{"with one", m(&Run{Args: []string{"a"}}, nil)},
		{"with another", m(&Run{Args: []string{"b"}}, nil)},
		{"that reads something", m(&Run{Stdin: "a"}, nil)},
		{"that has a variable", m(&Run{Env: map[string]string{"A": "a"}}, nil)},
		{"that is a function", m(&Run{Function: "a"}, nil)},
		{"that is configured", m(nil, map[string]string{"a": "b"})},
		{"in another way", m(nil, map[string]string{"a": "c"})},
	} {
		f := tt.m.Fingerprint()
		if other, ok := seen[f]; ok {
			t.Errorf("%s has the fingerprint of %s", tt.what, other)
		}
		seen[f] = tt.what
		if tt.m.Tools[0].Run == nil && tt.m.Config == nil && f.Schema != before {
			t.Errorf("%s: what was signed before does not count any more: %s", tt.what, f.Schema)
		}
	}
}
