package main

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stockade-dev/stockade/sdk/go/tool"
)

func TestFileWrite(t *testing.T) {
	tree(t, map[string]string{"old": "something longer\n", "link": "->old"})
	if err := os.Chmod("old", 0o750); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		path, content, action string
	}{
		{"new", "hi\n", "Created"},
		{"new", "", "Overwrote"},
		{"a/b/c.txt", "grüße", "Created"},
		{"old", "short", "Overwrote"},
		{"link", "through the link", "Overwrote"},
	}
	for _, tt := range tests {
		out := works(t, fileWrite, writeArgs{Path: tt.path, Content: tt.content})
		if out.Action != tt.action || out.Bytes != len(tt.content) || out.SHA256 != hashOf([]byte(tt.content)) {
			t.Errorf("%s: got %+v", tt.path, out)
		}
		if got := content(t, tt.path); got != tt.content {
			t.Errorf("%s holds %q", tt.path, got)
		}
	}
	if out := works(t, fileWrite, writeArgs{Path: "./a/b/c.txt", Content: "x"}); out.Output != "Wrote 1 bytes to a/b/c.txt" {
		t.Errorf("output is %q", out.Output)
	}
	if got := content(t, "old"); got != "through the link" {
		t.Errorf("the link's target holds %q", got)
	}
	if info, err := os.Lstat("old"); err != nil || info.Mode() != 0o750 {
		t.Errorf("mode is %v, %v", info.Mode(), err)
	}
	entries, err := os.ReadDir(".")
	if err != nil || len(entries) != 4 {
		t.Errorf("temporary files are left: %v, %v", entries, err)
	}
}

func TestFileWriteSaysWhatIsLost(t *testing.T) {
	for was, says := range map[string]string{
		"a\r\nb\r\n": "; its lines ended with CRLF, and end with LF now", "\uFEFFa\n": "; the byte order mark that it began with is gone",
		"gr\xfcn": "; it was windows-1252, and is UTF-8 now", "\xff\xfea\x00": "; it was utf-16le with a byte order mark, and is UTF-8 now", "a\nb\r\n": "", "\x00": "", "": "",
	} {
		tree(t, map[string]string{"f": was})
		if out := works(t, fileWrite, writeArgs{Path: "f", Content: "x\n"}); out.Output != "Wrote 2 bytes to f"+says {
			t.Errorf("%q: %q", was, out.Output)
		}
	}
}

func TestFileWriteErrors(t *testing.T) {
	tree(t, map[string]string{"file": "x", "dir/": "", "dangling": "->dir/gone"})
	fails(t, fileWrite, writeArgs{Path: "dangling", Content: "x"}, tool.CodeNotFound, "write dangling: no such file", "it is a symbolic link to dir/gone, where nothing is")
	if target, err := os.Readlink("dangling"); err != nil || target != "dir/gone" {
		t.Errorf("the link leads to %q, %v", target, err)
	}
	fails(t, fileWrite, writeArgs{Path: "file", Content: "a\nb\x00"}, tool.CodeInvalidInput, "content holds a NUL byte in its line 2", "bash")
	fails(t, fileWrite, writeArgs{Content: "x"}, tool.CodeInvalidInput, "path is empty")
	fails(t, fileWrite, writeArgs{Path: "dir"}, tool.CodeInvalidInput, "is a directory")
	fails(t, fileWrite, writeArgs{Path: "file/x"}, tool.CodeInvalidInput, "a part of the path is a file")
	fails(t, fileWrite, writeArgs{Path: "file", ExpectedSHA256: "abc"}, tool.CodeInvalidInput, "not a SHA-256")
	fails(t, fileWrite, writeArgs{Path: "file", ExpectedSHA256: hashOf([]byte("y"))}, tool.CodeInvalidInput, "file has changed since it was read")
	fails(t, fileWrite, writeArgs{Path: "gone", ExpectedSHA256: hashOf(nil)}, tool.CodeNotFound, "does not exist")
	if got := content(t, "file"); got != "x" {
		t.Errorf("a refused write changed the file to %q", got)
	}
	works(t, fileWrite, writeArgs{Path: "file", Content: "y", ExpectedSHA256: strings.ToUpper(hashOf([]byte("x")))})
}

