package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/stockade-dev/stockade/sdk/go/tool"
)

func TestGlob(t *testing.T) {
	files := map[string]string{
		"main.go": "", "go.mod": "", "a/b/c.go": "", "a/b/c.txt": "", "a/x.go": "", ".github/ci.yml": "",
		".git/config": "", ".git/x.go": "", "a/.svn/y.go": "", "build/out.go": "", "a/tmp.log": "", "a/keep.log": "",
		".gitignore": "build/\n*.log\n", "a/.gitignore": "!keep.log\n", "a/loop": "->..", "odd[1]/z.go": "",
	}
	tests := map[string]struct {
		args globArgs
		want string
	}{
		"every go file":                 {globArgs{Pattern: "**/*.go"}, "a/b/c.go a/x.go main.go odd[1]/z.go"},
		"one directory":                 {globArgs{Pattern: "*.go"}, "main.go"},
		"below a directory":             {globArgs{Pattern: "a/**/*.go"}, "a/b/c.go a/x.go"},
		"alternatives":                  {globArgs{Pattern: "a/b/c.{go,txt}"}, "a/b/c.go a/b/c.txt"},
		"path":                          {globArgs{Pattern: "*.go", Path: "a/b"}, "a/b/c.go"},
		"path with a directory in it":   {globArgs{Pattern: "b/*.go", Path: "a"}, "a/b/c.go"},
		"plain name":                    {globArgs{Pattern: "a/x.go"}, "a/x.go"},
		"dot slash":                     {globArgs{Pattern: "./a/*.go"}, "a/x.go"},
		"up and down again":             {globArgs{Pattern: "../*.go", Path: "a"}, "main.go"},
		"ignored and allowed again":     {globArgs{Pattern: "**/*.log"}, "a/keep.log"},
		"an ignored directory":          {globArgs{Pattern: "build/*"}, ""},
		"hidden":                        {globArgs{Pattern: "**/*.yml"}, ".github/ci.yml"},
		"version control":               {globArgs{Pattern: "**/config"}, ""},
		"links are found, not followed": {globArgs{Pattern: "**/loop*"}, "a/loop"},
		"quoted brackets":               {globArgs{Pattern: `odd\[1\]/*`}, "odd[1]/z.go"},
		"nothing":                       {globArgs{Pattern: "*.rs"}, ""},
	}
	tree(t, files)
	cwd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	tests["absolute"] = struct {
		args globArgs
		want string
	}{globArgs{Pattern: cwd + "/a/*.go"}, "a/x.go"}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			out := works(t, glob, tt.args)
			if got := strings.ReplaceAll(out.Output, "\n", " "); got != tt.want || out.Count != len(strings.Fields(tt.want)) {
				t.Errorf("got %q, %d; want %q", got, out.Count, tt.want)
			}
		})
	}
	fails(t, glob, globArgs{Pattern: "[a"}, tool.CodeInvalidInput, "malformed")
	fails(t, glob, globArgs{}, tool.CodeInvalidInput, "empty")
	fails(t, glob, globArgs{Pattern: "*", Path: ".git"}, tool.CodeInvalidInput, "never searched")
	fails(t, glob, globArgs{Pattern: "*", Path: "aa"}, tool.CodeNotFound, "did you mean a?")
}

func TestGlobSaysWhenThereIsMore(t *testing.T) {
	tree(t, nil)
	for i := range maxGlobResults + 1 {
		put(t, fmt.Sprintf("f%d", i), "")
	}
	out := works(t, glob, globArgs{Pattern: "*"})
	if out.Count != maxGlobResults || !out.Truncated || !strings.Contains(out.Hint, "1000") {
		t.Errorf("count %d, truncated %v, hint %q", out.Count, out.Truncated, out.Hint)
	}
}

