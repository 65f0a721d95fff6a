package tool

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	_ "github.com/google/jsonschema-go/jsonschema" // brings the suite
)

// refused lists schemas of the suite that no tool may have: with references to other
// documents, and with names in place of pointers.
var refused = regexp.MustCompile(`a reference is # or #/|"\$dynamicRef": is not supported|"\$id": stands below the top`)

// TestTheSuiteOfJSONSchema runs the official suite, which a library contains.
func TestTheSuiteOfJSONSchema(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/google/jsonschema-go").Output()
	if err != nil {
		t.Fatal(err)
	}
	for draft, least := range map[string]int{"draft2020-12": 980, "draft7": 850} {
		files, _ := filepath.Glob(filepath.Join(strings.TrimSpace(string(out)), "jsonschema", "testdata", draft, "*.json"))
		ran := 0
		for _, file := range files {
			ran += runSuite(t, file, draft == "draft7")
		}
		if ran < least {
			t.Errorf("%s: %d tests ran of at least %d", draft, ran, least)
		}
	}
}

func runSuite(t *testing.T, file string, old bool) (ran int) {
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var groups []struct {
		Description string
		Schema      json.RawMessage
		Tests       []struct {
			Description string
			Data        json.RawMessage
			Valid       bool
		}
	}
	if err := json.Unmarshal(data, &groups); err != nil {
		t.Fatal(err)
	}
	for _, g := range groups {
		_, root, err := decode(g.Schema)
		if err != nil {
			t.Fatal(err)
		}
		c := &compiler{root: root, nodes: map[uintptr]*node{}, patterns: newPatterns(), before2019: old}
		n, err := c.node(root)
		if err != nil {
			if !refused.MatchString(err.Error()) {
				t.Errorf("%s: %s: %v", filepath.Base(file), g.Description, err)
			}
			continue
		}
		for _, tt := range g.Tests {
			_, value, err := decode(tt.Data)
			if err != nil {
				t.Fatal(err)
			}
			w := &walk{ctx: t.Context(), effortLeft: maxEffort, tracksEvaluated: c.tracksEvaluated}
			fault := w.check(n, value, &argPath{}, 0, nil)
			if ran++; w.err != nil || (fault == nil) != tt.Valid {
				t.Errorf("%s: %s: %s: got %v, %v", filepath.Base(file), g.Description, tt.Description, fault, w.err)
			}
		}
	}
	return ran
}
