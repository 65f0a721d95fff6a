package foreign

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stockade-dev/stockade/host/sandbox"
)

// TestTable runs the modules, and compares the results with TABLE.md and with the
// expected ones.
func TestTable(t *testing.T) {
	server := httptest.NewServer(Server)
	defer server.Close()
	kept, err := DefaultDir()
	if err != nil {
		t.Fatal(err)
	}
	box, files := newBox(t, server.URL), &Fetcher{Dir: kept}
	before, err := os.ReadFile("TABLE.md")
	if err != nil && !*update {
		t.Fatal(err)
	}
	committed := strings.Split(string(before), "\n")
	lines := make([]string, len(Modules))
	t.Run("modules", func(t *testing.T) {
		for i, m := range Modules {
			if !*all && !m.Source.Fast() || *only != "" && *only != m.Name {
				continue
			}
			t.Run(m.Name, func(t *testing.T) {
				t.Parallel()
				code, err := files.File(t.Context(), m.Source, m.File)
				if err != nil {
					t.Fatal(err)
				}
				dir := t.TempDir()
				if err := Workspace(dir); err != nil {
					t.Fatal(err)
				}
				row, err := RunRow(t.Context(), box, m, code, dir)
				if err != nil {
					t.Fatal(err)
				}
				if all := row.Kind + " " + row.Result; !strings.Contains(all, m.Want) {
					t.Errorf("it says %q, and should say %q", all, m.Want)
				}
				if lines[i] = row.Line(); !*update && !slices.Contains(committed, lines[i]) {
					t.Errorf("TABLE.md has no such line; if that is what it should be, go test -all -update\n%s", lines[i])
				}
			})
		}
	})
	switch {
	case *update && *all && *only == "":
		if err := os.WriteFile("TABLE.md", []byte(TableHead+strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	case *all && *only == "":
		if got := TableHead + strings.Join(lines, "\n") + "\n"; got != string(before) && !t.Failed() {
			t.Error("TABLE.md has other lines, or others before them")
		}
	}
}

// newBox returns a sandbox. With -all it uses code compiled in earlier runs, which makes
// no difference.
func newBox(t *testing.T, server string) *sandbox.Sandbox {
	t.Helper()
	cache := t.TempDir()
	if *all {
		kept, err := DefaultDir()
		if err != nil {
			t.Fatal(err)
		}
		cache = filepath.Join(kept, "compiled")
		if err := os.MkdirAll(cache, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	box := NewSandbox(cache, server)
	t.Cleanup(func() { box.Close() })
	return box
}
