package fueltest

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	_ "github.com/extism/go-sdk" // for the plugins that lie in its module

	"github.com/stockade-dev/stockade/host/wasm"
)

// filesOf returns the modules inside a Go module, by their paths below under.
func filesOf(t *testing.T, goModule, under string) map[string]*wasm.Module {
	t.Helper()
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", goModule).Output()
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(strings.TrimSpace(string(dir)), under)
	out := map[string]*wasm.Module{}
	err = filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".wasm" {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		if out[filepath.ToSlash(name)], err = wasm.Decode(data); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestPluginsOfExtismAreRecognised classifies the real plugins that ship in the go-sdk
// module, made by TinyGo, Go, Rust, C and Haskell compilers.
func TestPluginsOfExtismAreRecognised(t *testing.T) {
	files := filesOf(t, "github.com/extism/go-sdk", "wasm")
	if len(files) < 20 {
		t.Fatalf("found %d plugins", len(files))
	}
	// This one imports functions of another host.
	others := map[string]wasm.ShapeKind{"nested.c.instr.wasm": wasm.Unknown}
	for file, m := range files {
		want, ok := others[file]
		if !ok {
			want = wasm.Extism
		}
		if got := wasm.Classify(m); got.Kind != want {
			t.Errorf("%s is %s", file, got)
		}
	}
}

// TestFixturesOfWazeroAreRecognised classifies the modules of wazero's examples and WASI
// tests, made by TinyGo, Rust, Zig, C and AssemblyScript compilers.
func TestFixturesOfWazeroAreRecognised(t *testing.T) {
	for under, want := range map[string]map[string]wasm.ShapeKind{
		"imports": {
			"wasi_snapshot_preview1/example/testdata/cargo-wasi/cat.wasm": wasm.Command,
			"wasi_snapshot_preview1/example/testdata/tinygo/cat.wasm":     wasm.Command,
			"wasi_snapshot_preview1/example/testdata/zig/cat.wasm":        wasm.Command,
			"wasi_snapshot_preview1/example/testdata/zig-cc/cat.wasm":     wasm.Command,
			"wasi_snapshot_preview1/testdata/exit_on_start_unstable.wasm": wasm.Command,
			"assemblyscript/example/testdata/index.wasm":                  wasm.Unknown,
			"emscripten/testdata/invoke.wasm":                             wasm.Unknown,
		},
		"examples": {
			"basic/testdata/add.wasm":                             wasm.Reactor,
			"allocation/tinygo/testdata/greet.wasm":               wasm.Reactor,
			"allocation/rust/testdata/greet.wasm":                 wasm.Unknown,
			"cli/testdata/cli.wasm":                               wasm.Command,
			"multiple-results/testdata/multi_value_imported.wasm": wasm.Unknown,
		},
	} {
		files := filesOf(t, "github.com/tetratelabs/wazero", under)
		for file, kind := range want {
			if files[file] == nil {
				t.Errorf("%s is not there", file)
			} else if got := wasm.Classify(files[file]); got.Kind != kind {
				t.Errorf("%s is %s", file, got)
			}
		}
	}
}
