package instructions

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestADraftNamesWhatIsThere(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "garden")
	for name, text := range map[string]string{
		"go.mod": "module x\n", "cmd/x/.keep": "", "docs/.keep": "", ".git/HEAD": "", "node_modules/x/.keep": "", "it's `here`/.keep": "",
		"Makefile":     "VERSION := 1\n.PHONY: test\ntest: build ## tests\n\tgo test\nbuild:\n\tgo build\n$(shell rm -rf /):\nbad`rm`: x\ntest: more\n",
		"package.json": `{"scripts":{"lint":"eslint .","test:unit":"jest","a b; rm -rf /":"x"}}`,
	} {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := Draft(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"# garden\n", "It is written in Go and JavaScript or TypeScript.\n",
		"## Commands\n\n- `make test`\n- `make build`\n- `go build ./...`\n- `go vet ./...`\n- `go test ./...`\n- `npm run lint`\n- `npm run test:unit`\n- (",
		"## Where things are\n\n- `cmd/`\n- `docs/`\n- (",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("it does not say %q:\n%s", want, got)
		}
	}
	if strings.Contains(got, "rm") {
		t.Errorf("it has what was put there to be run:\n%s", got)
	}
	if got, err := Draft(t.TempDir()); err != nil || !strings.Contains(got, "## Rules") {
		t.Errorf("of nothing: %s, %v", got, err)
	}
}