func TestFileEdit(t *testing.T) {
	tests := map[string]struct {
		content, old, new string
		all               bool
		want              string
		n                 int
	}{
		"one word":                            {"a b c\n", "b", "B", false, "a B c\n", 1},
		"two lines":                           {"a\nb\nc\n", "a\nb", "x", false, "x\nc\n", 1},
		"every occurrence":                    {"a a\na\n", "a", "bb", true, "bb bb\nbb\n", 3},
		"all of one":                          {"a\n", "a", "b", true, "b\n", 1},
		"deletion":                            {"a\nb\nc\n", "b\n", "", false, "a\nc\n", 1},
		"no newline at the end":               {"a\nb", "b", "c", false, "a\nc", 1},
		"line feeds match CRLF":               {"a\r\nb\r\nc\r\n", "a\nb\n", "x\ny\nz\n", false, "x\r\ny\r\nz\r\nc\r\n", 1},
		"inserted lines get CRLF":             {"a\r\nb\r\n", "b", "b\nc", false, "a\r\nb\r\nc\r\n", 1},
		"text with CR is taken literally":     {"a\r\nb\r\n", "a\r\n", "a\n", false, "a\nb\r\n", 1},
		"mixed endings, each keeps its own":   {"a\nb\r\na\r\nb\n", "a\nb", "x\ny", true, "x\ny\r\nx\r\ny\n", 2},
		"mixed endings, most are line feeds":  {"a\nb\nc\r\n", "b", "x\ny", false, "a\nx\ny\nc\r\n", 1},
		"byte order mark stays":               {"\uFEFFa\nb\n", "a\n", "x\n", false, "\uFEFFx\nb\n", 1},
		"occurrences do not overlap":          {"aaaa\n", "aa", "b", true, "bb\n", 2},
		"line feeds around do not overlap":    {"x\r\n\r\ny\r\n", "\n\n", "\n", false, "x\r\ny\r\n", 1},
		"bytes that are not UTF-8 are kept":   {"\xff a \xfe\n", "a", "b", false, "\xff b \xfe\n", 1},
		"new text may hold the old":           {"a\n", "a", "aaa", true, "aaa\n", 1},
		"template signs have no meaning here": {"$1 \\1\n", "$1", "$0${x}", false, "$0${x} \\1\n", 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tree(t, map[string]string{"f": tt.content})
			if err := os.Chmod("f", 0o755); err != nil {
				t.Fatal(err)
			}
			out := works(t, fileEdit, editArgs{Path: "f", OldString: tt.old, NewString: tt.new, ReplaceAll: tt.all, ExpectedSHA256: hashOf([]byte(tt.content))})
			if got := content(t, "f"); got != tt.want || out.Replacements != tt.n || out.SHA256 != hashOf([]byte(tt.want)) {
				t.Errorf("got %q, %d replacements; want %q, %d", got, out.Replacements, tt.want, tt.n)
			}
			if info, err := os.Stat("f"); err != nil || info.Mode() != 0o755 {
				t.Errorf("mode is %v, %v", info.Mode(), err)
			}
		})
	}
}