func TestGrep(t *testing.T) {
	tree(t, map[string]string{
		"a.go": "package a\nfunc One() {}\n// TODO one\n", "sub/b.go": "// todo two\nTODO(", "sub/c.txt": "TODO three\r\nend\r\n",
		".env": "TODO hidden\n", ".git/x": "TODO\n", "skip/d.go": "TODO skipped\n", ".gitignore": "skip/\n",
		"bin": "TODO\x00\n", "link": "->a.go", "empty": "", "latin1": "TODO \xe4\n",
	})
	tests := map[string]struct {
		args  grepArgs
		want  string
		count int
	}{
		"a word":             {grepArgs{Pattern: "TODO"}, "a.go:3: // TODO one\nlatin1:1: TODO \uFFFD\nsub/b.go:2: TODO(\nsub/c.txt:1: TODO three", 4},
		"ignore case":        {grepArgs{Pattern: "todo t", IgnoreCase: true}, "sub/b.go:1: // todo two\nsub/c.txt:1: TODO three", 2},
		"case matters":       {grepArgs{Pattern: "todo t"}, "sub/b.go:1: // todo two", 1},
		"end of a CRLF line": {grepArgs{Pattern: "^end$"}, "sub/c.txt:2: end", 1},
		"fixed":              {grepArgs{Pattern: "O(", FixedStrings: true}, "sub/b.go:2: TODO(", 1},
		"not an expression":  {grepArgs{Pattern: "O("}, "[literal: error parsing regexp: missing closing ): `O(`]\nsub/b.go:2: TODO(", 1},
		"filter by name":     {grepArgs{Pattern: "TODO", FileFilter: "*.go"}, "a.go:3: // TODO one\nsub/b.go:2: TODO(", 2},
		"filter by path":     {grepArgs{Pattern: "TODO", FileFilter: "sub/**/*.{go,txt}"}, "sub/b.go:2: TODO(\nsub/c.txt:1: TODO three", 2},
		"hidden":             {grepArgs{Pattern: "hidden", IncludeHidden: true}, "[+hidden]\n.env:1: TODO hidden", 1},
		"gitignored":         {grepArgs{Pattern: "skipped", IgnoreGitignore: true, IncludeHidden: true}, "[+hidden] [+gitignored]\nskip/d.go:1: TODO skipped", 1},
		"one file":           {grepArgs{Pattern: "func", Path: "a.go"}, "a.go:2: func One() {}", 1},
		"a link by name":     {grepArgs{Pattern: "func", Path: "link"}, "link:2: func One() {}", 1},
		"an ignored file":    {grepArgs{Pattern: "TODO", Path: "skip/d.go"}, "skip/d.go:1: TODO skipped", 1},
		"nothing":            {grepArgs{Pattern: "nowhere"}, "", 0},
		"RE2 stays linear":   {grepArgs{Pattern: "(x+x+)+y"}, "", 0},
		"too large for RE2":  {grepArgs{Pattern: "x{1001}"}, "[literal: error parsing regexp: invalid repeat count: `{1001}`]", 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tt.args.MaxResults = 200
			out := works(t, grep, tt.args)
			if diff := cmp.Diff(tt.want, out.Output); diff != "" || out.Count != tt.count {
				t.Errorf("count %d, want %d; output (-want +got):\n%s", out.Count, tt.count, diff)
			}
		})
	}
	fails(t, grep, grepArgs{}, tool.CodeInvalidInput, "pattern is empty")
	fails(t, grep, grepArgs{Pattern: "x", FileFilter: "[a"}, tool.CodeInvalidInput, "file_filter")
	fails(t, grep, grepArgs{Pattern: "x", Path: "b.go"}, tool.CodeNotFound, "did you mean a.go?")
	fails(t, grep, grepArgs{Pattern: "x", Path: ".git/x"}, tool.CodeInvalidInput, "never searched")
}

func TestGrepSaysWhatItDoesNotSearch(t *testing.T) {
	tree(t, map[string]string{"utf16": "\xff\xfeh\x00i\x00t\x00\n\x00", "unmarked": "h\x00i\x00t\x00\n\x00", "bin": "hit\x00", "dir/wide": "\xfe\xff\x00h\x00i\x00t", "dir/f": "hit\n"})
	for path, want := range map[string]string{
		"utf16":    "utf16 is text in UTF-16LE, and was not searched; file_read shows it",
		"unmarked": "unmarked is text in UTF-16LE, and was not searched; file_read shows it",
		"bin":      "bin is a binary file, and was not searched",
		"dir":      "1 file or directory could not be read, or not be searched because of UTF-16, which file_read shows",
	} {
		if out := works(t, grep, grepArgs{Pattern: "hit", Path: path, MaxResults: 9}); out.Hint != want || out.Count != map[bool]int{true: 1}[path == "dir"] {
			t.Errorf("%s: %+v", path, out)
		}
	}
}

func TestGrepContext(t *testing.T) {
	tree(t, map[string]string{"f": "1\n2\nhit 3\n4\nhit 5\n6\n7\n8\n9\n10\nhit 11\n", "g": "hit\n"})
	out := works(t, grep, grepArgs{Pattern: "hit", Context: 1, MaxResults: 10})
	want := "f-2- 2\nf:3: hit 3\nf-4- 4\nf:5: hit 5\nf-6- 6\n--\nf-10- 10\nf:11: hit 11\n--\ng:1: hit"
	if diff := cmp.Diff(want, out.Output); diff != "" || out.Count != 4 || out.Files != 2 {
		t.Errorf("count %d, files %d; output (-want +got):\n%s", out.Count, out.Files, diff)
	}
}

