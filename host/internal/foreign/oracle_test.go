package foreign

import (
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stockade-dev/stockade/host/sandbox"
	"github.com/stockade-dev/stockade/host/tool"
)

// quickBytes limits the size of plugins that both hosts compile in no time.
const quickBytes = 250_000

// TestPluginsDoTheSameOnExtismsHost calls each plugin on both hosts, with the same
// functions, configuration, files and input, each time in a fresh instance. Without -all
// it calls the smallest plugins only.
func TestPluginsDoTheSameOnExtismsHost(t *testing.T) {
	server := httptest.NewServer(Server)
	defer server.Close()
	RedirectRequests(server.URL)
	kept, err := DefaultDir()
	if err != nil {
		t.Fatal(err)
	}
	box, files := newBox(t, server.URL), &Fetcher{Dir: kept}
	names := map[string]bool{}
	for _, m := range Modules {
		if m.Source == sdk {
			names[m.Name] = true
		}
	}
	t.Run("plugins", func(t *testing.T) {
		for _, p := range Pairs {
			t.Run(p.Name, func(t *testing.T) {
				t.Parallel()
				code, err := files.File(t.Context(), sdk, "wasm/"+p.Name+".wasm")
				if err != nil {
					t.Fatal(err)
				}
				if len(code) > quickBytes && !*all {
					return
				}
				runs := p.Runs
				if runs == nil {
					runs = []Run{{}}
				}
				for i, run := range runs {
					for _, function := range p.Functions {
						t.Run(fmt.Sprint(function, " ", i), func(t *testing.T) { compare(t, box, p, code, run, function) })
					}
				}
			})
		}
	})
	for _, p := range Pairs {
		delete(names, p.Name)
	}
	for name := range Excluded {
		if !names[name] {
			t.Errorf("%s stands apart, and is compared or not there", name)
		}
		delete(names, name)
	}
	if len(names) > 0 {
		t.Errorf("these are not compared, and nobody says why: %v", names)
	}
}

// compare calls one function with all inputs.
func compare(t *testing.T, box *sandbox.Sandbox, p Pair, code []byte, run Run, function string) {
	ours, theirs := t.TempDir(), t.TempDir()
	ready, err := Prepare(t.Context(), box, p.Name, code, run.TOML(), ours)
	if err != nil {
		t.Fatal(err)
	}
	o, err := NewOracle(t.Context(), code, run, theirs)
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close(t.Context())
	for _, input := range slices.Concat(Inputs, p.Inputs) {
		for _, dir := range []string{ours, theirs} {
			if err := Workspace(dir); err != nil {
				t.Fatal(err)
			}
		}
		want, err := o.Call(t.Context(), function, []byte(input))
		if err != nil {
			t.Fatal(err)
		}
		args := tool.Marshal(map[string]string{"input": input})
		got, err := ready.Call(t.Context(), box, function, args, limits, nil)
		if err != nil {
			t.Fatal(err)
		}
		want.Err = strings.ReplaceAll(want.Err, theirs, "WORKSPACE")
		for there, here := range p.WASIErrors {
			want.Err = strings.ReplaceAll(want.Err, there, here)
		}
		if d := Diff(want, got.Result); d != "" {
			t.Errorf("with %.60q: %s", input, d)
		}
		for _, name := range []string{"test.txt", "new.txt", "none.txt"} {
			a, aErr := os.ReadFile(filepath.Join(ours, name))
			b, bErr := os.ReadFile(filepath.Join(theirs, name))
			if string(a) != string(b) || (aErr == nil) != (bErr == nil) {
				t.Errorf("with %.60q: %s holds %.60q %v; and there %.60q %v", input, name, a, aErr, b, bErr)
			}
		}
	}
}
