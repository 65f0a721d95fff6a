package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stockade-dev/stockade/sdk/go/tool"
)

var lsRow = regexp.MustCompile(`(?m)^(FILE|DIR|LINK) +(\d+(?:\.\d)? (?:[KMGT]i)?B|-)  \d{4}-\d\d-\d\d \d\d:\d\d  (.+)$`)

func names(out lsResult) string {
	var names []string
	for _, row := range lsRow.FindAllStringSubmatch(out.Output, -1) {
		names = append(names, row[3])
	}
	return strings.Join(names, " ")
}

func TestLs(t *testing.T) {
	tree(t, map[string]string{"b.txt": "12345", "a.txt": strings.Repeat("x", 2000), "sub/": "", ".hidden": "h", "link": "->sub", "c": ""})
	day := time.Date(2026, 3, 4, 5, 6, 0, 0, time.UTC)
	for i, name := range []string{"c", "a.txt", "sub", "b.txt"} {
		if err := os.Chtimes(name, day, day.Add(time.Duration(i)*time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	tests := map[string]struct {
		args lsArgs
		want string
	}{
		"by name":          {lsArgs{MaxEntries: 500}, "a.txt b.txt c link -> sub sub/"},
		"by name, reverse": {lsArgs{MaxEntries: 500, SortBy: "name", Reverse: true}, "sub/ link -> sub c b.txt a.txt"},
		"by size, largest": {lsArgs{MaxEntries: 500, SortBy: "size", Reverse: true}, "a.txt b.txt sub/ link -> sub c"},
		"by time":          {lsArgs{MaxEntries: 4, SortBy: "modified"}, "c a.txt sub/ b.txt"},
		"hidden":           {lsArgs{MaxEntries: 500, ShowHidden: true}, ".hidden a.txt b.txt c link -> sub sub/"},
		"two entries":      {lsArgs{MaxEntries: 2}, "a.txt b.txt"},
		"no entry":         {lsArgs{MaxEntries: 500, Path: "sub"}, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			out := works(t, ls, tt.args)
			if got := names(out); got != tt.want {
				t.Errorf("got %q, want %q in\n%s", got, tt.want, out.Output)
			}
			if want := len(lsRow.FindAllString(out.Output, -1)); out.Count != want {
				t.Errorf("count is %d for %d rows", out.Count, want)
			}
		})
	}
	out := works(t, ls, lsArgs{MaxEntries: 2})
	if want := "FILE     2.0 KiB  2026-03-04 06:06  a.txt\n"; !strings.HasPrefix(out.Output, want) {
		t.Errorf("output starts %q, want %q", out.Output, want)
	}
	if want := "total: 3 files, 1 directory, 1 link, 2.0 KiB (2 of 5 entries shown; raise max_entries or change sort_by) (1 hidden not shown)"; !strings.HasSuffix(out.Output, want) {
		t.Errorf("output ends %q, want %q", out.Output, want)
	}
	if !out.Truncated || out.Files != 3 || out.Dirs != 1 || out.Links != 1 || out.TotalBytes != 2005 {
		t.Errorf("got %+v", out)
	}
}

func TestLsErrors(t *testing.T) {
	tree(t, map[string]string{"file.txt": "x", "docs/": ""})
	fails(t, ls, lsArgs{Path: "doc"}, tool.CodeNotFound, "doc: no such file", "did you mean docs?")
	fails(t, ls, lsArgs{Path: "file.txt"}, tool.CodeInvalidInput, "is a file", "file_read")
	fails(t, ls, lsArgs{Path: "file.txt/x"}, tool.CodeInvalidInput, "a part of the path is a file")
	fails(t, ls, lsArgs{Path: "a\x00b"}, tool.CodeInvalidInput, "NUL")
	fails(t, ls, lsArgs{Path: "/no/such/place"}, tool.CodeNotFound, "only granted directories exist")
}

func TestLsOfTheLimit(t *testing.T) {
	tree(t, nil)
	for i := range maxLsEntries + 1 {
		put(t, fmt.Sprintf("f%04d", i), "")
	}
	if out := works(t, ls, lsArgs{MaxEntries: 100_000}); out.Count != maxLsEntries || !out.Truncated || out.Files != maxLsEntries+1 {
		t.Errorf("count %d, files %d", out.Count, out.Files)
	}
}

func TestNamesCannotForgeRows(t *testing.T) {
	tree(t, map[string]string{"a\nFILE 1 B  2026-01-01 00:00  fake": "", "bad\xff": ""})
	out := works(t, ls, lsArgs{MaxEntries: 10})
	if n := strings.Count(out.Output, "\n"); n != 2 {
		t.Errorf("%d lines in\n%s", n, out.Output)
	}
	if g := works(t, glob, globArgs{Pattern: "*"}); strings.Count(g.Output, "\n") != 1 || !strings.Contains(g.Output, `"bad\xff"`) {
		t.Errorf("glob returned %q", g.Output)
	}
}

func TestPathsInResults(t *testing.T) {
	tree(t, map[string]string{"sub/x.txt": "x"})
	cwd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"sub/x.txt", "./sub//x.txt", "sub/../sub/x.txt", filepath.Join(cwd, "sub/x.txt")} {
		if l, err := locate(path); err != nil || l.display() != "sub/x.txt" {
			t.Errorf("%s is %q, %v", path, l.display(), err)
		}
	}
	if l, err := locate(".."); err != nil || l.display() != filepath.Dir(cwd) {
		t.Errorf(".. is %q, %v", l.display(), err)
	}
	root := location{"/", "/"}
	if got := root.child("etc").display(); got != "/etc" {
		t.Errorf("a child of the root is %q", got)
	}
}

func TestHumanSize(t *testing.T) {
	for bytes, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 1536: "1.5 KiB", 1<<20 - 1: "1.0 MiB", 1 << 30: "1.0 GiB", 5 << 40: "5.0 TiB", 1 << 60: "1048576.0 TiB"} {
		if got := humanSize(bytes); got != want {
			t.Errorf("%d bytes are %q, want %q", bytes, got, want)
		}
	}
}

func TestNearby(t *testing.T) {
	candidates := []string{"main.go", "Makefile", "README.md", "main_test.go", "main.txt", strings.Repeat("m", 200)}
	tests := map[string]string{"mian.go": "", "makefile": "Makefile", "main.goo": "main.go main.txt", "readme.txt": "README.md", "zzz": "", "": "", "main": "main.go main.txt"}
	delete(tests, "mian.go")
	for name, want := range tests {
		if got := strings.Join(nearby(name, candidates), " "); got != want {
			t.Errorf("%q is near %q, want %q", name, got, want)
		}
	}
}
