package main

import (
	"strings"
	"testing"
)

func TestNestedIgnoreFiles(t *testing.T) {
	tree(t, map[string]string{
		".gitignore": "*.tmp\nout/\n", "a.tmp": "", "a/.gitignore": "!keep.tmp\n/local\n", "a/keep.tmp": "", "a/x.tmp": "",
		"a/local": "", "a/b/local": "", "a/b/keep.tmp": "", "a/out/keep.tmp": "", "b/keep.tmp": "", "b/.gitignore": "->../a/.gitignore",
	})
	want := ".gitignore a/.gitignore a/b/keep.tmp a/b/local a/keep.tmp b/.gitignore"
	if out := works(t, glob, globArgs{Pattern: "**"}); strings.ReplaceAll(out.Output, "\n", " ") != want {
		t.Errorf("got %q", out.Output)
	}
	// The files above the start hold too.
	if out := works(t, glob, globArgs{Pattern: "**", Path: "a/b"}); out.Output != "a/b/keep.tmp\na/b/local" {
		t.Errorf("got %q", out.Output)
	}
	// In a work tree those above the working directory hold as well.
	put(t, ".git/", "")
	t.Chdir("b")
	if out := works(t, glob, globArgs{Pattern: "**"}); out.Output != ".gitignore" {
		t.Errorf("got %q", out.Output)
	}
}
