package author

import (
	"bytes"
	"errors"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stockade-dev/stockade/host/sandbox"
	"github.com/stockade-dev/stockade/host/sandbox/admit"
	"github.com/stockade-dev/stockade/host/tool"
	"github.com/stockade-dev/stockade/host/wasm"
	w "github.com/stockade-dev/stockade/host/wasm/wasmtest"
)

func TestNames(t *testing.T) {
	for _, good := range []string{"a", "weather", "my-tools", "my_tools2", "x9"} {
		if err := CheckName(good); err != nil || !tool.ValidName(good) {
			t.Errorf("%q: %v", good, err)
		}
	}
	for _, bad := range []string{"", ".", "..", "../x", "a/b", `a\b`, "Weather", "9a", "-a", "a-", "a--b", "a b", "a\n", "ä", "con", "com1", strings.Repeat("a", 41)} {
		if _, ok := errors.AsType[*NameError](CheckName(bad)); !ok {
			t.Errorf("%q is good", bad)
		}
		dir := filepath.Join(t.TempDir(), "project")
		if err := CreateProject(dir, bad); err == nil {
			t.Errorf("%q has a project", bad)
		} else if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%q has left a folder", bad)
		}
	}
}

func TestAProjectIsWrittenOverNothing(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "main.go")
	if err := os.WriteFile(file, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	err := CreateProject(dir, "weather")
	content, _ := os.ReadFile(file)
	found, _ := os.ReadDir(dir)
	if !errors.Is(err, ErrNotEmpty) || string(content) != "mine" || len(found) != 1 {
		t.Errorf("New says %v, and there are %v", err, found)
	}
	if err := CreateProject(file, "weather"); err == nil {
		t.Error("a file is a folder")
	}
}

// A project needs no module but the one that is in it, no network to build, and the
// Go of this repository.
func TestAProjectIsWhole(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "deep", "weather")
	if err := CreateProject(dir, "weather"); err != nil {
		t.Fatal(err)
	}
	ours, err := os.ReadFile("../../../go.mod")
	if err != nil || !regexp.MustCompile(`(?m)^go `+regexp.QuoteMeta(goVersion)+`$`).Match(ours) {
		t.Errorf("our go.mod does not say go %s: %v", goVersion, err)
	}
	files := 0
	err = filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files++
		content, err := os.ReadFile(name)
		if bytes.Contains(content, []byte("NAME")) && filepath.Ext(name) != ".go" || bytes.Contains(content, []byte("GOVERSION")) || filepath.Ext(name) == ".in" {
			t.Errorf("%s is not filled in", name)
		}
		if filepath.Ext(name) != ".go" {
			return err
		}
		if strings.Contains(name, sdkFolder) && strings.HasSuffix(name, "_test.go") {
			t.Errorf("%s is a test of the SDK", name)
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, content, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, imp := range f.Imports {
			path, _ := strconv.Unquote(imp.Path.Value)
			below, ours := strings.CutPrefix(path, sdkModule+"/")
			if ours {
				_, err = os.Stat(filepath.Join(dir, sdkFolder, below))
			}
			if first, _, _ := strings.Cut(path, "/"); err != nil || !ours && strings.Contains(first, ".") {
				t.Errorf("%s imports %s, which is not there", name, path)
			}
		}
		return nil
	})
	if err != nil || files < 30 {
		t.Errorf("there are %d files: %v", files, err)
	}
	data, err := os.ReadFile(filepath.Join(dir, "tests", "count.txt"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ParseScript("count.txt", data); err != nil {
		t.Error(err)
	}
}

func TestPack(t *testing.T) {
	box := sandbox.New(sandbox.Options{Interpreter: true})
	defer box.Close()
	module := func(o w.ToolOptions) *tool.Module {
		return tool.NewModule("probe", tool.OriginFile, "probe.wasm", w.Tool(o))
	}

	plain := module(w.ToolOptions{NoSection: true})
	packed, err := Pack(t.Context(), box, plain)
	if err != nil || packed.Manifest.Name != "probe" || string(packed.Section) != w.Manifest {
		t.Fatalf("Pack says %+v, %v", packed.Manifest, err)
	}
	facts, err := wasm.Decode(packed.Code)
	if err != nil {
		t.Fatal(err)
	}
	if section, ok := wasm.CustomSection(facts, wasm.ManifestSection); !ok || string(section) != w.Manifest {
		t.Errorf("the section is %q", section)
	}
	for what, mod := range map[string]*tool.Module{"the same module": plain, "the packed one": packed.Module} {
		again, err := Pack(t.Context(), box, mod)
		if err != nil || !bytes.Equal(again.Code, packed.Code) || again.Module.Digest != packed.Module.Digest {
			t.Errorf("%s, packed again, is another: %v", what, err)
		}
	}

	fetch := w.Import{Module: "stockade:tool/http@0.1.0", Name: "fetch", Params: make([]w.ValType, 14)}
	for i := range fetch.Params {
		fetch.Params[i] = w.I32
	}
	placeholder := w.Import{Module: "stockade:tool/secrets@0.1.0", Name: "placeholder", Params: []w.ValType{w.I32, w.I32, w.I32}}
	for name, c := range map[string]struct {
		o    w.ToolOptions
		says string
	}{
		"the network, which no tool asks for":             {w.ToolOptions{NoSection: true, Imports: []w.Import{fetch}}, "it imports http"},
		"the network, in a module that was packed so":     {w.ToolOptions{Imports: []w.Import{fetch}}, "it imports http"},
		"secrets, which no tool asks for":                 {w.ToolOptions{NoSection: true, Imports: []w.Import{placeholder}}, "it imports secrets"},
		"a manifest that is no JSON":                      {w.ToolOptions{NoSection: true, Manifest: "{"}, "manifest"},
		"a section that is no JSON":                       {w.ToolOptions{Manifest: "{"}, "manifest"},
		"a describe function that traps":                  {w.ToolOptions{NoSection: true, Describe: w.Unreachable()}, "describe"},
		"a manifest for another version of the interface": {w.ToolOptions{NoSection: true, Manifest: strings.Replace(w.Manifest, "0.1.0", "0.9.0", 1)}, "ABI"},
	} {
		_, err := Pack(t.Context(), box, module(c.o))
		if refused, ok := errors.AsType[*admit.RefusedError](err); !ok || !strings.Contains(refused.Why, c.says) {
			t.Errorf("%s: Pack says %v", name, err)
		}
	}
	if _, err := Pack(t.Context(), box, tool.NewModule("text", tool.OriginFile, "text.wasm", []byte("text"))); err == nil {
		t.Error("text is packed")
	}
}

func TestWriteReplacesAFileAsAWhole(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.wasm")
	for _, code := range []string{"one", "two, longer"} {
		if err := WriteModule(file, []byte(code)); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(file); err != nil || string(got) != code {
			t.Errorf("it holds %q, %v", got, err)
		}
	}
	if found, _ := os.ReadDir(filepath.Dir(file)); len(found) != 1 {
		t.Errorf("there are %v", found)
	}
	if err := WriteModule(filepath.Join(file, "b.wasm"), nil); err == nil {
		t.Error("a file is a folder")
	}
}
