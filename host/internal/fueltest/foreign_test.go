package fueltest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	_ "github.com/extism/go-sdk" // for the plugins that lie in its module

	"github.com/stockade-dev/stockade/host/wasm"
)

// TestPluginsOfExtismAreRecognised classifies the real plugins that ship in
// the go-sdk module, made by TinyGo, Go, Rust, C and Haskell compilers.
func TestPluginsOfExtismAreRecognised(t *testing.T) {
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/extism/go-sdk").Output()
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(dir)), "wasm", "*.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 20 {
		t.Fatalf("found %d plugins", len(files))
	}
	others := map[string]wasm.ShapeKind{"noop.wasm": wasm.Command, "nested.c.instr.wasm": wasm.Unknown}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		m, err := wasm.Decode(data)
		if err != nil {
			t.Errorf("%s: %v", filepath.Base(file), err)
			continue
		}
		want, ok := others[filepath.Base(file)]
		if !ok {
			want = wasm.Extism
		}
		if got := wasm.Classify(m); got.Kind != want {
			t.Errorf("%s is %s", filepath.Base(file), got)
		}
	}
}
