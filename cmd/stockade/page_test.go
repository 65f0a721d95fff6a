package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/terminal"
	"github.com/stockade-dev/stockade/cmd/stockade/internal/toolpage"
	"github.com/stockade-dev/stockade/guests/gueststest"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/registry"
	"github.com/stockade-dev/stockade/host/tool"
)

// pageColumns is the width of a page of the help, with the last column, which stays free.
const pageColumns = 80

// toolPage returns the page of a built-in tool, help/tools/NAME.md. It has the content of
// `tool info`, without the parts that depend on the machine.
func toolPage(e *tool.Entry) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s: a tool of the module %s\n\n", e.Name, e.Module.Name)
	b.WriteString(toolpage.WrapText("", e.Description, pageColumns))
	fmt.Fprintf(&b, "\n    risk      %s\n", policy.RiskOf(e))
	title := "asks for"
	for _, row := range terminal.Wrap(capabilitiesText(e.Requested), pageColumns-len("    asks for  ")-1) {
		fmt.Fprintf(&b, "    %-8s  %s\n", title, row)
		title = ""
	}
	for _, part := range toolpage.Parts(e.Spec, callOf(e), pageColumns) {
		fmt.Fprintf(&b, "\n## %s\n\n%s", part.Title, part.Text)
	}
	b.WriteString("\n[output] has the codes with which every call can end, and [tools] all tools.\n\n[output]: ../output.md\n[tools]: ../tools.md\n")
	return b.String()
}

// TestToolPagesAreUpToDate holds help/tools to the manifests of the built-in tools.
func TestToolPagesAreUpToDate(t *testing.T) {
	gueststest.Need(t)
	const dir = "help/tools"
	update := os.Getenv("UPDATE_PAGES") != ""
	builtin, err := registry.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	overview, err := os.ReadFile("help/tools.md")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for _, e := range builtin.Entries() {
		page := toolPage(e)
		want[e.Name+".md"] = page
		if !strings.Contains(string(overview), ": tools/"+e.Name+".md\n") {
			t.Errorf("help/tools.md does not lead to %s/%s.md", dir, e.Name)
		}
		for i, line := range strings.Split(page, "\n") {
			if len([]rune(line)) > 80 && !strings.HasPrefix(line, "    stockade call ") {
				t.Errorf("%s.md:%d: %d columns: %s", e.Name, i+1, len([]rune(line)), line)
			}
		}
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if _, ok := want[f.Name()]; ok {
			continue
		}
		if !update {
			t.Errorf("%s/%s is the page of no tool", dir, f.Name())
		} else if err := os.Remove(filepath.Join(dir, f.Name())); err != nil {
			t.Fatal(err)
		}
	}
	for name, page := range want {
		path := filepath.Join(dir, name)
		if update {
			if err := os.WriteFile(path, []byte(page), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(path)
		if diff := cmp.Diff(page, string(got)); diff != "" || err != nil {
			t.Errorf("%s is stale; run make generate (-want +got): %v\n%s", path, err, diff)
		}
	}
}

// TestBuiltinToolsAreDocumented: each has an example that can be called, and says its
// errors, if arguments can be wrong.
func TestBuiltinToolsAreDocumented(t *testing.T) {
	gueststest.Need(t)
	builtin, err := registry.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range builtin.Entries() {
		var schema struct {
			Required []string `json:"required"`
		}
		if err := json.Unmarshal(e.Parameters, &schema); err != nil {
			t.Fatal(err)
		}
		if e.Doc == nil || len(e.Doc.Examples) == 0 || len(e.Doc.Errors) == 0 && len(schema.Required) > 0 {
			t.Errorf("%s lacks examples or errors", e.Name)
			continue
		}
		for _, ex := range e.Doc.Examples {
			if _, err := e.Schema.Check(t.Context(), ex.Args); err != nil {
				t.Errorf("%s: the example %s does not fit: %v", e.Name, ex.Args, err)
			}
		}
		var codes []string
		for _, line := range e.Doc.Errors {
			code, _, _ := strings.Cut(line, ": ")
			if slices.Contains(codes, code) {
				t.Errorf("%s documents %s twice", e.Name, code)
			}
			codes = append(codes, code)
		}
	}
}