func TestGrepLimits(t *testing.T) {
	tree(t, map[string]string{"many": strings.Repeat("hit\n", 300), "long/line": strings.Repeat("ü", 100_000) + "hit\nhit\n"})
	if out := works(t, grep, grepArgs{Pattern: "hit", Path: "many", MaxResults: 200}); out.Count != 200 || !out.Truncated || out.Hint == "" {
		t.Errorf("count %d, truncated %v", out.Count, out.Truncated)
	}
	if out := works(t, grep, grepArgs{Pattern: "hit", Path: "many", MaxResults: 300}); out.Count != 300 || out.Truncated {
		t.Errorf("count %d, truncated %v", out.Count, out.Truncated)
	}
	out := works(t, grep, grepArgs{Pattern: "hit", Path: "long", MaxResults: 10})
	first, second, _ := strings.Cut(out.Output, "\n")
	if want := "long/line:1: " + strings.Repeat("ü", maxShownLine) + " [line cut]"; first != want || second != "long/line:2: hit" {
		t.Errorf("a long line is shown with %d bytes; then %q", len(first), second)
	}
	put(t, "wide", strings.Repeat(strings.Repeat("x", 1999)+"\n", 1000))
	if out := works(t, grep, grepArgs{Pattern: "x", Path: "wide", MaxResults: 1000}); !out.Truncated || len(out.Output) > maxGrepOutput+4096 {
		t.Errorf("output has %d bytes, truncated %v", len(out.Output), out.Truncated)
	}
}

func TestWalkOfHostileTrees(t *testing.T) {
	tree(t, map[string]string{"self": "->self", "up": "->..", "dir/again": "->.", "dir/f": "hit\n"})
	deep := strings.Repeat("d/", 400)
	put(t, deep+"f", "hit\n")
	out := works(t, grep, grepArgs{Pattern: "hit", MaxResults: 10})
	if out.Count != 2 || !strings.Contains(out.Output, deep+"f:1: hit") {
		t.Errorf("got %q", out.Output)
	}
	if out := works(t, glob, globArgs{Pattern: "**/f"}); out.Count != 2 {
		t.Errorf("got %q", out.Output)
	}
}

func TestWalkEndsWithTheCall(t *testing.T) {
	tree(t, map[string]string{"a": "hit\n"})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := grep(ctx, grepArgs{Pattern: "x", MaxResults: 1}); !errors.Is(err, context.Canceled) {
		t.Errorf("grep: %v", err)
	}
	if _, err := glob(ctx, globArgs{Pattern: "*"}); !errors.Is(err, context.Canceled) {
		t.Errorf("glob: %v", err)
	}
}

func TestLineReader(t *testing.T) {
	text := "a\r\n\n" + strings.Repeat("x", 70_000) + "\n\r\r\nexactly 10\r\nend"
	tests := []struct {
		line   string
		length int
		ending string
	}{{"a", 1, "\r\n"}, {"", 0, "\n"}, {"xxxxxxxxxx", 70_000, "\n"}, {"\r", 1, "\r\n"}, {"exactly 10", 10, "\r\n"}, {"end", 3, ""}}
	for skipped := range len(tests) + 2 {
		r := newLineReader(bufio.NewReaderSize(strings.NewReader(text), 16), 10)
		if n, err := r.skip(t.Context(), skipped); err != nil || n != min(skipped, len(tests)) {
			t.Fatalf("skipped %d of %d lines, %v", n, skipped, err)
		}
		for i, want := range tests[min(skipped, len(tests)):] {
			line, length, ending, err := r.next()
			if err != nil || string(line) != want.line || length != want.length || ending != want.ending {
				t.Errorf("line %d behind %d is %q of %d, %q, %v; want %+v", i, skipped, line, length, ending, err, want)
			}
		}
		if _, _, _, err := r.next(); err == nil {
			t.Error("no end")
		}
	}
}

func TestCutKeepsUTF8Whole(t *testing.T) {
	for _, text := range []string{"", "abc", "äöü", "a\xffb", "日本語", "\xf0\x9f"} {
		for max := range 5 {
			got, more := cut([]byte(text), max)
			if !utf8.ValidString(got) || more != (utf8.RuneCountInString(text) > max) {
				t.Errorf("cut(%q, %d) = %q, %v", text, max, got, more)
			}
		}
	}
}