func TestFileEditErrors(t *testing.T) {
	tree(t, map[string]string{
		"f": "a\nb a\n\tfunc main() {\n", "mixed": "a\nb\r\na\r\nb\n", "bin": "a\x00", "dir/": "",
		"large": strings.Repeat("x", maxEditBytes+1), "many": strings.Repeat("a", maxReplacements+1),
	})
	edit := func(path, old, new string) editArgs { return editArgs{Path: path, OldString: old, NewString: new} }
	fails(t, fileEdit, edit("", "a", "b"), tool.CodeInvalidInput, "path is empty")
	fails(t, fileEdit, edit("f", "", "b"), tool.CodeInvalidInput, "old_string is empty", "file_write")
	fails(t, fileEdit, edit("f", "a", "a"), tool.CodeInvalidInput, "are the same")
	fails(t, fileEdit, edit("f", "a", "b"), tool.CodeInvalidInput, "old_string occurs 3 times in f; add context or set replace_all")
	fails(t, fileEdit, edit("mixed", "a\nb", "x"), tool.CodeInvalidInput, "occurs 2 times")
	fails(t, fileEdit, edit("f", "    func main() {", "x"), tool.CodeInvalidInput, "does not occur in f", `; line 3 of the file differs in white space: it is "\tfunc main() {", and old_string has "    func main() {"`)
	fails(t, fileEdit, edit("f", "a\nb b\n", "x"), tool.CodeInvalidInput, `the nearest is line 2 of the file: it is "b a", and old_string has "b b"`)
	fails(t, fileEdit, edit("f", "func mein() {", "x"), tool.CodeInvalidInput, "the nearest is line 3")
	fails(t, fileEdit, edit("f", "completely different", "x"), tool.CodeInvalidInput, "does not occur in f; nothing in the file is like it: look at the file again")
	// What differs in characters that look alike, in a part of a line, is told by their numbers.
	for content, old := range map[string][2]string{
		"a\nhe said “hi” again\n":    {`said "hi" a`, `; line 2 of the file is "he said “hi” again": it has "“" [U+201C] where old_string has "\"" [U+0022]`},
		"it’s\n":                     {"it's", `it has "’" [U+2019] where old_string has "'" [U+0027]`},
		"the cafe\u0301 is\n":        {"the caf\u00e9 i", `[U+0065 U+0301] where old_string has`},
		"the caf\u00e9 is\n":         {"cafe\u0301 is", `[U+00E9] where old_string has`},
		"one – two\n":                {"one - t", `"–" [U+2013] where old_string has "-" [U+002D]`},
		"one-two, a‑b\n":             {"one-two, a-b", `"‑" [U+2011] where old_string has "-" [U+002D]`},
		"10\u00a0000\u202f€\n":       {"10 000 €", `"\u00a0" [U+00A0] where old_string has " " [U+0020]`},
		"10\u202f000 or so\n":        {"10 000", `"\u202f" [U+202F] where old_string has " " [U+0020]`},
		"and so on… ok\n":            {"so on... ok", `"…" [U+2026] where old_string has "." [U+002E]`},
		"zero\u200bwidth\n":          {"zerowidth", `"\u200b" [U+200B] where old_string has "w" [U+0077]`},
		"key:\tvalue x\n":            {"key: value", `"\t" [U+0009] where old_string has " " [U+0020]`},
		"eﬃcient\n":                  {"efficient", `"ﬃ" [U+FB03] where old_string has "f" [U+0066]`},
		"ＡＢＣ\n":                      {"ABC", `"Ａ" [U+FF21] where old_string has "A" [U+0041]`},
		"x\r\n“a”\r\nlast\r\n":       {"\"a\"\nlast", `; line 2 of the file is "“a”": it has "“" [U+201C]`},
		"good “a”\nfunc f() {“x”}\n": {"good “a”\nfunc f() {\"x\"}", `; line 2 of the file is "func f() {“x”}": it has "“" [U+201C]`},
	} {
		put(t, "look", content)
		fails(t, fileEdit, edit("look", old[0], "x"), tool.CodeInvalidInput, "old_string does not occur in look", old[1])
		_, err := applyPatch(t.Context(), patchOf("*** Update File: look\n@@\n-"+strings.ReplaceAll(old[0], "\n", "\n-")+"\n+new"))
		if err == nil || !strings.Contains(err.Error(), strings.ReplaceAll(old[1], "old_string", "the hunk")) {
			t.Errorf("a hunk with %q: %v", old[0], err)
		}
		if got, _ := os.ReadFile("look"); string(got) != content {
			t.Errorf("%q was changed to %q", content, got)
		}
	}
	fails(t, fileEdit, edit("f", "\n\n\n", "x"), tool.CodeInvalidInput, "does not occur in f; nothing in the file")
	fails(t, fileEdit, edit("f", "b a", "b\x00"), tool.CodeInvalidInput, "the new text holds a NUL byte in its line 1")
	for _, old := range []string{"3: func main() {", "3: func main() {\n4: \tx := 1\n", "     3\tfunc main() {\n     4\t\tx := 1", "main() {\n4: \tx := 1\n5: \n"} {
		fails(t, fileEdit, edit("f", old, "x"), tool.CodeInvalidInput, "leave out the line numbers")
	}
	fails(t, fileEdit, edit("g", "a", "b"), tool.CodeNotFound, "edit g: no such file", "did you mean f?")
	fails(t, fileEdit, edit("dir", "a", "b"), tool.CodeInvalidInput, "is a directory; ls lists it")
	fails(t, fileEdit, edit("bin", "a", "b"), tool.CodeParse, "binary")
	fails(t, fileEdit, edit("large", "x", "b"), tool.CodeInvalidInput, "large has 8.0 MiB; edits go up to 8.0 MiB")
	fails(t, fileEdit, editArgs{Path: "many", OldString: "a", NewString: "b", ReplaceAll: true}, tool.CodeInvalidInput, "more than 100000 times")
	fails(t, fileEdit, editArgs{Path: "f", OldString: "b a", NewString: strings.Repeat("y", maxEditBytes)}, tool.CodeInvalidInput, "would have")
	fails(t, fileEdit, editArgs{Path: "f", OldString: "b a", NewString: "x", ExpectedSHA256: hashOf(nil)}, tool.CodeInvalidInput, "has changed")
	if got := content(t, "f"); got != "a\nb a\n\tfunc main() {\n" {
		t.Errorf("a refused edit changed the file to %q", got)
	}
}

