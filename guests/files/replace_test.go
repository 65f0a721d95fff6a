package main

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stockade-dev/stockade/sdk/go/tool"
)

func TestReplaceAndInsertLines(t *testing.T) {
	const numbers = "1\n2\n3\n4\n5\n6\n7\n8\n9\n"
	replace := func(from, to int, text string) any {
		return replaceArgs{Path: "f", LineStart: from, LineEnd: to, NewContent: text}
	}
	insert := func(at int, text string) any { return insertArgs{Path: "f", LineStart: at, NewContent: text} }
	tests := map[string]struct {
		content string
		call    any
		want    string
		output  string
	}{
		"one line":                            {numbers, replace(5, 5, "five"), "1\n2\n3\n4\nfive\n6\n7\n8\n9\n", "Replaced line 5 with 1 line in f, which has 9 lines now:\n2: 2\n3: 3\n4: 4\n5: five\n6: 6\n7: 7\n8: 8"},
		"several by more":                     {numbers, replace(1, 2, "a\nb\nc\n"), "a\nb\nc\n3\n4\n5\n6\n7\n8\n9\n", "Replaced lines 1 to 2 with 3 lines in f, which has 10 lines now:\n1: a\n2: b\n3: c\n4: 3\n5: 4\n6: 5"},
		"by nothing":                          {numbers, replace(8, 9, ""), "1\n2\n3\n4\n5\n6\n7\n", "Removed lines 8 to 9 in f, which has 7 lines now:\n5: 5\n6: 6\n7: 7"},
		"by an empty line":                    {numbers, replace(2, 9, "\n"), "1\n\n", "Replaced lines 2 to 9 with 1 line in f, which has 2 lines now:\n1: 1\n2: "},
		"an empty line at the end of it":      {"a\nb\n", replace(1, 1, "x\n\n"), "x\n\nb\n", ""},
		"all":                                 {"a\nb\n", replace(1, 2, "x"), "x\n", ""},
		"all by nothing":                      {"a\n", replace(1, 1, ""), "", "Removed line 1 in f, which has 0 lines now:\n"},
		"the last, which has no line feed":    {"a\nb", replace(2, 2, "x\ny"), "a\nx\ny", ""},
		"the last, and now it has one":        {"a\nb", replace(2, 2, "x\n"), "a\nx\n", ""},
		"what it begins with stays":           {"a\nb\nc\n", replace(1, 3, "a\nx\nc"), "a\nx\nc\n", "Replaced lines 1 to 3 with 3 lines in f, which has 3 lines now:\n1: a\n2: x\n3: c"},
		"CRLF":                                {"a\r\nb\r\nc\r\n", replace(2, 2, "x\ny"), "a\r\nx\r\ny\r\nc\r\n", ""},
		"CRLF that is meant":                  {"a\nb\n", replace(1, 1, "x\r\n"), "x\r\nb\n", ""},
		"numbers that the file has":           {"1: a\n2: b\n", replace(2, 2, "2: c"), "1: a\n2: c\n", ""},
		"a number that is another":            {"a: 1\n", insert(1, "8080: b"), "8080: b\na: 1\n", ""},
		"before the first":                    {"a\n", insert(1, "x"), "x\na\n", "Inserted 1 line before line 1 in f, which has 2 lines now:\n1: x\n2: a"},
		"in the middle":                       {numbers, insert(5, "x\ny\n"), "1\n2\n3\n4\nx\ny\n5\n6\n7\n8\n9\n", "Inserted 2 lines before line 5 in f, which has 11 lines now:\n2: 2\n3: 3\n4: 4\n5: x\n6: y\n7: 5\n8: 6\n9: 7"},
		"behind the last":                     {"a\nb\n", insert(3, "x"), "a\nb\nx\n", "Appended 1 line in f, which has 3 lines now:\n1: a\n2: b\n3: x"},
		"behind one without a line feed":      {"a\nb", insert(3, "x"), "a\nb\nx", ""},
		"before one without a line feed":      {"a\nb", insert(2, "x"), "a\nx\nb", ""},
		"into an empty file":                  {"", insert(1, "x"), "x\n", "Appended 1 line in f, which has 1 line now:\n1: x"},
		"an empty line":                       {"a\n", insert(1, "\n"), "\na\n", ""},
		"with line_end":                       {"a\n", insertArgs{Path: "f", LineStart: 1, LineEnd: 1, NewContent: "x"}, "x\na\n", ""},
		"many lines are not all shown":        {"a\n", insert(1, strings.Repeat("x\n", 50)), strings.Repeat("x\n", 50) + "a\n", "Inserted 50 lines before line 1 in f, which has 51 lines now:\n1: x\n2: x\n3: x\n4: x\n5: x\n6: x\n7: x\n8: x\n9: x\n10: x\n[30 more new lines]\n41: x\n42: x\n43: x\n44: x\n45: x\n46: x\n47: x\n48: x\n49: x\n50: x\n51: a"},
		"a long line is cut in the preview":   {"a\n", insert(1, strings.Repeat("x", 400)), strings.Repeat("x", 400) + "\na\n", "Inserted 1 line before line 1 in f, which has 2 lines now:\n1: " + strings.Repeat("x", 300) + " [line cut]\n2: a"},
		"the byte order mark stays the first": {"\uFEFFa\n", insert(1, "x"), "\uFEFFx\na\n", ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tree(t, map[string]string{"f": tt.content})
			if err := os.Chmod("f", 0o750); err != nil {
				t.Fatal(err)
			}
			out := linesOf(t, tt.call)
			if diff := cmp.Diff(tt.want, content(t, "f")); diff != "" {
				t.Errorf("the file (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.output, out.Output); diff != "" && tt.output != "" {
				t.Errorf("the output (-want +got):\n%s", diff)
			}
			if info, err := os.Stat("f"); out.SHA256 != hashOf([]byte(tt.want)) || out.Lines != lineCount([]byte(tt.want)) || !strings.HasPrefix(out.Diff, "--- a/f\n+++ b/f\n@@") || err != nil || info.Mode() != 0o750 {
				t.Errorf("got %+v, mode %v", out, info.Mode())
			}
		})
	}
}

