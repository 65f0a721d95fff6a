package editor

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
)

func TestFiles(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	for name, text := range map[string]string{
		"main.go": "", "b/c.go": "", "b/d/e.go": "", ".git/config": "", ".hidden/x": "", "b/.env": "", "a b.txt": "",
		".gitignore":   "*.log\n!keep.log\n/build\nnode_modules/\ndocs/*.tmp\n# x\n[\n",
		"b/.gitignore": "gen\n", "b/gen/x": "", "gen/y": "", "x.log": "", "b/x.log": "", "keep.log": "", "build/x": "", "b/build/x": "",
		"b/node_modules/x": "", "docs/a.tmp": "", "docs/a.md": "", "node_modules": "a file",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(outside, "secret"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{"out": outside, "loop": ".", "b/up": "../../.."} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	all := "a b.txt b/ docs/ gen/ keep.log loop main.go node_modules out b/build/ b/c.go b/d/ b/up docs/a.md gen/y b/build/x b/d/e.go"
	for name, c := range map[string]struct{ prefix, want string }{
		"all, the nearest first":         {"", all},
		"what was typed does not matter": {"zzz", all},
		"below a directory":              {"b/", "b/build/ b/c.go b/d/ b/up b/build/x b/d/e.go"},
		"hidden names, when asked for":   {"b/.", "b/.env b/.gitignore b/build/ b/c.go b/d/ b/up b/build/x b/d/e.go"},
		"as it was typed":                {"./docs/", "./docs/a.md"},
		"not through a link to outside":  {"out/", ""},
		"not above":                      {"../", ""},
		"not elsewhere":                  {outside + "/", ""},
		"not of a directory that is not": {"no/x", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := strings.Join(Files(dir, c.prefix), " "); got != c.want {
				t.Errorf("Files(%q) = %s\nwant %s", c.prefix, got, c.want)
			}
		})
	}
}

func TestAWalkEnds(t *testing.T) {
	files := fstest.MapFS{}
	for i := range 300 {
		files[fmt.Sprintf("%d/%d", i%7, i)] = &fstest.MapFile{}
	}
	if got := (walk{fsys: files, maxEntries: 100}).files("."); len(got) != 100 {
		t.Errorf("%d names", len(got))
	}
}
