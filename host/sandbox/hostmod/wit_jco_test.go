//go:build jco

package hostmod

import (
	"flag"
	"maps"
	"os"
	"strings"
	"testing"

	"github.com/stockade-dev/stockade/host/sandbox/abi"
	"github.com/stockade-dev/stockade/host/wasm"
)

var dummy = flag.String("dummy", "", "the module that testdata/dummy.mjs has written")

// TestJcoReadsTheSameFunctions compares the host with what a parser that we did not write makes of wit/.
func TestJcoReadsTheSameFunctions(t *testing.T) {
	code, err := os.ReadFile(*dummy)
	if err != nil {
		t.Fatal(err)
	}
	m, err := wasm.Decode(code)
	if err != nil {
		t.Fatal(err)
	}
	// The names are those of a later draft of the ABI.
	name := strings.NewReplacer("cm32p2|"+abi.Package+"/", "", "@0.1", "")
	got, want := map[string]string{}, map[string]string{}
	for _, imp := range m.Imports {
		got[name.Replace(imp.Module)+"."+imp.Name] = m.Types[imp.Type].String()
	}
	for _, e := range m.Exports {
		if fn, ok := strings.CutPrefix(name.Replace(e.Name), "tools|"); ok && !strings.HasSuffix(fn, "_post") {
			sig, _ := m.ExportedFunc(e.Name)
			got["tools#"+fn] = sig.String()
		}
	}
	for _, f := range Functions {
		want[f.Interface+"."+f.Name] = show(f.Signature)
	}
	for export, sig := range abi.Exports {
		want[strings.NewReplacer(abi.Package+"/", "", "@"+abi.Version, "").Replace(export)] = show(sig)
	}
	if !maps.Equal(got, want) {
		t.Errorf("the host has %v\njco reads %v", want, got)
	}
}