func TestUnifiedDiff(t *testing.T) {
	numbers := "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14\n15\n16\n"
	tests := map[string]struct {
		content, old, new string
		want              string
	}{
		"in the middle":                 {numbers, "8\n", "x\ny\n", "@@ -5,7 +5,8 @@\n 5\n 6\n 7\n-8\n+x\n+y\n 9\n 10\n 11\n"},
		"at the start":                  {numbers, "1\n2", "2", "@@ -1,4 +1,3 @@\n-1\n 2\n 3\n 4\n"},
		"context in old_string":         {numbers, "7\n8\n9", "7\nx\n9", "@@ -5,7 +5,7 @@\n 5\n 6\n 7\n-8\n+x\n 9\n 10\n 11\n"},
		"one hunk for close changes":    {"a\nb\nc\na\nd\n", "a", "x", "@@ -1,5 +1,5 @@\n-a\n+x\n b\n c\n-a\n+x\n d\n"},
		"two hunks, shifted":            {"a\n" + numbers + "a\n", "a\n", "x\ny\n", "@@ -1,4 +1,5 @@\n-a\n+x\n+y\n 1\n 2\n 3\n@@ -15,4 +16,5 @@\n 14\n 15\n 16\n-a\n+x\n+y\n"},
		"several in one line":           {"a a a\nb\n", "a", "x", "@@ -1,2 +1,2 @@\n-a a a\n+x x x\n b\n"},
		"lines join":                    {"a\nb\nc\n", "a\n", "", "@@ -1,3 +1,2 @@\n-a\n b\n c\n"},
		"a line moves up":               {"a\nb\n", "a\n", "x", "@@ -1,2 +1,1 @@\n-a\n-b\n+xb\n"},
		"no newline at the end":         {"a\nb", "b", "c", "@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+c\n\\ No newline at end of file\n"},
		"all goes":                      {"a\n", "a\n", "", "@@ -1,1 +0,0 @@\n-a\n"},
		"CRLF":                          {"a\r\nb\r\n", "a", "x", "@@ -1,2 +1,2 @@\n-a\n+x\n b\n"},
		"changes that touch each other": {"a\na\nb\n", "a\n", "x\n", "@@ -1,3 +1,3 @@\n-a\n-a\n+x\n+x\n b\n"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := unifiedDiff("f", []byte(tt.content), findChanges([]byte(tt.content), tt.old, tt.new))
			if diff := cmp.Diff("--- a/f\n+++ b/f\n"+tt.want, got); diff != "" {
				t.Errorf("diff (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDiffStaysShort(t *testing.T) {
	for name, text := range map[string]string{
		"many changes":    strings.Repeat("a\n", 5000),
		"far apart":       strings.Repeat("a\n"+strings.Repeat("b\n", 10), 1000),
		"one huge line":   strings.Repeat("a", 100_000),
		"huge lines near": strings.Repeat("x", 100_000) + "\na\n" + strings.Repeat("x", 100_000) + "\n",
	} {
		diff := unifiedDiff("f", []byte(text), findChanges([]byte(text), "a", "c\nd"))
		if len(diff) > maxDiffBytes+2048 {
			t.Errorf("%s: %d bytes", name, len(diff))
		}
	}
}

func FuzzEdit(f *testing.F) {
	for _, seed := range [][3]string{
		{"a b c\n", "b", "B"}, {"a\r\nb\r\n", "a\nb", "x\ny"}, {"a\nb\r\na\r\nb\n", "a\nb", "x"},
		{"\uFEFFa", "a", "\n"}, {"aaaa", "aa", "a"}, {"\r\n\n\r", "\n", "\r\n"}, {"a\nb", "b", ""},
	} {
		f.Add(seed[0], seed[1], seed[2])
	}
	f.Fuzz(func(t *testing.T, text, old, new string) {
		if old == "" || old == new {
			return
		}
		changes := findChanges([]byte(text), old, new)
		end := 0
		for _, c := range changes {
			if c.start < end || c.end <= c.start || c.end > len(text) {
				t.Fatalf("changes overlap or lie outside: %+v", changes)
			}
			end = c.end
			if got := strings.ReplaceAll(text[c.start:c.end], "\r\n", "\n"); got != strings.ReplaceAll(old, "\r\n", "\n") {
				t.Fatalf("%q is replaced for %q", got, old)
			}
		}
		if strings.Contains(text, old) && len(changes) == 0 {
			t.Fatalf("%q is not found in %q", old, text)
		}
		// Taking the new text out again gives the old content.
		edited := applyChanges([]byte(text), changes)
		var back []change
		shift := 0
		for _, c := range changes {
			back = append(back, change{c.start + shift, c.start + shift + len(c.text), text[c.start:c.end]})
			shift += len(c.text) - (c.end - c.start)
		}
		if got := string(applyChanges(edited, back)); got != text {
			t.Fatalf("undone edit gives %q, want %q", got, text)
		}
		unifiedDiff("f", []byte(text), changes)
		nearMiss([]byte(text), "it", strings.Split(old, "\n"))
	})
}
