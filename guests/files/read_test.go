package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/stockade-dev/stockade/sdk/go/tool"
)

func TestFileRead(t *testing.T) {
	tests := map[string]struct {
		content       string
		offset, limit int
		want          string
		lines, next   int
	}{
		"a file":              {"a\nb\n", 0, 0, "1: a\n2: b", 2, 0},
		"no newline at end":   {"a\nb", 1, 2000, "1: a\n2: b", 2, 0},
		"empty":               {"", 1, 2000, "(empty)", 0, 0},
		"only a newline":      {"\n", 1, 2000, "1: ", 1, 0},
		"carriage returns":    {"a\r\nb\r\n", 1, 2000, "1: a\n2: b", 2, 0},
		"byte order mark":     {"\uFEFFa\n", 1, 2000, "1: a", 1, 0},
		"bytes not UTF-8":     {"ü, ä, a\xffb\n", 1, 2000, "1: ü, ä, a\uFFFDb", 1, 0},
		"from an offset":      {"a\nb\nc\n", 2, 2000, "2: b\n3: c", 3, 0},
		"a limit":             {"a\nb\nc\n", 1, 2, "1: a\n2: b\n[1 more line; to go on, call file_read with offset=3]", 3, 3},
		"offset 0 is line 1":  {"a\nb\n", 0, 1, "1: a\n[1 more line; to go on, call file_read with offset=2]", 2, 2},
		"a limit at the end":  {"a\nb\n", 1, 2, "1: a\n2: b", 2, 0},
		"offset and limit":    {"a\nb\nc\nd\n", 2, 1, "2: b\n[2 more lines; to go on, call file_read with offset=3]", 4, 3},
		"a line of the limit": {strings.Repeat("ü", 2000) + "\n", 1, 9, "1: " + strings.Repeat("ü", 2000), 1, 0},
		"a line beyond":       {strings.Repeat("x", 2001) + "\n", 1, 9, "1: " + strings.Repeat("x", 2000) + " [line cut: it has 2001 bytes]", 1, 0},
		"a line far beyond":   {strings.Repeat("😀", 50_000), 1, 9, "1: " + strings.Repeat("😀", 2000) + " [line cut: it has 200000 bytes]", 1, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tree(t, map[string]string{"f": tt.content})
			out := works(t, fileRead, readArgs{Path: "f", Offset: tt.offset, Limit: max(tt.limit, 0)})
			if tt.limit == 0 {
				out = works(t, fileRead, readArgs{Path: "f", Offset: 1, Limit: 2000})
			}
			if out.Output != tt.want || out.Lines != tt.lines || out.NextOffset != tt.next {
				t.Errorf("got %.200q, %d lines, next %d", out.Output, out.Lines, out.NextOffset)
			}
			if sum := sha256.Sum256([]byte(tt.content)); out.SHA256 != hex.EncodeToString(sum[:]) {
				t.Errorf("sha256 is %s", out.SHA256)
			}
		})
	}
}

func TestFileReadPages(t *testing.T) {
	var text strings.Builder
	for i := range 4500 {
		fmt.Fprintf(&text, "line %d %s\n", i+1, strings.Repeat("y", i%40))
	}
	tree(t, map[string]string{"f": text.String()})
	var got strings.Builder
	pages := 0
	for next := 1; next > 0; pages++ {
		out := works(t, fileRead, readArgs{Path: "f", Offset: next, Limit: 2000})
		lines := strings.Split(out.Output, "\n")
		if out.NextOffset > 0 {
			lines = lines[:len(lines)-1]
		}
		if len(lines) > maxReadLines || len(strings.Join(lines, "\n")) > maxReadOutput {
			t.Errorf("a page has %d lines and %d bytes", len(lines), len(out.Output))
		}
		for i, line := range lines {
			number, rest, _ := strings.Cut(line, ": ")
			if number != fmt.Sprint(next+i) {
				t.Fatalf("line %d is numbered %s", next+i, number)
			}
			got.WriteString(rest + "\n")
		}
		next = out.NextOffset
	}
	if got.String() != text.String() || pages < 3 {
		t.Errorf("%d pages do not make the file", pages)
	}
}

func TestFileReadErrors(t *testing.T) {
	tree(t, map[string]string{"main.go": "x\n", "bin": "a\x00b", "dir/.h": "x", "dir/f": "x", "dangling": "->nowhere", "loop": "->loop"})
	read := func(path string, offset int) readArgs { return readArgs{Path: path, Offset: offset, Limit: 10} }
	fails(t, fileRead, read("", 1), tool.CodeInvalidInput, "path is empty")
	fails(t, fileRead, read("bin", 1), tool.CodeParse, "binary")
	fails(t, fileRead, read("mian.go", 1), tool.CodeNotFound, "read mian.go", "did you mean main.go?")
	fails(t, fileRead, read("no/such/file", 1), tool.CodeNotFound, "its directory does not exist either")
	fails(t, fileRead, read("main.go", 2), tool.CodeInvalidInput, "offset 2 is beyond the end of main.go, which has 1 line")
	fails(t, fileRead, read("dangling", 1), tool.CodeNotFound)
	fails(t, fileRead, read("loop", 1), tool.CodeIO, "too many symbolic links")
	out := works(t, fileRead, read("dir", 1))
	if !strings.HasPrefix(out.Output, "dir is a directory:\n") || out.Count != 2 || out.SHA256 != "" {
		t.Errorf("a directory is %+v", out)
	}
}

