package admit

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stockade-dev/stockade/guests/gueststest"
	"github.com/stockade-dev/stockade/host/wasm"
)

// Real programs are within the limits on what is compiled.
func TestRealProgramsAreAdmitted(t *testing.T) {
	gueststest.Need(t)
	dir := t.TempDir()
	for _, pkg := range []string{"cmd/gofmt", "mvdan.cc/sh/v3/cmd/gosh"} {
		cmd := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(dir, filepath.Base(pkg)+".wasm"), pkg)
		cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("build %s: %v\n%s", pkg, err, out)
		}
	}
	places := []string{dir, filepath.Join("..", "..", "..", "guests", "wasm")}
	for module, required := range map[string]string{ // by the directory whose go.mod requires it
		"github.com/tetratelabs/wazero": ".", "github.com/extism/go-sdk": "../../internal/fueltest",
	} {
		cmd := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", module)
		cmd.Dir = required
		out, err := cmd.Output()
		var downloaded struct{ Dir string }
		if err := errors.Join(err, json.Unmarshal(out, &downloaded)); err != nil {
			t.Fatal(err)
		}
		places = append(places, downloaded.Dir)
	}
	admitted := 0
	for _, place := range places {
		err := filepath.WalkDir(place, func(path string, d fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".wasm" || strings.Contains(path, "spectest") {
				return err
			}
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			m, err := wasm.Decode(data)
			if err == nil {
				_, err = instrument(m, 1)
			}
			if err != nil {
				t.Errorf("%s: %v", strings.TrimPrefix(path, place), err)
			}
			admitted++
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if admitted < 150 {
		t.Errorf("only %d modules were found", admitted)
	}
}
