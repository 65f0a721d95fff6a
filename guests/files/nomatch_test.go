package main

import (
	"strings"
	"testing"

	"github.com/stockade-dev/stockade/sdk/go/tool"
)

func TestWhatFindsNothingSaysWhy(t *testing.T) {
	tree(t, map[string]string{"src/a/x.go": "func HandleRequest() {}\n", "src/y.txt": "aaa\n", "empty/": ""})
	for name, c := range map[string]struct {
		args globArgs
		want string
	}{
		"of one directory":      {globArgs{Pattern: "*.go"}, "nothing in . itself matches; with **/*.go directories below"},
		"in a directory":        {globArgs{Pattern: "*.go", Path: "src"}, "nothing in src itself"},
		"one level down":        {globArgs{Pattern: "src/*.go"}, "* stays within one directory and ** crosses directories, as in **/*.go"},
		"everywhere":            {globArgs{Pattern: "**/*.rs"}, "nothing matches; what .gitignore excludes is left out"},
		"a name":                {globArgs{Pattern: "x.go"}, "with **/x.go directories below"},
		"a path":                {globArgs{Pattern: "lib/x.go"}, "there is no such file; **/x.go looks"},
		"something that exists": {globArgs{Pattern: "**/*.go"}, ""},
	} {
		if out := works(t, glob, c.args); !strings.Contains(out.Hint, c.want) || c.want == "" && out.Hint != "" {
			t.Errorf("glob %s: hint %q, want %q", name, out.Hint, c.want)
		}
	}
	for name, c := range map[string]struct {
		args grepArgs
		want string
	}{
		"names of files":               {grepArgs{Pattern: "*.go"}, "file_filter chooses files by their names"},
		"names of files everywhere":    {grepArgs{Pattern: "**/*.rs"}, "file_filter chooses files"},
		"a star for any text":          {grepArgs{Pattern: "Handle*Response"}, "* repeats the character before it: .* stands for any text"},
		"the same as text":             {grepArgs{Pattern: "Handle*Request", FixedStrings: true}, "with fixed_strings * is searched as it is"},
		"a filter of one directory":    {grepArgs{Pattern: "Handle", FileFilter: "src/*.go"}, "no file matches file_filter; * stays within one directory"},
		"a filter of other names":      {grepArgs{Pattern: "Handle", FileFilter: "*.rs"}, "no file matches file_filter"},
		"no files":                     {grepArgs{Pattern: "Handle", Path: "empty"}, "there was no file to search: hidden files need include_hidden"},
		"what is not there":            {grepArgs{Pattern: "Handle.*Response"}, "no line matches"},
		"what is not there, in a file": {grepArgs{Pattern: "xyz", Path: "src/y.txt"}, "no line matches"},
		"something that is there":      {grepArgs{Pattern: "Handle"}, ""},
	} {
		out := works(t, grep, c.args)
		if !strings.Contains(out.Hint, c.want) || c.want == "" && out.Hint != "" {
			t.Errorf("grep %s: hint %q, want %q", name, out.Hint, c.want)
		}
		if strings.HasPrefix(name, "what is not there") && out.Hint != c.want {
			t.Errorf("grep %s: it explains what was not asked: %q", name, out.Hint)
		}
	}
	fails(t, fileRead, readArgs{Path: "src/*.txt"}, tool.CodeNotFound, "a path holds no pattern: glob finds files by one")
	fails(t, ls, lsArgs{Path: "*"}, tool.CodeNotFound, "a path holds no pattern")
}