func TestPagesOfLargeFiles(t *testing.T) {
	large := func(size int64) string {
		return fmt.Sprintf("it has %s, and no tool edits more than 8.0 MiB]", humanSize(size))
	}
	for name, tt := range map[string]struct {
		size  int64
		page  page
		want  string
		lines int
		next  int
	}{
		"without a hash":               {maxHashed + 1, page{offset: 2, limit: 1}, "2: b\n[2 more lines; to go on, call file_read with offset=3; " + large(maxHashed+1), 4, 3},
		"without the number of lines":  {maxCounted + 1, page{offset: 2, limit: 1}, "2: b\n[more lines follow; to go on, call file_read with offset=3; " + large(maxCounted+1), 0, 3},
		"at the end they are counted":  {maxCounted + 1, page{offset: 4, limit: 9}, "4: d\n[" + large(maxCounted+1), 4, 0},
		"raw, where nothing is added":  {maxCounted + 1, page{offset: 2, limit: 2, raw: true}, "b\nc\n", 0, 4},
		"a hash up to the last number": {maxHashed, page{offset: 4, limit: 1}, "4: d", 4, 0},
	} {
		tt.page.size = tt.size
		out, err := tt.page.read(t.Context(), strings.NewReader("a\nb\nc\nd\n"), location{"/f", "f"})
		if err != nil || out.Output != tt.want || out.Lines != tt.lines || out.NextOffset != tt.next || (out.SHA256 != "") != (tt.size <= maxHashed) {
			t.Errorf("%s: got %+v, %v", name, out, err)
		}
	}
}

func TestRawReads(t *testing.T) {
	long := strings.Repeat("x", maxReadOutput)
	tests := map[string]struct {
		content       string
		offset, limit int
		want          string
		next          int
	}{
		"all as it is":               {"a\r\n\n\tb \nc", 1, 2000, "a\r\n\n\tb \nc", 0},
		"a part":                     {"a\nb\nc\n", 2, 1, "b\n", 3},
		"no byte order mark":         {"\uFEFFa\n", 1, 2000, "a\n", 0},
		"a long line":                {long[1:] + "\nb\n", 1, 2000, long[1:] + "\n", 2},
		"a long line and no more":    {long, 1, 2000, long, 0},
		"a line too long comes last": {"a\n" + long + "x\nb\n", 1, 2000, "a\n", 2},
		"from the end":               {"a\nb\nc\n", -2, 2000, "b\nc\n", 0},
		"in another encoding":        {"gr\xfc\xdfe\r\n", 1, 2000, "grüße\r\n", 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tree(t, map[string]string{"f": tt.content})
			out := works(t, fileRead, readArgs{Path: "f", Offset: tt.offset, Limit: tt.limit, Raw: true})
			if out.Output != tt.want || out.NextOffset != tt.next || out.SHA256 != hashOf([]byte(tt.content)) {
				t.Errorf("got %.80q, next %d", out.Output, out.NextOffset)
			}
		})
	}
	tree(t, map[string]string{"f": long + "x\nb\n"})
	_, err := fileRead(t.Context(), readArgs{Path: "f", Offset: 1, Limit: 9, Raw: true})
	if tool.CodeOf(err) != "LINE_TOO_LONG" || !strings.Contains(err.Error(), "line 1 of f has 51201 bytes") {
		t.Error(err)
	}
}

func TestTheEndOfAFile(t *testing.T) {
	tree(t, map[string]string{"f": "a\nb\nc\nd", "empty": ""})
	for offset, want := range map[int]string{-1: "4: d", -2: "3: c\n4: d", -4: "1: a\n2: b\n3: c\n4: d", -99: "1: a\n2: b\n3: c\n4: d", 0: "1: a\n2: b\n3: c\n4: d"} {
		if out := works(t, fileRead, readArgs{Path: "f", Offset: offset, Limit: 2000}); out.Output != want || out.NextOffset != 0 {
			t.Errorf("offset %d: got %q", offset, out.Output)
		}
	}
	if out := works(t, fileRead, readArgs{Path: "f", Offset: -3, Limit: 1}); out.Output != "2: b\n[2 more lines; to go on, call file_read with offset=3]" {
		t.Errorf("the last three, one of them: %q", out.Output)
	}
	if out := works(t, fileRead, readArgs{Path: "empty", Offset: -3, Limit: 1}); out.Output != "(empty)" {
		t.Errorf("of nothing: %q", out.Output)
	}
}
