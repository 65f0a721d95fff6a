package tool

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

func named(names ...string) Manifest {
	m := Manifest{Name: "m"}
	for _, n := range names {
		m.Tools = append(m.Tools, Spec{Definition: Definition{Name: n, Description: n, Parameters: json.RawMessage(`{"type":"object"}`)}})
	}
	return m
}

func TestCatalogFindsTools(t *testing.T) {
	files, shell := &Module{Name: "files"}, &Module{Name: "shell"}
	c, err := NewCatalog(map[*Module]Manifest{files: named("grep", "file_read", "file_write"), shell: named("bash")})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"bash": "bash", "execute_command": "bash", "read_file": "file_read", "write_file": "file_write", "grep_search": "grep",
		"Bash": "", "": "", "glob": "", "bash ": "",
	} {
		e, ok := c.Find(name)
		if ok != (want != "") || ok && (e.Name != want || e.Schema == nil || e.Module != map[bool]*Module{true: shell, false: files}[want == "bash"]) {
			t.Errorf("%q: got %+v, %v", name, e, ok)
		}
	}
	want := []string{"bash", "file_read", "file_write", "grep"}
	if got := c.Names(); !slices.Equal(got, want) {
		t.Errorf("names: %v", got)
	}
	c.Names()[0] = "changed"
	for i, d := range c.Definitions() {
		if d.Name != want[i] {
			t.Errorf("definition %d is of %s", i, d.Name)
		}
	}
	for word, near := range map[string]string{"flie_read": "file_read", "gerp": "grep", "kubernetes": "", "": ""} {
		if got := c.Nearest(word); got != near {
			t.Errorf("nearest to %q is %q, want %q", word, got, near)
		}
	}
}

func TestAToolOfThatNameComesBeforeAnAlias(t *testing.T) {
	other := &Module{Name: "other"}
	c, err := NewCatalog(map[*Module]Manifest{{Name: "files"}: named("file_read"), other: named("read_file")})
	if err != nil {
		t.Fatal(err)
	}
	if e, _ := c.Find("read_file"); e.Module != other {
		t.Errorf("read_file is %s of %s", e.Name, e.Module.Name)
	}
}

func TestNoToolTakesThePlaceOfAnother(t *testing.T) {
	_, err := NewCatalog(map[*Module]Manifest{{Name: "one"}: named("grep"), {Name: "two"}: named("ls", "grep")})
	if err == nil || !strings.Contains(err.Error(), `"grep"`) || !strings.Contains(err.Error(), `"one"`) || !strings.Contains(err.Error(), `"two"`) {
		t.Errorf("got %v", err)
	}
	if _, err := NewCatalog(map[*Module]Manifest{{Name: "one"}: named("grep", "grep")}); err == nil {
		t.Error("two tools of one name in one module were accepted")
	}
}

// A schema is compiled when it is needed. One that should have been refused
// with its manifest lets no call through.
func TestASchemaThatIsNone(t *testing.T) {
	m := named("broken")
	m.Tools[0].Parameters = json.RawMessage(`{"type":"array","properties":{"a":{"type":"string"}}}`)
	c, err := NewCatalog(map[*Module]Manifest{{Name: "m"}: m})
	if err != nil {
		t.Fatal(err)
	}
	e, _ := c.Find("broken")
	if args, err := e.Schema.Check(t.Context(), json.RawMessage(`{}`)); err == nil {
		t.Errorf("it takes %s", args)
	}
	if e.Schema.HasProperty("a") || e.Schema.IsString("a") {
		t.Error("it has properties")
	}
}

// BenchmarkFiftyTools is what a process that calls none of its tools spends on
// them: reading what their modules say of themselves, and listing them.
func BenchmarkFiftyTools(b *testing.B) {
	manifest := []byte(manifest(bashTool))
	for b.Loop() {
		modules := map[*Module]Manifest{}
		for i := range 50 {
			var m Manifest
			if err := json.Unmarshal(manifest, &m); err != nil {
				b.Fatal(err)
			}
			m.Tools[0].Name = fmt.Sprint("tool", i)
			modules[&Module{Name: m.Tools[0].Name}] = m
		}
		if _, err := NewCatalog(modules); err != nil {
			b.Fatal(err)
		}
	}
}
