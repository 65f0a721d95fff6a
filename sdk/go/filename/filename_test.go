package filename

import "testing"

func TestNames(t *testing.T) {
	for path, text := range map[string]string{
		"":                    "",
		"a b/ü–.txt":          "a b/ü–.txt",
		"/x/caf\xe9.txt":      `/x/"caf\xe9.txt"`,
		"caf\xe9/\xff":        `"caf\xe9"/"\xff"`,
		"a\nb":                `"a\nb"`,
		"\x1b[31m":            `"\x1b[31m"`,
		"x\u202etxt.exe":      `"x\u202etxt.exe"`,
		"a\u00a0b":            `"a\u00a0b"`,
		"a\u200bb":            `"a\u200bb"`,
		`"a"`:                 `"\"a\""`,
		`"caf\xe9.txt"`:       `"\"caf\\xe9.txt\""`,
		`say "hi"`:            `say "hi"`,
		`back\slash`:          `back\slash`,
		"back\\slash\xff":     `"back\\slash\xff"`,
		"replacement \uFFFD.": "replacement \uFFFD.",
	} {
		if got := Show(path); got != text {
			t.Errorf("%q is written as %s, want %s", path, got, text)
		}
		if got := Parse(text); got != path {
			t.Errorf("%s is read as %q, want %q", text, got, path)
		}
	}
	// A name has only one spelling.
	for _, text := range []string{`"a"`, `"secr\x65t"`, `"..\u002f.."`, `"\x2e\x2e"`, `"caf\351.txt"`, `"caf\xE9.txt"`, `"`, `""`, "`a`", `'a'`, `"a/b\xff"`} {
		if got := Parse(text); got != text {
			t.Errorf("%s is read as %q", text, got)
		}
	}
}

func FuzzNames(f *testing.F) {
	f.Add("a/\"caf\xe9\"/\n")
	f.Add(`"a\xff"/"b"`)
	f.Fuzz(func(t *testing.T, path string) {
		if got := Parse(Show(path)); got != path {
			t.Fatalf("%q is written as %s, which is %q", path, Show(path), got)
		}
	})
}