func linesOf(t *testing.T, args any) linesResult {
	t.Helper()
	if in, ok := args.(replaceArgs); ok {
		return works(t, replaceLines, in)
	}
	return works(t, insertLines, args.(insertArgs))
}

func TestReplaceAndInsertLinesRefuse(t *testing.T) {
	const was = "one\ntwo\nthree\n"
	replace := func(from, to int, text string) error {
		return errOf(replaceLines(context.Background(), replaceArgs{Path: "f", LineStart: from, LineEnd: to, NewContent: text}))
	}
	insert := func(in insertArgs) error { return errOf(insertLines(context.Background(), in)) }
	tests := map[string]struct {
		call func() error
		code string
		says string
	}{
		"a range beyond the end":      {func() error { return replace(3, 5, "x") }, "OUT_OF_RANGE", "f has 3 lines, and there is no line 4; insert_lines with line_start=4 appends"},
		"a range that begins there":   {func() error { return replace(9, 9, "x") }, "OUT_OF_RANGE", "there is no line 9"},
		"a range turned round":        {func() error { return replace(3, 2, "x") }, "OUT_OF_RANGE", "line_end 2 is before line_start 3"},
		"an insertion beyond the end": {func() error { return insert(insertArgs{Path: "f", LineStart: 5, NewContent: "x"}) }, "OUT_OF_RANGE", "no line 5 to insert before; line_start=4 appends"},
		"an insertion over lines":     {func() error { return insert(insertArgs{Path: "f", LineStart: 1, LineEnd: 2, NewContent: "x"}) }, "", "line_end 2 is not line_start 1"},
		"an insertion of nothing":     {func() error { return insert(insertArgs{Path: "f", LineStart: 1}) }, "", "new_content is empty"},
		"no path":                     {func() error { return insert(insertArgs{LineStart: 1, NewContent: "x"}) }, "", "path is empty"},
		"lines with numbers":          {func() error { return replace(2, 2, "2: zwei\n3: drei\n") }, "NUMBERED_LINES", "leave them out"},
		"one line with its number":    {func() error { return replace(2, 2, "2: zwei") }, "NUMBERED_LINES", "leave them out"},
		"lines of cat -n":             {func() error { return replace(2, 2, "     2\tzwei\n     3\tdrei\n") }, "NUMBERED_LINES", "leave them out"},
		"what is there already":       {func() error { return replace(2, 2, "two") }, "NO_CHANGE", "f already reads like that"},
		"the content of another version": {func() error {
			return insert(insertArgs{Path: "f", LineStart: 1, NewContent: "x", ExpectedSHA256: hashOf(nil)})
		}, "CONTENT_CHANGED", "read it again"},
		"a hash that is none":           {func() error { return insert(insertArgs{Path: "f", LineStart: 1, NewContent: "x", ExpectedSHA256: "x"}) }, "", "not a SHA-256"},
		"a directory":                   {func() error { return insert(insertArgs{Path: "dir", LineStart: 1, NewContent: "x"}) }, "NOT_A_FILE", "is a directory; ls lists it"},
		"a file that is not there":      {func() error { return insert(insertArgs{Path: "g", LineStart: 1, NewContent: "x"}) }, "", "no such file or directory; did you mean f?"},
		"a binary file":                 {func() error { return insert(insertArgs{Path: "bin", LineStart: 1, NewContent: "x"}) }, "BINARY_FILE", "binary"},
		"a large file":                  {func() error { return insert(insertArgs{Path: "large", LineStart: 1, NewContent: "x"}) }, "TOO_LARGE", "large has 8.0 MiB; edits go up to 8.0 MiB: change it with bash"},
		"a result that is too large":    {func() error { return replace(1, 1, strings.Repeat("x", maxEditBytes)) }, "TOO_LARGE", "would have 8.0 MiB"},
		"a character that there is not": {func() error { return insert(insertArgs{Path: "latin", LineStart: 1, NewContent: "→"}) }, "NOT_ENCODABLE", "no '→'"},
	}
	tree(t, map[string]string{"f": was, "dir/": "", "bin": "\x00", "large": strings.Repeat("x", maxEditBytes+1), "latin": "\xfc\n"})
	for name, tt := range tests {
		err := tt.call()
		if err == nil || tool.CodeOf(err) != tt.code || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %q %v, want %q", name, tool.CodeOf(err), err, tt.says)
		}
	}
	if got := content(t, "f"); got != was {
		t.Errorf("a refused edit changed the file to %q", got)
	}
}

func TestPreviewOfSeveralChanges(t *testing.T) {
	var text strings.Builder
	for i := range 26 {
		text.WriteString(string(rune('a'+i)) + "\n")
	}
	was := []byte(text.String())
	for name, tt := range map[string]struct{ old, new, want string }{
		"far apart": {"[cz]\n", "1\n2\n", "1: a\n2: b\n3: 1\n4: 2\n5: d\n6: e\n7: f\n...\n24: w\n25: x\n26: y\n27: 1\n28: 2"},
		"close":     {"[cfg]\n", "", "1: a\n2: b\n3: d\n4: e\n5: h\n6: i\n7: j"},
	} {
		var changes []change
		for _, letter := range strings.Trim(tt.old, "[]\n") {
			changes = append(changes, occurrences(was, string(letter)+"\n", tt.new)...)
		}
		if diff := cmp.Diff(tt.want, preview(was, applyChanges(was, changes), changes)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	many := strings.Repeat("a\n"+strings.Repeat("b\n", 10), 1000)
	changes := findChanges([]byte(many), "a", "c\nd")
	if n := len(preview([]byte(many), applyChanges([]byte(many), changes), changes)); n > maxPreviewBytes+2048 {
		t.Errorf("a preview of %d bytes", n)
	}
}
